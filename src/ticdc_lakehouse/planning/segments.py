"""The rows that a lane takes on its way through a window, and where it must stop."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from operator import attrgetter

from ticdc_lakehouse.planning.compatibility import (
    UNKNOWN_COLUMNS,
    definition_from_wire,
    inconsistent_declarations,
    refusal,
    with_wire_types,
)
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Definition
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.table_plan import TablePlanBuilder, name_clash
from ticdc_lakehouse.planning.window import BlockingPoint, RowGroup
from ticdc_lakehouse.schema.definition import Table


def remaining_groups(now: PlanningInput, builder: TablePlanBuilder, through: int) -> tuple[RowGroup, ...]:
    """The rows that a lane has not taken, up to ``through``."""
    groups = now.window.rows.get(builder.name, ())
    first_new, end = (bisect_right(groups, tso, key=attrgetter("first")) for tso in (builder.at, through))
    late = (
        () if builder.steps else tuple(group for group in groups[: min(first_new, end)] if _late(now, builder, group))
    )
    return (*late, *groups[first_new:end])


def _late(now: PlanningInput, builder: TablePlanBuilder, group: RowGroup) -> bool:
    """Whether rows are older than what the lane had applied, and yet to be taken: what was replayed from quarantine,
    and in the eventual mode whatever comes. Not what is older than its name: that was another table's, or is gone."""
    old = group.first <= builder.after and group.last > builder.named_at and not builder.steps
    return old and (group.replayed or now.batches is not None)


def _batches(now: PlanningInput, builder: TablePlanBuilder) -> tuple[int, int] | None:
    """Of which bronze batches a lane takes the rows: one that was blocked, of all."""
    if now.batches is None or builder.state is None or builder.state.stop is None:
        return now.batches
    return -1, now.batches[1]


def merge_until(now: PlanningInput, builder: TablePlanBuilder, through: int) -> None:
    """Take a lane's rows up to ``through``, or up to where it must stop."""
    if builder.stop is not None:
        return
    groups = remaining_groups(now, builder, through)
    if builder.definition is None:
        _define_from_wire(now, builder, groups)
    table = _define_with_wire_types(builder, groups)
    misplaced = next(_unmergeable_late_rows(now, builder, table, groups), None)
    if misplaced is not None:
        builder.block(misplaced)
        return
    stop = min(_blocking_points(now, builder, table, groups, through), key=lambda stop: stop.tso, default=None)
    if table is not None:
        until = through if stop is None else max(builder.at, stop.tso)
        builder.merge_rows(until, [group for group in groups if group.first <= until], table, _batches(now, builder))
    if stop is not None:
        builder.block(stop.stop)


def _define_with_wire_types(builder: TablePlanBuilder, groups: Sequence[RowGroup]) -> Table | None:
    """The definition in force, with what only the rows show."""
    if builder.definition is None:
        return None
    table = with_wire_types(builder.definition.table, groups)
    if table != builder.definition.table:
        builder.define(replace(builder.definition, table=table))
    return table


def _define_from_wire(now: PlanningInput, builder: TablePlanBuilder, groups: tuple[RowGroup, ...]) -> None:
    table = definition_from_wire(builder.name, groups)
    if table is not None:
        define(now, builder, table, groups[0].first, "wire")


def define(now: PlanningInput, builder: TablePlanBuilder, table: Table, commit_ts: int, source: str) -> None:
    """Give a lane its first definition; a table that gold cannot have is blocked without one."""
    if (clash := name_clash(table)) is not None:
        builder.block(StopReason(kind=StopKind.RESERVED_COLUMN, detail=clash))
        return
    view, data = now.naming.view(builder.name), now.naming.data(builder.name, commit_ts)
    named_at = commit_ts if source == "ddl" else 0
    definition = Definition(table=table, commit_ts=commit_ts, source=source, name=view, data=data, named_at=named_at)
    builder.define(definition)


def _blocking_points(
    now: PlanningInput, builder: TablePlanBuilder, table: Table | None, groups: Sequence[RowGroup], through: int
) -> Iterator[BlockingPoint]:
    """What a lane must not pass on its way to ``through``: messages in quarantine, and rows that it cannot take."""
    hold = now.holds.get(builder.name)
    if hold is not None and hold.tso < through:
        yield hold
    for group in groups:
        reason = refusal(table, group, now.applying, defined=builder.defined)
        if reason is not None:
            yield _incompatible(group.first - 1, reason)
    spellings = _spelling_conflict(now, groups)
    if spellings is not None:
        yield _incompatible(builder.at, spellings)
    both = None if table is None else inconsistent_declarations(table, groups)
    if both is not None:
        yield _incompatible(builder.at, both)
    if table is None:
        yield _incompatible(through, UNKNOWN_COLUMNS)


def _incompatible(tso: int, detail: str) -> BlockingPoint:
    return BlockingPoint(tso=tso, stop=StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail=detail))


def _spelling_conflict(now: PlanningInput, groups: Sequence[RowGroup]) -> str | None:
    """Why rows under two spellings of a name cannot be one table's; None if they can. TiDB has one table of a name, but
    routes may bring two together. One table's rows change their spelling at a DDL (wire.md 8.14), two tables' mix."""
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for group in groups:
        spelled = group.name.database, group.name.table
        first, last = spans.get(spelled, (group.first, group.last))
        spans[spelled] = min(first, group.first), max(last, group.last)
    for (one, (first, last)), (other, span) in combinations(spans.items(), 2):
        mixed = first < span[1] and span[0] < last
        # In the eventual mode rows from before and after several DDLs are taken together.
        if mixed and (now.batches is None or one[1] != other[1]):
            names = f"{'.'.join(one)} and {'.'.join(other)}"
            return f"rows come under {names}, one name in TiDB: route the two tables to names of their own"
    return None


def _unmergeable_late_rows(
    now: PlanningInput, builder: TablePlanBuilder, table: Table | None, groups: Sequence[RowGroup]
) -> Iterator[StopReason]:
    """Rows so old that there is no state of the table to stop at before them, and that it cannot take now."""
    changed = (
        builder.definition.commit_ts if builder.definition is not None and builder.definition.source == "ddl" else 0
    )
    for group in groups:
        reason = refusal(table, group, now.applying, defined=builder.defined)
        if group.first <= changed:
            reason = "the table was changed since"
        if _late(now, builder, group) and reason is not None:
            detail = f"a late row cannot be merged: {reason}"
            yield StopReason(kind=StopKind.LATE_ROWS, detail=detail, needs_override=True)
