"""The columns that a DDL message gives of its table (wire.md 1.5.3)."""

from __future__ import annotations

from ticdc_codec.debezium.envelope import ChangedColumn, ChangedTable, DdlPayload
from ticdc_codec.debezium.field import quoted
from ticdc_codec.event import Column, Layout, columns_text

_SIZED_BY_NAMES = ("enum", "set")


def layout_of(payload: DdlPayload) -> Layout:
    """Database and table, and the table's columns after the DDL where the message has them.

    Virtual columns are among them, and hidden ones of indexes; a key is told if it is the primary key.
    """
    source = payload.source
    after = payload.changes[-1].table if payload.changes else None
    columns = () if after is None else _columns(after)
    return Layout(source.db, source.table, columns, columns_text(columns) if columns else None)


def _columns(table: ChangedTable) -> tuple[Column, ...]:
    keys = table.primary_key_column_names
    return tuple(_column(column, key=column.name in keys) for column in table.columns)


def _column(column: ChangedColumn, *, key: bool) -> Column:
    name, _, attributes = column.type_name.lower().partition(" ")
    by = "name" if name in _SIZED_BY_NAMES else None
    return Column(name=column.name, type=f"{name}{_inside(name, column)} {attributes}".rstrip(), key=key, by=by)


def _inside(name: str, column: ChangedColumn) -> str:
    if name in _SIZED_BY_NAMES:
        # The quotes around a name are the wire's, those in it are not doubled.
        return f"({','.join(quoted(element[1:-1]) for element in column.enum_values or ())})"
    if name == "bit":
        return f"({column.length or 1})"
    sizes = [str(size) for size in (column.length or None, column.scale) if size is not None]
    return f"({','.join(sizes)})" if sizes else ""
