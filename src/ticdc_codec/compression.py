"""``large-message-handle-compression``: lz4 frames and snappy blocks; no message says which (wire.md 1.2.6)."""

from __future__ import annotations

import pyarrow as pa

from ticdc_codec.errors import DecodeError
from ticdc_codec.options import Compression

_CODECS = {Compression.LZ4: "lz4", Compression.SNAPPY: "snappy"}
_PART = 256 * 1024
MAX_DECOMPRESSED = 256 * 1024 * 1024
"""Bytes; a message that claims or holds more is refused (a decompression bomb)."""


def compress(data: bytes, compression: Compression) -> bytes:
    """``data`` in this compression's framing."""
    codec = _CODECS.get(compression)
    return data if codec is None else pa.compress(data, codec=codec, asbytes=True)


def decompress(data: bytes, compression: Compression, limit: int = MAX_DECOMPRESSED) -> bytes:
    """The content of ``data``. Raises DecodeError ``bad_compression``, or ``too_large`` above ``limit`` bytes."""
    match compression:
        case Compression.NONE:
            return data
        case Compression.LZ4:
            return _lz4(data, limit)
        case Compression.SNAPPY:
            return _snappy(data, limit)


def _lz4(data: bytes, limit: int) -> bytes:
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "lz4") as stream:
            content = _read(stream, limit)
    except OSError as error:
        raise DecodeError("bad_compression", f"expected an lz4 frame: {error}", offset=0) from None
    return _within(content, len(content), limit)


def _read(stream: pa.NativeFile, limit: int) -> bytes:
    """All that the stream holds, or a little more than ``limit`` bytes of it.

    Into a buffer of ours: ``NativeFile.read`` makes one of the size asked for, and never frees it if reading fails.
    """
    part, content = bytearray(_PART), bytearray()
    while len(content) <= limit and (count := stream.readinto(part)):
        content += memoryview(part)[:count]
    return bytes(content)


def _snappy(data: bytes, limit: int) -> bytes:
    size = _snappy_size(data)
    _within(b"", size, limit)
    try:
        return pa.decompress(data, decompressed_size=size, codec="snappy", asbytes=True)  # type: ignore[no-any-return]
    except OSError as error:
        raise DecodeError("bad_compression", f"expected a snappy block: {error}", offset=0) from None


def _snappy_size(data: bytes) -> int:
    """A snappy block begins with its content's length: at most five bytes of seven bits each."""
    size = 0
    for position, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return size
    raise DecodeError("bad_compression", "expected a snappy block, its length does not end", offset=0)


def _within(content: bytes, size: int, limit: int) -> bytes:
    if size > limit:
        raise DecodeError("too_large", f"expected at most {limit} bytes after decompression, found {size} or more")
    return content
