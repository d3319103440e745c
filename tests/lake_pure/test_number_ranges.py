"""Ranges that hold some numbers: few, and not much larger than the numbers need."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ticdc_lakehouse.sql.number_ranges import ranges, ranges_sql


def test_neighbours_share_a_range() -> None:
    assert ranges([7, 1, 3, 2, 7]) == [(1, 3), (7, 7)]
    assert ranges_sql(ranges([7, 1, 3, 2, 7])) == "batch BETWEEN 1 AND 3 OR batch BETWEEN 7 AND 7"


def test_no_numbers_are_in_no_range() -> None:
    assert ranges_sql(ranges([])) == "false"


def test_of_many_numbers_the_widest_gaps_stay_out() -> None:
    found = ranges([*range(0, 200, 2), 1_000, *range(2_000, 2_100, 2)])
    assert len(found) == 32
    assert (1_000, 1_000) in found


@given(st.sets(st.integers(0, 500)))
def test_ranges_are_in_order_and_hold_every_number(numbers: set[int]) -> None:
    found = ranges(numbers)
    assert numbers <= {number for first, last in found for number in range(first, last + 1)}
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(found))
    assert {end for each in found for end in each} <= numbers
