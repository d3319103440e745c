"""What repeats in every row of a table, compiled once: how to read its images, its columns, and their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ticdc_codec.batch import DecoderContext
from ticdc_codec.bounded_cache import cached
from ticdc_codec.debezium.column import SentColumn, sent_column
from ticdc_codec.debezium.envelope import columns_of
from ticdc_codec.debezium.value import Texts, ValueFormat
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, columns_text, key_positions
from ticdc_codec.json_images import KEY_COLUMN_HINT, ColumnOrder, Image, ImageTypes, check_names
from ticdc_codec.json_text import quotes_of
from ticdc_codec.name_case import fold

_ENCODE = msgspec.json.Encoder().encode
_ENCODE_LINES = msgspec.json.Encoder().encode_lines
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_KEY_BEGIN = b'{"payload":'


class RowMembers(msgspec.Struct, gc=False):
    """The members of a row's payload that are its images; a table's own type narrows them to its columns."""

    before: Image | UnsetType | None = UNSET
    after: Image | UnsetType | None = UNSET


class DebeziumTableReader:
    """The layout of a table in one message: its columns, its handle key, and the bytes that follow the payloads."""

    __slots__ = ("_columns", "_handle", "_images", "_key_end", "_key_images", "_key_names", "_named", "_read_key",
                 "end", "layout", "order", "read")  # fmt: skip

    def __init__(self, sent: SentLayout, columns: Mapping[str, SentColumn]) -> None:
        layout = tuple(each.column for each in columns.values())
        self.layout = Layout(sent.database, sent.table, layout, columns_text(layout))
        self._images = ImageTypes([*columns])
        formats = [each.value_format for each in columns.values()]
        self.read = self._images.reader(_row_type(_image_type(self._images, formats)), ("before", "after"))
        """Reads a row's images. Raises DecodeError or one of ``Unreadable`` if they have other columns."""
        self.end = _end_of(sent.schema)
        """Bytes after a row's payload."""
        self.order = ColumnOrder(columns if not sent.schema else (), ignored=("before", "after"))
        """Order of the columns in a message without schema; with one, the schema is compared byte for byte."""
        self._columns = [*zip(self._images.getters(), formats, strict=True)]
        self._handle = key_positions(layout)
        # Images never have a virtual column (wire.md 1.5.1), so it is not compared.
        self._key_names = [name for name in sent.keys or () if name in columns]
        self._key_images = ImageTypes(self._key_names)
        self._key_end = _end_of(sent.key_schema)
        getters = dict(zip(columns, self._images.getters(), strict=True))
        self._named = None if sent.keys is None else [getters[name] for name in self._key_names]
        self._read_key = self._key_images.image_reader(
            _image_type(self._key_images, [columns[name].value_format for name in self._key_names])
        )

    def check_names(self, images: Sequence[bytes], rows: list[RowMembers]) -> None:
        """Raises DecodeError ``duplicate_name`` if an object in a row's images has a name twice."""
        lines = _ENCODE_LINES(rows)
        # Odd names are other ones in these lines, of other lengths.
        shortest = -1 if self._images.has_odd_names else len(lines) - len(rows)
        check_names(images, shortest, lambda: map(quotes_of, lines.splitlines()))

    def texts(self, images: list[Image]) -> list[Texts]:
        """Returns each column's texts as in ``event``. Raises DecodeError, or one of ``Unreadable``."""
        return [_texts([*map(get, images)], value_format) for get, value_format in self._columns]

    def lines(self, columns: list[Texts], count: int) -> bytes:
        """Returns the images of ``count`` rows as lines of JSON."""
        return self._images.lines_of_columns(columns, count)

    def keys(self, images: list[Image]) -> list[bytes | None]:
        """Returns the Kafka keys of rows with these images, if they have no needless escapes."""
        if self._named is None:
            return [None] * len(images)
        lines = self._key_images.lines_of_columns([[*map(get, images)] for get in self._named], len(images))
        return [_KEY_BEGIN + line + self._key_end for line in lines.splitlines()]

    def plain_key(self, payload: bytes) -> bytes:
        """Returns the Kafka key with this payload, in the form of ``keys``. Raises DecodeError, or one of
        ``Unreadable``."""
        members = members_of(payload)
        image = self._read_key(_ENCODE({name: members[name] for name in self._key_names}))
        return _KEY_BEGIN + self._key_images.lines([image]).removesuffix(b"\n") + self._key_end

    def key_columns(self, columns: list[Texts]) -> list[Texts]:
        """Returns the texts of each column of the handle key, in its order; no column if the table has no key."""
        return [columns[at] for at in self._handle]


def _image_type(images: ImageTypes, formats: list[ValueFormat]) -> Any:
    return images.type_of([(Raw if each.read is Raw else each.read | None,) for each in formats])


def _row_type(image: Any) -> Any:
    images = image | None | UnsetType
    fields: list[Any] = [("before", images, UNSET), ("after", images, UNSET)]
    return msgspec.defstruct("TableRow", fields, bases=(RowMembers,), forbid_unknown_fields=True, gc=False)


def members_of(image: bytes) -> dict[str, Raw]:
    """Returns an image's values by column, in order. Raises one of ``Unreadable``."""
    return _MEMBERS.decode(image)


def _end_of(schema: bytes) -> bytes:
    return b',"schema":' + schema + b"}" if schema else b"}"


def _texts(values: list[Any], value_format: ValueFormat) -> Texts:
    if value_format.texts is None or not values:
        return values
    if value_format.read is Raw or None not in values:
        return value_format.texts(values)
    non_null = [value for value in values if value is not None]
    converted = iter(value_format.texts(non_null) if non_null else ())
    return [None if value is None else next(converted) for value in values]


class SentLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The layout of a table in one message."""

    database: str
    table: str
    names: tuple[str, ...]
    """The columns of its images."""
    keys: tuple[str, ...] | None
    """The columns of the Kafka key, None if it has no key (before v8.5)."""
    schema: bytes
    """The schema of the value, byte for byte; empty with debezium-disable-schema."""
    key_schema: bytes


class TableReaders:
    """The tables of a feed whose layouts messages have sent so far."""

    __slots__ = ("_by_layout", "_definitions", "_zone")

    def __init__(self, context: DecoderContext, zone: ZoneInfo) -> None:
        self._definitions = {
            (fold(database), fold(table)): {fold(column.name): column for column in columns}
            for (database, table, version), columns in context.schemas.items()
            if version == 0
        }
        self._zone = zone
        self._by_layout: dict[SentLayout, DebeziumTableReader] = {}

    def reader(self, sent: SentLayout) -> DebeziumTableReader:
        """Returns the reader of rows with this layout. Raises DecodeError, or one of ``Unreadable``."""
        return cached(self._by_layout, sent, lambda: DebeziumTableReader(sent, self._columns(sent)))

    def _columns(self, sent: SentLayout) -> dict[str, SentColumn]:
        fields = columns_of(sent.schema) if sent.schema else {}
        if fields and not fields.keys() >= {*sent.names}:
            raise DecodeError("wrong_columns", f"expected columns {[*fields]}, found {[*sent.names]}")
        if fields and not fields.keys() >= {*(sent.keys or ())}:
            raise DecodeError(
                "wrong_columns", f"expected key columns among {[*fields]}, found {sent.keys} {KEY_COLUMN_HINT}"
            )
        defined = self._defined(sent)
        # Before v8.5 messages have no key (wire.md 1.5.1).
        keys = sent.keys if sent.keys is not None else [name for name, column in defined.items() if column.key]
        key, names = {*map(fold, keys)}, {name: fold(name) for name in sent.names}
        # ticdc takes a unique key with virtual columns too, which images do not have, and the others are not unique.
        key = key if {*names.values()} >= key else set()
        return {
            name: sent_column(name, fields.get(name), defined.get(folded), self._zone, key=folded in key)
            for name, folded in names.items()
        }

    def _defined(self, sent: SentLayout) -> dict[str, Column]:
        """Returns the columns that the caller knows of a table, by their names without case (wire.md 8.14)."""
        return self._definitions.get((fold(sent.database), fold(sent.table)), {})
