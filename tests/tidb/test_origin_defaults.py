"""The origin default that a column has after a history of ADD COLUMNs and MODIFYs (`unwritten_rows`): TiDB's own."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pymysql
import pytest

sys.path.append(str(Path(__file__).parents[1] / "ddl"))

from altered import alter, table
from column_histories import ColumnHistories
from test_defaults import PROGRAM
from tidb_server import TiDB

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import Family
from ticdc_lakehouse.schema.definition import ColumnDefinition
from ticdc_lakehouse.schema.unwritten_rows import is_known

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="no tidb-server: `make verify-test` builds it, and needs Go"),
    pytest.mark.timeout(1800),
]
HISTORIES, STEPS = 30, 12
EXACT = (Family.INTEGER, Family.TEXT, Family.BINARY, Family.ENUM, Family.SET, Family.DATE)
"""Types whose origin defaults TiDB writes as gold does. TIMESTAMPs are in UTC there, numbers and times have other
digits."""


@pytest.fixture(scope="module")
def cursor(database: TiDB) -> Any:
    database.execute("CREATE DATABASE d")
    connection = database.connect()
    connection.select_db("d")
    return connection.cursor()


def described(cursor: Any) -> Mapping[str, Any]:
    """The table as `ColumnHistories.step` takes it."""
    cursor.execute(
        "SELECT column_name, column_type, data_type FROM information_schema.columns"
        " WHERE table_schema = 'd' AND table_name = 't' ORDER BY ordinal_position"
    )
    return {"columns": [dict(zip(("name", "type", "data_type"), row, strict=True)) for row in cursor.fetchall()]}


def origin_defaults(cursor: Any) -> dict[str, str | bytes | None]:
    """TiDB's, by the column's name."""
    cursor.execute("SELECT job_meta FROM mysql.tidb_ddl_history ORDER BY job_id DESC LIMIT 1")
    columns = orjson.loads(cursor.fetchone()[0])["binlog"]["TableInfo"]["cols"]
    return {column["name"]["O"]: column["origin_default"] for column in columns if column["state"] == 5}


def equal(ours: ColumnDefinition, theirs: str | None) -> bool:
    known = ours.origin_default
    if ours.may_be_rewritten and (known is None or theirs is None):
        return True
    if known is None or theirs is None:
        return known is theirs
    if not is_known(known) or ours.type.family not in EXACT:
        return True
    return known == (theirs.encode().hex() if ours.type.family is Family.BINARY else theirs)


def different(cursor: Any, seed: int, mode: str) -> Iterator[str]:
    """Yields the origin defaults that differ from TiDB's, each with its history."""
    histories, history = ColumnHistories(Random(seed)), []
    cursor.execute("SET sql_mode = ''")
    cursor.execute("DROP TABLE IF EXISTS t")
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    cursor.execute("SET sql_mode = %s", (mode,))
    known = table("id INT PRIMARY KEY")
    for _ in range(STEPS):
        step = histories.step(described(cursor))
        try:
            cursor.execute(f"ALTER TABLE t {step}")
        except pymysql.MySQLError:
            continue
        history.append(step)
        try:
            known = alter(known, step).table
        except (ApplyError, AssertionError):  # ALTER COLUMN SET DEFAULT is no change; a DEFAULT that is not certain
            if "ALTER COLUMN" in step or "ADD INDEX" in step or "ADD UNIQUE" in step:
                continue
            return
        theirs = origin_defaults(cursor)
        yield from (
            f"{mode!r} {'; '.join(history)}: {c.name} {c.origin_default!r}, TiDB {theirs[c.name]!r}"
            for c in known.columns
            if not equal(c, theirs[c.name])
        )


@pytest.mark.parametrize("mode", ["", "STRICT_TRANS_TABLES"])
def test_origin_defaults_are_those_of_tidb(cursor: Any, mode: str) -> None:
    seed = int(time.time())
    found = [text for number in range(HISTORIES) for text in different(cursor, seed + number, mode)]
    assert found == [], f"seed {seed}"
