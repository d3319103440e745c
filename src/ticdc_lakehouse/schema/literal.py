"""Literals of DDL texts, as MySQL stores them in a column: canonical texts (``event``), ENUM and SET by name."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # from its compiled half, not re-exported

from ticdc_codec.mysql_type import Family, MysqlType, whole_digits, whole_range
from ticdc_lakehouse.schema.tokens import Tokens

Literal = str | bytes | int | Decimal | float | None
"""A quoted text, ``0x…`` or ``b'…'``, a number (whole, with a point, with an exponent), NULL."""

_WORDS: dict[str, int | None] = {"NULL": None, "TRUE": 1, "FALSE": 0}
_MAX_FLOAT = Decimal("3.4028234e38")
_MOST_DIGITS = 307
"""Digits before the point of a number that is written out."""
_EXACT = Context(prec=_MOST_DIGITS + 31)
"""Python rounds to 28 digits otherwise. A scale is at most 30."""
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d*))?)?", re.ASCII)
_DATE_OF_DIGITS = re.compile(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)(?:\.(\d*))?)?", re.ASCII)
_TIME = re.compile(r"(-?)(\d{1,3}):(\d{1,2})(?::(\d{1,2}))?(?:\.(\d*))?", re.ASCII)
_TIME_OF_DIGITS = re.compile(r"(-?)(\d{0,3}?)(\d{0,2}?)(\d{1,2})(?:\.(\d*))?", re.ASCII)
_YEAR = re.compile(r"\d{1,2}|\d{4}", re.ASCII)
_YEARS = range(1901, 2156)
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
_NO_UTF8 = re.compile("[\udc80-\udcff]")
"""Bytes that Python keeps where they are no text."""
_LONGEST_TIME = 838 * 3600 + 59 * 60 + 59
_LONGEST_BINARY = 255


def read_literal(tokens: Tokens) -> Literal:
    """Passes a literal. Raises UnreadableError for anything else."""
    start = tokens.at
    try:
        return _literal(tokens)
    except (ValueError, InvalidOperation):  # the tokenizer takes more for a number than SQL does: 1e, 0x_1
        tokens.at = start
        raise tokens.unreadable("a literal") from None


def _literal(tokens: Tokens) -> Literal:
    if tokens.word() in _WORDS:
        return _WORDS[tokens.take_any(*_WORDS)]
    sign = tokens.take_any("-", "+")
    point = "." if tokens.take(".") else ""
    digits = tokens.number(TokenType.NUMBER)
    if digits is not None:
        return _number_of(f"{sign}{point}{digits}")
    tokens.skip_introducer()
    if (bits := tokens.number(TokenType.BIT_STRING)) is not None:
        return int(bits or "0", 2).to_bytes((len(bits) + 7) // 8, "big")
    if (digits := tokens.number(TokenType.HEX_STRING)) is not None:
        return bytes.fromhex(digits.zfill((len(digits) + 1) // 2 * 2))
    text = tokens.string()
    if text is None or sign or point:
        raise tokens.unreadable("a literal")
    return text


def _number_of(text: str) -> int | Decimal | float:
    """Returns the number, in the type that TiDB keeps for it: in a BIT a whole number is itself, of another one its
    text's bytes count. One beyond 64 bits has a point to it."""
    if "e" in text.lower():
        return float(text)
    return Decimal(text) if "." in text or len(text) > len("18446744073709551615") else int(text)


def read_value(tokens: Tokens) -> Literal:
    """Passes a literal, or one in brackets. Raises UnreadableError for anything else."""
    if tokens.word() != "(":
        return read_literal(tokens)
    inside = tokens.brackets()
    literal = read_literal(inside)
    inside.expect_end()
    return literal


def stored(literal: Literal, kind: MysqlType) -> str | None:
    """Returns the canonical text that a column of type ``kind`` has after the literal is stored in it, None for NULL.

    Raises ValueError where that is uncertain, also for a number beyond the type's range, which TiDB takes from sessions
    without strict mode (#52972).
    """
    if literal is None:
        return None
    match kind.family:
        case Family.INTEGER | Family.BIT:
            return _whole(_bits(literal) if kind.family is Family.BIT else _integer(literal), kind)
        case Family.DECIMAL:
            return _decimal(_number(literal), kind)
        case Family.FLOAT | Family.DOUBLE:
            return _float(_number(literal), kind)
        case Family.YEAR:
            return _year(literal)
        case Family.DATE | Family.DATETIME | Family.TIMESTAMP | Family.TIME:
            return _temporal(_text(_not_bytes(literal)), kind)
        case Family.TEXT:
            return _cut(_text(literal), kind)
        case Family.BINARY:
            return _padded(_bytes(literal), kind).hex()
        case Family.ENUM | Family.SET:
            return _named(literal, kind) if isinstance(literal, str) else _numbered(_integer(literal), kind)
        case _:
            raise ValueError(kind.text)


def zero(kind: MysqlType) -> str:
    """Returns what a NOT NULL column without DEFAULT has in rows that were there before it.

    Raises ValueError for a type of which that is not known. Source: TiDB's GetZeroValue, and for ENUM
    generateOriginDefaultValue.
    """
    match kind.family:
        case Family.DATE | Family.DATETIME | Family.TIMESTAMP:
            return _moment("0000-00-00", "00:00:00", _rounded_fraction("", kind)[1], kind)
        case Family.TIME:
            return f"00:00:00{_rounded_fraction('', kind)[1]}"
        case Family.YEAR:
            return "0000"
        case Family.TEXT | Family.SET:
            return ""
        case Family.BINARY:
            return _padded(b"", kind).hex()
        case Family.ENUM if kind.elements:
            return kind.elements[0]
        case Family.JSON:
            return "null"
        case _:
            return stored(0, kind) or "0"


def _number(literal: str | bytes | float | Decimal) -> Decimal:
    if isinstance(literal, bytes):
        return Decimal(int.from_bytes(literal, "big"))
    if isinstance(literal, str) and not _NUMBER.fullmatch(literal):
        raise ValueError(literal)
    return _sane(Decimal(str(literal)))


def _sane(number: Decimal) -> Decimal:
    """Returns the number, unless writing it out in digits would take pages."""
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        raise ValueError(number)
    return number


def _integer(literal: str | bytes | float | Decimal) -> int:
    """Rounds the number: a half away from zero, that of a number with an exponent to the even neighbour."""
    return int(_number(literal).to_integral_value(ROUND_HALF_EVEN if isinstance(literal, float) else ROUND_HALF_UP))


def _bits(literal: str | bytes | float | Decimal) -> int:
    match literal:
        case int():
            return literal % 2**64
        case bytes():
            return int.from_bytes(literal, "big")
        case _:
            return int.from_bytes(_text(literal).encode(), "big")


def _whole(number: int, kind: MysqlType) -> str:
    low, high = whole_range(kind)
    if not low <= number <= high:
        raise ValueError(number)
    return str(number)


def _check_size(number: Decimal, kind: MysqlType) -> None:
    """Raises ValueError for a number with more digits before the point, and for a negative one that is UNSIGNED."""
    if number.copy_abs() >= Decimal(10) ** whole_digits(kind) or (kind.unsigned and number < 0):
        raise ValueError(number)


def _decimal(number: Decimal, kind: MysqlType) -> str:
    rounded = _rounded(number, kind.scale)
    _check_size(rounded, kind)
    return f"{abs(rounded) if rounded == 0 else rounded:f}"


def _rounded(number: Decimal, scale: int) -> Decimal:
    try:
        return number.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=_EXACT)
    except InvalidOperation:
        raise ValueError(number) from None


def _float(number: Decimal, kind: MysqlType) -> str:
    if len(kind.size) > 1 and _rounded(number, kind.size[1]) != number:  # TiDB rounds what binary makes of it
        raise ValueError(number)
    _check_size(number, kind)
    if kind.family is Family.FLOAT and abs(number) > _MAX_FLOAT:
        raise ValueError(number)
    value = np.float32(float(number)) if kind.family is Family.FLOAT else np.float64(float(number))
    if value == 0:
        return "0"
    if 1e-6 <= abs(float(value)) < 1e21:
        return np.format_float_positional(value, unique=True, trim="-")
    return np.format_float_scientific(value, unique=True, trim="-", exp_digits=2)


def _year(literal: str | bytes | float | Decimal) -> str:
    text = _text(_not_bytes(literal))
    if not _YEAR.fullmatch(text):
        raise ValueError(text)
    if len(text) == 4:
        if int(text) not in (0, *_YEARS):
            raise ValueError(text)
        return text
    return str(int(text) + (2000 if int(text) < 70 else 1900))


def _not_bytes(literal: str | bytes | float | Decimal) -> str | float | Decimal:
    """Returns the literal. Raises ValueError for bytes: what they become in a time is not known, a number or a text."""
    if isinstance(literal, bytes):
        raise ValueError(literal)  # noqa: TRY004  # not a mistake of the caller's
    return literal


def _temporal(text: str, kind: MysqlType) -> str:
    if kind.family is Family.TIME:
        return _time(text, kind)
    match = _DATE.fullmatch(text) or _DATE_OF_DIGITS.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hours, minutes, seconds, fraction = match.groups("")
    date, clock = f"{year}-{month.zfill(2)}-{day.zfill(2)}", f"{hours:0>2}:{minutes:0>2}:{seconds:0>2}"
    carry, fraction = _rounded_fraction(fraction, kind)
    return _moment(*(_next_second(date, clock) if carry else (date, clock)), fraction, kind)


def _time(text: str, kind: MysqlType) -> str:
    match = _TIME.fullmatch(text) or _TIME_OF_DIGITS.fullmatch(text)
    if match is None:
        raise ValueError(text)
    sign, hours, minutes, seconds, fraction = match.groups("0")
    carry, fraction = _rounded_fraction(fraction, kind)
    size = (int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds) + carry
    if size > _LONGEST_TIME:
        raise ValueError(text)
    is_zero = size == 0 and not fraction.strip(".0")
    return f"{'' if is_zero else sign}{size // 3600:02}:{size // 60 % 60:02}:{size % 60:02}{fraction}"


def _next_second(date: str, clock: str) -> tuple[str, str]:
    try:
        date, clock = (datetime.fromisoformat(f"{date} {clock}") + timedelta(seconds=1)).isoformat(" ").split()
    except OverflowError:
        raise ValueError(date) from None
    return date, clock


def _moment(date: str, clock: str, fraction: str, kind: MysqlType) -> str:
    if kind.family is Family.DATE:
        return date
    if kind.family is Family.TIMESTAMP and date != "0000-00-00":
        # It is in the time zone of the session that ran the DDL, which TiCDC does not send.
        raise ValueError(date)
    return f"{date} {clock}{fraction}"


def _rounded_fraction(digits: str, kind: MysqlType) -> tuple[int, str]:
    """Returns the digits after the point of a time, rounded as TiDB does (``ParseFrac``), after the seconds that they
    make."""
    places = kind.digits
    tenths = int(digits[: places + 1].ljust(places + 1, "0")) + 5
    carry, rest = divmod(tenths // 10, 10**places)
    return carry, f".{rest:0{places}}" if places else ""


def _text(literal: str | bytes | float | Decimal) -> str:
    match literal:
        case bytes():  # in the column's character set, which may be the table's
            return literal.decode("ascii")  # a UnicodeDecodeError is a ValueError
        case float():
            return np.format_float_positional(float(_sane(Decimal(literal))), trim="-")
        case Decimal():
            return f"{abs(literal) if literal == 0 else literal:f}"
        case _:
            return str(literal)


def _cut(text: str, kind: MysqlType) -> str:
    if kind.size and "char" in kind.name:
        text = text[: kind.size[0]]
    return text.rstrip(" ") if kind.name == "char" else text


def _bytes(literal: str | bytes | float | Decimal) -> bytes:
    """Returns the bytes of a literal. TiDB itself keeps a DEFAULT as text: each byte that is no UTF-8 becomes
    U+FFFD."""
    if isinstance(literal, bytes):
        return _NO_UTF8.sub("\ufffd", literal.decode(errors="surrogateescape")).encode()
    return _text(literal).encode()


def _padded(data: bytes, kind: MysqlType) -> bytes:
    """Fills BINARY(n) up with zero bytes, but not VARBINARY. Both cut what bytes that are no UTF-8 have become. Raises
    ValueError for a BINARY that is longer than there can be."""
    size = kind.size[0] if kind.size else 1
    match kind.name:
        case "binary" if size > _LONGEST_BINARY:
            raise ValueError(kind.text)
        case "binary":
            return data.ljust(size, b"\0")[:size]
        case "varbinary":
            return data[:size]
        case _:
            return data


def _named(text: str, kind: MysqlType) -> str:
    """Returns elements as the type spells them, those of a SET in its order. Two may differ only in case
    (``utf8mb4_bin``)."""
    spelled = {element.lower(): element for element in kind.elements} | {element: element for element in kind.elements}
    wanted = [text] if kind.family is Family.ENUM else [part for part in text.split(",") if part]
    named = {spelled.get(part, spelled.get(part.lower())) for part in wanted}
    if None in named:
        raise ValueError(text)
    return ",".join(element for element in kind.elements if element in named)


def _numbered(number: int, kind: MysqlType) -> str:
    """Returns the element of an ENUM with this number, from 1 on, or the elements of a SET with these bits."""
    elements = kind.elements
    if kind.family is Family.ENUM and 0 < number <= len(elements):
        return elements[number - 1]
    if kind.family is Family.SET and number >> len(elements) == 0:
        return ",".join(element for at, element in enumerate(elements) if number >> at & 1)
    raise ValueError(number)
