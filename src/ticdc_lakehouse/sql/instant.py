"""SQL of instants from local times, as TiDB takes them (`ticdc_codec.local_time`). Spark takes the earlier of two."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from ticdc_lakehouse.sql.text import literal

_FIRST, _DAYS = datetime(1970, 1, 1, tzinfo=UTC), 24_856
"""The range of a TIMESTAMP: up to 2038-01-19."""


@cache
def _offsets(zone: str) -> frozenset[tuple[timedelta, timedelta]]:
    """Returns a zone's offsets before and after each time its clocks were set back."""
    instants = (_FIRST + timedelta(days=day) for day in range(_DAYS))
    offsets = [instant.astimezone(ZoneInfo(zone)).utcoffset() or timedelta() for instant in instants]
    return frozenset((before, after) for before, after in pairwise(offsets) if before > after)


def backward_shifts(zone: str) -> tuple[int, ...]:
    """Returns by how many seconds the clocks of a zone were set back, each number once.

    >>> backward_shifts("America/New_York"), backward_shifts("UTC")
    ((3600,), ())
    """
    return tuple(sorted({int((before - after).total_seconds()) for before, after in _offsets(zone)}))


def instant_sql(text: str, zone: str) -> str:
    """Returns SQL of the TIMESTAMP whose local time in a zone a text is; NULL if it is none."""
    earlier = f"try_cast(concat({text}, {literal(' ' + zone)}) AS TIMESTAMP)"
    if all(after < timedelta() for _, after in _offsets(zone)):  # so TiDB takes the earlier one, too
        return earlier
    branches = (_later_sql(earlier, seconds, literal(zone)) for seconds in backward_shifts(zone))
    return f"CASE {' '.join(branches)} ELSE {earlier} END"


def _later_sql(earlier: str, seconds: int, zone: str) -> str:
    later = f"timestampadd(SECOND, {seconds}, {earlier})"
    local = f"from_utc_timestamp({later}, {zone})"
    return f"WHEN from_utc_timestamp({earlier}, {zone}) = {local} AND {local} >= {later} THEN {later}"


def is_own_sql(utc: str, zone: str) -> str:
    """Returns the SQL condition that the local time of an instant (TIMESTAMP_NTZ in UTC) is read as this instant."""
    local, others = _local_sql(utc, zone), ["false"]
    for seconds in backward_shifts(zone):
        later, earlier = (f"timestampadd(SECOND, {shift}, {utc})" for shift in (seconds, -seconds))
        others.append(f"{_local_sql(later, zone)} = {local} AND {local} >= {later}")
        others.append(f"{_local_sql(earlier, zone)} = {local} AND {local} < {utc}")
    return f"NOT ({' OR '.join(others)})"


def _local_sql(utc: str, zone: str) -> str:
    return f"convert_timezone('UTC', {literal(zone)}, {utc})"


def is_ambiguous_sql(timestamp: str, zone: str) -> str:
    """Returns the SQL condition that an instant's local time in a zone is that of another instant, too; ``false`` for a
    zone without such times."""
    local = f"from_utc_timestamp({timestamp}, {literal(zone)})"
    others = (
        f"from_utc_timestamp(timestampadd(SECOND, {sign}{seconds}, {timestamp}), {literal(zone)})"
        for seconds in backward_shifts(zone)
        for sign in ("", "-")
    )
    return " OR ".join((*(f"{other} = {local}" for other in others), "false"))
