"""Planning alone, without Spark: time and memory of one window by its tables and DDLs, which must not multiply."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import dataclass, replace

from bench.report import Target
from bench.report import table as report_table
from ticdc_lakehouse.planning.barriers import barriers
from ticdc_lakehouse.planning.naming import Naming, TakenNames
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, TableState
from ticdc_lakehouse.planning.window import DdlEvent, RowGroup, Window, statements_of
from ticdc_lakehouse.planning.window_plan import plan_tables
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql

MIB = 1 << 20
_BEFORE = 1_000
_COLUMNS = ", ".join(f"c{number} VARCHAR(20)" for number in range(9))
_CREATE = tables_from_sql(f"CREATE TABLE d.t (id BIGINT PRIMARY KEY, {_COLUMNS})")[0]
_WIDER = tables_from_sql(f"CREATE TABLE d.t (id BIGINT PRIMARY KEY, {_COLUMNS}, x INT)")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A window in which each table has as many ALTERs, and row changes before, between and after them."""

    tables: int
    ddls: int
    """Of each table, no two at one commit_ts."""
    seconds: float | None = None
    mib: float | None = None
    """Bounds, where a law of cost has one."""


CASES = (
    Case(tables=10_000, ddls=0),
    Case(tables=1_000, ddls=1, seconds=10, mib=300),
    Case(tables=300, ddls=30),
    Case(tables=300, ddls=300),
)


def main() -> list[Target]:
    """Print time and memory of each case; gives the targets: the laws' bounds, and that ten times the DDLs of 300
    tables take at most twelve times as long."""
    measured = [(case, _seconds(case), _mib(case) if case.ddls <= 30 else None) for case in CASES]
    lines = [
        (
            f"{c.tables:,}",
            f"{c.ddls:,}",
            f"{seconds:.1f} s",
            "" if mib is None else f"{mib:.0f} MiB",
            f"{_cost(c, seconds):.0f} µs",
        )
        for c, seconds, mib in measured
    ]
    heads = ("tables", "DDLs of each", "planned in (CPU)", "peak of what it allocates", "a table and DDL")
    print(report_table("Planning a window", heads, lines))
    targets = []
    for case, seconds, mib in measured:
        what = f"planning {case.tables:,} tables with {case.ddls} ALTER each"
        if case.seconds is not None and case.mib is not None and mib is not None:
            targets.append(Target(what=what, measured=seconds, bound=case.seconds, at_most=True, unit=" s"))
            targets.append(Target(what=what, measured=mib, bound=case.mib, at_most=True, unit=" MiB"))
    fewer, more = measured[-2][1], measured[-1][1]
    what = "planning 300 tables: 300 ALTERs each ÷ 30 each"
    return [*targets, Target(what=what, measured=more / fewer, bound=12, at_most=True, unit=" times")]


def _cost(case: Case, seconds: float) -> float:
    return seconds / (case.tables * (1 + case.ddls)) * 1e6


def _seconds(case: Case) -> float:
    ready = _published(case)
    started = time.process_time()
    _plan(case, *ready)
    return time.process_time() - started


def _mib(case: Case) -> float:
    tracemalloc.start()
    try:
        _plan(case, *_published(case))
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


def _published(case: Case) -> tuple[Published, dict[str, Definition]]:
    """Tables as they were published before the window, and their definitions."""
    tables, known = {}, {}
    for number in range(case.tables):
        name, data = f"f_d_t{number}", f"f_d_t{number}__data"
        tables[TableName("d", f"t{number}")] = TableState(
            lake_name=name, stable_id=data, version=1, applied_tso=_BEFORE
        )
        known[data] = Definition(
            table=replace(_CREATE, table=f"t{number}"), commit_ts=1, origin=Origin.DDL, lake_name=name, stable_id=data
        )
    return Published(tso=_BEFORE, tables=tables), known


def _plan(case: Case, before: Published, known: dict[str, Definition]) -> None:
    """Read the DDLs, part the rows at them and plan."""
    ddls = tuple(_ddl(case, number) for number in range(case.tables * case.ddls))
    end = _BEFORE + 2 * len(ddls) + 2
    parted = barriers(ddls, before)
    rows = {name: _groups(name, (_BEFORE, *parted.tables.get(name, ())), end) for name in before.tables}
    plan = plan_tables(
        PlanningInput(
            config=GoldConfig(feed="f", time_zone="UTC"),
            before=before,
            definitions=known,
            window=Window(rows=rows, ddls=ddls, replays_seen=None, row_changes=0),
            quarantine_points={},
            tso=end,
            naming=Naming(feed="f", taken=TakenNames()),
        )
    )
    assert len(plan.tables) == case.tables
    assert all(each.stop is None and each.through == end for each in plan.tables)


def _ddl(case: Case, number: int) -> DdlEvent:
    """All tables in turn: each gets a column, and loses it with its next DDL."""
    turn, of_table = divmod(number, case.tables)
    action = "DROP COLUMN `x`" if turn % 2 else "ADD COLUMN `x` INT DEFAULT 7"
    query = f"ALTER TABLE `d`.`t{of_table}` {action}"
    statements = statements_of(query, "d", f"t{of_table}")
    commit_ts = _BEFORE + 2 * (number + 1)
    return DdlEvent(commit_ts=commit_ts, database="d", table=f"t{of_table}", query=query, statements=statements)


def _groups(name: TableName, starts: tuple[int, ...], end: int) -> tuple[RowGroup, ...]:
    """Row groups after each of the commit_ts, with the columns that the table has there."""
    return tuple(
        RowGroup(
            name=name,
            columns=(_WIDER if turn % 2 else _CREATE).described,
            is_upsert=True,
            handle_only=False,
            keyed=True,
            first=start + 1,
            last=last,
            rows=10,
        )
        for turn, (start, last) in enumerate(zip(starts, (*starts[1:], end), strict=True))
    )
