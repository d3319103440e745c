"""Columns whose type the messages left open: Debezium without its TiDB extension, or without its schema.

Their texts are the wire's own until a definition declares the type.
"""

from __future__ import annotations

from dataclasses import replace
from zoneinfo import ZoneInfo

from ticdc_codec.debezium.column import CONNECT_TYPE, UNKNOWN_TYPE, with_type
from ticdc_codec.debezium.value import format_of
from ticdc_codec.event import Column
from ticdc_codec.mysql_type import Family, MysqlType


def is_open(text: str) -> bool:
    """True if a column's type was left open, so that its texts are the wire's own."""
    return text == UNKNOWN_TYPE or text.startswith(CONNECT_TYPE)


def may_be(text: str, kind: MysqlType) -> bool:
    """True if a column whose type was left open as ``text`` says may be of this type."""
    value_format = format_of(kind, ZoneInfo("UTC"), whole=True)
    return text == UNKNOWN_TYPE or (value_format.name is None and text == CONNECT_TYPE + value_format.connect)


def completed(column: Column, kind: MysqlType) -> Column:
    """Returns a column whose type was left open, with the type that its definition has. A DECIMAL that came without
    digits keeps its type, and is suspect only if its definition has too many."""
    if column.type == "decimal" and kind.family is Family.DECIMAL:
        return replace(column, defect=with_type(column, kind).defect)
    return with_type(column, kind) if is_open(column.type) and kind.family is not Family.OTHER else column
