"""How images of rows with the same columns are written: what their column groups repeat, and which values they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ticdc_codec.column_code import code_of, flags_of
from ticdc_codec.craft.frame import GroupType
from ticdc_codec.craft.group import form_of
from ticdc_codec.event import Column, Image
from ticdc_codec.mysql_type import Family, parse_type
from ticdc_codec.number import uvarint


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
    indexed = tuple((number, _indexed(column)) for number, column in enumerate(chosen) if column.by == "name")
    return Plan(
        kind=bytes([kind]),
        columns=columns,
        names=names,
        in_order=names == image and not indexed,
        described=b"".join(map(uvarint, codes + flags)),
        forms=bytes(form_of(*described)[1] for described in zip(codes, flags, strict=True)),
        indexed=indexed,
    )


def _indexed(column: Column) -> Callable[[str], str]:
    """The number of ENUM and SET values that came as names; their type text must list the names."""
    kind = parse_type(column.type)
    place = {name: number for number, name in enumerate(kind.elements)}
    if kind.family is Family.ENUM:
        return lambda text: str(place[text] + 1 if text else 0)
    return lambda text: str(sum(1 << place[name] for name in text.split(",") if name))
