"""A table's columns in TiDB at a TSO: the texts of their values, and texts as literals, in TiDB's SQL.

A text is MySQL's own in UTF-8, as in silver (`ticdc_codec.event`), except for FLOAT and DOUBLE: TiDB casts them to the
shortest digits without an exponent. Only functions that TiDB pushes down to TiKV are used
(``scalarExprSupportedByTiKV`` in its ``pkg/expression/infer_pushdown.go``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import Family, MysqlType, parse_type
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.sql.text import quoted
from ticdc_lakehouse.tidb.session import NoSuchTableError, SnapshotReader, text_of

NUMBERS = (Family.INTEGER, Family.DECIMAL, Family.YEAR, Family.BIT)
_NUMBER, _HEX = re.compile(r"-?[0-9]+(\.[0-9]+)?"), re.compile("([0-9a-fA-F]{2})*")
_UTF8 = ("utf8mb4", "utf8", "utf8mb3", "ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """A column in TiDB's information_schema at the TSO."""

    name: str
    type: MysqlType
    character_set: str | None = None
    collation: str | None = None


def source_columns(source: SnapshotReader, name: TableName) -> list[SourceColumn] | None:
    """Returns the columns of a table in TiDB at the source's TSO, without the virtual ones; None if the table does not
    exist. Raises ConfigError where the user may not read it."""
    rows = source.query(f"""
        SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, EXTRA FROM information_schema.columns
        WHERE TABLE_SCHEMA = {_text_literal(name.database)} AND TABLE_NAME = {_text_literal(name.table)}
        ORDER BY ORDINAL_POSITION""")
    texts = [tuple(map(text_of, row)) for row in rows]
    sent = [
        SourceColumn(name=column or "", type=parse_type(kind or ""), character_set=character_set, collation=collation)
        for column, kind, character_set, collation, extra in texts
        if "VIRTUAL GENERATED" not in (extra or "")
    ]
    if not texts:
        _check_missing(source, name)
        return None
    return sent


def _check_missing(source: SnapshotReader, name: TableName) -> None:
    """Raises ConfigError, which names the privilege, if the user may not read a table: information_schema hides it
    then. Raises ApplyError for one that can be read all the same."""
    try:
        source.query(f"SELECT 1 FROM {quoted(name.database)}.{quoted(name.table)} LIMIT 0")
    except NoSuchTableError:
        return
    raise ApplyError(f"TiDB: table {name} can be read, but information_schema.columns does not show its columns")


def source_text_sql(column: SourceColumn, *, by_name: bool) -> str:
    """Returns SQL of the text of a column's value. ``by_name``: ENUM and SET are names, else numbers."""
    name, kind = quoted(column.name), column.type
    match kind.family:
        case Family.FLOAT | Family.DOUBLE:
            return f"IF({name} = 0, '0', CAST({name} AS CHAR))"  # zero may have a sign
        case Family.INTEGER | Family.DECIMAL if "zerofill" in kind.text:
            return f"CAST(CAST({name} AS {_number_type(kind)}) AS CHAR)"
        case Family.BIT:
            return f"CAST(CAST({name} AS UNSIGNED) AS CHAR)"
        case Family.ENUM | Family.SET if not by_name:
            return f"CAST(CAST({name} AS UNSIGNED) AS CHAR)"
        case Family.YEAR:
            return f"RIGHT(CONCAT('000', CAST({name} AS SIGNED)), 4)"
        case Family.BINARY:
            return f"LOWER(HEX({name}))"
        case Family.TEXT if column.character_set in _UTF8:
            return name
        case Family.TEXT | Family.ENUM | Family.SET if column.character_set not in _UTF8:
            return f"CONVERT({name} USING utf8mb4)"
        case _:
            return f"CAST({name} AS CHAR)"


def _number_type(kind: MysqlType) -> str:
    if kind.family is Family.DECIMAL:
        return f"DECIMAL({kind.digits}, {kind.scale})"
    return "UNSIGNED"


def source_literal(column: SourceColumn, text: str, *, by_name: bool = True) -> str:
    """Returns a value's text as a literal (sql_mode empty). ``by_name`` as in `source_text_sql`. Raises ApplyError for
    one that is no value of the column's type: texts come from Kafka, and what is not quoted must not be SQL."""
    match column.type.family:
        case family if family in NUMBERS:
            return _checked(column, _NUMBER, text)
        case Family.ENUM | Family.SET if not by_name:
            return _checked(column, _NUMBER, text)
        case Family.BINARY:
            return f"x'{_checked(column, _HEX, text)}'"
        case _:
            return _text_literal(text)


def _checked(column: SourceColumn, form: re.Pattern[str], text: str) -> str:
    if form.fullmatch(text) is None:
        raise ApplyError(f"column {column.name}: expected a value of {column.type.text}, found {text!r}")
    return text


def _text_literal(text: str) -> str:
    """Returns a text as a literal (sql_mode empty)."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
