"""Bronze: every Kafka message of a feed, byte for byte, and the offset read to in every partition.

    bronze.<feed>_messages   topic, partition, offset, timestamp, key, value, headers, ingest_time, batch
    bronze.<feed>_offsets    batch, query, topic, partition, start_offset, end_offset, messages, listing, ingest_time

Each micro-batch is appended to both once. Structured Streaming may run a batch again after a crash: the Delta
transaction (query id, batch number) of each append makes the second one a no-op.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress

from ticdc_codec.errors import ConfigError, OffsetGapError, listed
from ticdc_lakehouse import stream_checkpoint
from ticdc_lakehouse.bronze.empty_topics import confirm_empty_topics
from ticdc_lakehouse.bronze.lost_messages import loss_of
from ticdc_lakehouse.bronze.micro_batch import MicroBatches, TopicPartition
from ticdc_lakehouse.bronze.restored_copy import RestoredCopyCheck
from ticdc_lakehouse.bronze.topic_ids import check_topic_ids
from ticdc_lakehouse.bronze.topic_pattern import may_match
from ticdc_lakehouse.catalog import Lake, Layer, Reader
from ticdc_lakehouse.error_text import first_line, java_root_cause
from ticdc_lakehouse.session_settings import partial_offsets_allowed

# A consumer asks for what comes next before it hands over what it has read, and Kafka answers the requests of a
# connection one after the other. So at the end of a partition the question for its offsets, which Spark asks next,
# waits for as long as a fetch may: with Kafka's 500 ms half a second in each task of each batch.
_FETCH_WAIT_MS = 10

_NOT_OF_KAFKA = ("FOREACH_BATCH_USER_FUNCTION_ERROR", "CONCURRENT_STREAM_LOG_UPDATE")
"""Spark's error classes of what happens while a batch is read and appended, and of a second run on a checkpoint: their
texts say what is wrong, which is nothing in the feed's file."""
_OF_THE_DISK = ("No space left on device", "Disk quota exceeded", "Read-only file system", "Input/output error")
"""Why Spark does not write its checkpoint: the client of Kafka writes nothing."""
_EARLIEST = -2
"""In the place of an offset, as Kafka's options write it."""
_FIRST_BATCH = "first_batch"
"""Name of the file beside the checkpoint that says the feed's number of the query's batch 0."""

_MESSAGE_COLUMNS = """
    topic STRING NOT NULL COMMENT 'Kafka topic',
    partition INT NOT NULL COMMENT 'Kafka partition',
    offset BIGINT NOT NULL COMMENT 'Kafka offset',
    timestamp TIMESTAMP COMMENT 'Kafka record timestamp',
    key BINARY COMMENT 'record key, unchanged',
    value BINARY COMMENT 'record value, unchanged',
    headers ARRAY<STRUCT<key: STRING, value: BINARY>> COMMENT 'record headers in order, duplicates kept',
    ingest_time TIMESTAMP NOT NULL COMMENT 'when the batch was landed',
    batch BIGINT NOT NULL COMMENT 'micro-batch that landed it'
"""
_OFFSET_COLUMNS = """
    batch BIGINT NOT NULL COMMENT 'micro-batch of the bronze stream',
    query STRING NOT NULL COMMENT 'id of the streaming query; a new one begins when its checkpoint is lost',
    topic STRING NOT NULL COMMENT 'Kafka topic of the message',
    partition INT NOT NULL COMMENT 'Kafka partition',
    start_offset BIGINT NOT NULL COMMENT 'first offset that the batch requested',
    end_offset BIGINT NOT NULL COMMENT 'offset after the last one; equal to start_offset if there was none',
    messages BIGINT NOT NULL COMMENT 'messages landed',
    listing BIGINT NOT NULL COMMENT 'end_offset was asked of Kafka after the batches before this number were read',
    ingest_time TIMESTAMP NOT NULL COMMENT 'when the batch was landed'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSource:
    """Where a feed's messages come from."""

    feed: str
    kafka_options: Mapping[str, str]
    """Options of Spark's Kafka source: ``kafka.bootstrap.servers``, ``subscribe`` or ``subscribePattern``, security."""
    starting_offsets: str = "earliest"
    servers_setting: str = "kafka.bootstrap_servers"
    """What names the brokers, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """What one run of bronze did."""

    feed: str
    batches: int
    messages: int


def messages_table(feed: str) -> str:
    """Returns the name of a feed's table of raw messages."""
    return f"{feed}_messages"


def offsets_table(feed: str) -> str:
    """Returns the name of a feed's table of offsets read to."""
    return f"{feed}_offsets"


def landed_feeds(lake: Lake) -> list[str]:
    """Returns the feeds that bronze has run for."""
    ending = offsets_table("")
    return [name.removesuffix(ending) for name in lake.tables(Layer.BRONZE) if name.endswith(ending)]


def landed_messages(lake: Reader, feed: str, where: str = "true") -> int:
    """Counts the messages landed of a feed, in the batches that meet the SQL condition; 0 if bronze has not run for
    it."""
    if not lake.exists(Layer.BRONZE, offsets_table(feed)):
        return 0
    [row] = lake.rows(f"SELECT sum(messages) AS n FROM {lake.table(Layer.BRONZE, offsets_table(feed))} WHERE {where}")
    return int(row["n"] or 0)


def has_committed_batch(lake: Lake, feed: str) -> bool:
    """True if the checkpoint of the feed's stream has a batch that is committed, also one without messages."""
    return stream_checkpoint.next_batch(_checkpoint(lake, feed)) > 0


def _checkpoint(lake: Lake, feed: str) -> str:
    return lake.checkpoint(f"bronze_{feed}")


def create_tables(lake: Lake, feed: str) -> None:
    """Creates a feed's bronze tables where they are missing."""
    lake.create(
        Layer.BRONZE,
        messages_table(feed),
        _MESSAGE_COLUMNS,
        comment=f"Kafka messages of changefeed {feed}, byte for byte",
    )
    lake.create(
        Layer.BRONZE,
        offsets_table(feed),
        _OFFSET_COLUMNS,
        comment=f"Offsets of changefeed {feed} read to, per batch and partition, including partitions with no messages",
    )


def land(
    lake: Lake,
    source: KafkaSource,
    *,
    last_used: Callable[[int], int],
    is_waited_for: Callable[[TopicPartition], bool],
    continuous: bool = False,
    max_offsets_per_trigger: int | None = None,
) -> Landed:
    """Lands what Kafka has (``availableNow``), or continues until stopped (``continuous``).

    The batches of a new stream get numbers above those that silver and gold have: bronze's tables may be restored from
    an older copy. ``last_used`` returns the newest batch that silver or gold has after the given one, else the given
    one; it is asked once a process. ``is_waited_for`` says for which partitions gold's watermark waits: Kafka is asked
    once more only about their topics.

    Raises OffsetGapError if Kafka deleted messages before they were read or has another topic of the name, ConfigError
    if the brokers cannot be read, a topic is no longer to be read, or something was restored from an older copy, and
    StreamingQueryException for what goes wrong in a batch, or for a second run.
    """
    create_tables(lake, source.feed)
    try:
        return _land(
            lake,
            source,
            last_used,
            is_waited_for,
            continuous=continuous,
            max_offsets_per_trigger=max_offsets_per_trigger,
        )
    except StreamingQueryException as error:
        _explain(source, _checkpoint(lake, source.feed), error)
        raise


def _land(
    lake: Lake,
    source: KafkaSource,
    last_used: Callable[[int], int],
    is_waited_for: Callable[[TopicPartition], bool],
    *,
    continuous: bool,
    max_offsets_per_trigger: int | None,
) -> Landed:
    checkpoint = _checkpoint(lake, source.feed)
    begun = stream_checkpoint.planned(checkpoint) is not None
    read = stream_checkpoint.planned_topics(checkpoint)
    refuse_removed(source, read)
    options = kafka_options(source, {} if begun else _ends(lake, source), max_offsets_per_trigger)
    check_topic_ids(lake.spark, source.feed, options, checkpoint)
    started, interrupted = stream_checkpoint.next_batch(checkpoint), stream_checkpoint.interrupted(checkpoint)
    append = MicroBatches(
        messages_table=lake.table(Layer.BRONZE, messages_table(source.feed)),
        offsets_table=lake.table(Layer.BRONZE, offsets_table(source.feed)),
        checkpoint=checkpoint,
        first_batch=_first_batch(lake, source.feed, checkpoint, last_used),
        interrupted=interrupted,
        listed_before=None if continuous else started + (interrupted is not None),
        limit=max_offsets_per_trigger,
    )
    RestoredCopyCheck(lake=lake, feed=source.feed, batches=append, last_used=last_used).run()
    messages = lake.spark.readStream.format("kafka").options(**options).load().drop("timestampType")
    writer = messages.writeStream.queryName(f"bronze {source.feed}").option("checkpointLocation", checkpoint)
    with partial_offsets_allowed(lake.spark):
        query = (writer if continuous else writer.trigger(availableNow=True)).foreachBatch(append.append).start()
    query.awaitTermination()
    stream_checkpoint.note_end(checkpoint)
    if stream_checkpoint.planned_topics(checkpoint) - read:
        check_topic_ids(lake.spark, source.feed, options, checkpoint)
    if not continuous:
        confirm_empty_topics(lake, source.feed, append, is_waited_for, lambda: _ends_now(lake, source))
    return _landed(lake, source.feed, append, query.recentProgress, started)


def kafka_options(
    source: KafkaSource, ends: Mapping[str, Mapping[str, int]], max_offsets_per_trigger: int | None
) -> dict[str, str]:
    """Returns the options of Spark's Kafka source.

    ``ends``: by topic and partition, as Kafka's options write them, the offset to begin at; empty for the feed's own
    ``starting_offsets``. It counts if the checkpoint is new: a lost checkpoint lands nothing twice.
    """
    options = {
        "kafka.fetch.max.wait.ms": str(_FETCH_WAIT_MS),
        **source.kafka_options,
        "startingOffsets": json.dumps(ends) if ends else source.starting_offsets,
        "failOnDataLoss": "true",
        "includeHeaders": "true",
    }
    if max_offsets_per_trigger is not None:
        options["maxOffsetsPerTrigger"] = str(max_offsets_per_trigger)
    return options


def _first_batch(lake: Lake, feed: str, checkpoint: str, last_used: Callable[[int], int]) -> int:
    """Returns the feed's number of the query's batch 0: numbers continue where an earlier query, of a lost checkpoint,
    ended, and above those of ``last_used``. Gold would pass by what came in a batch of a number that it has seen.

    Found once a query, and kept beside its checkpoint.
    """
    query, noted = stream_checkpoint.query_id(checkpoint), stream_checkpoint.read_beside(checkpoint, _FIRST_BATCH)
    if query is not None and noted is not None:
        return int(noted)
    offsets = lake.spark.table(lake.table(Layer.BRONZE, offsets_table(feed)))
    row = offsets.agg(F.min(F.when(F.col("query") == F.lit(query), F.col("batch"))), F.max("batch") + 1).first()
    assert row is not None
    own, following = row
    first = int(own) if own is not None else max(int(following or 0), last_used(-1) + 1)
    stream_checkpoint.write_beside(checkpoint, _FIRST_BATCH, str(first))
    return first


def refuse_removed(source: KafkaSource, topics: Collection[str]) -> None:
    """Raises ConfigError if the feed's file no longer names topics that bronze has read: Spark would plan a batch
    without them, and then refuse it, also when they are named again."""
    names, pattern = source.kafka_options.get("subscribe", ""), source.kafka_options.get("subscribePattern")
    key, says = ("topics", "names") if pattern is None else ("topic_pattern", "matches")
    # Where only Java reads the pattern: Spark stops at a removed topic, too, and `lost_messages` names the way out.
    read = {topic for topic in topics if topic in names.split(",") or may_match(pattern or "", topic)}
    if removed := sorted(set(topics) - read):
        raise ConfigError(
            f"feed {source.feed}: kafka.{key} no longer {says} what bronze has read: {listed(removed)}. Keep it there; "
            "if TiCDC sends nothing to it any more, name it in kafka.retired as well. To land it no more, begin a new "
            "feed"
        )


def _ends(lake: Lake, source: KafkaSource) -> dict[str, dict[str, int]]:
    """Returns by topic and partition the offset that bronze has read to, or the earliest for a partition that is new
    since then; empty before the first batch. Raises OffsetGapError if a partition is gone."""
    offsets = lake.spark.table(lake.table(Layer.BRONZE, offsets_table(source.feed)))
    read = offsets.groupBy("topic", "partition").agg(F.max("end_offset")).collect()
    ends = {(topic, partition): end for topic, partition, end in read}
    refuse_removed(source, {topic for topic, _ in ends})
    present = {*(_ends_now(lake, source) or ends)} if ends else set()
    if gone := sorted(ends.keys() - present):
        places = listed(f"{topic}/{partition} at offset {ends[topic, partition]}" for topic, partition in gone)
        raise OffsetGapError(
            f"feed {source.feed}: bronze has lost its checkpoint, and Kafka has no more what it was reading: {places}. "
            "Messages after that may be lost. Restore the checkpoint, or begin a new feed"
        )
    by_topic: dict[str, dict[str, int]] = {}
    for topic, partition in sorted(present):
        by_topic.setdefault(topic, {})[str(partition)] = ends.get((topic, partition), _EARLIEST)
    return by_topic


def _ends_now(lake: Lake, source: KafkaSource) -> dict[TopicPartition, int]:
    """Returns the end offsets that Kafka has now: a stream that begins there notes them in its checkpoint. Empty if it
    noted none."""
    checkpoint = lake.checkpoint(f"bronze_{source.feed}.partitions")
    shutil.rmtree(checkpoint, ignore_errors=True)
    options = kafka_options(replace(source, starting_offsets="latest"), {}, None)
    stream = lake.spark.readStream.format("kafka").options(**options).load().writeStream.format("noop")
    stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    ends = stream_checkpoint.first_offsets(checkpoint)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return ends


def _landed(
    lake: Lake, feed: str, batches: MicroBatches, progress: Sequence[StreamingQueryProgress], started: int
) -> Landed:
    """Returns what the batches from ``started`` on landed: as the stream's progress counts, which forgets all but the
    last 100 batches and does not count a batch that an earlier run began; else as the table of offsets does."""
    ended = stream_checkpoint.next_batch(batches.checkpoint)
    counted = {p.batchId: p.numInputRows for p in progress if started <= p.batchId < ended}
    if len(counted) == ended - started and batches.interrupted is None:
        return Landed(feed=feed, batches=len(counted), messages=sum(counted.values()))
    offsets = lake.spark.table(lake.table(Layer.BRONZE, offsets_table(feed)))
    new = offsets.where(F.col("batch") >= batches.first_batch + started)
    row = new.agg(F.count_distinct("batch"), F.sum("messages")).first()
    assert row is not None
    return Landed(feed=feed, batches=int(row[0]), messages=int(row[1] or 0))


def _explain(source: KafkaSource, checkpoint: str, error: StreamingQueryException) -> None:
    """Raises the error that a stream's error means, if it is of Kafka."""
    text = str(error)
    if (loss := loss_of(text, checkpoint)) is not None:
        raise OffsetGapError(f"feed {source.feed}: {loss}") from error
    cause = java_root_cause(error)
    why = cause or first_line(error)
    is_of_disk = checkpoint in why or any(refusal in why for refusal in _OF_THE_DISK)
    if not (is_of_disk or any(condition in text for condition in _NOT_OF_KAFKA)):
        topics = source.kafka_options.get("subscribe") or source.kafka_options.get("subscribePattern")
        raise ConfigError(
            f"feed {source.feed}: reading topics {topics} from {source.kafka_options['kafka.bootstrap.servers']} "
            f"stopped; check {source.servers_setting} and kafka.security: {first_line(error)}"
            f"{'' if cause is None else f', because of {cause}'}"
        ) from error
