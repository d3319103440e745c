"""Messages that could not be decoded: which are open, decoding them again, dismissing them with a reason.

    ops.quarantine_actions   one row an action (replayed or dismissed): message, note, acted_at

A message is open until an action names it; a dismissed one can still be replayed by its position. Replaying decodes
the raw bytes of bronze again, with today's code and options, and appends what comes out to silver at the message's old
position, marked with ``replayed_at``; gold puts it in its place by commit_ts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Kind
from ticdc_codec.tso import with_time
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer, Reader, Values
from ticdc_lakehouse.commit_conflict import Conflict, conflict_of
from ticdc_lakehouse.silver import decode_stream, events_table
from ticdc_lakehouse.silver.retention_floor import first_offsets, retention_floor
from ticdc_lakehouse.sql.number_ranges import Range, ranges, ranges_sql
from ticdc_lakehouse.sql.text import literal

ACTIONS = "quarantine_actions"
ALL = "all"
"""In place of positions: every open message."""
LARGEST_PARTITION, LARGEST_OFFSET = 2**31 - 1, 2**63 - 1

_MOST_BATCHES = 1_000
"""Of messages in more batches, a replay reads all batches between the first and the last."""

Position = tuple[str, int, int]
"""Topic, partition, offset."""
_POSITION = ["topic", "partition", "offset"]
_ACTION_COLUMNS = """
    feed STRING NOT NULL COMMENT 'changefeed, as its file is named',
    topic STRING NOT NULL COMMENT 'Kafka topic of the message',
    partition INT NOT NULL COMMENT 'Kafka partition',
    offset BIGINT NOT NULL COMMENT 'Kafka offset',
    action STRING NOT NULL COMMENT 'replayed or dismissed',
    note STRING COMMENT 'reason that the operator gave',
    acted_at TIMESTAMP NOT NULL COMMENT 'when the action was taken'
"""


class QuarantineAction(StrEnum):
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
class BlockingMessage:
    """The first open message of a partition for one table, or for an unknown table."""

    topic: str
    partition: int
    offset: int
    reason: str
    database: str | None
    table: str | None
    """None where the message may hold anything."""

    @property
    def position(self) -> str:
        """``topic/partition/offset``, as ``--at`` takes it."""
        return f"{self.topic}/{self.partition}/{self.offset}"


def positions_of(texts: Sequence[str]) -> list[Position]:
    """Reads positions that are given as ``topic/partition/offset``; none for ``all``, every open message.

    Raises ConfigError for no text and for any other text.
    """
    if not texts:
        raise ConfigError(f"messages (--at): expected topic/partition/offset of each, or {ALL}, found none")
    return [] if [*texts] == [ALL] else [*map(_position, texts)]


def _position(text: str) -> Position:
    topic, *numbers = text.split("/")
    # No more digits than Kafka's largest offset has: Python reads no number of thousands of them.
    are_numbers = len(numbers) == 2 and all(re.fullmatch("[0-9]{1,19}", number) for number in numbers)
    if not are_numbers or not re.fullmatch("[a-zA-Z0-9._-]{1,249}", topic):  # what Kafka takes as a topic's name
        raise ConfigError(f"messages (--at): expected topic/partition/offset, or {ALL} alone, found {text!r}")
    partition, offset = map(int, numbers)
    if partition > LARGEST_PARTITION or offset > LARGEST_OFFSET:
        largest = f"{LARGEST_PARTITION}/{LARGEST_OFFSET}"
        raise ConfigError(f"messages (--at): expected topic/partition/offset, at most {largest}, found {text!r}")
    return topic, partition, offset


def position_text(message: Values) -> str:
    """Returns a message's position as ``--at`` takes it, from its columns topic, partition and offset."""
    return f"{message['topic']}/{message['partition']}/{message['offset']}"


def fault_text(message: Values) -> str:
    """Returns why a message of ``silver.<feed>_quarantine`` was not decoded: ``reason at byte 7: detail``."""
    at = "" if message["error_offset"] is None else f" at byte {message['error_offset']}"
    return f"{message['reason']}{at}: {message['detail']}"


def create_tables(lake: Lake) -> None:
    """Creates the table of actions where it is missing."""
    lake.create(Layer.OPS, ACTIONS, _ACTION_COLUMNS, comment="What was done about quarantined messages")


def open_messages(lake: Lake, feed: str) -> DataFrame:
    """Returns the quarantined messages of a feed that nothing was done about: columns of
    ``silver.<feed>_quarantine``."""
    return lake.spark.sql(open_messages_sql(lake, feed))


def open_messages_sql(lake: Reader, feed: str, done: Sequence[QuarantineAction] = tuple(QuarantineAction)) -> str:
    """Returns a query of the quarantined messages of a feed on which none of these actions was taken, one row each."""
    errors = _errors_once_sql(lake, feed)
    if not lake.exists(Layer.OPS, ACTIONS):
        return errors
    actions = ", ".join(literal(action) for action in done)
    return f"""
        SELECT errors.* FROM ({errors}) AS errors LEFT ANTI JOIN (
            SELECT topic, partition, offset FROM {lake.table(Layer.OPS, ACTIONS)}
            WHERE feed = {literal(feed)} AND action IN ({actions})
        ) AS acted ON errors.topic = acted.topic AND errors.partition = acted.partition
            AND errors.offset = acted.offset"""


def dismissed_count(lake: Reader, feed: str) -> int:
    """Returns how many messages of a feed were dismissed, and not replayed since."""
    if not lake.exists(Layer.OPS, ACTIONS):
        return 0
    [row] = lake.rows(f"""
        SELECT count(*) AS messages FROM (
            SELECT topic, partition, offset FROM {lake.table(Layer.OPS, ACTIONS)} WHERE feed = {literal(feed)}
            GROUP BY topic, partition, offset HAVING bool_and(action = '{QuarantineAction.DISMISSED}')) AS dismissed""")
    return int(row["messages"])


def undecoded_count(lake: Reader, feed: str, after: int) -> int:
    """Returns how many messages of the bronze batches after one are open or dismissed."""
    messages = open_messages_sql(lake, feed, (QuarantineAction.REPLAYED,))
    [row] = lake.rows(f"SELECT count(*) AS messages FROM ({messages}) AS undecoded WHERE batch > {after}")
    return int(row["messages"])


def _errors(lake: Reader, feed: str) -> str:
    # Only errors have a `reason`: its null count lets Delta skip every file without one.
    events = events_table.full_name(lake, feed)
    return f"{events} WHERE reason IS NOT NULL AND kind = '{Kind.ERROR}' AND replayed_at IS NULL"


def _errors_once_sql(lake: Reader, feed: str) -> str:
    """Returns a query of each message that was not decoded, once: after a checkpoint was lost, silver decodes what
    bronze has anew, and bronze may land a batch a second time. The row of the newest batch counts; of one batch, which
    keeps no order, the one that blocks most: the row without a name."""
    columns = events_table.QUARANTINE_COLUMNS
    return f"""
        SELECT {columns} FROM (
            SELECT {columns}, row_number() OVER (
                PARTITION BY topic, partition, offset
                ORDER BY batch DESC, database NULLS FIRST, table NULLS FIRST, reason, detail, error_offset NULLS FIRST
            ) AS copy FROM {_errors(lake, feed)}) AS copies
        WHERE copy = 1"""


def has_errors(lake: Reader, feed: str) -> bool:
    """True if silver has a message that was not decoded, whatever was done about it since. That it has none, the usual
    case, is known quickly."""
    return bool(lake.rows(f"SELECT 1 AS error FROM {_errors(lake, feed)} LIMIT 1"))


def blocking_messages(lake: Reader, feed: str) -> list[BlockingMessage]:
    """Returns the first open message of each partition and table. Where most feeds have none, ask `has_errors`
    first."""
    rows = lake.rows(f"""
        SELECT topic, partition, offset, reason, database, table FROM (
            SELECT *, row_number() OVER (PARTITION BY topic, partition, database, table ORDER BY offset) AS nth
            FROM ({open_messages_sql(lake, feed)}) AS open) AS numbered
        WHERE nth = 1""")
    return [BlockingMessage(**row) for row in rows]


def reasons(lake: Reader, feed: str, positions: Sequence[Position] = ()) -> dict[str, int]:
    """Returns how many messages are open (all, or those at these positions), by reason; the most frequent first."""
    rows = lake.rows(f"""
        SELECT reason, count(*) AS messages FROM ({open_messages_sql(lake, feed)}) AS open
        WHERE {_at(positions)} GROUP BY reason ORDER BY messages DESC, reason""")
    return {row["reason"]: row["messages"] for row in rows}


def first_open(lake: Reader, feed: str, positions: Sequence[Position], limit: int | None = None) -> list[Values]:
    """Returns the first open messages, or all, by Kafka's timestamp: columns of ``silver.<feed>_quarantine``."""
    return _first(lake, open_messages_sql(lake, feed), positions, limit)


def first_replayable(lake: Reader, feed: str, positions: Sequence[Position], limit: int) -> list[Values]:
    """Returns the first of the messages that `replay` would decode, by Kafka's timestamp: columns of
    ``silver.<feed>_quarantine``. Raises ConfigError as `replay` does before it decodes."""
    messages = _first(lake, open_messages_sql(lake, feed, done_before_replay(positions)), positions, limit)
    if messages:
        _check_kept(lake, feed, positions)
    return messages


def _first(lake: Reader, messages: str, positions: Sequence[Position], limit: int | None) -> list[Values]:
    return lake.rows(f"""
        SELECT * FROM ({messages}) AS open WHERE {_at(positions)}
        ORDER BY timestamp, topic, partition, offset {"" if limit is None else f"LIMIT {limit}"}""")


def done_before_replay(positions: Sequence[Position]) -> tuple[QuarantineAction, ...]:
    """Returns the actions after which a message is not replayed: a dismissed one is, if its position is given."""
    return (QuarantineAction.REPLAYED,) if positions else tuple(QuarantineAction)


def absent(
    lake: Reader, feed: str, positions: Sequence[Position], done: Sequence[QuarantineAction] = tuple(QuarantineAction)
) -> list[Position]:
    """Returns those of the positions that have no open message: nothing is in quarantine there, or one of the actions
    ``done`` was taken on it."""
    if not positions or not events_table.exists(lake, feed):
        return sorted({*positions})
    messages = open_messages_sql(lake, feed, done)
    rows = lake.rows(f"SELECT topic, partition, offset FROM ({messages}) AS open WHERE {_at(positions)}")
    return sorted({*positions} - {(row["topic"], row["partition"], row["offset"]) for row in rows})


def _at(positions: Sequence[Position]) -> str:
    """Returns the SQL condition that a message is at one of these positions; any message if there are none."""
    conditions = (
        f"(topic = {literal(topic)} AND partition = {partition} AND offset = {offset})"
        for topic, partition, offset in positions
    )
    return " OR ".join(conditions) or "true"


def replay(
    lake: Lake, decoding: decode_stream.Decoding, positions: Sequence[Position] = (), *, reason: str | None = None
) -> Replayed:
    """Decodes messages again and appends to silver those that decode now: all open messages, or those with one
    ``reason``, or those at these positions, also dismissed ones.

    Raises ConfigError for a position whose message, or changes after it, retention has deleted.
    """
    feed = decoding.feed
    _check_kept(lake, feed, positions)
    waiting = _replayable(lake, feed, positions, reason)
    batches = _batches(waiting)
    if not batches:
        return Replayed(decoded=0, still_open=0)
    events = events_table.full_name(lake, feed)
    began = _after_all_replays(lake, events)
    at = F.lit(began)
    again = decode_stream.decoded(_raw(lake, feed, waiting, batches), decoding)
    good = again.where(F.col("kind") != Kind.ERROR.value).withColumn("replayed_at", at)
    with decode_stream.row_by_row(lake.spark):
        if not good.head(1):
            return Replayed(decoded=0, still_open=waiting.count())
        if positions:
            _check_changes_kept(lake, feed, good)
        # Events first: a crash before the action leaves the message open, and a second replay adds only duplicates.
        _append_in_order(feed, good, events, began)
    # Only what was appended: other messages may have been quarantined since.
    done = lake.spark.table(events).where(F.col("replayed_at") == at).select(*_POSITION).distinct()
    if not done.head(1):
        return replay(lake, decoding, positions, reason=reason)
    _record(lake, feed, done, QuarantineAction.REPLAYED, "decoded again", at)
    return Replayed(decoded=done.count(), still_open=waiting.count())


def _replayable(lake: Lake, feed: str, positions: Sequence[Position], reason: str | None) -> DataFrame:
    """Returns position and batch of the messages to replay, as `replay` describes them."""
    candidates = lake.spark.sql(open_messages_sql(lake, feed, done_before_replay(positions)))
    if reason is not None:
        candidates = candidates.where(F.col("reason") == reason)
    return _selected(lake, candidates, positions).select(*_POSITION, "batch")


def _batches(waiting: DataFrame) -> list[Range]:
    """Returns ranges of bronze batches that hold those of some messages."""
    numbers = [row["batch"] for row in waiting.select("batch").distinct().limit(_MOST_BATCHES + 1).collect()]
    if len(numbers) <= _MOST_BATCHES:
        return ranges(numbers)
    [(first, last)] = waiting.agg(F.min("batch"), F.max("batch")).collect()
    return [(first, last)]


def _raw(lake: Lake, feed: str, waiting: DataFrame, batches: Sequence[Range]) -> DataFrame:
    """Returns messages of these batches as bronze has them. The join alone would read every file of bronze."""
    messages = lake.spark.table(lake.table(Layer.BRONZE, landing.messages_table(feed)))
    return messages.where(ranges_sql(batches)).join(F.broadcast(waiting), [*_POSITION, "batch"])


def _check_kept(lake: Reader, feed: str, positions: Sequence[Position]) -> None:
    """Raises ConfigError for a position whose bytes, or whose rows' later changes, are deleted."""
    first = first_offsets(lake, feed) if positions else {}
    for topic, partition, offset in positions:
        if offset < first.get((topic, partition), 0):
            raise ConfigError(
                f"feed {feed}: message {topic}/{partition}/{offset} cannot be replayed: bronze and silver keep those "
                f"from offset {first[topic, partition]} on (bronze.retention_days, silver.retention_days): load an "
                "export taken since"
            )


def _check_changes_kept(lake: Lake, feed: str, decoded: DataFrame) -> None:
    """Raises ConfigError for a row of a dismissed message whose key may have had later changes, of any partition, that
    are deleted. Retention keeps those that an open message needs."""
    gone = retention_floor(lake, feed, Layer.SILVER).tso
    if gone == 0:
        return
    rows = decoded.where((F.col("kind") == Kind.ROW.value) & (F.expr(events_table.COMMIT_ORDER) <= gone))
    first = rows.join(open_messages(lake, feed), _POSITION, "left_anti").first()
    if first is not None:
        raise ConfigError(
            f"feed {feed}: message {position_text(first.asDict())} cannot be replayed: silver no longer has all "
            f"changes up to {with_time(gone)} (silver.retention_days): load an export taken since"
        )


def dismiss(lake: Lake, feed: str, positions: Sequence[Position], note: str) -> int:
    """Records that open messages (all, or those at these positions) will not be decoded, and why. Returns their number.

    Raises ConfigError if ``note`` is blank.
    """
    if not note.strip():
        raise ConfigError("reason: expected a text that says why these messages are not needed, found none")
    chosen = _selected(lake, open_messages(lake, feed), positions).select(*_POSITION)
    if not chosen.head(1):
        return 0
    at = F.lit(datetime.now(UTC))
    _record(lake, feed, chosen, QuarantineAction.DISMISSED, note, at)
    recorded = lake.spark.table(lake.table(Layer.OPS, ACTIONS))
    return recorded.where((F.col("feed") == feed) & (F.col("acted_at") == at)).count()


def _selected(lake: Lake, messages: DataFrame, positions: Sequence[Position]) -> DataFrame:
    if not positions:
        return messages
    chosen = lake.spark.createDataFrame(list(positions), "topic STRING, partition INT, offset BIGINT")
    return messages.join(F.broadcast(chosen), _POSITION, "left_semi")


def _record(lake: Lake, feed: str, positions: DataFrame, action: QuarantineAction, note: str, at: Column) -> None:
    rows = positions.select(
        F.lit(feed).alias("feed"),
        *_POSITION,
        F.lit(action.value).alias("action"),
        F.lit(note).alias("note"),
        at.alias("acted_at"),
    )
    rows.write.format("delta").mode("append").saveAsTable(lake.table(Layer.OPS, ACTIONS))


def _after_all_replays(lake: Lake, events: str) -> datetime:
    """Returns the current time, or the microsecond after the newest replay if another machine's clock is ahead."""
    [row] = lake.rows(f"SELECT max(replayed_at) AS newest FROM {events} WHERE replayed_at IS NOT NULL")
    now: datetime = datetime.now(UTC)
    return now if row["newest"] is None else max(now, row["newest"] + timedelta(microseconds=1))


def _append_in_order(feed: str, rows: DataFrame, events: str, began: datetime) -> None:
    """Appends what a replay decoded, unless a replay that began later was appended meanwhile: gold reads replays by
    ascending ``replayed_at`` and would skip this one. Delta keeps the order: it ignores a smaller transaction
    number."""
    once = {"txnAppId": f"ticdc-lake replay {feed}", "txnVersion": str(round(began.timestamp() * 1_000_000))}
    try:
        rows.write.format("delta").mode("append").options(**once).saveAsTable(events)
    except PySparkException as error:
        if conflict_of(error) is not Conflict.TRANSACTION:
            raise
