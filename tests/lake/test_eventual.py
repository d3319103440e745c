"""Gold of a feed without watermarks: the newest commit of each key wins, whenever it comes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from alerts import alert_value
from changefeed import ID, Changefeed, Source, V, at, ddl

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold import table_execution, views
from ticdc_lakehouse.gold.overrides import OverrideAction, override
from ticdc_lakehouse.ops.status import feed_status
from ticdc_lakehouse.ops.verify.verification import chosen_tables
from ticdc_lakehouse.policy import Mode
from ticdc_local.delta_reader import DeltaReader
from ticdc_local.kafka import KafkaMessage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_codec.event import Event
    from ticdc_local.broker import Broker

ANALYST = Path(__file__).parents[2] / "docs" / "analyst.md"
T = Source(table="t")
W = Source(table="t", columns=(ID, V, Column(name="w", type="int")))
X = Source(table="t", columns=(*W.columns, Column(name="x", type="int")))
OTHER = Source(table="other")
DAY = 86_400
SCHEMA = """
CREATE TABLE shop.t (id BIGINT PRIMARY KEY, v VARCHAR(9));
CREATE TABLE shop.other (id BIGINT PRIMARY KEY, v VARCHAR(9));
"""


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    feed = Changefeed(
        spark,
        broker,
        tmp_path_factory.mktemp("eventual"),
        partitions=2,
        options={"enable-tidb-extension": False},
        described={"gold": {"mode": "eventual", "tombstone_days": 36500}},
        schema=SCHEMA,
    )
    feed.send(0, T.insert(at(1), 1, "a"), T.update(at(2), (1, "a"), (1, "b")), T.insert(at(2), 2, "x"))
    feed.send(0, T.delete(at(3), 2, "x"), T.insert(at(3), 3, "moved"))
    feed.send(1, T.insert(at(3), 4, "at once"), T.delete(at(3), 4, "at once"))  # one millisecond, in this order
    send_helper_table(feed)
    feed.load()
    unpublished = feed_status(DeltaReader(feed.folder), feed.name, feed.run.gold_config)
    assert (unpublished.mode, unpublished.waiting_on) == (Mode.EVENTUAL, None), "it waits on no watermark"
    feed.apply()
    return feed


def send_helper_table(feed: Changefeed) -> None:
    """That of an online schema change: made, renamed and dropped within one window."""
    new, old = Source(table="new"), Source(table="old")
    create = "CREATE TABLE `shop`.`new` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))"
    feed.send(0, ddl(at(1), create, "shop", "new", "CREATE"), new.insert(at(2), 1, "a"))
    feed.send(0, ddl(at(3), "RENAME TABLE `shop`.`new` TO `shop`.`old`", "shop", "old", "RENAME"))
    feed.send(0, old.insert(at(4), 2, "b"), ddl(at(5), "DROP TABLE `shop`.`old`", "shop", "old", "ERASE"))


def test_newest_commit_of_each_key_is_shown_at_once(feed: Changefeed) -> None:
    assert feed.rows("t") == {1: ("b",), 3: ("moved",)}
    assert {str(name) for name in feed.state.tables} == {"shop.other", "shop.t"}


def test_without_changes_it_sets_off_no_alert(feed: Changefeed) -> None:
    """Its newest commit is years old, and a run without changes publishes no window."""
    assert feed.spark.table(feed.lake.table(Layer.OPS, "feeds")).select("mode").collect() == [("eventual",)]
    assert [alert_value(feed.lake, f"ticdc_{key}", feed.name) for key in ("behind", "no_watermark")] == [0, 0]


def test_late_and_repeated_changes_never_replace_newer_ones(feed: Changefeed) -> None:
    """They bring no table back that gold never published."""
    feed.produce(list(feed.sent))
    feed.send(1, T.update(at(1, 5), (1, "a"), (1, "old")), T.insert(at(2), 2, "x"), T.insert(at(2), 5, "late"))
    feed.go()
    assert feed.rows("t") == {1: ("b",), 3: ("moved",), 5: ("late",)}
    assert {str(name) for name in feed.state.tables} == {"shop.other", "shop.t"}


def test_one_copy_of_each_change_is_chosen_as_the_docs_say(feed: Changefeed) -> None:
    feed.send(1, *[T.update(at(1, 5), (1, "a"), (1, "old"))] * 2)
    feed.load()
    [number] = re.findall("`QUALIFY (row_number.*) = 1`", ANALYST.read_text(encoding="utf-8"))
    changes = feed.spark.table(feed.lake.table(Layer.SILVER, feed.shown_name("t")))
    numbered = changes.selectExpr("*", f"{number.replace('<key>', 'id')} AS number")
    shown = ["commit_time", "op", "id", "v"]
    copies = numbered.where("number = 1").select(shown).collect()
    assert Counter(copies) == Counter(changes.select(shown).distinct().collect())
    assert sorted(row["v"] for row in copies if (row["op"], row["id"]) == ("update", 1)) == ["b", "old"]


@pytest.mark.long
def test_rows_that_are_replayed_from_quarantine_are_merged(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(
        spark,
        broker,
        tmp_path,
        options={"enable-tidb-extension": False},
        described={"gold": {"mode": "eventual"}, "max_message_bytes": 1000},
        schema="CREATE TABLE shop.t (id BIGINT PRIMARY KEY, v TEXT);",
    )
    text = Source(table="t", columns=(ID, Column(name="v", type="text")))
    feed.send(0, text.insert(at(1), 1, "a"), text.insert(at(2), 2, "b" * 2000), text.delete(at(3), 1, "a"))
    feed.send(0, text.insert(at(3), 3, "c"), text.insert(at(4), 4, "newest" * 200), text.insert(at(1), 1, "a" * 2000))
    feed.go()
    assert feed.rows("t") == {3: ("c",)}
    feed.described = {"gold": {"mode": "eventual"}}
    assert feed.run.replay(["all"]).decoded == 3
    feed.apply()
    assert feed.rows("t") == {2: ("b" * 2000,), 3: ("c",), 4: ("newest" * 200,)}


@pytest.mark.long
def test_ddl_that_is_replayed_from_quarantine_is_followed(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """It is in a batch that gold has read. Rows that have its column block the table until then."""
    eventual = {"gold": {"mode": "eventual"}}
    feed = Changefeed(spark, broker, tmp_path, described=eventual | {"max_message_bytes": 1000}, schema=SCHEMA)
    add = f"ALTER TABLE `shop`.`t` ADD COLUMN `w` INT COMMENT '{'w' * 1000}'"
    feed.send(0, T.insert(at(1), 1, "a"), ddl(at(2), add, "shop", "t", "ALTER"), W.insert(at(3), 2, "b", 8))
    feed.send(0, OTHER.insert(at(4), 1, "newer"))
    feed.go()
    assert (feed.state.tables["shop", "t"].stop is None, feed.rows("t")) == (False, {1: ("a",)})
    feed.described = eventual
    assert feed.run.replay(["all"]).decoded == 1
    feed.apply()
    assert (feed.state.tables["shop", "t"].stop, feed.rows("t")) == (None, {1: ("a", None), 2: ("b", 8)})


def test_eventual_mode_follows_a_ddl(feed: Changefeed) -> None:
    feed.send(0, ddl(at(20), "ALTER TABLE `shop`.`t` ADD COLUMN `w` INT DEFAULT 7", "shop", "t", "ALTER"))
    feed.send(0, W.insert(at(21), 6, "new", 8))
    feed.go()
    assert feed.rows("t") == {1: ("b", 7), 3: ("moved", 7), 5: ("late", 7), 6: ("new", 8)}


@pytest.mark.long
def test_late_ddl_is_followed_once(feed: Changefeed) -> None:
    """TiCDC orders the DDLs of one table, not those of several."""
    feed.send(0, OTHER.insert(at(30), 1, "newer"))
    feed.go()
    added = ddl(at(25), "ALTER TABLE `shop`.`t` ADD COLUMN `x` INT DEFAULT 1", "shop", "t", "ALTER")
    feed.send(0, added, X.insert(at(26), 7, "wide", 8, 9))
    feed.go()
    feed.send(0, added)
    feed.go()
    assert feed.state.tables["shop", "t"].stop is None
    assert {key: row[-1] for key, row in feed.rows("t").items()} == {1: 1, 3: 1, 5: 1, 6: 1, 7: 9}


@pytest.mark.long
def test_repeats_from_before_a_ddl_change_nothing(feed: Changefeed) -> None:
    """A changefeed that starts anew sends rows since its checkpoint again."""
    before = feed.rows("t")
    feed.produce(list(feed.sent))
    feed.go()
    assert (feed.state.tables["shop", "t"].stop, feed.rows("t")) == (None, before)


@pytest.mark.long
def test_upsert_wins_over_a_delete_of_the_same_commit_that_comes_in_a_later_batch(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """A commit that moves a key away and another one in has both, in two partitions or in either order."""
    feed = Changefeed(spark, broker, tmp_path, partitions=2, described={"gold": {"mode": "eventual"}}, schema=SCHEMA)
    feed.send(0, T.insert(at(1), 1, "a"), T.insert(at(1), 2, "b"), T.insert(at(1), 3, "c"))
    feed.send(0, T.insert(at(2), 1, "moved in"), T.insert(at(2), 3, "moved in"), T.delete(at(2), 3, "c"))
    feed.go()
    feed.send(1, T.delete(at(2), 1, "a"), T.delete(at(2), 2, "b"))
    feed.go()
    assert feed.rows("t") == {1: ("moved in",), 3: ("moved in",)}


@pytest.mark.long
def test_whole_row_stays_where_the_same_change_comes_again_with_its_handle_key_only(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """In the same batch, in another partition, or in a later batch."""
    described = {"gold": {"mode": "eventual", "on_handle_key_only": "null"}}
    feed = Changefeed(spark, broker, tmp_path, partitions=2, described=described, schema=SCHEMA)
    key_only = Source(table="t", columns=(ID,))
    rows = [T.insert(at(2), number, "whole") for number in range(4)]
    again = [replace(key_only.insert(at(2), number), handle_only=True) for number in range(4)]
    feed.send(0, rows[0], again[0], rows[1], rows[2], again[3])
    feed.send(1, again[1], T.delete(at(1), 3, "moved away"))
    feed.go()
    assert feed.rows("t") == {0: ("whole",), 1: ("whole",), 2: ("whole",), 3: (None,)}
    feed.send(0, again[2], T.delete(at(4), 0, "whole"), rows[3])
    feed.go()
    assert feed.rows("t") == {1: ("whole",), 2: ("whole",), 3: ("whole",)}
    feed.send(0, replace(key_only.insert(at(4), 0), handle_only=True))
    feed.send(0, replace(key_only.update(at(5), (1,), (1,)), handle_only=True))
    feed.go()
    assert feed.rows("t") == {0: (None,), 1: (None,), 2: ("whole",), 3: ("whole",)}


@pytest.mark.long
def test_rows_that_come_late_while_their_table_is_blocked_are_merged_once_the_ddl_is_skipped(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Also where no newer row follows the DDL."""
    feed = Changefeed(spark, broker, tmp_path, described={"gold": {"mode": "eventual"}}, schema=SCHEMA)
    feed.send(0, T.insert(at(1), 1, "a"), ddl(at(3), "ALTER TABLE `shop`.`t` ADD COLUMN `v` INT", "shop", "t", "ALTER"))
    feed.go()
    feed.send(0, T.insert(at(2), 2, "late"), OTHER.insert(at(4), 1, "newer"))
    feed.go()
    assert (feed.rows("t"), feed.rows("other")) == ({1: ("a",)}, {1: ("newer",)})
    override(feed.lake, feed.name, "shop.t", OverrideAction.SKIP_DDL, "it is there")
    feed.apply()
    assert feed.rows("t") == {1: ("a",), 2: ("late",)}


@pytest.mark.long
def test_rows_that_come_before_the_truncate_that_they_follow_stay(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """The DDL is in partition 0 alone, which may be read after another one."""
    feed = Changefeed(spark, broker, tmp_path, partitions=2, described={"gold": {"mode": "eventual"}}, schema=SCHEMA)
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.send(1, T.insert(at(3), 2, "after"))
    feed.go()
    feed.send(0, ddl(at(2), "TRUNCATE TABLE `shop`.`t`", "shop", "t", "TRUNCATE"))
    feed.go()
    assert feed.rows("t") == {2: ("after",)}


@pytest.mark.long
def test_rows_that_come_before_the_alter_that_they_follow_stay(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """What the late DDL removes or changes of newer rows is merged again. Sent once more in another text it does
    nothing; and the NULLs of deleted rows are none of the table's."""
    partitions = ", ".join(f"PARTITION p{number} VALUES LESS THAN ({10 * number + 10})" for number in range(3))
    schema = f"CREATE TABLE shop.t (id BIGINT PRIMARY KEY, n BIGINT NOT NULL) PARTITION BY RANGE (id) ({partitions});"
    feed = Changefeed(spark, broker, tmp_path, partitions=2, described={"gold": {"mode": "eventual"}}, schema=schema)
    table = Source(table="t", columns=(ID, Column(name="n", type="bigint")))
    feed.send(0, table.insert(at(1), 1, 10), table.insert(at(1), 12, 120), table.insert(at(1), 2, 20))
    feed.send(1, table.insert(at(3), 15, 150), table.delete(at(3), 2, 20))
    feed.go()
    for text in ("ALTER TABLE `shop`.`t` DROP PARTITION `p1`", "alter table shop.t drop partition p1"):
        feed.send(0, ddl(at(2), text, "shop", "t", "ALTER"))
        feed.go()
        assert feed.rows("t") == {1: (10,), 15: (150,)}
    feed.send(0, ddl(at(4), "ALTER TABLE `shop`.`t` MODIFY `n` INT NOT NULL", "shop", "t", "ALTER"))
    feed.go()
    assert (feed.state.tables["shop", "t"].stop, feed.rows("t")) == (None, {1: (10,), 15: (150,)})


@pytest.mark.long
def test_rows_of_a_ddls_millisecond_are_before_or_after_it_as_they_arrived(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Without commit_ts: in the DDL's partition by offset, in another one by Kafka's time."""
    feed = Changefeed(
        spark,
        broker,
        tmp_path,
        partitions=2,
        options={"enable-tidb-extension": False},
        described={"gold": {"mode": "eventual"}},
        schema=SCHEMA,
    )

    def send(second: int, partition: int, *events: Event) -> None:
        feed.produce(
            KafkaMessage(partition=partition, key=m.key, value=m.value, timestamp=second * 1000)
            for m in feed.messages(events)
        )

    wide = Source(table="other", columns=W.columns)
    truncate = ddl(at(2, 5), "TRUNCATE TABLE `shop`.`t`", "shop", "t", "TRUNCATE")
    added = ddl(at(2, 6), "ALTER TABLE `shop`.`other` ADD COLUMN `w` INT DEFAULT 7", "shop", "other", "ALTER")
    send(1, 0, T.insert(at(2, 1), 1, "before"), OTHER.insert(at(2, 1), 1, "before"))
    send(1, 1, T.insert(at(2, 2), 2, "before"), OTHER.insert(at(2, 2), 2, "before"))
    send(2, 0, truncate, added)
    send(3, 0, T.insert(at(2, 8), 3, "after"), wide.insert(at(2, 8), 3, "after", 8))
    send(3, 1, T.insert(at(2, 9), 4, "after"), wide.insert(at(2, 9), 4, "after", 9))
    expected = (
        {3: ("after",), 4: ("after",)},
        {1: ("before", 7), 2: ("before", 7), 3: ("after", 8), 4: ("after", 9)},
    )
    for _ in range(2):
        feed.go()
        assert (feed.rows("t"), feed.rows("other")) == expected
        feed.produce(list(feed.sent))


@pytest.mark.long
def test_a_tombstone_is_forgotten_after_its_days(feed: Changefeed, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the first change of a later day, or after some versions."""

    def tombstones() -> int:
        data = feed.live("t")
        return feed.spark.table(data).where("_ticdc_deleted").count()

    assert tombstones() == 2
    feed.described = {"gold": {"mode": "eventual", "tombstone_days": 1}}
    feed.send(0, X.insert(at(32), 8, "last", 8, 9))
    feed.go()
    assert tombstones() == 2
    feed.send(0, X.update(at(DAY + 60), (8, "last", 8, 9), (8, "next day", 8, 9)))
    feed.go()
    assert tombstones() == 0
    assert feed.rows("t").keys() == {1, 3, 5, 6, 7, 8}
    feed.send(0, X.delete(at(DAY + 61), 8, "next day", 8, 9))
    feed.go()
    assert tombstones() == 1
    feed.send(0, OTHER.insert(at(2 * DAY + 62), 2, "two days later"))
    feed.go()
    feed.send(0, X.insert(at(2 * DAY + 63), 9, "that day", 9, 9))
    feed.go()
    assert tombstones() == 1, "a purge reads the whole table"
    monkeypatch.setattr(table_execution, "_PURGED_AFTER", 1)
    feed.send(0, X.insert(at(2 * DAY + 64), 10, "that day", 9, 9))
    feed.go()
    assert tombstones() == 0
    assert feed.rows("t").keys() == {1, 3, 5, 6, 7, 9, 10}


@pytest.mark.long
def test_deleted_rows_stay_deleted_while_a_feed_catches_up(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """It was paused for years, and reads its partitions in several windows."""
    described = {"gold": {"mode": "eventual", "tombstone_days": 1}}
    feed = Changefeed(spark, broker, tmp_path, partitions=2, described=described, schema=SCHEMA)
    feed.send(0, T.insert(at(1), 1, "a"))
    feed.go()
    feed.send(0, T.delete(at(DAY), 1, "a"), T.insert(at(3 * DAY), 2, "b"))
    feed.go()
    feed.send(1, OTHER.insert(at(DAY - 10), 2, "behind"))
    feed.send(0, T.insert(at(5 * DAY), 3, "c"))
    feed.go()
    feed.send(1, T.update(at(DAY - 5), (1, "a"), (1, "older than its delete")))
    feed.go()
    assert feed.rows("t") == {2: ("b",), 3: ("c",)}


def test_every_event_is_accounted_for(feed: Changefeed) -> None:
    assert feed.status.mode is Mode.EVENTUAL
    lines = feed.spark.table(feed.lake.table(Layer.OPS, f"{feed.name}_accounting")).collect()
    assert {(row["waiting"], row["quarantined"]) for row in lines} == {(0, 0)}
    assert {row["filtered"] for row in lines} <= {0, 2, 4}, "rows of the helper table alone"


def test_it_says_what_it_does_not_promise(feed: Changefeed) -> None:
    described = feed.spark.sql(f"DESCRIBE TABLE EXTENDED {feed.view('t')}").collect()
    (comment,) = (row["data_type"] for row in described if row["col_name"] == "Comment")
    assert "eventual" in comment
    live = feed.spark.sql(f"DESCRIBE DETAIL {feed.live('t')}").collect()[0]["description"]
    assert live.startswith("TiDB table shop.t; rows are as new as what had arrived")
    with pytest.raises(ConfigError, match="until_tso stops at a watermark"):
        feed.apply(until_tso=at(5))


def test_another_mode_wants_another_feed(feed: Changefeed) -> None:
    """Tombstones would come back as rows; views, which `maintain` and `sql` make again, do not show them."""
    before = feed.rows("t")
    feed.described = {}
    feed.options = {"enable-tidb-extension": True}
    with pytest.raises(ConfigError, match=r"gold.mode: it was published in mode eventual"):
        feed.apply()
    views.refresh(feed.lake, feed.run.gold_config)
    assert feed.rows("t") == before
    with pytest.raises(ConfigError, match="in gold mode eventual no table is at one TSO"):
        chosen_tables(feed.state, feed.run.gold_config, ())
