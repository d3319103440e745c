"""Lists of items that share keys."""

from __future__ import annotations

import doctest
from random import Random

import pytest

from ticdc_lakehouse.planning import connected as module
from ticdc_lakehouse.planning.connected import connected


@pytest.mark.parametrize(
    ("items", "lists"),
    [
        ([], []),
        (["a", "b", "a"], [["a", "a"], ["b"]]),
        (["", ""], [[""], [""]]),
        (["a", "b", "c", "ab"], [["a", "b", "ab"], ["c"]]),
        (["ab", "c", "", "bd", "cd"], [["ab", "c", "bd", "cd"], [""]]),
        (["x", "b", "ab", "ac"], [["x"], ["b", "ab", "ac"]]),
    ],
)
def test_items_that_share_keys_through_others_are_in_one_list(items: list[str], lists: list[list[str]]) -> None:
    assert connected(items, tuple) == lists


@pytest.mark.parametrize("seed", range(20))
def test_lists_have_no_key_in_common_and_cannot_be_split(seed: int) -> None:
    random = Random(seed)
    items = ["".join(random.sample("abcdefgh", random.randint(0, 3))) for _ in range(12)]
    lists = connected(items, tuple)
    assert sorted(item for each in lists for item in each) == sorted(items)
    keys = [key for each in lists for key in set("".join(each))]
    assert len(keys) == len(set(keys))
    for first, *others in lists:
        reached, left = set(first), others
        while near := [item for item in left if reached & set(item)]:
            reached, left = reached.union(*near), [item for item in left if item not in near]
        assert left == []


def test_the_example_in_the_docstring_runs() -> None:
    assert doctest.testmod(module) == (0, 1)
