"""Up to where gold goes, and what it says it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from changefeed import Changefeed, Source, alter, at, ddl

from ticdc_codec.event import Resolved
from ticdc_codec.tso import Tso, with_time
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.ops.status import feed_status
from ticdc_lakehouse.silver import events_table
from ticdc_local.broker import KafkaMessage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_codec.event import Event
    from ticdc_local.broker import Broker

T, OWN, NEXT = Source(table="t"), Source(table="own"), Source(table="next")


def feed_of_pattern(spark: SparkSession, broker: Broker, folder: Path, name: str, *, partitions: int = 1) -> Changefeed:
    """A feed of all topics that begin with its own topic's name."""
    kafka = {"bootstrap_servers": broker.bootstrap_servers, "topic_pattern": f"topic-{name}.*"}
    return Changefeed(spark, broker, folder, partitions=partitions, name=name, described={"kafka": kafka})


def new_topic(feed: Changefeed, suffix: str) -> str:
    """A topic beside the feed's own, which its pattern matches."""
    topic = f"{feed.topic}-{suffix}"
    feed.broker.create_topic(topic, 1)
    return topic


def send_to(feed: Changefeed, topic: str, *events: Event) -> None:
    """Write events into a topic beside the feed's own."""
    values = feed.encoded(events)
    feed.broker.produce(topic, [KafkaMessage(partition=0, key=None, value=value) for value in values])


def test_watermark_waits_for_the_slowest_partition(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = feed_of_pattern(spark, broker, tmp_path, "slowest", partitions=2)

    feed.send(0, T.insert(at(1), 1, "a"))
    feed.resolve(at(5), 0)
    applied = feed.go()
    assert (applied.tso, feed.state.tables) == (0, {})
    assert (applied.waiting_on or "").startswith(f"partition {feed.topic}/1 has sent no watermark yet; check that")

    feed.send(1, T.insert(at(2), 2, "b"))
    feed.resolve(at(5), 1)
    assert feed.go().tso == at(5)
    assert feed.rows("t") == {1: ("a",), 2: ("b",)}

    # A partition that is added must show a watermark first, also when it is empty.
    broker.add_partitions(feed.topic, 3)
    feed.partitions = 3
    feed.send(0, T.insert(at(8), 8, "h"))
    feed.resolve(at(9), 0, 1)
    applied = feed.go()
    assert applied.tso == at(5)
    assert applied.waiting_on == (
        f"partition {feed.topic}/2 has sent no watermark newer than the published {with_time(at(5))}; "
        "check that the changefeed is running. If it sends nothing there any more, name the partition or its topic in "
        "kafka.retired"
    )
    assert feed.rows("t").keys() == {1, 2}
    feed.resolve(at(9), 2)
    assert feed.go().tso == at(9)
    assert feed.rows("t").keys() == {1, 2, 8}
    feed.check_nothing_lost_or_doubled()


def test_a_transaction_over_several_batches_is_shown_whole_or_not_at_all(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """A window is published while one half of it is in bronze."""
    feed = Changefeed(spark, broker, tmp_path)
    feed.send(0, T.insert(at(1), 1, "old"), OWN.insert(at(1), 1, "old"))
    halves = T.update(at(5), (1, "old"), (1, "new")), OWN.update(at(5), (1, "old"), (1, "new"))
    for half, watermark, shown in zip(halves, (at(4), at(5)), ("old", "new"), strict=True):
        feed.send(0, half)
        feed.resolve(watermark)
        feed.load(max_offsets_per_trigger=1)
        assert feed.apply().tso == watermark
        assert feed.rows("t") == feed.rows("own") == {1: (shown,)}


@pytest.mark.long
def test_retired_partition_is_not_waited_for(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """TiCDC's partition-num may be less than the topic has; of a topic no watermark is left."""
    feed = Changefeed(spark, broker, tmp_path, partitions=2)
    kafka = {"bootstrap_servers": broker.bootstrap_servers, "topics": [feed.topic]}
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.resolve(at(5), 0)
    assert feed.go().tso == 0
    for place, tso in ((feed.topic, 0), (f"{feed.topic}/1", at(5))):
        feed.described = {"kafka": {**kafka, "retired": [place]}}
        waited_for = [feed_status(feed.lake, feed.name, each).waiting_on for each in (None, feed.run.gold_config)]
        assert ["name the partition or its topic in kafka.retired" in str(each) for each in waited_for] == [True, False]
        assert ("names all that it has" in str(waited_for[1])) is (tso == 0)
        assert feed.apply().tso == tso

    # A row that comes to it all the same is late.
    feed.send(1, T.insert(at(2), 2, "b"))
    feed.resolve(at(6), 0)
    (reason,) = feed.go().blocked.values()
    assert "arrived only after the watermark" in reason
    assert f"the oldest at {feed.topic}/1/0" in reason


@pytest.mark.long
def test_a_window_ends_at_until_tso_and_where_silver_has_decoded_what_bronze_has(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    feed = Changefeed(spark, broker, tmp_path)
    feed.send(0, T.insert(at(1), 1, "a"), T.insert(at(2), 2, "b"), T.insert(at(4), 4, "d"))
    feed.resolve(at(5))
    assert feed.go(until_tso=at(3)).tso == at(3)
    assert feed.rows("t") == {1: ("a",), 2: ("b",)}
    assert feed.apply(until_tso=at(2)).tso == at(3), "an earlier until_tso never takes gold back"
    applied = feed.apply()
    assert (applied.tso, applied.waiting_on) == (at(5), None)
    assert feed.rows("t") == {1: ("a",), 2: ("b",), 4: ("d",)}

    feed.send(0, T.insert(at(6), 6, "f"))
    feed.resolve(at(7))
    feed.run.bronze()
    applied = feed.apply()
    assert applied.tso == at(5)
    assert applied.waiting_on == "silver has 0 of the 2 messages of bronze batch 1: run silver"
    feed.run.silver()
    assert feed.apply().tso == at(7)


@pytest.mark.long
def test_topic_whose_tables_were_dropped_is_not_waited_for(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = feed_of_pattern(spark, broker, tmp_path, "gone")
    other = new_topic(feed, "own")
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.resolve(at(3))
    send_to(feed, other, OWN.insert(at(1), 1, "a"), Resolved(commit_ts=at(2)))
    applied = feed.go()
    assert (applied.tso, feed.rows("own")) == (at(2), {1: ("a",)})
    feed.send(0, ddl(at(4), "DROP TABLE `shop`.`own`", "shop", "own", "ERASE"))
    feed.resolve(at(5))
    applied = feed.go()
    assert (applied.tso, applied.waiting_on) == (at(5), None)
    assert ("shop", "own") not in feed.state.tables

    # That it is gone is known from the state, not from its events, of which there may be any number.
    tables = {topic: {table.table for table in names} for topic, names in feed.state.topics.items()}
    assert tables == {feed.topic: {"t", "own"}, other: {"own"}}
    events = events_table.full_name(feed.lake, feed.name)
    spark.sql(f"DELETE FROM {events} WHERE commit_ts < {at(5)}")
    feed.resolve(at(6))
    assert feed.go().tso == at(6)


@pytest.mark.long
def test_a_retired_topic_with_a_message_in_quarantine_is_waited_for(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    feed = feed_of_pattern(spark, broker, tmp_path, "unread")
    own = new_topic(feed, "own")
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    rename = ddl(at(4), "RENAME TABLE `shop`.`own` TO `shop`.`moved`", "shop", "own", "RENAME")
    first, last = [OWN.insert(at(1), 1, "a"), Resolved(commit_ts=at(2))], [Resolved(commit_ts=Tso(at(4) - 1)), rename]
    to_own = [*feed.encoded(first), b"{ a row of `own` at 3 s", *feed.encoded(last)]
    broker.produce(own, [KafkaMessage(partition=0, key=None, value=value) for value in to_own])
    feed.resolve(at(5))
    applied = feed.go()
    assert (applied.tso, feed.rows("own")) == (at(2), {1: ("a",)})
    assert f"the message at {own}/0/2 is in quarantine" in str(feed.apply().waiting_on)
    feed.run.dismiss([f"{own}/0/2"], "a test")
    applied = feed.apply()
    assert (applied.from_tso, applied.tso, applied.waiting_on) == (at(2), at(5), None)
    assert feed.rows("moved") == {1: ("a",)}


@pytest.fixture(scope="module")
def of_many(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """A feed of several topics; one row is published at second 2."""
    feed = feed_of_pattern(spark, broker, tmp_path_factory.mktemp("many"), "many")
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    assert feed.go().tso == at(2)
    return feed


def test_a_topic_is_not_waited_for_once_its_table_is_dropped_without_a_row(of_many: Changefeed) -> None:
    feed, own = of_many, new_topic(of_many, "own")
    create = ddl(at(3), "CREATE TABLE `shop`.`own` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))", "shop", "own", "CREATE")
    send_to(feed, own, create, Resolved(commit_ts=at(4)))
    feed.resolve(at(5))
    assert feed.go().tso == at(4), "its first row may come"
    send_to(feed, own, ddl(at(6), "DROP TABLE `shop`.`own`", "shop", "own", "ERASE"))
    feed.resolve(at(7))
    assert feed.go().tso == at(7)


def test_the_topic_of_a_table_that_had_only_ddls_is_not_retired(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """It is idle: its first row may be in Kafka, and not read yet, when a watermark of another topic is."""
    feed = feed_of_pattern(spark, broker, tmp_path, "idle")
    own = new_topic(feed, "own")
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    send_to(feed, own, alter(1, "own", "ADD w INT"), alter(2, "own", "DROP w"), Resolved(commit_ts=at(2)))
    assert feed.go().tso == at(2)
    feed.resolve(at(5))
    assert feed.go().tso == at(2)
    send_to(feed, own, OWN.insert(at(4), 1, "x"), Resolved(commit_ts=at(5)))
    applied = feed.go()
    assert (applied.tso, applied.blocked, feed.rows("own")) == (at(5), {}, {1: ("x",)})


@pytest.mark.long
def test_an_empty_topic_counts_with_a_watermark_read_before_its_end_offsets(
    of_many: Changefeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where bronze runs continuously, or is killed before it asks Kafka again."""
    monkeypatch.setattr(landing, "confirm_empty_topics", lambda *_: None)
    feed, stray = of_many, new_topic(of_many, "stray")
    feed.resolve(at(8))
    applied = feed.go()
    assert applied.tso == at(7)
    waited_for = f"partition {stray}/0 has sent no watermark newer than the published {with_time(at(7))}; check that"
    assert (applied.waiting_on or "").startswith(waited_for)
    feed.send(0, T.insert(at(9), 2, "b"))
    feed.resolve(at(9))
    assert feed.go().tso == at(8)
    assert feed.rows("t") == {1: ("a",)}

    # The rows of a new table come before the watermark that covers them is read again.
    send_to(feed, stray, NEXT.insert(at(9), 1, "x"))
    feed.resolve(at(10))
    assert feed.go().tso == at(8), "from its first row on its own watermark counts"
    send_to(feed, stray, Resolved(commit_ts=at(10)))
    assert feed.go().tso == at(10)
    assert (feed.rows("t"), feed.rows("next")) == ({1: ("a",), 2: ("b",)}, {1: ("x",)})


def test_one_run_publishes_what_it_read_beside_an_empty_topic(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    feed = feed_of_pattern(spark, broker, tmp_path, "beside")
    stray = new_topic(feed, "stray")
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    applied = feed.go()
    assert (applied.tso, applied.waiting_on, feed.rows("t")) == (at(2), None, {1: ("a",)})

    # A run that is killed before it asks Kafka again leaves that to the next one, which has nothing to land.
    feed.resolve(at(3))
    with pytest.MonkeyPatch.context() as killed:
        killed.setattr(landing, "confirm_empty_topics", lambda *_: None)
        assert feed.go().tso == at(2)
    assert feed.go().tso == at(3)

    # The first row may come after what a run reads: it counts only if it is not in Kafka by then.
    confirm = landing.confirm_empty_topics

    def confirm_late(*arguments: Any) -> None:
        send_to(feed, stray, NEXT.insert(at(4), 1, "x"))
        confirm(*arguments)

    feed.resolve(at(5))
    with pytest.MonkeyPatch.context() as late:
        late.setattr(landing, "confirm_empty_topics", confirm_late)
        assert feed.go().tso == at(3)
    send_to(feed, stray, Resolved(commit_ts=at(5)))
    applied = feed.go()
    assert (applied.tso, applied.blocked, feed.rows("next")) == (at(5), {}, {1: ("x",)})


def test_kafka_is_asked_again_only_about_an_empty_topic_that_gold_waits_for(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    feed = feed_of_pattern(spark, broker, tmp_path, "asked")
    stray, kafka = new_topic(feed, "stray"), {**feed.described}["kafka"]
    retired = {"kafka": {**kafka, "retired": [f"{stray}/0"]}}
    eventual = {"kafka": kafka, "gold": {"mode": "eventual"}}
    for batch, (described, is_asked) in enumerate([(retired, False), (eventual, False), ({"kafka": kafka}, True)]):
        feed.described = described
        feed.resolve(at(batch + 1))
        feed.run.bronze()
        offsets = feed.lake.table(Layer.BRONZE, landing.offsets_table(feed.name))
        noted = feed.lake.rows(f"SELECT listing FROM {offsets} WHERE topic = '{stray}' AND batch = {batch}")
        assert noted == [{"listing": batch + is_asked}]


@pytest.mark.long
def test_a_topic_with_only_a_message_in_quarantine_is_waited_for(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    feed = feed_of_pattern(spark, broker, tmp_path, "broken")
    broken = new_topic(feed, "other")
    broker.produce(broken, [KafkaMessage(partition=0, key=None, value=b"{")])
    for second in (1, 2):
        feed.resolve(at(second))
        applied = feed.go()
        assert applied.tso == 0
        assert str(applied.waiting_on).startswith(f"the message at {broken}/0/0 is in quarantine")
