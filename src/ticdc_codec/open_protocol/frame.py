"""Key and value of a message: texts behind their lengths (wire.md 1.2.1), and the key of one event (1.2.2).

``byte_maps`` shows people what each byte is.

key      int64 version 1, then for each event  int64 length, JSON
value                     for each event       int64 length, JSON (compressed, if the changefeed does so), or nothing
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from ticdc_codec.byte_map import ByteMap, Walk, content_text, mapped
from ticdc_codec.errors import DecodeError
from ticdc_codec.json_text import Unreadable, names_of, unreadable
from ticdc_codec.options import Compression, SinkOptions

_SIZE = 8
VERSION = (1).to_bytes(_SIZE)


def key_texts(key: bytes | None) -> list[bytes]:
    """Returns the events' keys. Raises DecodeError; it has no offset, as that of an error counts in the value."""
    if not key:
        raise DecodeError("empty", "expected a version in the key, found no bytes")
    if len(key) < _SIZE:
        raise DecodeError("truncated", f"expected 8 bytes of version in the key, found {len(key)}")
    if not key.startswith(VERSION):
        raise DecodeError("unknown_version", f"expected version 1 in the key, found 0x{key[:_SIZE].hex()}")
    try:
        return texts_of(key, _SIZE)
    except DecodeError as error:
        raise DecodeError(error.reason, f"in the key: {error.detail}") from None


def texts_of(data: bytes, start: int = 0) -> list[bytes]:
    """Returns the texts behind their lengths from ``start`` to the end. Raises DecodeError ``truncated``."""
    texts = []
    end = len(data)
    while start < end:
        begin = start + _SIZE
        start = begin + int.from_bytes(data[start:begin])
        if start > end:
            raise DecodeError(
                "truncated", f"a text of {start - begin} bytes ends after byte {end}", offset=begin - _SIZE
            )
        texts.append(data[begin:start])
    return texts


def framed(texts: Iterable[bytes]) -> bytes:
    """Inverse of ``texts_of``: each text behind its length."""
    return b"".join([part for text in texts for part in (len(text).to_bytes(_SIZE), text)])


def offset_of(texts: list[bytes], number: int) -> int:
    """Returns the byte at which text ``number`` begins in the value."""
    return sum(map(len, texts[:number])) + _SIZE * (number + 1)


ROW, DDL, RESOLVED = 1, 2, 3

_TWICE = b'"ohk":true,"ohk":false'
"""ticdc writes so beside ``ccl`` (wire.md 1.2.2)."""


class Key(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, gc=False):
    """One event's key: tiflow writes ts scm tbl rid ptn t ohk ccl, ticdc ts scm tbl t ohk ccl ptn (wire.md 1.2.2)."""

    ts: int
    scm: str | UnsetType = UNSET
    tbl: str | UnsetType = UNSET
    rid: int | UnsetType = UNSET
    """Row handle, deprecated."""
    ptn: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] | UnsetType = UNSET
    """Physical table id of a partition."""
    t: int
    ohk: bool | UnsetType = UNSET
    """Only the handle key is in the value."""
    ccl: str | UnsetType = UNSET
    """Location of the claim-check object."""


_DECODE = msgspec.json.Decoder(Key).decode
_ENCODE = msgspec.json.Encoder().encode


def read_key(text: bytes) -> Key:
    """Returns the key of one event. Raises DecodeError."""
    try:
        key = _DECODE(text)
        # The shortest JSON of these members; a name twice would make it longer. So do white space and escapes.
        if len(_ENCODE(key)) != len(text):
            names_of(text if key.ccl is UNSET else text.replace(_TWICE, b'"ohk":false'))
    except Unreadable as error:
        fault = unreadable(error, text)
        raise DecodeError(fault.reason, f"in the key: {fault.detail}") from None
    except DecodeError as error:
        raise DecodeError(error.reason, f"in the key: {error.detail}") from None
    return key


def byte_maps(key: bytes | None, value: bytes | None, options: SinkOptions) -> tuple[ByteMap, ...]:
    """Returns the maps of a message's key and value."""
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
