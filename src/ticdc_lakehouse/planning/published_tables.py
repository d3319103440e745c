"""Plan builders of the published tables: the commit_ts and the definition from which each continues in a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from ticdc_lakehouse.planning.blocking import is_ambiguous, lacks_former_rows
from ticdc_lakehouse.planning.late_ddls import late_ddl_points
from ticdc_lakehouse.planning.plan_builder import AppliedDdls, TablePlanBuilder
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Origin, TableState
from ticdc_lakehouse.planning.stop_reason import UNKNOWN_COLUMNS, StopKind, StopReason, WayOut
from ticdc_lakehouse.planning.window import BlockingPoint, earliest
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import names_of


def published_builder(inputs: PlanningInput, name: TableName, state: TableState) -> TablePlanBuilder:
    """Returns a builder for a published table, under its name at ``applied_tso``."""
    definition = inputs.definitions.get(state.stable_id)
    builder = TablePlanBuilder(
        name=name if definition is None else definition.table.name,
        definition=definition,
        start=definition,
        state=state,
        complete_through=state.applied_tso,
        published_name=name,
        applied_ddls=AppliedDdls(commit_ts=state.applied_tso, queries=state.ddls),
    )
    _await_rows(builder, state)
    _block_or_go_back(inputs, builder, name, state)
    return builder


def _await_rows(builder: TablePlanBuilder, state: TableState) -> None:
    """Lets a table that awaits its first rows await them still."""
    stop = state.stop
    if stop is not None and (stop.kind in (StopKind.AWAITS_ROWS, StopKind.RESERVED_COLUMN) or stop.named_at):
        builder.awaits_rows_reason = stop
        if builder.definition is None and stop.named_at and stop.named_at == stop.commit_ts:
            builder.named_until = stop.named_at + 1  # its rows showed it; the RENAME that made it may be read again
    elif stop is not None and stop.kind is StopKind.QUARANTINED and builder.definition is None:
        # It began with a message in quarantine, or with a TRUNCATE since: earlier rows are not its own.
        at = state.applied_tso
        builder.awaits_rows_reason = replace(UNKNOWN_COLUMNS, commit_ts=at, named_at=at)


def _block_or_go_back(inputs: PlanningInput, builder: TablePlanBuilder, current: TableName, state: TableState) -> None:
    """Blocks a table that waits for an override, or one of late rows or DDLs, which goes back to before the first; a
    table that lacks a replayed DDL goes back to it."""
    late = [point for point in _points(inputs, builder, current, state) if point.tso < state.applied_tso]
    lacks_rows = lacks_former_rows(builder, state)
    keeps_reason = not late or state.dropped or lacks_rows or is_ambiguous(builder)
    stays = state.stop is not None and keeps_reason and (state.stop.needs_override or lacks_rows)
    if inputs.eventual and (stays or late):
        builder.name = current  # the DDLs that led to it are not read again
    if state.stop is not None and stays:
        builder.named_until = inputs.before.tso if builder.definition is None or inputs.eventual else 0
        builder.block(replace(state.stop, needs_override=True))
        builder.dropped_at = state.applied_tso if state.dropped else None
    elif late:
        _block_late(builder, late, state.stop if state.needs_override else None)
    elif (missed := _missed_ddl(inputs, builder)) is not None:
        builder.complete_through, builder.applied_ddls = missed, AppliedDdls()


def _block_late(builder: TablePlanBuilder, late: Sequence[BlockingPoint], earlier: StopReason | None) -> None:
    """Blocks a table at the first of the points to which it can go back. Its reason names all of them, and no longer
    promises that resume applies them if it cannot go back to some, or to what blocked it earlier."""
    lasting = earlier if earlier is not None and _is_lasting(earlier) else None
    unfollowed = max(0 if lasting is None else lasting.unfollowed, *(point.stop.unfollowed for point in late))
    since = max(builder.mergeable_since, unfollowed + 1)
    point = earliest(each for each in late if each.tso >= since)
    if point is not None:
        builder.complete_through, builder.applied_ddls = point.tso, AppliedDdls()
    first = min(late, key=attrgetter("tso"))
    causes = (each.stop.first_cause for each in late)
    stop = replace(
        first.stop,
        detail="; ".join(dict.fromkeys(each.stop.detail for each in late)),
        first_cause=next(filter(None, causes), ""),
    )
    loses = lasting is not None or any(each.tso < since or _is_lasting(each.stop) for each in late)
    if loses and WayOut.RESUME in stop.ways_out:
        stop = _without_return(stop, builder.mergeable_since if first.tso < builder.mergeable_since else 0, lasting)
    builder.block(replace(stop, commit_ts=unfollowed) if unfollowed else stop)


def _without_return(stop: StopReason, changed_at: int, lasting: StopReason | None) -> StopReason:
    """Returns the reason for a table of which rows or DDLs stay unapplied when it is resumed: those from before its
    last DDL, since rows cannot be merged again there, or those of an earlier reason."""
    details = [stop.detail]
    if changed_at:
        details.append(f"a DDL changed the table at {changed_at}")
    first_cause = stop.first_cause if lasting is None else lasting.quotable
    if first_cause not in stop.detail:
        details.append(f"before: {first_cause}")
    ways_out = (WayOut.LOAD_EXPORT, WayOut.RESUME_WITHOUT)
    return replace(stop, detail="; ".join(details), first_cause=first_cause, ways_out=ways_out)


def _is_lasting(stop: StopReason) -> bool:
    """True if a table that was blocked for this reason lacks rows or DDLs which no resume applies."""
    return WayOut.RESUME not in stop.ways_out and (
        WayOut.RESUME_WITHOUT in stop.ways_out or stop.ways_out == (WayOut.LOAD_EXPORT,)
    )


def _points(
    inputs: PlanningInput, builder: TablePlanBuilder, current: TableName, state: TableState
) -> Iterator[BlockingPoint]:
    """Yields the points before what arrived late, and before what arrived while the table is blocked: rows that are
    replayed in the same window as others are late, too, since the table does not merge them."""
    late = [*_late_points(inputs, builder, current)]
    yield from late
    if state.needs_override or any(point.tso < state.applied_tso for point in late):
        yield from _missed_points(inputs, builder, state)


def _late_points(inputs: PlanningInput, builder: TablePlanBuilder, current: TableName) -> Iterator[BlockingPoint]:
    """Yields the points before late rows of the table's name at ``applied_tso``, and before late DDLs, which are listed
    under the name that it has now."""
    of_rows, of_ddls = inputs.late_points.get(builder.name), inputs.late_ddl_points.get(current)
    if of_rows is not None and not _are_of_former_table(builder, of_rows):
        yield of_rows
    if of_ddls is not None:
        yield of_ddls


def _are_of_former_table(builder: TablePlanBuilder, point: BlockingPoint) -> bool:
    """True if every late row is from before the table was loaded or got its name. False if that is unknown, as for a
    table that is inferred from rows, or that began with a message in quarantine."""
    definition, stop = builder.definition, None if builder.state is None else builder.state.stop
    if definition is None and stop is not None and stop.kind is StopKind.QUARANTINED:
        return False
    if definition is not None and definition.origin is Origin.WIRE and definition.named_at < definition.commit_ts:
        return False
    return point.last is not None and point.last <= builder.named_at


def _missed_points(inputs: PlanningInput, builder: TablePlanBuilder, state: TableState) -> Iterator[BlockingPoint]:
    """Yields the points before events that arrived while the table waits for an override, or in the window that blocks
    it, and that no later window reads: rows that were replayed from quarantine; in eventual mode late DDLs, and rows
    that cannot be merged (this mode reads all others again)."""
    is_eventual = inputs.eventual
    groups = [group for group in inputs.window.rows.get(builder.name, ()) if group.last > builder.named_at]
    missed = [g.first for g in groups if (g.first <= builder.mergeable_since if is_eventual else g.replayed)]
    if missed:
        came = "a late row came, and a later DDL changed the table" if is_eventual else "rows were replayed"
        first_cause = state.stop.quotable if state.stop and state.needs_override else ""
        stop = StopReason(
            kind=StopKind.LATE_ROWS,
            detail=f"while it was blocked ({first_cause}), {came}" if first_cause else came,
            first_cause=first_cause,
            ways_out=(WayOut.RESUME_WITHOUT if is_eventual else WayOut.RESUME,),
            needs_override=True,
        )
        yield BlockingPoint(tso=min(missed) - 1, stop=stop)
    before = replace(inputs.before, tables={builder.name: state})
    late = late_ddl_points(before, (ddl for ddl in inputs.window.ddls if ddl.out_of_order))
    if builder.name in late:
        yield late[builder.name]


def _missed_ddl(inputs: PlanningInput, builder: TablePlanBuilder) -> int | None:
    """Returns the commit_ts of the first replayed DDL that a table lacks, None if there is none: the table's rows after
    the DDL do not fit, and no later DDL changed it. The table continues from there. A table that continued without a
    dismissed DDL is left as it is."""
    state, definition = builder.state, builder.definition
    if state is None or state.stop is None or state.stop.kind is not StopKind.INCOMPATIBLE_ROWS:
        return None
    first = max(builder.named_at, 0 if definition is None else definition.commit_ts)
    named = (d for d in inputs.window.ddls if d.replayed and any(builder.name in names_of(s) for s in d.statements))
    return min((d.commit_ts for d in named if first <= d.commit_ts < state.applied_tso), default=None)
