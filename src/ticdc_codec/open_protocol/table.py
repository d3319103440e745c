"""What repeats in every row of a table, compiled once: how its values are read, its columns, their texts.

A row is ``{"u": image, "p": image}`` or ``{"d": image}``, an image is ``{"name": cell}``, a cell
``{"t": code, "h": true, "f": flags, "v": …}`` (wire.md 1.2.3). A table's rows are read by a Struct type of their own,
in which codes and flags are literals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, columns_text
from ticdc_codec.json_text import is_odd, object_type
from ticdc_codec.mysql_type import Family, family_of
from ticdc_codec.open_protocol.row import Cell, Row, read_images
from ticdc_codec.open_protocol.value import Form, form_of
from ticdc_codec.tidb_codes import Flag
from ticdc_codec.writer_defects import OPEN_FLAGS, OPEN_LOST_NAME

_ENCODE = msgspec.json.Encoder().encode
_ENCODE_LINES = msgspec.json.Encoder().encode_lines
_LITERAL: Any = Literal

Texts = list[Any]
"""A column's texts: None is NULL, UNSET what ``p`` leaves out."""


class Description(NamedTuple):
    """All that a row shows of its table."""

    database: str
    table: str
    partitioned: bool
    cells: tuple[Cell, ...]
    lost: frozenset[str] = frozenset()
    """Columns whose old values may have lost their names."""


class Table:
    """One description of a table."""

    __slots__ = ("_fields", "_forms", "_image", "_keys", "_quotes", "layout", "read")

    def __init__(self, description: Description) -> None:
        cells = description.cells
        described = [_column(cell, description) for cell in cells]
        columns = tuple(column for column, _ in described)
        self._forms = [form for _, form in described]
        self.layout = Layout(description.database, description.table, columns, columns_text(columns))
        names = [cell.name for cell in cells]
        self.read: Callable[[bytes], Row] = _reader(cells, self._forms)
        """Reads a row of this table. Raises DecodeError or one of ``Unreadable`` if it is none."""
        self._fields = [f"c{at}" for at in range(len(cells))]
        self._quotes = [2 * (1 + 3 + cell.has_h) for cell in cells]
        """Of each column's name and those inside it."""
        self._image = _image_maker(names)
        self._keys = [at for at, column in enumerate(columns) if column.key]

    def texts(self, images: Sequence[Any]) -> tuple[list[Texts], int]:
        """The texts of images by column, and how many quotes the images had in JSON. Raises DecodeError."""
        columns, quotes = [], 0
        for field, form, own in zip(self._fields, self._forms, self._quotes, strict=True):
            try:
                texts = form.texts([*map(attrgetter(f"{field}.v"), images)])
                present = len(texts)
            except AttributeError:
                texts, present = _partial(form, [*map(attrgetter(field), images)])
            columns.append(texts)
            quotes += present * own
            if form.in_quotes:
                quotes += 2 * (present - texts.count(None))
        return columns, quotes

    def images(self, columns: list[Texts]) -> bytes:
        """Images as lines of JSON."""
        return _ENCODE_LINES([*map(self._image, *columns)])

    def handle_keys(self, columns: list[Texts]) -> bytes:
        """The handle keys' texts as lines, none if the table names no key."""
        return _ENCODE_LINES([*self._key_values(columns)])

    def old_handle_keys(self, old: list[Texts], new: list[Texts]) -> list[bytes | None] | None:
        """The keys before updates, None for one that is the same, or for all."""
        was, now = [*self._key_values(old)], [*self._key_values(new)]
        return None if was == now else [*map(_changed, was, now)]

    def _key_values(self, columns: list[Texts]) -> Iterable[tuple[Any, ...]]:
        return zip(*(columns[at] for at in self._keys), strict=True)


def _partial(form: Form, cells: list[Any]) -> tuple[Texts, int]:
    """The texts of a column that some images leave out, and how many do not."""
    values = [cell.v for cell in cells if cell is not UNSET]
    texts = form.texts(values) if values else []
    following = iter(texts)
    return [UNSET if cell is UNSET else next(following) for cell in cells], len(texts)


def _changed(was: tuple[Any, ...], now: tuple[Any, ...]) -> bytes | None:
    """A key's text before an update, None if it is the same. A column that is not in ``p`` has not changed."""
    before = tuple(b if a is UNSET else a for a, b in zip(was, now, strict=True))
    return None if before == now else _ENCODE(before)


def _column(cell: Cell, description: Description) -> tuple[Column, Form]:
    try:
        text, form = form_of(cell.code, cell.flags)
    except KeyError:
        raise DecodeError("unknown_type", f"column {cell.name} is of type {cell.code}") from None
    if cell.flags >> 63:
        raise DecodeError("out_of_range", f"column {cell.name} has flags {cell.flags}")
    family = family_of(text)
    column = Column(
        name=cell.name,
        type=text,
        key=bool(cell.flags & Flag.HANDLE_KEY),
        flags=cell.flags,
        by="index" if family in (Family.ENUM, Family.SET) else None,
        doubt=OPEN_LOST_NAME if cell.name in description.lost else _doubt(cell.flags, family, description),
    )
    return column, form


def _doubt(flags: int, family: Family, description: Description) -> str | None:
    """Integers have the binary flag always (wire.md 1.2.5), a NOT NULL text may have none."""
    missing = flags == 0 and (family is Family.INTEGER or (family is Family.TEXT and description.partitioned))
    return OPEN_FLAGS if missing or flags > 0xFF else None


def _image_maker(names: list[str]) -> Callable[..., Any]:
    """What makes an image, which JSON can be made of, of its texts."""
    if is_odd(names):
        return lambda *texts: {name: text for name, text in zip(names, texts, strict=True) if text is not UNSET}
    return object_type(names, [(str | None | UnsetType, UNSET)] * len(names))


def _reader(cells: tuple[Cell, ...], forms: list[Form]) -> Callable[[bytes], Row]:
    names = [cell.name for cell in cells]
    fields = [f"c{at}" for at in range(len(cells))]
    odd = is_odd(names)
    types = [_cell_type(cell, form) for cell, form in zip(cells, forms, strict=True)]
    whole = object_type(fields if odd else names, [(kind,) for kind in types])
    partial = object_type(fields if odd else names, [(kind | UnsetType, UNSET) for kind in types])
    members: list[Any] = [
        (name, kind | UnsetType, UNSET) for name, kind in (("u", whole), ("p", partial), ("d", whole))
    ]
    row = msgspec.defstruct("TableRow", members, bases=(Row,), forbid_unknown_fields=True, gc=False)
    read: Callable[[bytes], Any] = msgspec.json.Decoder(row).decode
    if not odd:
        return read
    renamed = dict(zip(names, fields, strict=True))
    return lambda value: read(_renamed(value, renamed))


def _cell_type(cell: Cell, form: Form) -> Any:
    members: list[Any] = [("t", _LITERAL[cell.code]), ("f", _LITERAL[cell.flags]), ("v", form.wire)]
    if cell.has_h:
        members.append(("h", bool))
    return msgspec.defstruct("Cell", members, forbid_unknown_fields=True, gc=False)


def _renamed(value: bytes, names: dict[str, str]) -> bytes:
    """The row with columns named as no Struct can name them."""
    images = read_images(value)
    unknown = {name for image in images.values() for name in image} - names.keys()
    if unknown:
        raise DecodeError("wrong_columns", f"expected columns {[*names]}, found {sorted(unknown)}")
    return _ENCODE({member: {names[name]: cell for name, cell in image.items()} for member, image in images.items()})
