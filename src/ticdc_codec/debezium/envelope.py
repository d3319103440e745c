"""The JSON object that every Debezium message of TiCDC is (wire.md 1.5.1, 1.5.3), read member by member.

    payload {source, ts_ms, transaction, op, before, after}                          a row: op c, u or d
            {source, ts_ms, transaction, op}                                         a watermark: op m
            {source, ts_ms, databaseName, schemaName, ddl, tableChanges}             a DDL
    schema  what the payload's types are; absent with debezium-disable-schema

A member that is not known is refused, as in Canal-JSON: it may change what the others mean. So is every connector but
TiCDC: Debezium's own MySQL connector uses the same names for other values (DECIMAL as bytes, BIGINT UNSIGNED as bytes).
"""

from __future__ import annotations

import base64
import json
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ticdc_codec.errors import DecodeError
from ticdc_codec.json_text import Unreadable, names_of, number_as_written, unreadable


class Source(msgspec.Struct, forbid_unknown_fields=True, gc=False, kw_only=True):
    """``source``; a table's own type narrows ``db`` and ``table`` to its names."""

    version: str
    connector: Literal["TiCDC"]
    name: str
    """The cluster, as in the names of schemas."""
    ts_ms: int
    """Commit time."""
    snapshot: str
    db: str
    table: str
    server_id: int
    gtid: None
    file: str
    pos: int
    row: int
    thread: int
    query: None
    commit_ts: int
    start_ts: int | UnsetType = UNSET
    """Only from ticdc with ``debezium-include-start-ts``."""
    cluster_id: str


class Whole(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A value, or a key."""

    payload: Raw
    schema: Raw | UnsetType = UNSET


class _Names(msgspec.Struct, gc=False):
    db: str
    table: str


class _Peek(msgspec.Struct, gc=False):
    """What distinguishes the kinds of messages."""

    source: _Names
    op: str | None = None
    ddl: str | None = None


class RowPayload(msgspec.Struct, forbid_unknown_fields=True, gc=False, kw_only=True):
    """A row's, its images unread."""

    source: Source
    ts_ms: int
    transaction: None
    op: Literal["c", "u", "d"]
    before: Raw | UnsetType = UNSET
    """Absent from an UPDATE with ``output-old-value=false`` (wire.md 1.5.1)."""
    after: Raw | UnsetType = UNSET


class WatermarkPayload(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A watermark's: ``source.commit_ts``."""

    source: Source
    ts_ms: int
    transaction: None
    op: Literal["m"]


class ChangedColumn(msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel"):
    """A column after a DDL."""

    name: str
    jdbc_type: int
    native_type: int | None
    comment: str | None
    default_value_expression: str | None
    enum_values: list[str] | None
    """Names of an ENUM or SET in quotes, as they are between them."""
    type_name: str
    type_expression: str
    charset_name: str | None
    length: int | None
    scale: int | None
    position: int
    optional: bool
    auto_incremented: bool
    generated: bool


class ChangedTable(msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel"):
    """A table after a DDL."""

    default_charset_name: str | None
    primary_key_column_names: list[str]
    columns: list[ChangedColumn]
    comment: str | None


class TableChange(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What a DDL did to a table; ``table`` is null after DROP TABLE."""

    type: str
    id: str
    table: ChangedTable | None


class DdlPayload(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A DDL's."""

    source: Source
    ts_ms: int
    database_name: str = msgspec.field(name="databaseName")
    schema_name: None = msgspec.field(name="schemaName")
    ddl: str
    changes: list[TableChange] = msgspec.field(name="tableChanges")


Payload = RowPayload | WatermarkPayload | DdlPayload

_WHOLE = msgspec.json.Decoder(Whole)
_PEEK = msgspec.json.Decoder(_Peek)
_ROW = msgspec.json.Decoder(RowPayload)
_WATERMARK = msgspec.json.Decoder(WatermarkPayload)
_DDL = msgspec.json.Decoder(DdlPayload)


def read_whole(data: bytes) -> Whole:
    """Payload and schema of a value or key. Raises DecodeError."""
    try:
        return _WHOLE.decode(data)
    except Unreadable as error:
        raise unreadable(error, data) from None


def read_payload(value: bytes, payload: bytes) -> Payload:
    """The payload within ``value``, by its kind. Raises DecodeError, which names the table of a row."""
    try:
        peek = _PEEK.decode(payload)
    except Unreadable as error:
        raise unreadable(error, value) from None
    try:
        match peek.op:
            case "c" | "u" | "d":
                return _ROW.decode(payload)
            case "m":
                return _WATERMARK.decode(payload)
            case None if peek.ddl is not None:  # a DDL has no op (wire.md 1.5.1)
                return _DDL.decode(payload)
    except Unreadable as error:
        fault = unreadable(error, value)
        raise _of_row(peek, fault) from None
    raise DecodeError("unknown_type", f"expected op c, u, d or m, or a ddl, found op {peek.op!r}")


def _of_row(peek: _Peek, fault: DecodeError) -> DecodeError:
    """The fault, naming the table if the message is one of its rows."""
    if peek.op not in ("c", "u", "d") or not peek.source.table:
        return fault
    return DecodeError(
        fault.reason, fault.detail, offset=fault.offset, database=peek.source.db, table=peek.source.table
    )


def with_names_once(value: bytes) -> bytes:
    """The value with each name once in an object. Raises DecodeError."""
    read_whole(value)  # it is JSON
    try:
        names_of(value)
    except DecodeError as error:
        if error.reason != "duplicate_name":
            raise
        return _without_duplicated_defaults(value)
    return value


_ENCODE = msgspec.json.Encoder().encode


def _without_duplicated_defaults(value: bytes) -> bytes:
    """The JSON text with null in place of each default that stands twice (wire.md 8.5); numbers keep their digits.

    For a NULL in a binary column with a DEFAULT tiflow writes the default as base64, and then, under the same name, as
    text. A value that is not NULL stands once: so the pair is a NULL. Raises DecodeError ``duplicate_name`` for any
    other name that stands twice.
    """
    return _ENCODE(
        json.loads(value, object_pairs_hook=_object, parse_int=number_as_written, parse_float=number_as_written)
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    previous: str | None = None
    for name, found in pairs:
        if name in members:
            if name != previous or not _is_default(members[name], found):
                raise DecodeError("duplicate_name", f"expected each name once in an object, found {name!r} again")
            members[name] = previous = None
        else:
            members[name] = found
            previous = name
    return members


def _is_default(first: Any, second: Any) -> bool:
    if not isinstance(first, str) or not isinstance(second, str):
        return False
    return base64.b64encode(second.encode("utf-8", "surrogatepass")).decode() == first
