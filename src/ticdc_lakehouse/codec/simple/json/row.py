"""A row's JSON message, read by a Struct type of its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, Literal

import msgspec
import orjson

from ticdc_lakehouse.codec.json_text import names_of, quotes_of
from ticdc_lakehouse.codec.simple.json.value import Timestamp
from ticdc_lakehouse.codec.simple.message import VERSION, Checksum
from ticdc_lakehouse.errors import DecodeError
from ticdc_lakehouse.event import Layout
from ticdc_lakehouse.mysql_type import Family, family_of

Image = Any
"""A row's values, by column: a Struct with fields c0, c1 …, or for odd names a dict. None is NULL."""

_LITERAL: Any = Literal


class Row(msgspec.Struct, gc=False):
    """A row's message; a table's own type narrows the fields to what repeats. One image at least is there."""

    version: int
    database: str
    table: str
    table_id: int
    type: Literal["INSERT", "UPDATE", "DELETE"]
    commit_ts: int
    build_ts: int
    schema_version: int
    claim_check_location: str | None = None
    handle_key_only: bool = False
    checksum: Checksum | None = None
    data: Image | None = None
    old: Image | None = None


_NAMES = {
    "table_id": "tableID",
    "commit_ts": "commitTs",
    "build_ts": "buildTs",
    "schema_version": "schemaVersion",
    "claim_check_location": "claimCheckLocation",
    "handle_key_only": "handleKeyOnly",
}


def reader(layout: Layout) -> Callable[[bytes], Row]:
    """Reads the messages of a table whose rows have these columns, and no others. Raises one of ``Unreadable``."""
    rename = {f"c{at}": column.name for at, column in enumerate(layout.columns)}
    fields: list[Any] = [(field, _type(column.type)) for field, column in zip(rename, layout.columns, strict=True)]
    image = msgspec.defstruct("Image", fields, rename=rename, forbid_unknown_fields=True, gc=False)
    return _reader(layout, image)


def odd_reader(layout: Layout) -> Callable[[bytes], Row]:
    """The same for odd names. Raises DecodeError too."""
    read = _reader(layout, dict[str, str | Timestamp | None])

    def read_odd(value: bytes) -> Row:
        row = read(value)
        row.data, row.old = _checked(row.data, layout), _checked(row.old, layout)
        return row

    return read_odd


def _checked(values: dict[str, Any] | None, layout: Layout) -> dict[str, Any] | None:
    if values is None:
        return None
    names = [column.name for column in layout.columns]
    if values.keys() != set(names):
        raise DecodeError("wrong_columns", f"expected columns {names}, found {[*values]}")
    for column in layout.columns:
        value = values[column.name]
        if value is not None and isinstance(value, Timestamp) is not _is_timestamp(column.type):
            raise DecodeError("wrong_type", f"expected a value of {column.type} in column {column.name}")
    return {name: values[name] for name in names}


def _is_timestamp(type_text: str) -> bool:
    return family_of(type_text) is Family.TIMESTAMP


def _type(type_text: str) -> Any:
    return Timestamp | None if _is_timestamp(type_text) else str | None


def _reader(layout: Layout, image: Any) -> Callable[[bytes], Row]:
    fields: list[Any] = [
        ("version", _LITERAL[VERSION]),
        ("database", _LITERAL[layout.database]),
        ("table", _LITERAL[layout.table]),
        ("table_id", int),
        ("type", Literal["INSERT", "UPDATE", "DELETE"]),
        ("commit_ts", int),
        ("build_ts", int),
        ("schema_version", _LITERAL[layout.version]),
        ("claim_check_location", str | None, None),
        ("handle_key_only", bool, False),
        ("checksum", Checksum | None, None),
        ("data", image | None, None),
        ("old", image | None, None),
    ]
    row = msgspec.defstruct("TableRow", fields, bases=(Row,), rename=_NAMES, forbid_unknown_fields=True, gc=False)
    read: Callable[[bytes], Any] = msgspec.json.Decoder(row).decode
    return read


# buildTs has 13 digits since 2001, a commitTs has 18 since 2014 (and until 2090).
_LEAST_MS = 10**12
_LEAST_TSO = 10**17


class Shortest:
    """The shortest messages of a table: one that is no longer has no name twice, and no white space."""

    __slots__ = ("_length", "_quotes")

    def __init__(self, layout: Layout) -> None:
        members = {
            "version": VERSION, "database": layout.database, "table": layout.table, "tableID": 0, "type": "INSERT",
            "commitTs": _LEAST_TSO, "buildTs": _LEAST_MS, "schemaVersion": layout.version,
        }  # fmt: skip
        text = orjson.dumps(members)
        # without the zero that stands for the table's id
        self._length = len(text) - 1
        self._quotes = quotes_of(text)

    def check_names(self, values: Sequence[bytes], rows: Sequence[Row], data: bytes, old: bytes) -> None:
        """Raise DecodeError ``duplicate_name`` if an object of a message has a name twice.

        ``data`` and ``old`` are the images in their shortest form, as lines. A second name would make a message longer
        than the shortest with them, and so all messages; and bring two more quotes at the least.
        """
        if sum(map(len, values)) == self._length_with(rows, data, old):
            return
        lines = (image.splitlines() if image else repeat(None) for image in (data, old))
        for value, row, *images in zip(values, rows, *lines, strict=False):
            if quotes_of(value) != self._quotes_with(row, *images):
                names_of(value)

    def _length_with(self, rows: Sequence[Row], data: bytes, old: bytes) -> int:
        """The least length of all together; -1 if numbers have so few digits that they may be shorter."""
        if min([row.build_ts for row in rows]) < _LEAST_MS or min([row.commit_ts for row in rows]) < _LEAST_TSO:
            return -1
        # A line feed stands for the comma before each image's name.
        images = sum(len(image) + len('"":') * len(rows) + size * len(rows)
                     for image, size in ((data, len("data")), (old, len("old"))) if image)  # fmt: skip
        return len(rows) * self._length + _digits([row.table_id for row in rows]) + images

    def _quotes_with(self, row: Row, data: bytes | None, old: bytes | None) -> int:
        quotes = self._quotes + 2 * row.handle_key_only + 4 * (row.claim_check_location is not None)
        quotes += 0 if row.checksum is None else 10
        return quotes + sum(2 + quotes_of(image) for image in (data, old) if image is not None)


def _digits(numbers: list[int]) -> int:
    """Digits of all of them; rows that are read together seldom have more than one table id."""
    return sum(len(str(number)) * numbers.count(number) for number in set(numbers))
