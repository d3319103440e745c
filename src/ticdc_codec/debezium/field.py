"""What messages say of their columns: fields of the ``schema`` block (wire.md 1.5.2), and columns of a DDL (1.5.3)."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from ticdc_codec.debezium.envelope import ChangedColumn, ChangedTable, DdlPayload
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, columns_text

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
    """The fields of a row, by name. Raises DecodeError, or one of ``Unreadable``.

    Those of virtual generated columns are among them; ticdc has these twice (wire.md 1.5.1).
    """
    found: Schema = _SCHEMA.decode(schema)
    rows = [part.fields for part in found.fields if part.field in ("before", "after")]
    if len(rows) != 2 or rows[0] is None or rows[0] != rows[1]:
        raise DecodeError("bad_schema", "expected the same fields for before and after in the schema")
    return {str(part.field): part for part in rows[0]}


def type_text(field: Field) -> str | None:
    """The MySQL type as far as the field shows it: with the names of an ENUM and SET and the size of a BIT, without
    other sizes. None if it is one of several. A DATETIME in microseconds, of 4 to 6 digits, has 6.
    """
    name = _WORDS.get(field.name or field.type) if field.tidb_type is None else field.tidb_type
    parameters = field.parameters or {}
    match name:
        case "enum" | "set" if "allowed" in parameters:
            return f"{name}({','.join(quoted(part) for part in _allowed(name, parameters['allowed']))})"
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
    """The names of an ENUM, with a backslash before a comma in them; those of a SET have no commas."""
    if kind == "set":
        return text.split(",")
    return [name.replace("\\,", ",") for name in _SEPARATOR.split(text)]


def quoted(name: str) -> str:
    """A name as it is written in the brackets of an ENUM."""
    escaped = name.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


_SIZED_BY_NAMES = ("enum", "set")


def layout_of(payload: DdlPayload) -> Layout:
    """Database and table of a DDL, and the table's columns after it where the message has them.

    Virtual columns are among them, and hidden ones of indexes; key columns are marked if they are the primary key.
    """
    source = payload.source
    after = payload.changes[-1].table if payload.changes else None
    columns = () if after is None else _columns(after)
    # The table of a database's DDL is "".
    return Layout(source.db or None, source.table or None, columns, columns_text(columns) if columns else None)


def _columns(table: ChangedTable) -> tuple[Column, ...]:
    keys = table.primary_key_column_names
    return tuple(_column(column, key=column.name in keys) for column in table.columns)


def _column(column: ChangedColumn, *, key: bool) -> Column:
    name, _, attributes = column.type_name.lower().partition(" ")
    by = "name" if name in _SIZED_BY_NAMES else None
    return Column(name=column.name, type=f"{name}{_inside(name, column)} {attributes}".rstrip(), key=key, by=by)


def _inside(name: str, column: ChangedColumn) -> str:
    if name in _SIZED_BY_NAMES:
        # The quotes around a name are the wire's, those in it are not doubled.
        return f"({','.join(quoted(element[1:-1]) for element in column.enum_values or ())})"
    if name == "bit":
        return f"({column.length or 1})"
    sizes = [str(size) for size in (column.length or None, column.scale) if size is not None]
    return f"({','.join(sizes)})" if sizes else ""
