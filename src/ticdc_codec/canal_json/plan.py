"""What repeats in the messages of rows, written once for like changes of rows with the same columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from ticdc_codec.canal_json.value import Convert, promoted, sql_type, to_wire
from ticdc_codec.event import Column, Image, RowChange
from ticdc_codec.json_template import JSON, NUMBER, template
from ticdc_codec.mysql_type import MysqlType, parse_type
from ticdc_codec.number_text import number_of_names
from ticdc_codec.options import SinkOptions

# orjson asks for more room than it fills, and gives it back: 4 us a message that is kept.
_ENCODE = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Plan:
    """What repeats in the messages of like changes of rows with the same columns."""

    columns: tuple[Column, ...]
    """Held, so that no other tuple can have its id."""
    text: bytes
    """The message with gaps: twice for the commit time, for ``sql_types``, the images and the extension."""
    by_value: tuple[tuple[str, int, int, int], ...]
    """Columns of which each value tells the sqlType: name, number, the value above which it is another, and that."""
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


class Plans:
    """The plans of the changes met so far, by the identity of the columns: rows of a table share one."""

    __slots__ = ("_options", "_plans")

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._plans: dict[tuple[object, ...], Plan] = {}

    def of(self, row: RowChange, names: tuple[str, ...], *, old: bool, claimed: bool) -> Plan:
        """The plan of a change whose ``data`` has these names."""
        shape = (id(row.columns), row.database, row.table, row.op, names, row.handle_only, old, claimed)
        plan = self._plans.get(shape)
        if plan is None:
            plan = self._plans[shape] = self._plan(row, names, old=old, claimed=claimed)
        return plan

    def _plan(self, row: RowChange, names: tuple[str, ...], *, old: bool, claimed: bool) -> Plan:
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
        return Plan(
            columns=row.columns,
            text=template(members),
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
