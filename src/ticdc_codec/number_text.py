"""Texts of FLOAT, DOUBLE and YEAR, and the numbers of BIT, ENUM and SET: from the wire to ``event`` and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isinf
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from ticdc_codec.errors import ConfigError, DecodeError
from ticdc_codec.mysql_type import Family, MysqlType

# What is possessive costs no way back: a third of the time.
_PLAIN_NUMBER = r"-?(?:[1-9]\d{0,20}+|0(?!\.000000))(?:\.\d++)?+"
_PLAIN = re.compile(_PLAIN_NUMBER, re.ASCII)
_PLAIN_LINES = re.compile(rf"(?:{_PLAIN_NUMBER}\n)*+", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_YEAR = re.compile(r"\d{4}", re.ASCII)
_COUNT = re.compile(r"0|[1-9]\d{0,19}", re.ASCII)
_SHORT_YEAR = re.compile(r"\d{1,4}", re.ASCII)

_BEYOND_SINGLE = 2.0**128 - 2.0**103
"""From here on a float32 is infinite."""
_BELOW_SINGLE = 2.0**-150
"""Up to here a float32 is 0."""

is_plain = _PLAIN.fullmatch
"""True if a number's text is ``float_text`` of itself."""
is_year = _YEAR.fullmatch
"""True if a year's text is ``_year_text`` of itself."""


def _are_plain(texts: list[str]) -> bool:
    """True if ``is_plain`` holds for all of them, in one call."""
    lines = "\n".join([*texts, ""])
    return _PLAIN_LINES.fullmatch(lines) is not None and lines.count("\n") == len(texts)


def float_text(text: str) -> str:
    """Returns plain digits from 1e-6 up to below 1e21, else an exponent: ``1e-07``; the digits stay those of the wire.

    Raises DecodeError for what is no number of a float64.
    """
    if is_plain(text):
        return text
    if not _NUMBER.fullmatch(text):
        raise DecodeError("bad_value", f"expected a number in decimal digits, found {text[:40]!r}")
    sign, numbers, exponent = Decimal(text).as_tuple()
    digits = "".join(map(str, numbers)).lstrip("0")
    if isinf(float(text)) or (digits and float(text) == 0):
        raise DecodeError("out_of_range", f"expected a float64, found {text[:40]}")
    return _rendered(sign, digits, int(exponent))


def single_text(text: str) -> str:
    """Returns the ``float_text`` of a number of a float32, which may have more digits than that. Raises DecodeError for
    others."""
    plain = float_text(text)
    if abs(float(plain)) >= _BEYOND_SINGLE or (plain.strip("-") != "0" and abs(float(plain)) <= _BELOW_SINGLE):
        raise DecodeError("out_of_range", f"expected a float32, found {text[:40]}")
    return plain


def shortest_texts(numbers: npt.NDArray[Any]) -> list[str]:
    """Returns the shortest texts that read back to the same float32s or float64s (``event`` docstring)."""
    texts = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].decode().split(",") if len(numbers) else []
    return [
        text[:-2] if text.endswith(".0") else _float_text_of_shortest(text) if "e" in text else text for text in texts
    ]


def are_shortest_singles(texts: list[str]) -> bool:
    """True if each text is ``shortest_single`` of itself."""
    return _are_plain(texts) and _shortest_singles(texts) == texts


def shortest_single(text: str) -> str:
    """Returns the shortest text of a float32, whose text may have the digits of a float64. Raises DecodeError for what
    is no float32."""
    return _shortest_singles([single_text(text)])[0]


def _shortest_singles(texts: list[str]) -> list[str]:
    return shortest_texts(np.array([*map(float, texts)], np.float32))


def _float_text_of_shortest(text: str) -> str:
    """Returns the ``float_text`` of a number in exponent form that is a float64's shortest text, in a quarter of the
    time."""
    mantissa, exponent = text.split("e")
    if -6 <= int(exponent) < 21:
        return format(Decimal(text), "f").removesuffix(".0")
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+03d}"


def _rendered(sign: int, digits: str, exponent: int) -> str:
    minus = "-" if sign else ""
    if not digits:
        return f"{minus}0"
    power = len(digits) + exponent - 1
    if -6 <= power < 21:
        return f"{minus}{Decimal(f'{digits}e{exponent}'):f}"
    # In exponent form zeros at the end are no digits of the wire's number, only of its magnitude.
    digits = digits.rstrip("0")
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{minus}{digits[0]}{fraction}e{power:+03d}"


def _plain_text(text: str) -> str:
    """Returns a number in plain digits, as the wire has it."""
    return f"{Decimal(text):f}" if "e" in text else text


def are_counts(texts: list[str]) -> bool:
    """True if each text is a number of 64 bits without a sign: BIT, the index of an ENUM, the mask of a SET."""
    return not texts or (all(map(_COUNT.fullmatch, texts)) and max(map(int, texts)) < 1 << 64)


def count_text(text: str) -> str:
    """Returns the text itself. Raises DecodeError if it is no such number."""
    if not are_counts([text]):
        raise DecodeError("bad_value", f"expected a number of 0 to 2^64 - 1, found {text[:40]!r}")
    return text


def _year_text(text: str) -> str:
    """Returns a year of one to four digits with four. Raises DecodeError ``bad_value``."""
    if not _SHORT_YEAR.fullmatch(text):
        raise DecodeError("bad_value", f"expected a year, found {text[:40]!r}")
    return text.zfill(4)


def _short_year(text: str) -> str:
    """Returns a year without leading zeros: the year 0 is ``0``."""
    return text.lstrip("0") or "0"


def _are_years(texts: list[str]) -> bool:
    """True if each text is ``_year_text`` of itself."""
    return all(map(is_year, texts))


def number_of_names(kind: MysqlType) -> Callable[[str], str]:
    """Returns a function from names of an ENUM or SET to its index or mask, for encoders; an unknown ENUM name becomes
    0.

    Raises ConfigError if the type does not list its names.
    """
    positions = {name: position for position, name in enumerate(kind.elements)}
    if not positions:
        raise ConfigError(f"ENUM and SET are written as numbers, and {kind.text!r} does not list the names")
    if kind.name == "enum":
        return lambda name: str(positions[name] + 1 if name in positions else 0)
    return lambda names: str(sum(1 << positions[name] for name in names.split(",") if names))


def numbers_of_names_or_digits(kind: MysqlType) -> Callable[[str], str]:
    """Returns a function from texts of an ENUM or SET to its index or mask: TiCDC before v8.0 sent names (wire.md
    1.3.1).

    Digits stay as they are. The function raises DecodeError for any other text.
    """
    bits = kind.family is Family.SET
    numbers = {name: 1 << position if bits else position + 1 for position, name in enumerate(kind.elements)}

    def number(text: str) -> str:
        names = text.split(",") if bits and text else [text]
        if text.isascii() and text.isdecimal():
            return count_text(text)
        # An empty SET has no bit. An empty text of an ENUM is its name if it has one, else the invalid value, index 0.
        if not text and (bits or text not in numbers):
            return "0"
        if not numbers.keys() >= set(names):
            raise DecodeError("bad_value", f"expected a value of {kind.text[:80]}, found {text[:40]!r}")
        return str(sum(numbers[name] for name in names))

    return number


READERS: Mapping[Family, tuple[Callable[[list[str]], bool], Callable[[str], str]]] = MappingProxyType(
    {
        Family.FLOAT: (_are_plain, single_text),
        Family.DOUBLE: (_are_plain, float_text),
        Family.YEAR: (_are_years, _year_text),
        Family.BIT: (are_counts, count_text),
    }
)
"""By family: a check that all texts are canonical, and the conversion of one text that is not."""
WRITERS: Mapping[Family, Callable[[str], str]] = MappingProxyType(
    {Family.FLOAT: _plain_text, Family.DOUBLE: _plain_text, Family.YEAR: _short_year}
)
"""Inverse of READERS, for the types whose wire text differs from that of ``event``."""
