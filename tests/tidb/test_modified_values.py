"""What MODIFY COLUMN makes of stored values: as a real TiDB has it, or the table is blocked."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).parents[1] / "ddl"))

from random_defaults import TYPES, RandomDefaults
from test_defaults import PROGRAM, equal, shown_sql
from tidb_server import TiDB

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import Family, MysqlType
from ticdc_lakehouse.schema.definition import ColumnDefinition
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import AddColumn, AlterTable
from ticdc_lakehouse.sql.text import literal
from ticdc_lakehouse.sql.type_conversion import converted_sql, has_session_time
from ticdc_lakehouse.sql.typed_columns import typed_column, value_text_sql
from ticdc_lakehouse.sql.value_range import is_value_sql

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="no tidb-server: `make verify-test` builds it, and needs Go"),
    pytest.mark.timeout(1800),
]
MORE_TYPES = (
    *TYPES,
    *("MEDIUMINT", "SMALLINT UNSIGNED", "DECIMAL(20,6)", "DECIMAL(8,4) UNSIGNED", "FLOAT UNSIGNED", "DOUBLE(6,1)"),
    *(
        "TEXT",
        "TINYTEXT",
        "BLOB",
        "CHAR(3)",
        "VARCHAR(3)",
        "CHAR(40)",
        "BINARY(3)",
        "BIT(13)",
        "DATETIME(1)",
        "TIME(3)",
    ),
    *("ENUM('B','a','c')", "SET('B','a','c')", "SET('a','B','1','x y','z')"),
)
PAIRS, VALUES = 150, 6
MODES = ("", "STRICT_TRANS_TABLES")


@dataclass(frozen=True, slots=True)
class Modified:
    """One stored value that TiDB converted."""

    before: str
    after: str
    text: str | None
    converted: str | None
    """What TiDB made of it."""
    sql: str
    """What gold makes of it; NULL where it blocks the table."""
    type: MysqlType = field(repr=False)


@pytest.fixture(scope="module")
def cursor(database: TiDB) -> Any:
    database.execute("CREATE DATABASE d")
    connection = database.connect()
    connection.select_db("d")
    connection.decoders = {}
    return connection.cursor()


def kind_of(definition: str) -> MysqlType:
    (statement,) = read_ddl(f"ALTER TABLE t ADD COLUMN c {definition}", "d", "t")
    assert isinstance(statement, AlterTable)
    (action,) = statement.actions
    assert isinstance(action, AddColumn)
    return action.column.type


def stored(cursor: Any, definition: str, some: RandomDefaults) -> list[tuple[int, str]]:
    """Random values, as TiDB holds them without strict mode: (id, text)."""
    cursor.execute("DROP TABLE IF EXISTS t")
    cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, c {definition})")
    cursor.execute("SET sql_mode = ''")
    for _ in range(VALUES):
        try:
            cursor.execute(f"INSERT INTO t (c) VALUES ({some.literal()})")
        except pymysql.MySQLError:
            continue
    cursor.execute(f"SELECT id, {shown_sql('c', kind_of(definition))} FROM t WHERE c IS NOT NULL")
    return [(int(key), str(text)) for key, text in cursor.fetchall()]


def modified(cursor: Any, key: int, before: str, after: str, mode: str) -> tuple[Any, ...] | None:
    """What TiDB makes of one row of ``t``; None if it refuses."""
    cursor.execute("DROP TABLE IF EXISTS u")
    cursor.execute(f"CREATE TABLE u (id INT PRIMARY KEY, c {before})")
    cursor.execute("SET sql_mode = ''")
    cursor.execute(f"INSERT INTO u SELECT * FROM t WHERE id = {key}")
    cursor.execute("SET sql_mode = %s", (mode,))
    try:
        cursor.execute(f"ALTER TABLE u MODIFY c {after}")
    except pymysql.MySQLError:
        return None
    cursor.execute(f"SELECT {shown_sql('c', kind_of(after))} FROM u")
    return cursor.fetchone()


def gold_sql(before: MysqlType, after: MysqlType, text: str) -> str:
    """The text of what gold makes of a stored value, NULL where it blocks the table (`gold.column_conversion`) and of a
    date that Spark has not."""
    kinds = ((kind, "name" if kind.elements else None) for kind in (before, after))
    old, new = (typed_column(ColumnDefinition(name="c", type=kind, by=by)) for kind, by in kinds)
    had = value_text_sql(old, old.sql(literal(text), "UTC"), "UTC")
    converted = converted_sql(before, after, "v")
    value = new.sql(converted, "UTC")
    approximate = after.family in (Family.FLOAT, Family.DOUBLE)
    kept = f"abs({value}) < double('Infinity')" if approximate else f"{value} IS NOT NULL"
    certain = f"coalesce({kept} AND {is_value_sql(before, after, converted)}, false)"
    shown = f"CAST({value_text_sql(new, value, 'UTC')} AS STRING)"
    return f"(SELECT CASE WHEN {certain} THEN {shown} END FROM (SELECT CAST({had} AS STRING) AS v))"


def random_conversions(cursor: Any, seed: int) -> Iterator[Modified]:
    choose, some = Random(seed), RandomDefaults(seed)
    for _ in range(PAIRS):
        before, after = choose.choice(MORE_TYPES), choose.choice(MORE_TYPES)
        had, has = kind_of(before), kind_of(after)
        if has_session_time(had, has) or not is_followed(had, has):
            continue
        for key, text in stored(cursor, before, some):
            found = modified(cursor, key, before, after, choose.choice(MODES))
            if found is not None:
                yield Modified(before, after, text, found[0], gold_sql(had, has, text), has)


def is_followed(before: MysqlType, after: MysqlType) -> bool:
    try:
        converted_sql(before, after, "v")
    except ApplyError:
        return False
    return True


def test_random_values_become_what_tidb_makes_of_them(spark: SparkSession, cursor: Any) -> None:
    seed = int(time.time())
    cases = list(random_conversions(cursor, seed))
    found: list[str | None] = []
    for start in range(0, len(cases), 100):
        found += spark.sql(f"SELECT {', '.join(case.sql for case in cases[start : start + 100])}").collect()[0]
    pairs = list(zip(cases, found, strict=True))
    wrong = [(case, ours) for case, ours in pairs if ours is not None and not equal(case.type, ours, case.converted)]
    assert wrong == [], f"seed {seed}"
    assert sum(ours is not None for ours in found) > len(cases) / 2
