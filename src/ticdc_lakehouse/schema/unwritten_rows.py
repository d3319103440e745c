"""Rows that do not store a column: those from before its ADD COLUMN that were not written since, and those with NULL
in a column without DEFAULT. They show the column's origin default (`ColumnDefinition.origin_default`).

A MODIFY that may change values gives the column a new one: the DEFAULT of its own text, else NULL or the zero value.
TiDB writes all rows again before that. Since 8.5.5 it does not if no value changes, in strict mode and without
partitions: an integer or text of a smaller type (ddl/modify_column.go, ``getModifyColumnType`` and
``noReorgDataStrict``). Rows that do not store the column then show the new one, and a CHAR's with the spaces at its end
once the column is no CHAR. No message says which version of TiDB runs, nor in which mode.
"""

from __future__ import annotations

import re

from ticdc_codec.mysql_type import Family, MysqlType, whole_range
from ticdc_lakehouse.schema.definition import ColumnDefinition

_CHARACTERS = ("char", "varchar")
_UNKNOWN = re.compile(r"of \d+")
UNKNOWN_ORIGIN_DEFAULT = "of 0"
"""Of a MODIFY that does not show it."""


def unknown_origin_default(since: int) -> str:
    """Returns `ColumnDefinition.origin_default` of a column whose ADD COLUMN at this commit_ts does not show it."""
    return f"of {since}"


def is_known(origin_default: str) -> bool:
    """True if it is a value's text."""
    return _UNKNOWN.fullmatch(origin_default) is None


def may_show_default(before: ColumnDefinition, modified: ColumnDefinition, *, partitioned: bool) -> bool:
    """True if a MODIFY may give rows that do not store the column another value than its conversion does."""
    if _shows_spaces(before, modified.type):
        return True
    may_stay = not partitioned and (_is_smaller_integer(before.type, modified.type) or _is_other_text(before, modified))
    return may_stay and before.origin_default != modified.origin_default


def _shows_spaces(before: ColumnDefinition, after: MysqlType) -> bool:
    is_padded = before.type.name == "char" and (before.origin_default or "").endswith(" ")
    return is_padded and after.family is Family.TEXT and after.name != "char"


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
