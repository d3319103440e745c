"""A table as one row describes it, and what repeats in its rows, compiled once: how values are read, columns, texts.

A row is ``{"u": image, "p": image}`` or ``{"d": image}``, an image is ``{"name": cell}``, a cell
``{"t": code, "h": true, "f": flags, "v": …}`` (wire.md 1.2.3). A table's rows are read by a Struct type of their own,
in which codes and flags are literals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, Op, columns_text, key_positions
from ticdc_codec.json_images import ColumnOrder, ImageTypes
from ticdc_codec.json_text import Unreadable, names_of, number_as_written, text_of, unique, unreadable
from ticdc_codec.mysql_type import Family, family_of
from ticdc_codec.open_protocol.value import BASE64, QUOTED, ValueFormat, format_of, unquoted_exactly
from ticdc_codec.tidb_codes import Flag
from ticdc_codec.writer_defects import OPEN_FLAGS, OPEN_LOST_NAME

Images = dict[str, dict[str, Raw]]
"""By member (``u``, ``p``, ``d``), cells by column."""

_IMAGES = msgspec.json.Decoder(Images).decode


class RowMembers(msgspec.Struct, gc=False):
    """A row's value; a table's own type narrows the members to images: Structs with fields c0, c1 …, of cells."""

    u: Any = UNSET
    """The row after an INSERT or UPDATE."""
    p: Any = UNSET
    """The row before an UPDATE, or what of it has changed."""
    d: Any = UNSET
    """The deleted row."""


_OPS = {("u",): Op.INSERT, ("u", "p"): Op.UPDATE, ("d",): Op.DELETE}


def op_of(row: RowMembers) -> Op:
    """Returns the operation: INSERT and UPDATE differ only by ``p``. Raises DecodeError."""
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
    h: bool | UnsetType
    """True if the column belongs to the handle key. Flags may be those from before a DDL that changed the key (wire.md
    8.4), and ticdc sets none on a stored generated column of a primary key."""
    read_as: int
    """The flags that its values are read by: ``flags``, but the other BINARY where a value shows that this one is
    missing or stale (wire.md 8.4)."""


class _Members(msgspec.Struct, forbid_unknown_fields=True):
    t: int
    f: int
    """Always there since TiCDC 4.0.5: before, texts were base64, so a cell without it is refused (wire.md 1.2.4)."""
    v: Raw
    h: bool | UnsetType = UNSET


_MEMBERS = msgspec.json.Decoder(_Members).decode
_IN_BASE64 = msgspec.json.Decoder(bytes | None).decode
_IN_QUOTES = msgspec.json.Decoder(str | None).decode


def read_images(value: bytes) -> Images:
    """Returns the images of a row. Raises one of ``Unreadable``."""
    return _IMAGES(value)


def sent_cells(value: bytes, *, partitioned: bool) -> tuple[bytes, tuple[Cell, ...], frozenset[str]]:
    """Returns a row, of a partition or not, the columns that it describes, and those whose old values have lost their
    names; these are taken out of the row. Raises DecodeError."""
    try:
        images = read_images(value)
        if not images.keys() <= {"u", "p", "d"}:
            raise DecodeError("unknown_member", f"expected u, p or d in a row, found {[*images]}")
        whole = images.get("u", images.get("d"))
        if not whole:
            raise DecodeError("wrong_columns", "expected columns in u or d of a row, found none")
        lost: frozenset[str] = frozenset()
        if any(_is_loose(cell) for cell in images.get("p", {}).values()):
            value, lost = _without_loose(value)
            images = read_images(value)
        else:
            names_of(value)
        cells = tuple(
            _cell(name, cell, [image[name] for image in images.values() if name in image], partitioned=partitioned)
            for name, cell in whole.items()
        )
    except Unreadable as error:
        raise unreadable(error, value) from None
    return value, cells, lost


def _cell(name: str, cell: Raw, in_images: Iterable[Raw], *, partitioned: bool) -> Cell:
    members = _MEMBERS(cell)
    flags, is_wrong = members.f, None
    if members.t in BASE64 and not flags & Flag.BINARY and (partitioned or flags == 0):
        is_wrong = _is_no_text
    elif members.t in QUOTED and flags & Flag.BINARY and partitioned:
        is_wrong = _is_no_bytes
    shown = is_wrong is not None and any(is_wrong(_MEMBERS(each).v) for each in in_images)
    return Cell(name, members.t, flags, members.h, flags ^ Flag.BINARY if shown else flags)


def _is_no_text(value: Raw) -> bool:
    try:
        (_IN_BASE64(value) or b"").decode()
    except UnicodeDecodeError:
        return True
    return False


def _is_no_bytes(value: Raw) -> bool:
    try:
        unquoted_exactly(_IN_QUOTES(value) or "")
    except DecodeError:
        return True
    return False


def _is_loose(cell: Raw) -> bool:
    """True if it is the member of a cell that has lost its name and its braces, and no cell."""
    return not bytes(cell).startswith(b"{")


def _without_loose(value: bytes) -> tuple[bytes, frozenset[str]]:
    """Returns the row without the loose members of ``p`` (wire.md 8.3), and the columns that may have been theirs: now
    NULL, of the same type and flags, and not in ``p``. Raises DecodeError."""
    # Objects as tuples of their members, as names may repeat; numbers as they stand.
    row: Any = unique(
        json.loads(value.decode(), object_pairs_hook=tuple, parse_int=number_as_written, parse_float=number_as_written)
    )
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
    return text_of(row), frozenset(lost)


def _image(members: Sequence[tuple[str, Any]]) -> dict[str, dict[str, Any]]:
    for name, cell in members:
        if not isinstance(cell, tuple):
            raise DecodeError("wrong_type", f"expected an object for column {name}")
    return {name: unique(cell) for name, cell in unique(members).items()}


def _cells_of(loose: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Splits members that follow each other into cells: each begins with its type. Raises DecodeError."""
    starts = [at for at, (name, _) in enumerate(loose) if name == "t"]
    cells = [unique(loose[start:end]) for start, end in pairwise([*starts, len(loose)])]
    if starts[:1] != [0] or any(cell.keys() - {"h"} != {"t", "f", "v"} for cell in cells):
        raise DecodeError("wrong_type", f"expected columns in p, found {[name for name, _ in loose]}")
    return cells


_ENCODE_LINES = msgspec.json.Encoder().encode_lines
_LITERAL: Any = Literal

Texts = list[Any]
"""A column's texts: None is NULL, UNSET what ``p`` leaves out."""


class SentLayout(NamedTuple):
    """All that a row shows of its table."""

    database: str
    table: str
    partitioned: bool
    cells: tuple[Cell, ...]
    lost: frozenset[str] = frozenset()
    """Columns whose old values may have lost their names."""

    @property
    def h_names_key(self) -> bool:
        """True if ``h``, and not the flag, names the columns of the handle key."""
        return self.partitioned or any(cell.h is True for cell in self.cells)


class OpenTableReader:
    """All that a row shows of its table."""

    __slots__ = ("_formats", "_images", "_keys", "_marks", "_quotes", "layout", "order", "read")

    def __init__(self, sent: SentLayout) -> None:
        cells, by_h = sent.cells, sent.h_names_key
        read = [_column(cell, sent, by_h=by_h) for cell in cells]
        columns = tuple(column for column, _ in read)
        self._formats = [value_format for _, value_format in read]
        self.layout = Layout(sent.database, sent.table, columns, columns_text(columns))
        self._images = ImageTypes([cell.name for cell in cells])
        self.read = self._images.reader(_row_type(self._images, cells, self._formats), ("u", "p", "d"))
        """Reads a row of this table. Raises DecodeError or one of ``Unreadable`` for any other text."""
        self._quotes = [2 * (1 + 3 + (cell.h is not UNSET)) for cell in cells]
        """Quotes of each column's name and those inside it."""
        self._keys = key_positions(columns)
        marked = [(f"{field}.h", cell.h) for field, cell in zip(self._images.fields, cells, strict=True)]
        self._marks = [(attrgetter(h), own) for h, own in marked if own is not UNSET]
        self.order = ColumnOrder((cell.name for cell in cells), ignored=("u", "p", "d"), suffix=b'{"t":')

    def check_key(self, images: Sequence[Any]) -> None:
        """Raises DecodeError unless whole images name the columns of the handle key as the layout does."""
        if any(h(image) is not own for h, own in self._marks for image in images):
            raise DecodeError("wrong_columns", "expected the same columns with h in the rows of a table")

    def texts(self, images: Sequence[Any]) -> tuple[list[Texts], int]:
        """Returns the texts of images by column, and how many quotes the images had in JSON. Raises DecodeError."""
        # columns[c][i]: text of column c in image i. quotes: those of names, and of values that are JSON strings.
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
        """Returns images as lines of JSON."""
        return _ENCODE_LINES([*map(self._images.make, *columns)])

    def key_columns(self, columns: list[Texts]) -> list[Texts]:
        """Returns the texts of each column of the handle key, in its order; no column if the table has no key. A column
        that is not in ``p`` (UNSET) has not changed."""
        return [columns[at] for at in self._keys]


# With only-output-updated-columns p has only the columns that changed (wire.md 1.2.3).
def _partial(value_format: ValueFormat, cells: list[Any]) -> tuple[Texts, int]:
    """Returns the texts of a column that some images leave out, and how many do not."""
    values = [cell.v for cell in cells if cell is not UNSET]
    texts = value_format.texts(values) if values else []
    following = iter(texts)
    return [UNSET if cell is UNSET else next(following) for cell in cells], len(texts)


def _column(cell: Cell, sent: SentLayout, *, by_h: bool) -> tuple[Column, ValueFormat]:
    """Returns the column that a cell describes, and the format of its values. ``by_h`` is `SentLayout.h_names_key`.
    Raises DecodeError."""
    try:
        text, value_format = format_of(cell.code, cell.read_as, checked=sent.partitioned)
    except KeyError:
        raise DecodeError("unknown_type", f"column {cell.name} is of type {cell.code}") from None
    if cell.flags >> 63:
        raise DecodeError("out_of_range", f"column {cell.name} has flags {cell.flags}")
    family = family_of(text)
    by_flag = not by_h and bool(cell.flags & Flag.HANDLE_KEY)
    column = Column(
        name=cell.name,
        type=text,
        key=by_flag or cell.h is True,
        flags=cell.flags,
        by="index" if family in (Family.ENUM, Family.SET) else None,
        defect=OPEN_LOST_NAME if cell.name in sent.lost else _defect(cell, family, sent, key_by_flag=by_flag),
    )
    return column, value_format


def _defect(cell: Cell, family: Family, sent: SentLayout, *, key_by_flag: bool) -> str | None:
    """Returns the defect of flags that are missing or stale after a DDL (wire.md 8.4), else None. Integers have the
    binary flag always (1.2.5), a NOT NULL text may have none. Both writers set ``h`` on the columns of the handle key,
    so that a flag alone (``key_by_flag``) may be that of a key which was dropped."""
    flags = cell.flags
    if flags == 0:
        is_wrong = family is Family.INTEGER or (family is Family.TEXT and sent.partitioned)
    else:
        is_wrong = key_by_flag or flags > 0xFF or cell.read_as != flags
    return OPEN_FLAGS if is_wrong else None


def _row_type(images: ImageTypes, cells: tuple[Cell, ...], formats: list[ValueFormat]) -> Any:
    types = [_cell_type(cell, value_format) for cell, value_format in zip(cells, formats, strict=True)]
    whole = images.type_of([(kind,) for kind in types])
    partial = images.type_of([(kind | UnsetType, UNSET) for kind in types])
    members: list[Any] = [
        (name, kind | UnsetType, UNSET) for name, kind in (("u", whole), ("p", partial), ("d", whole))
    ]
    return msgspec.defstruct("TableRow", members, bases=(RowMembers,), forbid_unknown_fields=True, gc=False)


def _cell_type(cell: Cell, value_format: ValueFormat) -> Any:
    members: list[Any] = [("t", _LITERAL[cell.code]), ("f", _LITERAL[cell.flags]), ("v", value_format.wire)]
    if cell.h is not UNSET:
        members.append(("h", bool))
    return msgspec.defstruct("Cell", members, forbid_unknown_fields=True, gc=False)
