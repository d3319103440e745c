"""What a row's message has after its head, read by a Struct type of its table."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any, Literal

import msgspec
import orjson
from msgspec import UNSET, Raw, UnsetType

from ticdc_codec.canal_json.envelope import Extension
from ticdc_codec.errors import DecodeError
from ticdc_codec.json_text import is_odd, names_of, object_type, quotes_of

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


_NAMES = {"sql_type": "sqlType", "mysql_type": "mysqlType", "tidb": "_tidb"}


class Row(msgspec.Struct, rename=_NAMES, omit_defaults=True, gc=False):
    """The members from ``es`` on; a table's own type narrows them to what repeats."""

    es: int
    ts: int
    sql: str
    sql_type: Raw
    mysql_type: Any
    old: tuple[Image] | None
    data: tuple[Image]
    tidb: Extension | None = None


Reader = Callable[[bytes], Row]
"""Reads rows without their heads. Raises one of ``Unreadable``, and with odd names DecodeError."""


def reader(types: dict[str, str]) -> Reader:
    """What reads the rows of a table with these columns, and no others."""
    if is_odd(types):
        texts = dict[str, str | None]
        return _odd_reader(_reader(dict[str, str], texts, texts), types)
    kinds: Any = object_type(types, [(_LITERAL[kind],) for kind in types.values()])
    whole = object_type(types, [(str | None,)] * len(types))
    partial = object_type(types, [(str | None | UnsetType, UNSET)] * len(types))
    return _reader(kinds if types else kinds | None, whole, partial)


def _odd_reader(read: Reader, types: dict[str, str]) -> Reader:
    def read_odd(text: bytes) -> Row:
        row = read(text)
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


def _reader(mysql_type: Any, whole: Any, partial: Any) -> Reader:
    one: Any = tuple
    fields = [("mysql_type", mysql_type), ("old", one[partial] | None), ("data", one[whole])]
    row = msgspec.defstruct("TableRow", fields, bases=(Row,), rename=_NAMES, forbid_unknown_fields=True, gc=False)
    read: Callable[[bytes], Any] = msgspec.json.Decoder(row).decode
    return read


# es and ts have 13 digits since 2001, a commitTs has 18 since 2014 (and until 2090).
_LEAST_MS = 10**12
_LEAST_TSO = 10**17
_TIDB = len(',"_tidb":{"commitTs":}') + 18


class Shortest:
    """The shortest rows of a table without their heads: one that is no longer has no name twice and no white space."""

    __slots__ = ("_length", "_quotes")

    def __init__(self, types: dict[str, str]) -> None:
        members = {
            "es": _LEAST_MS, "ts": _LEAST_MS, "sql": "", "sqlType": 0, "mysqlType": types, "old": 0, "data": [0],
        }  # fmt: skip
        # without the three zeros that stand for texts
        self._length = len(orjson.dumps(members)) - 3
        self._quotes = quotes_of(orjson.dumps(members)) + 2 * len(types)

    def check(self, texts: list[bytes], rows: list[Row], commits: list[int], data: bytes, old: bytes) -> None:
        """Raise DecodeError ``duplicate_name`` if an object of a row has a name twice.

        ``commits`` are all there are; ``data`` and ``old`` are the images in their shortest form, as lines. A second
        name would make a text longer than the shortest with them, and so all texts; and bring two more quotes at the
        least.
        """
        if sum(map(len, texts)) == self._length_with(rows, commits, data, old):
            return
        lines = (data.splitlines(), old.splitlines() if old else repeat(None))
        for text, row, image, before in zip(texts, rows, *lines, strict=False):
            if quotes_of(text) != self._quotes_with(row, image, before):
                names_of(text)

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
