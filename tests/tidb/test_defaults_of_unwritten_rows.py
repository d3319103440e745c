"""Where a MODIFY in strict mode makes TiDB show another value of a row that does not store the column, gold knows that
it may (`unwritten_rows`)."""

from __future__ import annotations

import sys
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pymysql
import pytest

sys.path.append(str(Path(__file__).parents[1] / "ddl"))

from altered import alter, table
from test_defaults import PROGRAM
from tidb_server import TiDB

from ticdc_lakehouse.schema.effect import ColumnConverted

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="no tidb-server: `make verify-test` builds it, and needs Go"),
    pytest.mark.timeout(1800),
]
TEXTS = ("CHAR(20)", "CHAR(4)", "VARCHAR(20)", "VARCHAR(4)", "TEXT", "TINYTEXT")
NUMBERS = ("BIGINT", "INT", "TINYINT", "INT UNSIGNED", "TINYINT UNSIGNED", "DECIMAL(10,2)")
DEFAULTS = {TEXTS: ("'x'", "'x '"), NUMBERS: ("5", "6")}
CASES = [
    (before, first, after, default)
    for types, values in DEFAULTS.items()
    for before, after in product(types, types)
    for first in (None, *values)
    for default in (None, values[0])
    if before != after and not (first and before.endswith("TEXT")) and not (default and after.endswith("TEXT"))
]


@pytest.fixture(scope="module")
def cursor(database: TiDB) -> Any:
    database.execute("CREATE DATABASE d")
    connection = database.connect()
    connection.select_db("d")
    cursor = connection.cursor()
    cursor.execute("SET sql_mode = 'STRICT_TRANS_TABLES'")
    return cursor


def shown(cursor: Any) -> str | None:
    """The row's value as the table has it: an index may have another."""
    cursor.execute("SELECT concat(c, '|') FROM t IGNORE INDEX (i) WHERE id + 0 = 1")
    ((text,),) = cursor.fetchall()
    return None if text is None else str(text)[:-1]


def is_converted(had: str | None, has: str | None, kind: str) -> bool:
    """True if a value became what a MODIFY to this type makes of it."""
    if had is None or has is None:
        return had is has
    if kind in NUMBERS:
        return Decimal(had) == Decimal(has)
    return has == (had.rstrip(" ") if kind.startswith("CHAR") else had)


def with_default(default: str | None) -> str:
    return "" if default is None else f" DEFAULT {default}"


@pytest.mark.parametrize("indexed", [False, True])
def test_no_row_that_is_not_written_again_shows_another_value_unnoticed(cursor: Any, indexed: bool) -> None:
    missed, noticed, sure = [], 0, 0
    for before, first, after, default in CASES:
        added, modified = f"ADD COLUMN c {before}{with_default(first)}", f"MODIFY c {after}{with_default(default)}"
        cursor.execute("DROP TABLE IF EXISTS t")
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, i INT, KEY i (i))")
        cursor.execute("INSERT INTO t VALUES (1, 1)")
        try:
            cursor.execute(f"ALTER TABLE t {added}")
            if indexed:
                cursor.execute("ALTER TABLE t DROP INDEX i")
                cursor.execute("ALTER TABLE t ADD INDEX i (c)")
            had = shown(cursor)
            cursor.execute(f"ALTER TABLE t {modified}")
        except pymysql.MySQLError:
            continue
        changed = alter(alter(table("id INT PRIMARY KEY"), added).table, modified)
        is_noticed = any(isinstance(e, ColumnConverted) and e.may_show_default for e in changed.effects)
        if not is_converted(had, shown(cursor), after) and not is_noticed:
            missed.append(f"{added}; {modified}: {had!r} became {shown(cursor)!r}")
        noticed, sure = noticed + is_noticed, sure + (not is_noticed)
    assert missed == []
    assert noticed > 20
    assert sure > 40
