"""What Spark's errors say about messages that Kafka no longer has, and what to do.

Spark notes the batch that it plans in the checkpoint before it looks whether Kafka has all messages of it, and plans no
other one at the next start: what was wrong once stays wrong until the checkpoint is gone.
"""

from __future__ import annotations

import re

_LOSS = re.compile("DATA_LOSS|data may have been lost|OffsetOutOfRange")
# Each: Spark's error classes, and their texts, which are all that it says outside Databricks.
_PARTITION_GONE = re.compile(
    "PARTITIONS_DELETED|INITIAL_OFFSET_NOT_FOUND|Partitions .* have been deleted|Cannot find initial offsets"
)
_BEGINNING_GONE = re.compile("DOES_NOT_START_FROM_OFFSET_ZERO|Added partition .* instead of 0")
_REASON = re.compile(r"\bReason:\s*(.+)")


def loss_of(text: str, checkpoint: str) -> str | None:
    """Returns what the text of an error means for the feed whose bronze has that checkpoint; None if no message is
    lost."""
    if _LOSS.search(text) is None:
        return None
    found = _REASON.search(text)
    reason = text.strip().splitlines()[0] if found is None else found[1].rstrip(".")
    if _PARTITION_GONE.search(text):
        return (
            f"partitions that bronze reads are not in Kafka, or were not when it planned its newest batch: {reason}. "
            f"If they are there again, and nobody created them anew, delete the folder {checkpoint}: bronze continues "
            "where its tables end. If they were deleted, their messages may be lost: begin a new feed"
        )
    if _BEGINNING_GONE.search(text):
        return (
            f"Kafka deleted the first messages of a new topic or partition before bronze read them: {reason}. To "
            f"continue with those that are left, delete the folder {checkpoint}: bronze continues where its tables "
            "end. Then `load` an export of the tables whose changes are lost"
        )
    return (
        f"Kafka deleted messages before they were read (its retention is shorter than the reader's pause): {reason}. "
        "Their changes are lost, and gold stays at its last watermark. A new feed starts with empty tables; raise the "
        "topic's retention first"
    )
