"""Segments of a table plan: the rows to merge up to a DDL, and the commit_ts at which the table is blocked."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from operator import attrgetter

from ticdc_lakehouse.planning.compatibility import (
    definition_from_wire,
    inconsistent_declarations,
    refusal,
    with_wire_types,
)
from ticdc_lakehouse.planning.plan_builder import TablePlanBuilder, name_clash
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, Origin
from ticdc_lakehouse.planning.steps import AlterRows
from ticdc_lakehouse.planning.stop_reason import (
    UNKNOWN_COLUMNS,
    StopKind,
    StopReason,
    incompatible,
    unmergeable_late_row,
)
from ticdc_lakehouse.planning.window import BatchRange, BlockingPoint, RowGroup, earliest
from ticdc_lakehouse.schema.definition import Table


def remaining_groups(inputs: PlanningInput, builder: TablePlanBuilder, through: int) -> tuple[RowGroup, ...]:
    """Returns the row groups up to ``through`` that no step of the plan merges yet."""
    groups = inputs.window.rows.get(builder.name, ())
    first_new, end = (bisect_right(groups, tso, key=attrgetter("first")) for tso in (builder.planned_through, through))
    late = (
        ()
        if builder.steps
        else tuple(group for group in groups[: min(first_new, end)] if _is_late(inputs, builder, group))
    )
    return (*late, *groups[first_new:end])


def _is_late(inputs: PlanningInput, builder: TablePlanBuilder, group: RowGroup) -> bool:
    """True if rows at or below the applied commit_ts are still to be merged: replayed rows, and in eventual mode all
    late rows. Rows from before the table had its name belong to another table."""
    old = group.first <= builder.complete_through and group.last > builder.named_at and not builder.steps
    return old and (group.replayed or inputs.eventual)


def _batches(inputs: PlanningInput, builder: TablePlanBuilder, groups: Sequence[RowGroup]) -> BatchRange | None:
    """Returns the bronze batches to read in mode eventual; None in mode watermarks. A table that was blocked reads
    every batch again. So does one with rows that were replayed from quarantine, which stay in their message's batch,
    and one that a late DDL made or altered, whose rows may have arrived before it."""
    if inputs.batches is None:
        return None
    was_blocked = builder.state is not None and builder.state.stop is not None
    made_late = builder.state is None and 0 < builder.named_at <= inputs.before.tso
    altered_late = any(isinstance(step, AlterRows) and step.commit_ts <= inputs.before.tso for step in builder.steps)
    reads_all = was_blocked or made_late or altered_late or any(group.replayed for group in groups)
    return replace(inputs.batches, after=None) if reads_all else inputs.batches


def has_only_tombstones(inputs: PlanningInput, builder: TablePlanBuilder, through: int) -> bool:
    """True if the rows up to ``through`` are deletes that a table without columns has to keep: in mode eventual, as
    tombstones."""
    if not inputs.eventual or builder.definition is not None:
        return False
    groups = remaining_groups(inputs, builder, through)
    return bool(groups) and not any(group.is_upsert for group in groups)


def merge_until(inputs: PlanningInput, builder: TablePlanBuilder, through: int) -> None:
    """Merges the remaining rows up to ``through``, or up to the first blocking point, where it blocks the table."""
    if builder.stop is not None:
        return
    groups = remaining_groups(inputs, builder, through)
    if builder.definition is None:
        _define_from_wire(inputs, builder, groups)
    if builder.definition is None and not inputs.eventual and not any(group.is_upsert for group in groups):
        groups = ()  # deletes of rows that gold never had
    table = _define_with_wire_types(inputs, builder, groups)
    misplaced = next(_unmergeable_late_rows(inputs, builder, table, groups), None)
    if misplaced is not None:
        builder.block(misplaced)
        return
    point = earliest(_blocking_points(inputs, builder, table, groups, through))
    if table is not None:
        until = through if point is None else max(builder.planned_through, point.tso)
        merged = [group for group in groups if group.first <= until]
        builder.merge_rows(until, merged, table, inputs, _batches(inputs, builder, merged))
    if point is not None:
        awaits = builder.awaits_rows_reason if point.stop == UNKNOWN_COLUMNS else None
        builder.block(awaits or point.stop)
    elif table is None:  # and it has no rows
        builder.complete_through = through


def merge_rest(inputs: PlanningInput, builder: TablePlanBuilder) -> None:
    """Merges the remaining rows of the window. A table that has neither columns nor rows is blocked where it is, until
    its first rows show its columns."""
    at = builder.planned_through
    merge_until(inputs, builder, inputs.tso)
    if builder.definition is None and builder.stop is None:
        builder.complete_through = at
        builder.block(builder.awaits_rows_reason or UNKNOWN_COLUMNS)


def _define_with_wire_types(
    inputs: PlanningInput, builder: TablePlanBuilder, groups: Sequence[RowGroup]
) -> Table | None:
    """Completes the definition with what only rows carry, and returns it; None if the columns are unknown."""
    if builder.definition is None:
        return None
    table = with_wire_types(builder.definition.table, groups, inputs.config)
    if table != builder.definition.table:
        builder.define(replace(builder.definition, table=table))
    return table


def _define_from_wire(inputs: PlanningInput, builder: TablePlanBuilder, groups: tuple[RowGroup, ...]) -> None:
    table = definition_from_wire(builder.name, groups)
    if table is not None:
        define(inputs, builder, table, groups[0].first, Origin.WIRE)


def define(
    inputs: PlanningInput, builder: TablePlanBuilder, table: Table, commit_ts: int, origin: Origin, *, named_at: int = 0
) -> None:
    """Sets a builder's first definition. A table with a column that the lake cannot name is blocked and gets none.
    ``named_at``: `Definition.named_at`, where neither a DDL nor the builder shows it."""
    if (clash := name_clash(table.sent)) is not None:
        builder.block(StopReason(kind=StopKind.RESERVED_COLUMN, detail=clash))
        return
    lake_name = inputs.naming.planned_lake_name(builder.name)
    stable_id = inputs.naming.new_stable_id(builder.name, commit_ts)
    named_at = commit_ts if origin is Origin.DDL else builder.named_at or named_at  # of a DDL that it awaits rows since
    definition = Definition(
        table=table, commit_ts=commit_ts, origin=origin, lake_name=lake_name, stable_id=stable_id, named_at=named_at
    )
    builder.define(definition)


def _blocking_points(
    inputs: PlanningInput, builder: TablePlanBuilder, table: Table | None, groups: Sequence[RowGroup], through: int
) -> Iterator[BlockingPoint]:
    """Yields the points below ``through`` that block the table: messages in quarantine, and rows that it cannot
    hold."""
    quarantined = inputs.quarantine_points.get(builder.name)
    if quarantined is not None and quarantined.tso < through:
        yield quarantined
    for group in groups:
        reason = refusal(table, group, inputs.config, defined=builder.defined)
        if reason is not None:
            yield BlockingPoint(tso=group.first - 1, stop=reason)
    conflict = _spelling_conflict(inputs, builder, groups)
    if conflict is not None:
        stop = StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail=conflict)
        yield BlockingPoint(tso=builder.planned_through, stop=stop)
    mixed = None if table is None else inconsistent_declarations(table, groups)
    if mixed is not None:
        yield BlockingPoint(tso=builder.planned_through, stop=incompatible(mixed))


def _spelling_conflict(inputs: PlanningInput, builder: TablePlanBuilder, groups: Sequence[RowGroup]) -> str | None:
    """Returns why rows under two spellings of a name belong to two tables; None if they belong to one. TiDB has one
    table of a name, but topic routes may join two. The spelling of one table changes at a DDL (wire.md 8.14); the
    spellings of two tables interleave."""
    # Eventual mode merges rows from before and after several DDLs together. And where a DDL gave the table its name, a
    # changefeed that is started again may send rows again in the database's spelling of the CREATE.
    one_database = inputs.eventual or builder.named_at > 0
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for group in groups:
        spelled = group.name.database, group.name.table
        first, last = spans.get(spelled, (group.first, group.last))
        spans[spelled] = min(first, group.first), max(last, group.last)
    for (one, (first, last)), (other, span) in combinations(spans.items(), 2):
        mixed = first < span[1] and span[0] < last
        if mixed and not (one_database and one[1] == other[1]):
            names = f"{'.'.join(one)} and {'.'.join(other)}"
            return f"rows come under {names}, one name in TiDB: route the two tables to names of their own"
    return None


def _unmergeable_late_rows(
    inputs: PlanningInput, builder: TablePlanBuilder, table: Table | None, groups: Sequence[RowGroup]
) -> Iterator[StopReason]:
    """Yields a reason for each group of late rows that the table cannot merge, although no earlier state is left to
    block it at. Rows from before it had its name are another table's and are not merged, so `Definition.since` counts
    here, not `mergeable_since`."""
    changed = 0 if builder.definition is None else builder.definition.since
    for group in groups:
        refused = refusal(table, group, inputs.config, defined=builder.defined)
        cause = None if refused is None else refused.cause
        if group.first <= changed:
            yield unmergeable_late_row("a later DDL changed the table")
        elif _is_late(inputs, builder, group) and cause is not None:
            yield unmergeable_late_row(cause)
