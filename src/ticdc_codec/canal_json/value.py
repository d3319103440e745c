"""The texts of values: the few types that Canal-JSON writes in another form than ``event`` (wire.md 1.4.2), both ways.

BINARY, VARBINARY, BLOBs    each byte as the code point of the same number     lower-case hex here
FLOAT, DOUBLE               plain digits, however many                         exponent below 1e-6 and from 1e21 here
YEAR                        as a number: 0                                     four digits here
BIT, ENUM, SET              the number, which is checked to be one             the same
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from ticdc_codec.errors import DecodeError
from ticdc_codec.json_table import Conversion
from ticdc_codec.mysql_type import Family, MysqlType, parse_type
from ticdc_codec.number_text import READERS, WRITERS, are_counts, count_text

Convert = Callable[[str], str]


def is_binary(type_text: str) -> bool:
    """Whether values are bytes spelled in Latin-1: its first word says it (wire.md 1.4.2)."""
    name = parse_type(type_text).name
    return "blob" in name or "binary" in name


def conversion(type_text: str) -> Conversion | None:
    """From the wire's texts of a type to those of ``event``; None if they are always the same."""
    if is_binary(type_text):
        return operator.not_, hex_of
    match parse_type(type_text).family:
        case Family.ENUM | Family.SET:
            return are_counts, count_text
        case family:
            return READERS.get(family)


def to_wire(type_text: str) -> Convert | None:
    """Inverse of ``conversion``: makes the wire's text from the text of ``event``; None if they are the same."""
    if is_binary(type_text):
        return latin1_of
    return WRITERS.get(parse_type(type_text).family)


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


def sql_type(kind: MysqlType) -> int:
    """The JDBC type number of values, but for those above the bound of ``promoted``."""
    return _SQL_TYPE_OF_NAME.get(kind.name, 12)


def promoted(kind: MysqlType) -> tuple[int, int] | None:
    """The value above which the type number is another one, and that number; None if it never is."""
    return _PROMOTED.get(kind.name) if kind.unsigned else None
