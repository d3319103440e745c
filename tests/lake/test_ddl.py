"""DDL in commit order: followed exactly, or the table stops and says why, and no other table does."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from changefeed import ID, Changefeed, Source, V, alter, at, ddl
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column, Ddl
from ticdc_codec.tso import with_time
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold.maintenance import maintain
from ticdc_lakehouse.gold.state_tables import TABLE_STATES, WINDOWS, rows_of
from ticdc_lakehouse.gold.time_travel import as_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_lakehouse.planning.published_state import TableState
    from ticdc_local.broker import Broker

PLAIN, ALTERED, LEFT, RIGHT, LATE, STUCK, GONE = (
    Source(table=name) for name in ("plain", "altered", "a", "b", "late", "stuck", "gone")
)
PARTED, HASHED, REKEYED = (Source(table=name) for name in ("parted", "hashed", "rekeyed"))
BY_V = Source(table="rekeyed", columns=(replace(ID, key=False), replace(V, key=True)))
W, N = Column(name="w", type="int"), Column(name="N 1", type="decimal")
CREATE = """CREATE TABLE `typed` (`id` BIGINT UNSIGNED NOT NULL, `amount` DECIMAL(12,4), `kind` ENUM('😞','😀'),
    `flags` SET('x','y'), `raw` VARBINARY(16), `bits` BIT(64), `day` DATE, `moment` DATETIME(6), `stamp` TIMESTAMP(3),
    `doubled` BIGINT GENERATED ALWAYS AS (`id` * 2) VIRTUAL, PRIMARY KEY (`id`))"""
TYPES = {
    "id": "decimal(20,0)",
    "amount": "decimal(12,4)",
    "kind": "string",
    "flags": "string",
    "raw": "binary",
    "bits": "decimal(20,0)",
    "day": "date",
    "moment": "timestamp_ntz",
    "stamp": "timestamp",
    "_ticdc_irregular": "map<string,string>",
}
TABLES = "\n".join(
    f"CREATE TABLE shop.{name} (id BIGINT PRIMARY KEY, v VARCHAR(9));"
    for name in ("plain", "altered", "a", "b", "late", "stuck", "gone")
)
TABLES += """
CREATE TABLE shop.parted (id BIGINT PRIMARY KEY, v VARCHAR(9)) PARTITION BY RANGE (id)
    (PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN (20));
CREATE TABLE shop.hashed (id BIGINT PRIMARY KEY, v VARCHAR(9)) PARTITION BY HASH (id) PARTITIONS 4;
CREATE TABLE shop.rekeyed (id BIGINT PRIMARY KEY NONCLUSTERED, v VARCHAR(9) NOT NULL, UNIQUE KEY (v));"""


def send_everywhere(feed: Changefeed, *ddls: Ddl) -> None:
    """Write DDLs to both partitions, and again as another version of TiCDC does that takes the changefeed over."""
    for partition in (0, 1):
        feed.send(partition, *ddls)
        feed.send(partition, *(replace(each, query=f"/* again */ {each.query}") for each in ddls))


def write_all(feed: Changefeed) -> None:
    created = (
        ddl(at(1), "CREATE DATABASE `made`", "made"),
        ddl(at(2), CREATE, "made", "typed", "CREATE"),
        ddl(at(3), "CREATE TABLE `👪` (`id` BIGINT PRIMARY KEY, `👩‍👩‍👧` VARCHAR(9))", "made", "👪", "CREATE"),
        ddl(at(3), "CREATE TABLE `twin` LIKE `made`.`typed`", "made", "twin", "CREATE"),
    )
    feed.send(0, *created, *created)  # delivered twice
    feed.send(1, PLAIN.insert(at(1), 1, "a"), PLAIN.insert(at(6), 2, "b"))
    feed.send(1, ALTERED.insert(at(1), 1, "7"), ALTERED.insert(at(3), 2, "8"), ALTERED.insert(at(3), 3, None))
    add = alter(3, "altered", "ADD COLUMN `N 1` DECIMAL(9,2) NOT NULL DEFAULT _UTF8MB4'1.5' FIRST")
    send_everywhere(feed, add)
    feed.send(
        0,
        alter(4, "altered", "ADD COLUMN `w` INT DEFAULT 5, CHANGE COLUMN `v` `V` VARCHAR(9)"),
        alter(5, "altered", "MODIFY COLUMN `V` INT"),
    )
    columns = (N, ID, replace(V, name="V", type="int"), W)
    feed.send(1, Source(table="altered", columns=columns).insert(at(6), "2.50", 4, 9, None))
    feed.send(1, LEFT.insert(at(1), 1, "from a"), RIGHT.insert(at(1), 1, "from b"))
    swap = (("a", "tmp"), ("b", "a"), ("tmp", "b"))
    texts = {old: f"RENAME TABLE `shop`.`{old}` TO `shop`.`{new}`;" for old, new in swap}
    send_everywhere(feed, *(ddl(at(3), query, "shop", old, "RENAME") for old, query in texts.items()))
    feed.send(1, LEFT.insert(at(4), 2, "from b"), RIGHT.insert(at(4), 2, "from a"))
    feed.send(1, STUCK.insert(at(1), 1, "a"), STUCK.insert(at(4), 2, "b"))
    feed.send(0, alter(3, "stuck", "ADD COLUMN `made` BIGINT AS (`id` + 1) STORED"))
    feed.send(1, PARTED.insert(at(1), 1, "low"), PARTED.insert(at(1), 11, "high"), PARTED.insert(at(4), 12, "new"))
    feed.send(0, alter(3, "parted", "DROP PARTITION `low`"))
    feed.send(1, *(HASHED.insert(at(1), key, "old") for key in range(-5, 6)), HASHED.insert(at(4), 1, "new"))
    feed.send(0, alter(3, "hashed", "TRUNCATE PARTITION `p1`"))
    feed.send(1, REKEYED.insert(at(1), 1, "a"), REKEYED.insert(at(1), 2, "b"))
    feed.send(0, alter(3, "rekeyed", "DROP PRIMARY KEY"))
    feed.send(1, BY_V.update(at(4), (1, "a"), (9, "a")), BY_V.delete(at(4), 2, "b"), BY_V.insert(at(4), 1, "c"))
    feed.send(1, GONE.insert(at(1), 1, "a"), LATE.insert(at(1), 1, "a"))
    feed.send(0, ddl(at(11), "DROP TABLE `shop`.`gone`", "shop", "gone", "ERASE"))


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """Applied up to ``at(10)``, then up to ``at(12)``, on which a run had died before."""
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("ddl"), partitions=2, schema=TABLES)
    write_all(feed)
    feed.resolve(at(10))
    feed.go()
    # The watermark of a DDL's own commit_ts may be sent before the DDL.
    feed.send(0, ddl(at(10), "TRUNCATE TABLE `shop`.`late`", "shop", "late", "TRUNCATE"))
    feed.send(1, LATE.insert(at(11), 1, "anew"), PLAIN.insert(at(11), 3, "c"))
    feed.send(0, alter(11, "altered", "DROP COLUMN `w`, MODIFY COLUMN `V` VARCHAR(20)"))
    feed.send(0, alter(12, "altered", "RENAME COLUMN `N 1` TO `w`"))
    feed.send(0, ddl(at(12), "ALTER TABLE `twin` MODIFY COLUMN `stamp` TIMESTAMP(3) FIRST", "made", "twin", "ALTER"))
    feed.resolve(at(12))
    feed.load()
    feed.die_before_publishing()
    feed.apply()
    return feed


def state(feed: Changefeed, table: str, database: str = "shop") -> TableState:
    return feed.state.tables[database, table]


@pytest.mark.parametrize("table", ["typed", pytest.param("twin", id="like another table")])
def test_create_table_makes_it_empty_with_exact_types(feed: Changefeed, table: str) -> None:
    view = feed.spark.table(feed.view(table, "made"))
    assert view.count() == 0
    assert {f.name: f.dataType.simpleString() for f in view.schema} == TYPES
    assert state(feed, table, "made").stop is None


def test_tables_may_have_characters_beyond_16_bits(feed: Changefeed) -> None:
    """Such a text before CLUSTER BY is escaped; a name cannot be, so its table is not clustered."""
    for table, clustering in (("typed", ["id"]), ("👪", [])):
        live = feed.lake.table(Layer.LIVE, state(feed, table, "made").lake_name)
        assert feed.spark.sql(f"DESCRIBE DETAIL {live}").collect()[0]["clusteringColumns"] == clustering
    assert feed.spark.table(feed.view("👪", "made")).columns == ["id", "👩‍👩‍👧"]


def test_columns_are_shown_in_their_new_order(feed: Changefeed) -> None:
    """Also of a table without rows, of which nothing else changed."""
    shown = feed.spark.table(feed.view("twin", "made")).columns
    assert shown == ["stamp", *(name for name in TYPES if name != "stamp")]
    live = feed.spark.table(feed.lake.table(Layer.LIVE, state(feed, "twin", "made").lake_name)).columns
    assert [name for name in live if name in shown] == shown


def test_other_tables_of_the_feed_continue_when_one_is_blocked(feed: Changefeed) -> None:
    assert feed.state.tso == at(12)
    assert state(feed, "plain").applied_tso == at(12)
    assert feed.rows("plain") == {1: ("a",), 2: ("b",), 3: ("c",)}


def test_columns_and_stored_rows_follow_an_alter_table(feed: Changefeed) -> None:
    earlier = as_of(feed.spark, feed.name, at(10), lake=feed.lake)["shop.altered"]
    assert earlier.columns == ["N 1", "id", "V", "w", "_ticdc_irregular"]
    rows = {row["id"]: (row["N 1"], row["V"], row["w"]) for row in earlier.collect()}
    old = Decimal("1.50")
    assert rows == {1: (old, 7, 5), 2: (old, 8, 5), 3: (old, None, 5), 4: (Decimal("2.50"), 9, None)}
    now = feed.spark.table(feed.view("altered"))
    assert now.columns == ["w", "id", "V"]
    assert {row["id"]: (row["w"], row["V"]) for row in now.collect()} == {
        1: (old, "7"),
        2: (old, "8"),
        3: (old, None),
        4: (Decimal("2.50"), "9"),
    }


def test_swapped_names_take_their_rows_along(feed: Changefeed) -> None:
    assert feed.rows("a") == {1: ("from b",), 2: ("from b",)}
    assert feed.rows("b") == {1: ("from a",), 2: ("from a",)}


def test_rows_go_with_their_partition(feed: Changefeed) -> None:
    assert feed.rows("parted") == {11: ("high",), 12: ("new",)}
    assert feed.rows("hashed") == {**dict.fromkeys((-4, -3, -2, 0, 2, 3, 4), ("old",)), 1: ("new",)}


def test_stored_rows_get_the_key_that_comes_after_the_primary_key(feed: Changefeed) -> None:
    assert feed.rows("rekeyed") == {9: ("a",), 1: ("c",)}


def test_ddl_at_the_published_watermark_is_followed_by_the_next_run(feed: Changefeed) -> None:
    assert feed.rows("late") == {1: ("anew",)}
    before = as_of(feed.spark, feed.name, at(10), lake=feed.lake)
    assert [tuple(row) for row in before["shop.late"].select("id", "v").collect()] == [(1, "a")]


def test_dropped_table_stays_readable_as_of_before(feed: Changefeed) -> None:
    assert ("shop", "gone") not in feed.state.tables
    assert not feed.lake.exists(Layer.GOLD, f"{feed.name}_shop_gone")
    assert as_of(feed.spark, feed.name, at(10), lake=feed.lake)["shop.gone"].count() == 1
    with pytest.raises(KeyError):
        as_of(feed.spark, feed.name, at(12), lake=feed.lake)["shop.gone"]


@pytest.mark.long
def test_states_older_than_the_retention_are_deleted_and_refused(feed: Changefeed) -> None:
    """Last but one: it deletes what the others read. A dropped table is kept as long as it may come back."""
    feed.resolve(at(12 + 8 * 24 * 60 * 60))
    feed.go()
    config, base = replace(feed.run.gold_config, retention_days=7), feed.state.base
    done = maintain(feed.lake, config, now=datetime.now(UTC) + timedelta(days=8))
    assert done.dropped == (f"{feed.name}_shop_gone__dropped", f"{feed.name}_shop_late__dropped")
    with pytest.raises(ConfigError, match="keeps no state at or before TSO"):
        as_of(feed.spark, feed.name, at(10), lake=feed.lake)
    assert feed.rows("late") == {1: ("anew",)}
    assert rows_of(feed.lake, TABLE_STATES, feed.name).agg(F.min("number")).collect()[0][0] == base
    assert rows_of(feed.lake, WINDOWS, feed.name).agg(F.min("number")).collect()[0][0] == 1
    versions = {name: state.version for name, state in feed.state.tables.items()}
    assert versions == {name: feed.data_versions()[state.stable_id] for name, state in feed.state.tables.items()}

    longer = maintain(feed.lake, replace(config, retention_days=30))
    assert (longer.since, longer.dropped) == (done.since, ()), "what is gone stays gone"


def test_unsupported_ddl_blocks_its_table_at_the_last_correct_state(feed: Changefeed) -> None:
    stopped = state(feed, "stuck")
    assert (stopped.applied_tso, stopped.needs_override) == (at(3), True)
    assert stopped.stop is not None
    assert f"unsupported DDL at {with_time(at(3))}" in str(stopped.stop)
    assert "generated by TiDB" in str(stopped.stop)
    assert feed.rows("stuck") == {1: ("a",)}
