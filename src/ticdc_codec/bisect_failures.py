"""Rows added all at once; only where that fails, halves of them, until the faulty row is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ticdc_codec.errors import DecodeError
from ticdc_codec.json_text import Unreadable

_FEW = 8
"""Rows that are no longer halved."""

Row = TypeVar("Row")


def add_by_halves(
    rows: Sequence[Row], add_all: Callable[[Sequence[Row]], bool], add_one: Callable[[Row], object]
) -> None:
    """Add rows in their order. ``add_all`` adds all of them or none: it gives False, or raises DecodeError or one of
    ``Unreadable``, where it cannot. The rows that are left over go to ``add_one``, which words the fault."""
    try:
        if add_all(rows):
            return
    except (DecodeError, *Unreadable):
        pass
    if len(rows) > _FEW:
        half = len(rows) // 2
        add_by_halves(rows[:half], add_all, add_one)
        add_by_halves(rows[half:], add_all, add_one)
    else:
        for row in rows:
            add_one(row)
