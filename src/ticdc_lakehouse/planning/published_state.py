"""The published state of a feed: each table's state and definition at a watermark."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from ticdc_codec.tso import milliseconds
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName

_SEEN_EARLY_MS = 10_000
"""Up to 331 ms were measured before a DDL's commit_ts; a loaded server takes longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """State of one table at a published watermark."""

    lake_name: str
    """The name of its live table and views."""
    stable_id: str
    """Stable id of its Delta table. TRUNCATE and CREATE TABLE give a new id, RENAME keeps it."""
    version: int
    """Delta version of its data; -1 without a live table."""
    applied_tso: int
    """The table includes every change up to this TSO, which is below the watermark if the table is blocked."""
    ddls: tuple[str, ...] = ()
    """The applied DDLs at exactly ``applied_tso``: duplicates of them may arrive, and other DDLs of that commit_ts."""
    stop: StopReason | None = None
    """Why the table is blocked, or that TiDB dropped it and gold keeps its last rows; None if it follows TiDB."""

    @property
    def shown(self) -> tuple[object, ...]:
        """What the table's views depend on, beside its definition."""
        return self.lake_name, self.stable_id, self.version, self.stop

    @property
    def blocked(self) -> bool:
        """True if the table cannot continue; a kept one (`dropped`) has no changes to continue with."""
        return self.stop is not None and not self.dropped

    @property
    def has_live_table(self) -> bool:
        """True if a live table was made for it: its columns were known."""
        return self.version >= 0

    @property
    def needs_override(self) -> bool:
        """True if the table stays blocked until an override; False if the next run tries again."""
        return self.stop is not None and self.stop.needs_override

    @property
    def overridden(self) -> bool:
        """True if the table waited for an override, and continues by one."""
        waits = (StopKind.UNSUPPORTED_DDL, StopKind.AMBIGUOUS_TABLE, StopKind.LATE_ROWS, StopKind.LATE_DDL)
        return self.stop is not None and self.stop.kind in waits and not self.stop.needs_override

    @property
    def dropped(self) -> bool:
        """True if TiDB dropped the table and gold keeps its last rows (``on_drop: keep``)."""
        return self.stop is not None and self.stop.kind is StopKind.DROPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoverable:
    """A table that TiDB dropped or truncated. RECOVER and FLASHBACK TABLE restore it without sending a row."""

    name: TableName
    """Its name at the DROP."""
    stable_id: str
    version: int
    """Delta version of its rows at the DROP; -1 if they are unknown because the table was blocked."""
    dropped_at: int
    """commit_ts of the DROP or TRUNCATE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The newest published watermark of a feed; all zero before the first."""

    tso: int = 0
    mode: Mode = Mode.WATERMARKS
    time_zone: str | None = field(default=None, compare=False)
    """The feed's ``time_zone``, in which TIMESTAMPs and keys were read; None in a lake of a build that did not keep it,
    which alone is no reason to publish."""
    batch: int = -1
    replays_seen: datetime | None = None
    tables: dict[TableName, TableState] = field(default_factory=dict)
    recoverable: tuple[Recoverable, ...] = ()
    number: int = 0
    """Number of the window that published it: 1, 2, 3 …"""
    base: int = 0
    """Number of the newest window that has the states of all tables."""
    definitions: dict[str, Definition] = field(default_factory=dict)
    """The newest definition of each table, by its stable id."""
    topics: dict[str, frozenset[TableName]] = field(default_factory=dict)
    """By topic, the tables of its row changes and DDLs (`gold.retired_topics.tables_of`) up to the watermark."""

    def definition_of(self, name: TableName) -> Definition | None:
        """Returns the newest definition of the table that has the name; None if none has it, or its columns are
        unknown."""
        return self.definitions.get(self.tables[name].stable_id) if name in self.tables else None


class Origin(StrEnum):
    """What a definition was read from."""

    FILE = "file"
    """The feed's schema_file."""
    DDL = "ddl"
    EXPORT = "export"
    """An export that was loaded."""
    WIRE = "wire"
    """Only row messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A table's definition, the commit_ts since which it holds, its origin, and the table's names in the lake."""

    table: Table
    commit_ts: int
    origin: Origin
    lake_name: str
    """As in `TableState`."""
    stable_id: str
    """As in `TableState`."""
    named_at: int = 0
    """commit_ts of the CREATE, TRUNCATE or RENAME since which rows of this name belong to the table; 0 if always."""
    number: int = 0
    """Number of the window that published it; 0 before publication."""
    run: str = ""
    """The run that published it; empty before publication."""

    @property
    def since(self) -> int:
        """The commit_ts from which on all rows have this definition; 0 if that is not known."""
        return self.commit_ts if self.origin in (Origin.DDL, Origin.EXPORT) else 0

    @property
    def empty_at(self) -> int:
        """The commit_ts at which a new table with this definition has no rows: those of a definition that is inferred
        from rows begin with the first of them."""
        return self.commit_ts - 1 if self.origin is Origin.WIRE else self.commit_ts

    @property
    def mergeable_since(self) -> int:
        """The commit_ts from which on rows under the table's name are its own and have this definition, as far as
        known: those from before may be of another table."""
        return max(self.since, self.named_at)

    def may_include(self, commit_ts: int) -> bool:
        """True if it is of an export that may have the effect of a DDL with this commit_ts: TiDB shows a new schema
        some time before (`schema.repeated_alter`)."""
        after = commit_ts > self.commit_ts
        return self.origin is Origin.EXPORT and after and milliseconds(commit_ts - self.commit_ts) < _SEEN_EARLY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Tables that restart from an export: they replace the published states and definitions, at a TSO below the
    watermark."""

    number: int
    """The newest window when the export was compared with what is published."""
    tables: dict[TableName, TableState]
    definitions: tuple[Definition, ...]
