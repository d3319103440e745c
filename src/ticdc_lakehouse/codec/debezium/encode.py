"""Events into messages, in the writers' order of members. Escapes are msgspec's: other bytes, the same JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from ticdc_lakehouse.codec.compression import compress
from ticdc_lakehouse.codec.debezium import schema
from ticdc_lakehouse.codec.debezium.column import CONNECT_TYPE
from ticdc_lakehouse.codec.debezium.form import form_of, form_of_connect
from ticdc_lakehouse.codec.debezium.write import never_null, writer
from ticdc_lakehouse.codec.message import Message
from ticdc_lakehouse.codec.options import SinkOptions
from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.event import Column, Ddl, Event, Image, Op, Resolved, RowChange
from ticdc_lakehouse.mysql_type import parse_type
from ticdc_lakehouse.tso import milliseconds

_ENCODE = msgspec.json.Encoder().encode

_CLUSTER = "default"
_LETTERS = {Op.INSERT: "c", Op.UPDATE: "u", Op.DELETE: "d"}
_WATERMARK = (_CLUSTER, "watermark")

_Values = dict[str, Any]
"""An image as JSON values."""
_Pair = tuple[dict[str, Any], dict[str, Any]]
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
        Message(key=compress(_ENCODE(key), compression), value=compress(_ENCODE(value), compression))
        for key, value in _messages(events, options)
    ]


def _messages(events: Sequence[Event], options: SinkOptions) -> Iterator[_Pair]:
    writer = _Writer(options)
    rows = writer.rows([event for event in events if isinstance(event, RowChange)])
    for event in events:
        match event:
            case RowChange():
                yield next(rows)
            case Ddl():
                yield writer.ddl(event)
            case Resolved(commit_ts=watermark):
                if options.enable_tidb_extension:
                    yield writer.watermark(watermark)
            case _:
                raise ConfigError(f"debezium carries rows, DDL and watermarks, found {type(event).__name__}")


class _Writer:
    """Writes events of one feed."""

    __slots__ = ("_ddl_schemas", "_forms", "_options", "_watermark_schemas")

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._forms: dict[tuple[int, str, str], _Form] = {}
        """By the identity of the columns, which rows of a table share, and names."""
        self._ddl_schemas = self._schemas(schema.DDL_KEY, schema.DDL)
        self._watermark_schemas = self._schemas(
            schema.key(*_WATERMARK, columns=()), schema.envelope(*_WATERMARK, columns=None)
        )

    def _schemas(self, *schemas: schema.Schema) -> list[dict[str, Raw]]:
        """The members ``schema``, written once."""
        if self._options.debezium_disable_schema:
            return [{} for _ in schemas]
        return [{"schema": Raw(_ENCODE(each))} for each in schemas]

    def rows(self, rows: list[RowChange]) -> Iterator[_Pair]:
        """Row changes, in order; the images of rows with the same columns are written together."""
        forms = [*map(self._form, rows)]
        images: dict[_Form, list[Image]] = {form: [] for form in forms}
        for form, row in zip(forms, rows, strict=True):
            images[form] += [image for image in (row.before, row.after) if image is not None]
        written = {form: iter(form.values(found)) for form, found in images.items()}
        for form, row in zip(forms, rows, strict=True):
            before = None if row.before is None else next(written[form])
            after = None if row.after is None else next(written[form])
            yield self._row(row, form, before, after)

    def _row(self, row: RowChange, form: _Form, before: _Values | None, after: _Values | None) -> _Pair:
        named = before if row.op is Op.DELETE else after
        if named is None or (row.op is Op.DELETE and after is not None):
            raise ConfigError(f"debezium: the images of an {row.op} of {row.database}.{row.table} are not those of one")
        payload = {
            "source": _source(row.database, row.table, row.commit_ts, row.commit_ms),
            "ts_ms": row.commit_ms,
            "transaction": None,
            "op": _LETTERS[row.op],
        }
        if row.op is Op.DELETE:
            payload |= {"after": None, "before": before}
        elif row.op is Op.INSERT or (before is not None and self._options.output_old_value):
            payload |= {"before": before, "after": after}
        else:
            payload["after"] = after
        key, value = form.schemas
        return {"payload": {name: named[name] for name in form.keys}, **key}, {"payload": payload, **value}

    def _form(self, row: RowChange) -> _Form:
        place = (id(row.columns), row.database, row.table)
        form = self._forms.get(place)
        if form is None:
            form = self._forms[place] = _Form(row.columns, self._options)
            fields = [] if self._options.debezium_disable_schema else form.fields()
            keys = [field for field in fields if field["field"] in form.keys]
            names = (_CLUSTER, row.database, row.table)
            form.schemas = self._schemas(schema.key(*names, columns=keys), schema.envelope(*names, columns=fields))
        return form

    def ddl(self, ddl: Ddl) -> _Pair:
        """A DDL, without the columns of its table."""
        database = ddl.database or ""
        payload = {
            "source": _source(database, ddl.table or "", ddl.commit_ts, ddl.commit_ms),
            "ts_ms": ddl.commit_ms,
            "databaseName": database,
            "schemaName": None,
            "ddl": ddl.query,
            "tableChanges": (),
        }
        key, value = self._ddl_schemas
        return {"payload": {"databaseName": database}, **key}, {"payload": payload, **value}

    def watermark(self, commit_ts: int) -> _Pair:
        """A watermark."""
        time = milliseconds(commit_ts)
        payload = {"source": _source("", "", commit_ts, time), "ts_ms": time, "transaction": None, "op": "m"}
        key, value = self._watermark_schemas
        return {"payload": {}, **key}, {"payload": payload, **value}


class _Form:
    """What repeats in the messages of rows with the same columns."""

    __slots__ = ("_columns", "_options", "_writers", "keys", "schemas")

    def __init__(self, columns: tuple[Column, ...], options: SinkOptions) -> None:
        self._columns = columns  # held, so that no other tuple can have its id
        self._options = options
        self.keys = [column.name for column in columns if column.key]
        self.schemas: list[dict[str, Raw]] = []
        writers = ((c, writer(parse_type(c.type), c.by, options.time_zone)) for c in columns)
        # Of other columns no event tells whether they are NOT NULL.
        self._writers = [(c.name, never_null(write) if c.key else write) for c, write in writers if write is not None]

    def values(self, images: list[Image]) -> list[_Values]:
        """The images as JSON values, column by column."""
        values: list[_Values] = [*map(dict, images)]
        for name, write in self._writers:
            given = [image for image in values if image[name] is not None]
            found = write([image[name] for image in given]) if given else ()
            for image, value in zip(given, found, strict=True):
                image[name] = value
        return values

    def fields(self) -> list[schema.Schema]:
        """The columns' fields. Raises ConfigError for a type that is not MySQL's, if its name is to be written."""
        return [self._field(column) for column in self._columns]

    def _field(self, column: Column) -> schema.Schema:
        kind = parse_type(column.type)
        extension = self._options.enable_tidb_extension
        form = form_of_connect(kind.text.removeprefix(CONNECT_TYPE)) if kind.text.startswith(CONNECT_TYPE) else None
        if form is not None and extension:
            raise ConfigError(
                f"enable-tidb-extension: the MySQL type of {column.name} is not known, only {column.type}"
            )
        form = form or form_of(kind, self._options.time_zone, whole=False)
        return schema.column(column, kind, form, tidb_type=extension)


def _source(database: str, table: str, commit_ts: int | None, commit_ms: int) -> dict[str, Any]:
    if commit_ts is None:
        raise ConfigError("debezium: an event without commit_ts cannot be encoded")
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
