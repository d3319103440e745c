"""Values that a protocol's wire cannot carry, whoever reads it: recorded streams hold some on purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from types import MappingProxyType

from ticdc_codec.mysql_type import Family, MysqlType

Lost = Callable[[MysqlType, str, str | None], bool]
"""Whether the wire makes a column's value (of this type, not NULL) into the other one."""


def _by_debezium(kind: MysqlType, wanted: str, found: str | None) -> bool:
    """docs/protocols/debezium.md, What this wire cannot carry."""
    match kind.family:
        case Family.DECIMAL if found is not None:
            return float(wanted) == float(found)
        case Family.DECIMAL:  # rounded to what the column cannot hold
            whole_digits = kind.digits - sum(kind.size[1:])
            return abs(float(wanted)) >= 10.0**whole_digits
        case Family.DATE | Family.DATETIME:
            return wanted < "0100" or not _is_day(wanted[:10])
        case _:
            return False


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


LOST: Mapping[str, Lost] = MappingProxyType({"debezium": _by_debezium})
"""By protocol; the others carry every value."""
