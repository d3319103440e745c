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

from ticdc_codec.event import Layout, key_positions
from ticdc_codec.json_text import joined
from ticdc_codec.number import Bools, Int64s
from ticdc_codec.simple.avro_cursors import ColumnNames, Cursors
from ticdc_codec.simple.avro_values import Tag, Values
from ticdc_codec.simple.schema import layout_with

_NULL = -1
_ABSENT = -2
_SIZES = np.array([{Tag.FLOAT: 4, Tag.DOUBLE: 8}.get(tag, 0) for tag in Tag])
"""Bytes of values of one size."""
_IS_TEXT, _IS_NUMBER, _IS_TIMESTAMP = (
    np.array([tag in kinds for tag in Tag])
    for kinds in ({Tag.STRING, Tag.BYTES, Tag.TIMESTAMP}, {Tag.LONG, Tag.UNSIGNED_BIGINT}, {Tag.TIMESTAMP})
)

_LEAST_ENTRY = 2
"""Bytes of an entry: a name's size and a value's type."""
_FIELDS = 7


class Entries:
    """Entries of the maps of images, as parts that are read one after another."""

    __slots__ = ("_from", "_parts")

    def __init__(self) -> None:
        self._parts: list[tuple[Int64s, ...]] = []
        self._from = 0

    def number_from(self, first: int) -> None:
        """Numbers the images that follow from ``first`` on."""
        self._from = first

    def add(self, messages: Int64s, *fields: Int64s) -> None:
        """Adds one entry of each message.

        Fields: column, tag, begin of the value, its size or the number itself, begin and size of a location.
        """
        self._parts.append((messages + self._from, *fields))

    def arrays(self, exists: Bools) -> tuple[Int64s, ...]:
        """Returns the entries of existing images as seven arrays: the entry's image, then the fields of ``add``."""
        empty = np.zeros(0, np.int64)
        arrays = [np.concatenate([empty, *(part[field] for part in self._parts)]) for field in range(_FIELDS)]
        valid = exists[arrays[0]]
        return tuple(arrays) if valid.all() else tuple(array[valid] for array in arrays)


def read_maps(cursors: Cursors, messages: Int64s, layouts: Int64s, names: ColumnNames, entries: Entries) -> None:
    """Reads the next map of each message, one entry of all of them at a time.

    ``layouts`` has the layout's index of each message.
    """
    # left[m]: unread entries of message m's block. block_end[m]: where the block ends, -1 if it has no size.
    # more[m]: how many entries its map may still have. Reading one of each message is a pass over the batch.
    left = np.zeros(len(cursors.end), np.int64)
    more = np.diff(names.first)[layouts] if len(names.first) > 1 else np.zeros_like(layouts)
    block_end = np.full(len(cursors.end), -1)
    while len(messages := cursors.valid(messages)):
        ended = messages[left[messages] == 0]
        if len(ended):
            _begin_blocks(cursors, ended, left, block_end)
            messages = cursors.valid(messages[left[messages] > 0])
        _read_entries(cursors, messages, layouts[messages], names, entries)
        left[messages] -= 1
        more[messages] -= 1
        cursors.mark_malformed(messages[more[messages] < 0])


def _begin_blocks(cursors: Cursors, messages: Int64s, left: Int64s, block_end: Int64s) -> None:
    """Reads the count of a block's entries; a negative count is followed by the block's size (wire.md 1.3.2)."""
    at = cursors.at[messages]
    expected = block_end[messages]
    cursors.mark_malformed(messages[(expected >= 0) & (expected != at)])
    counts = cursors.longs(messages)
    negative = counts < 0
    block_end[messages] = -1
    if negative.any():
        with_size = messages[negative]
        sizes = cursors.longs(with_size)
        block_end[with_size] = np.maximum(cursors.at[with_size] + sizes, 0)
        counts = np.abs(counts)
    room = cursors.end[messages] - cursors.at[messages]
    many = (counts > room // _LEAST_ENTRY) | (counts < 0)
    cursors.mark_malformed(messages[many])
    left[messages] = np.where(many, 0, counts)


def _read_entries(cursors: Cursors, messages: Int64s, layouts: Int64s, names: ColumnNames, entries: Entries) -> None:
    """Reads one entry of each message: name, tag and value."""
    start, size = cursors.sized(messages)
    column = names.find(cursors.words, start, size, layouts)

    def unknown(item: int) -> str:
        name = cursors.octets[start[item] : start[item] + min(size[item], 64)].tobytes()
        return f"expected a column of the schema, found {name.decode(errors='replace')!r}"

    cursors.refuse(messages, column < 0, "wrong_columns", unknown, start)
    tag = cursors.numbers_to(messages, Tag.UNSIGNED_BIGINT)
    # first, second, location, location_size: fields of Entries.add for each message, 0 where a tag has none. Values
    # of each kind are read together: timestamps have a location before their text.
    first, second, location, location_size = np.zeros((4, len(messages)), np.int64)
    texts, numbers, timestamps = (np.flatnonzero(kind[tag]) for kind in (_IS_TEXT, _IS_NUMBER, _IS_TIMESTAMP))
    if len(timestamps):
        location[timestamps], location_size[timestamps] = cursors.sized(messages[timestamps])
    first[texts], second[texts] = cursors.sized(messages[texts])
    first[numbers] = cursors.at[messages[numbers]]
    second[numbers] = cursors.longs(messages[numbers])
    fixed = np.flatnonzero(_SIZES[tag])
    if len(fixed):
        first[fixed] = cursors.skip(messages[fixed], _SIZES[tag[fixed]])
    entries.add(messages, column, tag, first, second, location, location_size)


class Images:
    """The images of all messages: ``data`` of message m is number m, and ``old`` number m plus all messages.

    ``layout_index`` has each image's index in ``layouts_found``, ``number`` its index in ``texts`` and ``keys``, -1 for
    no image. A cell is one column of one image.
    """

    __slots__ = ("_cells", "_first", "_texts", "_widths", "keys", "layout_index", "layouts_found", "number", "texts")

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
        """Takes the ``entries`` of all images (`Entries.arrays`); ``layout`` and ``exists`` have an item for each
        image."""
        image, message, column = entries[0], entries[0] % (len(layout) // 2), entries[1]
        columns = [column for layout in layouts for column in layout.columns]
        values = Values(cursors, columns, (message, *entries[1:]), zone)
        self._widths = np.where(exists, np.diff(names.first)[layout], 0) if layouts else np.zeros_like(layout)
        """Number of columns of each image's layout."""
        self._first = np.cumsum(self._widths) - self._widths  # index of each image's first cell
        cell = self._first[image] + column - names.first[layout[image]]
        _refuse_doubles(cursors, message, cell, lambda entry: columns[column[entry]].name)
        self._cells = np.full(int(self._widths.sum()), _ABSENT)
        """Index of each cell's text in ``_texts``; -1 for NULL, -2 for a column that the image does not have."""
        self._cells[cell] = values.number
        self._texts = values.texts
        self.layouts_found = [*layouts]
        """The layouts, then those with fewer columns, of images that lack some."""
        is_partial = _of_valid_messages(cursors, exists) & (np.bincount(image, minlength=len(layout)) < self._widths)
        self.layout_index = self._layout_indices(layout, is_partial)
        self.number = np.full(len(layout), _NULL)
        self.texts, self.keys = self._lay_out(_of_valid_messages(cursors, exists))

    def texts_of(self, image: int) -> list[str | None] | None:
        """Returns one image's texts in the order of its columns."""
        number = int(self.number[image])
        return None if number == _NULL else [*orjson.loads(self.texts[number].as_py()).values()]

    def _layout_indices(self, layout: Int64s, is_partial: Bools) -> Int64s:
        """Returns the index of each image's layout. ``is_partial`` marks images with fewer entries than their layout
        has columns: without virtual columns, or of handle keys only (wire.md 1.3.6)."""
        layout_index = layout.copy()
        partial_layouts: dict[tuple[int, bytes], int] = {}
        for image in np.flatnonzero(is_partial).tolist():
            first = int(self._first[image])
            has = self._cells[first : first + int(self._widths[image])] != _ABSENT
            key = (int(layout[image]), has.tobytes())
            if key not in partial_layouts:
                partial_layouts[key] = len(self.layouts_found)
                self.layouts_found.append(self._layout_with(key[0], has))
            layout_index[image] = partial_layouts[key]
        return layout_index

    def _layout_with(self, layout: int, has: Bools) -> Layout:
        whole = self.layouts_found[layout]
        names = [column.name for column, has_column in zip(whole.columns, has, strict=True) if has_column]
        return layout_with(whole, frozenset(names))

    def _lay_out(self, exists: Bools) -> tuple[pa.Array, pa.Array]:
        """Returns images and handle keys as JSON texts, those of one layout together."""
        # order: the images that exist, those of one layout together.
        texts, keys, total = [], [], 0
        present = np.flatnonzero(exists)
        order = present[np.argsort(self.layout_index[present], kind="stable")]
        for images in np.split(order, np.flatnonzero(np.diff(self.layout_index[order])) + 1):
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
        """Returns images of one layout as JSON texts, and their handle keys."""
        labels, key = _labels(self.layouts_found[self.layout_index[images[0]]])
        # cells[i, c]: index of the text of column c in image i.
        cells = self._cells[self._first[images][:, np.newaxis] + np.arange(self._widths[images[0]])]
        # Images of one layout have the same columns, so the first one shows which are absent.
        columns = [self._column(cell) for cell in cells.T[cells[0] != _ABSENT]]
        if not columns:
            return pa.repeat(pa.scalar("{}"), len(images)), pa.nulls(len(images), pa.string())
        whole = joined("{", zip(labels, columns, strict=True), "}")
        if not key:
            return whole, pa.nulls(len(images), pa.string())
        return whole, joined("[", [("", columns[position]) for position in key], "]")

    def _column(self, texts: Int64s) -> pa.Array:
        missing = texts < 0
        return self._texts.take(pa.array(texts, mask=missing if missing.any() else None))


def _refuse_doubles(cursors: Cursors, message: Int64s, cell: Int64s, name: Callable[[int], str]) -> None:
    """Refuses messages with an image that has a column twice; ``message`` and ``cell`` have one item for each entry."""
    twice = np.bincount(cell)[cell] > 1
    at = cursors.begin[message]
    cursors.refuse(message, twice, "duplicate_name", lambda entry: f"expected column {name(entry)} once", at)


def _of_valid_messages(cursors: Cursors, exists: Bools) -> Bools:
    """Returns the images of messages that have no error."""
    return exists & np.tile(cursors.are_valid(), 2)


@lru_cache(maxsize=4096)
def _labels(layout: Layout) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Returns the JSON text of each column's name with its colon, and ``key_positions``."""
    names = tuple(orjson.dumps(column.name).decode() + ":" for column in layout.columns)
    return names, key_positions(layout.columns)
