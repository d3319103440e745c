"""ADD COLUMN with a DEFAULT whose value the text does not show.

TiDB gives all old rows one value, of the moment at which the statement ran or in the zone of its session, and TiCDC
sends neither; only Simple has the value of a constant. What gold does is a policy (`OnComputedDefault`);
docs/computed-defaults.md describes it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from ticdc_codec.local_time import instant_of, is_own
from ticdc_codec.mysql_type import Family, parse_type
from ticdc_codec.tso import time_of
from ticdc_lakehouse.policy import OnComputedDefault
from ticdc_lakehouse.schema.definition import ColumnDefinition, PendingDefault, Table
from ticdc_lakehouse.schema.literal import stored
from ticdc_lakehouse.schema.statement import Action, AddColumn, AlterTable, Computation, ComputedDefault, Default
from ticdc_lakehouse.schema.unwritten_rows import unknown_origin_default

_SECONDS = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True, kw_only=True)
class OldRows:
    """What decides the value of old rows, beside the statement."""

    policy: OnComputedDefault
    time_zone: str
    """Time zone of the feed, in which TIMESTAMP texts are written."""
    ddl_time_zone: str | None
    """Time zone of the sessions that run DDL; None if it is not known."""
    sent: Mapping[str, str] = field(default_factory=dict)
    """By column, what the DDL's message has (`ticdc_codec.event.Column.default`)."""
    none: bool = False
    """True if the table has no rows, so that no value is needed."""


def with_old_rows(statement: AlterTable, commit_ts: int, old_rows: OldRows) -> AlterTable:
    """Returns the statement with what old rows get in the columns that it adds: a certain value, or one that is
    pending.

    Columns for which the policy is to block, and generated ones, stay as they are.
    """
    actions = tuple(_resolved(action, commit_ts, old_rows) for action in statement.actions)
    return statement if actions == statement.actions else replace(statement, actions=actions)


def _resolved(action: Action, commit_ts: int, old_rows: OldRows) -> Action:
    if not isinstance(action, AddColumn) or action.computed is None:
        return action
    certain = _certain(action.column, action.computed, old_rows)
    if certain is not None:
        return replace(action, default=Default(value=certain), computed=None)
    if action.computed.by is Computation.GENERATED:
        return action
    if old_rows.none:
        column = replace(action.column, origin_default=unknown_origin_default(commit_ts))
        return replace(action, column=column, default=Default(value=None), computed=None)
    if old_rows.policy is OnComputedDefault.BLOCK:
        return action
    estimates = old_rows.policy is OnComputedDefault.ESTIMATE
    value = _estimate(action.column, action.computed, commit_ts, old_rows) if estimates else None
    pending = PendingDefault(name=action.column.name, since=commit_ts, estimated=value is not None)
    column = replace(action.column, pending=pending)
    return replace(action, column=column, default=Default(value=value), computed=None)


def _certain(column: ColumnDefinition, computed: ComputedDefault, old_rows: OldRows) -> str | None:
    """Returns the value that the message has, or that of a TIMESTAMP which is written in a session's zone that is
    known."""
    sent = _sent(column, old_rows)
    if column.type.family is not Family.TIMESTAMP:
        return sent
    text, zone = (computed.local_time, old_rows.ddl_time_zone) if sent is None else (sent, "UTC")
    return None if text is None or zone is None else _in_feed_zone(text, zone, old_rows.time_zone)


def _sent(column: ColumnDefinition, old_rows: OldRows) -> str | None:
    """Returns the DEFAULT that the message has; None also for one that TiDB has not brought into the type's form."""
    sent, kind = old_rows.sent.get(column.name), column.type
    form = parse_type(f"datetime({kind.digits})") if kind.family is Family.TIMESTAMP else kind
    try:
        return sent if sent is not None and sent == stored(sent, form) else None
    except ValueError:
        return None


def _in_feed_zone(text: str, zone: str, feed_zone: str) -> str | None:
    """Returns the text of a TIMESTAMP in the feed's zone; None for a time whose text there is read as another one."""
    try:
        instant = instant_of(datetime.fromisoformat(text[:19]), ZoneInfo(zone))
        local = instant.astimezone(ZoneInfo(feed_zone))
        has_own_text = is_own(instant, local)
    except (ValueError, OverflowError):  # no date of the calendar
        return None
    return f"{local:{_SECONDS}}{text[19:]}" if has_own_text else None


def _estimate(column: ColumnDefinition, computed: ComputedDefault, commit_ts: int, old_rows: OldRows) -> str | None:
    """Returns the commit's time, cut to the column's digits; a TIMESTAMP's text as of the feed's zone. None for any
    other expression."""
    if computed.by is not Computation.CLOCK:
        return computed.local_time
    is_timestamp = column.type.family is Family.TIMESTAMP
    zone = old_rows.time_zone if is_timestamp else old_rows.ddl_time_zone or old_rows.time_zone
    moment = time_of(commit_ts).astimezone(ZoneInfo(zone))
    digits = column.type.digits
    return f"{moment:{_SECONDS}}" + (f".{moment:%f}"[: digits + 1] if digits else "")


def pending_columns(table: Table) -> tuple[ColumnDefinition, ...]:
    """Returns the columns whose value in old rows is not known."""
    return tuple(column for column in table.columns if column.pending is not None)


def pending_defaults(table: Table) -> tuple[PendingDefault, ...]:
    """Returns what is pending of the columns, in their order."""
    return tuple(column.pending for column in table.columns if column.pending is not None)


def settled(table: Table, learned: Collection[PendingDefault]) -> Table:
    """Returns the definition when these values are known."""
    columns = tuple(replace(c, pending=None) if c.pending in learned else c for c in table.columns)
    return table if columns == table.columns else replace(table, columns=columns)


def without_old_rows(table: Table) -> Table:
    """Returns the definition for a table that begins empty."""
    return settled(table, pending_defaults(table))
