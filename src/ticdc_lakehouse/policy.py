"""Settings of a feed's gold tables: what a feed file may choose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

RETENTION_DAYS, SHORTEST_RETENTION = 30, 7
"""Days for which a state of gold stays readable after the next one; Delta keeps no less than a week."""

NAME_TEMPLATE = "{feed}_{database}_{table}"
"""Default name of a table in the lake."""
SCHEMA_TEMPLATE = ""
"""By default tables and views are in their layers' schemas."""


class Mode(StrEnum):
    """Which changes gold applies."""

    WATERMARKS = "watermarks"
    """Changes up to TiCDC's watermark, window by window: after each, all tables are as TiDB held them at one TSO."""
    EVENTUAL = "eventual"
    """Changes that have arrived; the newest commit of each key wins. For feeds without watermarks: tables have no
    common TSO."""


class Views(StrEnum):
    """What analysts read of gold."""

    PINNED = "pinned"
    """Views, pinned to the published watermark."""
    NONE = "none"
    """The live tables themselves."""


class OnDrop(StrEnum):
    """What happens to a table that TiDB dropped."""

    DROP = "drop"
    """It is dropped from gold; `as_of` reads it at earlier TSOs."""
    KEEP = "keep"
    """It stays, marked as dropped, until another table has its name."""


class OnUnsupportedDdl(StrEnum):
    """What happens to a table whose DDL cannot be followed."""

    BLOCK = "block"
    """It is blocked at its last correct state."""
    IGNORE = "ignore"
    """The DDL is skipped. The table is blocked where rows no longer fit its columns, and before a DDL that can be
    followed except for some stored values."""


class OnIrregular(StrEnum):
    """How irregular values are shown: zero and partial dates, which Spark's types do not have."""

    NULL = "null"
    """As NULL; column `_ticdc_irregular` holds the exact text, and ops counts them."""
    TEXT = "text"
    """DATE, DATETIME and TIMESTAMP columns hold MySQL's texts."""
    BLOCK = "block"
    """Their table is blocked before the first of them."""


class OnHandleKeyOnly(StrEnum):
    """What happens to a row that was too large for a message, which holds its handle key columns only."""

    BLOCK = "block"
    """Its table is blocked before it."""
    NULL = "null"
    """Its other columns are NULL until a whole image comes."""
    SOURCE = "source"
    """It is read from TiDB as it was at its commit_ts."""


class OnComputedDefault(StrEnum):
    """What old rows get from an ADD COLUMN whose DEFAULT only TiDB computed: one value, which no message carries."""

    BLOCK = "block"
    """Their table is blocked before the DDL."""
    LEARN = "learn"
    """NULL, marked as pending, until a change of an old row shows the value."""
    ESTIMATE = "estimate"
    """The commit's time, marked as an estimate, until a change of an old row shows the value; NULL where the value is
    no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings of one table."""

    on_drop: OnDrop = OnDrop.DROP
    on_unsupported_ddl: OnUnsupportedDdl = OnUnsupportedDdl.BLOCK
    on_irregular: OnIrregular = OnIrregular.NULL
    on_computed_default: OnComputedDefault = OnComputedDefault.LEARN
    on_handle_key_only: OnHandleKeyOnly = OnHandleKeyOnly.BLOCK
