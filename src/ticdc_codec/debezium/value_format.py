"""What a column of one MySQL type is on this wire: its Connect type, how its values are read, and their texts.

The Connect type alone does not determine the MySQL type: ``int64`` is BIGINT, BIGINT UNSIGNED or INT UNSIGNED,
``string`` is text or base64, ``double`` is DOUBLE, DECIMAL or FLOAT(M,D). ``tidb_type`` says it (TiDB extension), or
a definition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from msgspec import Meta, Raw

from ticdc_codec.debezium import value
from ticdc_codec.debezium.value import Texts
from ticdc_codec.mysql_type import Family, MysqlType

_DATE = "io.debezium.time.Date"
_MILLISECONDS = "io.debezium.time.Timestamp"
_MICROSECONDS = "io.debezium.time.MicroTimestamp"
_BITS = "io.debezium.data.Bits"

_INT16 = Annotated[int, Meta(ge=-(1 << 15), lt=1 << 15)]
_INT32 = Annotated[int, Meta(ge=-(1 << 31), lt=1 << 31)]
_INT64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_DAYS = Annotated[int, Meta(ge=-719_162, le=2_932_896)]
"""From year 1 to 9999."""
_MILLIS = Annotated[int, Meta(ge=-62_135_596_800_000, le=253_402_300_799_999)]
_MICROS = Annotated[int, Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)]
_CLOCK = Annotated[int, Meta(ge=-3_020_399_999_999, le=3_020_399_999_999)]
"""-838:59:59 to 838:59:59."""
_YEAR = Annotated[int, Meta(ge=0, le=2155)]


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """How values of one column are written on the wire."""

    connect: str
    """Type of the schema field: ``int16``."""
    name: str | None
    """Name of the schema field, its Debezium type; None if it has none."""
    read: Any
    """What msgspec reads a value as; null is read beside it, or is within ``Raw``."""
    texts: Callable[[Any], Texts]
    """A list of values that are not null to those of ``event``. Raises DecodeError."""


UNKNOWN = ValueFormat("", None, Raw, value.scalars)
"""Values of a type that neither the message nor a definition gives: the wire's own texts."""

_TEXT = ValueFormat("string", None, str, value.texts)
_NAMES = {
    Family.ENUM: "io.debezium.data.Enum",
    Family.SET: "io.debezium.data.EnumSet",
    Family.JSON: "io.debezium.data.Json",
    Family.VECTOR: "io.debezium.data.TiDBVectorFloat32",
}
_INTEGERS = {
    ("tinyint", False): ("int16", _INT16),
    ("tinyint", True): ("int16", _INT16),
    ("smallint", False): ("int16", _INT16),
    ("bigint", False): ("int64", _INT64),
    ("bigint", True): ("int64", _INT64),
    ("int", True): ("int64", _INT64),
    ("integer", True): ("int64", _INT64),
}
"""All others are int32."""
_SIMPLE = {
    Family.DOUBLE: ValueFormat("double", None, Raw, value.floats),
    Family.BINARY: ValueFormat("string", None, bytes, value.hexadecimal),
    Family.DATE: ValueFormat("int32", _DATE, _DAYS, value.dates),
    Family.YEAR: ValueFormat("int32", "io.debezium.time.Year", _YEAR | str, value.years),
}


def format_of(kind: MysqlType, zone: ZoneInfo, *, whole: bool) -> ValueFormat:
    """The format of values of a column of this type (wire.md 1.5.2).

    ``whole`` says that the type is as SHOW COLUMNS prints it, so that no brackets mean no digits after the point, and
    not that they are unknown.
    """
    fsp = kind.size[0] if kind.size else 0 if whole else None
    match kind.family:
        case Family.INTEGER:
            return _integer(kind)
        case Family.FLOAT:
            return ValueFormat("double" if len(kind.size) > 1 else "float", None, Raw, value.singles)
        case Family.DECIMAL:
            return ValueFormat("double", None, Raw, value.decimals(_scale(kind, whole=whole)))
        case Family.BIT:
            return _bits(kind.size[0] if kind.size else 1)
        case Family.DATETIME if (fsp or 0) > 3:
            return ValueFormat("int64", _MICROSECONDS, _MICROS, value.datetimes("us", fsp))
        case Family.DATETIME:
            return ValueFormat("int64", _MILLISECONDS, _MILLIS, value.datetimes("ms", fsp))
        case Family.TIMESTAMP:
            return ValueFormat("string", "io.debezium.time.ZonedTimestamp", str, value.instants(zone, fsp))
        case Family.TIME:
            return ValueFormat("int64", "io.debezium.time.MicroTime", _CLOCK, value.times(fsp))
        case _ if kind.family in _SIMPLE:
            return _SIMPLE[kind.family]
        case _:
            return ValueFormat("string", _NAMES.get(kind.family), str, value.texts)


def _integer(kind: MysqlType) -> ValueFormat:
    connect, read = _INTEGERS.get((kind.name, kind.unsigned), ("int32", _INT32))
    return ValueFormat(
        connect, None, read, value.unsigned if kind.name == "bigint" and kind.unsigned else value.integers
    )


def _scale(kind: MysqlType, *, whole: bool) -> int | None:
    if len(kind.size) > 1:
        return kind.size[1]
    return 0 if whole or kind.size else None


def _bits(size: int) -> ValueFormat:
    return (
        ValueFormat("boolean", None, bool, value.flags)
        if size == 1
        else ValueFormat("bytes", _BITS, bytes, value.bits(size))
    )


_READ_OF_CONNECT = {"int16": _INT16, "int32": _INT32, "int64": _INT64}


def format_of_connect(connect: str) -> ValueFormat | None:
    """The format of a nameless field whose MySQL type is not known for certain; None if there is no such field."""
    if connect in _READ_OF_CONNECT:
        return ValueFormat(connect, None, _READ_OF_CONNECT[connect], value.integers)
    return {"double": _SIMPLE[Family.DOUBLE], "string": _TEXT}.get(connect)
