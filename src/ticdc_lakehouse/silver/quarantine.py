"""Messages that could not be decoded: which are open, decoding them again, dismissing them with a reason.

    ops.quarantine_actions   one line an action (replayed or dismissed): message, note, acted_at

A message is open until an action names it; a dismissed one can still be replayed by its position. Replaying decodes
the raw bytes of bronze again, with today's code and options, and appends what comes out to silver at the message's old
position, marked with ``replayed_at``; gold puts it in its place by commit_ts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Kind
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.silver import decode_stream

ACTIONS = "quarantine_actions"
ALL = "all"
"""Every open message, where positions are asked for."""
LARGEST_PARTITION, LARGEST_OFFSET = 2**31 - 1, 2**63 - 1

Position = tuple[str, int, int]
"""Topic, partition, offset."""
_POSITION = ["topic", "partition", "offset"]
_ACTION_COLUMNS = """
    feed STRING NOT NULL,
    topic STRING NOT NULL,
    partition INT NOT NULL,
    offset BIGINT NOT NULL,
    action STRING NOT NULL COMMENT 'replayed or dismissed',
    note STRING COMMENT 'the reason given by who acted',
    acted_at TIMESTAMP NOT NULL
"""


class Action(StrEnum):
    """What was done about a quarantined message."""

    REPLAYED = "replayed"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replay did."""

    decoded: int
    """Messages that are decoded now."""
    still_open: int
    """Messages that failed again and stay in quarantine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenHold:
    """The first open message of one partition that is of one table, or of none that is known."""

    topic: str
    partition: int
    offset: int
    reason: str
    database: str | None
    table: str | None
    """None where the message may have been anything."""


def positions_of(texts: Sequence[str]) -> list[Position]:
    """The positions that a person names as ``topic/partition/offset``; none for ``all``, that is every open message.

    Raises ConfigError for no text and for any other one.
    """
    if not texts:
        raise ConfigError(f"messages: expected topic/partition/offset of each, or {ALL}, found none")
    return [] if [*texts] == [ALL] else [*map(_position, texts)]


def _position(text: str) -> Position:
    topic, *numbers = text.split("/")
    # No more digits than Kafka's largest offset has: Python reads no number of thousands of them.
    if len(numbers) != 2 or not topic or not all(re.fullmatch("[0-9]{1,19}", number) for number in numbers):
        raise ConfigError(f"messages: expected topic/partition/offset, or {ALL} alone, found {text!r}")
    partition, offset = map(int, numbers)
    if partition > LARGEST_PARTITION or offset > LARGEST_OFFSET:
        largest = f"{LARGEST_PARTITION}/{LARGEST_OFFSET}"
        raise ConfigError(f"messages: expected topic/partition/offset, at most {largest}, found {text!r}")
    return topic, partition, offset


def create_tables(lake: Lake) -> None:
    """Create the table of actions where it is missing."""
    lake.create(Layer.OPS, ACTIONS, _ACTION_COLUMNS, comment="What was done about quarantined messages")


def open_messages(lake: Lake, feed: str) -> DataFrame:
    """The quarantined messages of a feed that nothing was done about: columns of ``silver.<feed>_quarantine``."""
    return _without(lake, feed, tuple(Action))


def _without(lake: Lake, feed: str, done: tuple[Action, ...]) -> DataFrame:
    """The quarantined messages of a feed on which none of these actions was taken."""
    columns = [*_POSITION, "timestamp", "batch", "reason", "detail", "error_offset", "database", "table"]
    errors = _errors(lake, feed).select(*columns)
    if not lake.exists(Layer.OPS, ACTIONS):
        return errors
    actions = lake.spark.table(lake.table(Layer.OPS, ACTIONS)).where(
        (F.col("feed") == feed) & F.col("action").isin([action.value for action in done])
    )
    return errors.join(actions, _POSITION, "left_anti")


def _errors(lake: Lake, feed: str) -> DataFrame:
    # `reason` is NULL but for errors: its null count lets Delta skip every file without one.
    return lake.spark.table(lake.table(Layer.SILVER, decode_stream.events_table(feed))).where(
        F.col("reason").isNotNull() & (F.col("kind") == Kind.ERROR.value) & F.col("replayed_at").isNull()
    )


def open_holds(lake: Lake, feed: str) -> list[OpenHold]:
    """The first open message of each partition and table."""
    if not _errors(lake, feed).head(1):  # as it should be, and quickly seen
        return []
    lines = (
        open_messages(lake, feed)
        .groupBy("topic", "partition", "database", "table")
        .agg(F.min("offset").alias("offset"), F.min_by("reason", "offset").alias("reason"))
        .collect()
    )
    return [OpenHold(**line.asDict()) for line in lines]


def replay(
    lake: Lake,
    decoding: decode_stream.Decoding,
    positions: Sequence[Position] = (),
    *,
    reason: str | None = None,
) -> Replayed:
    """Decode messages again and append to silver what decodes now: all open ones, or those of one ``reason``, or those
    at these positions, also dismissed ones."""
    feed = decoding.feed
    done_with = (Action.REPLAYED,) if positions else tuple(Action)
    candidates = _without(lake, feed, done_with)
    if reason is not None:
        candidates = candidates.where(F.col("reason") == reason)
    waiting = _selected(lake, candidates, positions).select(*_POSITION, "batch")
    if not waiting.head(1):
        return Replayed(decoded=0, still_open=0)
    messages = lake.spark.table(lake.table(Layer.BRONZE, landing.messages_table(feed)))
    raw = messages.join(F.broadcast(waiting), [*_POSITION, "batch"])
    lines = decode_stream.decoded(raw, decoding).withColumn("replayed_at", F.current_timestamp()).localCheckpoint()
    good = lines.where(F.col("kind") != Kind.ERROR.value)
    done = good.select(*_POSITION).distinct()
    count = done.count()
    if count:
        # Events first: a crash before the action leaves the message open, and a second replay adds only repeats.
        _append(good, lake.table(Layer.SILVER, decode_stream.events_table(feed)))
        _record(lake, feed, done, Action.REPLAYED, "decoded again")
    return Replayed(decoded=count, still_open=waiting.count())


def dismiss(lake: Lake, feed: str, positions: Sequence[Position], note: str) -> int:
    """Record that open messages (all, or those at these positions) will not be decoded, and why. Gives their number.

    Raises ConfigError if it is not said why.
    """
    if not note.strip():
        raise ConfigError("reason: expected a text that says why these messages are not needed, found none")
    chosen = _selected(lake, open_messages(lake, feed), positions).select(*_POSITION).localCheckpoint()
    count = chosen.count()
    if count:
        _record(lake, feed, chosen, Action.DISMISSED, note)
    return count


def _selected(lake: Lake, messages: DataFrame, positions: Sequence[Position]) -> DataFrame:
    if not positions:
        return messages
    chosen = lake.spark.createDataFrame(list(positions), "topic STRING, partition INT, offset BIGINT")
    return messages.join(F.broadcast(chosen), _POSITION, "left_semi")


def _record(lake: Lake, feed: str, positions: DataFrame, action: Action, note: str) -> None:
    lines = positions.select(
        F.lit(feed).alias("feed"),
        *_POSITION,
        F.lit(action.value).alias("action"),
        F.lit(note).alias("note"),
        F.current_timestamp().alias("acted_at"),
    )
    _append(lines, lake.table(Layer.OPS, ACTIONS))


def _append(lines: DataFrame, table: str) -> None:
    lines.write.format("delta").mode("append").saveAsTable(table)
