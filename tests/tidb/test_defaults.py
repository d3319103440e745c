"""What a DEFAULT gives the rows that were there before ADD COLUMN: as a real TiDB has it, or not certain."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pymysql
import pytest

sys.path.append(str(Path(__file__).parents[1] / "ddl"))

from known_defaults import DEFAULTS
from random_defaults import RandomDefaults
from tidb_server import TiDB, server

from ticdc_codec.mysql_type import Family, MysqlType
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import AddColumn, AlterTable

PROGRAM = server()
pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="no tidb-server: `make verify-test` builds it, and needs Go"),
    pytest.mark.timeout(1800),
]
MODES = ("", "STRICT_TRANS_TABLES", "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE")
A_TABLE = 40
"""Columns, after which another table is begun: an ALTER takes longer with each."""


@pytest.fixture(scope="module")
def cursor(database: TiDB) -> Iterator[Any]:
    with _session(database) as connection:
        yield connection.cursor()


def _session(running: TiDB) -> Any:
    running.execute("CREATE DATABASE d")
    connection = running.connect()
    connection.select_db("d")
    return connection


def added(definition: str) -> AddColumn:
    (statement,) = read_ddl(f"ALTER TABLE t ADD COLUMN {definition}", "d", "t")
    assert isinstance(statement, AlterTable), definition
    (action,) = statement.actions
    assert isinstance(action, AddColumn)
    return action


def shown_sql(name: str, kind: MysqlType) -> str:
    """A column as canonical text, of a FLOAT with all its digits: TiDB prints six of them, and 0e0 adds the others."""
    shown = {Family.BIT: f"CAST({name} AS UNSIGNED)", Family.BINARY: f"LOWER(HEX({name}))"}
    return f"{name} + 0e0" if kind.family in (Family.FLOAT, Family.DOUBLE) else shown.get(kind.family, name)


def of_tidb(cursor: Any, table: str, name: str, kind: MysqlType) -> str | None:
    """An old row's value as canonical text."""
    cursor.execute(f"SELECT {shown_sql(name, kind)} FROM {table}")
    ((value,),) = cursor.fetchall()
    return value if value is None or isinstance(value, str) else str(value)


def equal(kind: MysqlType, ours: str | None, theirs: str | None) -> bool:
    if ours is None or theirs is None or kind.family not in (Family.FLOAT, Family.DOUBLE):
        return ours == theirs
    return np.float32(ours) == np.float32(theirs) if kind.family is Family.FLOAT else float(ours) == float(theirs)


def compare(cursor: Any, definitions: Sequence[str]) -> tuple[list[str], int]:
    """Where a value is another than TiDB's, and how many are TiDB's."""
    cursor.connection.decoders = {}
    wrong, right = [], 0
    for number, definition in enumerate(definitions):
        table, mode = f"t{number // A_TABLE}", MODES[number % len(MODES)]
        if number % A_TABLE == 0:
            cursor.execute(f"DROP TABLE IF EXISTS {table}")
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
            cursor.execute(f"INSERT INTO {table} VALUES (1)")
        cursor.execute("SET sql_mode = %s", (mode,))
        try:
            cursor.execute(f"ALTER TABLE {table} ADD COLUMN {definition}")
        except pymysql.MySQLError:
            continue
        action = added(definition)
        if action.computed is not None:
            continue
        theirs = of_tidb(cursor, table, action.column.name, action.column.type)
        if equal(action.column.type, action.default.value, theirs):
            right += 1
        else:
            wrong.append(f"{definition} ({mode}): {action.default.value!r}, TiDB {theirs!r}")
    return wrong, right


def test_known_defaults_are_those_of_tidb(cursor: Any) -> None:
    wrong, right = compare(cursor, [f"c{number} {definition}" for number, (definition, _) in enumerate(DEFAULTS)])
    assert wrong == []
    assert right > 0.9 * len(DEFAULTS)


def test_random_defaults_are_those_of_tidb_or_not_certain(cursor: Any) -> None:
    seed = int(time.time())
    some = RandomDefaults(seed)
    wrong, right = compare(cursor, [some.column(f"c{number}") for number in range(3000)])
    assert wrong == [], f"seed {seed}"
    assert right > 300
