"""Row images of a batch: the entries of Avro's maps, then JSON texts, a table at a time.

An image is a map from column names to values of eight types, its entries in random order (wire.md 1.3.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import orjson
import pyarrow as pa

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout
from ticdc_codec.json_column import joined
from ticdc_codec.number import Bools, Int64s
from ticdc_codec.simple.avro_cursors import ColumnNames, Cursors
from ticdc_codec.simple.avro_values import Tag, Values
from ticdc_codec.simple.schema import layout_with

_NULL = -1
_ABSENT = -2
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
        self._parts: list[tuple[Int64s, ...]] = []
        self._from = 0

    def number_from(self, first: int) -> None:
        """Number the images of the messages from ``first`` on."""
        self._from = first

    def add(self, who: Int64s, *fields: Int64s) -> None:
        """Column, tag, begin of the value, its size or number, begin and size of a TIMESTAMP's location."""
        self._parts.append((who + self._from, *fields))

    def arrays(self, exists: Bools) -> tuple[Int64s, ...]:
        """The entries of images that ``exists`` holds, as arrays: their image, then the fields."""
        empty = np.zeros(0, np.int64)
        arrays = [np.concatenate([empty, *(part[field] for part in self._parts)]) for field in range(_FIELDS)]
        kept = exists[arrays[0]]
        return tuple(arrays) if kept.all() else tuple(array[kept] for array in arrays)


def read_maps(cursors: Cursors, who: Int64s, layouts: Int64s, names: ColumnNames, entries: Entries) -> None:
    """Read the next map of each of ``who``; ``layouts`` are of all messages."""
    left = np.zeros(len(cursors.end), np.int64)
    block_end = np.full(len(cursors.end), -1)
    while len(who := cursors.valid(who)):
        ended = who[left[who] == 0]
        if len(ended):
            _begin_blocks(cursors, ended, left, block_end)
            who = cursors.valid(who[left[who] > 0])
        _read_entries(cursors, who, layouts[who], names, entries)
        left[who] -= 1


def _begin_blocks(cursors: Cursors, who: Int64s, left: Int64s, block_end: Int64s) -> None:
    """Read how many entries follow; a negative count is followed by their size in bytes."""
    at = cursors.at[who]
    expected = block_end[who]
    cursors.mark_malformed(who[(expected >= 0) & (expected != at)])
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
    cursors.mark_malformed(who[many])
    left[who] = np.where(many, 0, counts)


def _read_entries(cursors: Cursors, who: Int64s, layouts: Int64s, names: ColumnNames, entries: Entries) -> None:
    """Read one entry of each."""
    start, size = cursors.sized(who)
    column = names.find(cursors.words, start, size, layouts)

    def unknown(item: int) -> str:
        name = cursors.octets[start[item] : start[item] + min(size[item], 64)].tobytes()
        return f"expected a column of the schema, found {name.decode(errors='replace')!r}"

    cursors.refuse(who, column < 0, "wrong_columns", unknown, start)
    tag = cursors.numbers_to(who, Tag.UNSIGNED_BIGINT)
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


class Images:
    """The images of all messages: ``data`` of message m is number m, and ``old`` number m plus all messages."""

    __slots__ = ("_cells", "_first", "_texts", "_widths", "keys", "number", "shape", "shapes", "texts")

    def __init__(
        self,
        cursors: Cursors,
        layouts: Sequence[Layout],
        names: ColumnNames,
        entries: tuple[Int64s, ...],
        layout: Int64s,
        exists: Bools,
        zone: ZoneInfo,
    ) -> None:
        """``entries`` are of all images (``maps.Entries``), ``layout`` and ``exists`` are of each image."""
        image, message, column = entries[0], entries[0] % (len(layout) // 2), entries[1]
        columns = [each for layout in layouts for each in layout.columns]
        values = Values(cursors, columns, (message, *entries[1:]), zone)
        widths = np.where(exists, np.diff(names.first)[layout], 0) if len(layouts) else np.zeros(len(layout), np.int64)
        self._widths = widths
        """Columns of each one's layout."""
        self._first = np.cumsum(widths) - widths
        """Number of each image's first cell: a cell is a column of an image."""
        cell = self._first[image] + column - names.first[layout[image]]
        _refuse_doubles(cursors, message, cell, lambda entry: columns[column[entry]].name)
        self._cells = np.full(int(widths.sum()), _ABSENT)
        """Number of each cell's text."""
        self._cells[cell] = values.number
        self._texts = values.texts
        self.shapes = [*layouts]
        """Layouts, with the columns that images have."""
        present = np.bincount(image, minlength=len(layout))
        self.shape = self._shapes(cursors, layout, _whole(cursors, exists), widths, present)
        """Number of each image's layout in ``shapes``."""
        self.number = np.full(len(layout), _NULL)
        """Number of each image's text and key in ``texts`` and ``keys``, -1 of one that is not there."""
        self.texts, self.keys = self._lay_out(_whole(cursors, exists))

    def texts_of(self, image: int) -> list[str | None] | None:
        """One image's texts in the order of its columns."""
        number = int(self.number[image])
        return None if number == _NULL else [*orjson.loads(self.texts[number].as_py()).values()]

    def _shapes(self, cursors: Cursors, layout: Int64s, exists: Bools, widths: Int64s, present: Int64s) -> Int64s:
        shape = layout.copy()
        found: dict[tuple[int, bytes], int | DecodeError] = {}
        for image in np.flatnonzero(exists & (present < widths)).tolist():
            first = int(self._first[image])
            has = self._cells[first : first + int(widths[image])] != _ABSENT
            key = (int(layout[image]), has.tobytes())
            number = found.get(key)
            if number is None:
                number = found[key] = self._shape_with(key[0], has)
            if isinstance(number, DecodeError):
                cursors.fail(image % (len(layout) // 2), number)
            else:
                shape[image] = number
        return shape

    def _shape_with(self, layout: int, has: Bools) -> int | DecodeError:
        names = [column.name for column, there in zip(self.shapes[layout].columns, has, strict=True) if there]
        try:
            self.shapes.append(layout_with(self.shapes[layout], frozenset(names)))
        except DecodeError as error:
            return error
        return len(self.shapes) - 1

    def _lay_out(self, exists: Bools) -> tuple[pa.Array, pa.Array]:
        """Images and handle keys as JSON texts, those of one shape together."""
        texts, keys, total = [], [], 0
        some = np.flatnonzero(exists)
        order = some[np.argsort(self.shape[some], kind="stable")]
        for images in np.split(order, np.flatnonzero(np.diff(self.shape[order])) + 1):
            if len(images):
                self.number[images] = np.arange(total, total + len(images))
                total += len(images)
                text, key = self._objects(images)
                texts.append(text)
                keys.append(key)
        if not texts:
            return pa.nulls(0, pa.string()), pa.nulls(0, pa.string())
        return pa.concat_arrays(texts), pa.concat_arrays(keys)

    def _objects(self, images: Int64s) -> tuple[pa.Array, pa.Array]:
        """Images of one shape, and their handle keys."""
        labels, key = _labels(self.shapes[self.shape[images[0]]])
        cells = self._cells[self._first[images][:, np.newaxis] + np.arange(self._widths[images[0]])]
        # Images of one shape have the same columns.
        columns = [self._column(cell) for cell in cells.T[cells[0] != _ABSENT]]
        if not columns:
            return pa.repeat(pa.scalar("{}"), len(images)), pa.nulls(len(images), pa.string())
        whole = joined("{", zip(labels, columns, strict=True), "}")
        if not key:
            return whole, pa.nulls(len(images), pa.string())
        return whole, joined("[", [("", columns[place]) for place in key], "]")

    def _column(self, texts: Int64s) -> pa.Array:
        missing = texts < 0
        return self._texts.take(pa.array(texts, mask=missing if missing.any() else None))


def _refuse_doubles(cursors: Cursors, message: Int64s, cell: Int64s, name: Callable[[int], str]) -> None:
    """Refuse messages of which an image has a column twice; the arguments are of each entry."""
    twice = np.bincount(cell)[cell] > 1
    at = cursors.begin[message]
    cursors.refuse(message, twice, "duplicate_name", lambda entry: f"expected column {name(entry)} once", at)


def _whole(cursors: Cursors, exists: Bools) -> Bools:
    """The images of messages that have no error."""
    messages = len(exists) // 2
    alive = np.isin(np.arange(messages), cursors.valid(np.arange(messages)))
    return exists & np.tile(alive, 2)


@lru_cache(maxsize=4096)
def _labels(layout: Layout) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """JSON text of each column's name with its colon, and positions of the handle key's columns."""
    names = tuple(orjson.dumps(column.name).decode() + ":" for column in layout.columns)
    return names, tuple(place for place, column in enumerate(layout.columns) if column.key)
