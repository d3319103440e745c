"""Which batches were read when Kafka was asked for the end offsets of one, as bronze notes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ticdc_lakehouse.bronze.micro_batch import MicroBatches, TopicPartition

BATCHES = MicroBatches(
    messages_table="m", offsets_table="o", checkpoint="c", first_batch=100, interrupted=None, listed_before=None
)
STARTS: dict[TopicPartition, int] = {("t", 0): 10, ("t", 1): 20}
ENDS: dict[TopicPartition, int] = {("t", 0): 13, ("t", 1): 25}


@pytest.mark.parametrize(
    ("limit", "starts", "expected"),
    [
        (None, STARTS, 107),
        (10, STARTS, 107),
        (9, STARTS, 0),
        (8, STARTS, 0),
        (10, {}, 0),
        (None, {}, 107),
    ],
    ids=["no limit", "not reached", "perhaps cut", "cut", "first batch", "first batch without a limit"],
)
def test_a_batch_that_may_be_cut_confirms_nothing(
    limit: int | None, starts: dict[TopicPartition, int], expected: int
) -> None:
    """It ends before the offsets that Kafka had then: rows below a watermark that was read may be behind them."""
    assert replace(BATCHES, limit=limit)._listing(7, starts, ENDS) == expected


def test_batches_of_one_run_were_planned_at_once() -> None:
    assert replace(BATCHES, listed_before=5)._listing(7, STARTS, ENDS) == 105
    assert replace(BATCHES, listed_before=5, interrupted=7)._listing(7, STARTS, ENDS) == 0
