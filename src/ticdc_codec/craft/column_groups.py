"""Row images to the bytes of column groups, the values of a whole batch at once (wire.md 1.1.2, 1.1.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_codec.craft.frame import GroupType
from ticdc_codec.craft.group import Form, form_of
from ticdc_codec.event import Column, Image
from ticdc_codec.json_column import shortest
from ticdc_codec.mysql_type import parse_type
from ticdc_codec.number import Places, octets_of, uvarint, zigzagged
from ticdc_codec.number_text import number_of_names
from ticdc_codec.tidb_codes import code_of, flags_of


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How the images of one set of columns are written, those of one kind of column group."""

    kind: bytes
    """``GroupType``, a byte."""
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    in_order: bool
    """Whether the image has these names, no others, in this order."""
    described: bytes
    """The types and flags chunks, which follow the names."""
    forms: bytes
    """``Form`` of each column, a byte each."""
    indexed: tuple[tuple[int, Callable[[str], str]], ...]
    """Positions of ENUM and SET columns that have names, and what makes them numbers."""

    def values(self, image: Image) -> Iterable[str | None]:
        """The texts to write, in the order of the columns."""
        if self.in_order:
            return image.values()
        texts = [image[name] for name in self.names]
        for position, number in self.indexed:
            text = texts[position]
            texts[position] = None if text is None else number(text)
        return texts


class Plans:
    """The plans of the columns met so far."""

    def __init__(self, *, only_keys: bool) -> None:
        self._only_keys = only_keys
        self._plans: dict[tuple[GroupType, int, tuple[str, ...], bool], Plan] = {}

    def of(self, kind: GroupType, columns: tuple[Column, ...], image: tuple[str, ...], *, deleted: bool) -> Plan:
        """The plan of an image with these names; of a deleted row perhaps the handle key alone."""
        # By identity: hashing the columns of every row would cost more than writing it. The plan keeps them alive.
        shape = (kind, id(columns), image, deleted)
        plan = self._plans.get(shape)
        if plan is None:
            only_key = self._only_keys and deleted
            chosen = [column for column in columns if column.name in image and (column.key or not only_key)]
            plan = self._plans[shape] = _plan(kind, columns, chosen, image)
        return plan


def _plan(kind: GroupType, columns: tuple[Column, ...], chosen: list[Column], image: tuple[str, ...]) -> Plan:
    codes = [code_of(column.type) for column in chosen]
    flags = [flags_of(column) for column in chosen]
    names = tuple(column.name for column in chosen)
    indexed = tuple(
        (number, number_of_names(parse_type(column.type)))
        for number, column in enumerate(chosen)
        if column.by == "name"
    )
    return Plan(
        kind=bytes([kind]),
        columns=columns,
        names=names,
        in_order=names == image and not indexed,
        described=b"".join(map(uvarint, codes + flags)),
        forms=bytes(form_of(*described)[1] for described in zip(codes, flags, strict=True)),
        indexed=indexed,
    )


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
