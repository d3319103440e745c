"""JSON texts of which most repeats from row to row: written once with gaps, which ``%`` fills.

template({"name": "a", "time": NUMBER, "image": JSON}) % (7, b"{}") == b'{"name":"a","time":7,"image":{}}'
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

# What opens a gap stands in no JSON text.
NUMBER = Raw(b"\0d")
"""A gap for a whole number."""
JSON = Raw(b"\0b")
"""A gap for JSON that is written already, as bytes."""


def template(members: Mapping[str, object]) -> bytes:
    """An object with gaps among its members and theirs, to be filled in their order."""
    return msgspec.json.encode(members).replace(b"%", b"%%").replace(b"\0", b"%")
