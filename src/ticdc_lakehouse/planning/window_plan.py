"""The plan of a window: what it does to each table, decided before anything is written.

The DDLs are planned in commit order (`ddl_planner`). The plan of an affected table merges its rows
up to the DDL's commit_ts, applies the DDL, then merges later rows. The plan of a table without DDL has one step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

from ticdc_codec.errors import ApplyError
from ticdc_lakehouse.planning.connected import connected
from ticdc_lakehouse.planning.ddl_planner import plan_ddl
from ticdc_lakehouse.planning.plan_builder import PlannedDefinition, TablePlanBuilder
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, TableState
from ticdc_lakehouse.planning.rename_order import in_execution_order
from ticdc_lakehouse.planning.steps import ExchangeRows, Step
from ticdc_lakehouse.planning.stop_reason import StopReason
from ticdc_lakehouse.planning.tables_of_rows import TablesOfRows
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.planning.window_tables import WindowTables
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import is_unqualified


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """The steps of one table, and its state after them."""

    name: TableName
    lake_name: str
    """The name of its live table and views."""
    state: TableState | None
    """As published, None if the table is new."""
    start: Definition | None
    """The definition before the steps; None if the columns are unknown."""
    steps: tuple[Step, ...]
    through: int
    ddls: tuple[str, ...] = ()
    """The applied DDLs at exactly ``through``."""
    stop: StopReason | None = None
    """Why the table is blocked at ``through``, None if it is not."""
    new_definitions: tuple[PlannedDefinition, ...] = ()
    """Definitions that this window adds."""
    dropped_at: int | None = None
    """commit_ts of the DROP; None for a table that gold shows (``on_drop: keep`` shows dropped tables)."""

    @property
    def definition(self) -> Definition | None:
        """The definition after the steps; None if the columns are unknown."""
        return self.new_definitions[-1].definition if self.new_definitions else self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    """The plans of all tables of a window."""

    tables: tuple[TablePlan, ...]
    """One plan for each table that exists at the window's end."""
    recoverable: tuple[TablePlan, ...]
    """One plan for each recoverable table, up to its DROP in this window or before."""

    def groups(self) -> list[list[TablePlan]]:
        """Returns lists of plans to execute together, the longest first: tables that exchange rows are in one list,
        every other table is in its own."""
        return sorted(connected((*self.tables, *self.recoverable), _exchanging), key=len, reverse=True)


def _exchanging(plan: TablePlan) -> set[str]:
    steps = [step for step in plan.steps if isinstance(step, ExchangeRows)]
    return {name for step in steps for name in (step.partitioned, step.plain)}


def plan_tables(inputs: PlanningInput) -> WindowPlan:
    """Returns the plan of the window. Raises ConfigError if a table would have another one's name in the lake."""
    tables = WindowTables(inputs)
    rows = TablesOfRows(tables)
    rows.block_late()
    again = bisect_right(inputs.window.ddls, inputs.before.tso, key=attrgetter("commit_ts"))
    _plan_ddls(tables, rows, inputs.window.ddls[:again])
    tables.give_way()  # at the published watermark each table had its own name
    _plan_ddls(tables, rows, inputs.window.ddls[again:])
    rows.infer_tables(inputs.tso)
    tables.finish()
    plans = [_plan(inputs, each) for each in tables.builders]
    _check_one_each(plans)
    inputs.naming.check_distinct((plan.name, plan.lake_name) for plan in plans)  # those of the window are the last
    return WindowPlan(
        tables=tuple(sorted(plans, key=lambda plan: plan.name)),
        recoverable=tuple(_recoverable(inputs, each) for each in tables.recoverable),
    )


def _plan_ddls(tables: WindowTables, rows: TablesOfRows, ddls: Iterable[DdlEvent]) -> None:
    """Plans DDLs in commit order, and the tables that are inferred from rows up to each."""
    inputs = tables.inputs
    for commit_ts, together in groupby(ddls, key=attrgetter("commit_ts")):
        rows.infer_tables(commit_ts)
        known = (*tables.builders, *tables.recoverable)
        ordered = in_execution_order(_without_repeats(together), known, inputs)
        for ddl in ordered:
            for statement in ddl.statements:
                plan_ddl(tables, ddl, statement)
        tables.record_renames(ordered)
        if commit_ts <= inputs.before.tso:
            rows.end_late_tables(ordered)


def _check_one_each(plans: Iterable[TablePlan]) -> None:
    """Raises ApplyError if two tables would have one name, of which only one would be published: a fault of planning,
    which nothing is known to cause."""
    for name, times in Counter(plan.name for plan in plans).items():
        if times > 1:
            raise ApplyError(
                f"table {name}: DDLs of this window leave two tables of its name; report it, with the DDLs"
            )


def _without_repeats(ddls: Iterable[DdlEvent]) -> list[DdlEvent]:
    """Returns the DDLs of one commit_ts, each once. A changefeed that another version of TiCDC takes over sends them
    again from its checkpoint on, and that version may write their texts otherwise: applied twice, a swap of names is
    undone. Of two texts the one that names every database stays."""
    found: list[DdlEvent] = []
    for ddl in ddls:
        same = next((at for at, other in enumerate(found) if ddl.statements == other.statements != ()), None)
        if same is None:
            found.append(ddl)
        elif any(map(is_unqualified, found[same].statements)):
            found[same] = ddl
    return found


def _recoverable(inputs: PlanningInput, builder: TablePlanBuilder) -> TablePlan:
    """Returns the plan of a recoverable table; a blocked one has no steps, because its rows at the DROP are unknown."""
    plan = replace(_plan(inputs, builder), dropped_at=builder.dropped_at)
    return plan if plan.stop is None else replace(plan, start=None, steps=(), new_definitions=())


def _plan(inputs: PlanningInput, builder: TablePlanBuilder) -> TablePlan:
    through = builder.planned_through
    return TablePlan(
        name=builder.name,
        lake_name=_lake_name(inputs, builder),
        state=builder.state,
        start=builder.start,
        steps=tuple(builder.steps),
        through=through,
        ddls=builder.applied_ddls.at(through),
        stop=builder.stop,
        new_definitions=tuple(builder.new_definitions),
    )


def _lake_name(inputs: PlanningInput, builder: TablePlanBuilder) -> str:
    """Returns the name of a table's live table and views. A table that was renamed after it was blocked has its new
    name too: another table may have the old one since."""
    if builder.definition is None:
        return ""
    if builder.stop is None or builder.dropped_at is not None or builder.name == builder.definition.table.name:
        return builder.definition.lake_name
    return inputs.naming.lake_name(builder.name)
