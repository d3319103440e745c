"""Column names of many tables, found by the bytes that lie in messages: for a batch in a few numpy calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ticdc_codec.event import Layout
from ticdc_codec.number import Numbers, Places, words_of

_WORD = 8
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class ColumnNames:
    """The columns of some layouts, numbered through."""

    __slots__ = ("_hashes", "_longest", "_order", "_owner", "_sizes", "_starts", "_words", "first")

    def __init__(self, layouts: Sequence[Layout]) -> None:
        names = [column.name.encode() for layout in layouts for column in layout.columns]
        counts = [len(layout.columns) for layout in layouts]
        self.first: Places = np.array([0, *accumulate(counts)], np.int64)
        """Number of each layout's first column, and of all columns."""
        self._sizes = np.array([*map(len, names)], np.int64)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._longest = int(self._sizes.max(initial=0))
        self._owner = np.repeat(np.arange(len(layouts)), counts)
        content = b"".join([*names, bytes(_WORD)])
        self._words = words_of(content)
        hashes = _hashes(self._words, self._starts, self._sizes, self._owner)
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]

    def find(self, words: Numbers, starts: Places, sizes: Places, layouts: Places) -> Places:
        """Numbers of the columns of these layouts that are named by ``sizes`` bytes at ``starts``; -1 for none.

        ``words`` are the eight bytes from each place on.
        """
        if not len(self._hashes):
            return np.full(len(starts), -1)
        known = np.where(sizes <= self._longest, sizes, 0)
        places = np.searchsorted(self._hashes, _hashes(words, starts, known, layouts))
        column = self._order[np.minimum(places, len(self._hashes) - 1)]
        same = (self._sizes[column] == sizes) & (self._owner[column] == layouts)
        for at in range(0, int(known.max(initial=0)), _WORD):
            some = np.flatnonzero(same & (known > at))
            mask = _MASKS[np.minimum(known[some] - at, _WORD)]
            theirs, ours = words[starts[some] + at], self._words[self._starts[column[some]] + at]
            same[some] = (theirs ^ ours) & mask == 0
        return np.where(same, column, -1)


def _hashes(words: Numbers, starts: Places, sizes: Places, salt: Places) -> Numbers:
    hashes = (salt * 257 + sizes).astype(np.uint64) * _PRIME
    for at in range(0, int(sizes.max(initial=0)), _WORD):
        some = np.flatnonzero(sizes > at)
        word = words[starts[some] + at] & _MASKS[np.minimum(sizes[some] - at, _WORD)]
        mixed = (hashes[some] ^ word) * _PRIME
        hashes[some] = mixed ^ (mixed >> _SHIFT)
    return hashes
