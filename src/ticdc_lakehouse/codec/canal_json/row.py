"""A row's message, read by a Struct type of its table."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any, Literal

import msgspec
import orjson
from msgspec import UNSET, Raw, UnsetType

from ticdc_lakehouse.codec.canal_json.envelope import Extension
from ticdc_lakehouse.codec.json_text import is_odd, names_of, object_type, quotes_of
from ticdc_lakehouse.errors import DecodeError

Image = Any
"""A row's texts, by column: a Struct with fields c0, c1 …, or for odd names a dict. None is NULL.

What ``old`` leaves out is UNSET in a Struct and not in a dict.
"""

_LITERAL: Any = Literal


class Head(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What both writers put before ``es``: it repeats from row to row, byte for byte."""

    id: int
    database: str
    table: str
    pk_names: tuple[str, ...] | None = msgspec.field(name="pkNames")
    is_ddl: bool = msgspec.field(name="isDdl")
    type: Literal["INSERT", "UPDATE", "DELETE"]


class Row(msgspec.Struct, gc=False):
    """A row's message from ``es`` on; a table's own type narrows the fields to what repeats."""

    es: int
    ts: int
    sql: str
    sql_type: Raw
    mysql_type: Any
    old: tuple[Image] | None
    data: tuple[Image]
    tidb: Extension | None = None


_NAMES = {"pk_names": "pkNames", "is_ddl": "isDdl", "sql_type": "sqlType", "mysql_type": "mysqlType", "tidb": "_tidb"}


Reader = Callable[[bytes], Row]
"""Reads messages. Raises one of ``Unreadable``, and with odd names DecodeError."""


def readers(types: dict[str, str]) -> tuple[Reader, Reader]:
    """What reads the rows of a table with these columns, and no others: of envelopes that have been read, and of heads
    that are known. The second one passes over members that it does not know; ``Shortest.check`` finds them.
    """
    if is_odd(types):
        texts = dict[str, str | None]
        read = _odd_reader(_reader(_fields(dict[str, str], texts, texts), strict=True), types)
        return read, read
    kinds: Any = object_type(types, [(_LITERAL[kind],) for kind in types.values()])
    whole = object_type(types, [(str | None,)] * len(types))
    partial = object_type(types, [(str | None | UnsetType, UNSET)] * len(types))
    fields = _fields(kinds if types else kinds | None, whole, partial)
    return _reader(fields, strict=True), _reader(fields, strict=False)


def _odd_reader(read: Reader, types: dict[str, str]) -> Reader:
    def read_odd(value: bytes) -> Row:
        row = read(value)
        if row.mysql_type != types:
            raise DecodeError("wrong_columns", f"expected mysqlType {types}, found {row.mysql_type}")
        row.data = (_ordered(row.data[0], types),)
        if row.data[0].keys() != types.keys():
            raise DecodeError("wrong_columns", f"expected columns {[*types]}, found {[*row.data[0]]}")
        row.old = None if row.old is None else (_ordered(row.old[0], types),)
        return row

    return read_odd


def _ordered(texts: dict[str, str | None], types: dict[str, str]) -> dict[str, str | None]:
    if not texts.keys() <= types.keys():
        raise DecodeError("wrong_columns", f"expected columns {[*types]}, found {[*texts]}")
    return {name: texts[name] for name in types if name in texts}


def _fields(mysql_type: Any, whole: Any, partial: Any) -> list[Any]:
    """The members from ``es`` on."""
    one: Any = tuple
    return [
        ("es", int),
        ("ts", int),
        ("sql", str),
        ("sql_type", Raw),
        ("mysql_type", mysql_type),
        ("old", one[partial] | None),
        ("data", one[whole]),
        ("tidb", Extension | None, None),
    ]


def _reader(fields: list[Any], *, strict: bool) -> Reader:
    head: list[Any] = [(name, Raw) for name in Head.__struct_fields__] if strict else []
    row = msgspec.defstruct(
        "TableRow", head + fields, bases=(Row,), rename=_NAMES, forbid_unknown_fields=strict, kw_only=True, gc=False
    )
    read: Callable[[bytes], Any] = msgspec.json.Decoder(row).decode
    return read


# es and ts have 13 digits since 2001, a commitTs has 18 since 2014 (and until 2090).
_LEAST_MS = 10**12
_LEAST_TSO = 10**17
_TIDB = len(',"_tidb":{"commitTs":}') + 18


class Shortest:
    """The shortest messages of a table: one that is no longer has no name twice, no other member and no white space."""

    __slots__ = ("_length", "_quotes", "_read")

    def __init__(
        self, database: str, table: str, keys: tuple[str, ...], types: dict[str, str], read: Callable[[bytes], object]
    ) -> None:
        members = {
            "id": 0, "database": database, "table": table, "pkNames": keys, "isDdl": False, "type": "INSERT",
            "es": _LEAST_MS, "ts": _LEAST_MS, "sql": "", "sqlType": 0, "mysqlType": types, "old": 0, "data": [0],
        }  # fmt: skip
        # without the three zeros that stand for texts
        self._length = len(orjson.dumps(members)) - 3
        self._quotes = quotes_of(orjson.dumps(members)) + 2 * len(types)
        self._read = read
        """Reads a message, and refuses a member that it does not know."""

    def check(self, values: list[bytes], rows: list[Row], commits: list[int], data: bytes, old: bytes) -> None:
        """Raise DecodeError ``duplicate_name``, or one of ``Unreadable``, if an object of a message has a name twice,
        or the message a member that rows do not have.

        ``commits`` are all there are; ``data`` and ``old`` are the images in their shortest form, as lines. A second
        name would make a message longer than the shortest with them, and so all messages; and bring two more quotes at
        the least.
        """
        if sum(map(len, values)) == self._length_with(rows, commits, data, old):
            return
        lines = (data.splitlines(), old.splitlines() if old else repeat(None))
        for value, row, image, before in zip(values, rows, *lines, strict=False):
            if quotes_of(value) != self._quotes_with(row, image, before):
                names_of(value)
                self._read(value)

    def _length_with(self, rows: list[Row], commits: list[int], data: bytes, old: bytes) -> int:
        """The least length of all together; -1 if numbers have so few digits that they may be shorter."""
        if min([row.es for row in rows]) < _LEAST_MS or min([row.ts for row in rows]) < _LEAST_MS:
            return -1
        if commits and min(commits) < _LEAST_TSO:
            return -1
        sql_types = sum([len(row.sql_type) for row in rows])
        # A line feed stands for a bracket of each image, "null" for no old.
        images = len(data) + len(old) + (0 if old else 3) * len(rows)
        return len(rows) * self._length + len(commits) * _TIDB + sql_types + images

    def _quotes_with(self, row: Row, data: bytes, old: bytes | None) -> int:
        quotes = self._quotes + quotes_of(data) + (0 if old is None else quotes_of(old))
        if row.tidb is None:
            return quotes
        return quotes + 4 + 2 * row.tidb.only_handle_key + (0 if row.tidb.row_key is None else 4)
