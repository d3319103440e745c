"""Applies the plans of a window: tables that exchange rows take turns, and each table has an outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from ticdc_codec.errors import ApplyError
from ticdc_lakehouse.gold.alter_table import exchange
from ticdc_lakehouse.gold.run import GoldRun
from ticdc_lakehouse.gold.table_execution import TableExecution, begin, merges_rows, turn_of
from ticdc_lakehouse.planning.published_state import Definition, TableState
from ticdc_lakehouse.planning.steps import ExchangeRows
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.schema.computed_default import settled
from ticdc_lakehouse.schema.names import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutcome:
    """What became of a table in a window."""

    name: TableName
    state: TableState
    definition: Definition | None = None
    """The definition that its rows have now."""
    new_definitions: tuple[Definition, ...] = ()
    """Definitions that are new."""
    merged: bool = False
    """True if rows were merged into it."""
    dropped_at: int | None = None
    """commit_ts of the DDL that dropped it; None if it exists."""
    live: str = ""
    """The name of its live table until the window is published."""
    created: bool = False
    """True if this run made its live table."""


def apply_plans(run: GoldRun, plans: Sequence[TablePlan]) -> list[TableOutcome]:
    """Does the steps of plans; tables that exchange rows take turns, by commit_ts. A step that cannot be done leaves
    its table blocked at its last correct state."""
    tables = [begin(run, plan, plan.start, alone=len(plans) == 1) for plan in plans if plan.start is not None]
    by_id = {table.stable_id: table for table in tables}
    turns = [(turn_of(step), table, step) for table in tables for step in table.plan.steps]
    for _, table, step in sorted(turns, key=itemgetter(0)):
        if isinstance(step, ExchangeRows):
            _exchange([by_id[each] for each in (step.partitioned, step.plain) if each in by_id], step)
        else:
            table.apply(step)
    without_table = [_outcome_without_table(plan) for plan in plans if plan.start is None]
    return [_outcome(table) for table in tables] + without_table


def _exchange(tables: Sequence[TableExecution], step: ExchangeRows) -> None:
    """Exchanges the rows of both tables, or of neither: one of them may have left the feed since, or be blocked. Does
    it once, although it is a step of both."""
    if any(step in table.done for table in tables):
        return
    reason = None
    if len(tables) < 2 or any(table.incomplete is not None for table in tables):
        reason = "the other table left the feed, or is blocked"
    try:
        if reason is None:
            partitioned, plain = (table.begin_exchange() for table in tables)
            run = tables[0].run
            exchange(run.commits.at(step.commit_ts), step, partitioned, plain, run.config.time_zone)
    except ApplyError as error:
        reason = str(error)
    for table in tables:
        table.end_exchange(step, reason)


def _outcome(table: TableExecution) -> TableOutcome:
    plan = table.end()
    state = TableState(
        lake_name=plan.lake_name,
        stable_id=table.stable_id,
        version=table.version,
        applied_tso=plan.through,
        ddls=plan.ddls,
        stop=plan.stop,
    )
    planned = plan.definition
    assert planned is not None
    definition = replace(planned, table=settled(planned.table, table.learned))
    added = tuple(each.definition for each in plan.new_definitions)
    return TableOutcome(
        name=plan.name,
        state=state,
        definition=definition,
        new_definitions=added if definition == planned else (*added, definition),
        merged=any(map(merges_rows, plan.steps)),
        dropped_at=plan.dropped_at,
        live=table.name,
        created=table.created,
    )


def _outcome_without_table(plan: TablePlan) -> TableOutcome:
    """Returns the outcome of a table whose columns are unknown yet."""
    state = TableState(lake_name="", stable_id="", version=-1, applied_tso=plan.through, ddls=plan.ddls, stop=plan.stop)
    return TableOutcome(name=plan.name, state=state, dropped_at=plan.dropped_at)
