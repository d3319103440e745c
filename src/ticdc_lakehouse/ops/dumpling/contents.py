"""Files of an export that are read whole: decompressed piece by piece, and split into lines. Runs in a Python worker.

Spark itself splits files into lines where no value has a line end and Hadoop knows the compression; these are the
others.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from ticdc_codec.errors import ConfigError, DecodeError
from ticdc_codec.message import decompress
from ticdc_codec.options import Compression
from ticdc_lakehouse.ops.dumpling.dialect import Dialect
from ticdc_lakehouse.ops.dumpling.fields import outside, positions, slices

UNKNOWN_TO_SPARK = (".zst", ".snappy")
"""Compressions that Spark does not read everywhere: Hadoop's zstd is a native library, its snappy has other frames."""
PIECE = 8 * 1024 * 1024
"""Bytes that are split into lines at a time, or more where a line is longer."""
COPY_AGAIN = "copy the export again, or export it again"
CUT_OFF = f"is cut off, its last line does not end as dumpling ends it: {COPY_AGAIN}"
HOLDS_NOTHING = f"holds nothing, and dumpling writes no such file: {COPY_AGAIN}"
_STREAMS = {".gz": "gzip", ".zst": "zstd"}
_SNAPPY_BLOCK, _SNAPPY_STORED, _SNAPPY_SKIPPED = 0x00, 0x01, 0x80
"""Kinds of chunks of a snappy frame; from the last on they say nothing about the content."""
_MAX_BLOCK = 64 * 1024


def content(data: bytes, name: str, *, limit: int | None = None) -> bytes:
    """Returns what a file holds, or the beginning of it where only the file's beginning is given and ``limit`` ends it.

    Raises ConfigError for a damaged file.
    """
    beginning = bytearray()
    try:
        for piece in pieces(data, name):
            beginning += piece
            if limit is not None and len(beginning) >= limit:
                break
    except ConfigError:
        if limit is None or not beginning:
            raise
    return bytes(beginning)


def lines(data: bytes, name: str, dialect: Dialect) -> Iterator[pa.Array]:
    """Yields the lines of a file without LF, in arrays of BINARY. A line end within a value ends no line.

    Raises ConfigError for a damaged file: also one without content, or without LF at its end.
    """
    rest = None
    for piece in _gathered(pieces(data, name)):
        text = (rest or b"") + piece
        array = np.frombuffer(text, np.uint8)
        ends = positions(array, b"\n")
        if not dialect.backslash:
            ends = outside(ends, positions(array, dialect.quote))
        if len(ends):
            yield slices(text, np.concatenate(([0], ends[:-1] + 1)), ends)
            text = text[int(ends[-1]) + 1 :]
        rest = text
    if rest is None:
        raise ConfigError(f"{unquote(name)} {HOLDS_NOTHING}")
    if rest:
        other = "" if dialect.backslash else "; or was it without --escape-backslash=false?"
        raise ConfigError(f"{unquote(name)} {CUT_OFF}{other}")


def pieces(data: bytes, name: str) -> Iterator[bytes]:
    """Yields what a file holds, in pieces. Raises ConfigError for a damaged file."""
    suffix = next((suffix for suffix in (".gz", *UNKNOWN_TO_SPARK) if name.endswith(suffix)), "")
    try:
        if suffix in _STREAMS:
            with pa.CompressedInputStream(pa.BufferReader(data), _STREAMS[suffix]) as stream:
                while piece := stream.read(PIECE):
                    yield piece
        elif suffix:
            yield from _snappy_frames(data)
        else:
            for start in range(0, len(data), PIECE):
                yield data[start : start + PIECE]
    except (OSError, DecodeError) as error:
        raise ConfigError(f"{name}: cannot be decompressed: {error}") from None


def _snappy_frames(data: bytes) -> Iterator[bytes]:
    """Yields the blocks of snappy's framing format (google/snappy, framing_format.txt); checksums are not verified."""
    at = 0
    while at < len(data):
        kind, size = data[at], int.from_bytes(data[at + 1 : at + 4], "little")
        chunk, at = data[at + 4 : at + 4 + size], at + 4 + size
        if len(chunk) < size:
            raise OSError("a snappy frame is cut off")
        if kind == _SNAPPY_BLOCK:
            yield decompress(chunk[4:], Compression.SNAPPY, _MAX_BLOCK)
        elif kind == _SNAPPY_STORED:
            yield chunk[4:]
        elif kind < _SNAPPY_SKIPPED:
            raise OSError(f"expected a snappy frame, found a chunk of kind {kind}")


def _gathered(parts: Iterator[bytes]) -> Iterator[bytes]:
    gathered = bytearray()
    for part in parts:
        gathered += part
        if len(gathered) >= PIECE:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)
