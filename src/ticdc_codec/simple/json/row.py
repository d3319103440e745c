"""What a row's JSON message has after its head, read by a Struct type of its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, Literal

import msgspec

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout
from ticdc_codec.json_text import names_of, quotes_of
from ticdc_codec.mysql_type import Family, family_of
from ticdc_codec.simple.json.value import Timestamp
from ticdc_codec.simple.message import Checksum

Image = Any
"""A row's values, by column: a Struct with fields c0, c1 …, or for odd names a dict. None is NULL."""

_LITERAL: Any = Literal


_NAMES = {"handle_key_only": "handleKeyOnly"}


class Row(msgspec.Struct, rename=_NAMES, omit_defaults=True, gc=False):
    """The members after ``schemaVersion``; a table's own type narrows the images to its columns."""

    handle_key_only: bool = False
    checksum: Checksum | None = None
    data: Image | None = None
    old: Image | None = None


def reader(layout: Layout) -> Callable[[bytes], Row]:
    """Reads those members, as a JSON object, of a table whose rows have these columns, and no others. Raises one of
    ``Unreadable``."""
    rename = {f"c{at}": column.name for at, column in enumerate(layout.columns)}
    fields: list[Any] = [(field, _type(column.type)) for field, column in zip(rename, layout.columns, strict=True)]
    return _reader(msgspec.defstruct("Image", fields, rename=rename, forbid_unknown_fields=True, gc=False))


def odd_reader(layout: Layout) -> Callable[[bytes], Row]:
    """The same for odd names. Raises DecodeError too."""
    read = _reader(dict[str, str | Timestamp | None])

    def read_odd(text: bytes) -> Row:
        row = read(text)
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


def _reader(image: Any) -> Callable[[bytes], Row]:
    fields: list[Any] = [("data", image | None, None), ("old", image | None, None)]
    row = msgspec.defstruct("TableRow", fields, bases=(Row,), rename=_NAMES, forbid_unknown_fields=True, gc=False)
    read: Callable[[bytes], Any] = msgspec.json.Decoder(row).decode
    return read


def check_names(texts: Sequence[bytes], rows: Sequence[Row], data: bytes, old: bytes) -> None:
    """Raise DecodeError ``duplicate_name`` if an object of a text has a name twice.

    ``data`` and ``old`` are the images in their shortest form, as lines. A second name would make a text longer than
    the shortest with them, and so all texts; and bring two more quotes at the least.
    """
    if sum(map(len, texts)) == _shortest(len(rows), data, old):
        return
    lines = (image.splitlines() if image else repeat(None) for image in (data, old))
    for text, row, *images in zip(texts, rows, *lines, strict=False):
        if quotes_of(text) != _quotes(row, *images):
            names_of(text)


def _shortest(count: int, data: bytes, old: bytes) -> int:
    """The length of so many texts that have nothing but images: a line feed stands for what comes after each."""
    names = sum(len(name) for name, image in (('"data":', data), ('"old":', old)) if image)
    return len(data) + len(old) + (len("{") + names) * count


def _quotes(row: Row, *images: bytes | None) -> int:
    members = 2 * row.handle_key_only + (0 if row.checksum is None else 10)
    return members + sum(2 + quotes_of(image) for image in images if image is not None)
