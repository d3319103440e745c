"""Any number of messages out of the recorded ones: same shape and size, own ids and commit_ts, laid down as bronze.

Kafka is left out on purpose: these benchmarks begin where bronze ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench import wide
from bench.recorded import Recorded, recorded
from ticdc_codec.event import Event, Resolved, RowChange, events_of
from ticdc_codec.protocols import Decoder, protocol_named
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer

FIRST_TSO = 470613272650842112
BATCH_TSO = 1 << 32
"""TSOs that a batch may use."""
ROWS_A_MESSAGE = {"canal_json": 1, "craft": 16}
_FILES = 4
_COLUMNS = "offset BIGINT, key BINARY, value BINARY"
_VARYING = {
    rb'"table":"sbtest1"': b'"table":"sbtest%(table)d"',
    rb'(?<=\{)"id":"\d+"': b'"id":"%(id)d"',
    rb'"commitTs":\d+': b'"commitTs":%(tso)d',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What to make: ``rows`` changes of as many rows, evenly over ``tables``, in one bronze batch."""

    feed: str
    protocol: str
    rows: int
    batch: int = 0
    tables: int = 1
    spread: int = 1
    """Each row's id is this many times its number: 10 changes every tenth row of a table."""
    earlier: int = 0
    """Messages that were before those of batches of this size."""
    columns: int = wide.COLUMNS
    """Of each table; Canal-JSON alone has more than the recorded ones."""

    @property
    def messages(self) -> int:
        """Messages without the watermark."""
        return -(-self.rows // ROWS_A_MESSAGE[self.protocol])

    @property
    def first_offset(self) -> int:
        """Offset of the first message."""
        return self.earlier + self.batch * (self.messages + 1)

    @property
    def tso(self) -> int:
        """The watermark behind the changes."""
        return FIRST_TSO + (self.batch + 1) * BATCH_TSO


def write(lake: Lake, made: Made) -> None:
    """Append the messages, and a watermark behind them, to the feed's bronze tables."""
    landing.create_tables(lake, made.feed)
    first = made.first_offset
    numbers = lake.spark.range(first, first + made.messages, numPartitions=_FILES)
    rows = numbers.mapInArrow(lambda batches: _values(made, batches), _COLUMNS)
    append(lake, made.feed, made.batch, rows)
    last = protocol_named(made.protocol).encode([Resolved(commit_ts=made.tso)], recorded(made.protocol).options)[0]
    end = first + made.messages
    append(lake, made.feed, made.batch, lake.spark.createDataFrame([(end, last.key, last.value)], _COLUMNS))
    line = (made.batch, "bench", made.feed, 0, first, end + 1, made.messages + 1, made.batch, datetime.now(UTC))
    offsets = lake.table(Layer.BRONZE, landing.offsets_table(made.feed))
    schema = lake.spark.table(offsets).schema
    lake.spark.createDataFrame([line], schema).write.format("delta").mode("append").saveAsTable(offsets)


def append(lake: Lake, feed: str, batch: int, messages: DataFrame) -> None:
    """Append (offset, key, value) to a feed's messages, as partition 0 of one bronze batch."""
    name = lake.table(Layer.BRONZE, landing.messages_table(feed))
    messages.select(
        F.lit(feed).alias("topic"),
        F.lit(0).alias("partition"),
        "offset",
        F.current_timestamp().alias("timestamp"),
        "key",
        "value",
        F.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers"),
        F.current_timestamp().alias("ingest_time"),
        F.lit(batch).cast("long").alias("batch"),
    ).write.format("delta").mode("append").saveAsTable(name)


def _values(made: Made, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a Python worker: message numbers to messages, some at a time."""
    make = maker(made)
    for batch in batches:
        for start in range(0, batch.num_rows, 2048):
            offsets = batch.column(0).slice(start, 2048)
            values = [make(offset - made.first_offset) for offset in offsets.to_pylist()]
            keys = pa.nulls(len(values), pa.binary())
            yield pa.record_batch({"offset": offsets, "key": keys, "value": pa.array(values, pa.binary())})


def maker(made: Made) -> Callable[[int], bytes]:
    """Gives the value of the batch's message of a number."""
    if made.protocol == "canal_json":
        templates = _templates(made.columns)
        return lambda number: templates[number % len(templates)] % _names(_varied(made, number))
    events = _events(made.protocol)
    encode, options = protocol_named(made.protocol).encode, recorded(made.protocol).options

    def message(number: int) -> bytes:
        first = number * ROWS_A_MESSAGE[made.protocol]
        rows = range(first, min(first + ROWS_A_MESSAGE[made.protocol], made.rows))
        changed = [_changed(events[row % len(events)], _varied(made, row)) for row in rows]
        return encode(changed, options)[0].value or b""

    return message


def _varied(made: Made, row: int) -> dict[str, int]:
    """What is a row's own. A later batch changes the same rows."""
    return {"table": row % made.tables, "id": row * made.spread, "tso": FIRST_TSO + made.batch * BATCH_TSO + row + 1}


def _names(varied: Mapping[str, int]) -> dict[bytes, int]:
    return {name.encode(): number for name, number in varied.items()}


@lru_cache
def _templates(columns: int) -> list[bytes]:
    return [_template(wide.message(value, columns)) for value in recorded("canal_json").values]


def _template(value: bytes) -> bytes:
    template = value.replace(b"%", b"%%")
    for pattern, own in _VARYING.items():
        template = re.sub(pattern, own, template)
    return template


@lru_cache
def _events(protocol: str) -> list[RowChange]:
    sample: Recorded = recorded(protocol)
    decoded = Decoder(protocol, sample.options).decode(sample.keys, sample.values)
    return [event for _, event in events_of(decoded) if isinstance(event, RowChange)]


def _changed(event: RowChange, varied: Mapping[str, int]) -> Event:
    own = {"id": str(varied["id"])}
    return replace(
        event,
        table=f"sbtest{varied['table']}",
        commit_ts=varied["tso"],
        before=event.before and {**event.before, **own},
        after=event.after and {**event.after, **own},
    )
