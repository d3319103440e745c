"""What a message says after an unknown word."""

from __future__ import annotations

import pytest

from ticdc_codec.errors import listed, suggestion

MANY = [f"shop-{number:04}" for number in range(3_000)]


@pytest.mark.parametrize(
    ("word", "allowed", "said"),
    [
        ("order", ["orders", "items"], "did you mean orders?"),
        ("x", ["orders", "items"], "expected one of items, orders"),
        ("x", [], "there is none"),
        ("shop-29991", MANY, "did you mean shop-2999?"),
        ("x", MANY, f"expected one of {', '.join(MANY[:50])} and 2950 more"),
    ],
    ids=["similar", "none", "empty", "similar of many", "none of many"],
)
def test_the_nearest_word_or_the_first_of_all(word: str, allowed: list[str], said: str) -> None:
    assert suggestion(word, allowed) == said


@pytest.mark.parametrize(
    ("words", "text"),
    [([], "none"), (["orders"], "orders"), (MANY[:51], f"{', '.join(MANY[:50])} and 1 more")],
    ids=["none", "one", "many"],
)
def test_a_message_lists_no_more_than_fifty(words: list[str], text: str) -> None:
    assert listed(words) == text
