"""Recoverable tables: TiDB dropped or truncated them, and can restore them without sending a row.

Gold applies each of them up to its DROP, and keeps it for the feed's retention time.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from ticdc_codec.tso import time_of
from ticdc_lakehouse.planning.plan_builder import TablePlanBuilder
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Published, Recoverable, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.schema.names import TableName


def recoverable_builders(inputs: PlanningInput) -> list[TablePlanBuilder]:
    """Returns builders for the tables that were dropped before the window and are still recoverable."""
    dropped = still_recoverable(inputs.before, inputs.tso, inputs.config.retention_days)
    return [_recoverable_builder(inputs, each) for each in dropped]


def still_recoverable(published: Published, tso: int, days: int) -> list[Recoverable]:
    """Returns the dropped tables whose retention of ``days`` has not ended at ``tso``."""
    oldest = time_of(tso) - timedelta(days=days)
    return [dropped for dropped in published.recoverable if time_of(dropped.dropped_at) >= oldest]


def _recoverable_builder(inputs: PlanningInput, dropped: Recoverable) -> TablePlanBuilder:
    definition = inputs.definitions.get(dropped.stable_id)
    if dropped.version < 0 or definition is None:
        return unknown_table(dropped.name, dropped.dropped_at)
    state = TableState(
        lake_name=definition.lake_name,
        stable_id=dropped.stable_id,
        version=dropped.version,
        applied_tso=dropped.dropped_at,
    )
    builder = TablePlanBuilder(
        name=dropped.name, definition=definition, start=definition, state=state, complete_through=dropped.dropped_at
    )
    builder.dropped_at = dropped.dropped_at
    return builder


def end_table(builder: TablePlanBuilder, ddl: DdlEvent) -> TablePlanBuilder:
    """Ends a table at a DROP, TRUNCATE or replacement, and returns the builder of the recoverable table. The rows of a
    blocked table are unknown."""
    if builder.dropped_at is not None:  # on_drop: keep
        builder.stop = None
        return builder
    if builder.stop is not None or builder.definition is None:
        return unknown_table(builder.name, ddl.commit_ts)
    builder.dropped_at = ddl.commit_ts
    return builder


def unknown_table(name: TableName, dropped_at: int) -> TablePlanBuilder:
    """Returns the builder of a dropped table whose rows are unknown, so that gold cannot restore it. It is kept since
    TiDB finds this table by its DROP, and not an older one of the name."""
    builder = TablePlanBuilder(
        name=name, definition=None, state=None, complete_through=dropped_at, dropped_at=dropped_at
    )
    builder.block(StopReason(kind=StopKind.NOT_IN_GOLD, commit_ts=dropped_at, needs_override=True))
    return builder


def without_rows(dropped: TablePlanBuilder) -> TablePlanBuilder:
    """Returns the builder of the same dropped table, whose rows are unknown from now on."""
    assert dropped.dropped_at is not None
    return unknown_table(dropped.name, dropped.dropped_at)


def recoverable_of(builders: Iterable[TablePlanBuilder], name: TableName) -> list[TablePlanBuilder]:
    """Returns the dropped tables of this name."""
    return [builder for builder in builders if builder.dropped_at is not None and builder.name == name]


def last_recoverable(named: Iterable[TablePlanBuilder]) -> TablePlanBuilder | None:
    """Returns the most recently dropped table; None if there is none. One that was blocked at its DROP and has caught
    up since is kept with its rows (``on_drop: keep``), beside what an earlier window remembered of it."""
    return max(named, key=lambda builder: (builder.dropped_at or 0, builder.definition is not None), default=None)
