"""The rows that a lane takes on its way through a window, and where it must stop."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from operator import attrgetter

from ticdc_lakehouse.planning.compatibility import UNKNOWN_COLUMNS, as_sent, definition_from_wire, half_open, refusal
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Definition
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.table_plan import Lane, name_clash
from ticdc_lakehouse.planning.window import BlockingPoint, Shape
from ticdc_lakehouse.schema.definition import Table


def untaken(now: PlanningInput, lane: Lane, through: int) -> tuple[Shape, ...]:
    """The rows that a lane has not taken, up to ``through``."""
    shapes = now.window.rows.get(lane.name, ())
    first_new, end = (bisect_right(shapes, tso, key=attrgetter("first")) for tso in (lane.at, through))
    late = () if lane.steps else tuple(shape for shape in shapes[: min(first_new, end)] if _late(now, lane, shape))
    return (*late, *shapes[first_new:end])


def _late(now: PlanningInput, lane: Lane, shape: Shape) -> bool:
    """Whether rows are older than what the lane had applied, and yet to be taken: what was replayed from quarantine,
    and in the eventual mode whatever comes. Not what is older than its name: that was another table's, or is gone."""
    old = shape.first <= lane.after and shape.last > lane.named_at and not lane.steps
    return old and (shape.replayed or now.batches is not None)


def _batches(now: PlanningInput, lane: Lane) -> tuple[int, int] | None:
    """Of which bronze batches a lane takes the rows: one that was blocked, of all."""
    if now.batches is None or lane.state is None or lane.state.stop is None:
        return now.batches
    return -1, now.batches[1]


def take(now: PlanningInput, lane: Lane, through: int) -> None:
    """Take a lane's rows up to ``through``, or up to where it must stop."""
    if lane.stop is not None:
        return
    shapes = untaken(now, lane, through)
    if lane.definition is None:
        _define_from_wire(now, lane, shapes)
    table = _as_sent(lane, shapes)
    misplaced = next(_misplaced(now, lane, table, shapes), None)
    if misplaced is not None:
        lane.block(misplaced)
        return
    stop = min(_stops(now, lane, table, shapes, through), key=lambda stop: stop.tso, default=None)
    if table is not None:
        until = through if stop is None else max(lane.at, stop.tso)
        lane.take_rows(until, [shape for shape in shapes if shape.first <= until], table, _batches(now, lane))
    if stop is not None:
        lane.block(stop.stop)


def _as_sent(lane: Lane, shapes: Sequence[Shape]) -> Table | None:
    """The definition in force, with what only the rows show."""
    if lane.definition is None:
        return None
    table = as_sent(lane.definition.table, shapes)
    if table != lane.definition.table:
        lane.define(replace(lane.definition, table=table))
    return table


def _define_from_wire(now: PlanningInput, lane: Lane, shapes: tuple[Shape, ...]) -> None:
    table = definition_from_wire(lane.name, shapes)
    if table is not None:
        define(now, lane, table, shapes[0].first, "wire")


def define(now: PlanningInput, lane: Lane, table: Table, commit_ts: int, source: str) -> None:
    """Give a lane its first definition; a table that gold cannot have is blocked without one."""
    if (clash := name_clash(table)) is not None:
        lane.block(StopReason(kind=StopKind.RESERVED_COLUMN, detail=clash))
        return
    view, data = now.naming.view(lane.name), now.naming.data(lane.name, commit_ts)
    named_at = commit_ts if source == "ddl" else 0
    definition = Definition(table=table, commit_ts=commit_ts, source=source, name=view, data=data, named_at=named_at)
    lane.define(definition)


def _stops(
    now: PlanningInput, lane: Lane, table: Table | None, shapes: Sequence[Shape], through: int
) -> Iterator[BlockingPoint]:
    """What a lane must not pass on its way to ``through``: messages in quarantine, and rows that it cannot take."""
    hold = now.holds.get(lane.name)
    if hold is not None and hold.tso < through:
        yield hold
    for shape in shapes:
        reason = refusal(table, shape, now.applying, defined=lane.defined)
        if reason is not None:
            yield _incompatible(shape.first - 1, reason)
    spellings = _two_tables(now, shapes)
    if spellings is not None:
        yield _incompatible(lane.at, spellings)
    both = None if table is None else half_open(table, shapes)
    if both is not None:
        yield _incompatible(lane.at, both)
    if table is None:
        yield _incompatible(through, UNKNOWN_COLUMNS)


def _incompatible(tso: int, detail: str) -> BlockingPoint:
    return BlockingPoint(tso=tso, stop=StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail=detail))


def _two_tables(now: PlanningInput, shapes: Sequence[Shape]) -> str | None:
    """Why rows under two spellings of a name cannot be one table's; None if they can. TiDB has one table of a name, but
    routes may bring two together. One table's rows change their spelling at a DDL (wire.md 8.14), two tables' mix."""
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for shape in shapes:
        spelled = shape.name.database, shape.name.table
        first, last = spans.get(spelled, (shape.first, shape.last))
        spans[spelled] = min(first, shape.first), max(last, shape.last)
    for (one, (first, last)), (other, span) in combinations(spans.items(), 2):
        mixed = first < span[1] and span[0] < last
        # In the eventual mode rows from before and after several DDLs are taken together.
        if mixed and (now.batches is None or one[1] != other[1]):
            names = f"{'.'.join(one)} and {'.'.join(other)}"
            return f"rows come under {names}, one name in TiDB: route the two tables to names of their own"
    return None


def _misplaced(now: PlanningInput, lane: Lane, table: Table | None, shapes: Sequence[Shape]) -> Iterator[StopReason]:
    """Rows so old that there is no state of the table to stop at before them, and that it cannot take now."""
    changed = lane.definition.commit_ts if lane.definition is not None and lane.definition.source == "ddl" else 0
    for shape in shapes:
        reason = refusal(table, shape, now.applying, defined=lane.defined)
        if shape.first <= changed:
            reason = "the table was changed since"
        if _late(now, lane, shape) and reason is not None:
            detail = f"a late row cannot be merged: {reason}"
            yield StopReason(kind=StopKind.LATE_ROWS, detail=detail, needs_override=True)
