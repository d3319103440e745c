"""MySQL's conversions of stored values when a column changes its type, as SQL on MySQL's own texts.

TiDB refuses an ALTER TABLE that would lose a value, except from a session without strict mode, so what is converted
here fits. An unknown conversion raises ApplyError; a value that cannot be converted becomes NULL, for the caller to
refuse.
"""

from __future__ import annotations

from collections.abc import Callable

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import Family, MysqlType, parse_type
from ticdc_lakehouse.sql.float_text import shortest_sql
from ticdc_lakehouse.sql.text import literal
from ticdc_lakehouse.sql.value_range import CHARACTERS, REAL

Conversion = Callable[[MysqlType, MysqlType, str], str]
"""(type before, type after, SQL of the old text) to SQL of the new text."""

_INTEGER = r"^[ ]*[+-]?[0-9]+[ ]*$"
_NUMBER = r"^[ ]*[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?[ ]*$"
_WHITE_SPACE = r"^[ \t\n\r]*$"
_DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DATETIME = f"{_DATE[:-1]}( [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?)?$"
_TIME = "^-?[0-9]{2,3}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?$"
_PARTIAL = "^(0000-00-(?!00)|0000-(?!00)..-00|(?!0000)....-(00|..-00))"
_WHOLE = (Family.INTEGER, Family.BIT, Family.YEAR)
_DATES = (Family.DATE, Family.DATETIME)


def converted_sql(before: MysqlType, after: MysqlType, text: str) -> str:
    """Returns the SQL of a value's text after the change; ``text``, the SQL of its text before, if it does not change.

    Raises ApplyError for a pair of types whose conversion is not followed.
    """
    conversion = _CONVERSIONS.get((before.family, after.family))
    if conversion is None:
        raise ApplyError(f"the conversion from {before.text} to {after.text} is not followed")
    return conversion(before, after, text)


def has_session_time(before: MysqlType, after: MysqlType) -> bool:
    """True if only one of the types is TIMESTAMP. TiDB converts its wall-clock time in the zone of the session that ran
    the DDL, which the job keeps (``NewDDLReorgMeta``, ``Location``) and TiCDC does not send."""
    return (before.family is Family.TIMESTAMP) is not (after.family is Family.TIMESTAMP)


def as_wall_clock(kind: MysqlType) -> MysqlType:
    """Returns the type of a TIMESTAMP's wall-clock time."""
    return parse_type(f"datetime({kind.digits})") if kind.family is Family.TIMESTAMP else kind


def _same(_before: MysqlType, _after: MysqlType, text: str) -> str:
    return text


def _to_decimal(before: MysqlType, after: MysqlType, text: str) -> str:
    """Rounds half away from zero."""
    _fits_decimal(after)
    exact = before.family is not Family.DECIMAL or (before.size and before.scale <= after.scale)
    return text if exact else _rounded_to(after, text)


def _rounded_to(after: MysqlType, number: str) -> str:
    return f"CAST(try_cast({number} AS DECIMAL({after.size[0]},{after.scale})) AS STRING)"


def _fits_decimal(kind: MysqlType) -> None:
    if not kind.size or kind.size[0] > 38:
        raise ApplyError(f"values are not converted to {kind.text}: Spark's DECIMAL has 38 digits")


def _decimal_to_whole(before: MysqlType, _after: MysqlType, text: str) -> str:
    _fits_decimal(before)
    number = f"CAST({text} AS DECIMAL({before.size[0]},{before.scale}))"
    return f"CAST(CAST(round({number}, 0) AS DECIMAL(38,0)) AS STRING)"


def _double(before: MysqlType, text: str) -> str:
    """Returns the SQL of the stored number with all its binary digits: the text of a FLOAT has only as many digits as
    distinguish it from its neighbours, and TiDB converts the number (``Datum.ConvertTo…``, from float32 to float64
    first)."""
    return f"CAST(CAST({text} AS FLOAT) AS DOUBLE)" if before.family is Family.FLOAT else f"CAST({text} AS DOUBLE)"


def _real_to_decimal(before: MysqlType, after: MysqlType, text: str) -> str:
    _fits_decimal(after)
    return _rounded_to(after, shortest_sql(_double(before, text), "DOUBLE"))


_BEYOND = 1 << 63
"""The first whole number that no BIGINT has."""


def _real_to_whole(before: MysqlType, _after: MysqlType, text: str) -> str:
    """Writes all digits of the binary number, as TiDB has them. A DECIMAL would be made of the shortest text that is
    read back as the number, so it goes by way of a BIGINT; above its range, by way of what is beyond it."""
    whole = f"rint({_double(before, text)})"
    near = f"CAST(try_cast({whole} AS BIGINT) AS DECIMAL(20,0))"
    far = f"CAST(try_cast({whole} - {_BEYOND}D AS BIGINT) AS DECIMAL(20,0)) + {_BEYOND}BD"
    # Spark casts the first number beyond a BIGINT to the last one in it.
    number = f"CASE WHEN {whole} < {_BEYOND}D THEN {near} WHEN {whole} < {2 * _BEYOND}D THEN {far} END"
    return f"CAST(CAST({number} AS DECIMAL(20,0)) AS STRING)"


def _to_real(before: MysqlType, after: MysqlType, text: str) -> str:
    """Keeps D digits after the point in FLOAT(M,D) and DOUBLE(M,D), which TiDB rounds in binary. Between a FLOAT and
    any other number stands a float64, which may round a second time."""
    if len(after.size) == 2 and before.family not in _WHOLE and not _keeps_digits(before, after):
        raise ApplyError(f"the rounding of {before.text} to {after.text} is not followed")
    number = _matching(_NUMBER)(before, after, text) if before.family is Family.TEXT else text
    match before.family, after.family:
        case (Family.FLOAT, Family.DOUBLE):
            return f"CAST({_double(before, number)} AS STRING)"
        case (other, Family.FLOAT) if other is not Family.FLOAT:
            return f"CAST(CAST({_double(before, number)} AS FLOAT) AS STRING)"
        case _:
            return number


def _real_to_text(_before: MysqlType, _after: MysqlType, text: str) -> str:
    """Converts plain numbers only: those that need an exponent are written in other ways by other versions of TiDB."""
    size = f"abs(CAST({text} AS DOUBLE))"
    return f"CASE WHEN {size} = 0 OR {size} BETWEEN 1e-5 AND 1e15 THEN {text} END"


def _text_to_text(before: MysqlType, after: MysqlType, text: str) -> str:
    """Cuts the trailing spaces of a CHAR, which loses them when it is written."""
    cut = _cut(before, after, text)
    return f"rtrim({cut})" if after.name == "char" and not _stays(before, after) else cut


def _stays(before: MysqlType, after: MysqlType) -> bool:
    """True if TiDB does not write the rows again, since the new type has the length of the old one
    (``needChangeColumnData``)."""
    return (before.name, after.name) in (("tinytext", "char"), ("tinyblob", "binary")) and after.size == (255,)


def _cut(before: MysqlType, after: MysqlType, text: str) -> str:
    """Cuts off only white space from a text that is too long, as TiDB does, also in strict mode
    (``ProduceStrWithSpecifiedTp``)."""
    limit = (*after.size, None)[0] if after.name in CHARACTERS else None
    if limit is None or (before.name in CHARACTERS and before.size and before.size[0] <= limit):
        return text
    rest = f"substring({text}, {limit + 1}) RLIKE {literal(_WHITE_SPACE)}"
    return f"CASE WHEN char_length({text}) <= {limit} THEN {text} WHEN {rest} THEN left({text}, {limit}) END"


def _text_to_binary(_before: MysqlType, after: MysqlType, text: str) -> str:
    return _padded(after, f"lower(hex(encode({text}, 'UTF-8')))")


def _binary_to_binary(before: MysqlType, after: MysqlType, text: str) -> str:
    return text if _stays(before, after) else _padded(after, text)


def _padded(after: MysqlType, digits: str) -> str:
    """Fills BINARY(n) up with zero bytes."""
    if after.name != "binary" or not after.size:
        return digits
    length = 2 * after.size[0]
    return f"CASE WHEN length({digits}) <= {length} THEN rpad({digits}, {length}, '0') END"


def _binary_to_text(before: MysqlType, after: MysqlType, text: str) -> str:
    return _text_to_text(before, after, f"try_validate_utf8(CAST(unhex({text}) AS STRING))")


def _year_to_text(_before: MysqlType, _after: MysqlType, text: str) -> str:
    """Writes the number, as TiDB does: the year 0000 becomes ``0`` (``convertToString`` of an integer)."""
    return f"CAST(CAST({text} AS INT) AS STRING)"


def _matching(pattern: str) -> Conversion:
    """Returns the conversion of texts that are written as the other type writes its values; others are not
    converted."""

    def converted(_before: MysqlType, _after: MysqlType, text: str) -> str:
        return f"CASE WHEN {text} RLIKE '{pattern}' THEN trim({text}) END"

    return converted


def _text_to_decimal(before: MysqlType, after: MysqlType, text: str) -> str:
    _fits_decimal(after)
    return _rounded_to(after, _matching(_NUMBER)(before, after, text))


def _text_to_date(_before: MysqlType, _after: MysqlType, text: str) -> str:
    """Converts dates of the calendar. Others are kept or not, as the session's sql_mode says."""
    return f"CASE WHEN {text} RLIKE '{_DATE}' AND try_cast({text} AS DATE) IS NOT NULL THEN {text} END"


def _text_to_datetime(_before: MysqlType, after: MysqlType, text: str) -> str:
    """Converts times as `_text_to_date` converts dates."""
    return _rounded(f"CASE WHEN {text} RLIKE '{_DATETIME}' THEN {text} END", after.digits)


def _date_to_datetime(_before: MysqlType, after: MysqlType, text: str) -> str:
    return f"concat({text}, ' 00:00:00', {zeros(0, after.digits)})" if after.digits else f"concat({text}, ' 00:00:00')"


def _datetime_to_number(before: MysqlType, after: MysqlType, text: str) -> str:
    """Keeps only the digits (``Time.ToNumber``); for a whole number the time is rounded to seconds first
    (``Datum.toInt64``). NULL for partial dates."""
    is_whole = after.family is Family.INTEGER
    digits = 0 if is_whole else before.digits
    rounded = f"coalesce({_rounded(text, 0)}, {text})" if is_whole and before.digits else text
    number = f"try_cast(regexp_replace({rounded}, '[- :]', '') AS DECIMAL({14 + digits},{digits}))"
    is_certain = f"{text} NOT RLIKE '{_PARTIAL}' AND {rounded} NOT LIKE '+%'"
    certain = f"CASE WHEN {is_certain} THEN CAST({number} AS STRING) END"
    return converted_sql(parse_type(f"decimal({14 + digits},{digits})"), after, certain)


def _to_datetime(before: MysqlType, after: MysqlType, text: str) -> str:
    """Rounds half up to the digits of the new type. Zero and partial dates only lose zeros."""
    if after.digits >= before.digits:
        return text
    has_zeros = f"{text} RLIKE '^[^.]*([.][0-9]{{{after.digits}}}0*)?$'"
    cut = f"CASE WHEN {has_zeros} THEN left({text}, {_length(after.digits)}) END"
    return f"coalesce({_rounded(text, after.digits)}, {cut})"


def _rounded(text: str, digits: int) -> str:
    """Returns the text of a DATETIME, rounded to ``digits`` digits after the point; NULL for a text that is none.
    (timestampdiff would depend on the session's time zone.)"""
    moved = f"timestampadd(MICROSECOND, {10 ** (6 - digits) // 2}, try_cast({text} AS TIMESTAMP_NTZ))"
    return f"left(CAST({moved} AS STRING), {_length(digits)})"


def _length(digits: int) -> int:
    """Returns the length of a DATETIME's text with ``digits`` digits after the point."""
    return 19 + bool(digits) + digits


def _datetime_to_date(_before: MysqlType, _after: MysqlType, text: str) -> str:
    """Cuts the time off, as TiDB does, where MySQL rounds it first (``Time.Convert``)."""
    return f"left({text}, 10)"


def _time_to_time(before: MysqlType, after: MysqlType, text: str) -> str:
    had, has = ((*kind.size, 0)[0] for kind in (before, after))
    if has < had:
        return f"CASE WHEN {text} RLIKE '{_TIME}' THEN {_rounded_time(text, has)} END"
    return text if has == had else f"concat({text}, {zeros(had, has)})"


def _rounded_time(text: str, digits: int) -> str:
    """Returns the SQL of a TIME rounded to ``digits`` digits: half up, also below zero (``Duration.RoundFrac``), where
    MySQL rounds half away from zero. The lambdas' variables have reserved names, as in `_text_to_set`."""
    hours, minutes, seconds = (f"split(trim(LEADING '-' FROM {text}), ':')[{part}]" for part in range(3))
    whole = f"CAST({hours} AS BIGINT) * 3600 + CAST({minutes} AS BIGINT) * 60"
    micros = f"CAST(({whole} + CAST({seconds} AS DECIMAL(8,6))) * 1000000 AS BIGINT)"
    step, t = 10 ** (6 - digits), "_ticdc_time"
    moved = f"CASE WHEN {text} LIKE '-%' THEN -1 ELSE 1 END * {micros} + {step // 2}"
    rounded = f"transform(array({moved}), {t} -> {t} - pmod({t}, {step}))"
    sign = f"CASE WHEN {t} < 0 THEN '-' ELSE '' END"
    parts = (f"abs({t}) div 3600000000", f"abs({t}) div 60000000 % 60", f"abs({t}) div 1000000 % 60")
    printed = f"format_string('%s%02d:%02d:%02d.%06d', {sign}, {', '.join(parts)}, abs({t}) % 1000000)"
    kept = f"substr({printed}, 1, length({printed}) - {6 - digits + (digits == 0)})"
    return f"transform({rounded}, {t} -> {kept})[0]"


def zeros(had: int, has: int) -> str:
    """Returns the SQL of what follows a time's text if it gets more digits after the point."""
    return f"'{'' if had or not has else '.'}{'0' * (has - had)}'"


def _names(before: MysqlType, _after: MysqlType, text: str) -> str:
    if not before.elements:
        raise ApplyError(f"the names of {before.text} are not known")
    return text


def _keeps_digits(before: MysqlType, after: MysqlType) -> bool:
    return before.family is after.family and len(before.size) == 2 and before.size[1] <= after.size[1]


def _text_to_enum(_before: MysqlType, after: MysqlType, text: str) -> str:
    """Converts texts that are a name as the type spells it. TiDB also takes other spellings, and numbers."""
    return f"CASE WHEN {text} IN ({_listed(after)}) THEN {text} END"


def _text_to_set(_before: MysqlType, after: MysqlType, text: str) -> str:
    """Converts several names as `_text_to_enum` converts one, in the order of the type. The lambda's variable has a
    reserved name: in the lambda's body Spark would take a column of that name for the variable."""
    parts, names = f"split({text}, ',')", f"array({_listed(after)})"
    ordered = f"array_join(filter({names}, _ticdc_name -> array_contains({parts}, _ticdc_name)), ',')"
    return f"CASE WHEN {text} = '' THEN '' WHEN size(array_except({parts}, {names})) = 0 THEN {ordered} END"


def _listed(kind: MysqlType) -> str:
    if not kind.elements:
        raise ApplyError(f"the names of {kind.text} are not known")
    return ", ".join(map(literal, kind.elements))


def _elements(before: MysqlType, after: MysqlType, text: str) -> str:
    """Keeps the names that stay, whatever their numbers become (``convertToMysqlEnum``, ``convertToMysqlSet``: by
    name); the names of a SET are in the order of the definition."""
    if not before.elements:
        raise ApplyError(f"the names of {before.text} are not known")
    kept = tuple(name for name in after.elements if name in before.elements)
    if after.family is Family.SET and kept != tuple(name for name in before.elements if name in kept):
        return _text_to_set(before, after, text)
    return text if len(kept) == len(before.elements) else names_sql(after, text)


def names_sql(after: MysqlType, text: str) -> str:
    """Returns SQL that keeps the names that an ENUM or SET has, and is NULL for others. Where its collation ignores
    case, TiDB changes the spelling of others."""
    if after.family is Family.ENUM:  # the name of its number 0 is empty
        return f"CASE WHEN {text} = '' OR {text} IN ({_listed(after)}) THEN {text} END"
    return f"CASE WHEN size(array_except(split({text}, ','), array('', {_listed(after)}))) = 0 THEN {text} END"


_CONVERSIONS: dict[tuple[Family, Family], Conversion] = {
    **{(family, family): _same for family in Family},
    **{(a, b): _same for a in _WHOLE for b in (Family.INTEGER, Family.BIT)},
    **{(a, Family.DECIMAL): _to_decimal for a in (*_WHOLE, Family.DECIMAL)},
    **{(a, Family.DECIMAL): _real_to_decimal for a in REAL},
    **{(a, b): _to_real for a in (*_WHOLE, *REAL, Family.DECIMAL, Family.TEXT) for b in REAL},
    **{(Family.DECIMAL, b): _decimal_to_whole for b in (Family.INTEGER, Family.BIT)},
    **{(a, b): _real_to_whole for a in REAL for b in (Family.INTEGER, Family.BIT)},
    **{(a, Family.TEXT): _same for a in (Family.INTEGER, Family.DECIMAL, Family.DATE, Family.DATETIME)},
    **{(a, Family.TEXT): _same for a in (Family.TIME, Family.JSON)},
    (Family.YEAR, Family.TEXT): _year_to_text,
    **{(a, Family.TEXT): _names for a in (Family.ENUM, Family.SET)},
    **{(a, Family.TEXT): _real_to_text for a in REAL},
    (Family.TEXT, Family.TEXT): _text_to_text,
    (Family.TEXT, Family.BINARY): _text_to_binary,
    (Family.BINARY, Family.BINARY): _binary_to_binary,
    (Family.BINARY, Family.TEXT): _binary_to_text,
    (Family.TEXT, Family.INTEGER): _matching(_INTEGER),
    (Family.TEXT, Family.DECIMAL): _text_to_decimal,
    (Family.TEXT, Family.DATE): _text_to_date,
    (Family.TEXT, Family.DATETIME): _text_to_datetime,
    (Family.TEXT, Family.ENUM): _text_to_enum,
    (Family.TEXT, Family.SET): _text_to_set,
    (Family.DATE, Family.DATETIME): _date_to_datetime,
    (Family.DATETIME, Family.DATETIME): _to_datetime,
    (Family.DATETIME, Family.DATE): _datetime_to_date,
    **{(a, b): _datetime_to_number for a in _DATES for b in (Family.INTEGER, Family.DECIMAL, *REAL)},
    (Family.TIMESTAMP, Family.TIMESTAMP): _to_datetime,
    (Family.TIME, Family.TIME): _time_to_time,
    (Family.ENUM, Family.ENUM): _elements,
    (Family.SET, Family.SET): _elements,
}
