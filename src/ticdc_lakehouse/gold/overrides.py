"""Overrides of blocked tables, each with its reason: rows of ``ops.overrides``.

An override is published as a window of its own, whose number orders it among others.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from uuid import uuid4

from ticdc_codec.errors import ConfigError, listed
from ticdc_codec.tso import with_time
from ticdc_lakehouse.catalog import Lake, Layer, Reader, Values
from ticdc_lakehouse.gold.state import commit_window, published
from ticdc_lakehouse.gold.state_tables import OVERRIDES, WINDOWS, Identity, append, create_tables, values_of
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.schema.names import TableName, by_text, table_named
from ticdc_lakehouse.silver.retention_floor import retention_floor


class OverrideAction(StrEnum):
    """What an override does."""

    SKIP_DDL = "skip-ddl"
    """Skips the DDL at which the table is blocked."""
    RESUME = "resume"
    """Tries again from where it is blocked: after a fix, a new version, a changed setting."""


REPAIR = "repair"
"""The action of an override that ``verify-source --repair`` records: rows were read again from TiDB at commit_ts."""


def override(lake: Lake, feed: str, table: str, action: OverrideAction, reason: str) -> TableState:
    """Records an override for ``database.table``, so that the next run of gold tries it again. Returns the table's
    state before.

    Raises ConfigError for a table that is not blocked, or not by a DDL, for one that TiDB dropped, whose changes since
    are gone or that was repaired since, and if no reason is given.
    """
    if not reason.strip():
        raise ConfigError("reason: expected a text that says why, found none")
    create_tables(lake)
    before = published(lake, feed)
    name, state, stop = blocked_table(lake, feed, before, table, action)
    identity = Identity(feed, before.number + 1, str(uuid4()))
    # A table that the DDL of an index blocks is applied up to an earlier TSO: no row depends on that DDL.
    blocked_at = stop.commit_ts if stop.of_ddl and stop.commit_ts is not None else state.applied_tso
    row = override_row(identity, name, state.stable_id, action, blocked_at, reason, datetime.now(UTC))
    append(lake, OVERRIDES, [row])
    resumed = replace(before, tables={**before.tables, name: replace(state, stop=replace(stop, needs_override=False))})
    commit_window(lake, feed, before, resumed, (), 0, run=identity.run)
    return state


def blocked_table(
    lake: Reader, feed: str, before: Published, table: str, action: OverrideAction
) -> tuple[TableName, TableState, StopReason]:
    """Returns the table ``database.table``, its published state, and why it is blocked. Creates nothing.

    Raises ConfigError as `override`.
    """
    name, state, stop = _blocked(before, feed, table)
    if action is OverrideAction.SKIP_DDL and not stop.of_ddl:
        raise ConfigError(f"feed {feed}: table {name} is not blocked by a DDL: {stop}")
    if action is OverrideAction.SKIP_DDL and not stop.can_skip:
        raise ConfigError(f"feed {feed}: table {name}: skipping the DDL does not help: {stop}")
    if state.dropped:
        raise ConfigError(f"feed {feed}: table {name} is not blocked: {stop}")
    if stop.kind is StopKind.QUARANTINED:
        raise ConfigError(f"feed {feed}: table {name} needs no override; the next run continues after that: {stop}")
    _check_kept(lake, feed, name, state)
    _check_not_repaired(feed, name, state, last_repair(repair_rows(lake, feed), name, {state.stable_id}))
    return name, state, stop


def _check_kept(lake: Reader, feed: str, name: TableName, state: TableState) -> None:
    gone = retention_floor(lake, feed, Layer.SILVER).tso
    if state.applied_tso < gone:
        raise ConfigError(
            f"feed {feed}: table {name} is blocked at {with_time(state.applied_tso)}, and silver no longer has all "
            f"changes up to {with_time(gone)} (silver.retention_days): `ticdc-lake load` an export taken since"
        )


def repair_rows(lake: Reader, feed: str) -> list[Values]:
    """Returns the rows of ``ops.overrides`` of published repairs."""
    return [row for row in _published_overrides(lake, feed) if row["action"] == REPAIR]


def last_repair(rows: Sequence[Values], name: TableName, stable_ids: Set[str]) -> int:
    """Returns the TSO of the last of these repairs of a table with one of these stable ids, which need not be published
    any more; 0 without one. A row without a stable id is of its name."""
    named = [row for row in rows if row.get("data") is None and TableName(row["database"], row["table"]) == name]
    own = [row for row in rows if row.get("data") in stable_ids]
    return max((row["commit_ts"] for row in (*named, *own)), default=0)


def _check_not_repaired(feed: str, name: TableName, state: TableState, repaired: int) -> None:
    """Raises ConfigError if the table was repaired at a later TSO than that at which it is blocked: when its rows are
    merged again, those that the repair removed would come back."""
    if state.applied_tso < repaired:
        raise ConfigError(
            f"feed {feed}: table {name} is blocked at {with_time(state.applied_tso)}, and was repaired from TiDB at "
            f"{with_time(repaired)}: rows that it lost then would come back; `ticdc-lake load` an export taken since"
        )


def override_row(
    identity: Identity,
    name: TableName,
    stable_id: str,
    action: str,
    commit_ts: int,
    reason: str,
    decided_at: datetime,
) -> dict[str, object]:
    """Returns the row of an override; ``action`` is one of `OverrideAction`, or REPAIR. ``stable_id`` is empty for a
    table without columns."""
    return identity.row(
        database=name[0],
        table=name[1],
        data=stable_id or None,
        action=str(action),
        commit_ts=commit_ts,
        reason=reason,
        decided_at=decided_at,
    )


def _blocked(before: Published, feed: str, table: str) -> tuple[TableName, TableState, StopReason]:
    """Returns a table by its name's text (`by_text`), its state, and why it is blocked. Raises ConfigError."""
    name = table_named(table, before.tables)
    if name is None:
        names = listed(by_text(sorted(before.tables)))
        raise ConfigError(f"feed {feed}: table: expected one of {names}, found {table!r}")
    state = before.tables[name]
    if state.stop is None:
        raise ConfigError(f"feed {feed}: table {table} is not blocked")
    return name, state, state.stop


def skipped(lake: Lake, feed: str, before: Published) -> frozenset[tuple[str, int]]:
    """Returns the DDLs to skip: Delta table of the rows, and commit_ts. Looked up only if a table is blocked."""
    blocked = {name: state for name, state in before.tables.items() if state.stop is not None}
    if not blocked:
        return frozenset()
    overrides = [row for row in _published_overrides(lake, feed) if row["action"] != REPAIR]
    newest = {
        (state.stable_id, row["commit_ts"]): row["action"]
        for row in overrides
        for name, state in blocked.items()
        if _is_of(row, name, state)
    }
    return frozenset(ddl for ddl, action in newest.items() if action == OverrideAction.SKIP_DDL.value)


def _is_of(row: Values, name: TableName, state: TableState) -> bool:
    """True if an override is of a published table, whatever its name was then. A row of a build that did not keep the
    stable id, and one of a table without columns, have only that name."""
    stable_id = row.get("data")
    return TableName(row["database"], row["table"]) == name if stable_id is None else stable_id == state.stable_id


def _published_overrides(lake: Reader, feed: str) -> list[Values]:
    """Returns the overrides whose window was published, in the order of its number."""
    rows = values_of(lake, OVERRIDES, feed, "true") if lake.exists(Layer.OPS, OVERRIDES) else []
    if not rows:
        return []
    numbers = ", ".join(str(number) for number in sorted({row["number"] for row in rows}))
    windows = values_of(lake, WINDOWS, feed, f"number IN ({numbers})", "number, run")
    runs = {(row["number"], row["run"]) for row in windows}
    return sorted((row for row in rows if (row["number"], row["run"]) in runs), key=lambda row: int(row["number"]))
