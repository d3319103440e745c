"""Numbers as arguments; argparse prints what is wrong with one."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError


def positive(text: str) -> int:
    """A whole number, 1 or more. Raises ArgumentTypeError."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"expected a whole number, 1 or more, found {text!r}")
    return number


def seconds(text: str) -> float:
    """A time to wait: ``10``, ``10s``, ``5m``, ``1h``. Raises ArgumentTypeError."""
    found = re.fullmatch(r"([0-9.]+)([smh]?)", text)
    try:
        number = float(found[1]) * _UNITS[found[2]] if found else math.nan
    except ValueError:
        number = math.nan
    if not 0 <= number <= _UNITS["h"] * 24:
        raise ArgumentTypeError(f"expected a time such as 10s, 5m or 1h, of a day at most, found {text!r}")
    return number


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
