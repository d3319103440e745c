"""What repeats in every row of a table, compiled once: how to read its rows, its columns, which texts to convert.

A table's rows are read by a Struct type of their own, in which all that repeats is typed by its value: names, and
``mysqlType`` whatever its order is (a Go map's). ``sqlType`` has the columns in order, and few texts (wire.md 1.4.2).

The few types that Canal-JSON writes in another form than ``event``, both ways:

BINARY, VARBINARY, BLOBs    each byte as the code point of the same number     lower-case hex here
FLOAT, DOUBLE               plain digits, however many                         exponent below 1e-6 and from 1e21 here
YEAR                        as a number: 0                                     four digits here
BIT, ENUM, SET              the number, which is checked to be one             the same
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import filterfalse
from typing import Any, Literal

import msgspec
import orjson
from msgspec import UNSET, Raw, UnsetType

from ticdc_codec.bounded_cache import cached, make_room
from ticdc_codec.canal_json.envelope import Envelope, RowExtension
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, columns_text, key_positions
from ticdc_codec.json_images import (
    KEY_COLUMN_HINT,
    Conversion,
    Image,
    ImageTypes,
    TextImages,
    check_names,
)
from ticdc_codec.json_text import Unreadable, names_of, quotes_of, unreadable
from ticdc_codec.mysql_type import Family, MysqlType, family_of, is_known, may_be_two, parse_type
from ticdc_codec.number_text import (
    READERS,
    WRITERS,
    are_counts,
    are_shortest_singles,
    count_text,
    shortest_single,
)

_LITERAL: Any = Literal
_NAMES = {"sql_type": "sqlType", "mysql_type": "mysqlType", "tidb": "_tidb"}
_SQL_TYPES = msgspec.json.Decoder(dict[str, int] | None)
_MYSQL_TYPES = msgspec.json.Decoder(dict[str, str] | None)


class RowMembers(msgspec.Struct, rename=_NAMES, omit_defaults=True, gc=False):
    """The members from ``es`` on; a table's own type narrows them to what repeats."""

    es: int
    ts: int
    sql: Literal[""]
    sql_type: Raw
    mysql_type: Any
    old: tuple[Image] | None
    data: tuple[Image]
    tidb: RowExtension | None = None


class CanalTableReader:
    """A table as one list of columns and keys describes it."""

    __slots__ = ("_names_check", "images", "layout", "read", "sql_types")

    def __init__(self, database: str, table: str, keys: tuple[str, ...], types: dict[str, str]) -> None:
        columns = tuple(_column(name, kind, key=name in keys) for name, kind in types.items())
        self.layout = Layout(database, table, columns, columns_text(columns))
        image_types = ImageTypes([*types])
        self.read = image_types.reader(_row_type(image_types, [*types.values()]), ("mysqlType", "old", "data"))
        """Reads a row without its head. Raises DecodeError or one of ``Unreadable`` if it has other columns."""
        # Without pkNames each column may be in the handle key (docs/protocols/canal_json.md).
        conversions = [_conversion_in(name in keys or not keys, kind) for name, kind in types.items()]
        self.images = TextImages(image_types, conversions, key_positions(columns))
        self._names_check = _NamesCheck(types)
        self.sql_types: set[bytes] = set()
        """Texts of ``sqlType`` that have these columns in this order."""

    def check_same_layout(self, rows: list[RowMembers]) -> None:
        """Raises DecodeError unless the rows describe these columns in this order, all have ``old`` or none has it, and
        none is in claim-check storage."""
        # sqlType differs from row to row: an unsigned value may have a larger type's number (wire.md 1.4.2).
        is_same = (
            [row.old for row in rows].count(None) in (0, len(rows))
            and not [row for row in rows if row.tidb and row.tidb.claim_check_location is not None]
            and self.sql_types.issuperset({bytes(row.sql_type) for row in rows})
        )
        if not is_same:
            raise DecodeError("wrong_columns", "expected rows of one layout")

    def check_names(
        self, texts: Sequence[bytes], rows: list[RowMembers], commits: list[int], data: bytes, old: bytes
    ) -> None:
        """Raises DecodeError ``duplicate_name`` if an object of a row has a name twice.

        ``commits`` are all that there are; ``data`` and ``old`` the lines of the images with the wire's texts.
        """
        check = self._names_check
        check_names(texts, check.shortest(rows, commits, data, old), lambda: check.quotes(rows, data, old))


def _column(name: str, kind: str, *, key: bool) -> Column:
    # ENUM and SET come as numbers in every dialect, also where content-compatible lists the names (wire.md 1.4.2). In
    # those TiDB does not escape a backslash (OutputFormat of its parser).
    if family_of(kind) not in (Family.ENUM, Family.SET):
        return Column(name=name, type=kind, key=key)
    if may_be_two(kind):
        return Column(name=name, type=kind.partition("(")[0], key=key, by="index")
    return Column(name=name, type=kind.replace("\\", "\\\\"), key=key, by="index")


def _row_type(images: ImageTypes, types: list[str]) -> Any:
    # A row without any column has null for mysqlType (wire.md 1.4.1).
    mysql_type: Any = images.type_of([(_LITERAL[kind],) for kind in types])
    data = images.type_of([(str | None,)] * len(types))
    old = images.type_of([(str | None | UnsetType, UNSET)] * len(types))
    one: Any = tuple
    fields = [
        ("mysql_type", mysql_type if types else mysql_type | None),
        ("old", one[old] | None),
        ("data", one[data]),
    ]
    return msgspec.defstruct(
        "TableRow", fields, bases=(RowMembers,), rename=_NAMES, forbid_unknown_fields=True, gc=False
    )


# es and ts have 13 digits since 2001, a commitTs has 18 since 2014 (and until 2090).
_LEAST_MS = 10**12
_LEAST_TSO = 10**17
_TIDB = len(',"_tidb":{"commitTs":}') + 18


class _NamesCheck:
    """The least length and quotes of a table's rows without their heads (``json_images.check_names``)."""

    __slots__ = ("_length", "_quotes")

    def __init__(self, types: dict[str, str]) -> None:
        members = {
            "es": _LEAST_MS, "ts": _LEAST_MS, "sql": "", "sqlType": 0, "mysqlType": types, "old": 0, "data": [0],
        }  # fmt: skip
        # without the three zeros in place of texts
        self._length = len(orjson.dumps(members)) - 3
        self._quotes = quotes_of(orjson.dumps(members)) + 2 * len(types)

    def shortest(self, rows: list[RowMembers], commits: list[int], data: bytes, old: bytes) -> int:
        """Returns the least length of all together; -1 if numbers have so few digits that they may be shorter."""
        if min([row.es for row in rows]) < _LEAST_MS or min([row.ts for row in rows]) < _LEAST_MS:
            return -1
        if commits and min(commits) < _LEAST_TSO:
            return -1
        sql_types = sum([len(row.sql_type) for row in rows])
        # data and old are JSON lines: a line feed takes the place of a bracket of each image, "null" that of a missing
        # old.
        images = len(data) + len(old) + (0 if old else 3) * len(rows)
        return len(rows) * self._length + len(commits) * _TIDB + sql_types + images

    def quotes(self, rows: list[RowMembers], data: bytes, old: bytes) -> Iterator[int]:
        """Yields the quotes of each row."""
        old_lines = old.splitlines() or [b""] * len(rows)
        for row, *images in zip(rows, data.splitlines(), old_lines, strict=True):
            extension = 0 if row.tidb is None else 4 + 2 * row.tidb.only_handle_key + 4 * (row.tidb.row_key is not None)
            yield self._quotes + extension + sum(map(quotes_of, images))


class TableReaders:
    """The tables of a feed whose layouts messages have sent so far."""

    __slots__ = ("_by_layout",)

    def __init__(self) -> None:
        self._by_layout: dict[tuple[Any, ...], CanalTableReader] = {}

    def reader(self, envelope: Envelope) -> CanalTableReader:
        """Returns the reader of rows with the layout of this one. Raises DecodeError."""
        names = _members(envelope, "sqlType", envelope.sql_type, _SQL_TYPES)
        types = _members(envelope, "mysqlType", envelope.mysql_type, _MYSQL_TYPES)
        keys = envelope.pk_names or ()
        if names.keys() != types.keys():
            raise envelope.fault(
                "wrong_columns", f"expected equal names in sqlType {[*names]} and mysqlType {[*types]}"
            )
        if not names.keys() >= set(keys) or len(set(keys)) != len(keys):
            raise envelope.fault(
                "wrong_columns", f"expected pkNames among {[*names]}, found {[*keys]} {KEY_COLUMN_HINT}"
            )
        if unknown := [*filterfalse(is_known, types.values())]:
            raise envelope.fault("unknown_type", f"expected types of TiDB in mysqlType, found {unknown[0][:80]!r}")
        ordered = {name: types[name] for name in names}  # mysqlType's own order is a Go map's (wire.md 1.4.1)
        sent = (envelope.database, envelope.table, keys, *ordered.items())
        table = cached(
            self._by_layout,
            sent,
            lambda: CanalTableReader(envelope.database, envelope.table, keys, ordered),
        )
        make_room(table.sql_types)
        table.sql_types.add(bytes(envelope.sql_type))
        return table


def _members(envelope: Envelope, member: str, text: Any, decoder: msgspec.json.Decoder[Any]) -> dict[str, Any]:
    """Returns the members of ``sqlType`` or ``mysqlType``; none for null, which ticdc writes for a row without any
    column."""
    try:
        members: dict[str, Any] | None = decoder.decode(text)
    except Unreadable as error:
        fault = unreadable(error, bytes(text))
        raise envelope.fault(fault.reason, f"in {member}: {fault.detail}") from None
    try:
        names_of(bytes(text))
    except DecodeError as error:
        raise envelope.fault(error.reason, error.detail) from None
    return members or {}


Convert = Callable[[str], str]


def _is_binary(type_text: str) -> bool:
    """True if values are bytes spelled in Latin-1: the type's first word shows it (wire.md 1.4.2)."""
    name = parse_type(type_text).name
    return "blob" in name or "binary" in name


def conversion(type_text: str) -> Conversion | None:
    """Returns the conversion from the wire's texts of a type to those of ``event``; None if they are always the
    same."""
    if _is_binary(type_text):
        return operator.not_, _hex_of
    match parse_type(type_text).family:
        case Family.ENUM | Family.SET:
            return are_counts, count_text
        case family:
            return READERS.get(family)


def _conversion_in(key: bool, type_text: str) -> Conversion | None:
    """Returns the ``conversion`` of a column that may be in the handle key or not. A FLOAT in a key has its one
    shortest text: of tiflow up to 6.5.1 it has the digits of a float64, and would be another key after an upgrade."""
    if key and parse_type(type_text).family is Family.FLOAT:
        return are_shortest_singles, shortest_single
    return conversion(type_text)


def to_wire(type_text: str) -> Convert | None:
    """Inverse of ``conversion``: makes the wire's text from the text of ``event``; None if they are the same."""
    if _is_binary(type_text):
        return _latin1_of
    return WRITERS.get(parse_type(type_text).family)


def _hex_of(text: str) -> str:
    """Returns the bytes behind a text of code points 0 to 255. Raises DecodeError above."""
    try:
        return text.encode("latin-1").hex()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise DecodeError("bad_value", f"expected a byte, a code point to 255, found U+{code:04X}") from None


def _latin1_of(digits: str) -> str:
    """Returns each byte as the code point of the same number."""
    return bytes.fromhex(digits).decode("latin-1")


# wire.md 1.4.2; java.sql.Types.
_SQL_TYPE_OF_NAME = {
    "tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "float": 7, "double": 8, "decimal": 3,
    "bit": -7, "char": 1, "varchar": 12, "binary": 2004, "varbinary": 2004,
    "tinytext": 2005, "text": 2005, "mediumtext": 2005, "longtext": 2005,
    "tinyblob": 2004, "blob": 2004, "mediumblob": 2004, "longblob": 2004,
    "date": 91, "time": 92, "datetime": 93, "timestamp": 93, "year": 12, "enum": 4, "set": -7, "json": 12, "vector": 12,
    "null": 0,
}  # fmt: skip
_PROMOTED = {"tinyint": (127, 5), "smallint": (32767, 4), "int": (2**31 - 1, -5), "bigint": (2**63 - 1, 3)}
"""An unsigned value above the bound has the next larger type's number; MEDIUMINT fits INTEGER as it is."""


def sql_type(kind: MysqlType) -> int:
    """Returns the JDBC type number of values, except those above the bound of ``promoted``."""
    return _SQL_TYPE_OF_NAME.get(kind.name, 12)


def promoted(kind: MysqlType) -> tuple[int, int] | None:
    """Returns the value above which the type number is another one, and that number; None if it never is."""
    return _PROMOTED.get(kind.name) if kind.unsigned else None
