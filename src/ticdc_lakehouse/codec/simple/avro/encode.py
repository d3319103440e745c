"""Messages in Avro: the bytes that TiCDC writes for the same datum, but for the order of map entries, which is random
there and that of the columns here."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from ticdc_lakehouse.codec.element import number_of_names
from ticdc_lakehouse.codec.number import varint
from ticdc_lakehouse.codec.options import IntegrityCheck, SinkOptions
from ticdc_lakehouse.codec.simple.avro.control import DDL_TYPES, MESSAGE, ROW
from ticdc_lakehouse.codec.simple.avro.header import OPS
from ticdc_lakehouse.codec.simple.avro.maps import Tag
from ticdc_lakehouse.codec.simple.avro.values import Form, form_of
from ticdc_lakehouse.codec.simple.checksum import written
from ticdc_lakehouse.codec.simple.message import BOOTSTRAP, VERSION, WATERMARK, Checksum, Envelope
from ticdc_lakehouse.codec.simple.schema import ColumnSchema, DataType, IndexSchema, TableSchema
from ticdc_lakehouse.event import Column, Image, RowChange
from ticdc_lakehouse.mysql_type import parse_type

_NULL = b"\0"
_SOME = b"\2"
_END = b"\0"
_ROW = ROW + varint(VERSION)
_SIGN = 1 << 63
_SIZES = tuple(map(varint, range(1 << 10)))
"""Sizes of most texts."""

Write = Callable[[str], bytes]


class AvroWriter:
    """Writes messages of one run of events."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._heads: dict[tuple[Any, ...], bytes] = {}
        self._forms: dict[int, tuple[tuple[Column, ...], dict[str, tuple[bytes, bytes, Write]]]] = {}

    def control(self, message: Envelope) -> bytes:
        """A message without a row."""
        match message.type:
            case str(kind) if kind == WATERMARK:
                payload = 0, varint(message.commit_ts) + varint(message.build_ts)
            case str(kind) if kind == BOOTSTRAP and message.table_schema is not None:
                payload = 1, varint(message.build_ts) + _schema(message.table_schema)
            case _:
                payload = 2, _ddl(message)
        number = varint(payload[0])
        return MESSAGE + number + number + varint(VERSION) + payload[1]

    def row(self, row: RowChange, commit_ts: int, version: int) -> bytes:
        """A row's message."""
        checksum = _NULL
        if self._options.integrity_check_level is IntegrityCheck.CORRECTNESS:
            checksum = _SOME + _checksum(written(row, self._options.time_zone))
        return b"".join(
            (
                self._head(row.database, row.table, row.table_id or 0, row.op),
                varint(commit_ts),
                varint(row.commit_ms),
                varint(version),
                _NULL,
                b"\2\1" if row.handle_only else _NULL,
                checksum,
                self._image(row.after, row.columns),
                self._image(row.before, row.columns),
            )
        )

    def _head(self, *names: Any) -> bytes:
        """What stands before ``commitTs``: the same in many rows."""
        head = self._heads.get(names)
        if head is None:
            database, table, table_id, op = names
            places = varint(table_id) + varint(OPS.index(op))
            head = self._heads[names] = _ROW + _text(database) + _text(table) + places
        return head

    def _image(self, image: Image | None, columns: tuple[Column, ...]) -> bytes:
        if image is None:
            return _NULL
        if not image:
            return _SOME + _END
        form = self._form(columns)
        entries = [
            some + write(text) if text is not None else null
            for (null, some, write), text in zip(map(form.__getitem__, image), image.values(), strict=True)
        ]
        return b"".join((_SOME, varint(len(image)), *entries, _END))

    def _form(self, columns: tuple[Column, ...]) -> dict[str, tuple[bytes, bytes, Write]]:
        """Of each column its name before NULL, its name before a value, and what writes a value."""
        form = self._forms.get(id(columns))
        if form is None:
            written_columns = {column.name: _column_form(column, self._options.time_zone) for column in columns}
            # The form holds the columns, so that no others can have their id.
            form = self._forms[id(columns)] = (columns, written_columns)
        return form[1]


def _column_form(column: Column, zone: ZoneInfo) -> tuple[bytes, bytes, Write]:
    tag, write = _WRITERS[form_of(column.type)]
    if column.by == "name":
        number = number_of_names(parse_type(column.type))
        plain = write
        write = lambda names: plain(number(names))  # noqa: E731
    if tag is Tag.TIMESTAMP:
        write = partial(_located, _text(zone.key))
    name = _text(column.name)
    return name + varint(Tag.NULL), name + varint(tag), write


def _text(text: str) -> bytes:
    content = text.encode()
    size = len(content)
    return (_SIZES[size] if size < len(_SIZES) else varint(size)) + content


def _bytes(digits: str) -> bytes:
    content = bytes.fromhex(digits)
    return varint(len(content)) + content


def _located(location: bytes, text: str) -> bytes:
    return location + _text(text)


def _number(text: str) -> bytes:
    return varint(int(text))


def _bits(text: str) -> bytes:
    """All 64 bits of an unsigned number."""
    number = int(text)
    return varint(number - 2 * _SIGN if number >= _SIGN else number)


_WRITERS: dict[Form, tuple[Tag, Write]] = {
    Form.SIGNED: (Tag.LONG, _number),
    Form.UNSIGNED: (Tag.LONG, _number),
    Form.BITS: (Tag.LONG, _bits),
    Form.BIGINT: (Tag.UNSIGNED_BIGINT, _bits),
    Form.YEAR: (Tag.LONG, _number),
    Form.FLOAT: (Tag.FLOAT, lambda text: struct.pack("<f", float(text))),
    Form.DOUBLE: (Tag.DOUBLE, lambda text: struct.pack("<d", float(text))),
    Form.TEXT: (Tag.STRING, _text),
    Form.BINARY: (Tag.BYTES, _bytes),
    Form.TIMESTAMP: (Tag.TIMESTAMP, _text),
}


def _boolean(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def _optional(content: bytes | None) -> bytes:
    return _NULL if content is None else _SOME + content


def _array(items: Iterable[bytes]) -> bytes:
    found = [*items]
    return (varint(len(found)) + b"".join(found) if found else b"") + _END


def _checksum(checksum: Checksum) -> bytes:
    numbers = varint(checksum.current) + varint(checksum.previous)
    return varint(checksum.version) + _boolean(checksum.corrupted) + numbers


def _ddl(message: Envelope) -> bytes:
    kind = varint(DDL_TYPES.index(message.type))
    times = varint(message.commit_ts) + varint(message.build_ts)
    schemas = (None if each is None else _schema(each) for each in (message.table_schema, message.pre_table_schema))
    return kind + _text(message.sql or "") + times + b"".join(map(_optional, schemas))


def _schema(schema: TableSchema) -> bytes:
    names = _text(schema.database) + _text(schema.table) + varint(schema.table_id) + varint(schema.version)
    return names + _array(map(_column, schema.columns or ())) + _array(map(_index, schema.indexes or ()))


def _column(column: ColumnSchema) -> bytes:
    default = None if column.default is None else _text(str(column.default))
    return _text(column.name) + _data_type(column.data_type) + _boolean(column.nullable) + _optional(default)


def _data_type(kind: DataType) -> bytes:
    texts = _text(kind.mysql_type) + _text(kind.charset) + _text(kind.collate) + varint(kind.length)
    decimal = varint(kind.decimal) if kind.decimal else None
    elements = _array(map(_text, kind.elements)) if kind.elements else None
    flags = (_boolean(flag) if flag else None for flag in (kind.unsigned, kind.zerofill))
    return texts + b"".join(map(_optional, (decimal, elements, *flags)))


def _index(index: IndexSchema) -> bytes:
    flags = b"".join(map(_boolean, (index.unique, index.primary, index.nullable)))
    return _text(index.name) + flags + _array(map(_text, index.columns))
