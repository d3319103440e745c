"""The same changes over more and more tables: what scanning, deduplicating and typing them costs.

One window of silver is read for its row groups, deduplicated by table and key, staged (`gold.staging`) and typed: all
of gold's work but the MERGEs. What a table costs beside its MERGE is measured by `bench.gold`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.cpu_time import cpu_seconds
from bench.generated_messages import Made, write
from bench.recorded import recorded
from bench.report import Target, table
from bench.timing import Times, interleaved, wall
from bench.wide import definitions
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.staging import write_stage
from ticdc_lakehouse.gold.step_changes import StepChanges
from ticdc_lakehouse.gold.window_reader import read_window
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.planning.steps import MergeRows, Stage
from ticdc_lakehouse.planning.window import Window
from ticdc_lakehouse.silver import decode_stream

TABLES = (1, 10, 100, 1000)
REPETITIONS = 3
BOUND = 1.3
"""Times what one table costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesResult:
    """Wall and CPU time of all cases, by number of tables."""

    changes: int
    wall: dict[int, Times]
    cpu: dict[int, Times]


def measure(lake: Lake, changes: int, cases: tuple[int, ...] = TABLES, repetitions: int = REPETITIONS) -> TablesResult:
    """Lay down a window for each case, then run all in turn; the first round warms up."""
    windows = [_landed(lake, changes, tables) for tables in cases]
    runs: dict[str, Callable[[], object]] = {
        str(made.tables): partial(_reduce_and_type, lake, made) for made in windows
    }
    for run in runs.values():
        run()
    timed = interleaved(runs, repetitions, {"wall": wall, "cpu": partial(cpu_seconds, lake.spark)})
    by_tables = {clock: {int(name): times for name, times in found.items()} for clock, found in timed.items()}
    return TablesResult(changes=changes, wall=by_tables["wall"], cpu=by_tables["cpu"])


def _landed(lake: Lake, changes: int, tables: int) -> Made:
    made = Made(feed=f"tables_{tables}", protocol="canal_json", rows=changes, tables=tables)
    write(lake, made)
    options = recorded("canal_json").options
    decode_stream.decode(lake, decode_stream.Decoding(feed=made.feed, protocol="canal_json", options=options))
    return made


def _reduce_and_type(lake: Lake, made: Made) -> None:
    path = Path(lake.checkpoint(made.feed)) / "stage"
    window = read_window(lake, made.feed, Published(), made.tso)
    write_stage(lake, made.feed, _rows(made, window, str(path)), str(path))
    staged = lake.spark.read.parquet(str(path)).selectExpr("0 AS segment", "_ticdc_key", "commit_ts", "image")
    staged.createOrReplaceTempView("_ticdc_stage_0")
    one = MergeRows(
        table=definitions(1)[0], after=0, through=made.tso, groups=(), stage=Stage(path=str(path), segment=0)
    )
    changes = StepChanges(lake=lake, feed=made.feed, rows=one, time_zone="UTC")
    lake.spark.sql(changes.latest_typed_sql()).write.format("noop").mode("overwrite").save()
    shutil.rmtree(path)


def _rows(made: Made, window: Window, path: str) -> list[MergeRows]:
    if window.row_changes != made.rows or len(window.rows) != made.tables:
        raise RuntimeError(f"expected {made.rows} changes of {made.tables} tables, found {window.row_changes}")
    return [
        MergeRows(
            table=definition,
            after=0,
            through=made.tso,
            groups=window.rows[definition.name],
            stage=Stage(path=path, segment=segment),
        )
        for segment, definition in enumerate(definitions(made.tables))
    ]


def report(result: TablesResult) -> str:
    """Seconds by number of tables."""
    first = result.cpu[min(result.cpu)].middle
    lines = [
        (f"{tables}", f"{result.wall[tables].middle:.1f}", f"{cpu.middle:.1f}", f"{cpu.middle / first:.2f}")
        for tables, cpu in result.cpu.items()
    ]
    title = f"{result.changes:,} changes scanned, deduplicated and typed, by number of tables"
    return table(title, ("tables", "seconds, median", "CPU seconds, median", "of one table's CPU"), lines)


def main(lake: Lake, changes: int) -> list[Target]:
    """Measure and print."""
    result = measure(lake, changes)
    print(report(result), flush=True)
    first, *others = sorted(result.cpu)
    return [
        Target(
            what=f"{tables} tables: CPU of scanning, deduplicating and typing the same changes",
            measured=result.cpu[tables].middle / result.cpu[first].middle,
            bound=BOUND,
            at_most=True,
            unit=" times",
        )
        for tables in others
    ]
