"""Every byte of a Simple message in Avro, field by field, by the schema of all messages (wire.md 1.3.2)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import count

from ticdc_codec.byte_map import ByteMap, Walk, mapped
from ticdc_codec.errors import DecodeError
from ticdc_codec.number import zigzag
from ticdc_codec.simple.avro.control import DDL_TYPES

Read = Callable[[Walk, str], None]
"""Reads one thing, which has this name."""


def byte_map(value: bytes) -> ByteMap:
    """The map of a message's value."""
    return mapped("value", value, _read_message)


def _read_message(walk: Walk) -> None:
    for name, read in _MESSAGE.items():
        read(walk, name)
    walk.finish("the message")


def _long(walk: Walk, name: str) -> None:
    walk.number(name, "zigzag varint", zigzag)


def _text(walk: Walk, name: str) -> None:
    _sized(walk, name, "text", lambda data: data.decode(errors="backslashreplace"))


def _unsigned(walk: Walk, name: str) -> None:
    walk.number(name, "zigzag varint of the 64 bits", lambda raw: zigzag(raw) % (1 << 64))


def _message(walk: Walk, name: str) -> None:
    """The schema is a union of twelve types, of which the last is a message."""
    number = walk.number(name, "union, zigzag varint", zigzag)
    if number != 11:
        raise DecodeError("wrong_type", f"expected {name} 11, a message, found {number}", offset=0)


def _bytes(walk: Walk, name: str) -> None:
    _sized(walk, name, "bytes", bytes.hex)


def _sized(walk: Walk, name: str, meaning: str, show: Callable[[bytes], str]) -> None:
    size = walk.number(f"length of {name}", "zigzag varint", zigzag)
    if size < 0:
        raise DecodeError("truncated", f"expected a length of at least 0, found {size}", offset=walk.at - 1)
    walk.octets(name, size, meaning, show)


def _boolean(walk: Walk, name: str) -> None:
    walk.octets(name, 1, "byte", lambda data: str(bool(data[0])).lower())


def _float(form: str, size: int) -> Read:
    def read(walk: Walk, name: str) -> None:
        walk.octets(name, size, f"float{size * 8}, little endian", lambda data: repr(struct.unpack(form, data)[0]))

    return read


def _enum(*words: str) -> Read:
    def read(walk: Walk, name: str) -> None:
        _choice(walk, name, "enum", words)

    return read


def _choice(walk: Walk, name: str, kind: str, words: tuple[str, ...]) -> int:
    """A number that stands for one of these words."""
    start = walk.at
    number = walk.number(
        name, f"{kind}, zigzag varint", zigzag, lambda n: f"{n} {words[n] if 0 <= n < len(words) else 'unknown'}"
    )
    if not 0 <= number < len(words):
        raise DecodeError("wrong_type", f"expected {name} 0 to {len(words) - 1}, found {number}", offset=start)
    return number


def _union(branches: dict[str, Read]) -> Read:
    def read(walk: Walk, name: str) -> None:
        words = tuple(branches)
        chosen = words[_choice(walk, f"type of {name}", "union", words)]
        branches[chosen](walk, name)

    return read


def _nothing(walk: Walk, name: str) -> None:
    """null: no bytes."""


def _optional(kind: str, read: Read) -> Read:
    return _union({"null": _nothing, kind: read})


def _record(fields: dict[str, Read]) -> Read:
    def read(walk: Walk, name: str) -> None:
        with walk.section(name) as part:
            for field, read_field in fields.items():
                read_field(part, field)

    return read


def _blocks(read_item: Callable[[Walk, int], None]) -> Read:
    """An array or a map: blocks of items up to one of none; a negative count is followed by the block's size."""

    def read(walk: Walk, name: str) -> None:
        with walk.section(name) as part:
            numbers = count()
            while items := part.number("count of items", "zigzag varint; 0 is the end", zigzag):
                if items < 0:
                    part.number("size of the block", "zigzag varint, bytes", zigzag)
                for _ in range(abs(items)):
                    read_item(part, next(numbers))

    return read


def _array(read: Read) -> Read:
    return _blocks(lambda walk, number: read(walk, f"item {number}"))


def _map(read: Read) -> Read:
    def read_entry(walk: Walk, number: int) -> None:
        with walk.section(f"entry {number}") as part:
            _text(part, "name")
            read(part, "value")

    return _blocks(read_entry)


_TIMESTAMP = _record({"location": _text, "value": _text})
_VALUE = _union(
    {
        "null": _nothing,
        "long": _long,
        "float": _float("<f", 4),
        "double": _float("<d", 8),
        "string": _text,
        "bytes": _bytes,
        "Timestamp": _TIMESTAMP,
        "UnsignedBigint": _unsigned,
    }
)
_DATA_TYPE = _record(
    {
        "mysqlType": _text,
        "charset": _text,
        "collate": _text,
        "length": _long,
        "decimal": _optional("int", _long),
        "elements": _optional("array", _array(_text)),
        "unsigned": _optional("boolean", _boolean),
        "zerofill": _optional("boolean", _boolean),
    }
)
_COLUMN = _record({"name": _text, "dataType": _DATA_TYPE, "nullable": _boolean, "default": _optional("string", _text)})
_INDEX = _record(
    {"name": _text, "unique": _boolean, "primary": _boolean, "nullable": _boolean, "columns": _array(_text)}
)
_SCHEMA = _record(
    {
        "database": _text,
        "table": _text,
        "tableID": _long,
        "version": _long,
        "columns": _array(_COLUMN),
        "indexes": _array(_INDEX),
    }
)
_CHECKSUM = _record({"version": _long, "corrupted": _boolean, "current": _long, "previous": _long})
_PAYLOADS: dict[str, Read] = {
    "Watermark": _record({"version": _long, "commitTs": _long, "buildTs": _long}),
    "Bootstrap": _record({"version": _long, "buildTs": _long, "tableSchema": _SCHEMA}),
    "DDL": _record(
        {
            "version": _long,
            "type": _enum(*DDL_TYPES),
            "sql": _text,
            "commitTs": _long,
            "buildTs": _long,
            "tableSchema": _optional("TableSchema", _SCHEMA),
            "preTableSchema": _optional("TableSchema", _SCHEMA),
        }
    ),
    "DML": _record(
        {
            "version": _long,
            "database": _text,
            "table": _text,
            "tableID": _long,
            "type": _enum("INSERT", "UPDATE", "DELETE"),
            "commitTs": _long,
            "buildTs": _long,
            "schemaVersion": _long,
            "claimCheckLocation": _optional("string", _text),
            "handleKeyOnly": _optional("boolean", _boolean),
            "checksum": _optional("Checksum", _CHECKSUM),
            "data": _optional("map", _map(_VALUE)),
            "old": _optional("map", _map(_VALUE)),
        }
    ),
}
_MESSAGE: dict[str, Read] = {
    "type in the schema": _message,
    "type": _enum("WATERMARK", "BOOTSTRAP", "DDL", "DML"),
    "payload": _union(_PAYLOADS),
}
