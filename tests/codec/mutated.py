"""Valid JSON messages with something wrong put in the place of one member."""

from __future__ import annotations

import json
from typing import Any


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of a value and of everything in it: names of members and numbers of items."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *[place for name, member in inner for place in places(member, (*path, name))]]


def replaced(value: bytes, path: tuple[Any, ...], text: str) -> bytes:
    """The JSON with the member at ``path`` written as ``text``."""
    whole = holder = {"": json.loads(value)}
    for name in ("", *path)[:-1]:
        holder = holder[name]
    holder[("", *path)[-1]] = "@@@"
    return json.dumps(whole[""]).replace('"@@@"', text).encode()
