"""Columns as the schema that a message would carry: what ``schema.layout_of`` reads back as the same columns."""

from __future__ import annotations

from ticdc_codec.event import Column
from ticdc_codec.mysql_type import Family, MysqlType, parse_type
from ticdc_codec.simple.schema import ColumnSchema, DataType, IndexSchema, TableSchema

_LENGTH_WITHOUT_FRACTION = {"datetime": 19, "timestamp": 19, "time": 10}
_CHARACTERS = (Family.TEXT, Family.ENUM, Family.SET)


def schema_of(database: str, table: str, table_id: int, version: int, columns: tuple[Column, ...]) -> TableSchema:
    """The schema of a table with these columns and nothing else known: key columns are a primary key."""
    key = tuple(column.name for column in columns if column.key)
    index = IndexSchema(name="primary", unique=True, primary=True, nullable=False, columns=key)
    return TableSchema(
        database=database,
        table=table,
        table_id=table_id,
        version=version,
        columns=tuple(_column(column) for column in columns),
        indexes=(index,) if key else (),
    )


def _column(column: Column) -> ColumnSchema:
    data_type = _data_type(parse_type(column.type))
    return ColumnSchema(name=column.name, data_type=data_type, nullable=not column.key, default=None)


def _data_type(kind: MysqlType) -> DataType:
    length, decimal = _sizes(kind)
    charset, collate = ("utf8mb4", "utf8mb4_bin") if kind.family in _CHARACTERS else ("binary", "binary")
    return DataType(
        mysql_type=kind.name,
        charset=charset,
        collate=collate,
        length=length,
        decimal=decimal,
        elements=kind.elements or None,
        unsigned=kind.unsigned,
        zerofill="zerofill" in kind.text,
    )


def _sizes(kind: MysqlType) -> tuple[int, int]:
    """``length`` and ``decimal``."""
    first, second = (*kind.size, 0, 0)[:2]
    if kind.name in _LENGTH_WITHOUT_FRACTION:
        whole = _LENGTH_WITHOUT_FRACTION[kind.name]
        return (whole + 1 + first, first) if first else (whole, 0)
    return first, second
