"""Groups items that share keys, directly or through others, into lists."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

_Item = TypeVar("_Item")


def connected(items: Iterable[_Item], keys: Callable[[_Item], Iterable[Hashable]]) -> list[list[_Item]]:
    """Returns the items in lists: two that have a key in common are in one list, an item without keys is in its own.
    Each list has the order of the items; the lists have the order of their first items.

    >>> connected(["ab", "c", "", "bd", "d"], keys=tuple)
    [['ab', 'bd', 'd'], ['c'], ['']]
    """
    items = tuple(items)
    # parents[i]: an item before item i in its list; i itself for the first of the list
    parents = list(range(len(items)))
    owners: dict[Hashable, int] = {}

    def first(number: int) -> int:
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    for number, item in enumerate(items):
        for key in keys(item):
            one, other = first(number), first(owners.setdefault(key, number))
            parents[max(one, other)] = min(one, other)
    lists: dict[int, list[_Item]] = {}
    for number, item in enumerate(items):
        lists.setdefault(first(number), []).append(item)
    return [*lists.values()]
