"""One event's key (wire.md 1.2.2): tiflow writes ts scm tbl rid ptn t ohk ccl, ticdc ts scm tbl t ohk ccl ptn."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from ticdc_codec.errors import DecodeError
from ticdc_codec.json_text import Unreadable, names_of, unreadable

ROW, DDL, RESOLVED = 1, 2, 3

_TWICE = b'"ohk":true,"ohk":false'
"""ticdc writes so beside ``ccl`` (wire.md 1.2.2)."""


class Key(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, gc=False):
    """Which event, of which table."""

    ts: int
    scm: str | UnsetType = UNSET
    tbl: str | UnsetType = UNSET
    rid: int | UnsetType = UNSET
    """Row handle, deprecated."""
    ptn: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] | UnsetType = UNSET
    """Physical table id of a partition."""
    t: int
    ohk: bool | UnsetType = UNSET
    """Only the handle key is in the value."""
    ccl: str | UnsetType = UNSET
    """Location of the claim-check object."""


_DECODE = msgspec.json.Decoder(Key).decode
_ENCODE = msgspec.json.Encoder().encode


def read_key(text: bytes) -> Key:
    """The key of one event. Raises DecodeError."""
    try:
        key = _DECODE(text)
        # The shortest JSON of these members; a name twice would make it longer. So do white space and escapes.
        if len(_ENCODE(key)) != len(text):
            names_of(text if key.ccl is UNSET else text.replace(_TWICE, b'"ohk":false'))
    except Unreadable as error:
        fault = unreadable(error, text)
        raise DecodeError(fault.reason, f"in the key: {fault.detail}") from None
    except DecodeError as error:
        raise DecodeError(error.reason, f"in the key: {error.detail}") from None
    return key
