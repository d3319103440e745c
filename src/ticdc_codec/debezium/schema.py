"""The ``schema`` members that go with payloads (wire.md 1.5.1), as tiflow writes them: always the same but for columns.

Whether a column may be NULL and its default are not in an event: key columns are written as NOT NULL, others as
optional, and none with a default.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ticdc_codec.debezium.value_format import ValueFormat
from ticdc_codec.event import Column
from ticdc_codec.mysql_type import Family, MysqlType

Schema = dict[str, Any]

_UNSAFE = re.compile(r"[^a-zA-Z0-9_.]")


def _member(kind: str, name: str, *, optional: bool = False) -> Schema:
    return {"type": kind, "optional": optional, "field": name}


_SNAPSHOT = _member("string", "snapshot", optional=True) | {
    "name": "io.debezium.data.Enum",
    "version": 1,
    "parameters": {"allowed": "true,last,false,incremental"},
    "default": "false",
}

SOURCE: Schema = {
    "type": "struct",
    "fields": [
        *(_member("string", name) for name in ("version", "connector", "name")),
        _member("int64", "ts_ms"),
        _SNAPSHOT,
        _member("string", "db"),
        *(_member("string", name, optional=True) for name in ("sequence", "table")),
        _member("int64", "server_id"),
        _member("string", "gtid", optional=True),
        _member("string", "file"),
        _member("int64", "pos"),
        _member("int32", "row"),
        _member("int64", "thread", optional=True),
        _member("string", "query", optional=True),
    ],
    "optional": False,
    "name": "io.debezium.connector.mysql.Source",
    "field": "source",
}

_ENVELOPE = [
    SOURCE,
    _member("string", "op"),
    _member("int64", "ts_ms", optional=True),
    {
        "type": "struct",
        "fields": [_member("string", "id"), _member("int64", "total_order"), _member("int64", "data_collection_order")],
        "optional": True,
        "name": "event.block",
        "version": 1,
        "field": "transaction",
    },
]

_TEXTS = {"type": "array", "items": {"type": "string", "optional": False}, "optional": True}

_COLUMN = [
    _member("string", "name"),
    _member("int32", "jdbcType"),
    _member("int32", "nativeType", optional=True),
    _member("string", "typeName"),
    *(_member("string", name, optional=True) for name in ("typeExpression", "charsetName")),
    *(_member("int32", name, optional=True) for name in ("length", "scale")),
    _member("int32", "position"),
    *(_member("boolean", name, optional=True) for name in ("optional", "autoIncremented", "generated")),
    *(_member("string", name, optional=True) for name in ("comment", "defaultValueExpression")),
    _TEXTS | {"field": "enumValues"},
]


def _connect(name: str, fields: list[Schema]) -> Schema:
    name = f"io.debezium.connector.schema.{name}"
    return {"name": name, "optional": False, "type": "struct", "version": 1, "fields": fields}


_TABLE = _connect(
    "Table",
    [
        _member("string", "defaultCharsetName", optional=True),
        _TEXTS | {"field": "primaryKeyColumnNames"},
        _member("array", "columns") | {"items": _connect("Column", _COLUMN)},
        _member("string", "comment", optional=True),
    ],
)
_CHANGE = [_member("string", "type"), _member("string", "id"), _TABLE | {"field": "table", "optional": True}]

DDL: Schema = {
    "optional": False,
    "type": "struct",
    "version": 1,
    "name": "io.debezium.connector.mysql.SchemaChangeValue",
    "fields": [
        SOURCE,
        _member("int64", "ts_ms"),
        *(_member("string", name, optional=True) for name in ("databaseName", "schemaName", "ddl")),
        _member("array", "tableChanges") | {"items": _connect("Change", _CHANGE)},
    ],
}
DDL_KEY: Schema = {
    "type": "struct",
    "name": "io.debezium.connector.mysql.SchemaChangeKey",
    "optional": False,
    "version": 1,
    "fields": [_member("string", "databaseName")],
}


def envelope(cluster: str, *names: str, columns: Sequence[Schema] | None) -> Schema:
    """The schema of a row's value, or without ``columns`` of a watermark's; ``names`` are database and table."""
    prefix = _safe(cluster, *names)
    images = [
        {"type": "struct", "optional": True, "name": f"{prefix}.Value", "field": image, "fields": columns}
        for image in ("before", "after")
    ]
    fields = _ENVELOPE if columns is None else [*images, *_ENVELOPE]
    return {"type": "struct", "optional": False, "name": f"{prefix}.Envelope", "version": 1, "fields": fields}


def key(cluster: str, *names: str, columns: Sequence[Schema]) -> Schema:
    """The schema of a key."""
    return {"type": "struct", "name": f"{_safe(cluster, *names)}.Key", "optional": False, "fields": columns}


def _safe(*names: str) -> str:
    """Names joined by points, with ``_`` for what Avro's names do not have; a table's own points stay."""
    *outer, table = names
    safe = _UNSAFE.sub("_", ".".join([*(name.replace(".", "_") for name in outer), table]))
    return f"_{safe}" if safe[:1].isdigit() else safe


def column(of: Column, kind: MysqlType, value_format: ValueFormat, *, tidb_type: bool) -> Schema:
    """The field of one column."""
    field: Schema = {"tidb_type": _tidb_type(kind)} if tidb_type else {}
    field |= {"type": value_format.connect, "optional": not of.key}
    if value_format.name is not None:
        # The writers leave out the version of a VECTOR.
        field |= (
            {"name": value_format.name} if kind.family is Family.VECTOR else {"name": value_format.name, "version": 1}
        )
    match kind.family:
        case Family.ENUM:
            field["parameters"] = {"allowed": ",".join(name.replace(",", "\\,") for name in kind.elements)}
        case Family.SET:
            field["parameters"] = {"allowed": ",".join(kind.elements)}
        case Family.BIT if value_format.name is not None:
            field["parameters"] = {"length": str(kind.size[0])}
    return field | {"field": of.name}


def _tidb_type(kind: MysqlType) -> str:
    signed = not kind.unsigned or kind.family is Family.DECIMAL
    return kind.name if signed else f"{kind.name} unsigned"
