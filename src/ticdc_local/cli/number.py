"""Numbers as arguments; argparse prints what is wrong with one."""

from __future__ import annotations

import math
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
    """A time to wait, 0 or more. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= _DAY:
        raise ArgumentTypeError(f"expected a number of seconds, from 0 to {_DAY}, found {text!r}")
    return number


_DAY = 86_400
