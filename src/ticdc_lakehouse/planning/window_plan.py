"""The plan of a window: what it does to each table, decided before anything is written.

The DDLs are applied in commit order (`window_planner`). The plan of an affected table merges its rows
up to the DDL's commit_ts, applies the DDL, then merges later rows. The plan of a table without DDL has one step.
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
from ticdc_lakehouse.planning.window_planner import apply_ddl
from ticdc_lakehouse.planning.window_tables import WindowTables
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import RenameTables


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """The steps of one table, and its state after them."""

    name: TableName
    view: str
    """The name of its views."""
    state: TableState | None
    """As published, None if the table is new."""
    start: Definition | None
    """The definition before the steps; None if the columns are unknown."""
    definition: Definition | None
    """The definition after them."""
    steps: tuple[Step, ...]
    through: int
    ddls: tuple[str, ...] = ()
    """The applied DDLs at exactly ``through``."""
    stop: StopReason | None = None
    """Why the table is blocked at ``through``, None if it is not."""
    found: tuple[Definition, ...] = ()
    """Definitions that this window adds."""
    dropped_at: int | None = None
    """commit_ts of the DROP; None for a table that gold shows (``on_drop: keep`` shows dropped tables)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    """The plans of all tables of a window."""

    tables: tuple[TablePlan, ...]
    """One plan for each table that exists at the window's end."""
    recoverable: tuple[TablePlan, ...]
    """One plan for each recoverable table, up to its DROP in this window or before."""

    def groups(self) -> list[list[TablePlan]]:
        """Lists of plans to execute together: tables that exchange rows are in one list, every other table is alone."""
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


def plan_tables(inputs: PlanningInput) -> WindowPlan:
    """Returns the plan of the window."""
    tables = WindowTables(inputs)
    for commit_ts, ddls in groupby(inputs.window.ddls, key=attrgetter("commit_ts")):
        tables.infer_tables(commit_ts)
        ordered = _in_execution_order(_without_repeats(ddls), tables.builders)
        for ddl in ordered:
            for statement in ddl.statements:
                apply_ddl(tables, ddl, statement)
        tables.record_renames(ordered)
    tables.infer_tables(inputs.tso)
    tables.finish()
    return WindowPlan(
        tables=tuple(sorted((_plan(inputs, each) for each in tables.builders), key=lambda plan: plan.name)),
        recoverable=tuple(_recoverable(inputs, each) for each in tables.recoverable),
    )


def _without_repeats(ddls: Iterable[DdlEvent]) -> list[DdlEvent]:
    """The DDLs of one commit_ts, each once. A changefeed that another version of TiCDC takes over sends them again from
    its checkpoint on, and that version may write their texts otherwise: done twice, a swap of names is undone."""
    found: list[DdlEvent] = []
    for ddl in ddls:
        if not ddl.statements or all(ddl.statements != other.statements for other in found):
            found.append(ddl)
    return found


def _in_execution_order(ddls: list[DdlEvent], tables: Iterable[TablePlanBuilder]) -> list[DdlEvent]:
    """Sorts DDLs of one commit_ts in TiDB's order, given the tables before them. Only renames that arrived through
    several topics need another order than that of arrival. The window before, if it ends at this commit_ts, may have
    done some of them: the tables have the names since."""
    if len({ddl.topic for ddl in ddls}) < 2 or not all(map(_is_rename, ddls)):
        return ddls
    builders = [*tables]
    names = [builder.name for builder in builders]
    done = [ddl for ddl in ddls if any(builder.has_recorded(ddl) for builder in builders)]
    left = [ddl for ddl in ddls if ddl not in done]
    return [*_possible_order(done, names), *_possible_order(left, names)]


def _possible_order(renames: list[DdlEvent], names: Iterable[TableName]) -> list[DdlEvent]:
    """The renames in an order in which each finds a table of its old name and the new name free, given the ``names``
    that tables have before; those that never do, as they come.

    TiCDC sends a RENAME TABLE of several tables as one DDL for each, all of one commit_ts, and each to the topic of its
    old name (wire.md 2.4 and 8.6): from one topic they come in TiDB's order, from several in none.
    """
    names_in_use = set(names)
    left, order = [*renames], []
    while left:
        firsts = (ddl for at, ddl in enumerate(left) if all(ddl.topic != earlier.topic for earlier in left[:at]))
        ddl = next((ddl for ddl in firsts if _is_possible(_rename_of(ddl), names_in_use)), left[0])
        left.remove(ddl)
        order.append(ddl)
        names_in_use = _afterwards(_rename_of(ddl), names_in_use)
    return order


def _is_rename(ddl: DdlEvent) -> bool:
    return len(ddl.statements) == 1 and isinstance(ddl.statements[0], RenameTables)


def _rename_of(ddl: DdlEvent) -> RenameTables:
    (rename,) = ddl.statements
    assert isinstance(rename, RenameTables)
    return rename


def _is_possible(rename: RenameTables, names_in_use: set[TableName]) -> bool:
    for old, new in rename.pairs:
        free = new not in names_in_use or new == old
        if old not in names_in_use or not free:
            return False
        names_in_use = _afterwards(RenameTables(pairs=((old, new),)), names_in_use)
    return True


def _afterwards(rename: RenameTables, names_in_use: set[TableName]) -> set[TableName]:
    for old, new in rename.pairs:
        names_in_use = names_in_use - {old} | {new}
    return names_in_use


def _recoverable(inputs: PlanningInput, builder: TablePlanBuilder) -> TablePlan:
    """The plan of a recoverable table; a blocked one has no steps, because its rows at the DROP are unknown."""
    plan = replace(_plan(inputs, builder), dropped_at=builder.dropped_at)
    return plan if plan.stop is None else replace(plan, start=None, steps=(), found=())


def _plan(inputs: PlanningInput, builder: TablePlanBuilder) -> TablePlan:
    through = builder.at
    return TablePlan(
        name=builder.name,
        view=_view(inputs, builder),
        state=builder.state,
        start=builder.start,
        definition=builder.definition,
        steps=tuple(builder.steps),
        through=through,
        ddls=builder.seen[1] if builder.seen[0] == through else (),
        stop=builder.stop,
        found=tuple(builder.found),
    )


def _view(inputs: PlanningInput, builder: TablePlanBuilder) -> str:
    """The name of a table's live table and views. A table that was renamed after it was blocked has its new name too:
    another table may have the old one since."""
    if builder.definition is None:
        return ""
    if builder.stop is None or builder.dropped_at is not None or builder.name == builder.definition.table.name:
        return builder.definition.name
    return inputs.naming.view(builder.name)
