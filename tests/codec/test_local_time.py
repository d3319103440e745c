"""Where clocks are set back, a local time is two instants; TiDB takes one of them (tests/tidb/test_local_times.py)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ticdc_codec.local_time import instant_of, is_ambiguous, is_own

TWICE = [
    ("Europe/Berlin", "2024-10-27 02:30:00", "2024-10-27 01:30:00"),
    ("Europe/London", "2024-10-27 01:30:00", "2024-10-27 01:30:00"),
    ("Asia/Shanghai", "1991-09-15 01:30:00", "1991-09-14 17:30:00"),
    ("Australia/Lord_Howe", "2024-04-07 01:45:00", "2024-04-06 15:15:00"),
    ("Pacific/Apia", "2013-04-07 03:30:00", "2013-04-06 14:30:00"),
    ("Pacific/Apia", "2011-04-02 03:30:00", "2011-04-02 13:30:00"),
    ("Atlantic/Azores", "2024-10-27 00:30:00", "2024-10-27 00:30:00"),
    ("America/New_York", "2024-11-03 01:30:00", "2024-11-03 05:30:00"),
    ("America/St_Johns", "2024-11-03 01:15:00", "2024-11-03 03:45:00"),
]
"""(zone, local time, the instant in UTC that TiDB takes)."""


@pytest.mark.parametrize(("zone", "text", "utc"), TWICE)
def test_of_two_instants_it_is_the_one_that_tidb_takes(zone: str, text: str, utc: str) -> None:
    local = datetime.fromisoformat(text)
    instant = instant_of(local, ZoneInfo(zone))
    assert instant == datetime.fromisoformat(utc).replace(tzinfo=UTC)
    both = {local.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC) for fold in (0, 1)}
    assert len(both) == 2
    assert all(is_ambiguous(each, ZoneInfo(zone)) for each in both)
    assert not any(is_ambiguous(each + sign * timedelta(hours=2), ZoneInfo(zone)) for each in both for sign in (1, -1))
    assert [each for each in both if is_own(each, each.astimezone(ZoneInfo(zone)))] == [instant]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "Europe/Berlin", "America/New_York"])
def test_other_local_times_are_one_instant(zone: str) -> None:
    for month in range(1, 13):
        instant = datetime(2024, month, 15, 12, tzinfo=UTC)
        local = instant.astimezone(ZoneInfo(zone))
        assert instant_of(local.replace(tzinfo=None), ZoneInfo(zone)) == instant
        assert is_own(instant, local)
        assert not is_ambiguous(instant, ZoneInfo(zone))
