"""Messages in Avro: the bytes that TiCDC writes for the same datum, but for the order of map entries, which is random
there and that of the columns here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import repeat
from struct import Struct
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from ticdc_codec.enum_values import number_of_names
from ticdc_codec.event import Column, Event, RowChange
from ticdc_codec.mysql_type import parse_type
from ticdc_codec.number import Places, octets_of, varint, zigzagged
from ticdc_codec.options import SinkOptions
from ticdc_codec.same_layout import Alike, with_nulls, written
from ticdc_codec.simple.avro.control import DDL_TYPES, MESSAGE, ROW
from ticdc_codec.simple.avro.header import OPS
from ticdc_codec.simple.avro.maps import Tag
from ticdc_codec.simple.avro.values import Form, form_of
from ticdc_codec.simple.message import BOOTSTRAP, VERSION, WATERMARK, Checksum, Envelope
from ticdc_codec.simple.schema import ColumnSchema, DataType, IndexSchema, TableSchema

_NULL = b"\0"
_SOME = b"\2"
_END = b"\0"
_ROW = ROW + varint(VERSION)
_repeated = lru_cache(maxsize=4096)(varint)
"""Numbers that many rows share."""
_FLOAT, _DOUBLE = Struct("<f"), Struct("<d")


class AvroWriter:
    """Writes messages of one run of events."""

    def __init__(self, options: SinkOptions, events: Sequence[Event]) -> None:
        self._maps = partial(_maps, zone=options.time_zone)
        self._images = written([event for event in events if isinstance(event, RowChange)], self._maps)
        self._heads: dict[tuple[Any, ...], bytes] = {}

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

    def row(
        self, row: RowChange, commit_ts: int, version: int, checksum: Checksum | None, location: str | None
    ) -> bytes:
        """A row's message, ``location`` that of its claim-check object."""
        # A row that was cut is none of the events.
        before, after = (written((row,), self._maps) if row.handle_only else self._images)[id(row)]
        return b"".join(
            (
                self._head(row.database, row.table, row.table_id or 0, row.op),
                varint(commit_ts),
                _repeated(row.commit_ms),
                _repeated(version),
                _NULL if location is None else _SOME + _text(location),
                b"\2\1" if row.handle_only else _NULL,
                _NULL if checksum is None else _SOME + _checksum(checksum),
                after or _NULL,
                before or _NULL,
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


def _maps(some: Alike, zone: ZoneInfo) -> Iterable[bytes]:
    """Images as maps."""
    count = len(some.images)
    begin = _SOME + (varint(len(some.names)) if some.names else b"")
    columns = [column for column in some.columns if column.name in some.names]
    entries = [part for column in columns for part in _entries(column, zone, some.texts(column.name))]
    return map(b"".join, zip(repeat(begin, count), *entries, repeat(_END, count), strict=True))


def _entries(column: Column, zone: ZoneInfo, texts: list[str | None]) -> tuple[Iterable[bytes], list[bytes]]:
    """One entry of many maps: what stands before each value, and the values."""
    form = form_of(column.type)
    values = with_nulls(texts, _by_name(column) if column.by == "name" else _WRITERS[form], b"")
    name = _text(column.name)
    head = name + varint(_TAGS[form]) + (_text(zone.key) if form is Form.TIMESTAMP else b"")
    heads = map(_Sized(head).__getitem__, map(len, values)) if form in _SIZED else repeat(head, len(values))
    if None not in texts:
        return heads, values
    null = name + varint(Tag.NULL)
    return [null if text is None else head for text, head in zip(texts, heads, strict=True)], values


def _by_name(column: Column) -> Callable[[list[str]], list[bytes]]:
    """What writes ENUM and SET values that are names."""
    number, write = number_of_names(parse_type(column.type)), _WRITERS[form_of(column.type)]
    return lambda texts: write([*map(number, texts)])


class _Sized(dict[int, bytes]):
    """By the size of a text the bytes that tell it, and those before them."""

    def __init__(self, head: bytes) -> None:
        super().__init__()
        self._head = head

    def __missing__(self, size: int) -> bytes:
        found = self[size] = self._head + varint(size)
        return found


def _text(text: str) -> bytes:
    content = text.encode()
    return varint(len(content)) + content


def _texts(texts: list[str]) -> list[bytes]:
    return [*map(str.encode, texts)]


def _binaries(texts: list[str]) -> list[bytes]:
    return [*map(bytes.fromhex, texts)]


def _signed(texts: list[str]) -> list[bytes]:
    return _numbers(np.array([*map(int, texts)], np.int64))


def _unsigned(texts: list[str]) -> list[bytes]:
    """All 64 bits, as a number with a sign."""
    return _numbers(np.array([*map(int, texts)], np.uint64).view(np.int64))


def _numbers(numbers: Places) -> list[bytes]:
    octets, sizes = octets_of(zigzagged(numbers))
    content, ends = octets.tobytes(), np.cumsum(sizes).tolist()
    return [content[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []


def _floats(texts: list[str]) -> list[bytes]:
    return [*map(_FLOAT.pack, map(float, texts))]


def _doubles(texts: list[str]) -> list[bytes]:
    return [*map(_DOUBLE.pack, map(float, texts))]


_WRITERS: dict[Form, Callable[[list[str]], list[bytes]]] = {
    Form.SIGNED: _signed,
    Form.UNSIGNED: _signed,
    Form.ENUM: _signed,
    Form.BITS: _unsigned,
    Form.BIGINT: _unsigned,
    Form.YEAR: _signed,
    Form.FLOAT: _floats,
    Form.DOUBLE: _doubles,
    Form.TEXT: _texts,
    Form.BINARY: _binaries,
    Form.TIMESTAMP: _texts,
}
_TAGS = {
    **dict.fromkeys((Form.SIGNED, Form.UNSIGNED, Form.ENUM, Form.BITS, Form.YEAR), Tag.LONG),
    Form.BIGINT: Tag.UNSIGNED_BIGINT,
    Form.FLOAT: Tag.FLOAT,
    Form.DOUBLE: Tag.DOUBLE,
    Form.TEXT: Tag.STRING,
    Form.BINARY: Tag.BYTES,
    Form.TIMESTAMP: Tag.TIMESTAMP,
}
_SIZED = (Form.TEXT, Form.BINARY, Form.TIMESTAMP)
"""What has its size before it."""


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
