"""TSO: TiDB's timestamp. 46 bits of milliseconds since the Unix epoch, then 18 bits of a logical counter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NewType

Tso = NewType("Tso", int)

LOGICAL_BITS = 18
MAX_TSO = Tso((1 << 63) - 1)
"""The largest commit_ts of a row change or DDL."""
MAX_WATERMARK = (1 << 64) - 1
"""The largest watermark: all 64 bits, which is no time that a change could have."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def milliseconds(tso: int) -> int:
    """Returns the physical part: milliseconds since the Unix epoch."""
    return tso >> LOGICAL_BITS


def time_of(tso: int) -> datetime:
    """Returns the physical part as a time in UTC, exact to the millisecond."""
    return _EPOCH + timedelta(milliseconds=milliseconds(tso))


def with_time(tso: int) -> str:
    """Returns a TSO for people: ``470613127470252033 (2026-11-21 07:36:50.528 UTC)``."""
    return f"{tso} ({time_text(tso)})"


def time_text(tso: int) -> str:
    """Returns a TSO's time for people: ``2026-11-21 07:36:50.528 UTC``."""
    time = time_of(tso)
    return f"{time:%Y-%m-%d %H:%M:%S}.{time.microsecond // 1000:03} UTC"


def first_of(milliseconds_since_epoch: int) -> Tso:
    """Returns the smallest TSO of this millisecond."""
    return Tso(milliseconds_since_epoch << LOGICAL_BITS)
