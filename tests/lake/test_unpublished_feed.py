"""A feed of which messages landed and nothing was ever published: whoever looks is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from alerts import alert_value
from changefeed import Changefeed, Source, at
from pyspark.errors import AnalysisException

from ticdc_codec.errors import AttentionError, ConfigError
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.bronze.landing import offsets_table
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.ops.status import Health
from ticdc_lakehouse.silver.events_table import table_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

ORDERS = Source(table="orders")


def feeds(lake: Lake) -> dict[str, Any]:
    """The rows of ops.feeds by feed."""
    return {row["feed"]: row for row in lake.spark.table(lake.table(Layer.OPS, "feeds")).collect()}


def hours_without_window(lake: Lake, *carried: str) -> int:
    """What the alert *feed publishes nothing* finds, in whole hours, where a deployment carries these feeds."""
    return int(alert_value(lake, "ticdc_no_watermark", *carried)) // 60


@pytest.mark.long
def test_maintenance_passes_over_layers_that_never_ran(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    kept = {layer: {"retention_days": 7} for layer in ("bronze", "silver")}
    feed = Changefeed(spark, broker, tmp_path / "lake", described=kept, is_new_lake=True)
    assert feed.run.maintain().compacted == 0
    feed.send(0, ORDERS.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    feed.run.bronze()
    assert feed.run.maintain().compacted == 0
    assert feed.go().tso == at(2)


@pytest.mark.long
def test_feed_that_landed_and_never_published_is_shown_from_its_first_run_on(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    silent = Changefeed(spark, broker, tmp_path / "lake", is_new_lake=True)
    lake = silent.lake
    silent.send(0, ORDERS.insert(at(1), 1, "a"))
    silent.run.bronze()
    offsets = lake.table(Layer.BRONZE, offsets_table(silent.name))
    spark.sql(f"UPDATE {offsets} SET ingest_time = ingest_time - INTERVAL 2 HOURS")
    shown = feeds(lake)[silent.name]
    assert [shown[name] for name in ("tso", "published_at", "unapplied_seconds", "age_seconds")] == [None] * 4
    assert hours_without_window(lake, silent.name) == 2
    assert silent.status.health() is Health.ATTENTION
    assert silent.status.concerns() == ["nothing was ever published, though 1 message has landed"]

    silent.run.silver()
    silent.apply()
    with pytest.raises(AttentionError, match=f"feed {silent.name} needs attention: nothing was ever published"):
        silent.run.alarm()

    other = Changefeed(spark, broker, tmp_path / "other")
    other.resolve(at(2))
    run = replace(other.run, lake=lake)
    run.bronze()
    run.silver()
    run.gold()
    assert {name: row["tso"] for name, row in feeds(lake).items()} == {silent.name: None, other.name: at(2)}
    assert hours_without_window(lake, silent.name, other.name) == 2
    assert hours_without_window(lake, other.name) == 0, "a feed that was given up sets off nothing"
    assert hours_without_window(lake, other.name, "never_begun") == 1_000_000 // 60


def test_a_layer_that_runs_too_early_names_the_one_that_has_not_run(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake")
    with pytest.raises(ConfigError, match=f"feed {feed.name}: bronze has not run for this feed: run it first"):
        feed.run.silver()
    with pytest.raises(ConfigError, match=f"feed {feed.name}: silver has not run for this feed: run it first"):
        feed.run.gold()


def test_a_feed_whose_first_run_of_bronze_fails_is_shown(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake")
    feed.send(0, ORDERS.insert(at(1), 1, "a"))

    def fail(*_: object, **__: object) -> None:
        raise ConfigError("brokers do not answer")

    with monkeypatch.context() as patch:
        patch.setattr(landing, "_land", fail)
        with pytest.raises(ConfigError, match="brokers do not answer"):
            feed.run.bronze()
    assert feeds(feed.lake)[feed.name]["landed_at"] is None
    feed.run.bronze()
    assert feeds(feed.lake)[feed.name]["landed_at"] is not None


@pytest.mark.long
def test_maintenance_renews_the_views_over_all_feeds_only_after_the_tables_of_one_were_dropped(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed, feed = Changefeed(spark, broker, tmp_path / "removed"), Changefeed(spark, broker, tmp_path / "lake")
    lake = feed.lake
    for each in (removed, feed):
        each.resolve(at(1))
        run = replace(each.run, lake=lake)
        run.bronze()
        run.silver()
        run.gold()
    shown = ("feeds", "quarantine", "changes", "accounting")
    with monkeypatch.context() as patch:
        patch.setattr(Lake, "replace_view", None)  # a replaced view loses its privileges
        run.maintain()
    for layer, name in ((Layer.BRONZE, offsets_table(removed.name)), (Layer.SILVER, table_name(removed.name))):
        lake.drop(layer, name)
    for name in shown:
        with pytest.raises(AnalysisException):
            spark.table(lake.table(Layer.OPS, name)).collect()
    feed.run.maintain()
    for name in shown:
        spark.table(lake.table(Layer.OPS, name)).collect()
    [accounted] = spark.table(lake.table(Layer.OPS, "accounting")).collect()
    assert accounted["feed"] == feed.name
    assert feeds(lake)[removed.name]["landed_at"] is None, "what it published stays"
