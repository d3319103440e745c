"""Rows that move or come back without row messages: EXCHANGE PARTITION, RECOVER and FLASHBACK TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, ddl

from ticdc_lakehouse.gold.time_travel import as_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_codec.event import Ddl
    from ticdc_local.broker import Broker

pytestmark = pytest.mark.long

COLUMNS = "(id BIGINT PRIMARY KEY, v VARCHAR(9))"
PARTS = "PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN (20))"
TABLES = "".join(
    f"CREATE TABLE shop.{name} {COLUMNS};" for name in ("plain", "stray", "away", "gone", "cut", "twice", "hushed")
)
TABLES += "".join(f"CREATE TABLE shop.{name} {COLUMNS} {PARTS};" for name in ("parted", "strict", "left"))
PARTED, PLAIN, STRICT, STRAY, LEFT, AWAY = (
    Source(table=name) for name in ("parted", "plain", "strict", "stray", "left", "away")
)
FIRST, CUT, TWICE, BACK, HUSHED = (Source(table=name) for name in ("gone", "cut", "twice", "cut_back", "hushed"))


def shop(second: int, query: str, table: str) -> Ddl:
    return ddl(at(second), query, "shop", table)


def write_first(feed: Changefeed) -> None:
    for partitioned, plain in ((PARTED, PLAIN), (STRICT, STRAY), (LEFT, AWAY)):
        feed.send(0, partitioned.insert(at(1), 1, "low"), partitioned.insert(at(1), 11, "high"))
        feed.send(0, plain.insert(at(2), 2, "plain"))
        query = f"ALTER TABLE `{partitioned.table}` EXCHANGE PARTITION `low` WITH TABLE `{plain.table}`"
        feed.send(0, shop(4, f"{query} WITHOUT VALIDATION", partitioned.table))
    feed.send(0, STRAY.insert(at(3), 30, "not low"), shop(6, "RENAME TABLE `away` TO `hidden`", "away"))
    feed.send(0, PARTED.update(at(5), (2, "plain"), (2, "moved in")), PLAIN.update(at(5), (1, "low"), (1, "moved out")))
    feed.send(0, FIRST.insert(at(1), 1, "a"), FIRST.insert(at(3), 2, "b"), shop(4, "DROP TABLE `gone`", "gone"))
    feed.send(0, CUT.insert(at(1), 1, "old"), shop(4, "TRUNCATE TABLE `cut`", "cut"), CUT.insert(at(5), 1, "new"))
    feed.send(0, HUSHED.insert(at(1), 1, "a"), shop(4, "DROP TABLE `hushed`", "hushed"))
    feed.send(0, TWICE.insert(at(1), 1, "a"), shop(4, "DROP TABLE `twice`", "twice"))
    feed.send(0, shop(5, "RECOVER TABLE `twice`", "twice"), TWICE.insert(at(6), 2, "b"))


def write_second(feed: Changefeed) -> None:
    feed.send(0, shop(12, "RECOVER TABLE `gone`", "gone"), FIRST.update(at(13), (2, "b"), (2, "again")))
    feed.send(0, HUSHED.insert(at(13), 2, "after a RECOVER TABLE that was not sent"))
    feed.send(0, shop(12, "FLASHBACK TABLE `cut` TO `cut_back`", "cut_back"), BACK.insert(at(13), 2, "more"))


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """Applied up to ``at(10)``, after a run that died, then up to ``at(20)``."""
    folder, described = tmp_path_factory.mktemp("recovery"), {"tables": {"exclude": ["shop.hidden"]}}
    feed = Changefeed(spark, broker, folder, schema=TABLES, described=described)
    write_first(feed)
    feed.resolve(at(10))
    feed.load()
    feed.die_before_publishing()
    feed.apply()
    write_second(feed)
    feed.resolve(at(20))
    feed.go()
    return feed


def test_partition_and_table_exchange_their_rows(feed: Changefeed) -> None:
    assert feed.rows("parted") == {2: ("moved in",), 11: ("high",)}
    assert feed.rows("plain") == {1: ("moved out",)}


def test_rows_outside_the_partition_block_both_tables(feed: Changefeed) -> None:
    for table, rows in (("strict", {1: ("low",), 11: ("high",)}), ("stray", {2: ("plain",), 30: ("not low",)})):
        state = feed.state.tables["shop", table]
        assert (state.applied_tso, state.needs_override) == (at(4), True)
        assert "rows outside the partition" in str(state.stop)
        assert feed.rows(table) == rows


def test_table_whose_partner_left_the_feed_is_blocked(feed: Changefeed) -> None:
    assert ("shop", "away") not in feed.state.tables
    assert "left the feed" in str(feed.state.tables["shop", "left"].stop)
    assert feed.rows("left") == {1: ("low",), 11: ("high",)}


def test_table_that_comes_back_without_a_word_is_blocked(feed: Changefeed) -> None:
    state = feed.state.tables["shop", "hushed"]
    assert (state.applied_tso, state.version, state.needs_override) == (at(4), -1, True)
    assert "no CREATE TABLE came" in str(state.stop)


def test_dropped_table_comes_back_with_its_rows(feed: Changefeed) -> None:
    assert "shop.gone" not in as_of(feed.spark, feed.name, at(10), lake=feed.lake).tables
    assert feed.rows("gone") == {1: ("a",), 2: ("again",)}
    assert feed.rows("twice") == {1: ("a",), 2: ("b",)}


def test_truncated_table_comes_back_under_another_name(feed: Changefeed) -> None:
    assert feed.rows("cut") == {1: ("new",)}
    assert feed.rows("cut_back") == {1: ("old",), 2: ("more",)}

    # TiDB still finds a table by that DROP once it is dropped under another name: what it will hold is not known.
    assert {(each.name.table, each.stable_id) for each in feed.state.recoverable} == {
        ("gone", ""),
        ("twice", ""),
        ("cut", ""),
        ("hushed", f"{feed.name}_shop_hushed__data"),
    }


def test_messages_delivered_twice_write_no_version(feed: Changefeed) -> None:
    versions = feed.data_versions()
    feed.produce(list(feed.sent))
    feed.go()
    assert feed.data_versions() == versions
