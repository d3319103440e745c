"""Valid messages with something wrong put in one place, each place in turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ticdc_codec.number import uvarint, varint

Path = tuple[Any, ...]
_MARK = b'"@@@"'


def places(value: Any, path: Path = ()) -> list[Path]:
    """The paths of a value and of everything in it: names of members and numbers of items."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *[place for name, member in inner for place in places(member, (*path, name))]]


def replaced(value: bytes, path: Path, text: str | bytes) -> bytes:
    """The JSON with the member at ``path`` written as ``text``."""
    whole = holder = {"": json.loads(value)}
    for name in ("", *path)[:-1]:
        holder = holder[name]
    holder[("", *path)[-1]] = "@@@"
    return json.dumps(whole[""]).encode().replace(_MARK, text if isinstance(text, bytes) else text.encode())


def doubled(value: bytes, path: Path) -> bytes:
    """The JSON with the member at ``path`` written twice, or the list's item."""
    member = json.loads(value)
    for name in path:
        member = member[name]
    between = f",{json.dumps(path[-1])}:" if isinstance(path[-1], str) else ","
    return replaced(value, path, between.join([json.dumps(member)] * 2))


def without(value: bytes) -> Iterator[bytes]:
    """The JSON without each member of its objects and each item of its lists."""
    for path in places(json.loads(value))[1:]:
        whole = json.loads(value)
        holder = whole
        for name in path[:-1]:
            holder = holder[name]
        del holder[path[-1]]
        yield json.dumps(whole).encode()


DEEP = "[" * 100_000 + "]" * 100_000
WRONG = (
    *map(json.dumps, (None, 0, 7, -1, 2**31, 2**63, 2**64, 10**400, 1.5, True, "", "x", "\0", "é", "YQ==", "1e999")),
    *map(json.dumps, ([], [[]], [None], ["id"], [{}], {}, {"id": None}, {"id": 4}, {"t": 3, "f": 1, "v": 1})),
    "[" * 2000 + "]" * 2000, "9" * 5000, f'"varchar({"9" * 5000})"', '"0001-01-01 00:00:00"', "1e99999999999999999999",
    "1e999", "NaN", "-0", "", '"\\ud800"', b'"\xff"', b'"\xed\xa0\x80"',
)  # fmt: skip
"""JSON texts that are wrong in most places, and bytes that are none."""

_OCTETS = (b"\0", b"\x01", b"\x02", b"\x7f", b"\x80", b"\xfe", b"\xff", b'"', b"[")
NUMBERS = (*_OCTETS, *map(varint, (-1, 1 << 31, (1 << 63) - 1)), uvarint(1 << 31), uvarint(1 << 63), b"\xff" * 11)
"""Bytes, and numbers of many bytes, that are wrong in most places of a binary message."""


def octets(value: bytes) -> Iterator[bytes]:
    """The message with each byte as any of ``NUMBERS``, and with each of them before it."""
    for at in range(len(value)):
        for number in NUMBERS:
            yield value[:at] + number + value[at + 1 :]
            yield value[:at] + number + value[at:]
