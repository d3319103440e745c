"""TIMESTAMP texts converted from the time zone that a message names to the feed's (wire.md 1.3.1)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ticdc_codec.errors import DecodeError

_ZERO = "0000-00-00 00:00:00"
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?", re.ASCII)


def in_zone(text: str, location: str, zone: ZoneInfo) -> str:
    """The text of a time in zone ``location``, converted to ``zone``; the zero timestamp is no instant and stays.

    Raises DecodeError for a zone that is not known (``Local``), and for a text that is no instant there or, when clocks
    are set back, two: such a feed has to name TiCDC's zone.
    """
    if location == zone.key or text.startswith(_ZERO):
        return text
    return _text(instant(text, location).astimezone(zone), text)


def instant(text: str, location: str) -> datetime:
    """The one instant that a text of this zone means, in UTC. Raises DecodeError as ``in_zone`` does."""
    zone = _zone(location)
    try:
        local = datetime.fromisoformat(text)
    except ValueError:
        local = datetime.max
    # In its first and last year another zone's time may be none that datetime has; TIMESTAMP has 1970 to 2038.
    if not _TIMESTAMP.fullmatch(text) or not datetime.min.year < local.year < datetime.max.year:
        raise DecodeError("bad_value", f"expected a TIMESTAMP, found {text[:40]!r}")
    first, second = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first != second:
        raise DecodeError("bad_value", f"expected a TIMESTAMP that is one instant in {location}, found {text!r}")
    return first


def utc_text(text: str, location: str) -> str:
    """The text in UTC."""
    return text if text.startswith(_ZERO) else _text(instant(text, location), text)


def _text(moment: datetime, like: str) -> str:
    """As MySQL prints it, with as many fraction digits as ``like``."""
    whole = moment.isoformat(" ", "microseconds")
    return whole[: len(like)] if "." in like else whole[:19]


@lru_cache(maxsize=64)
def _zone(location: str) -> ZoneInfo:
    try:
        return ZoneInfo(location)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise DecodeError("bad_value", f"expected an IANA time zone in location, found {location[:80]!r}") from None
