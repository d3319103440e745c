"""A position in each of many Avro messages: one field of all of them is read at a time.

A message that fails is marked and read on from its begin, until its reader leaves it out (``valid``): so a field costs
a few numpy calls, also where messages are wrong. What a value means is checked where it is read, with a reason
(``refuse``). A message whose bytes are not what the schema says is only marked (``mark_malformed``);
``avro_schema.check`` reads it again and names the fault and its position. Where it finds none, an image has more values
than its table has columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout
from ticdc_codec.number import PAD, Bools, Int64s, UInt64s, uvarints_at, words_of, zigzags
from ticdc_codec.simple.avro_schema import check

_WORD = 8
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class Cursors:
    """``messages`` are indices of messages, ascending; a method that reads returns one item for each of them."""

    __slots__ = ("_any_failed", "_failed", "at", "begin", "buffer", "end", "errors", "octets", "words")

    def __init__(self, values: Sequence[bytes], start: int) -> None:
        sizes = np.array([*map(len, values)], np.int64)
        self.buffer = pa.py_buffer(b"".join([*values, bytes(PAD)]))
        self.octets: npt.NDArray[np.uint8] = np.frombuffer(self.buffer, np.uint8)
        self.words = words_of(self.buffer)
        """The eight bytes from each position on."""
        # begin[m], end[m], at[m]: offsets in octets of message m's first byte, of the byte after it, of the next field.
        self.end: Int64s = np.cumsum(sizes)
        self.begin: Int64s = self.end - sizes
        self.at: Int64s = self.begin + start
        self.errors: dict[int, DecodeError] = {}
        """The first error of each message that has one; ``name_faults`` adds those of malformed messages."""
        self._failed = np.zeros(len(values), bool)
        self._any_failed = False

    def valid(self, messages: Int64s) -> Int64s:
        """Returns the messages that have not failed."""
        return messages[~self._failed[messages]] if self._any_failed else messages

    def are_valid(self) -> Bools:
        """Returns of all messages whether they have not failed."""
        return ~self._failed

    def all_valid(self) -> Int64s:
        """Returns all messages that have not failed."""
        return np.flatnonzero(~self._failed)

    def refuse(self, messages: Int64s, bad: Bools, reason: str, detail: Callable[[int], str], at: Int64s) -> None:
        """Notes an error for the ``bad`` ones of the messages; ``detail`` makes its text from a position in
        ``messages``."""
        for item in np.flatnonzero(bad).tolist():
            message = int(messages[item])
            if not self._failed[message]:
                self.fail(message, DecodeError(reason, detail(item), offset=int(at[item] - self.begin[message])))

    def fail(self, message: int, error: DecodeError) -> None:
        """Notes an error for one message."""
        self.errors.setdefault(message, error)
        self.mark_malformed(np.array([message]))

    def mark_malformed(self, messages: Int64s) -> None:
        """Marks messages that do not follow the schema."""
        if len(messages):
            self._failed[messages] = True
            self._any_failed = True
            self.at[messages] = self.begin[messages]

    def name_faults(self, values: Sequence[bytes]) -> None:
        """Adds the errors of the messages that were marked without one."""
        for message in np.flatnonzero(self._failed).tolist():
            if message not in self.errors:
                self.errors[message] = _fault(values[message])

    def longs(self, messages: Int64s) -> Int64s:
        """Reads the next number, with its sign."""
        numbers, after = uvarints_at(self.words, self.at[messages])
        self._move(messages, after)
        return zigzags(numbers)

    def _move(self, messages: Int64s, after: Int64s) -> None:
        # after[i] is -1 for a number of more than 64 bits, and wraps below 0 for a size that no message has.
        bad = (after > self.end[messages]) | (after < self.at[messages])
        self.at[messages] = after
        if bad.any():
            self.mark_malformed(messages[bad])

    def skip(self, messages: Int64s, size: int | Int64s) -> Int64s:
        """Returns where the next ``size`` bytes begin."""
        start: Int64s = self.at[messages]
        self._move(messages, start + size)
        return start

    def sized(self, messages: Int64s) -> tuple[Int64s, Int64s]:
        """Returns begin and size of the next string or bytes."""
        # size[i], start[i]: of the string of messages[i]; 0 where it would run over the message's end.
        size = self.longs(messages)
        start = self.at[messages]
        bad = (size < 0) | (size > self.end[messages] - start)
        if bad.any():
            self.mark_malformed(messages[bad])
            start, size = np.where(bad, 0, start), np.where(bad, 0, size)
        self.at[messages] += size
        return start, size

    def numbers_to(self, messages: Int64s, most: int) -> Int64s:
        """Reads the next enum's or union's number, 0 to ``most``."""
        numbers = self.longs(messages)
        bad = (numbers < 0) | (numbers > most)
        if bad.any():
            self.mark_malformed(messages[bad])
        valid: Int64s = np.where(bad, 0, numbers)
        return valid

    def optionals(self, messages: Int64s) -> Int64s:
        """Returns the messages whose next union is not null."""
        present: Int64s = messages[self.numbers_to(messages, 1) == 1]
        return present

    def booleans(self, messages: Int64s) -> Bools:
        """Reads the next boolean."""
        octets = self.octets[self.skip(messages, 1)]
        self.mark_malformed(messages[octets > 1])
        return np.equal(octets, 1)

    def finish(self, messages: Int64s) -> None:
        """Marks the messages with bytes after their last field."""
        self.mark_malformed(messages[self.at[messages] < self.end[messages]])


def _fault(value: bytes) -> DecodeError:
    try:
        check(value)
    except DecodeError as error:
        return error
    return DecodeError("duplicate_name", "expected each column of an image once, found more values than columns")


class ColumnNames:
    """The columns of some layouts, numbered through, found by the bytes of their names in a few numpy calls."""

    __slots__ = ("_hashes", "_longest", "_order", "_owner", "_sizes", "_starts", "_words", "first")

    def __init__(self, layouts: Sequence[Layout]) -> None:
        names = [column.name.encode() for layout in layouts for column in layout.columns]
        counts = [len(layout.columns) for layout in layouts]
        self.first: Int64s = np.array([0, *accumulate(counts)], np.int64)
        """Index of each layout's first column; the last item is the number of all columns."""
        self._sizes = np.array([*map(len, names)], np.int64)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._longest = int(self._sizes.max(initial=0))
        self._owner = np.repeat(np.arange(len(layouts)), counts)
        content = b"".join([*names, bytes(_WORD)])
        self._words = words_of(content)
        hashes = _hashes(self._words, self._starts, self._sizes, self._owner)
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]

    def find(self, words: UInt64s, starts: Int64s, sizes: Int64s, layouts: Int64s) -> Int64s:
        """Returns indices of the columns of these layouts that are named by ``sizes`` bytes at ``starts``; -1 for none.

        ``words`` are the eight bytes from each position on.
        """
        if not len(self._hashes):
            return np.full(len(starts), -1)
        # column[n]: the column with the same hash as name n, compared word by word below.
        known = np.where(sizes <= self._longest, sizes, 0)
        positions = np.searchsorted(self._hashes, _hashes(words, starts, known, layouts))
        column = self._order[np.minimum(positions, len(self._hashes) - 1)]
        same = (self._sizes[column] == sizes) & (self._owner[column] == layouts)
        for at in range(0, int(known.max(initial=0)), _WORD):
            candidates = np.flatnonzero(same & (known > at))
            mask = _MASKS[np.minimum(known[candidates] - at, _WORD)]
            theirs, ours = words[starts[candidates] + at], self._words[self._starts[column[candidates]] + at]
            same[candidates] = (theirs ^ ours) & mask == 0
        return np.where(same, column, -1)


# hashes[n]: of name n's bytes, eight in each step, mixed with the layout: equal names of two tables are two.
def _hashes(words: UInt64s, starts: Int64s, sizes: Int64s, salt: Int64s) -> UInt64s:
    hashes = (salt * 257 + sizes).astype(np.uint64) * _PRIME
    for at in range(0, int(sizes.max(initial=0)), _WORD):
        longer = np.flatnonzero(sizes > at)
        word = words[starts[longer] + at] & _MASKS[np.minimum(sizes[longer] - at, _WORD)]
        mixed = (hashes[longer] ^ word) * _PRIME
        hashes[longer] = mixed ^ (mixed >> _SHIFT)
    return hashes
