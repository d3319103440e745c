"""A column group's head: which columns follow, in which form. What repeats with every row of a table is read once.

    uvarint               number of columns n
    delta varint chunk    n term ids: names
    uvarint chunk         n type codes
    uvarint chunk         n flags

Source: wire.md 1.1.2, 1.1.3; tiflow pkg/sink/codec/craft/model.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from itertools import accumulate, pairwise

import numpy as np
import orjson

from ticdc_codec.craft.messages import Messages, RefusedError
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, columns_text
from ticdc_codec.mysql_type import Family, parse_type
from ticdc_codec.number import Bits, Places, read_uvarint, zigzag
from ticdc_codec.options import CraftFloat
from ticdc_codec.tidb_codes import Flag, type_of
from ticdc_codec.writer_defects import CRAFT_FLOAT


class Form(IntEnum):
    """How a value lies in its bytes."""

    NULL = 0
    SIGNED = 1
    UNSIGNED = 2
    YEAR = 3
    DOUBLE = 4
    FLOAT = 5
    TEXT = 6
    BINARY = 7
    IGNORED = 8
    """There may be bytes, and the value is read as NULL all the same."""


_FORMS = {
    Family.INTEGER: Form.SIGNED,
    # The unsigned flag stands on YEAR, and its value is zigzag nevertheless (wire.md 1.1.3).
    Family.YEAR: Form.YEAR,
    Family.FLOAT: Form.FLOAT,
    Family.DOUBLE: Form.DOUBLE,
    Family.BIT: Form.UNSIGNED,
    Family.ENUM: Form.UNSIGNED,
    Family.SET: Form.UNSIGNED,
    Family.BINARY: Form.BINARY,
    # NULL and GEOMETRY, which TiDB has no values of
    Family.OTHER: Form.NULL,
}


def form_of(code: int, flags: int) -> tuple[str, Form]:
    """MySQL's type text and the value's form. Raises KeyError for a type code that TiDB does not have."""
    text = type_of(code, flags)
    kind = parse_type(text)
    return text, Form.UNSIGNED if kind.unsigned else _FORMS.get(kind.family, Form.TEXT)


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A column group's columns, compiled for reading."""

    layout: Layout
    forms: bytes
    """``Form`` of each column, a byte each."""
    names: tuple[str, ...]
    """JSON text of each column's name with its colon."""
    keys: tuple[int, ...]
    """Positions of the handle key's columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """A message's dictionary, with what was read by means of it: term ids mean nothing outside."""

    names: tuple[str, ...]
    heads: dict[tuple[int, int], tuple[bytes, Shape]] = field(default_factory=dict)
    """For schema id and table id: the last group head of this table and what it says."""


class Shapes:
    """The shapes seen so far, one object for each table and description of its columns."""

    LIMIT = 10_000

    def __init__(self, craft_float: CraftFloat) -> None:
        self._craft_float = craft_float
        self._known: dict[tuple[str, str, tuple[str, ...], tuple[int, ...]], Shape] = {}

    def read(self, data: bytes, start: int, end: int, terms: Terms, table: tuple[int, int]) -> tuple[bytes, Shape]:
        """The group head at ``start`` (its bytes) and its shape."""
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
        shape = self._known.get(key)
        if shape is None:
            shape = self._add(key, at)
        terms.heads[table] = data[start:after], shape
        return terms.heads[table]

    def _add(self, key: tuple[str, str, tuple[str, ...], tuple[int, ...]], at: int) -> Shape:
        database, table, names, numbers = key
        if len(set(names)) < len(names):
            twice = next(name for number, name in enumerate(names) if name in names[:number])
            raise DecodeError("duplicate_column", f"column {twice} twice in a group", offset=at)
        if len(self._known) >= self.LIMIT:
            self._known.clear()
        described = [
            self._column(*column, at)
            for column in zip(names, numbers[: len(names)], numbers[len(names) :], strict=True)
        ]
        columns = tuple(column for column, _ in described)
        shape = Shape(
            layout=Layout(database, table, columns, columns_text(columns)),
            forms=bytes(form for _, form in described),
            names=tuple(orjson.dumps(name).decode() + ":" for name in names),
            keys=tuple(position for position, column in enumerate(columns) if column.key),
        )
        self._known[key] = shape
        return shape

    def _column(self, name: str, code: int, flags: int, at: int) -> tuple[Column, Form]:
        try:
            text, form = form_of(code, flags)
        except KeyError:
            raise DecodeError("unknown_type", f"column {name} is of type {code}", offset=at) from None
        if flags >> 63:
            raise DecodeError("out_of_range", f"column {name} has flags {flags}", offset=at)
        doubt = None
        if form is Form.FLOAT and self._craft_float is CraftFloat.REFUSE:
            doubt = CRAFT_FLOAT
        if form is Form.FLOAT and self._craft_float is CraftFloat.NULL:
            form = Form.IGNORED
        by = "index" if text in ("enum", "set") else None
        key = bool(flags & Flag.HANDLE_KEY)
        return Column(name=name, type=text, key=key, flags=flags, by=by, doubt=doubt), form


class Groups:
    """The column groups of a batch: arrays are of each group, positions count from its message's begin."""

    __slots__ = ("_messages", "end", "kinds", "message", "shape", "shapes", "start", "values")

    def __init__(
        self,
        messages: Messages,
        terms: list[Terms],
        shapes: Shapes,
        message: Places,
        databases: Places,
        tables: Places,
        start: Places,
        end: Places,
    ) -> None:
        self._messages = messages
        self.message = message
        self.start, self.end = start, end
        self.kinds = messages.octets[messages.begins[message] + start]
        """Each one's first byte."""
        runs, self.shapes = self._read(terms, shapes, databases, tables)
        counts, heads, numbers = np.array(runs, np.int64).T
        self.values: Places = start + 1 + np.repeat(heads, counts)
        """Where each one's value lengths begin."""
        self.shape: Places = np.repeat(numbers, counts)
        """Number of each one's shape in ``shapes``."""

    def _read(
        self, terms: list[Terms], shapes: Shapes, databases: Places, tables: Places
    ) -> tuple[list[tuple[int, int, int]], list[Shape]]:
        """Runs of groups with equal heads (how many, bytes of the head, number of the shape), and the shapes."""
        dictionaries = np.array([*map(id, terms)])[self.message]
        others = np.flatnonzero(np.diff(dictionaries) | np.diff(databases) | np.diff(tables)) + 1
        owner, start, end = self.message.tolist(), (self.start + 1).tolist(), self.end.tolist()
        names = [*zip(databases.tolist(), tables.tolist(), strict=True)]
        runs: list[tuple[int, int, int]] = []
        numbers: dict[Shape, int] = {}
        errors: dict[int, DecodeError] = {}
        for first, last in pairwise([0, *others.tolist(), len(owner)]):
            while first < last:
                message = owner[first]
                data = self._messages.data[message]
                try:
                    head, shape = _head(data, start[first], end[first], terms[message], shapes, names[first])
                except DecodeError as error:
                    errors.setdefault(self._messages.numbers[message], error)
                    first += 1  # noqa: PLW2901
                    continue
                stop = self._end_of_run(head, first + 1, last) if last - first > _AHEAD else first + 1
                runs.append((stop - first, len(head), numbers.setdefault(shape, len(numbers))))
                first = stop  # noqa: PLW2901
        if errors:
            raise RefusedError(errors)
        return runs, list(numbers)

    def _end_of_run(self, head: bytes, first: int, last: int) -> int:
        """The first group from ``first`` on that may not begin with this head: looks ever further ahead."""
        octets, begins = np.frombuffer(head, np.uint8), self._messages.begins
        ahead = _AHEAD
        while first + _AHEAD <= last:
            some = slice(first, min(first + ahead, last))
            start = self.start[some] + 1
            places = np.minimum(begins[self.message[some]] + start, len(self._messages.octets) - len(head))
            found = self._messages.octets[places[:, np.newaxis] + np.arange(len(head))]
            same = (found == octets).all(axis=1) & (start + len(head) <= self.end[some])
            if not same.all():
                return first + int(same.argmin())
            first, ahead = some.stop, min(4 * ahead, _FAR_AHEAD)
        return first

    def refuse(self, bad: Bits, wanted: str, group: Places, found: Places | None = None) -> None:
        """Refuse messages for the ``bad`` ones of these groups."""
        self._messages.refuse(bad, "bad_group", self.message[group], self.start[group], wanted, found)


_NO_HEAD: tuple[bytes, None] = (b"", None)
_AHEAD, _FAR_AHEAD = 16, 1024
"""Groups that are compared at a time: few at first, as runs may be short, and never more than fit a cache."""


def _head(
    data: bytes, start: int, end: int, terms: Terms, shapes: Shapes, table: tuple[int, int]
) -> tuple[bytes, Shape]:
    """The bytes of a group's head, and its shape. Raises DecodeError."""
    head, shape = terms.heads.get(table, _NO_HEAD)
    if shape is None or not data.startswith(head, start, end):
        return shapes.read(data, start, end, terms, table)
    return head, shape


def _next_uvarints(data: bytes, start: int, end: int, count: int) -> tuple[list[int], int]:
    """The next ``count`` uvarints and the position after them."""
    if data[start : start + count].isascii() and start + count <= end:
        return list(data[start : start + count]), start + count
    numbers, at = [], start
    for _ in range(count):
        number, at = read_uvarint(data, at, end)
        numbers.append(number)
    return numbers, at


def read_terms(data: bytes, start: int) -> tuple[str, ...]:
    """The names of the term dictionary that begins at byte ``start``: uvarint count, so many uvarint lengths, names."""
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
    """UTF-8 bytes, which begin at byte ``start`` of the message, as text."""
    try:
        return data.decode()
    except UnicodeDecodeError as fault:
        raise DecodeError("bad_utf8", f"expected UTF-8, found {fault.reason}", offset=start + fault.start) from None
