"""`live.table_properties` of the feed file: on new live tables, through DDL, and on existing ones by maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, ddl
from pyspark.errors import PySparkException

from ticdc_lakehouse.catalog import Layer

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

ORDERS, NOTES = Source(table="orders"), Source(table="notes")
INTERVAL, COMPACT, TEAM = "delta.checkpointInterval", "delta.autoOptimize.autoCompact", "team.owner"
ICEBERG = "delta.enableIcebergCompatV3"
"""It brings row tracking with it, whose columns Delta names anew when a table is replaced."""


def described(tables: dict[str, object], **properties: object) -> dict[str, object]:
    own = {pattern: {"table_properties": given} for pattern, given in tables.items()}
    return {"live": {"table_properties": properties, "tables": own}}


def properties(feed: Changefeed, table: str) -> dict[str, str]:
    shown = feed.spark.sql(f"SHOW TBLPROPERTIES {feed.live(table)}").collect()
    return {row["key"]: row["value"] for row in shown if row["key"] in (INTERVAL, COMPACT, TEAM)}


@pytest.mark.long
def test_properties_are_set_kept_and_changed(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake")
    feed.described = described(
        {"shop.notes": {TEAM: "it's", ICEBERG: True}, "shop.orders": {INTERVAL: 30}}, **{INTERVAL: 20}
    )
    feed.send(0, ORDERS.insert(at(1), 1, "a"), NOTES.insert(at(1), 1, "b"))
    feed.resolve(at(2))
    feed.go()
    assert properties(feed, "orders") == {INTERVAL: "30"}
    assert properties(feed, "notes") == {INTERVAL: "20", TEAM: "it's"}

    replaced = "ALTER TABLE shop.notes ADD COLUMN w INT, DROP COLUMN v"
    feed.send(0, ddl(at(3), replaced, "shop", "notes", "ALTER"))
    feed.resolve(at(4))
    feed.described = described({}, **{COMPACT: False, INTERVAL: 40})
    feed.go()
    assert feed.rows("notes") == {1: (None,)}
    assert properties(feed, "notes") == {INTERVAL: "20", TEAM: "it's"}, "an existing table waits for maintenance"
    assert feed.lake.property(Layer.LIVE, feed.shown_name("notes"), ICEBERG) == "true"
    feed.run.maintain()
    assert properties(feed, "orders") == {INTERVAL: "40", COMPACT: "false"}
    assert properties(feed, "notes") == {INTERVAL: "40", COMPACT: "false", TEAM: "it's"}
    assert feed.rows("orders") == {1: ("a",)}
    assert feed.lake.tables(Layer.LIVE) == sorted(state.lake_name for state in feed.state.tables.values())


@pytest.mark.long
def test_a_property_that_delta_does_not_know_is_named(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake", described=described({}, **{"delta.noSuch": 1}))
    feed.send(0, ORDERS.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    with pytest.raises(PySparkException, match=r"delta\.noSuch"):
        feed.go()
    feed.described = {}
    assert feed.apply().tso == at(2)
