"""What repeats in every row of a table with the same columns, compiled once; and the texts of its values.

Values that Simple-JSON writes in another form than ``event`` (wire.md 1.3.1):

BINARY, VARBINARY, BLOBs    base64                                     lower-case hex here
BIT                         the number, which is checked to be one     the same
TIMESTAMP                   an object of a time zone and a text        text in the feed's zone here
FLOAT, DOUBLE               plain digits, however many                 exponent below 1e-6 and from 1e21 here
YEAR                        as a number: 0                             four digits here
ENUM, SET                   before v8.0 the names                      index and mask here
"""

from __future__ import annotations

import base64
import binascii
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, key_positions
from ticdc_codec.json_images import (
    Conversion,
    Image,
    ImageTypes,
    TextImages,
    check_names,
)
from ticdc_codec.json_text import quotes_of
from ticdc_codec.mysql_type import Family, family_of, parse_type
from ticdc_codec.number_text import READERS, WRITERS, are_counts, number_of_names, numbers_of_names_or_digits
from ticdc_codec.simple.checksum import check
from ticdc_codec.simple.message import Checksum, in_zone

_NAMES = {"handle_key_only": "handleKeyOnly"}


class RowMembers(msgspec.Struct, rename=_NAMES, omit_defaults=True, gc=False):
    """The members after ``schemaVersion``; a table's own type narrows the images to its columns."""

    handle_key_only: bool = False
    checksum: Checksum | None = None
    data: Image | None = None
    old: Image | None = None


class SimpleTableReader:
    """A table's rows of one schema version and of one choice of its columns."""

    __slots__ = ("_getters", "_zone", "images", "layout", "read")

    def __init__(self, layout: Layout, zone: ZoneInfo) -> None:
        self.layout = layout
        image_types = ImageTypes([column.name for column in layout.columns])
        types = [column.type for column in layout.columns]
        row_type = _row_type(image_types.type_of([(_wire_type(kind),) for kind in types]))
        self.read = image_types.reader(row_type, ("data", "old"))
        """Reads a row without its head. Raises DecodeError or one of ``Unreadable`` if it has other columns."""
        conversions = [conversion(kind, zone) for kind in types]
        self.images = TextImages(image_types, conversions, key_positions(layout.columns))
        self._getters = image_types.getters()
        self._zone = zone

    def check_sums(self, rows: list[RowMembers]) -> None:
        """Checks rows with checksums, which have been converted to the texts of ``event``. Raises DecodeError."""
        for row in rows:
            if row.checksum is not None:
                # The checksum is of the whole row: one of its handle key only may be corrupted, and shows no more.
                images = (None, None) if row.handle_key_only else (self._values(row.data), self._values(row.old))
                check(row.checksum, self.layout.columns, *images, self._zone)

    def _values(self, image: Image | None) -> list[str | None] | None:
        return None if image is None else [get(image) for get in self._getters]


def _wire_type(type_text: str) -> Any:
    return Timestamp | None if family_of(type_text) is Family.TIMESTAMP else str | None


def _row_type(image: Any) -> Any:
    fields: list[Any] = [("data", image | None, None), ("old", image | None, None)]
    return msgspec.defstruct(
        "TableRow", fields, bases=(RowMembers,), rename=_NAMES, forbid_unknown_fields=True, gc=False
    )


def check_row_names(texts: Sequence[bytes], rows: Sequence[RowMembers], data: bytes, old: bytes) -> None:
    """Raises DecodeError ``duplicate_name`` if an object of a row has a name twice.

    ``data`` and ``old`` are the lines of the images with the wire's values, none for rows without this image.
    """
    check_names(texts, _shortest(len(rows), data, old), lambda: _quotes(rows, data, old))


def _shortest(count: int, data: bytes, old: bytes) -> int:
    """Returns the length of texts that consist of images only; a line feed takes the place of what follows each."""
    names = sum(len(name) for name, image in (('"data":', data), ('"old":', old)) if image)
    return len(data) + len(old) + (len("{") + names) * count


def _quotes(rows: Sequence[RowMembers], data: bytes, old: bytes) -> Iterator[int]:
    """Yields the quotes of each row: of the names of its members, and within."""
    lines = [image.splitlines() for image in (data, old) if image]
    for row, *images in zip(rows, *lines, strict=True):
        members = 2 * row.handle_key_only + (0 if row.checksum is None else 10)
        yield members + sum(2 + quotes_of(image) for image in images)


class Timestamp(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A TIMESTAMP value."""

    location: str
    value: str


def conversion(type_text: str, zone: ZoneInfo) -> Conversion | None:
    """Returns the conversion from the wire's values of a type to the texts of ``event``; None if they are always the
    same."""
    kind = parse_type(type_text)
    match kind.family:
        case Family.BINARY:
            return operator.not_, _hex_of
        case Family.TIMESTAMP:
            return operator.not_, lambda stamp: in_zone(stamp.value, stamp.location, zone)
        case Family.ENUM | Family.SET:
            return are_counts, numbers_of_names_or_digits(kind)
        case family:
            return READERS.get(family)


def to_wire(column: Column, zone: ZoneInfo) -> Callable[[str], Any] | None:
    """Inverse of ``conversion``: makes the wire's value from the text of ``event``; None if they are the same."""
    kind = parse_type(column.type)
    match kind.family:
        case Family.BINARY:
            return lambda digits: base64.b64encode(bytes.fromhex(digits)).decode()
        case Family.TIMESTAMP:
            return lambda text: Timestamp(zone.key, text)
        case Family.ENUM | Family.SET if column.by == "name":
            return number_of_names(kind)
        case family:
            return WRITERS.get(family)


def _hex_of(text: str) -> str:
    """Returns the bytes of a base64 text. Raises DecodeError."""
    try:
        return binascii.a2b_base64(text, strict_mode=True).hex()
    except ValueError as error:
        raise DecodeError("bad_value", f"expected base64: {error}") from None
