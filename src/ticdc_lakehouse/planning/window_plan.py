"""What a window does to each table, decided before anything is written.

The window's DDLs are followed in commit order through all lanes (`lanes`): what a DDL names takes its rows up to the
DDL's commit_ts first, then the DDL, then what comes after. Tables without DDL have one step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, TableState
from ticdc_lakehouse.planning.stop_reason import StopReason
from ticdc_lakehouse.planning.table_plan import ExchangeRows, Step, TablePlanBuilder
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.planning.window_planner import WindowPlanner
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.rename import possible_order
from ticdc_lakehouse.schema.statement import RenameTables


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """What to do with one table, and how it stands then."""

    name: TableName
    view: str
    """The name of its views."""
    state: TableState | None
    """As published, None if the table is new."""
    start: Definition | None
    """The definition before the steps; None if there is nothing to make a table of."""
    definition: Definition | None
    """The definition after them."""
    steps: tuple[Step, ...]
    through: int
    ddls: tuple[str, ...] = ()
    """The DDLs at exactly ``through`` that are in."""
    stop: StopReason | None = None
    """Why the table is blocked at ``through``, None if it is not."""
    found: tuple[Definition, ...] = ()
    """Definitions that are new."""
    dropped_at: int | None = None
    """commit_ts of the DDL that dropped it; None of a table that is shown (on_drop: keep shows a dropped one)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    """What to do with all tables."""

    tables: tuple[TablePlan, ...]
    """One for each table that exists at the window's end."""
    recoverable: tuple[TablePlan, ...]
    """One for each that TiDB dropped, in this window or before: taken up to there, since it may come back."""

    def groups(self) -> list[list[TablePlan]]:
        """The plans, those together whose tables exchange rows."""
        alone = [[plan] for plan in (*self.tables, *self.recoverable) if not _exchanging(plan)]
        together: list[list[TablePlan]] = []
        for plan in (*self.tables, *self.recoverable):
            if others := _exchanging(plan):
                joined = [group for group in together if any(others & _exchanging(member) for member in group)]
                together = [group for group in together if group not in joined]
                together.append([*(member for group in joined for member in group), plan])
        return [*together, *alone]


def _exchanging(plan: TablePlan) -> set[str]:
    steps = [step for step in plan.steps if isinstance(step, ExchangeRows)]
    return {name for step in steps for name in (step.partitioned, step.plain)}


def plan_tables(now: PlanningInput) -> WindowPlan:
    """What the window does to each table."""
    planner = WindowPlanner(now)
    for commit_ts, ddls in groupby(now.window.ddls, key=attrgetter("commit_ts")):
        planner.infer_tables(commit_ts)
        for ddl in _in_execution_order([*ddls], (builder.name for builder in planner.builders)):
            for statement in ddl.statements:
                planner.apply_ddl(ddl, statement)
    planner.infer_tables(now.tso)
    planner.finish()
    return WindowPlan(
        tables=tuple(sorted(map(_plan, planner.builders), key=lambda plan: plan.name)),
        recoverable=tuple(map(_recoverable, planner.recoverable)),
    )


def _in_execution_order(ddls: list[DdlEvent], names: Iterable[TableName]) -> list[DdlEvent]:
    """DDLs of one commit_ts in TiDB's order, given the names that tables have before: only renames need another than
    that of their arrival, and only if they came through several topics."""
    renames = [s for ddl in ddls for s in ddl.statements if isinstance(s, RenameTables)]
    if len({ddl.topic for ddl in ddls}) < 2 or len(renames) < len(ddls):
        return ddls
    return [ddls[number] for number in possible_order(renames, names)]


def _recoverable(builder: TablePlanBuilder) -> TablePlan:
    """Of a table that was blocked its rows at the end are not known."""
    plan = replace(_plan(builder), dropped_at=builder.dropped_at)
    return plan if plan.stop is None else replace(plan, start=None, steps=(), found=())


def _plan(builder: TablePlanBuilder) -> TablePlan:
    through = builder.at
    return TablePlan(
        name=builder.name,
        view="" if builder.definition is None else builder.definition.name,
        state=builder.state,
        start=builder.start,
        definition=builder.definition,
        steps=tuple(builder.steps),
        through=through,
        ddls=builder.seen[1] if builder.seen[0] == through else (),
        stop=builder.stop,
        found=tuple(builder.found),
    )
