"""Row images in Avro: maps from column names to values of eight types, the entries in random order (wire.md 1.3.2)."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ticdc_codec.number import Bits, Places
from ticdc_codec.simple.avro.cursors import Cursors
from ticdc_codec.simple.avro.names import ColumnNames


class Tag(IntEnum):
    """Type of a value: its number in the union."""

    NULL = 0
    LONG = 1
    FLOAT = 2
    DOUBLE = 3
    STRING = 4
    BYTES = 5
    TIMESTAMP = 6
    UNSIGNED_BIGINT = 7


_SIZES = np.array([{Tag.FLOAT: 4, Tag.DOUBLE: 8}.get(tag, 0) for tag in Tag])
"""Bytes of values of one size."""
_IS_TEXT, _IS_NUMBER, _IS_STAMP = (
    np.array([tag in kinds for tag in Tag])
    for kinds in ({Tag.STRING, Tag.BYTES, Tag.TIMESTAMP}, {Tag.LONG, Tag.UNSIGNED_BIGINT}, {Tag.TIMESTAMP})
)

_LEAST_ENTRY = 2
"""Bytes of an entry: a name's size and a value's type."""
_FIELDS = 7


class Entries:
    """Entries of the maps of images."""

    __slots__ = ("_from", "_parts")

    def __init__(self) -> None:
        self._parts: list[tuple[Places, ...]] = []
        self._from = 0

    def number_from(self, first: int) -> None:
        """Number the images of the messages from ``first`` on."""
        self._from = first

    def add(self, who: Places, *fields: Places) -> None:
        """Column, tag, begin of the value, its size or number, begin and size of a TIMESTAMP's location."""
        self._parts.append((who + self._from, *fields))

    def arrays(self, exists: Bits) -> tuple[Places, ...]:
        """The entries of images that ``exists`` holds, as arrays: their image, then the fields."""
        empty = np.zeros(0, np.int64)
        arrays = [np.concatenate([empty, *(part[field] for part in self._parts)]) for field in range(_FIELDS)]
        kept = exists[arrays[0]]
        return tuple(arrays) if kept.all() else tuple(array[kept] for array in arrays)


def read_maps(cursors: Cursors, who: Places, layouts: Places, names: ColumnNames, entries: Entries) -> None:
    """Read the next map of each of ``who``; ``layouts`` are of all messages."""
    left = np.zeros(len(cursors.end), np.int64)
    block_end = np.full(len(cursors.end), -1)
    while len(who := cursors.living(who)):
        ended = who[left[who] == 0]
        if len(ended):
            _begin_blocks(cursors, ended, left, block_end)
            who = cursors.living(who[left[who] > 0])
        _read_entries(cursors, who, layouts[who], names, entries)
        left[who] -= 1


def _begin_blocks(cursors: Cursors, who: Places, left: Places, block_end: Places) -> None:
    """Read how many entries follow; a negative count is followed by their size in bytes."""
    at = cursors.at[who]
    expected = block_end[who]
    wrong = (expected >= 0) & (expected != at)
    cursors.refuse(who, wrong, "wrong_type", lambda n: f"expected a block of {at[n] - expected[n]} bytes less", at)
    counts = cursors.longs(who)
    negative = counts < 0
    block_end[who] = -1
    if negative.any():
        some = who[negative]
        sizes = cursors.longs(some)
        block_end[some] = np.maximum(cursors.at[some] + sizes, 0)
        counts = np.abs(counts)
    room = cursors.end[who] - cursors.at[who]
    many = (counts > room // _LEAST_ENTRY) | (counts < 0)
    cursors.refuse(who, many, "truncated", lambda n: f"expected {counts[n]} entries in {room[n]} bytes", at)
    left[who] = np.where(many, 0, counts)


def _read_entries(cursors: Cursors, who: Places, layouts: Places, names: ColumnNames, entries: Entries) -> None:
    """Read one entry of each."""
    start, size = cursors.sized(who)
    column = names.find(cursors.words, start, size, layouts)

    def unknown(item: int) -> str:
        name = cursors.octets[start[item] : start[item] + min(size[item], 64)].tobytes()
        return f"expected a column of the schema, found {name.decode(errors='replace')!r}"

    cursors.refuse(who, column < 0, "wrong_columns", unknown, start)
    tag = cursors.numbers_to(who, Tag.UNSIGNED_BIGINT, "a type of value")
    first, second, place, length = np.zeros((4, len(who)), np.int64)
    texts, numbers, stamps = (np.flatnonzero(kind[tag]) for kind in (_IS_TEXT, _IS_NUMBER, _IS_STAMP))
    if len(stamps):
        place[stamps], length[stamps] = cursors.sized(who[stamps])
    first[texts], second[texts] = cursors.sized(who[texts])
    first[numbers] = cursors.at[who[numbers]]
    second[numbers] = cursors.longs(who[numbers])
    fixed = np.flatnonzero(_SIZES[tag])
    if len(fixed):
        first[fixed] = cursors.skip(who[fixed], _SIZES[tag[fixed]])
    entries.add(who, column, tag, first, second, place, length)
