"""Bronze: every Kafka message of a feed, byte for byte, and the offset read to in every partition.

    bronze.<feed>_messages   topic, partition, offset, timestamp, key, value, headers, ingest_time, batch
    bronze.<feed>_offsets    batch, query, topic, partition, start_offset, end_offset, messages, ingest_time

Both are appended once a micro-batch. Structured Streaming may run a batch again after a crash: the Delta transaction
(query id, batch number) of each append makes the second one a no-op.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ticdc_codec.errors import ConfigError, OffsetGapError
from ticdc_lakehouse.catalog import Lake, Layer

_MESSAGE_COLUMNS = """
    topic STRING NOT NULL COMMENT 'Kafka topic',
    partition INT NOT NULL COMMENT 'Kafka partition',
    offset BIGINT NOT NULL COMMENT 'Kafka offset',
    timestamp TIMESTAMP COMMENT 'Kafka record timestamp',
    key BINARY COMMENT 'record key as it came',
    value BINARY COMMENT 'record value as it came',
    headers ARRAY<STRUCT<key: STRING, value: BINARY>> COMMENT 'record headers in order, duplicates kept',
    ingest_time TIMESTAMP NOT NULL COMMENT 'when the batch was landed',
    batch BIGINT NOT NULL COMMENT 'micro-batch that landed it'
"""
_OFFSET_COLUMNS = """
    batch BIGINT NOT NULL COMMENT 'micro-batch of the bronze stream',
    query STRING NOT NULL COMMENT 'id of the streaming query; a new one begins when its checkpoint is lost',
    topic STRING NOT NULL,
    partition INT NOT NULL,
    start_offset BIGINT NOT NULL COMMENT 'first offset that the batch asked for',
    end_offset BIGINT NOT NULL COMMENT 'offset after the last one; equal to start_offset if there was none',
    messages BIGINT NOT NULL COMMENT 'messages landed',
    ingest_time TIMESTAMP NOT NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a feed's messages come from."""

    feed: str
    kafka_options: Mapping[str, str]
    """Options of Spark's Kafka source: ``kafka.bootstrap.servers``, ``subscribe`` or ``subscribePattern``, security."""
    starting_offsets: str = "earliest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """What one run of bronze did."""

    feed: str
    batches: int
    messages: int


def messages_table(feed: str) -> str:
    """Name of a feed's table of raw messages."""
    return f"{feed}_messages"


def offsets_table(feed: str) -> str:
    """Name of a feed's table of offsets read to."""
    return f"{feed}_offsets"


def create_tables(lake: Lake, feed: str) -> None:
    """Create a feed's bronze tables where they are missing."""
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


def land(lake: Lake, source: Source, *, continuous: bool = False, max_offsets_per_trigger: int | None = None) -> Landed:
    """Land what Kafka has (``availableNow``), or go on landing until stopped (``continuous``).

    Raises OffsetGapError if Kafka deleted messages before they were read, ConfigError if the brokers cannot be read.
    """
    create_tables(lake, source.feed)
    before, ends = _landed(lake, source.feed)
    writer = _stream(lake, source, ends, max_offsets_per_trigger)
    query = (writer if continuous else writer.trigger(availableNow=True)).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise _stopped(source, error) from error
    return _landed_since(lake, source.feed, before)


def _stream(
    lake: Lake, source: Source, ends: Mapping[str, Mapping[str, int]], max_offsets_per_trigger: int | None
) -> DataStreamWriter:
    options = {
        **source.kafka_options,
        # Counts if the checkpoint is new: after what bronze has, so that a lost checkpoint lands nothing twice.
        "startingOffsets": json.dumps(ends) if ends else source.starting_offsets,
        "failOnDataLoss": "true",
        "includeHeaders": "true",
    }
    if max_offsets_per_trigger is not None:
        options["maxOffsetsPerTrigger"] = str(max_offsets_per_trigger)
    checkpoint = lake.checkpoint(f"bronze_{source.feed}")

    def append(batch: DataFrame, number: int) -> None:
        append_batch(lake, source.feed, checkpoint, batch, number)

    messages = lake.spark.readStream.format("kafka").options(**options).load().drop("timestampType")
    return (
        messages.writeStream.queryName(f"bronze {source.feed}")
        .option("checkpointLocation", checkpoint)
        .foreachBatch(append)
    )


def append_batch(lake: Lake, feed: str, checkpoint: str, messages: DataFrame, number: int) -> None:
    """Append one micro-batch to both tables, each at most once however often it is called."""
    query = str(json.loads(_checkpoint_file(checkpoint, "metadata"))["id"])
    batch = _first_batch(lake, feed, query) + number
    once = {"txnAppId": query, "txnVersion": str(number)}
    stamped = messages.withColumns({"ingest_time": F.current_timestamp(), "batch": F.lit(batch).cast("long")})
    _append(stamped, lake.table(Layer.BRONZE, messages_table(feed)), once)
    offsets = _offsets_of(lake, feed, checkpoint, number, batch)
    _append(offsets.withColumn("query", F.lit(query)), lake.table(Layer.BRONZE, offsets_table(feed)), once)


def _append(lines: DataFrame, table: str, once: Mapping[str, str]) -> None:
    lines.write.format("delta").mode("append").options(**once).saveAsTable(table)


def _first_batch(lake: Lake, feed: str, query: str) -> int:
    """The feed's number of the query's batch 0: numbers go on where an earlier query, of a lost checkpoint, ended."""
    offsets = lake.spark.table(lake.table(Layer.BRONZE, offsets_table(feed)))
    line = offsets.agg(F.min(F.when(F.col("query") == query, F.col("batch"))), F.max("batch") + 1).first()
    assert line is not None
    return int(next((number for number in line if number is not None), 0))


def _offsets_of(lake: Lake, feed: str, checkpoint: str, number: int, batch: int) -> DataFrame:
    """The offsets table's lines of one batch. The checkpoint names every partition, also those that had nothing."""
    ends = _planned_offsets(checkpoint, number)
    starts = _planned_offsets(checkpoint, number - 1) if number > 0 else {}
    plan = lake.spark.createDataFrame(
        [(topic, partition, starts.get((topic, partition)), end) for (topic, partition), end in sorted(ends.items())],
        "topic STRING, partition INT, planned_start LONG, end_offset LONG",
    )
    landed = (
        lake.spark.table(lake.table(Layer.BRONZE, messages_table(feed)))
        .where(F.col("batch") == batch)
        .groupBy("topic", "partition")
        .agg(F.count("*").alias("landed"), F.min("offset").alias("first_offset"))
    )
    return plan.join(landed, ["topic", "partition"], "left").select(
        F.lit(batch).cast("long").alias("batch"),
        "topic",
        "partition",
        F.coalesce("planned_start", "first_offset", "end_offset").alias("start_offset"),
        "end_offset",
        F.coalesce("landed", F.lit(0)).cast("long").alias("messages"),
        F.current_timestamp().alias("ingest_time"),
    )


def _planned_offsets(checkpoint: str, number: int) -> dict[tuple[str, int], int]:
    """End offsets of a batch as Structured Streaming wrote them down before it ran the batch."""
    text = _checkpoint_file(checkpoint, f"offsets/{number}")
    by_topic = json.loads(text.splitlines()[-1])
    return {(topic, int(p)): end for topic, ends in by_topic.items() for p, end in ends.items()}


def _checkpoint_file(checkpoint: str, name: str) -> str:
    return (Path(checkpoint) / name).read_text(encoding="utf-8")


def _stopped(source: Source, error: StreamingQueryException) -> ConfigError:
    text = str(error).strip()
    first_line = text.partition("\n")[0]
    if "DATA_LOSS" in text or "data may have been lost" in text or "OffsetOutOfRange" in text:
        return OffsetGapError(
            f"feed {source.feed}: Kafka deleted messages before they were read (its retention is shorter than the "
            "reader's pause). Their changes are lost, and gold stays at its last watermark. A new feed starts with "
            f"empty tables; raise the topic's retention first. {first_line}"
        )
    topics = source.kafka_options.get("subscribe") or source.kafka_options.get("subscribePattern")
    return ConfigError(
        f"feed {source.feed}: reading topics {topics} from {source.kafka_options['kafka.bootstrap.servers']} stopped; "
        f"check kafka.bootstrap_servers and kafka.security: {first_line}"
    )


def _landed(lake: Lake, feed: str) -> tuple[int, dict[str, dict[str, int]]]:
    """The last batch, -1 before the first; and by topic and partition, as Kafka's options write them, the offset read
    to."""
    offsets = lake.spark.table(lake.table(Layer.BRONZE, offsets_table(feed)))
    lines = offsets.groupBy("topic", "partition").agg(F.max("batch"), F.max("end_offset")).collect()
    ends: dict[str, dict[str, int]] = {}
    for topic, partition, _, end in lines:
        ends.setdefault(topic, {})[str(partition)] = end
    return max((batch for _, _, batch, _ in lines), default=-1), ends


def _landed_since(lake: Lake, feed: str, batch: int) -> Landed:
    offsets = lake.spark.table(lake.table(Layer.BRONZE, offsets_table(feed))).where(F.col("batch") > batch)
    line = offsets.agg(F.count_distinct("batch"), F.sum("messages")).first()
    assert line is not None
    return Landed(feed=feed, batches=int(line[0]), messages=int(line[1] or 0))
