"""A column group's head: the columns that follow and how their values are written. A head that repeats is read once.

    uvarint               number of columns n
    delta varint chunk    n term ids: names
    uvarint chunk         n type codes
    uvarint chunk         n flags

Source: wire.md 1.1.2, 1.1.3; tiflow pkg/sink/codec/craft/model.go.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import accumulate, pairwise

import numpy as np
import orjson

from ticdc_codec.bounded_cache import cached
from ticdc_codec.craft.frame import MessageBatch, RefusedError
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, NamedBy, columns_text, key_positions
from ticdc_codec.mysql_type import Family, parse_type
from ticdc_codec.number import Bools, Int64s, read_uvarint, zigzag
from ticdc_codec.options import CraftFloat
from ticdc_codec.tidb_codes import Flag, type_of
from ticdc_codec.writer_defects import CRAFT_FLOAT


class ValueEncoding(IntEnum):
    """How a column's values are written (wire.md 1.1.3)."""

    NULL = 0
    SIGNED = 1
    UNSIGNED = 2
    YEAR = 3
    DOUBLE = 4
    FLOAT = 5
    TEXT = 6
    BINARY = 7
    IGNORED = 8
    """Bytes that are skipped; the value is read as NULL."""
    SUSPECT_FLOAT = 9
    """A FLOAT that the writer may have spoilt, so that it need not be a number."""


_ENCODINGS = {
    Family.INTEGER: ValueEncoding.SIGNED,
    # YEAR has the flag UNSIGNED, but its value is a zigzag varint (wire.md 1.1.3).
    Family.YEAR: ValueEncoding.YEAR,
    Family.FLOAT: ValueEncoding.FLOAT,
    Family.DOUBLE: ValueEncoding.DOUBLE,
    Family.BIT: ValueEncoding.UNSIGNED,
    Family.ENUM: ValueEncoding.UNSIGNED,
    Family.SET: ValueEncoding.UNSIGNED,
    Family.BINARY: ValueEncoding.BINARY,
    # NULL and GEOMETRY: TiDB has no values of these types.
    Family.OTHER: ValueEncoding.NULL,
}


def encoding_of(code: int, flags: int) -> tuple[str, ValueEncoding]:
    """Returns MySQL's type text and how its values are written. Raises KeyError for a type code that TiDB does not
    have."""
    text = type_of(code, flags)
    kind = parse_type(text)
    return text, ValueEncoding.UNSIGNED if kind.unsigned else _ENCODINGS.get(kind.family, ValueEncoding.TEXT)


@dataclass(frozen=True, slots=True, eq=False)
class GroupLayout:
    """The columns of column groups with one head, prepared for reading values."""

    event_layout: Layout
    """The columns as events list them."""
    encodings: bytes
    """``ValueEncoding`` of each column, a byte each."""
    names: tuple[str, ...]
    """JSON text of each column's name with its colon."""
    keys: tuple[int, ...]
    """``key_positions`` of the columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """A message's term dictionary, and the group heads read with it: term ids have no meaning in other dictionaries."""

    names: tuple[str, ...]
    heads: dict[tuple[int, int], tuple[bytes, GroupLayout]] = field(default_factory=dict)
    """By database id and table id: the bytes of the table's last group head, and its layout."""


class LayoutCache:
    """The layouts of all heads read so far; equal heads of one table have one object."""

    def __init__(self, craft_float: CraftFloat) -> None:
        self._craft_float = craft_float
        self._known: dict[tuple[str, str, tuple[str, ...], tuple[int, ...]], GroupLayout] = {}

    def read(
        self, data: bytes, start: int, end: int, terms: Terms, table: tuple[int, int]
    ) -> tuple[bytes, GroupLayout]:
        """Returns the bytes of the group head at ``start``, and its layout. Raises DecodeError."""
        if min(table) < 0:
            raise DecodeError("out_of_range", "a row change without a database or a table", offset=start)
        count, at = read_uvarint(data, start, end)
        if not 0 < count <= (end - at) // 4:
            raise DecodeError("out_of_range", f"{count} columns in a group of {end - at} bytes", offset=start)
        numbers, after = _next_uvarints(data, at, end, 3 * count)
        ids = list(accumulate(zigzag(number) for number in numbers[:count]))
        if min(ids) < 0 or max(ids) >= len(terms.names):
            detail = f"column names are terms {min(ids)} to {max(ids)} of {len(terms.names)}"
            raise DecodeError("out_of_range", detail, offset=at)
        names = tuple(terms.names[number] for number in ids)
        key = (terms.names[table[0]], terms.names[table[1]], names, tuple(numbers[count:]))
        layout = cached(self._known, key, lambda: self._layout(key, at))
        terms.heads[table] = data[start:after], layout
        return terms.heads[table]

    def _layout(self, key: tuple[str, str, tuple[str, ...], tuple[int, ...]], at: int) -> GroupLayout:
        database, table, names, numbers = key
        if len(set(names)) < len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise DecodeError("duplicate_column", f"column {twice} twice in a group", offset=at)
        coded = [
            self._column(*column, at)
            for column in zip(names, numbers[: len(names)], numbers[len(names) :], strict=True)
        ]
        columns = tuple(column for column, _ in coded)
        return GroupLayout(
            event_layout=Layout(database, table, columns, columns_text(columns)),
            encodings=bytes(encoding for _, encoding in coded),
            names=tuple(orjson.dumps(name).decode() + ":" for name in names),
            keys=key_positions(columns),
        )

    def _column(self, name: str, code: int, flags: int, at: int) -> tuple[Column, ValueEncoding]:
        try:
            text, encoding = encoding_of(code, flags)
        except KeyError:
            raise DecodeError("unknown_type", f"column {name} is of type {code}", offset=at) from None
        if flags >> 63:
            raise DecodeError("out_of_range", f"column {name} has flags {flags}", offset=at)
        key = bool(flags & Flag.HANDLE_KEY)
        defect = None
        if encoding is ValueEncoding.FLOAT and self._craft_float is CraftFloat.NULL and not key:
            encoding = ValueEncoding.IGNORED
        elif encoding is ValueEncoding.FLOAT and self._craft_float is not CraftFloat.TRUST:
            # Without its value in the key all rows are one.
            encoding, defect = ValueEncoding.SUSPECT_FLOAT, CRAFT_FLOAT
        by: NamedBy | None = "index" if text in ("enum", "set") else None
        return Column(name=name, type=text, key=key, flags=flags, by=by, defect=defect), encoding


class ColumnGroups:
    """The column groups of a batch. Arrays have one item a group; positions count from the begin of its message."""

    __slots__ = ("_messages", "end", "kinds", "layout_index", "layouts", "message", "start", "values")

    def __init__(
        self,
        messages: MessageBatch,
        terms: list[Terms],
        layouts: LayoutCache,
        message: Int64s,
        databases: Int64s,
        tables: Int64s,
        start: Int64s,
        end: Int64s,
    ) -> None:
        self._messages = messages
        self.message = message
        self.start, self.end = start, end
        self.kinds = messages.octets[messages.begins[message] + start]
        """Each one's first byte, a ``GroupType`` if it is valid."""
        runs, self.layouts = self._read(terms, layouts, databases, tables)
        counts, heads, numbers = np.array(runs, np.int64).T
        self.values: Int64s = start + 1 + np.repeat(heads, counts)
        """Where each one's value lengths begin."""
        self.layout_index: Int64s = np.repeat(numbers, counts)
        """Index of each one's layout in ``layouts``."""

    def _read(
        self, terms: list[Terms], layouts: LayoutCache, databases: Int64s, tables: Int64s
    ) -> tuple[list[tuple[int, int, int]], list[GroupLayout]]:
        """Runs of groups with equal heads (count of groups, bytes of the head, index of the layout); the layouts."""
        # Runs of groups with one head are the rule: each run is found by one comparison of bytes.
        # others: groups whose dictionary, database or table is not that of the group before.
        dictionaries = np.array([*map(id, terms)])[self.message]
        others = np.flatnonzero(np.diff(dictionaries) | np.diff(databases) | np.diff(tables)) + 1
        owner, start, end = self.message.tolist(), (self.start + 1).tolist(), self.end.tolist()
        names = [*zip(databases.tolist(), tables.tolist(), strict=True)]
        runs: list[tuple[int, int, int]] = []
        numbers: dict[GroupLayout, int] = {}
        errors: dict[int, DecodeError] = {}
        for first, last in pairwise([0, *others.tolist(), len(owner)]):
            while first < last:
                message = owner[first]
                data = self._messages.data[message]
                try:
                    head, layout = _head(data, start[first], end[first], terms[message], layouts, names[first])
                except DecodeError as error:
                    errors.setdefault(self._messages.numbers[message], error)
                    first += 1  # noqa: PLW2901
                    continue
                stop = self._end_of_run(head, first + 1, last) if last - first > _AHEAD else first + 1
                runs.append((stop - first, len(head), numbers.setdefault(layout, len(numbers))))
                first = stop  # noqa: PLW2901
        if errors:
            raise RefusedError(errors)
        return runs, list(numbers)

    def _end_of_run(self, head: bytes, first: int, last: int) -> int:
        """Returns the first group from ``first`` on that may have another head. Compares 16 groups, then more at a
        time."""
        octets, begins = np.frombuffer(head, np.uint8), self._messages.begins
        ahead = _AHEAD
        while first + _AHEAD <= last:
            compared = slice(first, min(first + ahead, last))
            start = self.start[compared] + 1
            # positions[g]: where group g's head begins in octets. heads[g]: the bytes there, as many as the head has.
            positions = np.minimum(begins[self.message[compared]] + start, len(self._messages.octets) - len(head))
            heads = self._messages.octets[positions[:, np.newaxis] + np.arange(len(head))]
            same = (heads == octets).all(axis=1) & (start + len(head) <= self.end[compared])
            if not same.all():
                return first + int(same.argmin())
            first, ahead = compared.stop, min(4 * ahead, _FAR_AHEAD)
        return first

    def refuse(self, bad: Bools, wanted: str, group: Int64s, found: Int64s | None = None) -> None:
        """Refuses messages for the ``bad`` ones of these groups."""
        self._messages.refuse(bad, "bad_group", self.message[group], self.start[group], wanted, found)


_NO_HEAD: tuple[bytes, None] = (b"", None)
_AHEAD, _FAR_AHEAD = 16, 1024
"""Groups compared at a time: few at first, as runs may be short, and at most what fits the processor's cache."""


def _head(
    data: bytes, start: int, end: int, terms: Terms, layouts: LayoutCache, table: tuple[int, int]
) -> tuple[bytes, GroupLayout]:
    """Returns the bytes of a group's head, and its layout. Raises DecodeError."""
    head, layout = terms.heads.get(table, _NO_HEAD)
    if layout is None or not data.startswith(head, start, end):
        return layouts.read(data, start, end, terms, table)
    return head, layout


def _next_uvarints(data: bytes, start: int, end: int, count: int) -> tuple[list[int], int]:
    """Returns the next ``count`` uvarints and the position after them."""
    if data[start : start + count].isascii() and start + count <= end:
        return list(data[start : start + count]), start + count
    numbers, at = [], start
    for _ in range(count):
        number, at = read_uvarint(data, at, end)
        numbers.append(number)
    return numbers, at


def read_terms(data: bytes, start: int) -> tuple[str, ...]:
    """Returns the names of the term dictionary that begins at byte ``start``: uvarint count, that many uvarint lengths,
    names. Raises DecodeError."""
    end = len(data)
    count, at = read_uvarint(data, 0, end)
    if not 0 < count <= end - at:
        raise DecodeError("out_of_range", f"{count} terms in a dictionary of {end} bytes", offset=start)
    lengths, at = _next_uvarints(data, at, end, count)
    ends = list(accumulate(lengths, initial=at))
    if ends[-1] != end:
        reason = "truncated" if ends[-1] > end else "trailing_bytes"
        raise DecodeError(reason, f"terms take {ends[-1]} bytes, their dictionary has {end}", offset=start)
    return tuple(text_of(data[first:last], start + first) for first, last in pairwise(ends))


def text_of(data: bytes, start: int) -> str:
    """Decodes UTF-8 bytes, which begin at byte ``start`` of the message. Raises DecodeError ``bad_utf8``."""
    try:
        return data.decode()
    except UnicodeDecodeError as fault:
        raise DecodeError("bad_utf8", f"expected UTF-8, found {fault.reason}", offset=start + fault.start) from None
