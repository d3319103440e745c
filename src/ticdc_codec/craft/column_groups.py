"""Row images to the bytes of column groups, the values of a whole batch at once (wire.md 1.1.2, 1.1.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_codec.craft.frame import GroupType
from ticdc_codec.craft.group import ValueEncoding, encoding_of
from ticdc_codec.event import Column, Image
from ticdc_codec.mysql_type import parse_type
from ticdc_codec.number import Int64s, octets_of, uvarint, zigzagged
from ticdc_codec.number_text import number_of_names, shortest_texts
from ticdc_codec.tidb_codes import code_of, flags_of


@dataclass(frozen=True, slots=True, eq=False)
class ImagePlan:
    """How images with the same columns are written as column groups of one type."""

    kind: bytes
    """``GroupType``, a byte."""
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    in_order: bool
    """True if the image has exactly these names in this order."""
    described: bytes
    """The types and flags chunks, which follow the names."""
    encodings: bytes
    """``ValueEncoding`` of each column, a byte each."""
    indexed: tuple[tuple[int, Callable[[str], str]], ...]
    """Positions of ENUM and SET columns whose values are names, and the functions to their numbers."""

    def values(self, image: Image) -> Iterable[str | None]:
        """The texts to write, in the order of the columns."""
        if self.in_order:
            return image.values()
        texts = [image[name] for name in self.names]
        for position, number in self.indexed:
            text = texts[position]
            texts[position] = None if text is None else number(text)
        return texts


class ImagePlans:
    """The plans of all columns seen so far."""

    def __init__(self, *, only_keys: bool) -> None:
        self._only_keys = only_keys
        self._plans: dict[tuple[GroupType, int, tuple[str, ...], bool], ImagePlan] = {}

    def of(self, kind: GroupType, columns: tuple[Column, ...], image: tuple[str, ...], *, deleted: bool) -> ImagePlan:
        """The plan of an image with these names; of a deleted row perhaps the handle key alone (wire.md 1.6)."""
        # By identity: hashing the columns of every row would cost more than writing it. The plan keeps them alive.
        key = (kind, id(columns), image, deleted)
        plan = self._plans.get(key)
        if plan is None:
            only_key = self._only_keys and deleted
            chosen = [column for column in columns if column.name in image and (column.key or not only_key)]
            plan = self._plans[key] = _plan(kind, columns, chosen, image)
        return plan


def _plan(kind: GroupType, columns: tuple[Column, ...], chosen: list[Column], image: tuple[str, ...]) -> ImagePlan:
    codes = [code_of(column.type) for column in chosen]
    flags = [flags_of(column) for column in chosen]
    names = tuple(column.name for column in chosen)
    indexed = tuple(
        (number, number_of_names(parse_type(column.type)))
        for number, column in enumerate(chosen)
        if column.by == "name"
    )
    return ImagePlan(
        kind=bytes([kind]),
        columns=columns,
        names=names,
        in_order=names == image and not indexed,
        described=b"".join(map(uvarint, codes + flags)),
        encodings=bytes(encoding_of(*described)[1] for described in zip(codes, flags, strict=True)),
        indexed=indexed,
    )


def group_bytes(texts: list[str | None], encodings: bytes, counts: list[int]) -> list[bytes]:
    """The value chunk of each column group, lengths and bytes, from the values of all groups (``counts`` in each).

    Raises ValueError for a text that its encoding cannot have.
    """
    if not texts:
        return []
    # value_ends: Arrow's offsets. octets, sizes: all length prefixes as varints, -1 for NULL (wire.md 1.1.1), and the
    # bytes of each.
    values = _values(pa.array(texts, pa.large_string()), np.frombuffer(encodings, np.uint8))
    _, positions, content = values.buffers()
    value_ends = np.frombuffer(positions, np.int64)[: len(texts) + 1]
    data = b"" if content is None else content.to_pybytes()
    given = values.is_valid().to_numpy(zero_copy_only=False)
    octets, sizes = octets_of(zigzagged(np.where(given, np.diff(value_ends), -1)))
    lengths = octets.tobytes()
    # at[g], length_at[g]: where group g's values and lengths begin; the last items are the ends.
    group_ends = np.append(0, np.cumsum(counts))
    at = value_ends[group_ends].tolist()
    length_at = np.append(0, np.cumsum(sizes))[group_ends].tolist()
    parts = zip(length_at, length_at[1:], at, at[1:], strict=False)
    return [lengths[first:last] + data[start:end] for first, last, start, end in parts]


def _values(texts: pa.Array, encodings: npt.NDArray[np.uint8]) -> pa.Array:
    """The values' bytes as one Arrow array in the order of ``texts``, null for NULL."""
    # position[v]: index of value v's bytes in the concatenated parts, one for each encoding; -1 for NULL.
    position = np.full(len(texts), -1, np.int64)
    given = texts.is_valid().to_numpy(zero_copy_only=False)
    parts: list[pa.Array] = []
    total = 0
    for encoding, write in _WRITERS.items():
        chosen = np.flatnonzero((encodings == encoding) & given)
        if len(chosen):
            parts.append(write(texts.take(pa.array(chosen))).cast(pa.large_binary()))
            position[chosen] = np.arange(total, total + len(chosen))
            total += len(chosen)
    everything = pa.concat_arrays(parts) if parts else pa.array([], pa.large_binary())
    return everything.take(pa.array(position, mask=position < 0))


def _nothing(texts: pa.Array) -> pa.Array:
    raise ValueError(f"a column of this type is always NULL in Craft, found {texts[0]}")


def _signed(texts: pa.Array) -> pa.Array:
    return _joined(*octets_of(zigzagged(texts.cast(pa.int64()).to_numpy())))


def _unsigned(texts: pa.Array) -> pa.Array:
    return _joined(*octets_of(texts.cast(pa.uint64()).to_numpy()))


def _doubles(texts: pa.Array) -> pa.Array:
    return _joined(texts.cast(pa.float64()).to_numpy().view(np.uint8), np.full(len(texts), 8))


def _floats(texts: pa.Array) -> pa.Array:
    """float32s as float64s (wire.md 1.1.3); a text that is not a float32 (wire.md 8.1) is written with all digits."""
    # single: the texts that are the shortest of a float32. Those get the float32's value, widened.
    wide = texts.cast(pa.float64()).to_numpy().copy()
    with np.errstate(over="ignore"):
        narrow = wide.astype(np.float32)
    finite = np.flatnonzero(np.isfinite(narrow))
    single = finite[np.array(shortest_texts(narrow[finite]), np.float64) == wide[finite]]
    wide[single] = narrow[single]
    return _joined(wide.view(np.uint8), np.full(len(texts), 8))


def _texts(texts: pa.Array) -> pa.Array:
    return texts


def _binaries(texts: pa.Array) -> pa.Array:
    return pa.array([bytes.fromhex(text) for text in texts.to_pylist()], pa.large_binary())


def _joined(octets: npt.NDArray[np.uint8], sizes: Int64s) -> pa.Array:
    positions = np.append(0, np.cumsum(sizes))
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), [None, pa.py_buffer(positions), pa.py_buffer(octets)])


_WRITERS: dict[ValueEncoding, Callable[[pa.Array], pa.Array]] = {
    ValueEncoding.NULL: _nothing,
    ValueEncoding.SIGNED: _signed,
    ValueEncoding.UNSIGNED: _unsigned,
    ValueEncoding.YEAR: _signed,
    ValueEncoding.DOUBLE: _doubles,
    ValueEncoding.FLOAT: _floats,
    ValueEncoding.TEXT: _texts,
    ValueEncoding.BINARY: _binaries,
}
