"""A place in each of many Avro messages: one field of all of them is read at a time.

A message that fails keeps its first error and is read on as if nothing had been, until its reader leaves it out
(``living``): so a field costs a few numpy calls, whatever is wrong in whichever message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_codec.errors import DecodeError
from ticdc_codec.number import LONGEST, PAD, Bits, Places, uvarints_at, words_of, zigzags


class Cursors:
    """``who`` are numbers of messages, in ascending order; what is given back has one entry for each of them."""

    __slots__ = ("_failed", "at", "begin", "buffer", "end", "errors", "octets", "words")

    def __init__(self, values: Sequence[bytes], start: int) -> None:
        sizes = np.array([*map(len, values)], np.int64)
        self.buffer = pa.py_buffer(b"".join([*values, bytes(PAD)]))
        self.octets: npt.NDArray[np.uint8] = np.frombuffer(self.buffer, np.uint8)
        self.words = words_of(self.buffer)
        """The eight bytes from each place on."""
        self.end: Places = np.cumsum(sizes)
        self.begin: Places = self.end - sizes
        self.at: Places = self.begin + start
        self.errors: dict[int, DecodeError] = {}
        """The first error of each message that has one."""
        self._failed = np.zeros(len(values), bool)

    def living(self, who: Places) -> Places:
        """Those that have no error yet."""
        return who[~self._failed[who]] if self.errors else who

    def refuse(self, who: Places, bad: Bits, reason: str, detail: Callable[[int], str], at: Places) -> None:
        """Note an error for the ``bad`` ones of ``who``; ``detail`` makes its words from a place in ``who``."""
        if not bad.any():
            return
        for item in np.flatnonzero(bad).tolist():
            message = int(who[item])
            if message not in self.errors:
                offset = int(at[item] - self.begin[message])
                self.fail(message, DecodeError(reason, detail(item), offset=offset))
        self.at[who[bad]] = self.begin[who[bad]]

    def fail(self, message: int, error: DecodeError) -> None:
        """Note an error for one message."""
        self.errors.setdefault(message, error)
        self._failed[message] = True
        self.at[message] = self.begin[message]

    def longs(self, who: Places) -> Places:
        """The next number, with its sign."""
        start = self.at[who]
        numbers, after = uvarints_at(self.words, start)
        self._move(who, start, after, "a number")
        return zigzags(numbers)

    def _move(self, who: Places, start: Places, after: Places, what: str) -> None:
        self.at[who] = after
        end = self.end[who]
        bad = (after > end) | (after < start)
        if bad.any():
            large = (after < 0) & (start + LONGEST <= end)
            self.refuse(who, large, "out_of_range", lambda _: f"expected {what} of at most 64 bits", start)
            self.refuse(who, bad, "truncated", lambda _: f"expected {what}, the message ends", start)

    def skip(self, who: Places, size: int | Places) -> Places:
        """Where the next ``size`` bytes begin."""
        start: Places = self.at[who]
        self._move(who, start, start + size, "a value of some bytes")
        return start

    def sized(self, who: Places) -> tuple[Places, Places]:
        """Begin and size of the next string or bytes."""
        before = self.at[who]
        size = self.longs(who)
        start = self.at[who]
        bad = (size < 0) | (size > self.end[who] - start)
        if bad.any():
            detail = "expected a text of {} bytes, {} are left"
            self.refuse(who, bad, "truncated", lambda n: detail.format(size[n], self.end[who[n]] - start[n]), before)
            start, size = np.where(bad, 0, start), np.where(bad, 0, size)
        self.at[who] += size
        return start, size

    def numbers_to(self, who: Places, most: int, what: str) -> Places:
        """The next enum's or union's number, 0 to ``most``."""
        start = self.at[who]
        numbers = self.longs(who)
        bad = (numbers < 0) | (numbers > most)
        self.refuse(who, bad, "wrong_type", lambda n: f"expected {what} 0 to {most}, found {numbers[n]}", start)
        valid: Places = np.where(bad, 0, numbers)
        return valid

    def optionals(self, who: Places) -> Places:
        """Those of whom the next union is not null."""
        some: Places = who[self.numbers_to(who, 1, "a type of a union") == 1]
        return some

    def booleans(self, who: Places) -> Bits:
        """The next boolean."""
        start = self.skip(who, 1)
        octets = self.octets[start]
        self.refuse(who, octets > 1, "wrong_type", lambda n: f"expected 0 or 1, found {octets[n]}", start)
        return np.equal(octets, 1)

    def finish(self, who: Places) -> None:
        """Refuse those of whom bytes are left."""
        left = self.end[who] - self.at[who]
        self.refuse(
            who, left > 0, "trailing_bytes", lambda n: f"expected the end, {left[n]} bytes are left", self.at[who]
        )
