"""Rows that do not store a column: those from before its ADD COLUMN that were not written since, and those with NULL
in a column without DEFAULT. They show the column's origin default (`ColumnDefinition.origin_default`).

A MODIFY to a type that has all values of the old one leaves them as they are. For any other one TiDB writes all rows
again; the origin default is NULL then. Since 8.5.5 it does not if no value changes, in strict mode and without
partitions: an integer or text of a smaller type (ddl/modify_column.go, ``getModifyColumnType`` and
``noReorgDataStrict``). The column then gets the DEFAULT of the statement as its origin default, else NULL or the zero
value, and these rows show it. So do they show a CHAR's with the spaces at its end once the column is no CHAR. No
message says which version of TiDB runs, nor in which mode.
"""

from __future__ import annotations

import re
from dataclasses import replace
from operator import ge

from ticdc_codec.mysql_type import Family, MysqlType, same_type, whole_range
from ticdc_lakehouse.schema.definition import ColumnDefinition

_CHARACTERS = ("char", "varchar")
_STRINGS = (Family.TEXT, Family.BINARY)
_FIXED, _VARYING = ("char", "binary"), ("varchar", "varbinary")
_LENGTHS = {"tiny": 2**8 - 1, "": 2**16 - 1, "medium": 2**24 - 1, "long": 2**32 - 1}
"""Of texts and blobs."""
_UNKNOWN = re.compile(r"of \d+")
UNKNOWN_ORIGIN_DEFAULT = "of 0"
"""Of a MODIFY that does not show it."""


def unknown_origin_default(since: int) -> str:
    """Returns `ColumnDefinition.origin_default` of a column whose ADD COLUMN at this commit_ts does not show it."""
    return f"of {since}"


def is_known(origin_default: str) -> bool:
    """True if it is a value's text."""
    return _UNKNOWN.fullmatch(origin_default) is None


def have_same_origin_default(one: ColumnDefinition, other: ColumnDefinition) -> bool:
    """True if two columns are known to have one origin default."""
    is_sure = not (one.may_be_rewritten or other.may_be_rewritten)
    return is_sure and one.origin_default == other.origin_default != UNKNOWN_ORIGIN_DEFAULT


def with_origin_default(before: ColumnDefinition, modified: ColumnDefinition) -> ColumnDefinition:
    """Returns a column after a MODIFY that does not block its table, with its origin default."""
    if _may_stay(before, modified):
        # Rows that show another one than before have blocked the table.
        kept = before.origin_default if have_same_origin_default(before, modified) else None
        is_sure = before.origin_default is modified.origin_default is None and not before.may_be_rewritten
        return replace(modified, origin_default=kept, may_be_rewritten=not is_sure)
    if not _has_all_values(before.type, modified.type):
        return replace(modified, origin_default=None, may_be_rewritten=False)
    kept = _in_type(before.origin_default, before.type, modified.type)
    becomes_varying = before.type.name in _FIXED and modified.type.name in _VARYING
    may_be_rewritten = before.may_be_rewritten or (becomes_varying and kept is not None)
    return replace(modified, origin_default=kept, may_be_rewritten=may_be_rewritten)


def _in_type(origin_default: str | None, before: MysqlType, after: MysqlType) -> str | None:
    """Returns an origin default as a column has it that keeps it in a new type."""
    if origin_default is None or before.family is after.family or not is_known(origin_default):
        return origin_default
    if after.family is Family.BINARY:
        return origin_default.encode().hex()
    try:
        return bytes.fromhex(origin_default).decode()
    except UnicodeDecodeError:
        return UNKNOWN_ORIGIN_DEFAULT


def _has_all_values(before: MysqlType, after: MysqlType) -> bool:
    """True if a type has all values of another one, in the same bytes."""
    if before.family in _STRINGS and after.family in _STRINGS:
        return _has_all_strings(before, after)
    if before.family is not after.family or before.unsigned is not after.unsigned:
        return False
    match before.family:
        case Family.INTEGER:
            return whole_range(after)[1] >= whole_range(before)[1]
        case Family.ENUM | Family.SET:
            return after.elements[: len(before.elements)] == before.elements
        case Family.FLOAT | Family.DOUBLE:
            return all(map(ge, _float_size(after), _float_size(before)))
        case Family.DECIMAL | Family.VECTOR:
            return same_type(before, after)
        case _:
            return after.digits >= before.digits


def _has_all_strings(before: MysqlType, after: MysqlType) -> bool:
    if after.name in _FIXED and before.name == "binary":
        return after.digits == before.digits
    if after.name in _FIXED and before.name in _VARYING:
        return False
    return _length(after) >= _length(before)


def _length(kind: MysqlType) -> int:
    return _LENGTHS.get(kind.name.removesuffix("text").removesuffix("blob"), kind.digits)


def _float_size(kind: MysqlType) -> tuple[int, int]:
    """Returns the digits of a FLOAT or DOUBLE, and those after the point, as TiDB has them (GetDefaultFieldLength)."""
    usual = (12 if kind.family is Family.FLOAT else 22), -1
    return (kind.digits, kind.scale) if len(kind.size) == len(usual) else usual


def may_show_default(before: ColumnDefinition, modified: ColumnDefinition, *, partitioned: bool) -> bool:
    """True if a MODIFY may give rows that do not store the column another value than its conversion does."""
    if _shows_spaces(before, modified.type):
        return True
    return not partitioned and _may_stay(before, modified) and not have_same_origin_default(before, modified)


def _may_stay(before: ColumnDefinition, modified: ColumnDefinition) -> bool:
    """True if TiDB since 8.5.5 may not write rows again that earlier versions do."""
    return _is_smaller_integer(before.type, modified.type) or _is_other_text(before, modified)


def _shows_spaces(before: ColumnDefinition, after: MysqlType) -> bool:
    """True for a CHAR that becomes another string and whose origin default ends with spaces, or is not known."""
    first = before.origin_default
    is_padded = before.type.name == "char" and first is not None and (first.endswith(" ") or not is_known(first))
    return is_padded and after.family in _STRINGS and after.name != "char"


def _is_smaller_integer(before: MysqlType, after: MysqlType) -> bool:
    if (before.family, after.family) != (Family.INTEGER, Family.INTEGER) or before.unsigned is not after.unsigned:
        return False
    return whole_range(after)[1] < whole_range(before)[1]


def _is_other_text(before: ColumnDefinition, after: ColumnDefinition) -> bool:
    """True for a CHAR or VARCHAR that becomes the other or shorter."""
    names = before.type.name, after.type.name
    if not all(name in _CHARACTERS for name in names):
        return False
    return names[0] != names[1] or not before.sized or after.type.digits < before.type.digits
