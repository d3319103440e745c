"""Tables without columns: no statement that gold can follow defines them.

A table that a DDL makes **empty** awaits its rows: the first ones tell its columns, and none is missing. Of any other
table gold lacks the **former rows**: it was restored, it came out of what the feed's filter leaves out, a DDL that
nobody can read changed it, or it was renamed while it was blocked. It stays blocked, also when it is resumed, until an
export is loaded or TiDB truncates or drops it.
"""

from __future__ import annotations

from dataclasses import replace

from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.stop_reason import StopKind
from ticdc_lakehouse.planning.table_plan import TablePlanBuilder, unsupported_ddl
from ticdc_lakehouse.planning.window import DdlEvent


def await_rows(ddl: DdlEvent, builder: TablePlanBuilder | None, reason: str) -> None:
    """Lets the first rows of a table that a DDL made tell its columns, unless they are known."""
    if builder is not None and builder.definition is None:
        stop = unsupported_ddl(ddl.commit_ts, ddl.query, reason, can_skip=False, needs_override=False)
        builder.awaits_rows = replace(stop, kind=StopKind.AWAITS_ROWS)


def leave_former_rows(ddl: DdlEvent, builder: TablePlanBuilder) -> None:
    """Blocks an undefined table at its RENAME for good if it is blocked already: the next window would look for its
    rows under its new name alone, and find those of another table that had this name before."""
    stop = builder.stop
    if builder.definition is None and stop is not None and not stop.of_ddl:
        reason = f"it was blocked before, and its columns are unknown ({stop})"
        builder.stop = unsupported_ddl(ddl.commit_ts, ddl.query, reason, can_skip=False)


def lacks_former_rows(builder: TablePlanBuilder, state: TableState) -> bool:
    """True if only an export tells the rows of a published table."""
    return builder.definition is None and state.stop is not None and state.stop.of_ddl
