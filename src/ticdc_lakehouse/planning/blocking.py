"""Tables that are blocked before a DDL: unless the feed's policy ignores it, and unless an override skips it.

Some tables have no columns, since no statement that gold can follow defines them. One that a DDL makes **empty** awaits
its rows: the first ones show its columns, and none is missing. For any other table gold lacks the **former rows**: it
was restored, it was renamed out of what the feed's filter leaves out, a DDL that cannot be read changed it, or it was
renamed while it was blocked. It stays blocked, also when it is resumed, until an export is loaded or TiDB truncates or
drops it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ticdc_lakehouse.planning.plan_builder import TablePlanBuilder
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Origin, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, WayOut, unsupported_ddl
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.policy import OnUnsupportedDdl
from ticdc_lakehouse.schema.change import renumbered, undeclared_retyped
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.key import changes_unique_key
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import AlterTable


def unsupported(ddl: DdlEvent, detail: str, *, can_skip: bool = True, needs_override: bool = True) -> StopReason:
    """Returns the reason of a table that is blocked before the DDL (`unsupported_ddl`)."""
    return unsupported_ddl(ddl.commit_ts, ddl.query, detail, can_skip=can_skip, needs_override=needs_override)


def ambiguous(ddl: DdlEvent, name: TableName) -> StopReason:
    """Returns the reason of several tables that a DDL may mean: it writes ``name`` without its database."""
    stop = unsupported(ddl, f"the text does not say of which database {name.table} is", can_skip=False)
    return replace(stop, kind=StopKind.AMBIGUOUS_TABLE)


def of_wrong_table(ddl: DdlEvent, name: TableName) -> StopReason:
    """Returns the reason of a table that a RENAME seems to have moved out of ``name``, and of the one that has rows
    under that name since: the RENAME is of another table."""
    stop = ambiguous(ddl, name)
    return replace(stop, detail=f"rows follow under {'.'.join(name)}, so gold renamed the wrong table: {stop.detail}")


def is_ambiguous(builder: TablePlanBuilder) -> bool:
    """True if a table is blocked because a DDL may mean another, now or in the published state."""
    return any(stop.kind is StopKind.AMBIGUOUS_TABLE for stop in _stops(builder))


def is_ambiguous_at(builder: TablePlanBuilder, ddl: DdlEvent) -> bool:
    """True if that DDL is this one or came before it: RENAMEs that gold followed before are read again and followed."""
    stops = _stops(builder)
    return any(stop.kind is StopKind.AMBIGUOUS_TABLE and (stop.commit_ts or 0) <= ddl.commit_ts for stop in stops)


def _stops(builder: TablePlanBuilder) -> Iterator[StopReason]:
    """Yields why a table is blocked, now and in the published state."""
    stops = (builder.stop, None if builder.state is None else builder.state.stop)
    yield from (stop for stop in stops if stop is not None)


def is_skipped(inputs: PlanningInput, ddl: DdlEvent, builder: TablePlanBuilder) -> bool:
    """True if an override skips the DDL for the table."""
    return builder.definition is not None and (builder.definition.stable_id, ddl.commit_ts) in inputs.skipped


def block_unless_ignored(inputs: PlanningInput, ddl: DdlEvent, builder: TablePlanBuilder, stop: StopReason) -> None:
    """Blocks a table before an unsupported DDL, unless an override skips it or the policy is to ignore such DDLs. No
    policy ignores a DDL that cannot be skipped, nor one of a table whose columns are unknown."""
    if ignores_unsupported_ddls(inputs, builder) and builder.definition is not None and stop.can_skip:
        skip(ddl, builder)
    else:
        block_unless_skipped(inputs, ddl, builder, _ignorable(stop))


def _ignorable(stop: StopReason) -> StopReason:
    return replace(stop, ways_out=(*stop.ways_out, WayOut.IGNORE_DDLS)) if stop.can_skip else stop


def ignores_unsupported_ddls(inputs: PlanningInput, builder: TablePlanBuilder) -> bool:
    """True if the table's policy is to ignore unsupported DDLs."""
    return inputs.config.policy(*builder.name).on_unsupported_ddl is OnUnsupportedDdl.IGNORE


def block_unless_skipped(inputs: PlanningInput, ddl: DdlEvent, builder: TablePlanBuilder, stop: StopReason) -> None:
    """Blocks a table before a DDL, unless an override skips it. No override skips a DDL that creates the table."""
    if is_skipped(inputs, ddl, builder):
        skip(ddl, builder)
    else:
        builder.block(stop if builder.definition is not None else _not_skippable(stop))


def _not_skippable(stop: StopReason) -> StopReason:
    skipping = (WayOut.SKIP_DDL, WayOut.IGNORE_DDLS)
    return replace(stop, ways_out=tuple(way for way in stop.ways_out if way not in skipping))


def await_rows(ddl: DdlEvent, builder: TablePlanBuilder | None, reason: str) -> None:
    """Lets the first rows of a table that a DDL made show its columns, unless they are known."""
    if builder is not None and builder.definition is None:
        stop = unsupported_ddl(ddl.commit_ts, ddl.query, reason, can_skip=False, needs_override=False)
        builder.awaits_rows_reason = replace(stop, kind=StopKind.AWAITS_ROWS)


def leave_former_rows(ddl: DdlEvent, builder: TablePlanBuilder) -> None:
    """Blocks an undefined table at its RENAME for good if it is blocked already: the next window would look for its
    rows only under its new name, and find those of another table that had this name before."""
    stop = builder.stop
    if builder.definition is None and stop is not None and not stop.of_ddl:
        reason = f"it was blocked before, and its columns are unknown ({stop.cause})"
        builder.stop = unsupported_ddl(ddl.commit_ts, ddl.query, reason, can_skip=False)


def lacks_former_rows(builder: TablePlanBuilder, state: TableState) -> bool:
    """True if only an export has the rows of a published table."""
    return builder.definition is None and state.stop is not None and state.stop.of_ddl


def skip(ddl: DdlEvent, builder: TablePlanBuilder) -> None:
    """Passes over a DDL. One that changes a key leaves the table's keys unknown: rows that name another handle key than
    before block the table then, since each would be a second row. Names that it assigns to the numbers of an ENUM or
    SET apply to the rows that follow. A DDL without which those rows could not be read is not passed over, but blocks
    the table."""
    definition = builder.definition
    if definition is None:
        builder.record_ddl(ddl)
        return
    if builder.stop is not None:  # read again and skipped once the table continues; until then others are the last done
        return
    table = definition.table
    altered = [s for s in ddl.statements if isinstance(s, AlterTable)]
    keys = None if any(changes_unique_key(table, s) for s in altered) else table.keys
    for statement in altered:
        table = renumbered(table, statement)
    if (reason := _unreadable(definition.table, table, altered)) is not None:
        builder.block(unsupported(ddl, reason, can_skip=False))
        return
    builder.record_ddl(ddl)
    if table != definition.table:
        definition = replace(definition, table=table, commit_ts=ddl.commit_ts, origin=Origin.DDL)
    if keys != table.keys:
        definition = replace(definition, table=replace(table, keys=keys))
    if definition != builder.definition:
        builder.define(definition)


def _unreadable(before: Table, after: Table, skipped: Iterable[AlterTable]) -> str | None:
    """Returns why rows that follow skipped statements could not be read; None if they can."""
    renumbered_key = (c.name for c in after.columns if c.name in after.key and c not in before.columns)
    if (name := next(renumbered_key, None)) is not None:
        return f"key column `{name}`: its numbers get other names, and stored keys have the former ones"
    retyped = filter(None, (undeclared_retyped(before, statement) for statement in skipped))
    if (name := next(retyped, None)) is not None:
        return f"column `{name}` gets another type, and messages do not say by which one its values are written"
    return None
