"""Up to where gold goes, and what it says it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, ddl

from ticdc_codec.event import Resolved
from ticdc_codec.tso import Tso, with_time
from ticdc_lakehouse.silver import events_table
from ticdc_local.broker import KafkaMessage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

T, OWN, NEXT = Source(table="t"), Source(table="own"), Source(table="next")


@pytest.mark.long
def test_watermark_waits_for_the_slowest_partition(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    kafka = {"bootstrap_servers": broker.bootstrap_servers, "topic_pattern": "topic-slowest.*"}
    feed = Changefeed(spark, broker, tmp_path, partitions=2, name="slowest", described={"kafka": kafka})

    # A partition that never showed a watermark, although the other is far ahead.
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.resolve(at(5), 0)
    applied = feed.go()
    assert (applied.tso, feed.state.tables) == (0, {})
    assert applied.waiting_on == f"partition {feed.topic}/1 has sent no watermark yet"

    # until_tso stops between watermarks; the rest follows.
    feed.send(1, T.insert(at(2), 2, "b"), T.insert(at(4), 4, "d"))
    feed.resolve(at(5), 1)
    assert feed.go(until_tso=at(3)).tso == at(3)
    assert feed.rows("t") == {1: ("a",), 2: ("b",)}
    assert feed.apply(until_tso=at(2)).tso == at(3), "an earlier until_tso never takes gold back"
    applied = feed.apply()
    assert (applied.tso, applied.waiting_on) == (at(5), None)
    assert feed.rows("t") == {1: ("a",), 2: ("b",), 4: ("d",)}

    # Bronze has the watermark, silver has not.
    feed.send(0, T.insert(at(6), 6, "f"))
    feed.resolve(at(7))
    feed.run.bronze()
    applied = feed.apply()
    assert applied.tso == at(5)
    assert applied.waiting_on == "silver has 0 of the 3 messages of bronze batch 2: run silver"
    feed.run.silver()
    assert feed.apply().tso == at(7)

    # A partition that is added must show a watermark first, also when it is empty.
    broker.add_partitions(feed.topic, 3)
    feed.partitions = 3
    feed.send(0, T.insert(at(8), 8, "h"))
    feed.resolve(at(9), 0, 1)
    applied = feed.go()
    assert applied.tso == at(7)
    assert applied.waiting_on == (
        f"partition {feed.topic}/2 has sent no watermark newer than the published {with_time(at(7))}; "
        "check that the changefeed is running"
    )
    assert feed.rows("t").keys() == {1, 2, 4, 6}
    feed.resolve(at(9), 2)
    assert feed.go().tso == at(9)
    assert feed.rows("t").keys() == {1, 2, 4, 6, 8}
    feed.check_nothing_lost_or_doubled()


@pytest.mark.long
def test_topic_whose_tables_were_dropped_is_not_waited_for(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    kafka = {"bootstrap_servers": broker.bootstrap_servers, "topic_pattern": "topic-gone.*"}
    feed = Changefeed(spark, broker, tmp_path, name="gone", described={"kafka": kafka})
    other = f"{feed.topic}-own"
    broker.create_topic(other, 1)
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.resolve(at(3))
    own = feed.encoded([OWN.insert(at(1), 1, "a"), Resolved(commit_ts=at(2))])
    broker.produce(other, [KafkaMessage(partition=0, key=None, value=value) for value in own])
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


def test_a_retired_topic_with_a_message_in_quarantine_is_waited_for(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    kafka = {"bootstrap_servers": broker.bootstrap_servers, "topic_pattern": "topic-unread.*"}
    feed = Changefeed(spark, broker, tmp_path, name="unread", described={"kafka": kafka})
    own = f"{feed.topic}-own"
    broker.create_topic(own, 1)
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    rename = ddl(at(4), "RENAME TABLE `shop`.`own` TO `shop`.`moved`", "shop", "own", "RENAME")
    first, last = [OWN.insert(at(1), 1, "a"), Resolved(commit_ts=at(2))], [Resolved(commit_ts=Tso(at(4) - 1)), rename]
    to_own = [*feed.encoded(first), b"{ a row of `own` at 3 s", *feed.encoded(last)]
    broker.produce(own, [KafkaMessage(partition=0, key=None, value=value) for value in to_own])
    feed.resolve(at(5))
    applied = feed.go()
    assert (applied.tso, feed.rows("own")) == (at(2), {1: ("a",)})
    assert f"the message at {own}/0 offset 2 is in quarantine" in str(feed.apply().waiting_on)
    feed.run.dismiss([f"{own}/0/2"], "a test")
    assert [feed.apply().tso for _ in range(2)] == [at(4) - 1, at(5)]
    assert feed.rows("moved") == {1: ("a",)}


def test_topics_without_a_row_do_not_hold_the_watermark(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    kafka = {"bootstrap_servers": broker.bootstrap_servers, "topic_pattern": "topic-rowless.*"}
    feed = Changefeed(spark, broker, tmp_path, name="rowless", described={"kafka": kafka})
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    assert feed.go().tso == at(2)

    # A table with a topic of its own is dropped before its first row.
    own, stray = f"{feed.topic}-own", f"{feed.topic}-stray"
    broker.create_topic(own, 1)
    create = ddl(at(3), "CREATE TABLE `shop`.`own` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))", "shop", "own", "CREATE")
    to_own = feed.encoded([create, Resolved(commit_ts=at(4))])
    broker.produce(own, [KafkaMessage(partition=0, key=None, value=value) for value in to_own])
    feed.resolve(at(5))
    assert feed.go().tso == at(4), "its first row may come"
    drop = feed.encoded([ddl(at(6), "DROP TABLE `shop`.`own`", "shop", "own", "ERASE")])
    broker.produce(own, [KafkaMessage(partition=0, key=None, value=value) for value in drop])
    feed.resolve(at(7))
    assert feed.go().tso == at(7)

    # A topic of nobody: a watermark counts once it was read before Kafka was asked what that topic has.
    broker.create_topic(stray, 1)
    feed.resolve(at(8))
    applied = feed.go()
    assert (applied.tso, applied.waiting_on) == (
        at(7),
        f"partition {stray}/0 has sent no watermark newer than the published {with_time(at(7))}; "
        "check that the changefeed is running",
    )
    feed.send(0, T.insert(at(9), 2, "b"))
    feed.resolve(at(9))
    assert feed.go().tso == at(8)
    assert feed.rows("t") == {1: ("a",)}

    # It was of a new table: its rows came before the watermark that covers them was read again.
    first = feed.encoded([NEXT.insert(at(9), 1, "x")])
    broker.produce(stray, [KafkaMessage(partition=0, key=None, value=value) for value in first])
    feed.resolve(at(10))
    assert feed.go().tso == at(8), "from its first row on its own watermark counts"
    last = feed.encoded([Resolved(commit_ts=at(10))])
    broker.produce(stray, [KafkaMessage(partition=0, key=None, value=value) for value in last])
    assert feed.go().tso == at(10)
    assert (feed.rows("t"), feed.rows("next")) == ({1: ("a",), 2: ("b",)}, {1: ("x",)})

    # What cannot be decoded may have been a row: it is waited for.
    broken = f"{feed.topic}-broken"
    broker.create_topic(broken, 1)
    broker.produce(broken, [KafkaMessage(partition=0, key=None, value=b"{")])
    for second in (11, 12):
        watermark = feed.encoded([Resolved(commit_ts=at(second))])
        broker.produce(stray, [KafkaMessage(partition=0, key=None, value=value) for value in watermark])
        feed.resolve(at(second))
        applied = feed.go()
    assert applied.tso == at(10)
    assert applied.waiting_on is not None
    assert applied.waiting_on.startswith(f"the message at {broken}/0 offset 0 is in quarantine")
