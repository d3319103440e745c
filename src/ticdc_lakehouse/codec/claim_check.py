"""The object that a claim-check message names: JSON with the whole message's key and value in base64 (wire.md 1.2.6,
1.4.3)."""

from __future__ import annotations

import base64

import msgspec

from ticdc_lakehouse.codec.json_text import Unreadable, unreadable
from ticdc_lakehouse.codec.message import Message
from ticdc_lakehouse.errors import DecodeError


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    key: str | None
    value: str


_STORED = msgspec.json.Decoder(_Stored)


def stored_message(content: bytes) -> Message:
    """The message in an object. Raises DecodeError."""
    try:
        stored = _STORED.decode(content)
        key = None if stored.key is None else base64.b64decode(stored.key, validate=True)
        return Message(key=key, value=base64.b64decode(stored.value, validate=True))
    except Unreadable as error:
        raise unreadable(error, content) from None
    except ValueError as error:
        raise DecodeError("bad_value", f"expected base64: {error}") from None
