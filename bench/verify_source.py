"""A table compared with TiDB, as ``verify-source`` does it, against a bare parallel read of its rows by Spark's JDBC
reader, and what each side's checksums take alone.

It writes the table into a TiDB that ``--dsn`` names: one of its own, as ``make verify-test`` builds it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pymysql.connections import Connection

from bench.report import Target, table
from bench.timing import Times, interleaved, wall
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.live_table import create_live_table
from ticdc_lakehouse.ops.verify.chunk import Chunk, key_ranges
from ticdc_lakehouse.ops.verify.compared_table import compared_table
from ticdc_lakehouse.ops.verify.comparison import Comparison, compare
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.session_settings import generated_code
from ticdc_lakehouse.tidb.columns import source_columns
from ticdc_lakehouse.tidb.session import Address, Snapshot, SnapshotReader, address_of
from ticdc_local.java import find_java
from ticdc_local.resolver import resolve

_DATABASE, _NAME, _DATA = "ticdc_lake_bench", "orders", "compared_orders"
_CREATE = f"""CREATE TABLE {_DATABASE}.{_NAME} (id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(12,2),
    rate DOUBLE, placed DATETIME, note VARCHAR(40))"""
_VALUES = """id, id % 1000, CAST(id % 999 AS DECIMAL(12,2)), id / 8, CAST('2026-01-01 00:00:00' AS {moment}),
    concat('note ', id)"""
_AT_ONCE = 100_000
"""Rows of one INSERT into TiDB."""
_CLIENTS = 4
_PARTS = 16
"""Of the table, which the JDBC reader reads as many at a time as there are cores."""
_DRIVER = "com.mysql:mysql-connector-j:9.1.0"
_ONE_BY_ONE = -(2**31)
"""The driver's fetch size with which it does not read the whole answer into memory."""
_BOUND = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Seconds of the comparison, of the bare read, and of the checksums of each side alone, in turn."""

    rows: int
    times: dict[str, Times]

    @property
    def ratio(self) -> float:
        """The comparison's time as a multiple of the bare read's, without the first round of both."""
        compared, read = (Times(self.times[name].seconds[1:]) for name in ("compare", "read"))
        return compared.middle / read.middle


def main(lake: Lake, rows: int, dsn: str) -> list[Target]:
    """Compare a table of so many rows with TiDB, print, and give the target."""
    result = measure(lake, rows, address_of(dsn, lambda _scope, _key: ""))
    lines = [(name, ", ".join(f"{each:.1f}" for each in times.seconds)) for name, times in result.times.items()]
    print(table(f"{result.rows:,} rows in the lake and in TiDB", ("", "seconds"), lines), flush=True)
    what = f"{result.rows:,} rows compared with TiDB, of the time of a bare parallel read over JDBC"
    return [Target(what=what, measured=result.ratio, bound=_BOUND, at_most=True)]


def measure(lake: Lake, rows: int, address: Address, repetitions: int = 3) -> Result:
    """Fill both sides, compare, and read."""
    tso = _fill_tidb(address, rows)
    live = _fill_lake(lake, rows)
    (definition,) = tables_from_sql(_CREATE)
    source = SnapshotReader(connect=Snapshot(address=address, tso=tso).connect, threads=_CLIENTS)
    columns = source_columns(source, TableName(_DATABASE, _NAME))
    assert columns is not None
    both, _, _ = compared_table(definition, live, columns)
    found: list[Comparison] = []
    bounds = [(str(rows * part // _PARTS),) for part in range(1, _PARTS)]
    queries = [both.source_checksum_sql(chunk) for chunk in key_ranges(both.key, bounds, Chunk())]
    with _driver(lake), generated_code(lake.spark, rows):
        contestants = {
            "compare": lambda: found.append(compare(lake.spark, source, both)),
            "read": lambda: _read(lake, address, rows),
            "TiDB's checksums alone": lambda: source.query_all(queries),
            "the lake's alone": lambda: lake.spark.sql(both.lake_checksums_sql("1", Chunk())).collect(),
        }
        times = interleaved(contestants, repetitions, {"seconds": wall})["seconds"]
    source.close()
    assert all(each.rows == rows and not (each.different or each.unlisted) for each in found)
    return Result(rows=rows, times=times)


def _fill_tidb(address: Address, rows: int) -> int:
    """Make the table with its rows; gives a TSO after them."""
    connection = address.connect()
    _run(connection, f"DROP DATABASE IF EXISTS {_DATABASE}")
    _run(connection, f"CREATE DATABASE {_DATABASE}")
    _run(connection, _CREATE)
    digits = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))
    places = [f"(SELECT d * {10**place} AS d FROM ({digits}) t{place}) p{place}" for place in range(5)]
    within = " + ".join(f"p{place}.d" for place in range(5))
    values = _VALUES.format(moment="DATETIME")
    for first in range(0, rows, _AT_ONCE):
        ids = f"SELECT {first} + {within} AS id FROM {', '.join(places)}"
        _run(connection, f"INSERT INTO {_DATABASE}.{_NAME} SELECT {values} FROM ({ids}) ids WHERE id < {rows}")
        _run(connection, "COMMIT")
    _run(connection, f"ANALYZE TABLE {_DATABASE}.{_NAME}")
    _run(connection, "BEGIN")
    return int(_run(connection, "SELECT @@tidb_current_ts"))


def _run(connection: Connection, statement: str) -> str:
    """The first value of a statement's answer."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
    return str(row[0]) if row else ""


def _fill_lake(lake: Lake, rows: int) -> str:
    """Make the live table with the same rows; gives its name."""
    (definition,) = tables_from_sql(_CREATE)
    config = GoldConfig(feed="compared", time_zone="UTC")
    create_live_table(lake, _DATA, definition, stable_id=_DATA, config=config)
    live = lake.table(Layer.LIVE, _DATA)
    values = _VALUES.format(moment="TIMESTAMP_NTZ")
    lake.spark.sql(f"INSERT INTO {live} SELECT {values}, 1L, NULL, concat('[\"', id, '\"]') FROM range({rows})")
    return live


@contextmanager
def _driver(lake: Lake) -> Iterator[None]:
    """The session has MySQL's JDBC driver meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        resolve([_DRIVER], Path(folder), find_java())
        (jar,) = Path(folder).glob("jars/*.jar")
        lake.spark.sql(f"ADD JAR '{jar}'")
        yield


def _read(lake: Lake, address: Address, rows: int) -> None:
    """Read all rows, as many parts at a time as there are cores, and do nothing with them."""
    options = {
        "url": f"jdbc:mysql://{address.host}:{address.port}/{_DATABASE}",
        "driver": "com.mysql.cj.jdbc.Driver",
        "user": address.user,
        "dbtable": _NAME,
        "partitionColumn": "id",
        "lowerBound": 0,
        "upperBound": rows,
        "numPartitions": _PARTS,
        "fetchsize": _ONE_BY_ONE,
    }
    lake.spark.read.format("jdbc").options(**options).load().write.format("noop").mode("overwrite").save()
