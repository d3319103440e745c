"""What repeats in every row of a table, compiled once: how to read its rows, its columns, which texts to change.

A table's rows are read by a Struct type of their own, in which all that repeats is typed by its value: names, and
``mysqlType`` whatever its order is (a Go map's). ``sqlType`` has the columns in order, and few texts (wire.md 1.4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import filterfalse
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET

from ticdc_codec.bounded_cache import make_room
from ticdc_codec.canal_json.envelope import Envelope
from ticdc_codec.canal_json.row import Head, Image, Row, Shortest, reader
from ticdc_codec.canal_json.value import converter
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, columns_text
from ticdc_codec.json_text import Unreadable, is_odd, names_of, unreadable
from ticdc_codec.mysql_type import Family, family_of, is_known

_ENCODE = msgspec.json.Encoder().encode
_ENCODE_LINES = msgspec.json.Encoder().encode_lines
_SQL_TYPES = msgspec.json.Decoder(dict[str, int] | None)
_MYSQL_TYPES = msgspec.json.Decoder(dict[str, str] | None)


class Table:
    """One description of a table."""

    __slots__ = ("_changes", "_has_key", "_key", "_set", "layout", "read", "shortest", "sql_types")

    def __init__(self, database: str, table: str, keys: tuple[str, ...], types: dict[str, str]) -> None:
        columns = tuple(_column(name, kind, name in keys) for name, kind in types.items())
        self.layout = Layout(database, table, columns, columns_text(columns))
        odd = is_odd(types)
        self.read = reader(types)
        self.shortest = Shortest(types)
        self.sql_types: set[bytes] = set()
        """Texts of ``sqlType`` that have these columns in this order."""
        fields = {name: name if odd else f"c{at}" for at, name in enumerate(types)}
        self._set: Callable[..., None] = dict.__setitem__ if odd else setattr
        self._changes = [
            (fields[name], _getter(fields[name], odd=odd), *change)
            for name, kind in types.items()
            if (change := converter(kind))
        ]
        self._has_key = bool(keys)
        self._key = [_getter(fields[name], odd=odd) for name in keys]

    def are_like(self, rows: list[Row]) -> bool:
        """Whether the messages describe these columns in this order, and all have ``old`` or none, and their rows."""
        return (
            [row.old for row in rows].count(None) in (0, len(rows))
            and not [row for row in rows if row.tidb and row.tidb.claim_check_location is not None]
            and self.sql_types.issuperset({bytes(row.sql_type) for row in rows})
        )

    def texts(self, images: list[Image]) -> tuple[bytes, bytes]:
        """Images as lines of JSON in the columns' order: with the wire's texts, and with those of ``event``.

        They are changed to those of ``event``. Raises DecodeError.
        """
        theirs = _ENCODE_LINES(images)
        changed = False
        for field, get, are_ours, change in self._changes:
            texts = [*map(get, images)]
            if not are_ours([text for text in texts if isinstance(text, str)]):
                changed = True
                for image, text in zip(images, texts, strict=True):
                    if isinstance(text, str):
                        self._set(image, field, change(text))
        return theirs, _ENCODE_LINES(images) if changed else theirs

    def handle_keys(self, images: list[Image]) -> bytes:
        """The handle keys' texts as lines, none if the table names no key."""
        return _ENCODE_LINES([*self._keys(images)])

    def old_handle_keys(self, old: list[Image], new: list[Image]) -> list[bytes | None] | None:
        """The keys before updates, None for one that is the same, or for all."""
        was, now = [*self._keys(old)], [*self._keys(new)]
        return None if was == now else [*map(_changed, was, now)]

    def _keys(self, images: list[Image]) -> Iterable[tuple[Any, ...]]:
        return zip(*(map(get, images) for get in self._key), strict=True) if self._has_key else ()


def _changed(was: tuple[Any, ...], now: tuple[Any, ...]) -> bytes | None:
    """A key's text before an update, None if it is the same. A column that is not in ``old`` has not changed."""
    before = tuple(b if a is UNSET else a for a, b in zip(was, now, strict=True))
    return None if before == now else _ENCODE(before)


def _column(name: str, kind: str, key: bool) -> Column:
    # ENUM and SET come as numbers in every dialect, also where content-compatible lists the names (wire.md 1.4.2).
    by = "index" if family_of(kind) in (Family.ENUM, Family.SET) else None
    return Column(name=name, type=kind, key=key, by=by)


def _getter(field: str, *, odd: bool) -> Callable[[Image], Any]:
    return (lambda image: image.get(field, UNSET)) if odd else attrgetter(field)


def head_of(value: bytes) -> bytes:
    """What a message of either writer has before ``es``, without a bracket at its end; any bytes of another."""
    return value[: value.find(b',"es":')]


_HEAD = msgspec.json.Decoder(Head)


def _is_head(head: bytes) -> bool:
    """Whether the members before ``es`` are those of a Head, each once: then messages may be read without them."""
    try:
        names_of(head + b"}")
        return not _HEAD.decode(head + b"}").is_ddl
    except (DecodeError, *Unreadable, ValueError):
        return False


class Tables:
    """The tables of a feed that messages have described so far."""

    __slots__ = ("_by_description", "_by_head")

    def __init__(self) -> None:
        self._by_head: dict[bytes, tuple[Table, str]] = {}
        self._by_description: dict[tuple[Any, ...], Table] = {}

    def known(self, head: bytes) -> tuple[Table, str] | None:
        """The table of the last row with this head, and the head's type."""
        return self._by_head.get(head)

    def learn(self, value: bytes, envelope: Envelope, table: Table) -> None:
        """Remember by what the messages that are like this one are found."""
        head = head_of(value)
        if head not in self._by_head and not _is_head(head):
            return
        make_room(self._by_head)
        self._by_head[head] = (table, envelope.type)
        make_room(table.sql_types)
        table.sql_types.add(bytes(envelope.sql_type))

    def described(self, envelope: Envelope) -> Table:
        """The table as this row describes it. Raises DecodeError."""
        names = _members(envelope, "sqlType", envelope.sql_type, _SQL_TYPES)
        types = _members(envelope, "mysqlType", envelope.mysql_type, _MYSQL_TYPES)
        keys = envelope.pk_names or ()
        if names.keys() != types.keys():
            raise envelope.fault(
                "wrong_columns", f"expected equal names in sqlType {[*names]} and mysqlType {[*types]}"
            )
        if not names.keys() >= set(keys) or len(set(keys)) != len(keys):
            raise envelope.fault("wrong_columns", f"expected pkNames among {[*names]}, found {[*keys]}")
        if unknown := [*filterfalse(is_known, types.values())]:
            raise envelope.fault("unknown_type", f"expected types of TiDB in mysqlType, found {unknown[0][:80]!r}")
        ordered = {name: types[name] for name in names}
        description = (envelope.database, envelope.table, keys, *ordered.items())
        table = self._by_description.get(description)
        if table is None:
            make_room(self._by_description)
            table = self._by_description[description] = Table(envelope.database, envelope.table, keys, ordered)
        return table


def _members(envelope: Envelope, member: str, text: Any, decoder: msgspec.json.Decoder[Any]) -> dict[str, Any]:
    """The members of ``sqlType`` or ``mysqlType``; none for null, which ticdc writes for a row without any column."""
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
