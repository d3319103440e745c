"""What a window does to each table, decided before anything is written: pure, no Spark.

The window's DDLs are followed in commit order through all lanes (`lanes`): what a DDL names takes its rows up to the
DDL's commit_ts first, then the DDL, then what comes after. Tables without DDL have one step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ticdc_lakehouse.ddl.statement import TableName
from ticdc_lakehouse.lake.lane import Lane, Step
from ticdc_lakehouse.lake.lanes import Lanes
from ticdc_lakehouse.lake.situation import Situation
from ticdc_lakehouse.lake.state import Definition, TableState


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
    reason: str | None = None
    """Why the table stands still at ``through``, None if it does not."""
    final: bool = False
    found: tuple[Definition, ...] = ()
    """Definitions that are new."""


def plan_tables(now: Situation) -> tuple[TablePlan, ...]:
    """One plan for each table that exists at the window's end."""
    lanes = Lanes(now)
    for ddl in now.window.ddls:
        lanes.discover(ddl.commit_ts)
        for statement in ddl.statements:
            lanes.follow(ddl, statement)
    lanes.discover(now.tso)
    lanes.finish()
    plans = (_plan(lane, now.naming.view) for lane in lanes.lanes)
    return tuple(sorted(plans, key=lambda plan: plan.name))


def _plan(lane: Lane, view: Callable[[TableName], str]) -> TablePlan:
    through = lane.at
    return TablePlan(
        name=lane.name,
        view="" if lane.definition is None else view(lane.name),
        state=lane.state,
        start=lane.start,
        definition=lane.definition,
        steps=tuple(lane.steps),
        through=through,
        ddls=lane.seen[1] if lane.seen[0] == through else (),
        reason=None if lane.stop is None else lane.stop.reason,
        final=lane.final,
        found=tuple(lane.found),
    )
