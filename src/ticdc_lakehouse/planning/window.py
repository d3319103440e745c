"""A window (W_prev, W] of changes, table by table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from ticdc_codec.event import Column
from ticdc_lakehouse.planning.stop_reason import StopReason
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import AlterTable, NoChange, TableStatement

NO_EARLIER_STATE = -1
"""TSO of a `BlockingPoint` where a published table has no state from before left to go back to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingPoint:
    """A TSO at which a table is blocked, and the reason."""

    tso: int
    stop: StopReason
    last: int | None = None
    """Late rows: the largest commit_ts among them; None if it is not known."""


def earliest(points: Iterable[BlockingPoint]) -> BlockingPoint | None:
    """Returns the blocking point with the smallest TSO, the first of several; None if there is none."""
    return min(points, key=attrgetter("tso"), default=None)


def keep_earliest(points: dict[TableName, BlockingPoint], name: TableName, point: BlockingPoint) -> None:
    """Adds a blocking point of a table, unless it has an earlier one."""
    points[name] = min(points.get(name, point), point, key=attrgetter("tso"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRange:
    """Bronze batches (after, through], whose rows mode eventual merges whatever their commit_ts."""

    after: int | None
    """None: all batches from the first on."""
    through: int

    @property
    def rereads_all(self) -> bool:
        """True if it has the rows of earlier windows, too."""
        return self.after is None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """Rows of one table between two DDLs that have the same layout."""

    name: TableName
    """The table's name in the spelling of these rows (wire.md 8.14)."""
    columns: tuple[Column, ...]
    is_upsert: bool
    """True: inserts and updates. False: deletes, of which only the key counts."""
    handle_only: bool
    """True if the images hold only the handle key, because the full rows exceed the message size limit."""
    keyed: bool
    """True if the messages name the key."""
    first: int
    """Smallest commit_ts."""
    last: int
    """Largest commit_ts."""
    rows: int
    replayed: bool = False
    """True if some rows were replayed from quarantine since the published state."""

    @property
    def has_all_columns(self) -> bool:
        """True if they are inserts and updates with all columns."""
        return self.is_upsert and not self.handle_only

    @property
    def has_only_key(self) -> bool:
        """True if they are inserts and updates with only the handle key: the other columns are missing."""
        return self.is_upsert and self.handle_only


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlEvent:
    """A DDL of the window, without duplicates."""

    commit_ts: int
    database: str | None
    table: str | None
    query: str
    statements: tuple[TableStatement, ...]
    """Its changes to tables; empty for a view or a comment."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """By column, the DEFAULTs after it that its message has (`ticdc_codec.event.Column.default`)."""
    topic: str = ""
    """One topic that delivered it."""
    out_of_order: bool = False
    """True if it first arrived after newer commits of other tables were published (eventual mode)."""
    replayed: bool = False
    """True if a replay from quarantine was the first to deliver it, below the published watermark: it had been
    dismissed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """All changes of a feed up to W that are not applied yet."""

    rows: Mapping[TableName, tuple[RowGroup, ...]]
    """Row groups in order of their first commit_ts."""
    ddls: tuple[DdlEvent, ...]
    """DDLs in commit order; equal commit_ts in order of arrival. Some may be applied already."""
    replays_seen: datetime | None
    """Time of the newest replay among the events, or the previous window's value."""
    row_changes: int
    topics: Mapping[str, frozenset[TableName]] = field(default_factory=dict)
    """As in `Published`, of this window."""


def statements_of(query: str, database: str | None, table: str | None) -> tuple[TableStatement, ...]:
    """Returns the changes of a DDL to tables."""
    read = read_ddl(query, database, table)
    changes = (statement for statement in read if not isinstance(statement, NoChange))
    return tuple(each for each in changes if not (isinstance(each, AlterTable) and not each.actions))
