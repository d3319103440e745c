"""A window of gold: windows.apply, whole, against bare Delta MERGEs of the same rows already typed and reduced; and how
the time grows with the tables of a window, with its changes and with the size of what they change.

The bare MERGEs are side by side, as many at a time as gold has them. The first window of each case fills its tables
(and warms up); those after it are timed. Where there are bare MERGEs, they go into tables of the same kind and content,
after each window.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from bench.generated_messages import Made, write
from bench.recorded import recorded
from bench.report import Target, table
from bench.timing import Times
from bench.wide import COLUMNS, definitions
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold import windows
from ticdc_lakehouse.gold.live_table import create_live_table
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, DELETED, KEY
from ticdc_lakehouse.gold.step_changes import StepChanges
from ticdc_lakehouse.planning.naming import object_name
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.silver import decode_stream

CHANGES = 100_000
WINDOWS = 2
TABLES = (1, 10, 100)
AT_ONCE = 4
"""Tables whose bare MERGEs run at the same time: as many as gold merges (`gold.windows`)."""
TIMES = 10
"""How many times as many rows, or changes, growth is measured with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Windows of ``changes``, evenly over ``tables``, of every so many rows."""

    feed: str
    changes: int
    tables: int = 1
    spread: int = 1
    """The tables' rows as a multiple of the changes."""
    windows: int = WINDOWS
    columns: int = COLUMNS

    @property
    def config(self) -> GoldConfig:
        """How gold applies it."""
        return GoldConfig(feed=self.feed, time_zone="UTC", tables=definitions(self.tables, self.columns))

    def batches(self) -> Iterator[Made]:
        """What fills the tables, then the windows."""
        window = Made(feed=self.feed, protocol="canal_json", rows=self.changes, tables=self.tables, spread=self.spread)
        whole = replace(window, rows=self.changes * self.spread, spread=1)
        yield whole
        for batch in range(1, self.windows + 1):
            yield replace(window, batch=batch, earlier=whole.messages - window.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldResult:
    """Seconds for a case's windows."""

    case: Case
    gold: Times
    bare: Times | None = None

    @property
    def ratio(self) -> float:
        """Gold as a multiple of the bare MERGEs: of the medians."""
        return float("nan") if self.bare is None else self.gold.middle / self.bare.middle


def measure(lake: Lake, case: Case, *, bare: bool) -> GoldResult:
    """Fill the tables by a first window, then time the others."""
    seconds: dict[str, list[float]] = {"gold": [], "bare": []}
    before = 0
    for made in case.batches():
        _land(lake, made)
        if bare:
            prepare_bare(lake, case.config, before, made.tso, create=before == 0)
        gold_seconds, bare_seconds = _apply(lake, case, made), merge_bare(lake, case) if bare else 0.0
        if before > 0:
            seconds["gold"].append(gold_seconds)
            seconds["bare"].append(bare_seconds)
            print(f"  {case.feed}: gold {gold_seconds:.1f} s, bare {bare_seconds:.1f} s", flush=True)
        before = made.tso
    if bare:
        _check_equal(lake, case.config)
    times = {name: Times(tuple(found)) for name, found in seconds.items()}
    return GoldResult(case=case, gold=times["gold"], bare=times["bare"] if bare else None)


def _land(lake: Lake, made: Made) -> None:
    write(lake, made)
    decode_stream.decode(
        lake, decode_stream.Decoding(feed=made.feed, protocol="canal_json", options=recorded("canal_json").options)
    )


def _apply(lake: Lake, case: Case, made: Made) -> float:
    start = time.perf_counter()
    done = windows.apply(lake, case.config)
    seconds = time.perf_counter() - start
    if (done.tso, done.merged, done.blocked) != (made.tso, case.tables, {}):
        raise RuntimeError(f"expected {case.tables} tables merged up to {made.tso}, found {done}")
    return seconds


def prepare_bare(lake: Lake, config: GoldConfig, after: int, through: int, *, create: bool) -> None:
    """Lay down what the bare MERGEs read: a window's latest change of each key, typed."""
    side_by_side(partial(_prepare_one, lake, config, after, through, create=create), len(config.tables))


def side_by_side(work: Callable[[int], object], tables: int) -> None:
    """Do this with the numbers of so many tables, `AT_ONCE` at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(work, range(tables)))


def _prepare_one(lake: Lake, config: GoldConfig, after: int, through: int, number: int, *, create: bool) -> None:
    definition, bare = config.tables[number], _bare(config.feed, number)
    if create:
        create_live_table(lake, bare, definition, stable_id=bare, config=config)
    name = f"{bare}_source"
    rows = MergeRows(table=definition, after=after, through=through, groups=())
    changes = StepChanges(lake=lake, feed=config.feed, rows=rows, time_zone=config.time_zone)
    lake.spark.sql(
        f"CREATE OR REPLACE TABLE {lake.table(Layer.GOLD, name)} USING delta "
        f"{lake.location(Layer.GOLD, name)} AS {changes.latest_typed_sql()}"
    )


def _bare(feed: str, number: int) -> str:
    return f"bare_{feed}_{number}"


def merge_bare(lake: Lake, case: Case) -> float:
    """Seconds of the bare MERGEs of what ``prepare_bare`` laid down."""
    start = time.perf_counter()
    side_by_side(partial(_merge_one, lake, case.feed), case.tables)
    return time.perf_counter() - start


def _merge_one(lake: Lake, feed: str, number: int) -> None:
    name = _bare(feed, number)
    target, source = lake.table(Layer.LIVE, name), lake.table(Layer.GOLD, f"{name}_source")
    stored = lake.spark.table(target).columns
    assignments = ", ".join(f"{column} = s.{column}" for column in stored)
    lake.spark.sql(f"""
        MERGE INTO {target} t USING {source} s ON t.{KEY} = s.{KEY}
        WHEN MATCHED AND s.{DELETED} THEN DELETE
        WHEN MATCHED THEN UPDATE SET {assignments}
        WHEN NOT MATCHED AND NOT s.{DELETED} THEN
            INSERT ({", ".join(stored)}) VALUES ({", ".join(f"s.{column}" for column in stored)})""")


def _check_equal(lake: Lake, config: GoldConfig) -> None:
    """Both have done the same work."""
    for number, definition in enumerate(config.tables):
        names = (object_name(config.feed, definition.database, definition.table), _bare(config.feed, number))
        ours, bare = (
            lake.spark.table(lake.table(Layer.LIVE, name)).selectExpr("count(*)", f"sum({COMMIT_TS} % 1000003)").first()
            for name in names
        )
        if ours != bare:
            raise RuntimeError(f"{names[0]} has {ours} rows and checksum, the bare table {bare}")


def growth(lake: Lake, changes: int) -> tuple[GoldResult, GoldResult, GoldResult]:
    """A window of ``changes``; the same in a table of so many times its rows; so many times the changes of its rows."""
    usual = Case(feed="growth", changes=changes, spread=TIMES)
    larger = replace(usual, feed="growth_rows", spread=TIMES * TIMES)
    more = replace(usual, feed="growth_changes", changes=changes * TIMES, spread=1)
    first, second, third = (measure(lake, case, bare=False) for case in (usual, larger, more))
    return first, second, third


def report(results: list[GoldResult]) -> str:
    """Seconds and rates."""
    heads = ("tables of changed keys", "rows a table", "gold, seconds, median (best)", "bare MERGE", "of bare MERGE")
    return table("gold: one window applied and published", (*heads, "changes/s"), map(_line, results))


def _line(result: GoldResult) -> tuple[str, ...]:
    case, bare = result.case, result.bare
    each = case.changes // case.tables
    return (
        f"{case.tables} of {each:,}",
        f"{each * case.spread:,}",
        f"{result.gold.middle:.1f} ({result.gold.best:.1f})",
        "" if bare is None else f"{bare.middle:.1f} ({bare.best:.1f})",
        "" if bare is None else f"{result.ratio:.2f}",
        f"{case.changes / result.gold.middle:,.0f}",
    )


def main(lake: Lake, changes: int = CHANGES) -> list[Target]:
    """Measure and print."""
    cases = (
        Case(feed=f"gold{tables}", changes=changes, tables=tables, windows=1 if tables == max(TABLES) else WINDOWS)
        for tables in TABLES
    )
    compared = [measure(lake, case, bare=True) for case in cases]
    grown = growth(lake, max(100, changes // TIMES))
    print(report([*compared, *grown]), flush=True)
    return targets(compared, *grown)


def targets(compared: list[GoldResult], usual: GoldResult, larger: GoldResult, more: GoldResult) -> list[Target]:
    """The bounds of the cases with bare MERGEs, by number of tables, and of `growth`."""
    further = (_marginal(few, many) for few, many in pairwise(compared))
    return [*map(_rate, compared), *further, *_growth(usual, larger, more)]


def _rate(result: GoldResult) -> Target:
    what = f"gold, {result.case.tables} tables: rate of bare MERGEs"
    return Target(what=what, measured=1 / result.ratio, bound=0.7, at_most=False)


def _marginal(few: GoldResult, many: GoldResult) -> Target:
    """What each further table of the same changes costs beside its bare MERGE."""
    assert few.bare is not None
    assert many.bare is not None
    seconds = (many.gold.middle - few.gold.middle) - (many.bare.middle - few.bare.middle)
    each = seconds / (many.case.tables - few.case.tables)
    what = f"gold, from {few.case.tables} to {many.case.tables} tables: each further one, beyond its bare MERGE"
    return Target(what=what, measured=each, bound=0.3, at_most=True, unit=" s")


def _growth(usual: GoldResult, larger: GoldResult, more: GoldResult) -> list[Target]:
    bounds = ((larger, f"{TIMES} times the table's rows", 1.3), (more, f"{TIMES} times the changes", 10.5))
    return [
        Target(
            what=f"gold, {what}: seconds of a window",
            measured=result.gold.middle / usual.gold.middle,
            bound=bound,
            at_most=True,
            unit=" times",
        )
        for result, what, bound in bounds
    ]
