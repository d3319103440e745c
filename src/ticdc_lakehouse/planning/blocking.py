"""Tables that are blocked before a DDL: unless the feed's policy ignores it, and unless an override skips it."""

from __future__ import annotations

from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.table_plan import TablePlanBuilder, unsupported_ddl
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.policy import OnUnsupportedDdl


def unsupported(
    ddl: DdlEvent,
    detail: str,
    *,
    can_skip: bool,
    needs_override: bool = True,
    kind: StopKind = StopKind.UNSUPPORTED_DDL,
) -> StopReason:
    """Returns the reason of a table that is blocked before the DDL (`unsupported_ddl`)."""
    return unsupported_ddl(
        ddl.commit_ts, ddl.query, detail, can_skip=can_skip, needs_override=needs_override, kind=kind
    )


def is_skipped(now: PlanningInput, ddl: DdlEvent, builder: TablePlanBuilder) -> bool:
    """True if an override skips the DDL for the table."""
    return builder.definition is not None and (builder.definition.data, ddl.commit_ts) in now.skipped


def block_unless_ignored(
    now: PlanningInput,
    ddl: DdlEvent,
    builder: TablePlanBuilder,
    reason: str,
    kind: StopKind = StopKind.UNSUPPORTED_DDL,
) -> None:
    """Blocks a table before an unsupported DDL, unless the policy is to ignore it or an override skips it."""
    if now.config.policy(*builder.name).on_unsupported_ddl is OnUnsupportedDdl.IGNORE:
        builder.record_ddl(ddl)
    else:
        block_unless_skipped(now, ddl, builder, reason, kind)


def block_unless_skipped(
    now: PlanningInput,
    ddl: DdlEvent,
    builder: TablePlanBuilder,
    reason: str,
    kind: StopKind = StopKind.UNSUPPORTED_DDL,
) -> None:
    """Blocks a table before a DDL, unless an override skips it."""
    if is_skipped(now, ddl, builder):
        builder.record_ddl(ddl)
    else:
        builder.block(unsupported(ddl, reason, can_skip=builder.definition is not None, kind=kind))
