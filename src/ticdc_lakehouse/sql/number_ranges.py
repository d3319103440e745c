"""Conditions by which Delta reads only the files that may have one of some numbers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

_MOST_RANGES = 32
"""A query with more is slow to plan; the smallest gaps are included then."""


Range = tuple[int, int]
"""First and last number."""


def ranges(numbers: Iterable[int]) -> list[Range]:
    """Returns the smallest ranges that hold these numbers: 32 at most, in ascending order."""
    ordered = sorted({*numbers})
    gaps = [(low, high) for low, high in pairwise(ordered) if high - low > 1]
    widest = sorted(sorted(gaps, key=lambda gap: gap[0] - gap[1])[: _MOST_RANGES - 1])
    firsts, lasts = [*ordered[:1], *(high for _, high in widest)], [*(low for low, _ in widest), *ordered[-1:]]
    return list(zip(firsts, lasts, strict=True))


def ranges_sql(within: Iterable[Range]) -> str:
    """Returns the SQL condition that ``batch`` is within one of these ranges. Delta skips files by it; for IN it would
    read every file between the smallest number and the largest."""
    return " OR ".join(f"batch BETWEEN {first} AND {last}" for first, last in within) or "false"
