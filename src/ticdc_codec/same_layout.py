"""Rows' images that have the same columns, for encoders that write a column of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ticdc_codec.event import Column, Image, RowChange

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """Images with the same names in one order, of rows whose columns are one object."""

    columns: tuple[Column, ...]
    names: tuple[str, ...]
    images: list[Image] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    """Twice the number of each one's row, and 1 more for ``after``."""

    def texts(self, name: str) -> list[str | None]:
        """A column's values."""
        return [image[name] for image in self.images]


def written(
    rows: Sequence[RowChange], write: Callable[[Alike], Iterable[Value]]
) -> dict[int, tuple[Value | None, Value | None]]:
    """Before and after of each row, by the row's identity, as ``write`` writes images that are alike."""
    images: list[Value | None] = [None] * (2 * len(rows))
    for some in _alike(rows):
        for place, value in zip(some.places, write(some), strict=True):
            images[place] = value
    return dict(zip(map(id, rows), zip(images[::2], images[1::2], strict=True), strict=True))


def _alike(rows: Sequence[RowChange]) -> Iterable[Alike]:
    found: dict[tuple[int, tuple[str, ...]], Alike] = {}
    for number, row in enumerate(rows):
        for place, image in enumerate((row.before, row.after), 2 * number):
            if image is not None:
                names = tuple(image)
                # By identity, which rows of a table share: hashing the columns of each would cost more than writing it.
                some = found.get((id(row.columns), names))
                if some is None:
                    some = found[id(row.columns), names] = Alike(row.columns, names)
                some.images.append(image)
                some.places.append(place)
    return found.values()


def with_nulls(texts: list[str | None], write: Callable[[list[str]], list[Value]], null: Value) -> list[Value]:
    """A column written by what takes no NULL, and not nothing."""
    given = [text for text in texts if text is not None]
    if len(given) == len(texts):
        return write(given)
    following = iter(write(given) if given else ())
    return [null if text is None else next(following) for text in texts]
