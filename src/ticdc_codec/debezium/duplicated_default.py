"""A NULL that tiflow writes twice (wire.md 8.5): for a NULL in a binary column with a DEFAULT it writes the default as
base64, and then, under the same name, as text. A value that is not NULL stands once: so the pair is a NULL.
"""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import msgspec

from ticdc_codec.errors import DecodeError

_ENCODE = msgspec.json.Encoder(decimal_format="number").encode


def without_twins(value: bytes) -> bytes:
    """The JSON text with null for such pairs. Raises DecodeError ``duplicate_name`` for any other name that is there
    twice; numbers keep their digits."""
    return _ENCODE(json.loads(value, object_pairs_hook=_object, parse_int=Decimal, parse_float=Decimal))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    previous: str | None = None
    for name, found in pairs:
        if name in members:
            if name != previous or not _is_default(members[name], found):
                raise DecodeError("duplicate_name", f"expected each name once in an object, found {name!r} again")
            members[name] = previous = None
        else:
            members[name] = found
            previous = name
    return members


def _is_default(first: Any, second: Any) -> bool:
    if not isinstance(first, str) or not isinstance(second, str):
        return False
    return base64.b64encode(second.encode("utf-8", "surrogatepass")).decode() == first
