"""Events into messages, in the writers' order of members. Escapes are msgspec's: the bytes differ, the JSON does not.

The ``schema`` members (wire.md 1.5.1) are always the same except for the columns. Whether a column may be NULL and its
default are not in an event: key columns are written as NOT NULL, others as optional, and none with a default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from ticdc_codec.debezium.column import CONNECT_TYPE
from ticdc_codec.debezium.value import ValueFormat, format_of, format_of_connect
from ticdc_codec.debezium.write import image_pairs, image_texts
from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column, Ddl, Event, Op, Resolved, RowChange
from ticdc_codec.json_text import JSON, NUMBER, template
from ticdc_codec.message import Message, commit_ts_of, compress, named
from ticdc_codec.mysql_type import Family, MysqlType, parse_type
from ticdc_codec.options import SinkOptions
from ticdc_codec.tso import milliseconds

_ENCODE = msgspec.json.Encoder().encode

_CLUSTER = "default"
_LETTERS = {Op.INSERT: "c", Op.UPDATE: "u", Op.DELETE: "d"}
_WATERMARK = (_CLUSTER, "watermark")

_Members = dict[str, Any]
_Pair = tuple[bytes, bytes]
"""Key and value."""


def encode(events: Sequence[Event], options: SinkOptions) -> list[Message]:
    """Returns one message per event; no watermarks without the TiDB extension.

    ``ts_ms`` of a payload, the wall clock of the writer, is the commit time here, and ``tableChanges`` of a DDL is
    empty. Raises ConfigError for an option that is not supported and for an event that Debezium cannot carry.
    """
    if options.debezium_include_start_ts:
        raise ConfigError("debezium-include-start-ts: the start_ts is not in an event, so it cannot be encoded")
    compression = options.large_message_handle_compression
    return [
        Message(key=compress(key, compression), value=compress(value, compression))
        for key, value in _messages(events, options)
    ]


def _messages(events: Sequence[Event], options: SinkOptions) -> Iterator[_Pair]:
    writer = _Writer(options)
    rows = [event for event in events if isinstance(event, RowChange)]
    images = image_pairs(rows, partial(image_texts, zone=options.time_zone))
    for event in events:
        match event:
            case RowChange():
                yield writer.row(event, *images[id(event)])
            case Ddl():
                yield writer.ddl(event)
            case Resolved(commit_ts=watermark):
                if options.enable_tidb_extension:
                    yield writer.watermark(watermark)
            case _:
                raise ConfigError(f"debezium carries rows, DDL and watermarks, found {type(event).__name__}")


class _Writer:
    """Writes events of one feed."""

    __slots__ = ("_ddl_schemas", "_options", "_templates", "_watermark_schemas")

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._templates: dict[tuple[int, str, str, Op, bool, bool], _RowTemplate] = {}
        """By the identity of the columns, which rows of a table share, names, the kind of change and its images."""
        self._ddl_schemas = self._schemas(_DDL_KEY_SCHEMA, _DDL_SCHEMA)
        self._watermark_schemas = self._schemas(
            _key_schema(*_WATERMARK, columns=()), _envelope_schema(*_WATERMARK, columns=None)
        )

    def _schemas(self, *schemas: _Schema) -> list[_Members]:
        """Returns the members ``schema``, written once."""
        if self._options.debezium_disable_schema:
            return [{} for _ in schemas]
        return [{"schema": Raw(_ENCODE(each))} for each in schemas]

    def row(self, row: RowChange, before: _Pair | None, after: _Pair | None) -> _Pair:
        """Returns a row change, by its images: handle keys and whole ones."""
        if not self._options.output_old_value and row.op is Op.UPDATE:
            before = None
        row_template = self._template(row, old=before is not None)
        keys, images = zip(*[pair for pair in (before, after) if pair is not None], strict=True)
        times = (row.commit_ms, commit_ts_of(row, "debezium"), row.commit_ms)
        return row_template.key % keys[-1], row_template.value % (*times, *images)

    def _template(self, row: RowChange, *, old: bool) -> _RowTemplate:
        # By the identity of the columns, and by all that the new template's checks of the images depend on.
        key_of_template = (id(row.columns), row.database, row.table, row.op, old, row.after is None)
        template = self._templates.get(key_of_template)
        if template is None:
            template = self._templates[key_of_template] = self._new_template(row, old=old)
        return template

    def _new_template(self, row: RowChange, *, old: bool) -> _RowTemplate:
        image = row.before if row.op is Op.DELETE else row.after
        if image is None or (row.op is Op.DELETE and row.after is not None):
            raise ConfigError(f"debezium: {named(row)} does not have the images of an {row.op}")
        names = (_CLUSTER, row.database, row.table)
        fields = [] if self._options.debezium_disable_schema else _fields(row.columns, self._options)
        keys = {column.name for column in row.columns if column.key}
        key = _key_schema(*names, columns=[field for field in fields if field["field"] in keys])
        key_schema, value_schema = self._schemas(key, _envelope_schema(*names, columns=fields))
        payload = {
            "source": _source(row.database, row.table, NUMBER, NUMBER),
            "ts_ms": NUMBER,
            "transaction": None,
            "op": _LETTERS[row.op],
            **_images(row.op, old=old),
        }
        value = template({"payload": payload, **value_schema})
        return _RowTemplate(row.columns, key=template({"payload": JSON, **key_schema}), value=value)

    def ddl(self, ddl: Ddl) -> _Pair:
        """Returns a DDL, without the columns of its table."""
        database = ddl.database or ""
        payload = {
            "source": _source(database, ddl.table or "", commit_ts_of(ddl, "debezium"), ddl.commit_ms),
            "ts_ms": ddl.commit_ms,
            "databaseName": database,
            "schemaName": None,
            "ddl": ddl.query,
            "tableChanges": (),
        }
        key, value = self._ddl_schemas
        return _ENCODE({"payload": {"databaseName": database}, **key}), _ENCODE({"payload": payload, **value})

    def watermark(self, commit_ts: int) -> _Pair:
        """Returns a watermark."""
        time = milliseconds(commit_ts)
        payload = {"source": _source("", "", commit_ts, time), "ts_ms": time, "transaction": None, "op": "m"}
        key, value = self._watermark_schemas
        return _ENCODE({"payload": {}, **key}), _ENCODE({"payload": payload, **value})


@dataclass(frozen=True, slots=True)
class _RowTemplate:
    """Key and value with gaps for what differs, for changes of one operation and rows with the same columns."""

    columns: tuple[Column, ...]
    """Referenced here so that no other tuple can get its id."""
    key: bytes
    """Key bytes with a ``%`` gap for the handle key."""
    value: bytes
    """Value bytes with ``%`` gaps for commit time, commit_ts, time again, then the images."""


def _images(op: Op, *, old: bool) -> _Members:
    # A DELETE has ``after`` first; an UPDATE without its old value has no ``before`` (wire.md 1.5.1).
    if op is Op.DELETE:
        return {"after": None, "before": JSON}
    if op is Op.INSERT or old:
        return {"before": JSON if old else None, "after": JSON}
    return {"after": JSON}


def _fields(columns: tuple[Column, ...], options: SinkOptions) -> list[_Schema]:
    """Returns the columns' fields. Raises ConfigError for a type that is not MySQL's, if its name is to be written."""
    return [_field(column, options) for column in columns]


def _field(column: Column, options: SinkOptions) -> _Schema:
    kind = parse_type(column.type)
    extension = options.enable_tidb_extension
    value_format = (
        format_of_connect(kind.text.removeprefix(CONNECT_TYPE)) if kind.text.startswith(CONNECT_TYPE) else None
    )
    if value_format is not None and extension:
        raise ConfigError(f"enable-tidb-extension: the MySQL type of {column.name} is not known, only {column.type}")
    value_format = value_format or format_of(kind, options.time_zone, whole=False)
    return _column_schema(column, kind, value_format, tidb_type=extension)


def _source(database: str, table: str, commit_ts: int | Raw, commit_ms: int | Raw) -> _Members:
    return {
        "version": "2.4.0.Final",
        "connector": "TiCDC",
        "name": _CLUSTER,
        "ts_ms": commit_ms,
        "snapshot": "false",
        "db": database,
        "table": table,
        "server_id": 0,
        "gtid": None,
        "file": "",
        "pos": 0,
        "row": 0,
        "thread": 0,
        "query": None,
        "commit_ts": commit_ts,
        "cluster_id": _CLUSTER,
    }


_Schema = dict[str, Any]

_UNSAFE = re.compile(r"[^a-zA-Z0-9_.]")


def _member(kind: str, name: str, *, optional: bool = False) -> _Schema:
    return {"type": kind, "optional": optional, "field": name}


_SNAPSHOT = _member("string", "snapshot", optional=True) | {
    "name": "io.debezium.data.Enum",
    "version": 1,
    "parameters": {"allowed": "true,last,false,incremental"},
    "default": "false",
}

_SOURCE: _Schema = {
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
    _SOURCE,
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


def _connect(name: str, fields: list[_Schema]) -> _Schema:
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

_DDL_SCHEMA: _Schema = {
    "optional": False,
    "type": "struct",
    "version": 1,
    "name": "io.debezium.connector.mysql.SchemaChangeValue",
    "fields": [
        _SOURCE,
        _member("int64", "ts_ms"),
        *(_member("string", name, optional=True) for name in ("databaseName", "schemaName", "ddl")),
        _member("array", "tableChanges") | {"items": _connect("Change", _CHANGE)},
    ],
}
_DDL_KEY_SCHEMA: _Schema = {
    "type": "struct",
    "name": "io.debezium.connector.mysql.SchemaChangeKey",
    "optional": False,
    "version": 1,
    "fields": [_member("string", "databaseName")],
}


def _envelope_schema(cluster: str, *names: str, columns: Sequence[_Schema] | None) -> _Schema:
    """Returns the schema of a row's value, or without ``columns`` of a watermark's; ``names`` are database and
    table."""
    prefix = _safe(cluster, *names)
    images = [
        {"type": "struct", "optional": True, "name": f"{prefix}.Value", "field": image, "fields": columns}
        for image in ("before", "after")
    ]
    fields = _ENVELOPE if columns is None else [*images, *_ENVELOPE]
    return {"type": "struct", "optional": False, "name": f"{prefix}.Envelope", "version": 1, "fields": fields}


def _key_schema(cluster: str, *names: str, columns: Sequence[_Schema]) -> _Schema:
    """Returns the schema of a key."""
    return {"type": "struct", "name": f"{_safe(cluster, *names)}.Key", "optional": False, "fields": columns}


def _safe(*names: str) -> str:
    """Returns names joined by points, with ``_`` for what Avro's names do not have; a table's own points stay."""
    *outer, table = names
    safe = _UNSAFE.sub("_", ".".join([*(name.replace(".", "_") for name in outer), table]))
    return f"_{safe}" if safe[:1].isdigit() else safe


def _column_schema(of: Column, kind: MysqlType, value_format: ValueFormat, *, tidb_type: bool) -> _Schema:
    """Returns the field of one column."""
    field: _Schema = {"tidb_type": _tidb_type(kind)} if tidb_type else {}
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
