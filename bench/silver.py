"""Bronze to silver as streams, Delta to Delta: the real job against what bounds it and what it has to beat.

copy          the stream of bronze written as it is: no decoding, no Python
mapInArrow    the columns that silver reads, through Python workers that hand every batch back untouched
from_json     what one writes by hand for one known table: full schema of the envelope, typed columns
no decoding   silver's columns, through workers that decode one slice and hand its events out for all others: the least
              that silver can cost, whatever its decoder
silver        decode_stream.decode, whole
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.cpu_time import cpu_seconds
from bench.generated_messages import Made, write
from bench.recorded import recorded
from bench.report import Target, table
from bench.timing import Times, interleaved, wall
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_lakehouse.silver import decode_stream, events_table

MESSAGES = 1_000_000
REPETITIONS = 3
_WARM_UP = 20_000
_SLICE = 4096
"""Messages that silver decodes at a time."""
_POSITION = ("topic", "partition", "offset", "timestamp", "batch")

_TYPED = {
    "id": "BIGINT", "k": "INT", "c": "STRING", "pad": "STRING", "a": "BIGINT", "b": "DECIMAL(20,0)",
    "d": "DECIMAL(12,2)", "e": "TIMESTAMP_NTZ", "f": "STRING", "g": "DOUBLE",
}  # fmt: skip
_IMAGES = f"ARRAY<STRUCT<{', '.join(f'{name}: STRING' for name in _TYPED)}>>"
_ENVELOPE = (
    "id BIGINT, database STRING, `table` STRING, pkNames ARRAY<STRING>, isDdl BOOLEAN, type STRING, "
    "es BIGINT, ts BIGINT, sql STRING, sqlType MAP<STRING, INT>, mysqlType MAP<STRING, STRING>, "
    f"old {_IMAGES}, data {_IMAGES}, _tidb STRUCT<commitTs: BIGINT, watermarkTs: BIGINT>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SilverResult:
    """Wall and CPU time (JVM and workers) of all contestants for ``rows`` row changes of one protocol."""

    protocol: str
    rows: int
    wall: dict[str, Times]
    cpu: dict[str, Times]

    def rate(self, name: str, base: str) -> float:
        """Throughput of one contestant as a multiple of another's: of the medians."""
        return self.wall[base].middle / self.wall[name].middle

    def cpu_share(self, base: str) -> float:
        """CPU time of a contestant, per row, as a fraction of silver's: of the medians."""
        return self.cpu[base].middle / self.cpu["silver"].middle


def measure(lake: FolderLake, protocol: str, rows: int, repetitions: int = REPETITIONS) -> SilverResult:
    """Run all contestants over one made bronze table, interleaved, after a short run of each to warm up."""
    warm = Made(feed=f"warm_{protocol}", protocol=protocol, rows=min(rows, _WARM_UP))
    real = Made(feed=f"bench_{protocol}", protocol=protocol, rows=rows)
    for made in (warm, real):
        write(lake, made)
    for contestant in _contestants(lake, warm).values():
        contestant()
    timed = interleaved(_contestants(lake, real), repetitions, {"wall": wall, "cpu": partial(cpu_seconds, lake.spark)})
    return SilverResult(protocol=protocol, rows=rows, wall=timed["wall"], cpu=timed["cpu"])


def _contestants(lake: FolderLake, made: Made) -> dict[str, Callable[[], object]]:
    names: dict[str, Callable[[DataFrame], DataFrame]] = {"copy": _copied, "mapInArrow": _passed_through}
    if made.protocol == "canal_json":
        names["from_json"] = _typed
    decoding = decode_stream.Decoding(feed=made.feed, protocol=made.protocol, options=recorded(made.protocol).options)
    names["no decoding"] = partial(_not_decoded, decoding)
    found: dict[str, Callable[[], object]] = {
        name: partial(_stream, lake, made, name.replace(" ", "_"), change) for name, change in names.items()
    }
    return {**found, "silver": partial(_silver, lake, made, decoding)}


def _silver(lake: FolderLake, made: Made, decoding: decode_stream.Decoding) -> None:
    done = decode_stream.decode(lake, decoding)
    if (done.events, done.quarantined) != (made.rows + 1, 0):
        raise RuntimeError(f"expected {made.rows + 1} events, found {done}")
    _forget(lake, events_table.table_name(made.feed), f"silver_{made.feed}")


def _stream(lake: FolderLake, made: Made, name: str, change: Callable[[DataFrame], DataFrame]) -> None:
    out, stream = f"{made.feed}_{name}".lower(), f"{name}_{made.feed}"
    messages = lake.spark.readStream.table(lake.table(Layer.BRONZE, landing.messages_table(made.feed)))
    target = str(_folder(lake, out))
    changed = change(messages).writeStream.option("checkpointLocation", lake.checkpoint(stream))
    changed.format("delta").trigger(availableNow=True).start(target).awaitTermination()
    _forget(lake, out, stream)


def _forget(lake: FolderLake, name: str, stream: str) -> None:
    """Drop a table and its stream's checkpoint, so that the next repetition begins anew."""
    lake.spark.sql(f"DROP TABLE IF EXISTS {lake.table(Layer.SILVER, name)}")
    for folder in (_folder(lake, name), Path(lake.checkpoint(stream))):
        shutil.rmtree(folder, ignore_errors=True)


def _folder(lake: FolderLake, name: str) -> Path:
    return lake.root / Layer.SILVER / name


def _copied(messages: DataFrame) -> DataFrame:
    return messages


def _passed_through(messages: DataFrame) -> DataFrame:
    read = messages.select(*_POSITION, "key", "value")
    return read.mapInArrow(lambda batches: batches, read.schema)


def _not_decoded(decoding: decode_stream.Decoding, messages: DataFrame) -> DataFrame:
    schema = decode_stream.decoded(messages, decoding).schema
    read = messages.select(*_POSITION, "key", "value", F.lit(None).cast("int").alias("too_large"))
    return read.mapInArrow(partial(_events_again, decoding), schema)


def _events_again(decoding: decode_stream.Decoding, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of the first slice of each length for every slice of that length."""
    known: dict[int, pa.RecordBatch] = {}
    for batch in batches:
        for start in range(0, batch.num_rows, _SLICE):
            part = batch.slice(start, _SLICE)
            if part.num_rows not in known:
                known[part.num_rows] = next(decode_stream.decode_batches(decoding, iter([part])))
            yield known[part.num_rows]


def _typed(messages: DataFrame) -> DataFrame:
    parsed = messages.select(*_POSITION, F.from_json(F.col("value").cast("string"), _ENVELOPE).alias("m"))
    images = [
        F.col(f"m.{image}")[0][name].cast(kind).alias(f"{prefix}{name}")
        for image, prefix in (("data", ""), ("old", "old_"))
        for name, kind in _TYPED.items()
    ]
    head = [F.col(f"m.{name}") for name in ("database", "table", "type", "es", "_tidb.commitTs")]
    position = [F.col(name) for name in _POSITION]
    return parsed.select(*position, *head, *images)


def targets(result: SilverResult) -> list[Target]:
    """The law of silver's cost (docs/benchmarks.md), a statement about 1 M rows; and the rate against from_json."""
    law = f"silver {result.protocol}, {result.rows:,} rows: CPU of an empty mapInArrow ÷ silver"
    found = [Target(what=law, measured=result.cpu_share("mapInArrow"), bound=0.6, at_most=False)]
    if "from_json" in result.wall:
        rate = result.rate("silver", "from_json")
        found.append(
            Target(what=f"silver {result.protocol}, events/s / from_json", measured=rate, bound=2.0, at_most=False)
        )
    return found


def report(result: SilverResult) -> str:
    """Rates, and how they compare."""
    lines = [
        (
            name,
            f"{result.rows / times.middle:,.0f}",
            f"{times.middle:.1f} ({times.best:.1f})",
            f"{result.cpu[name].middle:.1f}",
            f"{result.cpu['mapInArrow'].middle / result.cpu[name].middle:.2f}",
            f"{result.rate(name, 'copy'):.2f}",
            f"{result.rate(name, 'mapInArrow'):.2f}",
        )
        for name, times in result.wall.items()
    ]
    heads = ("", "rows/s", "seconds, median (best)", "CPU seconds", "mapInArrow ÷ it", "of copy", "of mapInArrow")
    return table(f"silver: {result.rows:,} row changes in {result.protocol}", heads, lines)


def main(lake: FolderLake, rows: int = MESSAGES, protocols: tuple[str, ...] = ("canal_json", "craft")) -> list[Target]:
    """Measure and print."""
    found: list[Target] = []
    for protocol in protocols:
        result = measure(lake, protocol, rows)
        print(report(result), flush=True)
        found += targets(result)
    return found
