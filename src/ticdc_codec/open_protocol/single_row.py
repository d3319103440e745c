"""A row's value while its table is not known, and what ticdc's only-output-updated-columns does to it (wire.md 8.3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Op
from ticdc_codec.json_text import Unreadable, names_of, unique, unreadable

Images = dict[str, dict[str, Raw]]
"""By member (``u``, ``p``, ``d``), cells by column."""

_ENCODE = msgspec.json.Encoder().encode
_IMAGES = msgspec.json.Decoder(Images).decode


class Row(msgspec.Struct, gc=False):
    """A row's value; a table's own type narrows the members to images: Structs with fields c0, c1 …, of cells."""

    u: Any = UNSET
    """The row after an INSERT or UPDATE."""
    p: Any = UNSET
    """The row before an UPDATE, or what of it has changed."""
    d: Any = UNSET
    """The deleted row."""


_OPS = {("u",): Op.INSERT, ("u", "p"): Op.UPDATE, ("d",): Op.DELETE}


def op_of(row: Row) -> Op:
    """INSERT and UPDATE differ only by ``p``. Raises DecodeError."""
    if row.d is UNSET and row.u is not UNSET:
        return Op.INSERT if row.p is UNSET else Op.UPDATE
    if row.d is not UNSET and row.u is UNSET and row.p is UNSET:
        return Op.DELETE
    raise DecodeError("wrong_type", "expected u, u and p, or d alone in a row")


class Cell(NamedTuple):
    """A column as a row describes it."""

    name: str
    code: int
    flags: int
    has_h: bool
    """Whether the deprecated ``h`` is present. It says no more than the flags."""


class _Members(msgspec.Struct, forbid_unknown_fields=True):
    t: int
    f: int
    """Always there since TiCDC 4.0.5: before, texts were base64, so a cell without it is refused (wire.md 1.2.4)."""
    v: Raw
    h: bool | UnsetType = UNSET


_MEMBERS = msgspec.json.Decoder(_Members).decode


def read_images(value: bytes) -> Images:
    """The images of a row. Raises one of ``Unreadable``."""
    return _IMAGES(value)


def described(value: bytes) -> tuple[bytes, tuple[Cell, ...], frozenset[str]]:
    """A row, the columns that it describes, and those whose old values have lost their names; these are taken out of
    the row. Raises DecodeError."""
    try:
        images = read_images(value)
        if not images.keys() <= {"u", "p", "d"}:
            raise DecodeError("unknown_member", f"expected u, p or d in a row, found {[*images]}")
        whole = images.get("u", images.get("d"))
        if not whole:
            raise DecodeError("wrong_columns", "expected columns in u or d of a row, found none")
        cells = tuple(_cell(name, cell) for name, cell in whole.items())
        if any(_is_loose(cell) for cell in images.get("p", {}).values()):
            value, lost = _without_loose(value)
            return value, cells, lost
        names_of(value)
    except Unreadable as error:
        raise unreadable(error, value) from None
    return value, cells, frozenset()


def _cell(name: str, cell: Raw) -> Cell:
    members = _MEMBERS(cell)
    return Cell(name, members.t, members.f, members.h is not UNSET)


def _is_loose(cell: Raw) -> bool:
    """Whether it is no cell, but a member of one that has lost its name and its braces."""
    return not bytes(cell).startswith(b"{")


def _without_loose(value: bytes) -> tuple[bytes, frozenset[str]]:
    """The row without the loose members of ``p``, and the columns that may have been theirs: now NULL, of the same
    type and flags, and not in ``p``. Raises DecodeError."""
    # Objects as tuples of their members, as names may repeat; numbers as they stand.
    row: Any = unique(json.loads(value, object_pairs_hook=tuple, parse_int=_raw, parse_float=_raw))
    before = row["p"]
    row["p"] = _image([member for member in before if isinstance(member[1], tuple)])
    row["u"] = _image(row.get("u", ()))
    became_null = {n: cell for n, cell in row["u"].items() if n not in row["p"] and cell.get("v", cell) is None}
    lost: set[str] = set()
    for was in _cells_of([member for member in before if not isinstance(member[1], tuple)]):
        candidates = [n for n, cell in became_null.items() if all(was.get(m) == cell.get(m) for m in "tfh")]
        if not candidates:
            raise DecodeError("wrong_columns", "expected in p only old values of columns that became NULL")
        lost.update(candidates)
    return _ENCODE(row), frozenset(lost)


def _raw(number: str) -> Raw:
    return Raw(number.encode())


def _image(members: Sequence[tuple[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: unique(cell) for name, cell in unique(members).items()}


def _cells_of(loose: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Cells of members that follow each other: each begins with its type. Raises DecodeError."""
    starts = [at for at, (name, _) in enumerate(loose) if name == "t"]
    cells = [unique(loose[start:end]) for start, end in pairwise([*starts, len(loose)])]
    if starts[:1] != [0] or any(cell.keys() - {"h"} != {"t", "f", "v"} for cell in cells):
        raise DecodeError("wrong_type", f"expected columns in p, found {[name for name, _ in loose]}")
    return cells
