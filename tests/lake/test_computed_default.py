"""ADD COLUMN … DEFAULT CURRENT_TIMESTAMP: the value of old rows is pending until a change of one of them shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import ID, Changefeed, Source, at, ddl

from ticdc_codec.event import Column, Ddl
from ticdc_lakehouse import as_of
from ticdc_lakehouse.catalog import Layer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

pytestmark = pytest.mark.long

NAMES = ("learned", "estimated", "moved", "quiet", "busy")
SCHEMA = "".join(f"CREATE TABLE shop.{name} (id BIGINT PRIMARY KEY, first VARCHAR(9));" for name in (*NAMES, "fresh"))
FIRST = Column(name="first", type="varchar")
"""Called as a column of the query that looks for the values."""
MADE = Column(name="made", type="datetime(3)")
VALUE, OWN, OTHER = "2023-11-14 22:13:21.958", "2023-11-14 22:13:23.000", "2023-11-14 22:13:24.000"
"""The value of rows from before the ADD COLUMN: of some ms before its commit; and those of rows written since."""

EARLY = {
    "quiet": (at(1) - (500 << 18), "2023-11-14 22:13:20.490"),
    "busy": (at(2) - (5 << 18), "2001-01-01 00:00:00.000"),
}
"""A row that another session writes when the column is there and its DDL is not committed, and that row's own value: of
a DDL that waits, and just before one."""


def added(commit_ts: int, name: str, column: str = "made") -> Ddl:
    query = f"ALTER TABLE `shop`.`{name}` ADD COLUMN `{column}` DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)"
    return ddl(commit_ts, query, "shop", name, "ALTER")


def old(name: str) -> Source:
    return Source(table=name, columns=(ID, FIRST))


def new(name: str, column: str = "made") -> Source:
    return Source(table=name, columns=(ID, FIRST, Column(name=column, type=MADE.type)))


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """Published twice: just after the ADD COLUMN, and when old rows were changed."""
    gold = {"tables": {"shop.estimated": {"on_computed_default": "estimate"}}}
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("default"), schema=SCHEMA, described={"gold": gold})
    for name in NAMES:
        feed.send(0, *(old(name).insert(at(1), key, "a") for key in (1, 2, 3)))
        feed.send(0, *([old(name).insert(EARLY[name][0], 6, "early")] if name in EARLY else []))
        feed.send(0, added(at(2), name), new(name).insert(at(3), 4, "own", OWN))
    feed.send(0, added(at(2), "fresh"), new("fresh").insert(at(3), 4, "own", OWN))
    feed.resolve(at(4))
    feed.go()
    feed.send(0, new("learned").update(at(5), (4, "own", OWN), (4, "own", OTHER)))
    feed.send(0, new("learned").update(at(5), (2, "a", VALUE), (2, "b", OTHER)))
    feed.send(0, new("learned").update(at(6), (2, "b", OTHER), (2, "c", OTHER)))
    feed.send(0, new("estimated").delete(at(5), 2, "a", VALUE), new("estimated").insert(at(6), 2, "again", OTHER))
    feed.send(
        0, new("quiet").update(at(5), (4, "own", OWN), (4, "other", OTHER)), new("quiet").insert(at(5), 5, "b", OTHER)
    )
    for name, (_, own) in EARLY.items():
        feed.send(0, new(name).update(at(5), (6, "early", own), (6, "other", own)))
    query = "ALTER TABLE `shop`.`moved` RENAME COLUMN `made` TO `since`"
    feed.send(0, ddl(at(5), query, "shop", "moved", "ALTER"))
    feed.send(0, new("moved", "since").update(at(6), (2, "a", VALUE), (2, "b", VALUE)))
    query = "ALTER TABLE `shop`.`moved` ADD COLUMN `more` INT DEFAULT 1"
    feed.send(0, ddl(at(7), query, "shop", "moved", "ALTER"))
    feed.load()
    assert pending(feed) == {name: ["made"] for name in NAMES}
    feed.resolve(at(8))
    feed.load()
    feed.die_before_publishing()
    feed.apply()
    return feed


def texts(feed: Changefeed, table: str, tso: int | None = None) -> dict[int, str | None]:
    """Key to the text of the column of time."""
    frame = (
        as_of(feed.spark, feed.name, tso, lake=feed.lake)[f"shop.{table}"]
        if tso
        else feed.spark.table(feed.view(table))
    )
    return {row[0]: None if row[2] is None else str(row[2])[:23] for row in frame.collect()}


def pending(feed: Changefeed) -> dict[str, list[str]]:
    """What ``status`` says, which is what ``ops.tables`` says."""
    rows = feed.spark.table(feed.lake.table(Layer.OPS, "tables")).where("pending_columns IS NOT NULL").collect()
    found = {row["table"]: row["pending_columns"] for row in rows}
    assert {table: [*columns] for (_, table), columns in feed.status.pending.items()} == found
    return found


def comment(feed: Changefeed, table: str) -> str:
    fields = feed.spark.table(feed.view(table)).schema
    return str(fields[2].metadata["comment"])


def test_first_change_of_an_old_row_shows_the_value_of_all(feed: Changefeed) -> None:
    assert texts(feed, "learned") == {1: VALUE, 2: OTHER[:19], 3: VALUE, 4: OTHER[:19]}
    assert "pending" not in comment(feed, "learned")


def test_learned_value_replaces_the_estimate(feed: Changefeed) -> None:
    assert texts(feed, "estimated") == {1: VALUE, 2: OTHER[:19], 3: VALUE, 4: OWN[:19]}
    assert texts(feed, "estimated", at(4)) == {**dict.fromkeys((1, 2, 3), "2023-11-14 22:13:22"), 4: OWN[:19]}


def test_value_is_learned_between_ddls_of_its_table(feed: Changefeed) -> None:
    assert texts(feed, "moved") == {1: VALUE, 2: VALUE, 3: VALUE, 4: OWN[:19]}
    assert feed.spark.table(feed.view("moved")).columns[2:4] == ["since", "more"]


def test_rows_that_were_written_since_or_just_before_show_nothing(feed: Changefeed) -> None:
    assert texts(feed, "quiet") == {1: None, 2: None, 3: None, 4: OTHER[:19], 5: OTHER[:19], 6: EARLY["quiet"][1]}
    assert f"pending: NULL in rows not written since TSO {at(2)}" in comment(feed, "quiet")
    assert texts(feed, "busy") == {1: None, 2: None, 3: None, 4: OWN[:19], 6: EARLY["busy"][1][:19]}
    assert pending(feed) == {"quiet": ["made"], "busy": ["made"]}


def test_as_of_reads_an_earlier_state_as_it_was_published(feed: Changefeed) -> None:
    assert texts(feed, "learned", at(4)) == {1: None, 2: None, 3: None, 4: OWN[:19]}
    view = as_of(feed.spark, feed.name, at(4), lake=feed.lake)["shop.learned"]
    assert "pending" in view.schema["made"].metadata["comment"]


def test_a_delete_shows_the_value_too(feed: Changefeed) -> None:
    feed.send(0, new("quiet").delete(at(9), 1, "a", VALUE))
    feed.resolve(at(10))
    feed.go()
    assert texts(feed, "quiet") == {2: VALUE, 3: VALUE, 4: OTHER[:19], 5: OTHER[:19], 6: EARLY["quiet"][1]}
    assert pending(feed) == {"busy": ["made"]}


def test_one_commit_fills_all_old_rows(feed: Changefeed) -> None:
    """One commit fills all old rows."""
    history = feed.spark.sql(f"DESCRIBE HISTORY {feed.live('quiet')}").collect()
    assert [row["operation"] for row in reversed(history)][-3:] == ["MERGE", "REPLACE TABLE AS SELECT", "MERGE"]


def test_column_of_a_table_without_old_rows_is_not_pending(feed: Changefeed) -> None:
    """Before the table is made; when it has no row any more; and once the last old row is gone."""
    assert "pending" not in comment(feed, "fresh")
    feed.send(0, new("fresh").delete(at(11), 4, "own", OWN), added(at(12), "fresh", "since"))
    feed.send(0, *(new("busy").delete(at(11), key, "a", None) for key in (1, 2, 3)))
    feed.resolve(at(13))
    feed.go()
    assert pending(feed) == {"busy": ["made"]}
    feed.send(0, new("busy").update(at(14), (4, "own", OWN), (4, "own", OTHER)))
    feed.resolve(at(15))
    feed.go()
    assert pending(feed) == {}
    assert "pending" not in comment(feed, "busy") + comment(feed, "fresh")
    assert texts(feed, "busy") == {4: OTHER[:19], 6: EARLY["busy"][1][:19]}
