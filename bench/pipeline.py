"""Kafka to published against the sum of its bare parts, which do the same work without knowing what it is about:

copy          the messages from Kafka into a Delta table, read with bronze's options
mapInArrow    the columns that silver reads, from Delta through Python workers that hand every batch back, into Delta
MERGE         bare Delta MERGEs of the same rows, already typed and reduced, side by side as gold has them

What lies between the last two is timed too, as many tables at a time: *reducing* reads the window out of silver and
writes the latest change of each key, typed, which the bare MERGE is given. With one table the layers cannot be faster
than bronze, silver, reducing and MERGE.

A first batch fills the tables and warms up; a second one, which changes every row, is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pyspark.sql import functions as F

from bench.fresh_process import measured
from bench.generated_messages import Made
from bench.gold import Case, merge_bare, prepare_bare
from bench.report import Target, table
from bench.sustained import feed_run, kafka_messages
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_local.broker import Broker

CASES = tuple((tables, columns) for columns in (10, 40) for tables in (1, 4, 50))
"""Tables, columns."""
PARTITIONS = 4
BOUND = 0.7
LAYERS = ("bronze", "silver", "gold")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineResult:
    """Seconds of the layers and of the bare parts for ``rows`` changes."""

    rows: int
    tables: int
    columns: int
    layers: dict[str, float]
    bare: dict[str, float]
    reducing: float

    @property
    def limit(self) -> float:
        """The ratio of a gold that were nothing but reducing and MERGE."""
        least = self.layers["bronze"] + self.layers["silver"] + self.reducing + self.bare["MERGE"]
        return sum(self.bare.values()) / least

    @property
    def ratio(self) -> float:
        """Speed as a part of that of the bare parts."""
        return sum(self.bare.values()) / sum(self.layers.values())


def measure(lake: FolderLake, rows: int, tables: int, columns: int) -> PipelineResult:
    """Time one case, in a feed, a topic and a broker of its own."""
    feed, before = f"pipeline_{tables}_{columns}", 0
    case = Case(feed=feed, changes=rows, tables=tables, columns=columns)
    layers: dict[str, float] = {}
    bare: dict[str, float] = {}
    reducing = 0.0
    with Broker(lake.root / feed / "kafka") as broker:
        broker.create_topic(feed, PARTITIONS)
        run = feed_run(lake.spark, lake.root, broker.bootstrap_servers, feed, tables, columns)
        lake = run.lake
        for batch in range(2):
            made = Made(feed=feed, protocol="canal_json", rows=rows, batch=batch, tables=tables, columns=columns)
            broker.produce(feed, kafka_messages(made, PARTITIONS))
            layers = {layer: _seconds(getattr(run, layer)) for layer in LAYERS}
            reducing = _seconds(partial(prepare_bare, lake, case.config, before, made.tso, create=batch == 0))
            bare = {
                "copy": _seconds(partial(copy, lake, made, broker.bootstrap_servers, PARTITIONS)),
                "mapInArrow": _seconds(partial(pass_through, lake, made)),
                "MERGE": _seconds(partial(merge_bare, lake, case)),
            }
            before = made.tso
    return PipelineResult(rows=rows, tables=tables, columns=columns, layers=layers, bare=bare, reducing=reducing)


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def copy(lake: FolderLake, made: Made, servers: str, partitions: int) -> None:
    """One batch's messages from a topic of so many partitions into a Delta table."""
    messages = lake.spark.read.format("kafka").options(**copied(made, servers, partitions)).load()
    messages.write.format("delta").mode("append").save(_folder(lake, f"{made.feed}_copy"))


def copied(made: Made, servers: str, partitions: int) -> dict[str, str]:
    """Bronze's options of Spark's Kafka source for one batch."""
    each = -(-made.messages // partitions) + 1
    if made.messages % partitions:
        raise ValueError(f"expected messages that {partitions} partitions share evenly, found {made.messages}")
    first = {made.feed: {str(partition): made.batch * each for partition in range(partitions)}}
    source = landing.KafkaSource(
        feed=made.feed, kafka_options={"kafka.bootstrap.servers": servers, "subscribe": made.feed}
    )
    return landing.kafka_options(source, first, None)


def pass_through(lake: FolderLake, made: Made) -> None:
    """One batch of bronze through Python workers that hand every batch back, into a Delta table."""
    messages = lake.spark.table(lake.table(Layer.BRONZE, landing.messages_table(made.feed)))
    read = messages.where(F.col("batch") == made.batch).drop("headers", "ingest_time")
    passed = read.mapInArrow(lambda batches: batches, read.schema)
    passed.write.format("delta").mode("append").save(_folder(lake, f"{made.feed}_arrow"))


def _folder(lake: FolderLake, name: str) -> str:
    return str(lake.root / "bare" / name)


def report(results: list[PipelineResult]) -> str:
    """Seconds of each layer and part."""
    heads = (
        "tables",
        "columns",
        *LAYERS,
        "changes/s",
        "copy",
        "mapInArrow",
        "MERGE",
        "bare ÷ layers",
        "reducing",
        "limit",
    )
    lines = [
        (
            f"{result.tables}",
            f"{result.columns}",
            *(f"{result.layers[layer]:.1f}" for layer in LAYERS),
            f"{result.rows / sum(result.layers.values()):,.0f}",
            *(f"{seconds:.1f}" for seconds in result.bare.values()),
            f"{result.ratio:.2f}",
            f"{result.reducing:.1f}",
            f"{result.limit:.2f}",
        )
        for result in results
    ]
    return table(f"pipeline: {results[0].rows:,} changes from Kafka to published, seconds", heads, lines)


def main(rows: int) -> list[Target]:
    """Measure each case in a process of its own and print: its target once it is measured, the table at the end."""
    results = []
    for tables, columns in CASES:
        results.append(measured(measure, rows - rows % PARTITIONS, tables, columns))
        print(_target(results[-1]), flush=True)
    print(report(results), flush=True)
    return [_target(result) for result in results]


def _target(result: PipelineResult) -> Target:
    what = f"Kafka to published, {result.tables} tables of {result.columns} columns: speed of the bare parts"
    return Target(what=what, measured=result.ratio, bound=BOUND, at_most=False)
