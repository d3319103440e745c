"""Events into messages, in the writers' order of members. Escapes are msgspec's: other bytes, the same JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from ticdc_codec.compression import compress
from ticdc_codec.debezium import schema
from ticdc_codec.debezium.value_format import format_of, format_of_connect
from ticdc_codec.debezium.write import image_pairs, image_texts
from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column, Ddl, Event, Op, Resolved, RowChange
from ticdc_codec.json_text import JSON, NUMBER, template
from ticdc_codec.message import Message
from ticdc_codec.mysql_type import parse_type
from ticdc_codec.options import SinkOptions
from ticdc_codec.tso import milliseconds
from ticdc_codec.undeclared_types import CONNECT_TYPE

_ENCODE = msgspec.json.Encoder().encode

_CLUSTER = "default"
_LETTERS = {Op.INSERT: "c", Op.UPDATE: "u", Op.DELETE: "d"}
_WATERMARK = (_CLUSTER, "watermark")

_Members = dict[str, Any]
_Pair = tuple[bytes, bytes]
"""Key and value."""


def encode(events: Sequence[Event], options: SinkOptions) -> list[Message]:
    """One message an event; no watermarks without the TiDB extension.

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
        self._ddl_schemas = self._schemas(schema.DDL_KEY, schema.DDL)
        self._watermark_schemas = self._schemas(
            schema.key(*_WATERMARK, columns=()), schema.envelope(*_WATERMARK, columns=None)
        )

    def _schemas(self, *schemas: schema.Schema) -> list[_Members]:
        """The members ``schema``, written once."""
        if self._options.debezium_disable_schema:
            return [{} for _ in schemas]
        return [{"schema": Raw(_ENCODE(each))} for each in schemas]

    def row(self, row: RowChange, before: _Pair | None, after: _Pair | None) -> _Pair:
        """A row change, by its images: handle keys and whole ones."""
        if not self._options.output_old_value and row.op is Op.UPDATE:
            before = None
        row_template = self._template(row, old=before is not None)
        keys, images = zip(*[pair for pair in (before, after) if pair is not None], strict=True)
        times = (row.commit_ms, _commit_ts(row.commit_ts), row.commit_ms)
        return row_template.key % keys[-1], row_template.value % (*times, *images)

    def _template(self, row: RowChange, *, old: bool) -> _RowTemplate:
        # By the identity of the columns, and by all that the new template's checks of the images depend on.
        key_of_template = (id(row.columns), row.database, row.table, row.op, old, row.after is None)
        found = self._templates.get(key_of_template)
        if found is None:
            found = self._templates[key_of_template] = self._new_template(row, old=old)
        return found

    def _new_template(self, row: RowChange, *, old: bool) -> _RowTemplate:
        named = row.before if row.op is Op.DELETE else row.after
        if named is None or (row.op is Op.DELETE and row.after is not None):
            raise ConfigError(f"debezium: the images of an {row.op} of {row.database}.{row.table} are not those of one")
        names = (_CLUSTER, row.database, row.table)
        fields = [] if self._options.debezium_disable_schema else _fields(row.columns, self._options)
        keys = {column.name for column in row.columns if column.key}
        key = schema.key(*names, columns=[field for field in fields if field["field"] in keys])
        key_schema, value_schema = self._schemas(key, schema.envelope(*names, columns=fields))
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
        """A DDL, without the columns of its table."""
        database = ddl.database or ""
        payload = {
            "source": _source(database, ddl.table or "", _commit_ts(ddl.commit_ts), ddl.commit_ms),
            "ts_ms": ddl.commit_ms,
            "databaseName": database,
            "schemaName": None,
            "ddl": ddl.query,
            "tableChanges": (),
        }
        key, value = self._ddl_schemas
        return _ENCODE({"payload": {"databaseName": database}, **key}), _ENCODE({"payload": payload, **value})

    def watermark(self, commit_ts: int) -> _Pair:
        """A watermark."""
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
    """With a gap for the handle key."""
    value: bytes
    """With gaps for the commit time, the commit_ts and again the time, then for the images."""


def _images(op: Op, *, old: bool) -> _Members:
    # A DELETE has ``after`` first; an UPDATE without its old value has no ``before`` (wire.md 1.5.1).
    if op is Op.DELETE:
        return {"after": None, "before": JSON}
    if op is Op.INSERT or old:
        return {"before": JSON if old else None, "after": JSON}
    return {"after": JSON}


def _fields(columns: tuple[Column, ...], options: SinkOptions) -> list[schema.Schema]:
    """The columns' fields. Raises ConfigError for a type that is not MySQL's, if its name is to be written."""
    return [_field(column, options) for column in columns]


def _field(column: Column, options: SinkOptions) -> schema.Schema:
    kind = parse_type(column.type)
    extension = options.enable_tidb_extension
    value_format = (
        format_of_connect(kind.text.removeprefix(CONNECT_TYPE)) if kind.text.startswith(CONNECT_TYPE) else None
    )
    if value_format is not None and extension:
        raise ConfigError(f"enable-tidb-extension: the MySQL type of {column.name} is not known, only {column.type}")
    value_format = value_format or format_of(kind, options.time_zone, whole=False)
    return schema.column(column, kind, value_format, tidb_type=extension)


def _commit_ts(commit_ts: int | None) -> int:
    if commit_ts is None:
        raise ConfigError("debezium: an event without commit_ts cannot be encoded")
    return commit_ts


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
