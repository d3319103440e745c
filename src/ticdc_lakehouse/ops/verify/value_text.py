"""A value's one text on both sides: the same bytes out of TiDB and out of the live table, for every type.

It is the text that `tidb.columns` makes of a value, also of FLOAT and DOUBLE.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from ticdc_codec.mysql_type import Family, MysqlType
from ticdc_lakehouse.sql.text import quoted
from ticdc_lakehouse.sql.typed_columns import TypedColumn, stored_text_sql, value_text_sql, with_digits_sql
from ticdc_lakehouse.sql.value_range import REAL
from ticdc_lakehouse.tidb.columns import SourceColumn, source_text_sql

ZONE = "UTC"
"""Time zone of TIMESTAMP texts on both sides."""
_FREE_TEXT = (Family.TEXT, Family.ENUM, Family.SET, Family.JSON, Family.VECTOR, Family.OTHER)
"""Families whose texts may hold any character."""
_WITH_DIGITS = (Family.DATETIME, Family.TIMESTAMP, Family.TIME, Family.DECIMAL)
"""Families whose types say how many digits a text has after the point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedColumn:
    """A column that both sides have."""

    typed: TypedColumn
    source: SourceColumn

    @property
    def name(self) -> str:
        """The name that the column has in the lake."""
        return self.typed.name

    @property
    def lake_text(self) -> str:
        """Spark SQL of the stored value's text. NULL where its column cannot hold it, unless it is a date: no other
        text that a view shows as NULL is equal to TiDB's value."""
        text = self._stored_text
        if not (self._has_unknown_digits and self._source_digits):
            return text
        # A value with more digits than TiDB's type has keeps them: it differs.
        return f"coalesce({with_digits_sql(text, self._source_digits)}, {text})"

    @property
    def _stored_text(self) -> str:
        if self.typed.has_dates:
            return stored_text_sql(self.typed, ZONE)
        stored = quoted(self.name)
        is_real = self.typed.definition.type.family in REAL
        return _plain_number_sql(stored) if is_real else value_text_sql(self.typed, stored, ZONE)

    @property
    def _has_unknown_digits(self) -> bool:
        """True if messages do not show how many digits its texts have after the point: then TiDB's type does."""
        definition = self.typed.definition
        same = definition.type.family is self.source.type.family
        return same and not definition.sized and definition.type.family in _WITH_DIGITS

    @property
    def _source_digits(self) -> int:
        kind = self.source.type
        return kind.scale if kind.family is Family.DECIMAL else kind.digits

    @property
    def source_text(self) -> str:
        """TiDB's SQL of the value's text."""
        return source_text_sql(self.source, by_name=self._by_name)

    @property
    def _by_name(self) -> bool:
        """True if the lake has names of an ENUM or SET, rather than numbers."""
        definition = self.typed.definition
        return definition.by == "name" or bool(definition.type.elements)

    def same(self, source: str | None, lake: str | None) -> bool:
        """True if two texts mean one value, though they may be written in two ways."""
        if source is None or lake is None:
            return source is lake
        return source == lake or _comparable(self.source.type, source) == _comparable(self.source.type, lake)


def lake_hash_sql(columns: Sequence[ComparedColumn]) -> str:
    """Returns Spark SQL of the MD5 of a row, or key: equal exactly where all texts are."""
    return (
        f"md5(CAST(concat_ws(',', {', '.join(_part_sql(column, column.lake_text) for column in columns)}) AS BINARY))"
    )


def source_hash_sql(columns: Sequence[ComparedColumn]) -> str:
    """Returns TiDB's SQL of the MD5 of a row, or key: equal exactly where all texts are."""
    return f"MD5(CONCAT_WS(',', {', '.join(_part_sql(column, column.source_text) for column in columns)}))"


def _part_sql(column: ComparedColumn, text: str) -> str:
    """Returns either side's SQL of a value without a comma; NULL is N, which no number, date or hexadecimal text is.

    As hexadecimal digits texts of all collations can be put together, and TiDB cuts nothing: its
    ``CAST(column AS BINARY)`` cuts a VARCHAR(20) to 20 bytes.
    """
    free = column.source.type.family in _FREE_TEXT
    return f"COALESCE({f'HEX({text})' if free else text}, 'N')"


def _plain_number_sql(value: str) -> str:
    """Returns SQL of a FLOAT's or DOUBLE's shortest digits without an exponent, as Go's ``FormatFloat(value, 'f', -1,
    bits)``, made of Java's digits, such as ``12.5`` and ``-1.25E-7``: with an exponent below 1e-3 and from 1e7 on
    (``Double.toString``)."""
    unsigned = _without_exponent_sql(f"CAST(abs({value}) AS STRING)")
    return (
        f"CASE WHEN {value} <> 0 AND (abs({value}) < 1e-3 OR abs({value}) >= 1e7) "
        f"THEN concat(IF({value} < 0, '-', ''), {unsigned}) "
        f"WHEN {value} = floor({value}) THEN CAST(CAST({value} AS BIGINT) AS STRING) ELSE CAST({value} AS STRING) END"
    )


def _without_exponent_sql(text: str) -> str:
    """Returns SQL of the digits without an exponent, of a text such as ``1.25E-7``; ``point`` is the place of the point
    in the digits ``125``.

    It is short on purpose: Java runs a row's code at half the speed where this is long, whatever the values are.
    """
    digits = f"rtrim('0', replace(substring_index({text}, 'E', 1), '.', ''))"
    point = f"(CAST(substring_index({text}, 'E', -1) AS INT) + 1)"
    return (
        f"IF({point} <= 0, concat('0.', repeat('0', -{point}), {digits}), "
        f"rtrim('.', concat(rpad({digits}, {point}, '0'), '.', substring({digits}, {point} + 1))))"
    )


def _comparable(kind: MysqlType, text: str) -> object:
    try:
        match kind.family:
            case Family.FLOAT:
                return float(np.float32(text))
            case Family.DOUBLE:
                return float(text)
            case Family.DECIMAL:
                return Decimal(text)
            case Family.DATETIME | Family.TIMESTAMP | Family.TIME:
                whole, _, fraction = text.partition(".")
                return whole, fraction.rstrip("0")
            case Family.JSON:
                return json.loads(text, parse_float=_json_number, parse_int=_json_number)
    except (ValueError, ArithmeticError):
        pass  # no value of the type: its text is all there is
    return text


def _json_number(text: str) -> tuple[Decimal]:
    """Returns a number that does not equal a boolean, as Python's 1 equals True."""
    return (Decimal(text),)
