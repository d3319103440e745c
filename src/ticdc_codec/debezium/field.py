"""Fields of the ``schema`` block: what a message says about its columns (wire.md 1.5.2)."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ticdc_codec.errors import DecodeError

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
    tidb_type: str | None = None
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
