"""Events into messages, in tiflow's order of members. Escapes are msgspec's: other bytes than TiCDC, the same JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ticdc_codec.canal_json.row_template import RowTemplates
from ticdc_codec.compression import compress
from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Ddl, Event, Image, Op, Resolved, RowChange
from ticdc_codec.large_message import Cut, checked, key_alone, limited
from ticdc_codec.message import Message
from ticdc_codec.options import LargeMessage, SinkOptions
from ticdc_codec.tidb_codes import ddl_type_name
from ticdc_codec.tso import milliseconds

# orjson allocates more than it fills and gives it back, which costs 4 us for each message that is not freed at once.
_ENCODE = msgspec.json.Encoder().encode
# Members of an enum take 0.1 us to find.
_UPDATE, _DELETE = Op.UPDATE, Op.DELETE


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
    templates, compression = RowTemplates(options), options.large_message_handle_compression

    def message(members: dict[str, Any]) -> Message:
        return Message(key=None, value=compress(_ENCODE(members), compression))

    def write(row: RowChange, cut: Cut | None = None) -> Message:
        text = _row(row, options, templates) if cut is None else _row(key_alone(row), options, templates, cut.location)
        return Message(key=None, value=compress(text, compression))

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


def _row(row: RowChange, options: SinkOptions, templates: RowTemplates, location: str | None = None) -> bytes:
    data, old = _images(row, options)
    template = templates.of(row, tuple(data), old=old is not None, claimed=location is not None)
    images = (template.image(data),) if old is None else (template.image(old), template.image(data))
    extension = [_commit_ts(row.commit_ts)] if options.enable_tidb_extension else []
    claim = () if location is None else (_ENCODE(location),)
    return template.text % (row.commit_ms, row.commit_ms, *template.sql_types(data), *images, *extension, *claim)


def _images(row: RowChange, options: SinkOptions) -> tuple[Image, Image | None]:
    """``data`` and ``old``."""
    op = row.op
    data = row.before if op is _DELETE else row.after
    if data is None or (op is _UPDATE and row.before is None):
        raise ConfigError(f"canal_json: the images of an {op} of {row.database}.{row.table} are missing")
    if op is _UPDATE and row.before is not None:
        partial = options.only_output_updated_columns or options.content_compatible
        return data, _changed(row.before, data) if partial else row.before
    if op is _DELETE and options.delete_only_output_handle_key_columns:
        # An event that names no key keeps its columns: they may be a handle key that pkNames does not name.
        return {column.name: data[column.name] for column in row.columns if column.key} or data, None
    return data, None


def _changed(before: Image, after: Image) -> Image:
    return {name: text for name, text in before.items() if text != after[name]}


def _ddl(ddl: Ddl, options: SinkOptions) -> dict[str, Any]:
    members = _bare(ddl.database or "", ddl.table or "", ddl_type_name(ddl.type), ddl.commit_ms, ddl.query, is_ddl=True)
    return members | ({"_tidb": {"commitTs": _commit_ts(ddl.commit_ts)}} if options.enable_tidb_extension else {})


def _bare(database: str, table: str, kind: str, es: int, sql: str, *, is_ddl: bool) -> dict[str, Any]:
    """A message without a row. ``data`` stands before ``old`` here (wire.md 1.4.1)."""
    head = {"id": 0, "database": database, "table": table, "pkNames": None, "isDdl": is_ddl, "type": kind}
    return head | {"es": es, "ts": es, "sql": sql, **dict.fromkeys(("sqlType", "mysqlType", "data", "old"))}


def _watermark(watermark: int) -> dict[str, Any]:
    members = _bare("", "", "TIDB_WATERMARK", milliseconds(watermark), "", is_ddl=False)
    return members | {"_tidb": {"watermarkTs": watermark}}


def _commit_ts(commit_ts: int | None) -> int:
    if commit_ts is None:
        raise ConfigError("enable-tidb-extension: an event without commit_ts cannot be encoded with the TiDB extension")
    return commit_ts
