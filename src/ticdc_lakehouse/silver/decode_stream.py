"""Silver's stream: decodes bronze's messages on the executors, one append to the events table a micro-batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress

from ticdc_codec.batch import DecoderContext, SchemaName
from ticdc_codec.claim_check_storage import StoredObjects
from ticdc_codec.errors import ConfigError
from ticdc_codec.event import EVENTS, Column, Kind
from ticdc_codec.options import Compression, SinkOptions
from ticdc_codec.protocols import Decoder
from ticdc_lakehouse import stream_checkpoint
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.session_settings import generated_code, partial_offsets_allowed, settings
from ticdc_lakehouse.silver import events_table

TOO_LARGE = "message_too_large"
EMPTY = "empty"
"""The ``kind`` of a message without any event."""
_DECODED = [name for name in EVENTS.names if name != "message"]
_READ = "messages_read"
"""Name of the file beside the checkpoint that says how many messages bronze had when silver last ended."""
_COUNTS = "decoded"
"""Name of the counts that the query observes in each micro-batch."""
_POSITION = ["topic", "partition", "offset", "timestamp", "batch"]
_NEWEST_VERSIONS = 100
"""Newest versions of the events table among which one is of silver's stream: the others are of
maintenance and replays."""
_TOO_OLD = "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"
"""Databricks' error condition of a version whose files VACUUM may have deleted, whether it has or not."""
_SLICE_BYTES = 8 * 1024 * 1024
"""A worker decodes at most about this many bytes of messages at a time, whatever the size of Spark's batch."""
_SLICE_MESSAGES = 4096
_SLICE_OBJECTS = 8
"""A worker reads at most about this many claim-check objects at a time: each is larger than a message may be."""
_DECOMPRESSED = 8
"""How much larger the content of a compressed message is taken to be."""
_OBJECT_NAME = ".json"
"""What the names of claim-check objects end in (wire.md 1.2.6): a message without it names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How a feed's messages are decoded."""

    feed: str
    protocol: str
    options: SinkOptions
    schemas: Mapping[SchemaName, tuple[Column, ...]] = field(default_factory=dict)
    """Schemas of tables whose rows do not describe themselves, as far as they are known."""
    max_message_bytes: int = 16 * 1024 * 1024
    """A message above this size is quarantined by name; its value never reaches a Python worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What one run of silver did."""

    feed: str
    batches: int
    """Micro-batches appended."""
    events: int
    quarantined: int | None
    """None if nothing tells any more how many: after a crash, and a pause of a week, on Databricks."""


def decode(lake: Lake, decoding: Decoding, *, continuous: bool = False) -> Decoded:
    """Decodes what bronze has that silver has not, or continues until stopped (``continuous``). Raises ConfigError if
    silver's checkpoint was restored from an older copy, and if its events are lost."""
    check_not_lost(lake, decoding.feed)
    events_table.create_tables(lake, decoding.feed)
    events, checkpoint = events_table.full_name(lake, decoding.feed), stream(lake, decoding.feed)
    _refuse_older(lake, decoding.feed, checkpoint)
    # Retention deletes messages of batches that were decoded long ago: commits that append nothing.
    reader = lake.spark.readStream.option("skipChangeCommits", "true")
    messages = reader.table(lake.table(Layer.BRONZE, landing.messages_table(decoding.feed)))
    counted = decoded(messages, decoding).observe(
        _COUNTS, F.count("*").alias("events"), F.count_if(F.col("kind") == Kind.ERROR.value).alias("quarantined")
    )
    writer = (
        counted.writeStream.queryName(f"silver {decoding.feed}")
        .option("checkpointLocation", checkpoint)
        .format("delta")
        .outputMode("append")
    )
    first, interrupted = stream_checkpoint.next_batch(checkpoint), stream_checkpoint.interrupted(checkpoint)
    started = writer if continuous else writer.trigger(availableNow=True)
    read = stream_checkpoint.messages_read(lake.checkpoint(f"bronze_{decoding.feed}"))
    fast = generated_code(lake.spark, read - _read_before(checkpoint))
    with row_by_row(lake.spark), partial_offsets_allowed(lake.spark), fast:
        query = started.toTable(events)
    query.awaitTermination()
    stream_checkpoint.note_end(checkpoint)
    stream_checkpoint.write_beside(checkpoint, _READ, str(read))
    if interrupted is None:
        done = _counted_by_progress(
            decoding.feed, query.recentProgress, range(first, stream_checkpoint.next_batch(checkpoint))
        )
        if done is not None:
            return done
    return _counted_in_table(lake, decoding.feed, query.id, first)


def check_not_lost(lake: Lake, feed: str) -> None:
    """Raises ConfigError if silver has decoded something, and has no events: it would continue after them."""
    checkpoint = stream(lake, feed)
    if stream_checkpoint.next_batch(checkpoint) and not events_table.exists(lake, feed):
        raise ConfigError(
            f"feed {feed}: silver's events are lost, and its checkpoint {checkpoint} would continue after them: delete "
            "that folder, and silver decodes anew what bronze keeps; gold applies no change twice"
        )


def _refuse_older(lake: Lake, feed: str, checkpoint: str) -> None:
    """Raises ConfigError if the events table has batches that silver's checkpoint does not know."""

    def batch_after(query: str, last: int) -> int | None:
        appends = _appends(lake, events_table.full_name(lake, feed), query, last + 1, limit=_NEWEST_VERSIONS)
        row = appends.agg(F.max(F.col("operationParameters")["epochId"].cast("int"))).first()
        return None if row is None else row[0]

    way_out = "silver decodes anew what bronze keeps, and gold applies no change twice"
    stream_checkpoint.refuse_older(f"feed {feed}: silver", checkpoint, batch_after, way_out)


def _appends(lake: Lake, events: str, query: str, first: int, limit: int | None = None) -> DataFrame:
    """Returns the versions of the events table that the query's batches from ``first`` on made, of the newest
    ``limit`` ones."""
    written = F.col("operationParameters")
    of_batches = (written["queryId"] == query) & (written["epochId"].cast("long") >= first)
    return lake.history(events, limit).where(of_batches)


def _read_before(checkpoint: str) -> int:
    """Returns how many messages bronze had when silver last ended: what came since waits for it. 0 where it is not
    known: an estimate is enough."""
    text = stream_checkpoint.read_beside(checkpoint, _READ) or ""
    return int(text) if text.isdecimal() else 0


def stream(lake: Lake, feed: str) -> str:
    """Returns the checkpoint folder of a feed's silver."""
    return lake.checkpoint(f"silver_{feed}")


def row_by_row(spark: SparkSession) -> AbstractContextManager[None]:
    """Lets streams started and tables read within read Parquet by rows: the vectorized reader holds thousands of values
    of a column at once, and those of bronze may be 16 MB each."""
    return settings(spark, {"spark.sql.parquet.enableVectorizedReader": "false"})


def _counted_by_progress(feed: str, progress: Sequence[StreamingQueryProgress], batches: range) -> Decoded | None:
    """Returns what these batches appended, as the query counted it; None if its progress does not cover them all: it
    keeps the last 100."""
    counts = [_named(p.observedMetrics.get(_COUNTS)) for p in progress if p.batchId in batches]
    known = [each for each in counts if "events" in each]
    if len(known) < len(batches):
        return None
    return Decoded(
        feed=feed,
        batches=len(known),
        events=sum(each["events"] for each in known),
        quarantined=sum(each["quarantined"] for each in known),
    )


def _named(counts: Row | None) -> dict[str, int]:
    """Returns observed counts by their names, which a client of Spark Connect gets apart from the values."""
    if counts is None:
        return {}
    if "schema" not in counts:
        return counts.asDict()
    return dict(zip((field["name"] for field in counts["schema"]["fields"]), counts["values"], strict=True))


def _counted_in_table(lake: Lake, feed: str, query: str, first: int) -> Decoded:
    """Returns what the query's batches from ``first`` on appended: after a crash its progress counts nothing for a
    batch that was appended already."""
    events = events_table.full_name(lake, feed)
    appends = _appends(lake, events, query, first)
    rows = F.sum(F.col("operationMetrics")["numOutputRows"].cast("long"))
    row = appends.agg(F.count("*"), rows, F.min("version")).first()
    assert row is not None
    quarantined = _quarantined_since(lake, events, row[2] - 1) if row[0] else 0
    return Decoded(feed=feed, batches=row[0], events=row[1] or 0, quarantined=quarantined)


def _quarantined_since(lake: Lake, events: str, version: int) -> int | None:
    """Counts the errors since a version; None where Databricks reads it no more. Older versions are asked, which is
    slow, only if there is any error at all."""
    now = _errors(lake, events)
    try:
        return now - _errors(lake, f"{events} VERSION AS OF {version}") if now else 0
    except PySparkException as error:
        if error.getCondition() != _TOO_OLD:
            raise
        return None


def _errors(lake: Lake, events: str) -> int:
    # Only errors have a `reason`: Delta skips every file without one.
    return lake.spark.sql(f"SELECT 1 FROM {events} WHERE reason IS NOT NULL").count()


def decoded(messages: DataFrame, decoding: Decoding) -> DataFrame:
    """Returns raw messages (bronze columns) as rows of the events table; ``replayed_at`` is for the caller to set."""
    size = F.coalesce(F.length("value"), F.lit(0))
    fits = size <= decoding.max_message_bytes
    inputs = messages.select(
        *_POSITION, "key", F.when(fits, F.col("value")).alias("value"), F.when(~fits, size).alias("too_large")
    )
    return inputs.mapInArrow(partial(decode_batches, decoding), _OUTPUT_SCHEMA)


def _spark_schema() -> str:
    types = {pa.int32(): "INT", pa.int64(): "BIGINT", pa.string(): "STRING", pa.bool_(): "BOOLEAN"}
    fields = [f"`{field.name}` {types.get(field.type, 'TIMESTAMP')}" for field in EVENTS if field.name != "message"]
    return ", ".join(["topic STRING", "partition INT", "offset BIGINT", "timestamp TIMESTAMP", "batch BIGINT", *fields])


_OUTPUT_SCHEMA = _spark_schema()


def decode_batches(decoding: Decoding, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decodes Arrow batches of messages into Arrow batches of events, in a Python worker."""
    objects = StoredObjects(decoding.options.claim_check_storage_uri)
    decoder = Decoder(decoding.protocol, decoding.options, DecoderContext(objects=objects, schemas=decoding.schemas))
    for batch in batches:
        for part in slices(batch, decoding.options):
            yield _decode_slice(decoder, part, decoding.max_message_bytes)


def slices(batch: pa.RecordBatch, options: SinkOptions) -> Iterator[pa.RecordBatch]:
    """Yields parts of a batch that hold few enough bytes, one message at least."""
    weights = _weights(batch, options)
    if batch.num_rows <= _SLICE_MESSAGES and (pc.sum(weights).as_py() or 0) <= _SLICE_BYTES:
        yield batch
        return
    start = held = 0
    for row, weight in enumerate(weights.to_pylist()):
        if row > start and (held + weight > _SLICE_BYTES or row - start >= _SLICE_MESSAGES):
            yield batch.slice(start, row - start)
            start, held = row, 0
        held += weight
    yield batch.slice(start)


def _weights(batch: pa.RecordBatch, options: SinkOptions) -> pa.Array:
    """Returns about how many bytes a worker holds while it decodes each message, with what it decompresses and reads
    for it."""
    weights = pc.cast(pc.fill_null(pc.binary_length(batch.column("value")), 0), pa.int64())
    if options.large_message_handle_compression is not Compression.NONE:
        weights = pc.multiply(weights, _DECOMPRESSED)
    if options.claim_check_storage_uri is not None:
        names = (pc.fill_null(pc.match_substring(batch.column(part), _OBJECT_NAME), False) for part in ("key", "value"))
        objects = pc.cast(pc.or_(*names), pa.int64())
        weights = pc.add(weights, pc.multiply(objects, _SLICE_BYTES // _SLICE_OBJECTS))
    return weights


def _decode_slice(decoder: Decoder, batch: pa.RecordBatch, limit: int) -> pa.RecordBatch:
    keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
    events = _with_empty(decoder.decode(keys, values), batch.num_rows)
    too_large = batch.column("too_large")
    if too_large.null_count < len(too_large):
        events = _name_too_large(events, too_large, limit)
    message = events.column("message")
    position = [batch.column(name).take(message) for name in _POSITION]
    return pa.RecordBatch.from_arrays(position + [events.column(name) for name in _DECODED], names=_POSITION + _DECODED)


def _with_empty(events: pa.RecordBatch, messages: int) -> pa.RecordBatch:
    """Adds a row for each message without any event, which Open Protocol allows: each message has one by which it is
    counted."""
    without_event = np.flatnonzero(np.bincount(events.column("message").to_numpy(), minlength=messages) == 0)
    if not len(without_event):
        return events
    rows = [{"message": number, "index": 0, "kind": EMPTY} for number in without_event.tolist()]
    return pa.concat_batches([events, pa.RecordBatch.from_pylist(rows, schema=EVENTS)])


def too_large_text(size: int, limit: int) -> str:
    """Returns why a message of ``size`` bytes is not decoded."""
    return f"expected at most {limit} bytes (max_message_bytes), found {size}"


def _name_too_large(events: pa.RecordBatch, too_large: pa.Array, limit: int) -> pa.RecordBatch:
    """Marks the rows of messages whose value was withheld because of its size (the codec saw an empty value)."""
    sizes = too_large.take(events.column("message")).to_pylist()
    reasons = events.column("reason").to_pylist()
    details = events.column("detail").to_pylist()
    for row, size in enumerate(sizes):
        if size is not None:
            reasons[row] = TOO_LARGE
            details[row] = too_large_text(size, limit)
    names = events.schema.names
    events = events.set_column(names.index("reason"), "reason", pa.array(reasons, pa.string()))
    return events.set_column(names.index("detail"), "detail", pa.array(details, pa.string()))
