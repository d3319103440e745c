"""A column of every type, with a value and another one."""

from __future__ import annotations

import re

SIXTY_FOUR = ",".join(f"'m{number}'" for number in range(64))
# (column, type, text on the wire, another text)
VALUES: list[tuple[str, str, str | None, str | None]] = [
    ("tiny", "tinyint", "-128", "127"),
    ("flag", "tinyint(1)", "2", "1"),
    ("small", "smallint unsigned", "65535", "65534"),
    ("medium", "mediumint", "-8388608", "0"),
    ("whole", "int unsigned", "4294967295", "0"),
    ("filled", "int(8) unsigned zerofill", "42", "43"),
    ("big", "bigint", str(-(2**63)), str(2**63 - 1)),
    ("huge", "bigint unsigned", str(2**64 - 1), str(2**63)),
    ("amount", "decimal(12,4)", "-1.5000", "-1.5001"),
    ("fine", "decimal(20,8)", "0.00000000", "0.00000001"),
    ("wide", "decimal(65,30)", "1." + "0" * 29 + "1", "1." + "0" * 29 + "2"),
    ("single", "float", "1.5", "1.25"),
    ("real", "double", "-0.001", "-0.0010000000000000002"),
    ("more", "double", "1234567.125", "1234567.25"),
    ("year", "year", "2024", "0000"),
    ("day", "date", "2024-02-29", "0000-00-00"),
    ("moment", "datetime(6)", "9999-12-31 23:59:59.999999", "2024-05-00 00:00:00.000000"),
    ("short", "datetime", "0001-01-01 00:00:00", "0000-00-00 00:00:00"),
    ("noon", "timestamp(3)", "2024-01-01 20:00:00.500", "2024-01-01 20:00:00.501"),
    ("span", "time", "-838:59:59", "00:00:00"),
    ("pause", "time(6)", "10:00:00.500000", "10:00:00.500001"),
    ("letters", "char(8)", "a b", "a B"),
    ("empty", "varchar(99)", "", "N"),
    ("commas", "varchar(99)", "a,1:b,N", "a,1:b,"),
    ("odd", "text", "é😀'\\\n\x01中", "é😀'\\\n\x02中"),
    ("raw", "varbinary(8)", "00ff", "00fe"),
    ("fixed", "binary(4)", "61000000", "62000000"),
    ("blob_", "blob", "", "00"),
    ("kind", "enum('a','b''c')", "b'c", "a"),
    ("flags", "set('x','y','z')", "x,z", ""),
    ("full", f"set({SIXTY_FOUR})", SIXTY_FOUR.replace("'", ""), "m63"),
    ("bits", "bit(64)", str(2**64 - 1), "0"),
    ("few", "bit(8)", "129", "128"),
    ("doc", "json", '{"a": 1.10, "b": [null]}', '{"a": 1.11, "b": [null]}'),
    ("nothing", "int", None, "0"),
]
COLUMNS = [("k", "bigint", "", ""), ("t", "varchar(20)", "", ""), *VALUES]
DECLARED = ", ".join(f"`{name}` {kind}" for name, kind, *_ in COLUMNS)


def sql_value(kind: str, text: str | None) -> str:
    if text is None:
        return "NULL"
    if "binary" in kind or kind == "blob":
        return f"x'{text}'"
    number = re.match(r"(\w*int|bit|decimal|float|double|year)", kind)
    return text if number else "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
