"""JSON texts of an unexpected shape, and names that occur twice: what all JSON protocols check in the same way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from ticdc_codec.errors import DecodeError

_BYTE = re.compile(r"\(byte (\d+)\)")
_UNNAMEABLE = re.compile(r'["\\\x00-\x1f]')

_QUOTE = b'"'

# What msgspec says, and the reason it is to us.
_REASONS = (
    ("truncated", "truncated"),
    ("trailing characters", "trailing_bytes"),
    ("out of range", "out_of_range"),
    ("Expected `int` >=", "out_of_range"),
    ("Expected `int` <=", "out_of_range"),
    ("base64", "bad_value"),
    ("missing required field", "missing_member"),
    ("unknown field", "unknown_member"),
    ("Expected", "wrong_type"),
    ("Invalid", "bad_value"),
)

Unreadable = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not the JSON it was asked for."""


def unreadable(error: BaseException, value: bytes) -> DecodeError:
    """The DecodeError that one of ``Unreadable``, raised for ``value``, means."""
    if isinstance(error, UnicodeDecodeError):
        # The error has the string alone: all of it stands in the value if it has no escapes.
        begin = value.find(error.object)
        place = None if begin < 0 else begin + error.start
        return DecodeError("bad_json", f"expected UTF-8, found byte 0x{error.object[error.start]:02x}", offset=place)
    text = str(error)
    byte = _BYTE.search(text)
    reason = next((ours for theirs, ours in _REASONS if theirs in text), "bad_json")
    return DecodeError(reason, text, offset=int(byte[1]) if byte else None)


def names_of(value: bytes) -> Any:
    """``value`` as plain JSON values. Raises DecodeError ``duplicate_name`` if an object in it has one name twice, and
    ``bad_json`` for broken UTF-8 in members that msgspec skips."""
    try:
        return json.loads(value, object_pairs_hook=unique, parse_int=str)
    except Unreadable as error:
        raise unreadable(error, value) from None


def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object of its members. Raises DecodeError ``duplicate_name``."""
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DecodeError("duplicate_name", f"expected each name once in an object, found {twice!r} again")
    return members


def quotes_of(value: bytes) -> int:
    """Quotes in ``value`` (valid JSON) that open or close a string: two for each name and each text, and no more."""
    return _without_escapes(value).count(_QUOTE)


def quotes_of_all(values: Iterable[bytes]) -> int:
    """``quotes_of`` of many together."""
    octets = np.frombuffer(_without_escapes(b" ".join(values)), np.uint8)
    return int(np.count_nonzero(octets == ord(_QUOTE)))


def _without_escapes(value: bytes) -> bytes:
    if b"\\" in value:
        # A run of backslashes begins with an escape, so pairs from its left are escaped backslashes.
        return value.replace(b"\\\\", b"").replace(b'\\"', b"")
    return value


def is_odd(names: Iterable[str]) -> bool:
    """Whether msgspec takes a name for no Struct: it has a quote, a backslash or a control character."""
    return any(_UNNAMEABLE.search(name) for name in names)


def object_type(names: Iterable[str], fields: list[tuple[Any, ...]]) -> type:
    """A Struct type of objects with these names: fields c0, c1 … of these types, with defaults where they have any."""
    rename = {f"c{at}": name for at, name in enumerate(names)}
    named: list[Any] = [(name, *field) for name, field in zip(rename, fields, strict=True)]
    return msgspec.defstruct("Object", named, rename=rename, forbid_unknown_fields=True, gc=False)
