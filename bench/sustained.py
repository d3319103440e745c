"""Kafka to gold: messages that wait in a topic of a real broker, landed, decoded and applied, layer after layer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from bench.generated_messages import Made, maker
from bench.recorded import recorded
from bench.report import Target, table
from bench.wide import COLUMNS, create_statement
from ticdc_codec.event import Resolved
from ticdc_codec.protocols import protocol_named
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_local.broker import Broker, KafkaMessage
from ticdc_local.feed_file import write_feed_file
from ticdc_local.runner.dbutils import Secrets
from ticdc_local.runner.job import local_parameters

FEED = "sustained"
TABLES = 4
PARTITIONS = 4
"""One a table: TiCDC keeps a row's changes in one partition."""
TARGET = 40_000
"""Row changes a second, on two cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SustainedResult:
    """Seconds of each layer for ``rows`` changes."""

    rows: int
    seconds: dict[str, float]

    @property
    def rate(self) -> float:
        """Changes a second, through all layers."""
        return self.rows / sum(self.seconds.values())


def measure(lake: FolderLake, rows: int) -> SustainedResult:
    """A first batch fills the tables (and warms up), a second one changes every row: that is timed."""
    with Broker(lake.root / FEED / "kafka") as broker:
        broker.create_topic(FEED, PARTITIONS)
        run = feed_run(lake.spark, lake.root, broker.bootstrap_servers, FEED, TABLES)
        seconds: dict[str, float] = {}
        for batch in range(2):
            made = Made(feed=FEED, protocol="canal_json", rows=rows, batch=batch, tables=TABLES)
            broker.produce(FEED, kafka_messages(made, PARTITIONS))
            seconds = {name: _timed(run, name) for name in ("bronze", "silver", "gold")}
    return SustainedResult(rows=rows, seconds=seconds)


def feed_run(
    spark: SparkSession, root: Path, bootstrap_servers: str, feed: str, tables: int, columns: int = COLUMNS
) -> Run:
    """A feed of so many tables, from a feed file as a user writes it; its topic has the feed's name."""
    feeds = root / feed / "feeds"
    write_feed_file(
        feeds / f"{feed}.yml",
        protocol="canal_json",
        options={"enable-tidb-extension": True},
        time_zone="UTC",
        bootstrap_servers=bootstrap_servers,
        topic=feed,
        schema_file=f"{feed}.sql",
    )
    creates = (create_statement(number, columns) for number in range(tables))
    (feeds / f"{feed}.sql").write_text("".join(f"{text};\n" for text in creates), encoding="utf-8")
    return Run.from_parameters(spark, {**local_parameters(root, root, feeds), "feed": feed}, Secrets().get)


def kafka_messages(made: Made, partitions: int) -> Iterator[KafkaMessage]:
    """A batch's messages, one after the other into the partitions, and a watermark behind them in each."""
    make = maker(made)
    for number in range(made.messages):
        yield KafkaMessage(partition=number % partitions, key=None, value=make(number))
    (last,) = protocol_named(made.protocol).encode([Resolved(commit_ts=made.tso)], recorded(made.protocol).options)
    for partition in range(partitions):
        yield KafkaMessage(partition=partition, key=last.key, value=last.value)


def _timed(run: Run, layer: str) -> float:
    start = time.perf_counter()
    getattr(run, layer)()
    return time.perf_counter() - start


def report(result: SustainedResult) -> str:
    """Where the time goes."""
    lines = [(name, f"{seconds:.1f}", f"{result.rows / seconds:,.0f}") for name, seconds in result.seconds.items()]
    total = sum(result.seconds.values())
    title = f"sustained: {result.rows:,} changes of {TABLES} tables, from Kafka to gold"
    return table(title, ("layer", "seconds", "changes/s"), [*lines, ("all", f"{total:.1f}", f"{result.rate:,.0f}")])


def main(lake: FolderLake, rows: int) -> list[Target]:
    """Measure and print."""
    result = measure(lake, rows)
    print(report(result), flush=True)
    return [Target(what="Kafka to gold, changes/s", measured=result.rate, bound=TARGET, at_most=False)]
