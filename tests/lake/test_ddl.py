"""DDL, as far as this version follows it: what it cannot follow stops its tables and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_lakehouse.lake.state import TableState
    from ticdc_lakehouse.local.broker import Broker

PLAIN, ALTERED, BEFORE, AFTER, LATE = (Source(table=name) for name in ("plain", "altered", "a", "b", "late"))
DROPPED, REMADE = Source(database="old", table="t"), Source(database="old", table="u")
CREATE = """CREATE TABLE `typed` (`id` BIGINT UNSIGNED NOT NULL, `amount` DECIMAL(12,4), `kind` ENUM('a','b'),
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


def write_all(feed: Changefeed) -> None:
    created = (
        ddl(at(1), "CREATE DATABASE `made`", "made"),
        ddl(at(2), CREATE, "made", "typed", "CREATE"),
        ddl(at(3), "CREATE TABLE `twin` LIKE `made`.`typed`", "made", "twin", "CREATE"),
    )
    feed.send(0, *created, *created)  # delivered twice
    feed.send(1, PLAIN.insert(at(1), 1, "a"), PLAIN.insert(at(6), 2, "b"))
    feed.send(1, ALTERED.insert(at(1), 1, "a"), ALTERED.insert(at(3), 2, "b"), ALTERED.insert(at(4), 3, "c"))
    feed.send(0, ddl(at(3), "ALTER TABLE `altered` ADD COLUMN `w` INT", "shop", "altered", "ALTER"))
    feed.send(1, BEFORE.insert(at(1), 1, "a"), AFTER.insert(at(4), 2, "b"))
    feed.send(0, ddl(at(3), "RENAME TABLE `shop`.`a` TO `shop`.`b`", "shop", "a", "RENAME"))
    feed.send(1, DROPPED.insert(at(1), 1, "a"), REMADE.insert(at(5), 1, "new"))
    feed.send(0, ddl(at(3), "DROP DATABASE `old`", "old"), ddl(at(4), "CREATE DATABASE `old`", "old"))
    query = "CREATE TABLE `u` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))"
    feed.send(0, ddl(at(4), query, "old", "u", "CREATE"))
    feed.send(1, LATE.insert(at(10), 1, "a"))


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """Applied up to ``at(10)``, then up to ``at(12)``."""
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("ddl"), partitions=2)
    write_all(feed)
    feed.resolve(at(10))
    feed.go()
    # The watermark of a DDL's own commit_ts may be sent before the DDL.
    feed.send(0, ddl(at(10), "TRUNCATE TABLE `late`", "shop", "late", "TRUNCATE"))
    feed.send(1, LATE.insert(at(11), 1, "not to be seen"), PLAIN.insert(at(11), 3, "c"))
    feed.resolve(at(12))
    feed.go()
    return feed


def state(feed: Changefeed, table: str, database: str = "shop") -> TableState:
    return feed.state.tables[database, table]


@pytest.mark.parametrize("table", ["typed", "twin"])
def test_create_table_makes_it_empty_with_exact_types(feed: Changefeed, table: str) -> None:
    view = feed.spark.table(feed.view(table, "made"))
    assert view.count() == 0
    assert {f.name: f.dataType.simpleString() for f in view.schema} == TYPES
    assert state(feed, table, "made").reason is None


def test_other_tables_go_on(feed: Changefeed) -> None:
    assert feed.state.tso == at(12)
    assert state(feed, "plain").applied_tso == at(12)
    assert feed.rows("plain") == {1: ("a",), 2: ("b",), 3: ("c",)}


@pytest.mark.parametrize(
    ("database", "table", "stop", "statement"),
    [
        ("shop", "altered", at(3), "ALTER TABLE"),
        ("shop", "a", at(3), "RENAME TABLE"),
        ("shop", "b", at(3), "RENAME TABLE"),
        ("old", "t", at(3), "DROP DATABASE"),
        ("shop", "late", at(10), "TRUNCATE TABLE"),
    ],
)
def test_stops_at_the_ddl_and_says_so(feed: Changefeed, database: str, table: str, stop: int, statement: str) -> None:
    stopped = state(feed, table, database)
    assert (stopped.applied_tso, stopped.final) == (stop, True)
    assert stopped.reason is not None
    assert f"DDL at {stop}" in stopped.reason
    assert statement in stopped.reason


def test_rows_up_to_the_ddl_are_in_and_none_after(feed: Changefeed) -> None:
    assert feed.rows("altered") == {1: ("a",), 2: ("b",)}
    assert feed.rows("a") == {1: ("a",)}
    assert feed.rows("t", "old") == {1: ("a",)}
    assert feed.rows("late") == {1: ("a",)}


def test_database_made_again_is_not_stopped(feed: Changefeed) -> None:
    assert state(feed, "u", "old").reason is None
    assert feed.rows("u", "old") == {1: ("new",)}
