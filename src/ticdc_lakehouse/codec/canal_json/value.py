"""The texts of values: the few types that Canal-JSON writes in another form than ``event`` (wire.md 1.4.2), both ways.

BINARY, VARBINARY, BLOBs    each byte as the code point of the same number     lower-case hex here
FLOAT, DOUBLE               plain digits, however many                         exponent below 1e-6 and from 1e21 here
YEAR                        as a number: 0                                     four digits here
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from ticdc_lakehouse.errors import DecodeError
from ticdc_lakehouse.mysql_type import Family, MysqlType, parse_type

Convert = Callable[[str], str]

_PLAIN = re.compile(r"-?(?!0\.000000)(?:0|[1-9]\d{0,20})(?:\.\d+)?", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_YEAR = re.compile(r"\d{4}", re.ASCII)
_SHORT_YEAR = re.compile(r"\d{1,4}", re.ASCII)
_NOTHING = re.compile(r"(?!)")


def is_binary(type_text: str) -> bool:
    """Whether values are bytes spelled in Latin-1: its first word says it (wire.md 1.4.2)."""
    name = parse_type(type_text).name
    return "blob" in name or "binary" in name


def converter(type_text: str) -> tuple[Callable[[str], object], Convert] | None:
    """What says that a text of this type is ``event``'s as it stands, and what makes it so; None if it always is."""
    if is_binary(type_text):
        return _NOTHING.fullmatch, hex_of
    plain = (_PLAIN.fullmatch, float_text)
    changes: dict[Family, tuple[Callable[[str], object], Convert]] = {
        Family.FLOAT: plain,
        Family.DOUBLE: plain,
        Family.YEAR: (_YEAR.fullmatch, year_text),
    }
    return changes.get(parse_type(type_text).family)


def wire_converter(type_text: str) -> Convert | None:
    """The other way round."""
    if is_binary(type_text):
        return latin1_of
    return {Family.FLOAT: plain_text, Family.DOUBLE: plain_text, Family.YEAR: short_year}.get(
        parse_type(type_text).family
    )


def hex_of(text: str) -> str:
    """The bytes behind a text of code points 0 to 255. Raises DecodeError above."""
    try:
        return text.encode("latin-1").hex()
    except UnicodeEncodeError as error:
        found = ord(text[error.start])
        raise DecodeError("bad_value", f"expected a byte, a code point to 255, found U+{found:04X}") from None


def latin1_of(digits: str) -> str:
    """Each byte as the code point of the same number."""
    return bytes.fromhex(digits).decode("latin-1")


def float_text(text: str) -> str:
    """Plain digits from 1e-6 up to below 1e21, else an exponent: ``1e-07``; the digits stay those of the wire."""
    if not _NUMBER.fullmatch(text):
        raise DecodeError("bad_value", f"expected a number in decimal digits, found {text[:40]!r}")
    sign, digits, exponent = Decimal(text).as_tuple()
    return _rendered(sign, "".join(map(str, digits)).lstrip("0"), int(exponent))


def _rendered(sign: int, digits: str, exponent: int) -> str:
    minus = "-" if sign else ""
    if not digits:
        return f"{minus}0"
    power = len(digits) + exponent - 1
    if -6 <= power < 21:
        return f"{minus}{Decimal(f'{digits}e{exponent}'):f}"
    digits = digits.rstrip("0")
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{minus}{digits[0]}{fraction}e{power:+03d}"


def plain_text(text: str) -> str:
    """A number in plain digits, as the wire has it."""
    return f"{Decimal(text):f}" if "e" in text else text


def year_text(text: str) -> str:
    """Four digits."""
    if not _SHORT_YEAR.fullmatch(text):
        raise DecodeError("bad_value", f"expected a year, found {text[:40]!r}")
    return text.zfill(4)


def short_year(text: str) -> str:
    """A year without leading zeros: the year 0 is ``0``."""
    return text.lstrip("0") or "0"


# wire.md 1.4.2; java.sql.Types.
_SQL_TYPE_OF_NAME = {
    "tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "float": 7, "double": 8, "decimal": 3,
    "bit": -7, "char": 1, "varchar": 12, "binary": 2004, "varbinary": 2004,
    "tinytext": 2005, "text": 2005, "mediumtext": 2005, "longtext": 2005,
    "tinyblob": 2004, "blob": 2004, "mediumblob": 2004, "longblob": 2004,
    "date": 91, "time": 92, "datetime": 93, "timestamp": 93, "year": 12, "enum": 4, "set": -7, "json": 12, "vector": 12,
    "null": 0,
}  # fmt: skip
_PROMOTED = {"tinyint": (127, 5), "smallint": (32767, 4), "int": (2**31 - 1, -5), "bigint": (2**63 - 1, 3)}
"""An unsigned value above the bound has the next larger type's number; MEDIUMINT fits INTEGER as it is."""


def sql_type(kind: MysqlType, text: str | None) -> int:
    """The JDBC type number of one value."""
    number = _SQL_TYPE_OF_NAME.get(kind.name, 12)
    if kind.unsigned and text is not None and kind.name in _PROMOTED:
        bound, larger = _PROMOTED[kind.name]
        return larger if int(text) > bound else number
    return number
