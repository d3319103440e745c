"""Events into messages, in tiflow's order of members. Escapes are msgspec's: the bytes differ from TiCDC's, the JSON
does not.

What repeats in messages of rows is written once for each operation and list of columns (``RowTemplate``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from ticdc_codec import json_text
from ticdc_codec.canal_json.table import Convert, promoted, sql_type, to_wire
from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column, Ddl, Event, Image, Op, Resolved, RowChange
from ticdc_codec.json_text import JSON, NUMBER
from ticdc_codec.message import Cut, Message, checked, commit_ts_of, compress, limited, with_handle_key_only
from ticdc_codec.mysql_type import MysqlType, is_known, parse_type
from ticdc_codec.number_text import number_of_names
from ticdc_codec.options import LargeMessage, SinkOptions
from ticdc_codec.tidb_codes import ddl_type_name
from ticdc_codec.tso import milliseconds

# orjson allocates more than it fills and gives it back, which costs 4 us for each message that is not freed at once.
_ENCODE = msgspec.json.Encoder().encode
# Members of an enum take 0.1 us to find.
_UPDATE, _DELETE = Op.UPDATE, Op.DELETE


def encode(events: Sequence[Event], options: SinkOptions) -> list[Message]:
    """Returns one message per event, with a null key; no watermarks without the TiDB extension.

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
        text = (
            _row(row, options, templates)
            if cut is None
            else _row(with_handle_key_only(row), options, templates, cut.location)
        )
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
    extension = [commit_ts_of(row, "enable-tidb-extension")] if options.enable_tidb_extension else []
    claim = () if location is None else (_ENCODE(location),)
    return template.text % (row.commit_ms, row.commit_ms, *template.sql_types(data), *images, *extension, *claim)


def _images(row: RowChange, options: SinkOptions) -> tuple[Image, Image | None]:
    """Returns ``data`` and ``old``."""
    op = row.op
    data = row.before if op is _DELETE else row.after
    if data is None or (op is _UPDATE and row.before is None):
        raise ConfigError(f"canal_json: the images of an {op} of {row.database}.{row.table} are missing")
    if op is _UPDATE and row.before is not None:
        # content-compatible switches only-output-updated-columns on (wire.md 1.4.2).
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
    return members | (
        {"_tidb": {"commitTs": commit_ts_of(ddl, "enable-tidb-extension")}} if options.enable_tidb_extension else {}
    )


def _bare(database: str, table: str, kind: str, es: int, sql: str, *, is_ddl: bool) -> dict[str, Any]:
    """Returns a message without a row. It has ``data`` before ``old`` (wire.md 1.4.1)."""
    head = {"id": 0, "database": database, "table": table, "pkNames": None, "isDdl": is_ddl, "type": kind}
    return head | {"es": es, "ts": es, "sql": sql, **dict.fromkeys(("sqlType", "mysqlType", "data", "old"))}


def _watermark(watermark: int) -> dict[str, Any]:
    members = _bare("", "", "TIDB_WATERMARK", milliseconds(watermark), "", is_ddl=False)
    return members | {"_tidb": {"watermarkTs": watermark}}


@dataclass(frozen=True, slots=True)
class RowTemplate:
    """The message of a row with gaps for what differs, for changes of one operation and rows with the same columns."""

    columns: tuple[Column, ...]
    """Referenced here so that no other tuple can get its id."""
    text: bytes
    """The message with gaps: twice for the commit time, for ``sql_types``, the images and the extension."""
    by_value: tuple[tuple[str, int, int, int], ...]
    """Columns whose sqlType depends on the value: (name, type number, largest value with it, type number above)."""
    converters: tuple[tuple[str, Convert], ...]

    def sql_types(self, image: Image) -> list[int]:
        """Returns the type numbers that depend on the image."""
        return [larger if int(image[n] or 0) > bound else number for n, number, bound, larger in self.by_value]

    def image(self, image: Image) -> bytes:
        """Returns an image as it is written."""
        texts = dict(image)
        for name, convert in self.converters:
            text = texts.get(name)
            if text is not None:
                texts[name] = convert(text)
        return _ENCODE(texts)


class RowTemplates:
    """The templates of the changes met so far, by the identity of the columns: rows of a table share one tuple."""

    __slots__ = ("_options", "_templates")

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._templates: dict[tuple[object, ...], RowTemplate] = {}

    def of(self, row: RowChange, names: tuple[str, ...], *, old: bool, claimed: bool) -> RowTemplate:
        """Returns the template for a change whose ``data`` has these names."""
        key = (id(row.columns), row.database, row.table, row.op, names, row.handle_only, old, claimed)
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = self._template(row, names, old=old, claimed=claimed)
        return template

    def _template(self, row: RowChange, names: tuple[str, ...], *, old: bool, claimed: bool) -> RowTemplate:
        kinds = {column.name: _kind(column.type, column.by) for column in row.columns}
        types = {name: (sql_type(kinds[name][0]), promoted(kinds[name][0])) for name in names}
        whole = self._options.content_compatible
        mysql_types = {c.name: _whole_type(c.type) if whole else kinds[c.name][1] for c in row.columns}
        members = {
            "id": 0,
            "database": row.database,
            "table": row.table,
            "pkNames": [column.name for column in row.columns if column.key],
            "isDdl": False,
            "type": row.op.upper(),
            "es": NUMBER,
            "ts": NUMBER,
            "sql": "",
            "sqlType": {name: NUMBER if larger else number for name, (number, larger) in types.items()} or None,
            "mysqlType": {name: text for name, text in mysql_types.items() if name in types},
            "old": [JSON] if old else None,
            "data": [JSON],
        }
        if self._options.enable_tidb_extension:
            members["_tidb"] = {"commitTs": NUMBER} | _extension(handle_only=row.handle_only, claimed=claimed)
        return RowTemplate(
            columns=row.columns,
            text=json_text.template(members),
            by_value=tuple((name, number, *larger) for name, (number, larger) in types.items() if larger),
            converters=tuple((name, convert) for name, (_, _, convert) in kinds.items() if convert is not None),
        )


def _extension(*, handle_only: bool, claimed: bool) -> dict[str, Any]:
    if claimed:
        return {"claimCheckLocation": JSON}
    return {"onlyHandleKey": True} if handle_only else {}


def _whole_type(text: str) -> str:
    """Returns a type as ``content-compatible`` writes it, with the backslashes of an ENUM's names as they are."""
    return text.replace("\\\\", "\\")


_Kind = tuple[MysqlType, str, Convert | None]
"""A column's type, its ``mysqlType``, and what turns a text of ``event`` into the wire's."""


@lru_cache(maxsize=4096)
def _kind(type_text: str, by: str | None) -> _Kind:
    if not is_known(type_text.lower()):
        raise ConfigError(f"canal_json: {type_text[:80]!r} is no type of TiDB")
    kind = parse_type(type_text)
    words = type_text.lower().rpartition(")")[2].split()
    attributes = [word for word in ("unsigned", "zerofill") if word in words]
    return (
        kind,
        " ".join([kind.name, *attributes]),
        (number_of_names(kind) if by == "name" else None) or to_wire(type_text),
    )
