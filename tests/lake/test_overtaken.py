"""An optional step that another writer overtakes, or that Kafka does not answer, fails no run."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from changefeed import Changefeed, Source, at
from pyspark.java_gateway import ensure_callback_server_started

from ticdc_lakehouse.bronze import empty_topics, landing
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold import maintenance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_lakehouse.bronze.landing import KafkaSource
    from ticdc_lakehouse.catalog import Lake
    from ticdc_local.broker import Broker

pytestmark = pytest.mark.long

T = Source(table="t")


class Overtaking:
    """What Delta tells about the transactions of a thread: before the first one commits, another writer does."""

    def __init__(self, other: Callable[[], object]) -> None:
        self.others = [other]

    def beginDoCommit(self) -> None:  # noqa: N802 - Delta's names
        if self.others:
            self.others.pop()()

    def startingTransaction(self, start: Any) -> Any:  # noqa: N802
        return start.apply()

    def preparingCommit(self, prepare: Any) -> Any:  # noqa: N802
        return prepare.apply()

    def transactionAborted(self) -> None:  # noqa: N802
        pass

    # No need of more.
    beginBackfill = beginPostCommit = transactionCommitted = createChild = transactionAborted  # noqa: N815

    class Java:
        implements = ("org.apache.spark.sql.delta.TransactionExecutionObserver",)


@contextmanager
def overtaken_by(spark: SparkSession, other: Callable[[], object]) -> Iterator[None]:
    """The block's first commit comes after that of another writer."""
    jvm: Any = spark._jvm
    ensure_callback_server_started(spark.sparkContext._gateway)
    observers = getattr(getattr(jvm.org.apache.spark.sql.delta, "TransactionExecutionObserver$"), "MODULE$")
    before = observers.getObserver()
    observers.setObserver(Overtaking(other))
    try:
        yield
    finally:
        observers.setObserver(before)


@pytest.fixture
def feed(spark: SparkSession, broker: Broker, tmp_path: Path) -> Changefeed:
    """One row has landed, beside an empty topic."""
    feed = Changefeed(spark, broker, tmp_path / "lake")
    broker.create_topic(stray(feed), 1)
    feed.described = {
        "kafka": {"bootstrap_servers": broker.bootstrap_servers, "topics": [feed.topic, stray(feed)]},
        "bronze": {"retention_days": 7},
    }
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.run.bronze()
    return feed


def stray(feed: Changefeed) -> str:
    return f"{feed.topic}-stray"


def offsets(feed: Changefeed) -> str:
    return feed.lake.table(Layer.BRONZE, landing.offsets_table(feed.name))


def confirmed(feed: Changefeed) -> bool:
    """Whether the stray topic was empty when the newest batch was read, as far as is noted."""
    [row] = feed.lake.rows(
        f"SELECT max_by(listing, batch) > max(batch) AS so FROM {offsets(feed)} WHERE topic = '{stray(feed)}'"
    )
    return bool(row["so"])


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """Part, event and reason of the warnings."""
    events: list[tuple[str, str, str]] = []

    def warn(part: str, event: str, /, **fields: Any) -> None:
        events.append((part, event, fields["reason"]))

    for module in (empty_topics, maintenance):
        monkeypatch.setattr(module, "warn", warn)
    return events


@pytest.mark.parametrize("fails", ["Delta", "Kafka"])
def test_a_topic_that_cannot_be_confirmed_as_empty_is_left_to_a_later_run(
    feed: Changefeed, warned: list[tuple[str, str, str]], fails: str
) -> None:
    assert confirmed(feed)
    confirm, ends_now = landing.confirm_empty_topics, landing._ends_now

    def confirm_overtaken(*arguments: Any) -> None:
        with overtaken_by(feed.spark, lambda: feed.spark.sql(f"OPTIMIZE {offsets(feed)}")):
            confirm(*arguments)

    def of_no_broker(lake: Lake, source: KafkaSource) -> object:
        impatient = dict.fromkeys(("kafka.request.timeout.ms", "kafka.default.api.timeout.ms"), "1000")
        options = {**source.kafka_options, **impatient, "kafka.bootstrap.servers": "127.0.0.1:1"}
        return ends_now(lake, replace(source, kafka_options=options))

    feed.send(0, T.insert(at(2), 2, "b"))
    with pytest.MonkeyPatch.context() as patch:
        if fails == "Delta":
            patch.setattr(landing, "confirm_empty_topics", confirm_overtaken)
        else:
            patch.setattr(landing, "_ends_now", of_no_broker)
        assert feed.run.bronze().messages == 1
    assert not confirmed(feed)
    [(part, event, reason)] = warned
    assert (part, event) == ("bronze", "empty topics not confirmed")
    assert ("DELTA_CONCURRENT_APPEND" if fails == "Delta" else "TimeoutException") in reason
    assert feed.run.bronze().messages == 0
    assert confirmed(feed)


def test_a_compaction_that_bronze_overtakes_is_left_to_the_next_maintenance(
    feed: Changefeed, warned: list[tuple[str, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.resolve(at(2))
    feed.go()
    optimize = maintenance._optimize

    def optimize_overtaken(lake: Lake, name: str, table: str, *rows: str) -> None:
        as_bronze_does = f"UPDATE {table} SET listing = listing + 1 WHERE topic = '{stray(feed)}' AND batch = 1"
        of_offsets = overtaken_by(feed.spark, lambda: feed.spark.sql(as_bronze_does))
        with of_offsets if table == offsets(feed) else nullcontext():
            optimize(lake, name, table, *rows)

    with monkeypatch.context() as patch:
        patch.setattr(maintenance, "_optimize", optimize_overtaken)
        maintained = feed.run.maintain()
    assert (maintained.compacted, maintained.put_off) == (1, ())
    [(part, event, reason)] = warned
    assert (part, event) == ("ops", "compaction put off")
    assert "DELTA_CONCURRENT_DELETE_READ" in reason
    assert len(feed.spark.table(offsets(feed)).inputFiles()) > 1
    feed.run.maintain()
    assert len(feed.spark.table(offsets(feed)).inputFiles()) == 1
