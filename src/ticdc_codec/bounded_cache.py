"""What codecs keep of what repeats: bounded, as messages may describe ever new tables."""

from __future__ import annotations

from typing import Any

MOST = 4096
"""Tables, and texts that find them, that are kept before all are forgotten: some MB."""


def make_room(kept: dict[Any, Any] | set[bytes]) -> None:
    """Forget everything if there is no room for one more."""
    if len(kept) >= MOST:
        kept.clear()
