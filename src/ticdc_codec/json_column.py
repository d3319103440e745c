"""Columns of values as contents of JSON strings, and JSON texts joined from such columns: a batch in a few calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc


def joined(opening: str, members: Iterable[tuple[str, pa.Array]], closing: str) -> pa.Array:
    """JSON texts, one a row: each member's label, then its value between quotes or ``null``."""
    pieces: list[Any] = []
    text = opening
    for label, column in members:
        if column.null_count:
            quoted = pc.binary_join_element_wise('"', column, '"', "").fill_null("null")
            pieces += [text + label, quoted]
            text = ","
        else:
            pieces += [text + label + '"', column]
            text = '",'
    return pc.binary_join_element_wise(*pieces, text.removesuffix(",") + closing, "")


def escaped(texts: pa.Array) -> pa.Array:
    """The texts as contents of JSON strings, escaped as orjson does it. ``texts`` is no slice of an array."""
    # octets: all texts one after another; starts[n]: where text n begins in them. special: the octets to be escaped;
    # numbers: the texts that have any.
    _, offsets, data = texts.buffers()
    octets = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    blocks = range(0, len(octets), _BLOCK)
    special = np.concatenate([_specials(octets[at : at + _BLOCK]) + at for at in blocks] or [_NO_OFFSETS])
    if not len(special):
        return texts
    starts = np.frombuffer(offsets, np.int32)[: len(texts) + 1]
    numbers = np.unique(np.searchsorted(starts, special, side="right") - 1)
    mask = np.zeros(len(texts), bool)
    mask[numbers] = True
    escaped = [orjson.dumps(text)[1:-1] for text in texts.take(pa.array(numbers)).to_pylist()]
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(escaped, pa.string()))


_BLOCK = 1 << 16
"""Bytes that are looked at together: what is known of so many stays in a processor's cache."""
_NO_OFFSETS = np.zeros(0, np.int64)


def _specials(octets: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """The offsets of control characters, quotes and backslashes."""
    return np.flatnonzero((octets < 0x20) | (octets == 0x22) | (octets == 0x5C))


def slices_of(buffer: pa.Buffer, starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> pa.Array:
    """Slices of a buffer as large binaries, without a copy: slice n is item 2 n, the bytes behind it are item 2 n + 1.

    ``starts`` and ``starts + sizes`` ascend, as Arrow's offsets do.
    """
    # offsets: begin and end of slice 0, of slice 1, …
    offsets = np.stack((starts, starts + sizes), axis=1).ravel()
    buffers = [None, pa.py_buffer(offsets), buffer]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def not_utf8(texts: pa.Array) -> npt.NDArray[np.bool_]:
    """Which of the binaries are no UTF-8."""
    return np.array([text != text.decode(errors="replace").encode() for text in texts.to_pylist()])


def digits_of(slices: pa.Array) -> pa.Array:
    """Large binaries as lower-case hexadecimal digits."""
    _, offsets, data = slices.buffers()
    starts = np.frombuffer(offsets, np.int64)[: len(slices) + 1]
    digits = data.to_pybytes().hex().encode() if data is not None else b""
    buffers = [None, pa.py_buffer(2 * starts), pa.py_buffer(digits)]
    return pa.Array.from_buffers(pa.large_string(), len(slices), buffers).cast(pa.string())
