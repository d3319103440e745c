"""Values that MySQL's types have, as SQL on MySQL's own texts: what a change of a column's type may not keep."""

from __future__ import annotations

from ticdc_codec.mysql_type import Family, MysqlType, whole_digits, whole_range

REAL = (Family.FLOAT, Family.DOUBLE)
CHARACTERS = ("char", "varchar")
_ROOM = {
    f"{size}{kind}": (1 << bits) - 1
    for size, bits in (("tiny", 8), ("", 16), ("medium", 24), ("long", 32))
    for kind in ("text", "blob")
}
"""The most bytes of a value."""


def is_value_sql(before: MysqlType, after: MysqlType, text: str) -> str:
    """Returns the SQL condition that a converted text is a value of the new type, as far as its conversion and Spark's
    type let others pass; ``true`` if there are none. Without strict mode TiDB changes a value that is not, and a
    negative number that becomes a BIT in any mode."""
    match after.family:
        case Family.INTEGER | Family.BIT if not _is_within(before, after):
            low, high = whole_range(after)
            return f"try_cast({text} AS DECIMAL(38,0)) BETWEEN {low} AND {high}"
        case Family.DECIMAL | Family.FLOAT | Family.DOUBLE:
            return _is_number_sql(before, after, f"try_cast({text} AS DOUBLE)")
        case Family.TEXT | Family.BINARY if not _has_room(before, after):
            return _is_short_sql(after, text)
        case Family.DATETIME | Family.TIMESTAMP if before.family is Family.TEXT or after.digits < before.digits:
            return f"{text} NOT LIKE '+%'"
        case _:
            return "true"


def _is_within(before: MysqlType, after: MysqlType) -> bool:
    if before.family not in (Family.INTEGER, Family.BIT):
        return False
    (had_low, had_high), (low, high) = whole_range(before), whole_range(after)
    return low <= had_low and had_high <= high


def _is_number_sql(before: MysqlType, after: MysqlType, number: str) -> str:
    """Returns the condition that a number fits: FLOAT(M,D) and DOUBLE(M,D) have M - D digits before the point, UNSIGNED
    nothing below 0."""
    conditions = [f"{number} >= 0"] if after.unsigned and not before.unsigned else []
    if after.family in REAL and len(after.size) == 2 and whole_digits(before) > whole_digits(after):
        conditions.append(f"abs({number}) < 1e{whole_digits(after)}")
    return " AND ".join(conditions) or "true"


def _has_room(before: MysqlType, after: MysqlType) -> bool:
    """True if a text or binary type has room for all of another; a conversion to CHAR and VARCHAR cuts texts itself."""
    if before.family is Family.TEXT and after.name in CHARACTERS:
        return True
    return before.family in (Family.TEXT, Family.BINARY) and _most_bytes(before) <= _most_bytes(after)


def _most_bytes(kind: MysqlType) -> int:
    if kind.name in _ROOM:
        return _ROOM[kind.name]
    return kind.size[0] * (4 if kind.name in CHARACTERS else 1) if kind.size else _ROOM["longtext"]


def _is_short_sql(after: MysqlType, text: str) -> str:
    """Returns the condition that a text is not too long; binary is in hex."""
    if after.family is Family.BINARY:
        return f"length({text}) <= {2 * _most_bytes(after)}"
    if after.name in CHARACTERS:
        return f"char_length({text}) <= {after.size[0]}"
    return f"octet_length({text}) <= {_ROOM[after.name]}"
