"""One micro-batch of bronze: the append of its messages, and that of the offsets which it read to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from ticdc_lakehouse import stream_checkpoint
from ticdc_lakehouse.sql.text import rows_sql

TopicPartition = tuple[str, int]
"""(topic, partition)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatches:
    """Appends the micro-batches of one query. Holds only values: Spark Connect runs ``append`` in another process."""

    messages_table: str
    """Quoted name, as that of the other table."""
    offsets_table: str
    checkpoint: str
    first_batch: int
    """The feed's number of the query's batch 0."""
    interrupted: int | None
    """The batch that an earlier run began: its rows may be in the tables already."""
    listed_before: int | None
    """The first batch of those whose end offsets Kafka was asked for at once, as this run began (``availableNow``);
    None if it is asked before each."""
    limit: int | None = None
    """Most offsets of a batch; None for any number."""

    def append(self, messages: DataFrame, number: int) -> None:
        """Appends one micro-batch to both tables, each at most once however often it is called."""
        query, batch = str(stream_checkpoint.query_id(self.checkpoint)), self.first_batch + number
        once = {"txnAppId": query, "txnVersion": str(number)}
        landed = Observation()
        stamped = messages.withColumns({"ingest_time": F.current_timestamp(), "batch": F.lit(batch).cast("long")})
        _append(stamped.observe(landed, F.count("*").alias("messages")), self.messages_table, once)
        # Delta skips the append of an interrupted batch whose rows it has: then nothing was counted.
        total = None if number == self.interrupted else int(landed.get["messages"])
        _append(self._offsets(messages.sparkSession, query, number, total), self.offsets_table, once)

    def _offsets(self, spark: SparkSession, query: str, number: int, total: int | None) -> DataFrame:
        """Returns the offsets table's rows of one batch. The checkpoint names every partition, also those without
        messages."""
        batch, ends = self.first_batch + number, stream_checkpoint.planned_offsets(self.checkpoint, number)
        starts = stream_checkpoint.planned_offsets(self.checkpoint, number - 1) if number > 0 else {}
        # As many messages as offsets: then so it is in each partition.
        if ends.keys() == starts.keys() and total == sum(end - starts[each] for each, end in ends.items()):
            read = {each: (end - starts[each], starts[each]) for each, end in ends.items()}
        else:
            read = _counted(spark, self.messages_table, batch)
        listing = self._listing(number, starts, ends)
        now, columns = datetime.now(UTC), dict(spark.table(self.offsets_table).dtypes)
        rows = []
        for partition, end in sorted(ends.items()):
            count, first = read.get(partition, (0, end))
            values = (batch, query, *partition, starts.get(partition, first), end, count, listing, now)
            rows.append(dict(zip(columns, values, strict=True)))
        return spark.sql(rows_sql(rows, ", ".join(f"{name}: {kind}" for name, kind in columns.items())))

    def _listing(self, number: int, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int:
        """Returns the first batch of those planned at once: batches before it were read when Kafka was asked for the
        end offsets. 0, which is none, for an interrupted batch, and for one that may end before those offsets."""
        if number == self.interrupted or (self.limit is not None and _may_be_cut(starts, ends, self.limit)):
            return 0
        return self.first_batch + (number if self.listed_before is None else self.listed_before)


def _may_be_cut(starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], limit: int) -> bool:
    """True if Spark may have cut a batch at ``limit`` offsets: it shares them among the partitions in proportion to
    what each has, rounded down, so that a batch which is cut lacks less than one offset for each partition."""
    return ends.keys() != starts.keys() or sum(ends[each] - starts[each] for each in ends) + len(ends) > limit


def _counted(spark: SparkSession, table: str, batch: int) -> dict[TopicPartition, tuple[int, int]]:
    """Returns the messages landed and the first offset, by partition."""
    landed = spark.table(table).where(F.col("batch") == batch).groupBy("topic", "partition")
    # Of a batch that was landed again after its checkpoint was lost a message counts once.
    rows = landed.agg(F.count_distinct("offset"), F.min("offset")).collect()
    return {(topic, partition): (count, first) for topic, partition, count, first in rows}


def _append(rows: DataFrame, table: str, once: Mapping[str, str]) -> None:
    rows.write.format("delta").mode("append").options(**once).saveAsTable(table)
