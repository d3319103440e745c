"""Key and value of a message: texts behind their lengths (wire.md 1.2.1).

key      int64 version 1, then for each event  int64 length, JSON
value                     for each event       int64 length, JSON (compressed, if the changefeed does so), or nothing
"""

from __future__ import annotations

from collections.abc import Iterable

from ticdc_codec.errors import DecodeError

_SIZE = 8
VERSION = (1).to_bytes(_SIZE)


def key_texts(key: bytes | None) -> list[bytes]:
    """The events' keys. Raises DecodeError; it has no offset, as that of an error counts in the value."""
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
    """The texts behind their lengths from ``start`` to the end. Raises DecodeError ``truncated``."""
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
    """``texts_of`` backwards."""
    return b"".join([part for text in texts for part in (len(text).to_bytes(_SIZE), text)])


def place_of(texts: list[bytes], number: int) -> int:
    """The byte at which a text begins in the value."""
    return sum(map(len, texts[:number])) + _SIZE * (number + 1)
