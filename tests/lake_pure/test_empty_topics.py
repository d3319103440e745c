"""Topics that Kafka never had a message in."""

from __future__ import annotations

import pytest

from ticdc_lakehouse.bronze.empty_topics import empty_topics


@pytest.mark.parametrize(
    ("ends", "empty"),
    [
        ({}, set()),
        ({("a", 0): 0, ("b", 0): 3}, {"a"}),
        ({("a", 0): 0, ("a", 1): 1}, set()),
        ({("a", 0): 0, ("a", 1): 0}, {"a"}),
    ],
)
def test_a_topic_is_empty_without_a_message_in_any_partition(ends: dict[tuple[str, int], int], empty: set[str]) -> None:
    assert empty_topics(ends) == empty
