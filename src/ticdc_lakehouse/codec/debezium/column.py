"""A column as one message and, if there is one, a definition describe it: its type, its form, its doubt.

A definition has the digits that no message has (``datetime(3)``, ``decimal(10,2)``), and is the only source of types
where the schema is off. It is taken where it does not gainsay the schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from msgspec import UNSET

from ticdc_lakehouse.codec.debezium.field import Field, type_text
from ticdc_lakehouse.codec.debezium.form import UNKNOWN, Form, form_of, form_of_connect
from ticdc_lakehouse.codec.doubt import DEBEZIUM_DECIMAL, DEBEZIUM_DEFAULT
from ticdc_lakehouse.errors import DecodeError
from ticdc_lakehouse.event import Column
from ticdc_lakehouse.mysql_type import Family, MysqlType, parse_type

UNKNOWN_TYPE = "unknown"
CONNECT_TYPE = "connect "
"""Begins the type of a column that may be of several of MySQL's: ``connect int64``."""

_EXACT_DIGITS = 15
"""Decimal digits that a float64 has for certain."""


@dataclass(frozen=True, slots=True)
class Described:
    """What is known of a column."""

    column: Column
    form: Form


def described(name: str, field: Field | None, defined: Column | None, zone: ZoneInfo, *, key: bool) -> Described:
    """The column of this name. Raises DecodeError ``bad_schema`` for a schema field that TiCDC does not write."""
    text, form = _type(field, defined, zone)
    kind = parse_type(text)
    by = "name" if kind.family in (Family.ENUM, Family.SET) else None
    return Described(Column(name=name, type=text, key=key, by=by, doubt=_doubts(field, kind, key=key)), form)


def _type(field: Field | None, defined: Column | None, zone: ZoneInfo) -> tuple[str, Form]:
    if defined is not None:
        form = form_of(parse_type(defined.type), zone, whole=True)
        if field is None or _agree(form, field):
            return defined.type, form
    if field is None:
        return UNKNOWN_TYPE, UNKNOWN
    text = type_text(field)
    found = form_of_connect(field.type) if text is None else form_of(parse_type(text), zone, whole=False)
    if found is None or not _agree(found, field):
        raise DecodeError(
            "bad_schema", f"{field.field}: unknown type {field.type} {field.name} for tidb_type {field.tidb_type}"
        )
    return text or CONNECT_TYPE + field.type, found


def _agree(form: Form, field: Field) -> bool:
    # Without its digits a FLOAT(M,D), which is a double, is not told from a FLOAT.
    numbers = {"float", "double"}
    return form.name == field.name and (form.connect == field.type or {form.connect, field.type} <= numbers)


def _doubts(field: Field | None, kind: MysqlType, *, key: bool) -> str | None:
    """Without the schema nothing tells which columns have a DEFAULT."""
    digits = kind.size[0] if kind.size else _EXACT_DIGITS + 1
    found = {
        DEBEZIUM_DEFAULT: not key if field is None else field.optional and field.default is not UNSET,
        DEBEZIUM_DECIMAL: kind.family is Family.DECIMAL and digits > _EXACT_DIGITS,
    }
    return " ".join(word for word, holds in found.items() if holds) or None
