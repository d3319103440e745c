"""Local times that are two instants: where a time zone's clocks were turned back.

Dumpling writes TIMESTAMPs in its session's zone without the offset, so that two of them may have one text.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from ticdc_lakehouse.sql.text import literal

_FIRST, _DAYS = datetime(1970, 1, 1, tzinfo=UTC), 24_856
"""The range of a TIMESTAMP: up to 2038-01-19."""


@lru_cache
def turned_back(zone: str) -> tuple[int, ...]:
    """Returns by how many seconds the clocks of a zone were turned back, each number once.

    >>> turned_back("America/New_York"), turned_back("UTC")
    ((3600,), ())
    """
    moments = (_FIRST + timedelta(days=day) for day in range(_DAYS))
    offsets = [moment.astimezone(ZoneInfo(zone)).utcoffset() or timedelta() for moment in moments]
    turns = {int((one - other).total_seconds()) for one, other in pairwise(offsets) if one > other}
    return tuple(sorted(turns))


def is_ambiguous_sql(timestamp: str, zone: str) -> str:
    """Returns the SQL condition that an instant's local time in a zone is that of another instant, too; ``false`` for a
    zone without such times."""
    local = f"from_utc_timestamp({timestamp}, {literal(zone)})"
    others = (
        f"from_utc_timestamp({timestamp} + make_interval(0, 0, 0, 0, 0, 0, {seconds}), {literal(zone)})"
        for turn in turned_back(zone)
        for seconds in (turn, -turn)
    )
    return " OR ".join((*(f"{other} = {local}" for other in others), "false"))
