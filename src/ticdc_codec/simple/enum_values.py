"""ENUM and SET of TiCDC before v8.0, which sent names (tiflow #10662), as index and mask."""

from __future__ import annotations

from collections.abc import Callable

from ticdc_codec.errors import DecodeError
from ticdc_codec.mysql_type import Family, MysqlType
from ticdc_codec.number_text import count_text


def number_of(kind: MysqlType) -> Callable[[str], str]:
    """What turns names of an ENUM or SET into index or mask, and leaves numbers. Raises DecodeError for others."""
    bits = kind.family is Family.SET
    numbers = {name: 1 << place if bits else place + 1 for place, name in enumerate(kind.elements)}

    def number(text: str) -> str:
        names = text.split(",") if bits and text else [text]
        if text.isascii() and text.isdecimal():
            return count_text(text)
        if not text and (bits or text not in numbers):
            return "0"
        if not numbers.keys() >= set(names):
            raise DecodeError("bad_value", f"expected a value of {kind.text[:80]}, found {text[:40]!r}")
        return str(sum(numbers[name] for name in names))

    return number
