"""Plan builders of the published tables: from which commit_ts, and as what, each goes on in a window."""

from __future__ import annotations

from dataclasses import replace

from ticdc_lakehouse.planning.blocking import lacks_former_rows
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.stop_reason import StopKind
from ticdc_lakehouse.planning.table_plan import TablePlanBuilder
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import names_of


def published_builder(inputs: PlanningInput, name: TableName, state: TableState) -> TablePlanBuilder:
    """A builder for a published table, under its name at ``applied_tso``."""
    definition = inputs.known.get(state.data)
    if definition is not None:
        name = definition.table.name
    builder = TablePlanBuilder(name=name, definition=definition, start=definition, state=state, after=state.applied_tso)
    builder.seen = (state.applied_tso, state.ddls)
    if state.stop is not None and state.stop.kind is StopKind.AWAITS_ROWS:
        builder.awaits_rows = state.stop
    late = inputs.late.get(name)
    if late is not None and late.tso >= state.applied_tso:  # what came late lies above it, and is taken as usual
        late = None
    keeps_reason = late is None or late.stop.kind is not StopKind.LATE_DDL or state.dropped
    if state.stop is not None and keeps_reason and (state.stop.needs_override or lacks_former_rows(builder, state)):
        builder.named_until = inputs.before.tso if definition is None else 0
        builder.block(replace(state.stop, needs_override=True))
        builder.dropped_at = state.applied_tso if state.dropped else None
    elif late is not None:
        changed = 0 if definition is None else definition.since
        # A resumed table goes on from what came late; rows before its last DDL cannot be merged again.
        builder.after = state.applied_tso if late.tso < changed else late.tso
        builder.seen = (0, ())
        builder.block(late.stop)
    elif (missed := _missed_ddl(inputs, builder)) is not None:
        builder.after, builder.seen = missed, (0, ())
    return builder


def _missed_ddl(inputs: PlanningInput, builder: TablePlanBuilder) -> int | None:
    """commit_ts of the first replayed DDL that a table lacks: its rows after the DDL do not fit, and no later DDL
    changed it. The table goes on from there. A table that went on without a dismissed DDL is left as it is."""
    state, definition = builder.state, builder.definition
    if state is None or state.stop is None or state.stop.kind is not StopKind.INCOMPATIBLE_ROWS:
        return None
    first = 0 if definition is None else max(definition.commit_ts, definition.named_at)
    named = (d for d in inputs.window.ddls if d.replayed and any(builder.name in names_of(s) for s in d.statements))
    return min((d.commit_ts for d in named if first <= d.commit_ts < state.applied_tso), default=None)
