"""MySQL column types as TiDB writes them: ``bigint(20) unsigned``, ``decimal(10,2)``, ``enum('a','b''c')``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache


class Family(Enum):
    """Types whose values have the same text form (``event`` docstring)."""

    INTEGER = auto()
    FLOAT = auto()
    DOUBLE = auto()
    DECIMAL = auto()
    BIT = auto()
    YEAR = auto()
    DATE = auto()
    DATETIME = auto()
    TIMESTAMP = auto()
    TIME = auto()
    TEXT = auto()
    BINARY = auto()
    ENUM = auto()
    SET = auto()
    JSON = auto()
    VECTOR = auto()
    OTHER = auto()


_MAY_BE_TWO = re.compile(r"\\[0nr]")
_FAMILY_OF_NAME = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "integer", "bigint"), Family.INTEGER),
    **dict.fromkeys(("decimal", "numeric", "dec", "fixed"), Family.DECIMAL),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), Family.TEXT),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), Family.BINARY),
    "bool": Family.INTEGER,
    "boolean": Family.INTEGER,
    "float": Family.FLOAT,
    "double": Family.DOUBLE,
    "real": Family.DOUBLE,
    "bit": Family.BIT,
    "year": Family.YEAR,
    "date": Family.DATE,
    "datetime": Family.DATETIME,
    "timestamp": Family.TIMESTAMP,
    "time": Family.TIME,
    "enum": Family.ENUM,
    "set": Family.SET,
    "json": Family.JSON,
    "vector": Family.VECTOR,
}

_OTHER_NAMES = {
    **dict.fromkeys(("bool", "boolean"), "tinyint"),
    **dict.fromkeys(("numeric", "dec", "fixed"), "decimal"),
    "integer": "int",
    "real": "double",
}
_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_USUAL_SIZES = {"decimal": (10, 0), "bit": (1,), "char": (1,), "binary": (1,)}
_MORE_DIGITS = 400
_FLOAT_BITS = 24
"""Most bits that FLOAT(bits) may ask for and be a FLOAT."""

_TYPE = re.compile(
    r"\s*(?P<name>[a-z]+)\b\s*(?:<\s*float\s*>\s*)?(?:\((?P<inside>.*)\))?(?P<rest>[^()]*)$", re.DOTALL | re.IGNORECASE
)
_KNOWN = re.compile(r"[a-z]+(<float>)?(\(.+\))?( unsigned)?( zerofill)?", re.DOTALL)
_MOST_DIGITS = 18
"""Digits of a size: a text with more is no type of TiDB, and Python makes no number of more than 4,300."""
_ELEMENT = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(r"''|\\(.)", re.DOTALL)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlType:
    """A parsed type text."""

    text: str
    name: str
    """Lower-case first word: ``bigint``."""
    family: Family
    size: tuple[int, ...] = ()
    """Numbers in brackets: display width, length, fraction digits, or (precision, scale). Empty where the text has
    none."""
    unsigned: bool = False
    elements: tuple[str, ...] = ()
    """Names of an ENUM or SET; empty where the text does not list them."""

    @property
    def digits(self) -> int:
        """The number in brackets, 0 where there is none: digits after the point of a time, bits of a BIT."""
        return self.size[0] if self.size else 0

    @property
    def scale(self) -> int:
        """Digits after the point of a DECIMAL: none where the text has no second number."""
        return self.size[1] if len(self.size) > 1 else 0


@lru_cache(maxsize=4096)
def parse_type(text: str) -> MysqlType:
    """Parses a type text; an unknown type has the family OTHER, never an error."""
    match = _TYPE.match(text)
    if match is None:
        return MysqlType(text=text, name=text.lower(), family=Family.OTHER)
    name = match["name"].lower()
    inside = match["inside"] or ""
    family = _FAMILY_OF_NAME.get(name, Family.OTHER)
    named = family in (Family.ENUM, Family.SET)
    numbers = [] if named else re.findall(r"\d+", inside)
    if any(len(number) > _MOST_DIGITS for number in numbers):
        return MysqlType(text=text, name=name, family=Family.OTHER)
    return MysqlType(
        text=text,
        name=name,
        family=family,
        size=tuple(map(int, numbers)),
        unsigned="unsigned" in match["rest"].lower() or "zerofill" in match["rest"].lower(),
        elements=tuple(_unquoted(element) for element in _ELEMENT.findall(inside)) if named else (),
    )


def is_known(text: str) -> bool:
    """True if it is a name that TiDB has for a type, with or without its size; a column of a view is
    ``unspecified``."""
    named = _KNOWN.fullmatch(text) is not None and family_of(text) is not Family.OTHER
    return named or text in ("null", "unspecified")


def same_type(one: MysqlType, other: MysqlType) -> bool:
    """True if two texts mean one type: ``INT`` and ``int(11)``, ``decimal`` and ``DECIMAL(10,0)``."""
    return _meaning(one) == _meaning(other)


def whole_range(kind: MysqlType) -> tuple[int, int]:
    """Returns the least and the greatest value of an integer type or a BIT."""
    if kind.family is Family.BIT:
        return 0, (1 << (kind.digits or 64)) - 1
    count = 1 << _INTEGER_BITS[_OTHER_NAMES.get(kind.name, kind.name)]
    return (0, count - 1) if kind.unsigned else (-count // 2, count // 2 - 1)


def whole_digits(kind: MysqlType) -> int:
    """Returns the most digits before the point of a DECIMAL, FLOAT(M,D) or DOUBLE(M,D); of other types, and where the
    text has no size, more than any number has."""
    sizes = {Family.DECIMAL: (1, 2), Family.FLOAT: (2,), Family.DOUBLE: (2,)}.get(kind.family, ())
    return kind.digits - kind.scale if len(kind.size) in sizes else _MORE_DIGITS


def sized(kind: MysqlType) -> MysqlType:
    """Returns the type of a column that a DDL declares so: ``DECIMAL`` and ``DECIMAL(0)`` are ``DECIMAL(10,0)`` there,
    and ``FLOAT(25)`` is ``DOUBLE``."""
    if kind.family is Family.FLOAT and len(kind.size) == 1:
        name = "float" if kind.digits <= _FLOAT_BITS else "double"
        return parse_type(name + _without_size(kind.text)[len(kind.name) :])
    size = _USUAL_SIZES.get(_OTHER_NAMES.get(kind.name, kind.name))
    given = any(kind.size) if kind.family is Family.DECIMAL else kind.size
    if given or size is None:
        return kind
    text = _without_size(kind.text)
    word = text.split()[0]
    return parse_type(f"{word}({','.join(map(str, size))}){text[len(word) :]}")


def _without_size(text: str) -> str:
    return re.sub(r"\s*\(.*\)", "", text)


def _meaning(kind: MysqlType) -> tuple[object, ...]:
    name = _OTHER_NAMES.get(kind.name, kind.name)
    if kind.family is Family.OTHER:
        return (kind.text.lower(),)
    size = () if kind.family in (Family.INTEGER, Family.YEAR) else kind.size or _USUAL_SIZES.get(name, (0,))
    if kind.family is Family.DECIMAL and len(size) == 1:
        size = (*size, 0)
    return name, size, kind.unsigned, kind.elements


def family_of(text: str) -> Family:
    """Returns the family of a type text."""
    return parse_type(text).family


def _unquoted(element: str) -> str:
    """Returns the name inside an ENUM's quotes: ``''`` is one quote, a backslash escapes as in any MySQL string."""
    return _ESCAPED.sub(lambda m: "'" if m[1] is None else _ESCAPES.get(m[1], m[1]), element)


def quoted_element(name: str) -> str:
    """Returns a name as it is written in the brackets of an ENUM or SET; `parse_type` reads it back."""
    escaped = name.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def may_be_two(printed: str) -> bool:
    """True if a name of an ENUM or SET, as TiDB prints it, may be either of two: a line end is printed as ``\\n``, just
    as a backslash and an n are (``OutputFormat`` of its parser); CR and NUL likewise."""
    return _MAY_BE_TWO.search(printed) is not None
