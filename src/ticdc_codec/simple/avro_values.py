"""Values of a batch's Avro images: bytes to the texts of ``event``, those of one type and encoding in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column
from ticdc_codec.json_text import digits_of, escaped, not_utf8, slices_of
from ticdc_codec.mysql_type import Family, parse_type
from ticdc_codec.number import Bools, Int64s
from ticdc_codec.number_text import count_text, numbers_of_names_or_digits, shortest_texts
from ticdc_codec.simple.avro_cursors import Cursors
from ticdc_codec.simple.message import TIMESTAMP_PATTERN, in_zone


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


class ValueEncoding(IntEnum):
    """How a column's values are written in Avro (wire.md 1.3.2)."""

    SIGNED = 0
    UNSIGNED = 1
    """Numbers that a long holds: an int unsigned."""
    BITS = 2
    """All 64 bits of a long: SET, BIT."""
    BIGINT = 3
    """BIGINT UNSIGNED, with a type of its own."""
    YEAR = 4
    FLOAT = 5
    DOUBLE = 6
    TEXT = 7
    BINARY = 8
    TIMESTAMP = 9
    ENUM = 10
    """An index, or before v8.0 a name."""


_ENCODINGS = {
    Family.FLOAT: ValueEncoding.FLOAT,
    Family.DOUBLE: ValueEncoding.DOUBLE,
    Family.YEAR: ValueEncoding.YEAR,
    Family.BINARY: ValueEncoding.BINARY,
    Family.TIMESTAMP: ValueEncoding.TIMESTAMP,
    Family.BIT: ValueEncoding.BITS,
    Family.SET: ValueEncoding.BITS,
    Family.ENUM: ValueEncoding.ENUM,
}


def encoding_of(type_text: str) -> ValueEncoding:
    """Returns how values of a MySQL type are written."""
    kind = parse_type(type_text)
    if kind.family is Family.INTEGER:
        return (
            (ValueEncoding.BIGINT if kind.name == "bigint" else ValueEncoding.UNSIGNED)
            if kind.unsigned
            else ValueEncoding.SIGNED
        )
    return _ENCODINGS.get(kind.family, ValueEncoding.TEXT)


class Values:
    """Entries of images as texts. Messages with a value that its column cannot have are refused."""

    def __init__(self, cursors: Cursors, columns: list[Column], entries: tuple[Int64s, ...], zone: ZoneInfo) -> None:
        self._cursors = cursors
        self._columns = columns
        self._owner, self._column, self._tag, self._first, self._second, self._location, self._location_size = entries
        self._zone = zone
        encodings = np.array([encoding_of(column.type) for column in columns], np.int64)[self._column]
        self.texts, self.number = self._read(encodings)
        """Contents of JSON strings, and the index of each entry's text; -1 for NULL."""

    def _read(self, encodings: Int64s) -> tuple[pa.Array, Int64s]:
        # number[e]: index of entry e's text in the concatenated texts. wrong[e]: no reader takes its tag and encoding.
        number = np.full(len(encodings), -1)
        texts, total = [], 0
        wrong = self._tag != Tag.NULL
        for (tag, encoding), read in _READERS.items():
            chosen = np.flatnonzero((self._tag == tag) & (encodings == encoding))
            if len(chosen):
                wrong[chosen] = False
                texts.append(read(self, chosen).cast(pa.string()))
                number[chosen] = np.arange(total, total + len(chosen))
                total += len(chosen)
        self._refuse_types(wrong)
        return pa.concat_arrays(texts) if texts else pa.array([], pa.string()), number

    def _refuse_types(self, wrong: Bools) -> None:
        def detail(entry: int) -> str:
            column = self._columns[self._column[entry]]
            return f"column {column.name}: expected a value of {column.type}, found {Tag(self._tag[entry]).name}"

        self._cursors.refuse(self._owner, wrong, "wrong_type", detail, self._cursors.begin[self._owner])

    def _refuse(self, bad: Bools, chosen: Int64s, wanted: str, found: Any) -> None:
        """Refuses the messages of the ``bad`` ones of the ``chosen`` entries; ``found`` has an item of each of
        those."""
        self._refuse_for(bad, chosen, lambda item: f"expected {wanted}, found {found[item]}")

    def _refuse_for(self, bad: Bools, chosen: Int64s, cause: Callable[[int], str]) -> None:
        """Refuses the messages of the ``bad`` ones of the ``chosen`` entries, each for its cause."""
        owner = self._owner[chosen]

        def detail(item: int) -> str:
            return f"column {self._columns[self._column[chosen[item]]].name}: {cause(item)}"

        at = np.maximum(self._first[chosen], self._cursors.begin[owner])
        self._cursors.refuse(owner, bad, "bad_value", detail, at)

    def signed(self, chosen: Int64s) -> pa.Array:
        """Returns longs as int64."""
        return pa.array(self._second[chosen])

    def unsigned(self, chosen: Int64s) -> pa.Array:
        """Returns longs that must not be negative, as numbers."""
        numbers = self._second[chosen]
        self._refuse(numbers < 0, chosen, "a number without a sign", numbers)
        return pa.array(numbers)

    def bits(self, chosen: Int64s) -> pa.Array:
        """Returns longs as unsigned numbers of 64 bits."""
        # A long has the 64 bits in two's complement (wire.md 1.3.2).
        return pa.array(self._second[chosen].view(np.uint64))

    def years(self, chosen: Int64s) -> pa.Array:
        """Returns longs as texts of four digits."""
        years = self._second[chosen]
        self._refuse((years < 0) | (years > 9999), chosen, "a year of four digits", years)
        return pc.utf8_lpad(pa.array(years).cast(pa.string()), 4, "0")

    def _floating(self, chosen: Int64s, kind: str) -> pa.Array:
        # octets[i]: the bytes of chosen entry i. JSON and MySQL have no NaN and no infinity.
        size = np.dtype(kind).itemsize
        octets = self._cursors.octets[self._first[chosen][:, np.newaxis] + np.arange(size)]
        numbers = octets.view(kind)[:, 0]
        bad = ~np.isfinite(numbers)
        self._refuse(bad, chosen, "a finite number", numbers)
        return pa.array(shortest_texts(np.where(bad, 0, numbers)), pa.string())

    def floats(self, chosen: Int64s) -> pa.Array:
        """Returns the shortest texts of float32s."""
        return self._floating(chosen, "<f4")

    def doubles(self, chosen: Int64s) -> pa.Array:
        """Returns the shortest texts of float64s."""
        return self._floating(chosen, "<f8")

    def _slices(self, starts: Int64s, sizes: Int64s) -> pa.Array:
        """Returns the bytes at ``starts``, in any order."""
        # order: slices as they lie in the buffer. back[n]: where in that order slice n is.
        order = np.argsort(starts, kind="stable")
        everything = slices_of(self._cursors.buffer, starts[order], sizes[order])
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return everything.take(pa.array(2 * back))

    def _plain_texts(self, chosen: Int64s, starts: Int64s, sizes: Int64s) -> pa.Array:
        slices = self._slices(starts, sizes)
        try:
            return slices.cast(pa.string())
        except pa.ArrowInvalid:
            bad = not_utf8(slices)
            self._refuse(bad, chosen, "UTF-8", [text[:32].hex(" ") for text in slices.to_pylist()])
            return self._slices(starts, np.where(bad, 0, sizes)).cast(pa.string())

    def strings(self, chosen: Int64s) -> pa.Array:
        """Returns strings as contents of JSON strings."""
        return escaped(self._plain_texts(chosen, self._first[chosen], self._second[chosen]))

    def binaries(self, chosen: Int64s) -> pa.Array:
        """Returns bytes as hexadecimal digits."""
        return digits_of(self._slices(self._first[chosen], self._second[chosen]))

    def numbers_in_texts(self, chosen: Int64s) -> pa.Array:
        """Returns the numbers that strings stand for: digits of a BIT (ticdc, wire.md 1.3.2), names of an ENUM or SET
        (before v8.0, wire.md 1.3.1)."""
        texts = self._plain_texts(chosen, self._first[chosen], self._second[chosen]).to_pylist()
        return self._each(chosen, texts, [self._number_of(column) for column in self._column[chosen].tolist()])

    def _number_of(self, column: int) -> Callable[[str], str]:
        kind = parse_type(self._columns[column].type)
        return count_text if kind.family is Family.BIT else numbers_of_names_or_digits(kind)

    def timestamps(self, chosen: Int64s) -> pa.Array:
        """Returns texts of the zone that each entry names, as texts of the feed's zone."""
        texts = self._plain_texts(chosen, self._first[chosen], self._second[chosen])
        locations = self._plain_texts(chosen, self._location[chosen], self._location_size[chosen])
        are_own = pc.equal(locations, self._zone.key)
        if pc.all(pc.and_(are_own, pc.match_substring_regex(texts, rf"\A{TIMESTAMP_PATTERN}\z"))).as_py():
            return escaped(texts)
        changes = [partial(in_zone, location=location, zone=self._zone) for location in locations.to_pylist()]
        return self._each(chosen, texts.to_pylist(), changes)

    def _each(self, chosen: Int64s, texts: list[str], changes: Sequence[Callable[[str], str]]) -> pa.Array:
        """Returns texts converted one by one; ``changes`` has the function of each."""
        # converted[i], bad[i]: text of chosen entry i, and whether it could not be converted; then its text is empty.
        converted, bad = [], np.zeros(len(texts), bool)
        faults = {}
        for item, (text, change) in enumerate(zip(texts, changes, strict=True)):
            try:
                converted.append(change(text))
            except DecodeError as error:
                converted.append("")
                bad[item] = True
                faults[item] = error.detail
        self._refuse_for(bad, chosen, faults.__getitem__)
        return escaped(pa.array(converted, pa.string()))


# Types of values that are not NULL (wire.md 1.3.2): BIT is a long in tiflow and a string in ticdc; an ENUM or SET was
# the string of its names before v8.0.
_READERS: dict[tuple[Tag, ValueEncoding], Callable[[Values, Int64s], pa.Array]] = {
    (Tag.LONG, ValueEncoding.SIGNED): Values.signed,
    (Tag.LONG, ValueEncoding.UNSIGNED): Values.unsigned,
    (Tag.LONG, ValueEncoding.BITS): Values.bits,
    (Tag.UNSIGNED_BIGINT, ValueEncoding.BIGINT): Values.bits,
    (Tag.LONG, ValueEncoding.YEAR): Values.years,
    (Tag.FLOAT, ValueEncoding.FLOAT): Values.floats,
    (Tag.DOUBLE, ValueEncoding.DOUBLE): Values.doubles,
    (Tag.STRING, ValueEncoding.TEXT): Values.strings,
    (Tag.LONG, ValueEncoding.ENUM): Values.unsigned,
    (Tag.STRING, ValueEncoding.ENUM): Values.numbers_in_texts,
    (Tag.STRING, ValueEncoding.BITS): Values.numbers_in_texts,
    (Tag.BYTES, ValueEncoding.BINARY): Values.binaries,
    (Tag.TIMESTAMP, ValueEncoding.TIMESTAMP): Values.timestamps,
}
