"""What gold has published of a feed: each table's state and definition at a watermark."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """How one table stands at a published watermark."""

    name: str
    """The name of its views."""
    data: str
    """The Delta table of its rows. Another one after TRUNCATE or a new CREATE TABLE; the same after RENAME."""
    version: int
    """Delta version of its data."""
    applied_tso: int
    """Every change up to here is in; below the watermark if the table is blocked."""
    ddls: tuple[str, ...] = ()
    """The DDLs at exactly ``applied_tso`` that are in: they may come again, and others of that commit_ts may follow."""
    stop: StopReason | None = None
    """Why it is blocked, None if it is not."""

    @property
    def needs_override(self) -> bool:
        """Whether it is blocked until a person decides; False if the next run tries again."""
        return self.stop is not None and self.stop.needs_override

    @property
    def dropped(self) -> bool:
        """Whether TiDB has dropped it, and gold keeps what it was."""
        return self.stop is not None and self.stop.kind is StopKind.DROPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoverable:
    """A table that TiDB dropped or truncated: RECOVER and FLASHBACK TABLE bring it back, and send no row."""

    name: TableName
    """The name that it had then."""
    data: str
    version: int
    """Its rows at that moment; -1 if they are not known, since it was blocked."""
    dropped_at: int
    """commit_ts of the DROP or TRUNCATE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The newest published watermark of a feed; all zero before the first."""

    tso: int = 0
    mode: Mode = Mode.WATERMARKS
    batch: int = -1
    replays_seen: datetime | None = None
    tables: dict[TableName, TableState] = field(default_factory=dict)
    recoverable: tuple[Recoverable, ...] = ()
    number: int = 0
    """Of the window that published it: 1, 2, 3 …"""
    base: int = 0
    """Number of the newest window that has the states of all tables."""
    definitions: dict[str, Definition] = field(default_factory=dict)
    """The newest definition of each of these tables, by the Delta table of its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A table's definition, since when and from where, and the table's places in the lake."""

    table: Table
    commit_ts: int
    source: str
    """``file``, ``ddl`` or ``wire``."""
    name: str
    """As in `TableState`."""
    data: str
    """As in `TableState`."""
    named_at: int = 0
    """commit_ts of the CREATE, TRUNCATE or RENAME since which the rows of this name are its own; 0 if always."""
    number: int = 0
    """Of the window that published it; 0 before."""
    run: str = ""
    """The run that published it; empty before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Tables that begin anew in the middle, out of an export: as if they had been published so, with these definitions,
    at a TSO below the watermark."""

    tables: dict[TableName, TableState]
    definitions: tuple[Definition, ...]
