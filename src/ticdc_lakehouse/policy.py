"""What a feed's file may say about its gold tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

RETENTION_DAYS, SHORTEST_RETENTION = 30, 7
"""For how many days a state of gold stays readable after the next one; Delta takes no less than a week."""

NAME_TEMPLATE = "{feed}_{database}_{table}"
"""The name of a table in the lake, where the feed's file gives no other."""


class Mode(StrEnum):
    """How gold knows what to apply."""

    WATERMARKS = "watermarks"
    """Windows that TiCDC's watermarks say are complete: at each, all tables are as they were in TiDB."""
    EVENTUAL = "eventual"
    """What has arrived, the newest commit of each key winning: for feeds without watermarks. No consistent cut."""


class Views(StrEnum):
    """What analysts query in schema gold."""

    PINNED = "pinned"
    """A view of each table, pinned to the published watermark."""
    NONE = "none"
    """The live tables themselves."""


class OnDrop(StrEnum):
    """What becomes of a table that TiDB dropped."""

    DROP = "drop"
    """It goes from gold too; as of a TSO before that it stays readable."""
    KEEP = "keep"
    """It stays as it was, and says that it was dropped, until another table takes its name."""


class OnUnsupportedDdl(StrEnum):
    """What becomes of a table whose DDL cannot be followed."""

    STOP = "stop"
    """It stands still at its last right state."""
    IGNORE = "ignore"
    """It goes on as if there had been no DDL. It stops where rows no longer fit its columns, and before a DDL that is
    followed but for some stored value."""


class OnIrregular(StrEnum):
    """What becomes of dates that Spark's types do not have: zero and partial ones."""

    NULL = "null"
    """NULL in their column; the exact text is kept beside it, and ops counts them."""
    TEXT = "text"
    """DATE, DATETIME and TIMESTAMP columns are shown as MySQL's texts."""
    STOP = "stop"
    """Their table stands still before the first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a feed's file says of its tables."""

    on_drop: OnDrop = OnDrop.DROP
    on_unsupported_ddl: OnUnsupportedDdl = OnUnsupportedDdl.STOP
    on_irregular: OnIrregular = OnIrregular.NULL
