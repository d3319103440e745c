"""TiDB's codes of column types and DDL types, and TiCDC's column flags (wire.md 1.2.4, 1.2.5, 3.1, 3.2)."""

from __future__ import annotations

from enum import IntFlag

from ticdc_codec.event import Column
from ticdc_codec.mysql_type import Family, parse_type


class Flag(IntFlag):
    """Column flags. How a value reads depends only on BINARY, HANDLE_KEY and UNSIGNED."""

    BINARY = 0x01
    """Charset ``binary``: set on numbers too, so it means bytes only together with a string type."""
    HANDLE_KEY = 0x02
    GENERATED = 0x04
    PRIMARY_KEY = 0x08
    UNIQUE = 0x10
    MULTIPLE = 0x20
    """In an index that is not unique."""
    NULLABLE = 0x40
    UNSIGNED = 0x80


def flag_names(flags: int) -> list[str]:
    """Returns the names of the flags that are set, in words."""
    return [str(flag.name).lower().replace("_", " ") for flag in Flag if flags & flag]


_INTEGERS = {1: "tinyint", 2: "smallint", 3: "int", 8: "bigint", 9: "mediumint"}
_STRINGS = {
    15: ("varchar", "varbinary"),
    249: ("tinytext", "tinyblob"),
    250: ("mediumtext", "mediumblob"),
    251: ("longtext", "longblob"),
    252: ("text", "blob"),
    253: ("varchar", "varbinary"),
    254: ("char", "binary"),
}
_OTHERS = {
    4: "float",
    5: "double",
    6: "null",
    0: "null",
    7: "timestamp",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
    14: "date",
    16: "bit",
    225: "vector",
    245: "json",
    246: "decimal",
    247: "enum",
    248: "set",
    255: "geometry",
}


def type_of(code: int, flags: int) -> str:
    """Returns MySQL's type text. Raises KeyError for a type code that TiDB does not have."""
    if code in _INTEGERS:
        return f"{_INTEGERS[code]} unsigned" if flags & Flag.UNSIGNED else _INTEGERS[code]
    if code in _STRINGS:
        # BINARY is set on numbers too: only with a string type does it mean bytes (wire.md 1.2.5).
        return _STRINGS[code][bool(flags & Flag.BINARY)]
    return _OTHERS[code]


_CODES = {
    "integer": 3,
    # One way back where several codes have the same name: what TiDB uses for columns of a table.
    **{text: code for code, text in reversed(_OTHERS.items())},
    **{text: code for code, text in _INTEGERS.items()},
    **{text: code for code, both in reversed(_STRINGS.items()) for text in both},
}


def code_of(text: str) -> int:
    """Returns the type code of a MySQL type text. Raises ValueError for a type that TiDB does not have."""
    code = _CODES.get(parse_type(text).name)
    if code is None:
        raise ValueError(f"TiDB has no type code for {text}")
    return code


_CHARACTERS = (Family.TEXT, Family.ENUM, Family.SET)
_ALWAYS_UNSIGNED = (Family.BIT, Family.YEAR)
"""Types whose columns have the flag UNSIGNED whatever their DDL says (YEAR: wire.md 1.2.5)."""


def flags_of(column: Column) -> int:
    """Returns the column's flag bits; where the source has none, those that a reader needs, as TiCDC sets them."""
    if column.flags is not None:
        return column.flags
    kind = parse_type(column.type)
    flags = Flag.HANDLE_KEY if column.key else Flag(0)
    if kind.unsigned or kind.family in _ALWAYS_UNSIGNED:
        flags |= Flag.UNSIGNED
    return flags if kind.family in _CHARACTERS else flags | Flag.BINARY


_DDL_NAMES = {
    **dict.fromkeys((3, 60), "CREATE"),
    **dict.fromkeys((14, 47), "RENAME"),
    **dict.fromkeys((7, 9, 32), "CINDEX"),
    **dict.fromkeys((8, 10, 33), "DINDEX"),
    **dict.fromkeys((5, 6, 12, 13, 15, 17, 18, 19, 20, 22, 23, 37, 38, 41, 61, 64, 71, 72), "ALTER"),
    4: "ERASE",
    11: "TRUNCATE",
}
"""TiDB's DDL type numbers; all others are called QUERY (wire.md 1.3.3, 1.4.4)."""


def ddl_type_name(ddl_type: str | None) -> str:
    """Returns the name of a DDL type in Simple and Canal-JSON; the type may be TiDB's number, a name already, or
    None."""
    name = ddl_type or "QUERY"
    return _DDL_NAMES.get(int(name), "QUERY") if name.isdecimal() else name
