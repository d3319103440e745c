"""A time zone that Spark does not know is refused: every TIMESTAMP would be NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column
from ticdc_lakehouse.gold.time_zones import check_time_zones
from ticdc_lakehouse.planning.planning_input import GoldConfig

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

T = Source(table="t", columns=(Column(name="id", type="bigint", key=True), Column(name="at", type="timestamp")))
UNKNOWN = "ROC"
"""Python's second name of Asia/Taipei."""


@pytest.fixture
def feed(spark: SparkSession, broker: Broker, tmp_path: Path) -> Changefeed:
    return Changefeed(spark, broker, tmp_path, described={"time_zone": UNKNOWN})


@pytest.mark.long
def test_a_feed_with_a_time_zone_that_spark_does_not_know_is_refused(feed: Changefeed) -> None:
    feed.send(0, T.insert(at(1), 1, "2024-01-01 08:00:00"))
    feed.resolve(at(2))
    with pytest.raises(
        ConfigError, match=f"feed {feed.name}: time_zone: Spark's Java does not know the time zone {UNKNOWN}"
    ):
        feed.go()
    feed.described = {"time_zone": "Asia/Taipei"}
    assert feed.apply().tso == at(2)


def test_so_are_those_of_ddls_and_of_an_export(feed: Changefeed) -> None:
    known = GoldConfig(feed="f", time_zone="Asia/Kolkata", ddl_time_zone="Australia/Lord_Howe")
    check_time_zones(feed.lake, known, "America/New_York")
    with pytest.raises(ConfigError, match=f"time zone of the export: .* {UNKNOWN}"):
        check_time_zones(feed.lake, known, UNKNOWN)
    with pytest.raises(ConfigError, match=f"gold.ddl_time_zone: .* {UNKNOWN}"):
        check_time_zones(feed.lake, GoldConfig(feed="f", time_zone="UTC", ddl_time_zone=UNKNOWN))
