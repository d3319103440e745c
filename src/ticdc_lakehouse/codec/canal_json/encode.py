"""Events into messages, in tiflow's order of members. Escapes are msgspec's: other bytes than TiCDC, the same JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw

from ticdc_lakehouse.codec.canal_json.value import Convert, sql_type, wire_converter
from ticdc_lakehouse.codec.compression import compress
from ticdc_lakehouse.codec.ddl_word import ddl_word
from ticdc_lakehouse.codec.element import number_of_names
from ticdc_lakehouse.codec.large_message import Cut, checked, key_alone, limited
from ticdc_lakehouse.codec.message import Message
from ticdc_lakehouse.codec.options import LargeMessage, SinkOptions
from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.event import Column, Ddl, Event, Image, Op, Resolved, RowChange
from ticdc_lakehouse.mysql_type import MysqlType, parse_type
from ticdc_lakehouse.tso import milliseconds

# orjson asks for more room than it fills, and gives it back: 4 us a message that is kept.
_ENCODE = msgspec.json.Encoder().encode


def encode(events: Sequence[Event], options: SinkOptions) -> list[Message]:
    """One message an event, null key; no watermarks without the TiDB extension.

    ``ts``, the wall clock of the writer, is the commit time here: encoders have no clock. Raises ConfigError for an
    option that is not supported and for an event that Canal-JSON cannot carry with these options.
    """
    if options.output_row_key:
        raise ConfigError("output-row-key: the key in TiKV is not in an event, so it cannot be encoded")
    if options.large_message_handle_option is not LargeMessage.NONE and not options.enable_tidb_extension:
        raise ConfigError("large-message-handle-option: canal_json marks large messages in its enable-tidb-extension")
    return [*_messages(events, options)]


def _messages(events: Sequence[Event], options: SinkOptions) -> Iterator[Message]:
    forms, compression = _Forms(options), options.large_message_handle_compression

    def message(members: dict[str, Any]) -> Message:
        return Message(key=None, value=compress(_ENCODE(members), compression))

    def write(row: RowChange, cut: Cut | None = None) -> Message:
        return message(_row(row, options, forms) if cut is None else _cut(row, options, forms, cut))

    row = limited(write, options)
    for event in events:
        match event:
            case RowChange():
                yield row(event)
            case Ddl():
                yield checked(message(_ddl(event, options)), event, options)
            case Resolved(commit_ts=watermark):
                if options.enable_tidb_extension:
                    yield message(_watermark(watermark))
            case _:
                raise ConfigError(f"canal_json carries rows, DDL and watermarks, found {type(event).__name__}")


def _row(row: RowChange, options: SinkOptions, forms: _Forms) -> dict[str, Any]:
    data, old, columns = _images(row, options)
    form = forms.of(columns)
    texts = _texts(data, form)
    sql_types = {name: form.sql_types[name] for name in texts}
    for name, kind in form.by_value:
        if name in texts:
            sql_types[name] = sql_type(kind, texts[name])
    return {
        "id": 0,
        "database": row.database,
        "table": row.table,
        "pkNames": form.keys,
        "isDdl": False,
        "type": row.op.upper(),
        "es": row.commit_ms,
        "ts": row.commit_ms,
        "sql": "",
        "sqlType": sql_types or None,
        "mysqlType": _mysql_types(form, texts),
        "old": None if old is None else [_texts(old, form)],
        "data": [texts],
        **_extension(row.commit_ts, options, handle_only=row.handle_only),
    }


def _cut(row: RowChange, options: SinkOptions, forms: _Forms, cut: Cut) -> dict[str, Any]:
    members = _row(key_alone(row), options, forms)
    if cut.location is not None:
        members["_tidb"] = {"commitTs": row.commit_ts, "claimCheckLocation": cut.location}
    return members


def _images(row: RowChange, options: SinkOptions) -> tuple[Image, Image | None, tuple[Column, ...]]:
    """``data``, ``old`` and the columns that go with them."""
    data = row.before if row.op is Op.DELETE else row.after
    if data is None or (row.op is Op.UPDATE and row.before is None):
        raise ConfigError(f"canal_json: the images of an {row.op} of {row.database}.{row.table} are missing")
    if row.op is Op.UPDATE and row.before is not None:
        partial = options.only_output_updated_columns or options.content_compatible
        return data, _changed(row.before, data) if partial else row.before, row.columns
    keys = tuple(column for column in row.columns if column.key)
    if row.op is Op.DELETE and options.delete_only_output_handle_key_columns and keys:
        # An event that names no key keeps its columns: they may be a handle key that pkNames does not tell.
        return {column.name: data[column.name] for column in keys}, None, keys
    return data, None, row.columns


def _changed(before: Image, after: Image) -> Image:
    return {name: text for name, text in before.items() if text != after[name]}


class _Form:
    """What repeats in the messages of rows with the same columns."""

    __slots__ = ("by_value", "columns", "converters", "keys", "mysql_text", "mysql_types", "sql_types")

    def __init__(self, columns: tuple[Column, ...], *, whole_types: bool) -> None:
        self.columns = columns
        self.keys = [column.name for column in columns if column.key]
        kinds = {column.name: _kind(column.type, column.by) for column in columns}
        self.sql_types = {name: sql_type(kind, None) for name, (kind, _, _) in kinds.items()}
        self.by_value = [(name, kind) for name, (kind, _, _) in kinds.items() if kind.unsigned]
        """Columns of which each value tells the sqlType."""
        self.mysql_types = {c.name: c.type if whole_types else kinds[c.name][1] for c in columns}
        self.mysql_text = Raw(_ENCODE(self.mysql_types))
        self.converters = [(name, convert) for name, (_, _, convert) in kinds.items() if convert is not None]


class _Forms:
    """The forms of the columns met so far, by the identity of the tuple: rows of a table share one."""

    __slots__ = ("_by_id", "_whole_types")

    def __init__(self, options: SinkOptions) -> None:
        self._whole_types = options.content_compatible
        self._by_id: dict[int, _Form] = {}

    def of(self, columns: tuple[Column, ...]) -> _Form:
        form = self._by_id.get(id(columns))
        if form is None:
            # The form holds the tuple, so that no other can have its id.
            form = self._by_id[id(columns)] = _Form(columns, whole_types=self._whole_types)
        return form


_Kind = tuple[MysqlType, str, Convert | None]
"""A column's type, its ``mysqlType``, and what turns a text of ``event`` into the wire's."""


@lru_cache(maxsize=4096)
def _kind(type_text: str, by: str | None) -> _Kind:
    kind = parse_type(type_text)
    words = type_text.lower().rpartition(")")[2].split()
    attributes = [word for word in ("unsigned", "zerofill") if word in words]
    return (
        kind,
        " ".join([kind.name, *attributes]),
        (number_of_names(kind) if by == "name" else None) or wire_converter(type_text),
    )


def _mysql_types(form: _Form, texts: Image) -> Raw | dict[str, str]:
    if len(texts) == len(form.columns):
        return form.mysql_text
    return {name: text for name, text in form.mysql_types.items() if name in texts}


def _texts(image: Image, form: _Form) -> dict[str, str | None]:
    texts = dict(image)
    for name, convert in form.converters:
        text = texts.get(name)
        if text is not None:
            texts[name] = convert(text)
    return texts


def _ddl(ddl: Ddl, options: SinkOptions) -> dict[str, Any]:
    members = _bare(ddl.database or "", ddl.table or "", ddl_word(ddl.type), ddl.commit_ms, ddl.query, is_ddl=True)
    return members | _extension(ddl.commit_ts, options)


def _bare(database: str, table: str, kind: str, es: int, sql: str, *, is_ddl: bool) -> dict[str, Any]:
    """A message without a row. ``data`` stands before ``old`` here (wire.md 1.4.1)."""
    head = {"id": 0, "database": database, "table": table, "pkNames": None, "isDdl": is_ddl, "type": kind}
    return head | {"es": es, "ts": es, "sql": sql, **dict.fromkeys(("sqlType", "mysqlType", "data", "old"))}


def _watermark(watermark: int) -> dict[str, Any]:
    members = _bare("", "", "TIDB_WATERMARK", milliseconds(watermark), "", is_ddl=False)
    return members | {"_tidb": {"watermarkTs": watermark}}


def _extension(commit_ts: int | None, options: SinkOptions, *, handle_only: bool = False) -> dict[str, Any]:
    if not options.enable_tidb_extension:
        return {}
    if commit_ts is None:
        raise ConfigError("enable-tidb-extension: an event without commit_ts cannot be encoded with the TiDB extension")
    return {"_tidb": {"commitTs": commit_ts, **({"onlyHandleKey": True} if handle_only else {})}}
