"""Views after what they do not see in a window: a RENAME of a blocked table, another policy in the feed's file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changefeed import ID, Changefeed, Source, V, at, ddl

from ticdc_codec.event import Column
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold import views

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

T, U = Source(table="t"), Source(table="u")
DATED = Source(table="t", columns=(ID, V, Column(name="d", type="date")))
NEW = Source(table="new", columns=DATED.columns)
BLOCKING = "ALTER TABLE t ADD w BIGINT AS (id + 1) STORED"


def silver(feed: Changefeed, table: str) -> list[tuple[object, ...]]:
    view = feed.lake.table(Layer.SILVER, feed.shown_name(table))
    return [*map(tuple, feed.spark.sql(f"SELECT id, v FROM {view} ORDER BY id").collect())]


def irregular(feed: Changefeed) -> list[tuple[object, ...]]:
    return [*map(tuple, feed.spark.table(feed.lake.table(Layer.OPS, f"{feed.name}_irregular")).collect())]


def test_views_of_a_table_renamed_while_blocked_show_its_own_rows(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Also where a new session makes them again: another table has its earlier name."""
    feed = Changefeed(spark, broker, tmp_path, schema="CREATE TABLE shop.t (id BIGINT PRIMARY KEY, v VARCHAR(9));")
    feed.send(0, T.insert(at(1), 1, "of t"), U.insert(at(1), 1, "of u"))
    feed.resolve(at(2))
    feed.go()
    feed.send(0, ddl(at(3), BLOCKING, "shop", "t", "ALTER"))
    feed.send(0, ddl(at(4), "RENAME TABLE shop.t TO shop.n", "shop", "t", "RENAME"))
    feed.send(0, ddl(at(5), "RENAME TABLE shop.u TO shop.t", "shop", "u", "RENAME"))
    feed.send(0, T.insert(at(6), 2, "was u"))
    feed.resolve(at(7))
    feed.go()
    for _ in range(2):
        assert (feed.rows("n"), silver(feed, "n")) == ({1: ("of t",)}, [])
        assert feed.rows("t") == {1: ("of u",), 2: ("was u",)}
        views.refresh(feed.lake, feed.run.gold_config)


def test_another_policy_of_irregular_dates_renews_the_views(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    schema = "CREATE TABLE shop.t (id BIGINT PRIMARY KEY, v VARCHAR(9), d DATE);"
    feed = Changefeed(spark, broker, tmp_path, schema=schema)
    feed.send(0, DATED.insert(at(1), 1, "a", "0000-00-00"))
    feed.resolve(at(2))
    feed.go()
    assert feed.rows("t") == {1: ("a", None, {"d": "0000-00-00"})}
    assert irregular(feed) == [("shop", "t", "d", 1)]

    feed.described = {"gold": {"on_irregular": "text"}}
    feed.apply()
    assert feed.rows("t") == {1: ("a", "0000-00-00")}
    assert irregular(feed) == []

    feed.described = {}
    feed.send(0, NEW.insert(at(3), 1, "b", "2024-05-00"))
    feed.resolve(at(4))
    feed.go()
    assert feed.rows("t") == {1: ("a", None, {"d": "0000-00-00"})}
    assert sorted(irregular(feed)) == [("shop", "new", "d", 1), ("shop", "t", "d", 1)]
