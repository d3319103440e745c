"""Caches of what repeats in messages, which are cleared once they are full."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_MOST_KEPT = 4096
"""Entries of a cache (tables, and texts that lead to them) before it is cleared: some MB."""


def make_room(cache: dict[Any, Any] | set[bytes]) -> None:
    """Clears a cache that is full."""
    if len(cache) >= _MOST_KEPT:
        cache.clear()


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def cached(cache: dict[Key, Value], key: Key, make: Callable[[], Value]) -> Value:
    """Returns the cache's value of ``key``; one that is missing is made and added. Raises what ``make`` raises."""
    value = cache.get(key)
    if value is None:
        make_room(cache)
        value = cache[key] = make()
    return value
