"""What a column of one MySQL type is on this wire: its Connect type, how its values are read (``ValueFormat``), and
whole columns of JSON values to the texts of ``event`` (wire.md 1.5.2). Values are never null here; all functions raise
DecodeError ``bad_value`` or ``wrong_type`` for a value that its type cannot have.

    BIGINT UNSIGNED     int64, two's complement                      the number
    FLOAT, DOUBLE       a number's text                              exponent below 1e-6 and from 1e21, as in ``event``
    DECIMAL             a float64's text                             plain digits, filled up to the scale if it is known
    BIT(1), BIT(n)      true; base64 of little-endian bytes          a decimal integer
    DATE                days since 1970-01-01
    DATETIME            ms or us since then, as if in UTC            with the digits of fsp, else with those needed
    TIME                us, negative too                             the same
    TIMESTAMP           2024-01-01T00:00:00.123Z                     in the feed's zone
    YEAR                a number                                     four digits

The Connect type alone does not determine the MySQL type: ``int64`` is BIGINT, BIGINT UNSIGNED or INT UNSIGNED,
``string`` is text or base64, ``double`` is DOUBLE, DECIMAL or FLOAT(M,D). ``tidb_type`` says it (TiDB extension), or
a definition.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta, Raw

from ticdc_codec.errors import DecodeError
from ticdc_codec.local_time import is_own
from ticdc_codec.mysql_type import Family, MysqlType
from ticdc_codec.number_text import float_text, is_plain, single_text

Texts = list[str | None]

_OF_NUMBERS = b"+-.0123456789Eenul,"
"""The characters of numbers, ``null`` and commas: no other JSON value consists of only these."""
_STRINGS = msgspec.json.Decoder(Texts)
_SCALARS = msgspec.json.Decoder(list[str | bool | int | None])
_PLAIN_DIGITS = 21
"""Characters of a number that is surely below 1e21."""
_HOUR = 3_600_000_000
_ZONED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)
_NO_TIME = re.compile(r"1970-01-01T00:00:00(?:\.0+)?Z", re.ASCII)


def integers(values: list[int]) -> Texts:
    """Returns the decimal digits of INT and the like, and of BIGINT."""
    return [*map(str, values)]


def unsigned(values: list[int]) -> Texts:
    """Returns the texts of BIGINT UNSIGNED: negative numbers mean those from 2^63 (wire.md 1.5.2)."""
    return [str(value % (1 << 64)) for value in values] if min(values) < 0 else integers(values)


def years(values: list[int | str]) -> Texts:
    """Returns the texts of YEAR, a number. For a NULL tiflow writes the column's default, as a string (wire.md 8.5)."""
    return [None if isinstance(value, str) else f"{value:04}" for value in values]


def flags(values: list[bool]) -> Texts:
    """Returns the texts of BIT(1), ``1`` and ``0``."""
    return ["1" if value else "0" for value in values]


def bits(size: int) -> Callable[[list[bytes]], Texts]:
    """Returns the reader of BIT(size): the decimal integer of little-endian bytes. The reader raises DecodeError for
    another number of bytes or bits."""

    def convert(values: list[bytes]) -> Texts:
        numbers = [int.from_bytes(value, "little") for value in values]
        if {*map(len, values)} - {(size + 7) // 8} or max(numbers) >> size:
            raise DecodeError("bad_value", f"expected {size} bits in the fewest bytes, found {max(values).hex()}")
        return [*map(str, numbers)]

    return convert


def hexadecimal(values: list[bytes]) -> Texts:
    """Returns the texts of BINARY, VARBINARY and BLOBs: two hexadecimal digits per byte."""
    return [*map(bytes.hex, values)]


def scalars(values: list[Raw]) -> Texts:
    """Returns the texts of values of an unknown type: a number's or string's own text, 1 and 0 for true and false
    (BIT(1))."""
    tokens = b",".join(values)
    if not tokens.startswith(b'"') and not tokens.translate(None, _OF_NUMBERS):
        return _numbers(tokens)
    listed = b"[" + tokens + b"]"
    try:
        return _STRINGS.decode(listed)
    except msgspec.ValidationError:
        decoded = _SCALARS.decode(listed)
    return [None if value is None else str(int(value)) if isinstance(value, bool) else str(value) for value in decoded]


def _numbers(tokens: bytes) -> Texts:
    numbers = tokens.decode("ascii").split(",")
    return [None if text == "null" else text for text in numbers] if b"null" in tokens else [*numbers]


def floats(values: list[Raw], text_of: Callable[[str], str] = float_text) -> Texts:
    """Returns the texts of DOUBLE; ``null`` among them is NULL. Raises DecodeError ``wrong_type`` for a JSON value that
    is no number."""
    tokens = b",".join(values)
    if tokens.translate(None, _OF_NUMBERS):
        raise DecodeError("wrong_type", "expected a number or null for a FLOAT, DOUBLE or DECIMAL")
    numbers = _numbers(tokens)
    if _exponent_in(tokens) or max(map(len, tokens.split(b","))) > _PLAIN_DIGITS:
        return [text if text is None or is_plain(text) else text_of(text) for text in numbers]
    return numbers


def singles(values: list[Raw]) -> Texts:
    """Returns the texts of FLOAT, as `floats` does for DOUBLE."""
    return floats(values, single_text)


def _exponent_in(tokens: bytes) -> bool:
    """True if a number has an exponent, or should have one."""
    return b"e" in tokens or b"E" in tokens or b"0.000000" in tokens


def decimals(scale: int | None) -> Callable[[list[Raw]], Texts]:
    """Returns the reader of DECIMAL with ``scale`` digits after the point, or as many as the wire has; ``null`` among
    the values is NULL."""

    def convert(values: list[Raw]) -> Texts:
        return [None if text is None else _decimal(text, scale) for text in floats(values)]

    return convert


def _decimal(text: str, scale: int | None) -> str:
    if "e" in text:
        text = f"{Decimal(text):f}"
    if scale is None:
        return text
    whole, _, fraction = text.partition(".")
    if len(fraction) > scale:  # the shortest text of a float64 has no more digits than the DECIMAL it was made of
        raise DecodeError("bad_value", f"expected at most {scale} digits after the point, found {text[:80]}")
    return f"{whole}.{fraction:0<{scale}}" if scale else whole


def dates(values: list[int]) -> Texts:
    """Returns the texts of DATE, from days since 1970-01-01."""
    texts: Texts = pa.array(values, pa.int32()).cast(pa.date32()).cast(pa.string()).to_pylist()
    return texts


def _datetimes(unit: str, fsp: int | None) -> Callable[[list[int]], Texts]:
    """Returns the reader of DATETIME in ``ms``, of at most 3 digits after the point, or in ``us``."""

    def convert(values: list[int]) -> Texts:
        texts = pa.array(values, pa.int64()).cast(pa.timestamp(unit)).cast(pa.string()).to_pylist()
        return _with_digits(texts, fsp)

    return convert


def times(fsp: int | None) -> Callable[[list[int]], Texts]:
    """Returns the reader of TIME, from microseconds with a sign."""

    def convert(values: list[int]) -> Texts:
        # Columns with one item a value: microseconds without sign, whole hours, what is left as HH:MM:SS.ffffff.
        microseconds = pa.array(values, pa.int64())
        size = pc.abs(microseconds)
        hours = pc.divide(size, _HOUR)
        clock = pc.subtract(size, pc.multiply(hours, _HOUR)).cast(pa.time64("us")).cast(pa.string())
        sign = pc.if_else(pc.less(microseconds, 0), "-", "")
        padded = pc.utf8_lpad(hours.cast(pa.string()), 2, "0")
        clocks = pc.binary_join_element_wise(sign, padded, pc.utf8_slice_codeunits(clock, 2), "")
        return _with_digits(clocks.to_pylist(), fsp)

    return convert


def _with_digits(texts: list[str], fsp: int | None) -> Texts:
    """Returns the texts, which have all digits of their unit, cut to ``fsp`` digits; if that is unknown, to the 0, 3 or
    6 they need."""
    if fsp is None:
        return [_shortest(*text.split(".")) for text in texts]
    spare = len(texts[0].partition(".")[2]) - fsp
    if spare == 0:
        return [*texts]
    if {text[-spare:] for text in texts} != {"0" * spare}:
        raise DecodeError("bad_value", f"expected {fsp} digits after the point of a time, found {texts}"[:120])
    end = -spare - (fsp == 0)
    return [text[:end] for text in texts]


def _shortest(seconds: str, fraction: str) -> str:
    if not fraction.strip("0"):
        return seconds
    return f"{seconds}.{fraction[:3] if fraction[3:] == '000' else fraction}"


def instants(zone: ZoneInfo, fsp: int | None) -> Callable[[list[str]], Texts]:
    """Returns the reader of TIMESTAMP, with the digits of the wire.

    1970-01-01T00:00:00Z lies below the type's first instant: the writers send it for ``0000-00-00 00:00:00`` (wire.md
    1.5.2). Where clocks are set back in the zone, the one of two times as which TiDB does not read their text
    (`instant_of`) keeps the wire's, in UTC: a server in this zone sends only the other one.
    """

    def convert(values: list[str]) -> Texts:
        return [_instant(value, zone, fsp) for value in values]

    return convert


def _instant(text: str, zone: ZoneInfo, fsp: int | None) -> str:
    if not _ZONED.fullmatch(text):
        raise DecodeError("bad_value", f"expected a time such as 2024-01-01T00:00:00Z, found {text[:40]!r}")
    if _NO_TIME.fullmatch(text):
        return "0000-00-00 00:00:00" + (f".{'':0<{fsp}}" if fsp else "")
    try:
        instant = datetime.fromisoformat(f"{text[:19]}+00:00")
        local = instant.astimezone(zone)
        has_own_text = is_own(instant, local)
    except (ValueError, OverflowError):
        raise DecodeError("bad_value", f"expected a time from year 1 to 9999, found {text}") from None
    if not has_own_text:  # gold shows the UTC text in _ticdc_irregular
        return text
    return local.isoformat(" ")[:19] + text[19:-1]


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
    """Name of the schema field, its Debezium type; None for a field without a name."""
    read: Any
    """What msgspec reads a value as; null is read beside it, or is within ``Raw``."""
    texts: Callable[[Any], Texts] | None
    """A list of values that are not null to those of ``event``; None where they are the same (text, JSON, ENUM and
    SET). Raises DecodeError."""


UNKNOWN = ValueFormat("", None, Raw, scalars)
"""Values of a type that neither the message nor a definition declares: the wire's own texts."""

_TEXT = ValueFormat("string", None, str, None)
_NAMES = {
    Family.ENUM: "io.debezium.data.Enum",
    Family.SET: "io.debezium.data.EnumSet",
    Family.JSON: "io.debezium.data.Json",
    Family.VECTOR: "io.debezium.data.TiDBVectorFloat32",
}
_INTEGERS = {
    ("bool", False): ("int16", _INT16),
    ("boolean", False): ("int16", _INT16),
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
    Family.DOUBLE: ValueFormat("double", None, Raw, floats),
    Family.BINARY: ValueFormat("string", None, bytes, hexadecimal),
    Family.DATE: ValueFormat("int32", _DATE, _DAYS, dates),
    Family.YEAR: ValueFormat("int32", "io.debezium.time.Year", _YEAR | str, years),
}


def format_of(kind: MysqlType, zone: ZoneInfo, *, whole: bool) -> ValueFormat:
    """Returns the format of values of a column of this type (wire.md 1.5.2).

    ``whole`` says that the type is as SHOW COLUMNS prints it, so that no brackets mean no digits after the point, and
    not that they are unknown.
    """
    fsp = kind.size[0] if kind.size else 0 if whole else None
    match kind.family:
        case Family.INTEGER:
            return _integer(kind)
        case Family.FLOAT:
            return ValueFormat("double" if len(kind.size) > 1 else "float", None, Raw, singles)
        case Family.DECIMAL:
            return ValueFormat("double", None, Raw, decimals(_scale(kind, whole=whole)))
        case Family.BIT:
            return _bits(kind.size[0] if kind.size else 1)
        case Family.DATETIME if (fsp or 0) > 3:
            return ValueFormat("int64", _MICROSECONDS, _MICROS, _datetimes("us", fsp))
        case Family.DATETIME:
            return ValueFormat("int64", _MILLISECONDS, _MILLIS, _datetimes("ms", fsp))
        case Family.TIMESTAMP:
            return ValueFormat("string", "io.debezium.time.ZonedTimestamp", str, instants(zone, fsp))
        case Family.TIME:
            return ValueFormat("int64", "io.debezium.time.MicroTime", _CLOCK, times(fsp))
        case _ if kind.family in _SIMPLE:
            return _SIMPLE[kind.family]
        case _:
            return ValueFormat("string", _NAMES.get(kind.family), str, None)


def _integer(kind: MysqlType) -> ValueFormat:
    connect, read = _INTEGERS.get((kind.name, kind.unsigned), ("int32", _INT32))
    return ValueFormat(connect, None, read, unsigned if kind.name == "bigint" and kind.unsigned else integers)


def _scale(kind: MysqlType, *, whole: bool) -> int | None:
    if len(kind.size) > 1:
        return kind.size[1]
    return 0 if whole or kind.size else None


def _bits(size: int) -> ValueFormat:
    return ValueFormat("boolean", None, bool, flags) if size == 1 else ValueFormat("bytes", _BITS, bytes, bits(size))


_READ_OF_CONNECT = {"int16": _INT16, "int32": _INT32, "int64": _INT64}


def format_of_connect(connect: str) -> ValueFormat | None:
    """Returns the format of a nameless field whose MySQL type is not known for certain; None if there is no such
    field."""
    if connect in _READ_OF_CONNECT:
        return ValueFormat(connect, None, _READ_OF_CONNECT[connect], integers)
    return {"double": _SIMPLE[Family.DOUBLE], "string": _TEXT}.get(connect)
