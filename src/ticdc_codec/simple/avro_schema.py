"""The Avro schema of all Simple messages, and a walk over a message's bytes by it.

Both writers use one schema, a union of twelve named types of which the last is the message (wire.md 1.3.2). The walk
makes the map of the bytes for people, and names the fault of a message that does not decode: fastavro accepts numbers
of more than 64 bits, wrong block sizes and bytes after the end, and its errors have no position.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import count, takewhile
from typing import Any

import fastavro

from ticdc_codec.byte_map import ByteMap, Walk, mapped, whole_maps
from ticdc_codec.errors import DecodeError
from ticdc_codec.number import zigzag
from ticdc_codec.options import Compression, EncodingFormat, SinkOptions

ROW = b"\x16\x06\x06"
"""First bytes of every row: number 11 of the union at the top, a message; type DML; payload DML (wire.md 1.3.2)."""
DDL_TYPES = ("CREATE", "ALTER", "ERASE", "RENAME", "TRUNCATE", "CINDEX", "DINDEX", "QUERY")
ROW_TYPES = ("INSERT", "UPDATE", "DELETE")
VALUE_TYPES = ("null", "long", "float", "double", "string", "bytes", "Timestamp", "UnsignedBigint")
"""Types of a column's value, in the order of the union."""

Schema = Any
"""A type of Avro: a name, a list (union), or a dict (record, enum, array, map)."""

_DEFAULT = {"type": "string", "doc": "of a BIT column: the bits' bytes, which need not be UTF-8 (wire.md 1.3.1)"}


def _record(name: str, /, **fields: Schema) -> Schema:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


def _enum(name: str, *symbols: str) -> Schema:
    return {"type": "enum", "name": name, "symbols": [*symbols]}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _optional(kind: Schema) -> Schema:
    return ["null", kind]


_IMAGE = _optional({"type": "map", "values": [*VALUE_TYPES]})
SCHEMA: list[Schema] = [
    _record(
        "DataType",
        mysqlType="string",
        charset="string",
        collate="string",
        length="long",
        decimal=_optional("int"),
        elements=_optional(_array("string")),
        unsigned=_optional("boolean"),
        zerofill=_optional("boolean"),
    ),
    _record("ColumnSchema", name="string", dataType="DataType", nullable="boolean", default=_optional(_DEFAULT)),
    _record(
        "IndexSchema", name="string", unique="boolean", primary="boolean", nullable="boolean", columns=_array("string")
    ),
    _record(
        "TableSchema",
        database="string",
        table="string",
        tableID="long",
        version="long",
        columns=_array("ColumnSchema"),
        indexes=_array("IndexSchema"),
    ),
    _record("Checksum", version="int", corrupted="boolean", current="long", previous="long"),
    _record("Watermark", version="int", commitTs="long", buildTs="long"),
    _record("Bootstrap", version="int", buildTs="long", tableSchema="TableSchema"),
    _record(
        "DDL",
        version="int",
        type=_enum("DDLType", *DDL_TYPES),
        sql="string",
        commitTs="long",
        buildTs="long",
        tableSchema=_optional("TableSchema"),
        preTableSchema=_optional("TableSchema"),
    ),
    _record("Timestamp", location="string", value="string"),
    _record("UnsignedBigint", value="long"),
    _record(
        "DML",
        version="int",
        database="string",
        table="string",
        tableID="long",
        type=_enum("DMLType", *ROW_TYPES),
        commitTs="long",
        buildTs="long",
        schemaVersion="long",
        claimCheckLocation=_optional("string"),
        handleKeyOnly=_optional("boolean"),
        checksum=_optional("Checksum"),
        data=_IMAGE,
        old=_IMAGE,
    ),
    _record(
        "Message",
        type=_enum("MessageType", "WATERMARK", "BOOTSTRAP", "DDL", "DML"),
        payload=["Watermark", "Bootstrap", "DDL", "DML"],
    ),
]
_NAMED: dict[str, Schema] = {schema["name"]: schema for schema in SCHEMA}


def _row_schema() -> Schema:
    named: dict[str, Schema] = {}
    return {schema["name"]: fastavro.parse_schema(schema, named) for schema in SCHEMA}["DML"]


PARSED, PARSED_ROW = fastavro.parse_schema(SCHEMA), _row_schema()
"""SCHEMA, and that of only a row's payload, as fastavro expects them."""


def byte_maps(key: bytes | None, value: bytes | None, options: SinkOptions) -> tuple[ByteMap, ...]:
    """Returns the map of a message's value, for people; its key is null. JSON and compressed values are one span."""
    compressed = options.large_message_handle_compression is not Compression.NONE
    if compressed or options.encoding_format is EncodingFormat.JSON:
        return whole_maps(key, value, options)
    return (mapped("value", value or b"", _read_message),)


def check(value: bytes) -> None:
    """Reads every byte of a message by its schema. Raises DecodeError with reason and position of the first fault."""
    _read_message(Walk(value, 0, len(value), keep=False))


def names_claim_check(value: bytes) -> bool:
    """True if the message is a row that names a claim-check object; False for any other bytes."""
    walk = Walk(value, len(ROW), len(value), keep=False)
    fields = takewhile(lambda field: field["name"] != "claimCheckLocation", _NAMED["DML"]["fields"])
    try:
        for field in fields:
            _read(walk, field["type"], field["name"])
        return value.startswith(ROW) and walk.number("claimCheckLocation", "union", zigzag) == 1
    except DecodeError:
        return False


def _read_message(walk: Walk) -> None:
    number = walk.number("type in the schema", "union, zigzag varint", zigzag)
    if number != len(SCHEMA) - 1:
        raise DecodeError("wrong_type", f"expected type in the schema 11, a message, found {number}", offset=0)
    for field in _NAMED["Message"]["fields"]:
        _read(walk, field["type"], field["name"])
    walk.finish("the message")


def _read(walk: Walk, schema: Schema, name: str) -> None:
    """Reads one value of a type."""
    match schema:
        case str() if schema in _PRIMITIVES:
            _PRIMITIVES[schema](walk, name)
        case str():
            _read(walk, _NAMED[schema], name)
        case [*branches]:
            words = tuple(branch if isinstance(branch, str) else branch["type"] for branch in branches)
            _read(walk, branches[_choice(walk, f"type of {name}", "union", words)], name)
        case {"symbols": symbols}:
            _choice(walk, name, "enum", symbols)
        case {"items": items}:
            _read_blocks(walk, name, lambda part, number: _read(part, items, f"item {number}"))
        case {"values": values}:
            _read_blocks(walk, name, lambda part, number: _read_entry(part, values, f"entry {number}"))
        case {"name": "UnsignedBigint"}:
            walk.number(name, "zigzag varint of the 64 bits", lambda raw: zigzag(raw) % (1 << 64))
        case {"fields": fields}:
            with walk.section(name) as part:
                for field in fields:
                    _read(part, field["type"], field["name"])
        case _:
            _read_sized(walk, name, "text", _shown_text)


def _read_entry(walk: Walk, values: Schema, name: str) -> None:
    with walk.section(name) as part:
        _read_text(part, "name")
        _read(part, values, "value")


def _read_blocks(walk: Walk, name: str, read_item: Callable[[Walk, int], None]) -> None:
    """Reads an array or a map: blocks of items up to one of none; a negative count is followed by the block's size."""
    with walk.section(name) as part:
        numbers = count()
        while items := part.number("count of items", "zigzag varint; 0 is the end", zigzag):
            size = part.number("size of the block", "zigzag varint, bytes", zigzag) if items < 0 else None
            start = part.at
            for _ in range(abs(items)):
                read_item(part, next(numbers))
            if size not in (None, part.at - start):
                detail = f"expected a block of {size} bytes, found {part.at - start}"
                raise DecodeError("wrong_type", detail, offset=start)


def _choice(walk: Walk, name: str, kind: str, words: tuple[str, ...]) -> int:
    """Returns the index of one of these words."""
    start = walk.at
    number = walk.number(
        name, f"{kind}, zigzag varint", zigzag, lambda n: f"{n} {words[n] if 0 <= n < len(words) else 'unknown'}"
    )
    if not 0 <= number < len(words):
        raise DecodeError("wrong_type", f"expected {name} 0 to {len(words) - 1}, found {number}", offset=start)
    return number


def _read_boolean(walk: Walk, name: str) -> None:
    start = walk.at
    octet = walk.octets(name, 1, "byte", lambda data: str(bool(data[0])).lower())
    if octet > b"\1":
        raise DecodeError("wrong_type", f"expected {name} 0 or 1, found {octet[0]}", offset=start)


def _read_text(walk: Walk, name: str) -> None:
    octets = _read_sized(walk, name, "text", _shown_text)
    try:
        octets.decode()
    except UnicodeDecodeError as fault:
        offset = walk.at - len(octets) + fault.start
        raise DecodeError("bad_utf8", f"expected UTF-8 in {name}, found {fault.reason}", offset=offset) from None


def _shown_text(octets: bytes) -> str:
    return octets.decode(errors="backslashreplace")


def _read_sized(walk: Walk, name: str, meaning: str, show: Callable[[bytes], str]) -> bytes:
    start = walk.at
    size = walk.number(f"length of {name}", "zigzag varint", zigzag)
    if size < 0:
        raise DecodeError("truncated", f"expected a length of at least 0, found {size}", offset=start)
    return walk.octets(name, size, meaning, show)


def _float(encoding: str, size: int) -> Callable[[Walk, str], None]:
    def read(walk: Walk, name: str) -> None:
        walk.octets(name, size, f"float{size * 8}, little endian", lambda data: repr(struct.unpack(encoding, data)[0]))

    return read


_PRIMITIVES: dict[str, Callable[[Walk, str], object]] = {
    "null": lambda _walk, _name: None,
    "boolean": _read_boolean,
    "int": lambda walk, name: walk.number(name, "zigzag varint", zigzag),
    "long": lambda walk, name: walk.number(name, "zigzag varint", zigzag),
    "float": _float("<f", 4),
    "double": _float("<d", 8),
    "string": _read_text,
    "bytes": lambda walk, name: _read_sized(walk, name, "bytes", bytes.hex),
}
