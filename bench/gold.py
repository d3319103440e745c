"""Applying a window: gold.apply, whole, against bare Delta MERGEs of the same rows already typed and reduced.

A window changes every row of its tables once. The first one fills them (and warms up); the ones after it are timed,
each first by gold and then by bare MERGEs into tables of the same kind and content.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from bench.made import Made, write
from bench.recorded import recorded
from bench.report import Target, table
from bench.timing import Times
from ticdc_lakehouse.ddl.script import tables_from_sql
from ticdc_lakehouse.definition import Table
from ticdc_lakehouse.lake import gold, silver
from ticdc_lakehouse.lake.data_table import create_data_table
from ticdc_lakehouse.lake.lane import Rows
from ticdc_lakehouse.lake.merge import COMMIT_TS, GONE, KEY, newest_sql
from ticdc_lakehouse.lake.place import Lake, Layer, object_name
from ticdc_lakehouse.lake.situation import Applying

CHANGES = 100_000
WINDOWS = 2
TABLES = (1, 10)
_DATABASE = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldResult:
    """Seconds for a window of ``changes`` rows evenly over ``tables``."""

    changes: int
    tables: int
    gold: Times
    bare: Times

    @property
    def ratio(self) -> float:
        """Gold as a multiple of the bare MERGEs: of the medians."""
        return self.gold.middle / self.bare.middle


def measure(lake: Lake, changes: int, tables: int, windows: int = WINDOWS) -> GoldResult:
    """Fill the tables by a first window, then time ``windows`` more."""
    feed = f"gold{tables}"
    applying = Applying(feed=feed, time_zone="UTC", tables=_definitions(tables))
    seconds: dict[str, list[float]] = {"gold": [], "bare": []}
    for batch in range(windows + 1):
        made = Made(feed=feed, protocol="canal_json", rows=changes, tables=tables, batch=batch)
        write(lake, made)
        silver.decode(lake, silver.Decoding(feed=feed, protocol="canal_json", options=recorded("canal_json").options))
        before = 0 if batch == 0 else replace(made, batch=batch - 1).tso
        _prepare_bare(lake, applying, before, made.tso, create=batch == 0)
        start = time.perf_counter()
        done = gold.apply(lake, applying)
        middle = time.perf_counter()
        if (done.tso, done.merged, done.stopped) != (made.tso, tables, {}):
            raise RuntimeError(f"expected {tables} tables merged up to {made.tso}, found {done}")
        for number in range(tables):
            _bare_merge(lake, feed, number)
        if batch > 0:
            seconds["gold"].append(middle - start)
            seconds["bare"].append(time.perf_counter() - middle)
            print(f"  {tables} tables: gold {seconds['gold'][-1]:.1f} s, bare {seconds['bare'][-1]:.1f} s", flush=True)
    _check_equal(lake, applying)
    return GoldResult(
        changes=changes, tables=tables, gold=Times(tuple(seconds["gold"])), bare=Times(tuple(seconds["bare"]))
    )


def _definitions(tables: int) -> tuple[Table, ...]:
    create = recorded("canal_json").create
    return tuple(
        tables_from_sql(create.replace("`sbtest1`", f"`sbtest{number}`"), _DATABASE)[0] for number in range(tables)
    )


def _prepare_bare(lake: Lake, applying: Applying, after: int, through: int, *, create: bool) -> None:
    """Lay down what the bare MERGEs read: a window's newest change of each key, typed."""
    for number, definition in enumerate(applying.tables):
        if create:
            create_data_table(lake, f"{_bare(applying.feed, number)}__data", definition)
        name = f"{_bare(applying.feed, number)}_source"
        rows = Rows(table=definition, after=after, through=through, shapes=())
        newest = newest_sql(lake, applying.feed, rows, applying.time_zone)
        lake.spark.sql(
            f"CREATE OR REPLACE TABLE {lake.table(Layer.GOLD, name)} USING delta "
            f"{lake.location(Layer.GOLD, name)} AS {newest}"
        )


def _bare(feed: str, number: int) -> str:
    return f"bare_{feed}_{number}"


def _bare_merge(lake: Lake, feed: str, number: int) -> None:
    name = _bare(feed, number)
    target, source = (lake.table(Layer.GOLD, part) for part in (f"{name}__data", f"{name}_source"))
    stored = lake.spark.table(target).columns
    assignments = ", ".join(f"{column} = s.{column}" for column in stored)
    lake.spark.sql(f"""
        MERGE INTO {target} t USING {source} s ON t.{KEY} = s.{KEY}
        WHEN MATCHED AND s.{GONE} THEN DELETE
        WHEN MATCHED THEN UPDATE SET {assignments}
        WHEN NOT MATCHED AND NOT s.{GONE} THEN
            INSERT ({", ".join(stored)}) VALUES ({", ".join(f"s.{column}" for column in stored)})""")


def _check_equal(lake: Lake, applying: Applying) -> None:
    """Both have done the same work."""
    for number, definition in enumerate(applying.tables):
        names = (object_name(applying.feed, definition.database, definition.table), _bare(applying.feed, number))
        ours, bare = (
            lake.spark.table(lake.table(Layer.GOLD, f"{name}__data"))
            .selectExpr("count(*)", f"sum({COMMIT_TS} % 1000003)")
            .first()
            for name in names
        )
        if ours != bare:
            raise RuntimeError(f"{names[0]} has {ours} rows and checksum, the bare table {bare}")


def report(results: list[GoldResult]) -> str:
    """Seconds and rates."""
    lines = [
        (
            f"{result.tables} of {result.changes // result.tables:,}",
            f"{result.gold.middle:.1f} ({result.gold.best:.1f})",
            f"{result.bare.middle:.1f} ({result.bare.best:.1f})",
            f"{result.ratio:.2f}",
            f"{result.changes / result.gold.middle:,.0f}",
        )
        for result in results
    ]
    heads = ("tables of changed keys", "gold, seconds, median (best)", "bare MERGE", "of bare MERGE", "changes/s")
    return table("gold: one window applied and published", heads, lines)


def main(lake: Lake, changes: int = CHANGES) -> list[Target]:
    """Measure and print; gold has no bound but its users' patience."""
    print(report([measure(lake, changes, tables) for tables in TABLES]), flush=True)
    return []
