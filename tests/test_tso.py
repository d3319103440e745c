"""TSO arithmetic."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ticdc_codec.tso import MAX_TSO, first_of, milliseconds, time_of, with_time


@pytest.mark.parametrize(
    ("tso", "ms", "time"),
    [
        (0, 0, datetime(1970, 1, 1, tzinfo=UTC)),
        (470613126917390336, 1795246608419, datetime(2026, 11, 21, 7, 36, 48, 419000, tzinfo=UTC)),
        ((1 << 18) - 1, 0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1 << 18, 1, datetime(1970, 1, 1, microsecond=1000, tzinfo=UTC)),
    ],
)
def test_upper_bits_of_a_tso_are_milliseconds(tso: int, ms: int, time: datetime) -> None:
    assert milliseconds(tso) == ms
    assert time_of(tso) == time
    assert milliseconds(first_of(ms)) == ms
    assert first_of(ms) <= tso < first_of(ms + 1)


def test_a_tso_for_people_has_its_time() -> None:
    assert with_time(470613126917390336) == "470613126917390336 (2026-11-21 07:36:48.419 UTC)"


def test_largest_tso_has_a_time() -> None:
    assert time_of(MAX_TSO).year == 3084
