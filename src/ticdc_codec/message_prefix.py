"""What messages of a table begin with: bytes that repeat from row to row, but for a few numbers and the kind of change.

A head that one message has shown is not read again: it is compared, that of many messages in a few calls.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np

# A member's name, or any other string: then no number follows. 18 digits are less than 63 bits.
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*+)"(?::([1-9][0-9]{1,17})(?=[,}]))?+', re.DOTALL)
_ZERO = ord("0")
_NINE = 9
_ANY = 0xFF


class Head:
    """The begin of a JSON text."""

    __slots__ = ("_firsts", "_most", "_octets", "_place", "_powers", "text")

    def __init__(self, text: bytes, number: bytes, others: Collection[bytes], letter: int | None = None) -> None:
        """Numbers vary that are members with one of these names; ``number`` is the one to be read. So does the byte at
        the place ``letter``, if there is one. Raises ValueError if the number is not there, or its text has other than
        2 to 18 digits.
        """
        spans = {found.span(2): found[1] for found in _STRING.finditer(text) if found[1] in {number, *others}}
        spans.pop((-1, -1), None)
        self.text = text
        """As in the message that has shown it."""
        self._octets = np.frombuffer(text, np.uint8).copy()
        self._most = np.zeros(len(text), np.uint8)
        for start, end in spans:
            self._octets[start:end], self._most[start:end] = _ZERO, _NINE
        if letter is not None:
            self._most[letter] = _ANY
        self._firsts = [start for start, _ in spans]
        start, end = next((span for span, name in spans.items() if name == number), (0, 0))
        if start == end:
            raise ValueError(f"expected a number of 2 to 18 digits in {number.decode()}")
        self._place = slice(start, end)
        self._powers = 10 ** np.arange(end - start - 1, -1, -1, dtype=np.int64)

    def numbers(self, values: Sequence[bytes]) -> list[int] | None:
        """The number that each message has; None if one of them begins otherwise."""
        size = len(self.text)
        octets = np.frombuffer(b"".join([value[:size] for value in values]), np.uint8)
        if len(octets) != size * len(values):
            return None
        # What differs from a zero by no more than its four low bits, up to 9, is a digit.
        differences = octets.reshape(-1, size) ^ self._octets
        if (differences > self._most).any() or not differences[:, self._firsts].all():
            return None
        found: list[int] = (differences[:, self._place] @ self._powers).tolist()
        return found
