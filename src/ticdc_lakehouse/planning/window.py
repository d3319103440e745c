"""A window (W_prev, W] of changes, table by table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ticdc_codec.event import Column
from ticdc_lakehouse.planning.stop_reason import StopReason
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import AlterTable, NoChange, Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingPoint:
    """A TSO that a table may not pass, and why."""

    tso: int
    stop: StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """The rows of one table, between two DDLs, that share a description of columns."""

    name: TableName
    """As these rows spell it (wire.md 8.14)."""
    columns: tuple[Column, ...]
    whole: bool
    """Whether the images hold all columns (an insert's or update's ``after``), or may hold the key alone (a delete's
    ``before``)."""
    handle_only: bool
    """Whether the images hold the key alone because the rows were too large."""
    keyed: bool
    """Whether the wire named the key."""
    first: int
    """Smallest commit_ts."""
    last: int
    """Largest commit_ts."""
    rows: int
    replayed: bool = False
    """Whether some were decoded again from quarantine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlEvent:
    """A DDL of the window, once however often it arrived."""

    commit_ts: int
    database: str | None
    table: str | None
    query: str
    statements: tuple[Statement, ...]
    """What it changes; nothing for a view, a comment."""
    topic: str = ""
    """Where it came from; from several, one of them."""
    late: bool = False
    """Whether it came for the first time when newer commits were published (eventual mode: those of other tables)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """All changes of a feed that are not applied yet, up to W."""

    rows: Mapping[TableName, tuple[RowGroup, ...]]
    """In order of their first commit_ts."""
    ddls: tuple[DdlEvent, ...]
    """In commit order, equal commit_ts in the order of arrival. Some may be applied already."""
    replays_seen: datetime | None
    """Newest replay among the events, or as before."""
    row_changes: int


def statements_of(query: str, database: str | None, table: str | None) -> tuple[Statement, ...]:
    """What a DDL changes."""
    read = read_ddl(query, database, table)
    return tuple(s for s in read if s != NoChange() and not (isinstance(s, AlterTable) and not s.actions))
