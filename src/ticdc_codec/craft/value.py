"""Column values of a whole batch at once: bytes to the texts of ``event``, then to images and handle keys.

The values of all rows and tables are numbered through in wire order; those of one encoding are read in one pass.
Source: wire.md 1.1.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate, islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ticdc_codec.craft.frame import MessageBatch
from ticdc_codec.craft.group import ColumnGroups, GroupLayout, ValueEncoding
from ticdc_codec.event import Column
from ticdc_codec.json_text import digits_of, escaped, joined, not_utf8, slices_of
from ticdc_codec.number import PAD, Int64s, UInt64s, uvarints_at, zigzags
from ticdc_codec.number_text import shortest_texts

_NULL_LENGTH = -1
_MAX_LENGTH = (1 << 31) - 1
_MAX_LENGTH_BYTES = 5


class ValueReader:
    """The values of a batch's column groups. Methods raise RefusedError with all messages that fail at one check."""

    def __init__(self, messages: MessageBatch, groups: ColumnGroups) -> None:
        self._messages = messages
        self._groups = groups
        self._octets = messages.octets
        begins = messages.begins[groups.message]
        counts = np.array([len(layout.encodings) for layout in groups.layouts])[groups.layout_index]
        self._first = np.cumsum(counts) - counts
        """Index of each group's first value."""
        self._group = np.repeat(np.arange(len(counts)), counts)
        """Group of each value."""
        self._lengths, at = self._read_lengths(counts, groups.values + begins)
        self._starts = self._lay_out(at, groups.end + begins)

    def _read_lengths(self, counts: Int64s, at: Int64s) -> tuple[Int64s, Int64s]:
        """Returns the values' lengths (-1 for NULL), and where each group's values begin in octets."""
        # numbers[v]: zigzag of value v's length. at[g]: where group g's next length begins. Each pass reads a column.
        numbers = np.empty(len(self._group), np.uint64)
        at = at.copy()
        for column in range(int(counts.max())):
            chosen = np.flatnonzero(counts > column)
            numbers[self._first[chosen] + column], at[chosen] = self._next_lengths(at[chosen])
        end = self._groups.end + self._messages.begins[self._groups.message]
        self._refuse_groups(at > end, "truncated", "lengths run over the end of their group", at - end)
        lengths = zigzags(numbers)
        bad = (lengths < _NULL_LENGTH) | (lengths > _MAX_LENGTH)
        group = self._group
        self._messages.refuse(
            bad,
            "out_of_range",
            self._groups.message[group],
            self._groups.values[group],
            "a length of -1 to 2^31 - 1",
            lengths,
        )
        return lengths, at

    def _next_lengths(self, at: Int64s) -> tuple[UInt64s, Int64s]:
        """Returns the uvarints at ``at`` and the positions after them. One of more than five bytes is a length too
        large."""
        at = np.minimum(at, len(self._octets) - PAD)
        numbers, after = uvarints_at(self._messages.words, at)
        long = (after < at) | (after > at + _MAX_LENGTH_BYTES)
        numbers[long], after[long] = np.iinfo(np.uint64).max, at[long] + _MAX_LENGTH_BYTES
        return numbers, after

    def _lay_out(self, starts: Int64s, ends: Int64s) -> Int64s:
        """Returns where each value begins in octets; a group's values must end where its size says (wire.md 1.1.2)."""
        # before[v]: bytes of all values before value v. offsets[g]: what turns it into a position for group g's values.
        sizes = np.maximum(self._lengths, 0)
        before = np.cumsum(sizes) - sizes
        offsets = starts - before[self._first]
        value_ends = np.append(before[self._first[1:]], before[-1] + sizes[-1]) + offsets
        self._refuse_groups(value_ends > ends, "truncated", "values run over the end of their group", value_ends - ends)
        self._refuse_groups(
            value_ends < ends, "trailing_bytes", "values miss the end of their group", ends - value_ends
        )
        laid: Int64s = before + offsets[self._group]
        return laid

    def _refuse_groups(self, bad: npt.NDArray[np.bool_], reason: str, what: str, found: Int64s) -> None:
        groups = self._groups
        self._messages.refuse(
            bad, reason, groups.message, groups.values, lambda group: f"{what} by {found[group]} bytes"
        )

    def _read_columns(self, parts: list[Int64s]) -> Iterator[pa.Array]:
        """Returns the JSON string contents of each column, layout by layout; ``parts`` are the groups of each layout.

        Columns of one encoding are read together, one after the other.
        """
        encodings = np.frombuffer(b"".join([layout.encodings for layout in self._groups.layouts]), np.uint8)
        columns = [
            self._first[groups] + number
            for layout, groups in zip(self._groups.layouts, parts, strict=True)
            for number in range(len(layout.encodings))
        ]
        contents: dict[int, pa.Array] = {}
        for encoding in np.unique(encodings).tolist():
            numbers = np.flatnonzero(encodings == encoding).tolist()
            texts = self._read(ValueEncoding(encoding), np.concatenate([columns[number] for number in numbers]))
            ends = accumulate(len(columns[number]) for number in numbers)
            for number, end in zip(numbers, ends, strict=True):
                size = len(columns[number])
                contents[number] = texts.slice(end - size, size)
        return iter([contents[number] for number in range(len(columns))])

    def _read(self, encoding: ValueEncoding, chosen: Int64s) -> pa.Array:
        """Returns the texts of the ``chosen`` values, which have one encoding; null for NULL."""
        # given[i]: whether chosen value i is not NULL. position[i]: its index among those that are given.
        given = self._lengths[chosen] >= 0
        if given.all():
            return _READERS[encoding](self, chosen)
        if not given.any():
            return pa.nulls(len(chosen), pa.string())
        position = pa.array(np.cumsum(given) - 1, mask=~given)
        return _READERS[encoding](self, chosen[given]).take(position)

    def _name(self, value: int) -> str:
        group = int(self._group[value])
        layout = self._groups.layouts[self._groups.layout_index[group]]
        column: Column = layout.event_layout.columns[value - int(self._first[group])]
        return column.name

    def _refuse_chosen(self, bad: npt.NDArray[np.bool_], chosen: Int64s, wanted: str) -> None:
        """Refuses the messages of the ``bad`` ones of the ``chosen`` values."""
        message = self._groups.message[self._group[chosen]]

        def detail(item: int) -> str:
            value = int(chosen[item])
            start, size = int(self._starts[value]), int(self._lengths[value])
            found = self._octets[start : start + min(size, 32)].tobytes().hex(" ")
            return f"column {self._name(value)}: expected {wanted}, found {size} bytes {found}"

        at = self._starts[chosen] - self._messages.begins[message]
        self._messages.refuse(bad, "bad_value", message, at, detail)

    def _uvarints(self, chosen: Int64s) -> UInt64s:
        # numbers[i], after[i]: the number in chosen value i, and the position after it.
        starts = self._starts[chosen]
        numbers, after = uvarints_at(self._messages.words, starts)
        self._refuse_chosen(after != starts + self._lengths[chosen], chosen, "one number")
        return numbers

    def unsigned(self, chosen: Int64s) -> pa.Array:
        """Returns uvarints as texts."""
        return pa.array(self._uvarints(chosen)).cast(pa.string())

    def signed(self, chosen: Int64s) -> pa.Array:
        """Returns zigzag varints as texts."""
        return pa.array(zigzags(self._uvarints(chosen))).cast(pa.string())

    def years(self, chosen: Int64s) -> pa.Array:
        """Returns years as texts of four digits."""
        # Zigzag, although YEAR has the flag UNSIGNED (wire.md 1.1.3).
        years = zigzags(self._uvarints(chosen))
        self._refuse_chosen((years < 0) | (years > 9999), chosen, "a year of four digits")
        return pc.utf8_lpad(pa.array(years).cast(pa.string()), 4, "0")

    def _eight_bytes(self, chosen: Int64s) -> npt.NDArray[np.float64]:
        self._refuse_chosen(self._lengths[chosen] != 8, chosen, "8 bytes")
        # octets[i]: the 8 bytes of chosen value i.
        octets = self._octets[self._starts[chosen][:, np.newaxis] + np.arange(8)]
        numbers: npt.NDArray[np.float64] = octets.view("<f8")[:, 0]
        return numbers

    def _float64s(self, chosen: Int64s) -> npt.NDArray[np.float64]:
        """Reads float64s. Refuses NaN and infinity, which JSON and MySQL do not have."""
        numbers = self._eight_bytes(chosen)
        self._refuse_chosen(~np.isfinite(numbers), chosen, "a finite number")
        return numbers

    def doubles(self, chosen: Int64s) -> pa.Array:
        """Returns the shortest texts of float64s."""
        return pa.array(shortest_texts(self._float64s(chosen)), pa.string())

    def floats(self, chosen: Int64s) -> pa.Array:
        """Returns the shortest float32 text where the float64 is one; other numbers, which TiCDC 8.2 writes, keep all
        digits.

        Source: wire.md 8.1.
        """
        return pa.array(_float_texts(self._float64s(chosen)), pa.string())

    def suspect_floats(self, chosen: Int64s) -> pa.Array:
        """Returns the texts of ``floats``, and the eight bytes of a value that is no finite number:
        ``0xfff0000000000000``.

        The message is decoded, as it may hold rows of other tables. Gold refuses the row, and no FLOAT holds the text.
        """
        numbers = self._eight_bytes(chosen)
        finite = np.isfinite(numbers)
        texts = np.empty(len(numbers), object)
        texts[finite] = _float_texts(numbers[finite])
        texts[~finite] = [f"0x{bits:016x}" for bits in numbers[~finite].view("<u8").tolist()]
        return pa.array(texts, pa.string())

    def _slices(self, chosen: Int64s) -> pa.Array:
        """Returns the bytes of the chosen values."""
        everything = slices_of(self._messages.buffer, self._starts, np.maximum(self._lengths, 0))
        return everything.take(pa.array(2 * chosen))

    def texts(self, chosen: Int64s) -> pa.Array:
        """Returns UTF-8 as contents of JSON strings."""
        slices = self._slices(chosen)
        try:
            texts = slices.cast(pa.string())
        except pa.ArrowInvalid:
            self._refuse_chosen(not_utf8(slices), chosen, "UTF-8")
            raise AssertionError("unreachable") from None
        return escaped(texts)

    def binaries(self, chosen: Int64s) -> pa.Array:
        """Returns bytes as hexadecimal digits."""
        return digits_of(self._slices(chosen))

    def nulls(self, chosen: Int64s) -> pa.Array:
        """Refuses every value: columns of this type are always NULL."""
        self._refuse_chosen(np.ones(len(chosen), bool), chosen, "NULL")
        raise AssertionError("unreachable")

    def ignored(self, chosen: Int64s) -> pa.Array:
        """Returns NULL, without reading the bytes."""
        return pa.nulls(len(chosen), pa.string())

    def objects(self) -> tuple[pa.Array, pa.Array]:
        """Returns image and handle key of each group as JSON texts; the key is null where the table has none."""
        layouts, layout = self._groups.layouts, self._groups.layout_index
        # order: groups sorted by layout. parts[l]: the groups of layout l.
        order = np.argsort(layout, kind="stable")
        parts = np.split(order, np.searchsorted(layout[order], np.arange(1, len(layouts))))
        columns = self._read_columns(parts)
        texts = [
            _objects(each, [*islice(columns, len(each.encodings))], len(part))
            for each, part in zip(layouts, parts, strict=True)
        ]
        images, keys = zip(*texts, strict=True)
        if len(texts) == 1:
            return images[0], keys[0]
        back = pa.array(np.argsort(order))
        return pa.concat_arrays(images).take(back), pa.concat_arrays(keys).take(back)


def _float_texts(wide: npt.NDArray[np.float64]) -> npt.NDArray[np.object_]:
    with np.errstate(over="ignore"):
        narrow = wide.astype(np.float32)
    is_narrow = narrow == wide
    texts = np.empty(len(wide), object)
    texts[is_narrow] = shortest_texts(narrow[is_narrow])
    texts[~is_narrow] = shortest_texts(wide[~is_narrow])
    return texts


def _objects(layout: GroupLayout, columns: list[pa.Array], count: int) -> tuple[pa.Array, pa.Array]:
    images = joined("{", zip(layout.names, columns, strict=True), "}")
    if not layout.keys:
        return images, pa.nulls(count, pa.string())
    return images, joined("[", [("", columns[number]) for number in layout.keys], "]")


_READERS: dict[ValueEncoding, Callable[[ValueReader, Int64s], pa.Array]] = {
    ValueEncoding.NULL: ValueReader.nulls,
    ValueEncoding.SIGNED: ValueReader.signed,
    ValueEncoding.UNSIGNED: ValueReader.unsigned,
    ValueEncoding.YEAR: ValueReader.years,
    ValueEncoding.DOUBLE: ValueReader.doubles,
    ValueEncoding.FLOAT: ValueReader.floats,
    ValueEncoding.TEXT: ValueReader.texts,
    ValueEncoding.BINARY: ValueReader.binaries,
    ValueEncoding.IGNORED: ValueReader.ignored,
    ValueEncoding.SUSPECT_FLOAT: ValueReader.suspect_floats,
}
