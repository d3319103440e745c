"""FLOAT and DOUBLE as ``event`` has them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy.typing as npt
import orjson


def shortest(numbers: npt.NDArray[Any]) -> list[str]:
    """The shortest texts that read back to the same float32 or float64 (``event`` docstring)."""
    texts = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].decode().split(",") if len(numbers) else []
    return [text[:-2] if text.endswith(".0") else _plain(text) if "e" in text else text for text in texts]


def _plain(text: str) -> str:
    """A number in exponent form as ``event`` wants it: digits from 1e-6 to below 1e21, else an exponent."""
    mantissa, exponent = text.split("e")
    if -6 <= int(exponent) < 21:
        return format(Decimal(text), "f").removesuffix(".0")
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+03d}"
