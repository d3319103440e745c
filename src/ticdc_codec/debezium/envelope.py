"""The JSON object that every Debezium message of TiCDC is (wire.md 1.5.1, 1.5.3), read member by member, and what it
says of columns: fields of the ``schema`` block (1.5.2), and columns of a DDL (1.5.3).

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
import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, NamedBy, columns_text
from ticdc_codec.json_text import Unreadable, names_of, number_as_written, text_of, unreadable
from ticdc_codec.mysql_type import quoted_element


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
    """Payload of a row; its images stay unread."""

    source: Source
    ts_ms: int
    transaction: None
    op: Literal["c", "u", "d"]
    before: Raw | UnsetType = UNSET
    """Absent from an UPDATE with ``output-old-value=false`` (wire.md 1.5.1)."""
    after: Raw | UnsetType = UNSET


class WatermarkPayload(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Payload of a watermark; its TSO is ``source.commit_ts``."""

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
    """Payload of a DDL."""

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
    """Returns payload and schema of a value or key. Raises DecodeError."""
    try:
        return _WHOLE.decode(data)
    except Unreadable as error:
        raise unreadable(error, data) from None


def read_payload(value: bytes, payload: bytes) -> Payload:
    """Returns the payload within ``value``, by its kind. Raises DecodeError, which names the table of a row."""
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
        raise _of_row(payload, unreadable(error, value)) from None
    raise DecodeError("unknown_type", f"expected op c, u, d or m, or a ddl, found op {peek.op!r}")


def _of_row(payload: bytes, fault: DecodeError) -> DecodeError:
    """Returns the fault, naming the table if the payload is that of one of its rows."""
    try:
        peek = _PEEK.decode(payload)
    except Unreadable:
        return fault
    if peek.op not in ("c", "u", "d") or not peek.source.table:
        return fault
    return DecodeError(
        fault.reason, fault.detail, offset=fault.offset, database=peek.source.db, table=peek.source.table
    )


def with_names_once(value: bytes) -> bytes:
    """Returns the value with each name once in an object. Raises DecodeError; it names a row's table unless a name is
    there twice."""
    whole = read_whole(value)  # it is JSON
    try:
        names_of(value)
    except DecodeError as error:
        if error.reason == "duplicate_name":
            return _without_duplicated_defaults(value)
        raise _of_row(whole.payload, error) from None
    return value


def _without_duplicated_defaults(value: bytes) -> bytes:
    """Returns the JSON text with null in place of each default that stands twice (wire.md 8.5); numbers keep their
    digits.

    For a NULL in a binary column with a DEFAULT tiflow writes the default as base64, and then, under the same name, as
    text. A value that is not NULL stands once: so the pair is a NULL. Raises DecodeError ``duplicate_name`` for any
    other name that stands twice.
    """
    try:
        text = value.decode()
    except Unreadable as error:
        raise unreadable(error, value) from None
    return text_of(
        json.loads(text, object_pairs_hook=_object, parse_int=number_as_written, parse_float=number_as_written)
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    previous: str | None = None
    for name, value in pairs:
        if name in members:
            if name != previous or not _is_default(members[name], value):
                raise DecodeError("duplicate_name", f"expected each name once in an object, found {name!r} again")
            members[name] = previous = None
        else:
            members[name] = value
            previous = name
    return members


def _is_default(first: Any, second: Any) -> bool:
    if not isinstance(first, str) or not isinstance(second, str):
        return False
    return base64.b64encode(second.encode("utf-8", "surrogatepass")).decode() == first


_SEPARATOR = re.compile(r"(?<!\\),")


class Field(msgspec.Struct, forbid_unknown_fields=True, gc=False, frozen=True):
    """A column, or a member of the envelope."""

    type: str
    optional: bool
    field: str | None = None
    name: str | None = None
    version: int | None = None
    parameters: dict[str, str] | None = None
    default: Raw | UnsetType = UNSET
    tidb_type: Annotated[str, Meta(pattern="^[a-z_ ]+$")] | None = None
    """Without brackets: the writers send no sizes in it (wire.md 1.5.2)."""
    fields: tuple[Field, ...] | None = None


class Schema(msgspec.Struct, forbid_unknown_fields=True, gc=False, frozen=True):
    """The ``schema`` member of a key or a value."""

    type: str
    optional: bool
    name: str
    fields: tuple[Field, ...]
    version: int | None = None


_SCHEMA: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Schema)


def columns_of(schema: bytes) -> dict[str, Field]:
    """Returns the fields of a row, by name. Raises DecodeError, or one of ``Unreadable``.

    Those of virtual generated columns are among them; ticdc has these twice (wire.md 1.5.1).
    """
    parsed: Schema = _SCHEMA.decode(schema)
    rows = [part.fields for part in parsed.fields if part.field in ("before", "after")]
    if len(rows) != 2 or rows[0] is None or rows[0] != rows[1]:
        raise DecodeError("bad_schema", "expected the same fields for before and after in the schema")
    return {str(part.field): part for part in rows[0]}


def type_text(field: Field) -> str | None:
    """Returns the MySQL type as far as the field shows it: with the names of an ENUM and SET and the size of a BIT,
    without other sizes. None if it is one of several. A DATETIME in microseconds, of 4 to 6 digits, has 6.
    """
    name = _WORDS.get(field.name or field.type) if field.tidb_type is None else field.tidb_type
    parameters = field.parameters or {}
    match name:
        case "enum" | "set" if "allowed" in parameters:
            return f"{name}({','.join(map(quoted_element, _allowed(name, parameters['allowed'])))})"
        case "datetime" if field.name == "io.debezium.time.MicroTimestamp":
            return "datetime(6)"
        case "bit" if field.type == "boolean":
            return "bit(1)"
        case "bit" if parameters.get("length", "").isdecimal():
            return f"bit({parameters['length']})"
        case _:
            return name


_WORDS = {
    "boolean": "bit",
    "float": "float",
    "io.debezium.data.Bits": "bit",
    "io.debezium.data.Enum": "enum",
    "io.debezium.data.EnumSet": "set",
    "io.debezium.data.Json": "json",
    "io.debezium.data.TiDBVectorFloat32": "vector",
    "io.debezium.time.Date": "date",
    "io.debezium.time.MicroTime": "time",
    "io.debezium.time.MicroTimestamp": "datetime",
    "io.debezium.time.Timestamp": "datetime",
    "io.debezium.time.Year": "year",
    "io.debezium.time.ZonedTimestamp": "timestamp",
}


def _allowed(kind: str, text: str) -> list[str]:
    """Returns the names of an ENUM, with a backslash before a comma in them; those of a SET have no commas."""
    if kind == "set":
        return text.split(",")
    return [name.replace("\\,", ",") for name in _SEPARATOR.split(text)]


_SIZED_BY_NAMES = ("enum", "set")
_USUAL_LENGTH = {"varchar": 5, "varbinary": 5, "float": 12, "double": 22}
"""Left out where a column has it: TiDB's default length of the type (``getLen`` in TiCDC's ``debezium/helper.go``)."""


def layout_of(payload: DdlPayload) -> Layout:
    """Returns database and table of a DDL, and the table's columns after it where the message has them.

    Virtual columns are among them, and hidden ones of indexes; key columns are marked if they are the primary key.
    """
    source = payload.source
    after = payload.changes[-1].table if payload.changes else None
    columns = () if after is None else _columns(after)
    # The table of a database's DDL is "".
    return Layout(source.db or None, source.table or None, columns, columns_text(columns) if columns else None)


def _columns(table: ChangedTable) -> tuple[Column, ...]:
    keys = table.primary_key_column_names
    if len({column.name for column in table.columns}) < len(table.columns):
        raise DecodeError("duplicate_column", "expected each column once in the table of a DDL")
    return tuple(_column(column, key=column.name in keys) for column in table.columns)


def _column(column: ChangedColumn, *, key: bool) -> Column:
    name, _, attributes = column.type_name.lower().partition(" ")
    by: NamedBy | None = "name" if name in _SIZED_BY_NAMES else None
    return Column(name=column.name, type=f"{name}{_inside(name, column)} {attributes}".rstrip(), key=key, by=by)


def _inside(name: str, column: ChangedColumn) -> str:
    if name in _SIZED_BY_NAMES:
        # The quotes around a name are the wire's, those in it are not doubled.
        return f"({','.join(quoted_element(element[1:-1]) for element in column.enum_values or ())})"
    if name == "bit":
        return f"({column.length or 1})"
    is_sized = name not in ("float", "double") or column.scale is not None
    length = column.length or (_USUAL_LENGTH.get(name) if is_sized else None)
    sizes = [str(size) for size in (length, column.scale) if size is not None]
    return f"({','.join(sizes)})" if sizes else ""
