"""Value texts of ``event`` to the bytes of column groups, those of a whole batch at once (wire.md 1.1.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_codec.craft.group import Form
from ticdc_codec.json_column import shortest
from ticdc_codec.number import Places, octets_of, zigzagged


def group_bytes(texts: list[str | None], forms: bytes, counts: list[int]) -> list[bytes]:
    """The value chunk of each column group, lengths and bytes, from the values of all groups (``counts`` in each).

    Raises ValueError for a text that its form cannot have.
    """
    if not texts:
        return []
    values = _values(pa.array(texts, pa.large_string()), np.frombuffer(forms, np.uint8))
    _, places, content = values.buffers()
    value_ends = np.frombuffer(places, np.int64)[: len(texts) + 1]
    data = b"" if content is None else content.to_pybytes()
    given = values.is_valid().to_numpy(zero_copy_only=False)
    octets, sizes = octets_of(zigzagged(np.where(given, np.diff(value_ends), -1)))
    lengths = octets.tobytes()
    group_ends = np.append(0, np.cumsum(counts))
    at = value_ends[group_ends].tolist()
    length_at = np.append(0, np.cumsum(sizes))[group_ends].tolist()
    parts = zip(length_at, length_at[1:], at, at[1:], strict=False)
    return [lengths[first:last] + data[start:end] for first, last, start, end in parts]


def _values(texts: pa.Array, forms: npt.NDArray[np.uint8]) -> pa.Array:
    """The values' bytes, in order."""
    place = np.full(len(texts), -1, np.int64)
    given = texts.is_valid().to_numpy(zero_copy_only=False)
    parts: list[pa.Array] = []
    total = 0
    for form, write in _WRITERS.items():
        chosen = np.flatnonzero((forms == form) & given)
        if len(chosen):
            parts.append(write(texts.take(pa.array(chosen))).cast(pa.large_binary()))
            place[chosen] = np.arange(total, total + len(chosen))
            total += len(chosen)
    everything = pa.concat_arrays(parts) if parts else pa.array([], pa.large_binary())
    return everything.take(pa.array(place, mask=place < 0))


def _nothing(texts: pa.Array) -> pa.Array:
    raise ValueError(f"a column of this type is always NULL in Craft, found {texts[0]}")


def _signed(texts: pa.Array) -> pa.Array:
    return _joined(*octets_of(zigzagged(texts.cast(pa.int64()).to_numpy())))


def _unsigned(texts: pa.Array) -> pa.Array:
    return _joined(*octets_of(texts.cast(pa.uint64()).to_numpy()))


def _doubles(texts: pa.Array) -> pa.Array:
    return _joined(texts.cast(pa.float64()).to_numpy().view(np.uint8), np.full(len(texts), 8))


def _floats(texts: pa.Array) -> pa.Array:
    """float32s, widened as TiCDC before 8.2 does. A text of none (craft-float) goes as the eight bytes that it was."""
    wide = texts.cast(pa.float64()).to_numpy().copy()
    with np.errstate(over="ignore"):
        narrow = wide.astype(np.float32)
    finite = np.flatnonzero(np.isfinite(narrow))
    single = finite[np.array(shortest(narrow[finite]), np.float64) == wide[finite]]
    wide[single] = narrow[single]
    return _joined(wide.view(np.uint8), np.full(len(texts), 8))


def _texts(texts: pa.Array) -> pa.Array:
    return texts


def _binaries(texts: pa.Array) -> pa.Array:
    return pa.array([bytes.fromhex(text) for text in texts.to_pylist()], pa.large_binary())


def _joined(octets: npt.NDArray[np.uint8], sizes: Places) -> pa.Array:
    places = np.append(0, np.cumsum(sizes))
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), [None, pa.py_buffer(places), pa.py_buffer(octets)])


_WRITERS: dict[Form, Callable[[pa.Array], pa.Array]] = {
    Form.NULL: _nothing,
    Form.SIGNED: _signed,
    Form.UNSIGNED: _unsigned,
    Form.YEAR: _signed,
    Form.DOUBLE: _doubles,
    Form.FLOAT: _floats,
    Form.TEXT: _texts,
    Form.BINARY: _binaries,
}
