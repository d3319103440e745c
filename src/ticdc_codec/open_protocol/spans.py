"""Every byte of an Open Protocol message, field by field (wire.md 1.2.1)."""

from __future__ import annotations

from functools import partial

from ticdc_codec.byte_map import ByteMap, Walk, content_text, mapped
from ticdc_codec.errors import DecodeError
from ticdc_codec.open_protocol.frame import VERSION
from ticdc_codec.options import Compression, SinkOptions

_SIZE = len(VERSION)


def byte_maps(key: bytes | None, value: bytes | None, options: SinkOptions) -> tuple[ByteMap, ...]:
    """The maps of a message's key and value."""
    compression = options.large_message_handle_compression
    return mapped("key", key or b"", _read_key), mapped("value", value or b"", partial(_read_value, compression))


def _read_key(walk: Walk) -> None:
    version = walk.octets("version", _SIZE, "int64", _number)
    if version != VERSION:
        raise DecodeError("unknown_version", f"expected version 1, found 0x{version.hex()}", offset=0)
    _read_events(walk, "key", Compression.NONE)


def _read_value(compression: Compression, walk: Walk) -> None:
    _read_events(walk, "value", compression)


def _read_events(walk: Walk, what: str, compression: Compression) -> None:
    number = 0
    while walk.at < walk.end:
        with walk.section(f"event {number}") as part:
            size = part.octets(f"length of the {what}", _SIZE, "int64, big endian", _number)
            meaning = "JSON" if compression is Compression.NONE else f"JSON, compressed with {compression}"
            part.octets(what, int.from_bytes(size), meaning, partial(content_text, compression))
        number += 1


def _number(data: bytes) -> str:
    return str(int.from_bytes(data))
