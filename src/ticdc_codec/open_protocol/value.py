"""How ``v`` is written on the wire, by type (wire.md 1.2.4): whole columns to the texts of ``event``, and texts back.

integers, BIT, ENUM, SET, YEAR    a number up to 2^64 - 1
FLOAT, DOUBLE                     a number; ``-0`` counts
TEXT and BLOB types               base64
BINARY, VARBINARY                 quoted (``unquoted``)
all others                        their text
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any
from unicodedata import category

import numpy as np
import numpy.typing as npt
import orjson
from msgspec import Meta, Raw

from ticdc_codec.errors import DecodeError
from ticdc_codec.mysql_type import Family, parse_type
from ticdc_codec.number_text import shortest_texts
from ticdc_codec.tidb_codes import type_of

Texts = list[str | None]

_NEGATIVE_ZERO = re.compile(rb"(?<![^,])-0(?![^,])")
"""Readers convert it to an integer, which has no sign."""
BASE64 = frozenset({249, 250, 251, 252})
"""The codes of TEXT and BLOB types, whose values are base64."""
QUOTED = frozenset({15, 253, 254})
"""The codes of CHAR, VARCHAR, BINARY and VARBINARY, whose values are quoted if they are bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFormat:
    """How the values of a column are read and written."""

    wire: Any
    """The type as which msgspec reads ``v``."""
    texts: Callable[[list[Any]], Texts]
    """Texts of a column's values. Raises DecodeError."""
    written: Callable[[str], str]
    """``v`` as JSON of a text. Raises ValueError for what the type cannot have."""
    in_quotes: bool = False
    """True if ``v`` is a JSON string, if it is not null."""


def format_of(code: int, flags: int, *, checked: bool = False) -> tuple[str, ValueFormat]:
    """Returns MySQL's type text and the values' format; with ``checked`` one that refuses quoted bytes which Go would
    have quoted otherwise. Raises KeyError for a type code that TiDB does not have."""
    text = type_of(code, flags)
    kind = parse_type(text)
    if code in BASE64:
        return text, _BLOB if kind.family is Family.BINARY else _TEXT
    if checked and kind.family is Family.BINARY:
        return text, _CHECKED
    return text, _BIGINT if kind.name == "bigint" else _FORMATS.get(kind.family, _PLAIN)


def _integers(values: list[int | None]) -> Texts:
    try:
        digits = orjson.dumps(values).decode()[1:-1]
    except orjson.JSONEncodeError:
        raise DecodeError("out_of_range", "expected numbers of 64 bits") from None
    texts = digits.split(",")
    return [None if text == "null" else text for text in texts] if "null" in digits else [*texts]


def _years(values: list[int | None]) -> Texts:
    return [None if value is None else f"{value:04d}" for value in values]


def _doubles(values: list[Raw]) -> Texts:
    return _floats(values, np.float64)


def _singles(values: list[Raw]) -> Texts:
    return _floats(values, np.float32)


def _floats(values: list[Raw], size: type[np.float32 | np.float64]) -> Texts:
    # numbers[i]: value i, None for NULL. JSON numbers of a FLOAT are the shortest of a float32 (wire.md 1.2.4).
    numbers = _numbers(b",".join(values))
    given = [number for number in numbers if number is not None]
    with np.errstate(over="ignore"):
        array: npt.NDArray[Any] = np.array(given, np.float64).astype(size)
    if not np.isfinite(array).all():
        raise DecodeError("out_of_range", f"expected numbers of a {size.__name__}")
    texts = shortest_texts(array)
    if len(texts) == len(numbers):
        return [*texts]
    following = iter(texts)
    return [None if number is None else next(following) for number in numbers]


def _numbers(joined: bytes) -> list[float | None]:
    try:
        numbers = orjson.loads(b"[" + (_NEGATIVE_ZERO.sub(b"-0.0", joined) if b"-0" in joined else joined) + b"]")
    except orjson.JSONDecodeError as error:
        raise DecodeError("out_of_range" if "infinity" in str(error) else "wrong_type", str(error)) from None
    if not {float, int, type(None)}.issuperset(map(type, numbers)):
        raise DecodeError("wrong_type", f"expected numbers, found {joined[:100]!r}")
    return numbers  # type: ignore[no-any-return]


def _plain(values: Texts) -> Texts:
    return values


def _binaries(values: Texts) -> Texts:
    # Quoted as Go does it, before JSON's own escapes (wire.md 1.2.4).
    return [None if value is None else unquoted(value).hex() for value in values]


def _checked_binaries(values: Texts) -> Texts:
    # The binary flag of a partition may be stale, and what is not quoted a text (wire.md 8.4).
    return [None if value is None else unquoted_exactly(value).hex() for value in values]


def _blobs(values: list[bytes | None]) -> Texts:
    return [None if value is None else value.hex() for value in values]


def _utf8(values: list[bytes | None]) -> Texts:
    # TEXT comes in base64 like BLOB (wire.md 1.2.4).
    try:
        return [None if value is None else value.decode() for value in values]
    except UnicodeDecodeError as error:
        raise DecodeError("bad_utf8", f"expected UTF-8 behind base64, found {error.reason}") from None


def _in_base64(data: bytes) -> str:
    return f'"{base64.b64encode(data).decode()}"'


def _json(text: str) -> str:
    return orjson.dumps(text).decode()


def _number(text: str) -> str:
    return str(int(text))


def _float(text: str) -> str:
    """Writes a float as Go does: one digit of exponent where one is enough."""
    if not math.isfinite(float(text)):
        raise ValueError(f"JSON has no {text}")
    return text.replace("e-0", "e-")


def _nothing(text: str) -> str:
    raise ValueError(f"a column of this type is always NULL, found {text}")


_INT64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_NOT_NEGATIVE = Annotated[int, Meta(ge=0)]
_FOUR_DIGITS = Annotated[int, Meta(ge=0, le=9999)]

# Whatever the flags say of a sign: they may be those that another column of this name had (wire.md 8.4).
_INTEGER = ValueFormat(wire=_INT64 | None, texts=_integers, written=_number)
_BIGINT = ValueFormat(wire=int | None, texts=_integers, written=_number)
_UNSIGNED = ValueFormat(wire=_NOT_NEGATIVE | None, texts=_integers, written=_number)
_TEXT = ValueFormat(wire=bytes | None, texts=_utf8, written=lambda text: _in_base64(text.encode()), in_quotes=True)
_BLOB = ValueFormat(
    wire=bytes | None, texts=_blobs, written=lambda text: _in_base64(bytes.fromhex(text)), in_quotes=True
)
_PLAIN = ValueFormat(wire=str | None, texts=_plain, written=_json, in_quotes=True)
_FORMATS = {
    Family.INTEGER: _INTEGER,
    Family.BIT: _UNSIGNED,
    Family.ENUM: _UNSIGNED,
    Family.SET: _UNSIGNED,
    Family.YEAR: ValueFormat(wire=_FOUR_DIGITS | None, texts=_years, written=_number),
    Family.FLOAT: ValueFormat(wire=Raw, texts=_singles, written=_float),
    Family.DOUBLE: ValueFormat(wire=Raw, texts=_doubles, written=_float),
    Family.BINARY: ValueFormat(
        wire=str | None, texts=_binaries, written=lambda digits: _json(quoted(bytes.fromhex(digits))), in_quotes=True
    ),
    # NULL and GEOMETRY, which TiDB has no values of
    Family.OTHER: ValueFormat(wire=None, texts=_plain, written=_nothing),
}
_CHECKED = replace(_FORMATS[Family.BINARY], texts=_checked_binaries)


_UNQUOTED = re.compile(r'[^\\"\x00-\x1f\x7f]*')
_QUOTED = re.compile(
    r'(?:[^\\"\x00-\x1f\x7f]|\\(?:[abfnrtv\\"]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}))*', re.ASCII
)
_ESCAPE = re.compile(rb"\\(?:u(.{4})|U(.{8})|.)")
_SPECIAL = re.compile(r"[^ !#-\[\]-~]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_LETTERS = dict(zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True))


def unquoted(text: str) -> bytes:
    r"""Returns the bytes behind a BINARY or VARBINARY: Go's strconv.Quote without its outer quotes (wire.md 1.2.4).

        \a \b \f \n \r \t \v \\ \"    as in Go
        \xNN                          a byte that is no valid UTF-8, and other ASCII control characters
        \uNNNN \UNNNNNNNN             a code point that cannot be printed, none of ASCII
        anything else                 itself, in UTF-8

    Raises DecodeError ``bad_value``.
    """
    if _UNQUOTED.fullmatch(text):
        return text.encode()
    if not _QUOTED.fullmatch(text):
        raise DecodeError("bad_value", f"expected bytes as Go quotes them, found {text[:40]!r}")
    data = text.encode()
    if b"\\u" in data or b"\\U" in data:
        data = _ESCAPE.sub(_spelled_out, data)
    # Of bytes that are no escape, this codec makes the code points of the same numbers.
    return data.decode("unicode_escape").encode("latin-1")


def _spelled_out(escape: re.Match[bytes]) -> bytes:
    r"""Returns the UTF-8 of ``\u`` and ``\U``; other escapes as they are."""
    digits = escape[1] or escape[2]
    if digits is None:
        return escape[0]
    number = int(digits, 16)
    if number < 0x80 or number > 0x10FFFF or 0xD800 <= number < 0xE000:
        raise DecodeError("bad_value", f"expected bytes as Go quotes them, found the code point {number:#x}")
    return chr(number).encode()


def quoted(data: bytes) -> str:
    """Inverse of ``unquoted``: the text that Go's strconv.Quote makes, without its outer quotes."""
    return _SPECIAL.sub(lambda character: _escaped(character[0]), data.decode(errors="surrogateescape"))


def unquoted_exactly(text: str) -> bytes:
    r"""Like ``unquoted``; also refuses what Go would have quoted otherwise (``\x41``), which is a text and no bytes.

    Unicode gets new characters, which Go may know and this Python not: those may be escaped or not.
    """
    data = unquoted(text)
    is_plain = "\\" not in text and text.isprintable()
    if not is_plain and quoted(data) != _NOT_ASCII.sub(_escaped_if_unassigned, text):
        raise DecodeError("bad_value", f"expected bytes as Go quotes them, found {text[:40]!r}")
    return data


def _escaped_if_unassigned(character: re.Match[str]) -> str:
    return _escaped(character[0]) if category(character[0]) == "Cn" else character[0]


@lru_cache(maxsize=4096)
def _escaped(character: str) -> str:
    number = ord(character)
    if character in _LETTERS:
        return f"\\{_LETTERS[character]}"
    if number < 0x80 or 0xDC80 <= number < 0xDD00:  # an escaped surrogate stands for a byte
        return f"\\x{number & 0xFF:02x}"
    if character.isprintable():
        return character
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
