"""Columns of JSON values to the texts of ``event`` (wire.md 1.5.2). Values are never null here; all functions raise
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
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw

from ticdc_codec.errors import DecodeError
from ticdc_codec.number_text import float_text, is_plain, single_text

Texts = list[str | None]

_OF_NUMBERS = b"+-.0123456789Eenul,"
"""All that numbers and ``null`` are made of, and commas between them: nothing else of JSON is made of these alone."""
_STRINGS = msgspec.json.Decoder(Texts)
_SCALARS = msgspec.json.Decoder(list[str | bool | int | None])
_PLAIN_DIGITS = 21
"""Characters of a number that is surely below 1e21."""
_HOUR = 3_600_000_000
_ZONED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)
_NO_TIME = re.compile(r"1970-01-01T00:00:00(?:\.0+)?Z", re.ASCII)


def texts(values: list[str]) -> Texts:
    """Text, JSON, ENUM and SET: the wire's texts unchanged."""
    return list(values)


def integers(values: list[int]) -> Texts:
    """Decimal digits."""
    return [*map(str, values)]


def unsigned(values: list[int]) -> Texts:
    """BIGINT UNSIGNED: negative numbers mean those from 2^63 (wire.md 1.5.2)."""
    return [str(value % (1 << 64)) for value in values] if min(values) < 0 else integers(values)


def years(values: list[int | str]) -> Texts:
    """YEAR: a number. For a NULL tiflow writes the column's default, as a string (wire.md 8.5)."""
    return [None if isinstance(value, str) else f"{value:04}" for value in values]


def flags(values: list[bool]) -> Texts:
    """BIT(1)."""
    return ["1" if value else "0" for value in values]


def bits(size: int) -> Callable[[list[bytes]], Texts]:
    """BIT(size)."""

    def convert(values: list[bytes]) -> Texts:
        numbers = [int.from_bytes(value, "little") for value in values]
        if {*map(len, values)} - {(size + 7) // 8} or max(numbers) >> size:
            raise DecodeError("bad_value", f"expected {size} bits in the fewest bytes, found {max(values).hex()}")
        return [*map(str, numbers)]

    return convert


def hexadecimal(values: list[bytes]) -> Texts:
    """BINARY, VARBINARY, BLOBs."""
    return [*map(bytes.hex, values)]


def scalars(values: list[Raw]) -> Texts:
    """Values of a type that nobody knows: a number's or string's own text, 1 and 0 for true and false (BIT(1))."""
    tokens = b",".join(values)
    if not tokens.startswith(b'"') and not tokens.translate(None, _OF_NUMBERS):
        return _numbers(tokens)
    listed = b"[" + tokens + b"]"
    try:
        return _STRINGS.decode(listed)
    except msgspec.ValidationError:
        found = _SCALARS.decode(listed)
    return [None if value is None else str(int(value)) if isinstance(value, bool) else str(value) for value in found]


def _numbers(tokens: bytes) -> Texts:
    found = tokens.decode("ascii").split(",")
    return [None if text == "null" else text for text in found] if b"null" in tokens else [*found]


def floats(values: list[Raw], text_of: Callable[[str], str] = float_text) -> Texts:
    """DOUBLE; ``null`` among them is NULL."""
    tokens = b",".join(values)
    if tokens.translate(None, _OF_NUMBERS):
        raise DecodeError("wrong_type", "expected a number or null for a FLOAT, DOUBLE or DECIMAL")
    found = _numbers(tokens)
    if _exponent_in(tokens) or max(map(len, tokens.split(b","))) > _PLAIN_DIGITS:
        return [text if text is None or is_plain(text) else text_of(text) for text in found]
    return found


def singles(values: list[Raw]) -> Texts:
    """FLOAT."""
    return floats(values, single_text)


def _exponent_in(tokens: bytes) -> bool:
    """Whether a number has an exponent, or should have one."""
    return b"e" in tokens or b"E" in tokens or b"0.000000" in tokens


def decimals(scale: int | None) -> Callable[[list[Raw]], Texts]:
    """DECIMAL; ``null`` among them is NULL."""

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
    """DATE."""
    found: Texts = pa.array(values, pa.int32()).cast(pa.date32()).cast(pa.string()).to_pylist()
    return found


def datetimes(unit: str, fsp: int | None) -> Callable[[list[int]], Texts]:
    """DATETIME in ``ms``, of at most 3 digits after the point, or in ``us``."""

    def convert(values: list[int]) -> Texts:
        found = pa.array(values, pa.int64()).cast(pa.timestamp(unit)).cast(pa.string()).to_pylist()
        return _with_digits(found, fsp)

    return convert


def times(fsp: int | None) -> Callable[[list[int]], Texts]:
    """TIME."""

    def convert(values: list[int]) -> Texts:
        # Columns with one item a value: microseconds without sign, whole hours, what is left as HH:MM:SS.ffffff.
        given = pa.array(values, pa.int64())
        size = pc.abs(given)
        hours = pc.divide(size, _HOUR)
        clock = pc.subtract(size, pc.multiply(hours, _HOUR)).cast(pa.time64("us")).cast(pa.string())
        sign = pc.if_else(pc.less(given, 0), "-", "")
        padded = pc.utf8_lpad(hours.cast(pa.string()), 2, "0")
        found = pc.binary_join_element_wise(sign, padded, pc.utf8_slice_codeunits(clock, 2), "")
        return _with_digits(found.to_pylist(), fsp)

    return convert


def _with_digits(found: list[str], fsp: int | None) -> Texts:
    """Texts with all digits of their unit, cut to those of ``fsp``; if it is unknown, to the 0, 3 or 6 they need."""
    if fsp is None:
        return [_shortest(*text.split(".")) for text in found]
    spare = len(found[0].partition(".")[2]) - fsp
    if spare == 0:
        return [*found]
    if {text[-spare:] for text in found} != {"0" * spare}:
        raise DecodeError("bad_value", f"expected {fsp} digits after the point of a time, found {found}"[:120])
    end = -spare - (fsp == 0)
    return [text[:end] for text in found]


def _shortest(seconds: str, fraction: str) -> str:
    if not fraction.strip("0"):
        return seconds
    return f"{seconds}.{fraction[:3] if fraction[3:] == '000' else fraction}"


def instants(zone: ZoneInfo, fsp: int | None) -> Callable[[list[str]], Texts]:
    """TIMESTAMP, with the digits of the wire.

    1970-01-01T00:00:00Z lies below the type's first instant: the writers send it for ``0000-00-00 00:00:00`` (wire.md
    1.5.2).
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
        local = datetime.fromisoformat(f"{text[:19]}+00:00").astimezone(zone)
    except (ValueError, OverflowError):
        raise DecodeError("bad_value", f"expected a time from year 1 to 9999, found {text}") from None
    return local.isoformat(" ")[:19] + text[19:-1]
