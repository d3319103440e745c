"""A row image (JSON text of MySQL's texts) as typed columns: SQL that views and gold share.

Every value is cast with ``try_cast``: a text that its Spark type cannot hold (``0000-00-00``, ``2024-05-00``)
becomes NULL in the typed column and is kept in ``_ticdc_irregular`` (column name to exact text), so that nothing is
lost and nothing guessed, in any ANSI mode and time zone of the session. docs/types.md documents these types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ticdc_codec import writer_defects
from ticdc_codec.mysql_type import Family, MysqlType
from ticdc_codec.name_case import fold
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table
from ticdc_lakehouse.sql.float_text import number_text_sql
from ticdc_lakehouse.sql.instant import instant_sql
from ticdc_lakehouse.sql.text import literal, quoted

IRREGULAR = "_ticdc_irregular"
_WITH_IRREGULAR = (Family.DATE, Family.DATETIME, Family.TIMESTAMP)
IMAGE_OPTIONS = "'maxStringLen', '2147483647', 'columnNameOfCorruptRecord', '_ticdc_corrupt_record'"
"""Options of ``from_json`` for row images. A value may be longer than Spark's JSON reader accepts by default, 20
million characters, since binary is in hex. And Spark puts malformed texts into the column ``_corrupt_record``, which
would be NULL in every row of a table that has such a column, unless the column for them has another name: one with the
reserved prefix ``_ticdc_``."""
_PLAIN_SCALE = 6
"""Most digits after the point with which a BigDecimal is never written with an exponent (Java's
``BigDecimal.toString``)."""
_EXACT_TEXT = "exact text: the protocol does not tell "

_INTEGER_TYPES = {  # name: (signed, unsigned)
    "tinyint": ("TINYINT", "SMALLINT"),
    "bool": ("TINYINT", "TINYINT"),
    "boolean": ("TINYINT", "TINYINT"),
    "smallint": ("SMALLINT", "INT"),
    "mediumint": ("INT", "INT"),
    "int": ("INT", "BIGINT"),
    "integer": ("INT", "BIGINT"),
    "bigint": ("BIGINT", "DECIMAL(20,0)"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedColumn:
    """One column of a typed table."""

    name: str
    spark_type: str
    comment: str
    definition: ColumnDefinition

    @property
    def has_dates(self) -> bool:
        """True if MySQL has values of its type that the Spark type cannot hold."""
        return self.definition.type.family in _WITH_IRREGULAR

    @property
    def may_be_outdated(self) -> bool:
        """True if values may not fit the definition, and no message shows that a newer one has another type: the size
        of a DECIMAL and the names of an ENUM or SET are not in the messages of all protocols."""
        kind = self.definition.type
        by_number = bool(kind.elements) and self.definition.by != "name"
        return by_number or (kind.family is Family.DECIMAL and self.spark_type != "STRING")

    @property
    def may_lose(self) -> bool:
        """True if there may be texts that the Spark type cannot hold, also such as MySQL would not write."""
        return self.spark_type != "STRING" or bool(self.definition.type.elements)

    def sql(self, text: str, time_zone: str) -> str:
        """Returns the typed value of SQL expression ``text``; NULL for NULL and for what the type cannot hold."""
        return _value_sql(self.definition, self.spark_type, text, time_zone)


def has_dates(table: Table) -> bool:
    """True if a table has columns that may hold irregular values."""
    return any(column.has_dates for column in typed_columns(table))


def typed_columns(table: Table) -> tuple[TypedColumn, ...]:
    """Returns the typed columns of a table, in its order, without the virtual ones. Comments name the columns of the
    key."""
    places = {fold(name): place for place, name in enumerate(table.key, start=1)}
    columns = ((typed_column(column), places.get(fold(column.name))) for column in table.sent)
    return tuple(_of_the_key(column, place, len(places)) if place else column for column, place in columns)


def _of_the_key(column: TypedColumn, place: int, columns: int) -> TypedColumn:
    return replace(column, comment=f"{column.comment}, key" + (f" {place} of {columns}" if columns > 1 else ""))


def by_name(column: ColumnDefinition) -> ColumnDefinition:
    """Returns the column as in MySQL's texts, defaults and stored rows: ENUM and SET by name."""
    return replace(column, by="name") if column.type.elements else column


def image_sql(table: Table, json_text: str) -> str:
    """Returns a row image as a struct of texts, one field per column. A malformed image is an error, never NULL."""
    fields = ", ".join(f"{quoted(column.name)} STRING" for column in table.sent)
    return f"from_json({json_text}, {literal(fields)}, map('mode', 'FAILFAST', {IMAGE_OPTIONS}))"


def values_sql(columns: tuple[TypedColumn, ...], texts: Sequence[str], time_zone: str) -> str:
    """Returns the typed values of the columns' texts (SQL expressions) as one struct."""
    values = (f"{c.sql(text, time_zone)} AS {quoted(c.name)}" for c, text in zip(columns, texts, strict=True))
    return f"struct({', '.join(values)})"


def irregular_texts_sql(columns: tuple[TypedColumn, ...], texts: Sequence[str], values: Sequence[str]) -> str:
    """Returns the texts that their typed values could not hold, as a JSON object text: ``{}`` where they hold all."""
    texts_of = (
        f"CASE WHEN {value} IS NULL THEN {text} END AS {quoted(column.name)}"
        for column, text, value in zip(columns, texts, values, strict=True)
        if column.may_lose
    )
    members = ", ".join(texts_of)
    # Without the option a session setting may make to_json write columns without an irregular value, as null.
    return f"to_json(struct({members}), map('ignoreNullFields', 'true'))" if members else "'{}'"


def has_irregular_sql(columns: tuple[TypedColumn, ...], texts: Sequence[str], values: Sequence[str]) -> str:
    """Returns the condition that ``irregular_texts_sql`` is not empty: cheaper than it where almost no value is
    irregular."""
    conditions = (
        f"({value} IS NULL AND {text} IS NOT NULL)"
        for column, text, value in zip(columns, texts, values, strict=True)
        if column.may_lose
    )
    return " OR ".join(conditions) or "false"


def irregular_sql(texts: str) -> str:
    """Returns the result of ``irregular_texts_sql`` as a map; NULL if no value is irregular."""
    return f"CASE WHEN {texts} <> '{{}}' THEN from_json({texts}, 'map<string,string>') END"


def typed_column(column: ColumnDefinition) -> TypedColumn:
    """Returns the typed column of one column."""
    spark_type, remark = _spark_type(column)
    return TypedColumn(name=column.name, spark_type=spark_type, comment=_comment(column, remark), definition=column)


def text_comment(column: ColumnDefinition) -> str:
    """Returns the comment of one column where dates are shown as MySQL's texts."""
    return _comment(column, "MySQL's text: on_irregular")


def _comment(column: ColumnDefinition, remark: str) -> str:
    remarks = "; ".join(filter(None, (remark, writer_defects.remark(column.defect), pending_remark(column))))
    return column.type.text if remarks == "" else f"{column.type.text} ({remarks})"


def pending_remark(column: ColumnDefinition) -> str:
    """Returns what people must know of a column whose value in old rows is pending; empty for any other."""
    if column.pending is None:
        return ""
    held = "an estimate" if column.pending.estimated else "NULL"
    return f"pending: {held} in rows not written since TSO {column.pending.since}, until a change shows their value"


_SPARK_TYPES = {
    Family.FLOAT: ("FLOAT", ""),
    Family.DOUBLE: ("DOUBLE", ""),
    Family.YEAR: ("SMALLINT", ""),
    Family.DATE: ("DATE", f"zero and partial dates: see {IRREGULAR}"),
    Family.DATETIME: ("TIMESTAMP_NTZ", f"zero and partial dates: see {IRREGULAR}"),
    Family.TIMESTAMP: ("TIMESTAMP", f"zero dates: see {IRREGULAR}"),
    Family.BINARY: ("BINARY", ""),
}


def _spark_type(column: ColumnDefinition) -> tuple[str, str]:
    """Returns the Spark type of a column, and what its comment must say beside the MySQL type."""
    kind = column.type
    match kind.family:
        case Family.INTEGER:
            return _INTEGER_TYPES[kind.name][kind.unsigned], ""
        case Family.DECIMAL:
            return _decimal(kind)
        case Family.BIT:
            return ("BIGINT", "") if kind.size and kind.size[0] < 64 else ("DECIMAL(20,0)", "")
        case Family.ENUM | Family.SET:
            return "STRING", _names_remark(column)
        case family:
            return _SPARK_TYPES.get(family, ("STRING", ""))


def _decimal(kind: MysqlType) -> tuple[str, str]:
    if not kind.size:
        return "STRING", _EXACT_TEXT + "precision and scale"
    if kind.size[0] > 38:
        return "STRING", "exact text: more than the 38 digits of DECIMAL"
    return f"DECIMAL({kind.size[0]},{kind.scale})", ""


def _names_remark(column: ColumnDefinition) -> str:
    if column.by == "name" or column.type.elements:
        return ""
    number = "index" if column.type.family is Family.ENUM else "bit mask"
    return f"{number} as text: the protocol does not tell the names"


def _value_sql(column: ColumnDefinition, spark_type: str, text: str, time_zone: str) -> str:
    match column.type.family:
        case Family.TIMESTAMP:
            return instant_sql(text, time_zone)
        case Family.BINARY:
            return f"unhex({text})"
        case Family.ENUM if column.by != "name" and column.type.elements:
            return _enum_sql(column.type.elements, text)
        case Family.SET if column.by != "name" and column.type.elements:
            return _set_sql(column.type.elements, text)
        # Debezium's values have other digits (a TIME 0, 3 or 6, a DECIMAL as few as it needs). A value that needs more
        # than the type has is kept: the definition is old.
        case Family.TIME if column.type.digits:
            return f"coalesce({with_digits_sql(text, column.type.digits)}, {text})"
        case Family.DECIMAL if spark_type == "STRING" and column.type.scale:
            return f"coalesce({with_digits_sql(text, column.type.scale)}, {text})"
        case _ if spark_type == "STRING":
            return text
        case Family.DECIMAL:
            # A cast would round what has more digits after the point.
            whole = f"length(split_part({text}, '.', 2)) <= {column.type.scale}"
            return f"CASE WHEN {whole} THEN try_cast({text} AS {spark_type}) END"
        case _:
            return f"try_cast({text} AS {spark_type})"


def with_digits_sql(text: str, digits: int) -> str:
    """Returns the text of a TIME or DECIMAL with this number of digits after the point; NULL if it needs more."""
    whole, fraction = f"split_part({text}, '.', 1)", f"trim(TRAILING '0' FROM split_part({text}, '.', 2))"
    filled = f"concat({whole}, '.', rpad({fraction}, {digits}, '0'))" if digits else whole
    return f"CASE WHEN length({fraction}) <= {digits} THEN {filled} END"


def _enum_sql(elements: tuple[str, ...], text: str) -> str:
    """Returns the name of an index. Index 0 is MySQL's error value, which prints as the empty string."""
    names = ", ".join(literal(name) for name in ("", *elements))
    return f"get(array({names}), try_cast({text} AS INT))"


def _set_sql(elements: tuple[str, ...], text: str) -> str:
    """Returns the names of a mask: bit i (up to 64, as a signed BIGINT) is element i. What is no number is no mask
    (``conv`` would make 0 of it), nor is one with a bit that has no name: the definition is older than the row."""
    names = ", ".join(literal(name) for name in elements)
    mask = f"CAST(conv({text}, 10, -10) AS BIGINT)"
    chosen = f"filter(array({names}), (name, i) -> ({mask} & shiftleft(1L, i)) <> 0)"
    is_mask = f"{text} RLIKE '^[0-9]+$' AND try_cast({text} AS DECIMAL(20,0)) < {1 << len(elements)}"
    return f"CASE WHEN {is_mask} THEN concat_ws(',', {chosen}) END"


def stored_text_sql(column: TypedColumn, time_zone: str) -> str:
    """Returns MySQL's text of a stored value (`event` docstring; ENUM and SET as they are stored, by name where that is
    known): what ``TypedColumn.sql`` was computed from, read back."""
    text = value_text_sql(column, quoted(column.name), time_zone)
    return f"coalesce({IRREGULAR}[{literal(column.name)}], {text})"


def value_text_sql(column: TypedColumn, value: str, time_zone: str) -> str:
    """Returns MySQL's text of a value that the column's Spark type holds."""
    kind, spark_type = column.definition.type, column.spark_type
    # None, too, where the type has no digits: what is stored then has none either, and to cut them takes a third more.
    digits = (kind.digits or None) if column.definition.sized else None
    match kind.family:
        case _ if spark_type == "STRING":
            return value
        case Family.BINARY:
            return f"lower(hex({value}))"
        case Family.YEAR:
            return f"lpad(CAST({value} AS STRING), 4, '0')"
        case Family.DECIMAL:
            # A CAST writes 0E-8 where the session is not in ANSI mode; up to six digits it writes them, and is faster.
            plain = f"CAST({value} AS STRING)"
            return plain if kind.scale <= _PLAIN_SCALE else f"replace(format_number({value}, {kind.scale}), ',', '')"
        case Family.DATETIME:
            return datetime_text_sql(value, digits)
        case Family.TIMESTAMP:
            utc = _in_utc(value)
            local = utc if time_zone == "UTC" else f"convert_timezone('UTC', {literal(time_zone)}, {utc})"
            return datetime_text_sql(local, digits)
        case Family.FLOAT | Family.DOUBLE:
            return number_text_sql(value, spark_type)
        case _:
            return f"CAST({value} AS STRING)"


def _in_utc(timestamp: str) -> str:
    """Returns a TIMESTAMP as the TIMESTAMP_NTZ of its UTC time, in any time zone of the session."""
    return f"timestampadd(MICROSECOND, unix_micros({timestamp}), TIMESTAMP_NTZ'1970-01-01 00:00:00')"


def datetime_text_sql(datetime: str, digits: int | None) -> str:
    """Returns MySQL's text of a TIMESTAMP_NTZ with ``digits`` digits after the point; None: as far as they are not 0.

    ``date_format`` would take it for a time of the session's zone, where an hour may be missing, and write the digits
    as the session's time parser does.
    """
    text = f"CAST({datetime} AS STRING)"
    if digits is None:
        return text
    seconds = f"left({text}, 19)"
    return f"concat({seconds}, '.', rpad(substring({text}, 21), {digits}, '0'))" if digits else seconds
