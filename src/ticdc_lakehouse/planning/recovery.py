"""Tables that TiDB dropped or truncated, and may bring back without sending a row.

They are taken up to the moment at which they ended, and remembered for the feed's retention time.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from ticdc_codec.tso import time_of
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Published, Recoverable, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.table_plan import Lane
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.schema.names import TableName


def recoverable_lanes(now: PlanningInput) -> list[Lane]:
    """The tables that were dropped before the window and are still remembered."""
    gone = remembered(now.before, now.tso, now.applying.retention_days)
    return [_lane(now, each) for each in gone]


def remembered(published: Published, tso: int, days: int) -> list[Recoverable]:
    """The dropped tables that are still remembered at ``tso``."""
    oldest = time_of(tso) - timedelta(days=days)
    return [gone for gone in published.recoverable if time_of(gone.dropped_at) >= oldest]


def _lane(now: PlanningInput, gone: Recoverable) -> Lane:
    definition = now.known.get(gone.data)
    if gone.version < 0 or definition is None:
        return _unknown(gone.name, gone.dropped_at)
    state = TableState(name=definition.name, data=gone.data, version=gone.version, applied_tso=gone.dropped_at)
    lane = Lane(name=gone.name, definition=definition, start=definition, state=state, after=gone.dropped_at)
    lane.dropped_at = gone.dropped_at
    return lane


def as_it_ends(lane: Lane, ddl: DdlEvent) -> Lane:
    """A lane at the DDL that drops, truncates or replaces it; of one that is blocked the rows are not known."""
    if lane.dropped_at is not None:  # on_drop: keep
        lane.stop = None
        return lane
    if lane.stop is not None or lane.definition is None:
        return _unknown(lane.name, ddl.commit_ts)
    lane.dropped_at = ddl.commit_ts
    return lane


def _unknown(name: TableName, dropped_at: int) -> Lane:
    lane = Lane(name=name, definition=None, state=None, after=dropped_at, dropped_at=dropped_at)
    lane.block(StopReason(kind=StopKind.NOT_IN_GOLD, commit_ts=dropped_at, needs_override=True))
    return lane


def last_dropped(lanes: Iterable[Lane], name: TableName) -> Lane | None:
    """The table of this name that was dropped last."""
    ended = [lane for lane in lanes if lane.dropped_at is not None and lane.name == name]
    return max(ended, key=lambda lane: lane.dropped_at or 0, default=None)
