"""What repeats in every row of a table, compiled once: how its values are read, its columns, their texts.

A row is ``{"u": image, "p": image}`` or ``{"d": image}``, an image is ``{"name": cell}``, a cell
``{"t": code, "h": true, "f": flags, "v": …}`` (wire.md 1.2.3). A table's rows are read by a Struct type of their own,
in which codes and flags are literals.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, columns_text
from ticdc_codec.json_table import ImageTypes, handle_key_lines, old_handle_keys
from ticdc_codec.mysql_type import Family, family_of
from ticdc_codec.open_protocol.single_row import Cell, Row
from ticdc_codec.open_protocol.value import ValueFormat, format_of
from ticdc_codec.tidb_codes import Flag
from ticdc_codec.writer_defects import OPEN_FLAGS, OPEN_LOST_NAME

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

    __slots__ = ("_formats", "_images", "_keys", "_quotes", "layout", "read")

    def __init__(self, description: Description) -> None:
        cells = description.cells
        described = [_column(cell, description) for cell in cells]
        columns = tuple(column for column, _ in described)
        self._formats = [value_format for _, value_format in described]
        self.layout = Layout(description.database, description.table, columns, columns_text(columns))
        self._images = ImageTypes([cell.name for cell in cells])
        self.read = self._images.reader(_row_type(self._images, cells, self._formats), ("u", "p", "d"))
        """Reads a row of this table. Raises DecodeError or one of ``Unreadable`` if it is none."""
        self._quotes = [2 * (1 + 3 + cell.has_h) for cell in cells]
        """Of each column's name and those inside it."""
        self._keys = [at for at, column in enumerate(columns) if column.key]

    def texts(self, images: Sequence[Any]) -> tuple[list[Texts], int]:
        """The texts of images by column, and how many quotes the images had in JSON. Raises DecodeError."""
        columns, quotes = [], 0
        for field, value_format, own in zip(self._images.fields, self._formats, self._quotes, strict=True):
            try:
                texts = value_format.texts([*map(attrgetter(f"{field}.v"), images)])
                present = len(texts)
            except AttributeError:
                texts, present = _partial(value_format, [*map(attrgetter(field), images)])
            columns.append(texts)
            quotes += present * own
            if value_format.in_quotes:
                quotes += 2 * (present - texts.count(None))
        return columns, quotes

    def lines(self, columns: list[Texts]) -> bytes:
        """Images as lines of JSON."""
        return _ENCODE_LINES([*map(self._images.make, *columns)])

    def handle_keys(self, columns: list[Texts]) -> bytes:
        """The handle keys' texts as lines, none if the table names no key."""
        return handle_key_lines(self._key_columns(columns))

    def old_handle_keys(self, old: list[Texts], new: list[Texts]) -> list[bytes | None] | None:
        """The keys before updates, None for one that is the same, or for all. A column that is not in ``p`` has not
        changed."""
        return old_handle_keys(self._key_columns(old), self._key_columns(new))

    def _key_columns(self, columns: list[Texts]) -> list[Texts]:
        return [columns[at] for at in self._keys]


def _partial(value_format: ValueFormat, cells: list[Any]) -> tuple[Texts, int]:
    """The texts of a column that some images leave out, and how many do not."""
    values = [cell.v for cell in cells if cell is not UNSET]
    texts = value_format.texts(values) if values else []
    following = iter(texts)
    return [UNSET if cell is UNSET else next(following) for cell in cells], len(texts)


def _column(cell: Cell, description: Description) -> tuple[Column, ValueFormat]:
    try:
        text, value_format = format_of(cell.code, cell.flags)
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
        defect=OPEN_LOST_NAME if cell.name in description.lost else _defect(cell.flags, family, description),
    )
    return column, value_format


def _defect(flags: int, family: Family, description: Description) -> str | None:
    """Integers have the binary flag always (wire.md 1.2.5), a NOT NULL text may have none."""
    missing = flags == 0 and (family is Family.INTEGER or (family is Family.TEXT and description.partitioned))
    return OPEN_FLAGS if missing or flags > 0xFF else None


def _row_type(images: ImageTypes, cells: tuple[Cell, ...], formats: list[ValueFormat]) -> Any:
    types = [_cell_type(cell, value_format) for cell, value_format in zip(cells, formats, strict=True)]
    whole = images.type_of([(kind,) for kind in types])
    partial = images.type_of([(kind | UnsetType, UNSET) for kind in types])
    members: list[Any] = [
        (name, kind | UnsetType, UNSET) for name, kind in (("u", whole), ("p", partial), ("d", whole))
    ]
    return msgspec.defstruct("TableRow", members, bases=(Row,), forbid_unknown_fields=True, gc=False)


def _cell_type(cell: Cell, value_format: ValueFormat) -> Any:
    members: list[Any] = [("t", _LITERAL[cell.code]), ("f", _LITERAL[cell.flags]), ("v", value_format.wire)]
    if cell.has_h:
        members.append(("h", bool))
    return msgspec.defstruct("Cell", members, forbid_unknown_fields=True, gc=False)
