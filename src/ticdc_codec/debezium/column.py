"""A column as one message and, if there is one, a definition describe it: type, format of its values, defect.

A definition has the digits that no message has (``datetime(3)``, ``decimal(10,2)``), and is the only source of types
where the schema is off. It is used where it does not contradict the schema.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from msgspec import UNSET

from ticdc_codec.debezium.envelope import Field, type_text
from ticdc_codec.debezium.value import UNKNOWN, ValueFormat, format_of, format_of_connect
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, NamedBy
from ticdc_codec.mysql_type import Family, MysqlType, parse_type
from ticdc_codec.writer_defects import DEBEZIUM_DATE, DEBEZIUM_DECIMAL, DEBEZIUM_DECIMAL_KEY, DEBEZIUM_DEFAULT

UNKNOWN_TYPE = "unknown"
CONNECT_TYPE = "connect "
"""Begins the type of a column that may be of several of MySQL's: ``connect int64``."""

_EXACT_DIGITS = 15
"""Decimal digits that a float64 has for certain."""


@dataclass(frozen=True, slots=True)
class SentColumn:
    """What messages say of a column."""

    column: Column
    value_format: ValueFormat


def sent_column(name: str, field: Field | None, defined: Column | None, zone: ZoneInfo, *, key: bool) -> SentColumn:
    """Returns the column of this name. Raises DecodeError ``bad_schema`` for a schema field that TiCDC does not
    write."""
    text, value_format = _type(field, defined, zone)
    # A NULL comes as the column's DEFAULT (wire.md 8.5). Without the schema it is unknown which columns have one.
    default = not key if field is None else field.optional and field.default is not UNSET
    column = Column(name=name, type=text, key=key, defect=DEBEZIUM_DEFAULT if default else None)
    return SentColumn(with_type(column, parse_type(text)), value_format)


def with_type(column: Column, kind: MysqlType) -> Column:
    """Returns the column with a type of which digits, names and days may be wrong, and the writer defects that
    follow."""
    digits = kind.size[0] if kind.size else _EXACT_DIGITS + 1
    of_types = (DEBEZIUM_DATE, DEBEZIUM_DECIMAL, DEBEZIUM_DECIMAL_KEY)
    defects = [word for word in (column.defect or "").split() if word not in of_types]
    if kind.family in (Family.DATE, Family.DATETIME):
        defects.append(DEBEZIUM_DATE)
    if kind.family is Family.DECIMAL and digits > _EXACT_DIGITS:
        defects.append(DEBEZIUM_DECIMAL_KEY if column.key else DEBEZIUM_DECIMAL)
    by: NamedBy | None = "name" if kind.family in (Family.ENUM, Family.SET) else None
    return replace(column, type=kind.text, by=by, defect=" ".join(defects) or None)


def _type(field: Field | None, defined: Column | None, zone: ZoneInfo) -> tuple[str, ValueFormat]:
    if defined is not None:
        kind = parse_type(defined.type)
        value_format = format_of(kind, zone, whole=True)
        if field is None or (_agree(value_format, field) and _is_of_type(kind, field)):
            return defined.type, value_format
    if field is None:
        return UNKNOWN_TYPE, UNKNOWN
    text = type_text(field)
    declared = format_of_connect(field.type) if text is None else format_of(parse_type(text), zone, whole=False)
    if declared is None or not _agree(declared, field):
        raise DecodeError(
            "bad_schema", f"{field.field}: unknown type {field.type} {field.name} for tidb_type {field.tidb_type}"
        )
    return text or CONNECT_TYPE + field.type, declared


def _agree(value_format: ValueFormat, field: Field) -> bool:
    # Without its digits a FLOAT(M,D), which is a double, looks like a FLOAT.
    # The Debezium type (``name``) and the Connect type must both be those of the MySQL type (wire.md 1.5.2).
    numbers = {"float", "double"}
    return value_format.name == field.name and (
        value_format.connect == field.type or {value_format.connect, field.type} <= numbers
    )


def _is_of_type(kind: MysqlType, field: Field) -> bool:
    """True if the schema's ``tidb_type``, if it has one, may have this name in a definition: one from before a DDL may
    have the same Connect type, such as BIGINT and BIGINT UNSIGNED, TEXT and BLOB (wire.md 1.5.2)."""
    if field.tidb_type is None:
        return True
    declared = parse_type(field.tidb_type)
    is_integer = kind.family is Family.INTEGER
    return declared.family is kind.family and (not is_integer or declared.unsigned == kind.unsigned)
