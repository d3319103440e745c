"""Texts of columns whose type the messages left open (Debezium without its extension, or without its schema), made
MySQL's by the definition in force: SQL that views and gold share.

Silver keeps what the wire had: days for a DATE, base64 for a BINARY. ``ticdc_codec.debezium.value`` says the
same for values whose type a decoder knew; docs/protocols/debezium.md is this table in words.
"""

from __future__ import annotations

from ticdc_codec.mysql_type import Family, MysqlType
from ticdc_lakehouse.schema.definition import ColumnDefinition
from ticdc_lakehouse.sql.instant import is_own_sql
from ticdc_lakehouse.sql.text import literal
from ticdc_lakehouse.sql.typed_columns import datetime_text_sql

_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_DAYS = (-719_162, 2_932_896)
"""From year 1 to 9999."""
_MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
_CLOCK = (-3_020_399_999_999, 3_020_399_999_999)
"""-838:59:59 to 838:59:59."""
_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000


def whole_text_sql(column: ColumnDefinition, text: str, time_zone: str) -> str:
    """Returns MySQL's text of the wire's ``text`` (SQL expressions). NULL for NULL, and for a text that a value of the
    column's type cannot have."""
    digits = column.type.digits
    number = f"try_cast({text} AS BIGINT)"
    match column.type.family:
        case _ if not column.open:
            return text
        case Family.INTEGER | Family.DECIMAL:
            return _number_sql(column.type, text)
        case Family.BINARY:
            return f"lower(hex({_bytes_sql(text)}))"
        case Family.BIT if digits > 1:
            return _bits_sql(text)
        case Family.DATE:
            return _within(number, _DAYS, f"CAST(date_add(DATE'1970-01-01', CAST({number} AS INT)) AS STRING)")
        case Family.DATETIME:
            micros = number if digits > 3 else f"({number} * 1000)"
            bounds = _MICROS if digits > 3 else (_MICROS[0] // 1000, _MICROS[1] // 1000)
            time = f"timestampadd(MICROSECOND, {micros}, {_EPOCH})"
            return _within(number, bounds, datetime_text_sql(time, digits))
        case Family.TIME:
            return f"coalesce({_within(number, _CLOCK, _cut(_time_sql(number), digits))}, {text})"
        case Family.YEAR:
            return f"lpad({text}, 4, '0')"
        case Family.TIMESTAMP:
            return _instant_sql(text, time_zone, digits)
        case _:
            return text


def _within(number: str, bounds: tuple[int, int], value: str) -> str:
    return f"CASE WHEN {number} BETWEEN {bounds[0]} AND {bounds[1]} THEN {value} END"


def _number_sql(kind: MysqlType, text: str) -> str:
    if kind.family is Family.DECIMAL:
        return _plain_digits_sql(text)
    if not (kind.unsigned and kind.name == "bigint"):
        return text
    wrapped = f"CAST(try_cast({text} AS DECIMAL(20,0)) + 18446744073709551616BD AS STRING)"
    return f"CASE WHEN {text} LIKE '-%' THEN {wrapped} ELSE {text} END"


def _plain_digits_sql(number: str) -> str:
    """Returns the digits of a number that is written with an exponent below 1e-6 and from 1e21 on: ``-1.5e+21``. Before
    the exponent it has 17 digits at most, one of them before the point. Exponents that no DECIMAL has stay."""
    sign = f"CASE WHEN {number} LIKE '-%' THEN '-' ELSE '' END"
    digits = f"translate(substring_index({number}, 'e', 1), '-.', '')"
    exponent = f"try_cast(substring_index({number}, 'e', -1) AS INT)"
    large, small = (literal(f"^-?[0-9][.]?[0-9]*e[{of}][0-9]{{1,2}}$") for of in "+-")
    return (
        f"CASE WHEN {number} RLIKE {large} THEN concat({sign}, rpad({digits}, {exponent} + 1, '0')) "
        f"WHEN {number} RLIKE {small} THEN concat({sign}, '0.', repeat('0', -{exponent} - 1), {digits}) "
        f"ELSE {number} END"
    )


def _bytes_sql(text: str) -> str:
    return f"try_to_binary({text}, 'base64')"


def _bits_sql(text: str) -> str:
    """Returns a decimal integer of little-endian bytes."""
    digits = f"hex({_bytes_sql(text)})"
    octets = f"transform(sequence(1, length({digits}), 2), at -> substring({digits}, CAST(at AS INT), 2))"
    return f"CASE WHEN length({digits}) > 0 THEN conv(array_join(reverse({octets}), ''), 16, 10) END"


def _cut(time: str, digits: int) -> str:
    """Returns a time of six digits after the point with that many of them."""
    spare = 6 - digits + (digits == 0)
    return f"left({time}, length({time}) - {spare})" if spare else time


def _time_sql(micros: str) -> str:
    size = f"abs({micros})"
    parts = (
        f"{size} div {_HOUR}",
        f"{size} % {_HOUR} div {_MINUTE}",
        f"{size} % {_MINUTE} div {_SECOND}",
        f"{size} % {_SECOND}",
    )
    return f"format_string('%s%02d:%02d:%02d.%06d', CASE WHEN {micros} < 0 THEN '-' ELSE '' END, {', '.join(parts)})"


def _instant_sql(text: str, time_zone: str, digits: int) -> str:
    """Returns ``2024-01-01T00:00:00.123Z`` in the feed's zone; NULL if its text there is read as another instant
    (clocks are set back). 1970-01-01T00:00:00Z, below the type's first instant, is the writers' word for ``0000-00-00
    00:00:00``."""
    zero = literal("0000-00-00 00:00:00" + (f".{'0' * digits}" if digits else ""))
    utc = f"try_cast(replace(left({text}, 19), 'T', ' ') AS TIMESTAMP_NTZ)"
    local = f"convert_timezone('UTC', {literal(time_zone)}, {utc})"
    shown = f"concat({datetime_text_sql(local, 0)}, substring({text}, 20, length({text}) - 20))"
    pattern = literal(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?Z$")
    no_time = literal("^1970-01-01T00:00:00([.]0+)?Z$")
    is_shown = f"{text} RLIKE {pattern} AND {is_own_sql(utc, time_zone)}"
    return f"CASE WHEN {text} RLIKE {no_time} THEN {zero} WHEN {is_shown} THEN {shown} END"
