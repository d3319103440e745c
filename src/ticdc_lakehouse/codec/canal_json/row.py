"""A row's message, read by a Struct type of its table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, Literal

import msgspec
import orjson
from msgspec import UNSET, Raw, UnsetType

from ticdc_lakehouse.codec.canal_json.envelope import Extension
from ticdc_lakehouse.codec.json_text import names_of, quotes_of
from ticdc_lakehouse.errors import DecodeError

Image = Any
"""A row's texts, by column: a Struct with fields c0, c1 …, or for odd names a dict. None is NULL.

What ``old`` leaves out is UNSET in a Struct and not in a dict.
"""

_LITERAL: Any = Literal


class Row(msgspec.Struct, gc=False):
    """A row's message; a table's own type narrows the fields to what repeats."""

    id: int
    database: str
    table: str
    pk_names: tuple[str, ...] | None
    is_ddl: bool
    type: Literal["INSERT", "UPDATE", "DELETE"]
    es: int
    ts: int
    sql: str
    sql_type: Raw
    mysql_type: Any
    old: tuple[Image] | None
    data: tuple[Image]
    tidb: Extension | None = None


_NAMES = {"pk_names": "pkNames", "is_ddl": "isDdl", "sql_type": "sqlType", "mysql_type": "mysqlType", "tidb": "_tidb"}


def reader(database: str, table: str, keys: tuple[str, ...], types: dict[str, str]) -> Callable[[bytes], Row]:
    """Reads the messages of a table that is described so, and no others. Raises one of ``Unreadable``."""
    return _reader(
        database,
        table,
        keys,
        mysql_type=_object(types, [(_LITERAL[kind],) for kind in types.values()]),
        whole=_object(types, [(str | None,)] * len(types)),
        partial=_object(types, [(str | None | UnsetType, UNSET)] * len(types)),
        empty=not types,
    )


def odd_reader(database: str, table: str, keys: tuple[str, ...], types: dict[str, str]) -> Callable[[bytes], Row]:
    """The same for odd names. Raises DecodeError too."""
    texts = dict[str, str | None]
    read = _reader(database, table, keys, mysql_type=dict[str, str], whole=texts, partial=texts, empty=False)

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


def _reader(
    database: str, table: str, keys: tuple[str, ...], *, mysql_type: Any, whole: Any, partial: Any, empty: bool
) -> Callable[[bytes], Row]:
    one: Any = tuple
    fields: list[Any] = [
        ("id", int),
        ("database", _LITERAL[database]),
        ("table", _LITERAL[table]),
        ("pk_names", one[tuple(_LITERAL[name] for name in keys)] if keys else one[()] | None),
        ("is_ddl", bool),
        ("type", Literal["INSERT", "UPDATE", "DELETE"]),
        ("es", int),
        ("ts", int),
        ("sql", str),
        ("sql_type", Raw),
        ("mysql_type", mysql_type | None if empty else mysql_type),
        ("old", one[partial] | None),
        ("data", one[whole]),
        ("tidb", Extension | None, None),
    ]
    row = msgspec.defstruct("TableRow", fields, bases=(Row,), rename=_NAMES, forbid_unknown_fields=True, gc=False)
    read: Callable[[bytes], Any] = msgspec.json.Decoder(row).decode
    return read


def _object(names: Iterable[str], fields: list[tuple[Any, ...]]) -> type:
    """A Struct type of objects with these names."""
    rename = {f"c{at}": name for at, name in enumerate(names)}
    named: list[Any] = [(name, *field) for name, field in zip(rename, fields, strict=True)]
    return msgspec.defstruct("Image", named, rename=rename, forbid_unknown_fields=True, gc=False)


# es and ts have 13 digits since 2001, a commitTs has 18 since 2014 (and until 2090).
_LEAST_MS = 10**12
_LEAST_TSO = 10**17
_TIDB = len(',"_tidb":{"commitTs":}') + 18


class Shortest:
    """The shortest messages of a table: one that is no longer has no name twice, and no white space."""

    __slots__ = ("_length", "_quotes")

    def __init__(self, database: str, table: str, keys: tuple[str, ...], types: dict[str, str]) -> None:
        members = {
            "id": 0, "database": database, "table": table, "pkNames": keys, "isDdl": False, "type": "INSERT",
            "es": _LEAST_MS, "ts": _LEAST_MS, "sql": "", "sqlType": 0, "mysqlType": types, "old": 0, "data": [0],
        }  # fmt: skip
        # without the three zeros that stand for texts
        self._length = len(orjson.dumps(members)) - 3
        self._quotes = quotes_of(orjson.dumps(members)) + 2 * len(types)

    def check_names(self, values: list[bytes], rows: list[Row], data: bytes, old: bytes) -> None:
        """Raise DecodeError ``duplicate_name`` if an object of a message has a name twice.

        ``data`` and ``old`` are the images in their shortest form, as lines. A second name would make a message longer
        than the shortest with them, and so all messages; and bring two more quotes at the least.
        """
        if sum(map(len, values)) == self._length_with(rows, data, old):
            return
        lines = (data.splitlines(), old.splitlines() if old else repeat(None))
        for value, row, image, before in zip(values, rows, *lines, strict=False):
            if quotes_of(value) != self._quotes_with(row, image, before):
                names_of(value)

    def _length_with(self, rows: list[Row], data: bytes, old: bytes) -> int:
        """The least length of all together; -1 if numbers have so few digits that they may be shorter."""
        if min([row.es for row in rows]) < _LEAST_MS or min([row.ts for row in rows]) < _LEAST_MS:
            return -1
        commits = [row.tidb.commit_ts or 0 for row in rows if row.tidb is not None]
        if commits and min(commits) < _LEAST_TSO:
            return -1
        sql_types = len(b"".join([row.sql_type for row in rows]))
        # A line feed stands for a bracket of each image, "null" for no old.
        images = len(data) + len(old) + (0 if old else 3) * len(rows)
        return len(rows) * self._length + len(commits) * _TIDB + sql_types + images

    def _quotes_with(self, row: Row, data: bytes, old: bytes | None) -> int:
        quotes = self._quotes + quotes_of(data) + (0 if old is None else quotes_of(old))
        if row.tidb is None:
            return quotes
        return quotes + 4 + 2 * row.tidb.only_handle_key + (0 if row.tidb.row_key is None else 4)
