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
from ticdc_lakehouse.planning.table_plan import TablePlanBuilder
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.schema.names import TableName


def recoverable_builders(now: PlanningInput) -> list[TablePlanBuilder]:
    """The tables that were dropped before the window and are still remembered."""
    gone = still_recoverable(now.before, now.tso, now.applying.retention_days)
    return [_recoverable_builder(now, each) for each in gone]


def still_recoverable(published: Published, tso: int, days: int) -> list[Recoverable]:
    """The dropped tables that are still remembered at ``tso``."""
    oldest = time_of(tso) - timedelta(days=days)
    return [gone for gone in published.recoverable if time_of(gone.dropped_at) >= oldest]


def _recoverable_builder(now: PlanningInput, gone: Recoverable) -> TablePlanBuilder:
    definition = now.known.get(gone.data)
    if gone.version < 0 or definition is None:
        return _unknown(gone.name, gone.dropped_at)
    state = TableState(name=definition.name, data=gone.data, version=gone.version, applied_tso=gone.dropped_at)
    builder = TablePlanBuilder(
        name=gone.name, definition=definition, start=definition, state=state, after=gone.dropped_at
    )
    builder.dropped_at = gone.dropped_at
    return builder


def end_table(builder: TablePlanBuilder, ddl: DdlEvent) -> TablePlanBuilder:
    """A lane at the DDL that drops, truncates or replaces it; of one that is blocked the rows are not known."""
    if builder.dropped_at is not None:  # on_drop: keep
        builder.stop = None
        return builder
    if builder.stop is not None or builder.definition is None:
        return _unknown(builder.name, ddl.commit_ts)
    builder.dropped_at = ddl.commit_ts
    return builder


def _unknown(name: TableName, dropped_at: int) -> TablePlanBuilder:
    builder = TablePlanBuilder(name=name, definition=None, state=None, after=dropped_at, dropped_at=dropped_at)
    builder.block(StopReason(kind=StopKind.NOT_IN_GOLD, commit_ts=dropped_at, needs_override=True))
    return builder


def last_recoverable(builders: Iterable[TablePlanBuilder], name: TableName) -> TablePlanBuilder | None:
    """The table of this name that was dropped last."""
    ended = [builder for builder in builders if builder.dropped_at is not None and builder.name == name]
    return max(ended, key=lambda builder: builder.dropped_at or 0, default=None)
