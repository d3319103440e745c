"""The instant of a local time, as TiDB and TiCDC take it.

Where clocks are set back, an hour of local times comes twice, and Go's ``time.Date`` decides: both are written in Go.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo


def instant_of(local: datetime, zone: ZoneInfo) -> datetime:
    """Returns the instant, in UTC, of a local time without zone. Of two, the one whose offset the zone has when it is
    that time in UTC: the later one from Greenwich eastward, the earlier one west of it.

    Raises OverflowError near the first and the last year.

    >>> [instant_of(datetime(2024, *at), ZoneInfo(zone)).strftime("%H:%M")
    ...  for zone, at in (("Europe/Berlin", (10, 27, 2, 30)), ("America/New_York", (11, 3, 1, 30)))]
    ['01:30', '05:30']
    """
    as_utc = local.replace(tzinfo=UTC)
    instant = as_utc - (as_utc.astimezone(zone).utcoffset() or timedelta())
    if instant.astimezone(zone).replace(tzinfo=UTC) == as_utc:
        return instant
    return local.replace(tzinfo=zone).astimezone(UTC)


def is_own(instant: datetime, local: datetime) -> bool:
    """True if ``local``, the local time of an instant in a zone, is read as this instant there."""
    assert isinstance(local.tzinfo, ZoneInfo)
    return instant_of(local.replace(tzinfo=None, fold=0), local.tzinfo) == instant


def is_ambiguous(instant: datetime, zone: ZoneInfo) -> bool:
    """True if the local time of an instant in a zone is that of another instant, too.

    >>> [is_ambiguous(datetime(2024, 10, 27, hour, 30, tzinfo=UTC), ZoneInfo("Europe/Berlin")) for hour in range(3)]
    [True, True, False]
    """
    local = instant.astimezone(zone)
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
