"""Templates of rows' messages: what repeats is written once for each operation and list of columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from ticdc_codec import json_template
from ticdc_codec.canal_json.value import Convert, promoted, sql_type, to_wire
from ticdc_codec.event import Column, Image, RowChange
from ticdc_codec.json_template import JSON, NUMBER
from ticdc_codec.mysql_type import MysqlType, parse_type
from ticdc_codec.number_text import number_of_names
from ticdc_codec.options import SinkOptions

# orjson allocates more than it fills and gives it back, which costs 4 us for each message that is not freed at once.
_ENCODE = msgspec.json.Encoder().encode


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
        """The numbers that depend on the image."""
        return [larger if int(image[n] or 0) > bound else number for n, number, bound, larger in self.by_value]

    def image(self, image: Image) -> bytes:
        """An image as it is written."""
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
        """The template for a change whose ``data`` has these names."""
        key = (id(row.columns), row.database, row.table, row.op, names, row.handle_only, old, claimed)
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = self._template(row, names, old=old, claimed=claimed)
        return template

    def _template(self, row: RowChange, names: tuple[str, ...], *, old: bool, claimed: bool) -> RowTemplate:
        kinds = {column.name: _kind(column.type, column.by) for column in row.columns}
        types = {name: (sql_type(kinds[name][0]), promoted(kinds[name][0])) for name in names}
        mysql_types = {c.name: c.type if self._options.content_compatible else kinds[c.name][1] for c in row.columns}
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
            text=json_template.template(members),
            by_value=tuple((name, number, *larger) for name, (number, larger) in types.items() if larger),
            converters=tuple((name, convert) for name, (_, _, convert) in kinds.items() if convert is not None),
        )


def _extension(*, handle_only: bool, claimed: bool) -> dict[str, Any]:
    if claimed:
        return {"claimCheckLocation": JSON}
    return {"onlyHandleKey": True} if handle_only else {}


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
        (number_of_names(kind) if by == "name" else None) or to_wire(type_text),
    )
