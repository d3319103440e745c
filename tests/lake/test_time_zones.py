"""A time zone that Spark does not know is refused: every TIMESTAMP would be NULL. So is another than before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, ddl

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
EXTENSION = {"enable-tidb-extension": True}


@pytest.fixture
def feed(spark: SparkSession, broker: Broker, tmp_path: Path) -> Changefeed:
    return Changefeed(spark, broker, tmp_path, described={"time_zone": UNKNOWN})


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["canal-json", "debezium"])
def test_a_feed_with_a_time_zone_that_spark_does_not_know_is_refused(
    spark: SparkSession, broker: Broker, tmp_path: Path, protocol: str
) -> None:
    """By gold, and by silver of a protocol that sends instants, which keeps the zone: it may be corrected."""
    feed = Changefeed(spark, broker, tmp_path, protocol=protocol, options=EXTENSION, described={"time_zone": UNKNOWN})
    feed.send(0, T.insert(at(1), 1, "2024-01-01 08:00:00"))
    feed.resolve(at(2))
    with pytest.raises(
        ConfigError, match=f"feed {feed.name}: time_zone: Spark's Java does not know the time zone {UNKNOWN}"
    ):
        feed.go()
    feed.described = {"time_zone": "Asia/Taipei"}
    assert feed.go().tso == at(2)


def test_so_are_those_of_ddls_and_of_an_export(feed: Changefeed) -> None:
    known = GoldConfig(feed="f", time_zone="Asia/Kolkata", ddl_time_zone="Australia/Lord_Howe")
    check_time_zones(feed.lake, known, "America/New_York")
    with pytest.raises(ConfigError, match=f"time zone of the export: .* {UNKNOWN}"):
        check_time_zones(feed.lake, known, UNKNOWN)
    with pytest.raises(ConfigError, match=f"gold.ddl_time_zone: .* {UNKNOWN}"):
        check_time_zones(feed.lake, GoldConfig(feed="f", time_zone="UTC", ddl_time_zone=UNKNOWN))


@pytest.mark.long
def test_a_feed_keeps_the_zone_that_it_was_read_with(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Else some rows would be read in one zone and some in the other. (The messages are written in UTC.)"""
    tokyo, wrong = {"time_zone": "Asia/Tokyo"}, {"time_zone": "UTC"}
    feed = Changefeed(spark, broker, tmp_path, protocol="debezium", options=EXTENSION, described=wrong)
    feed.load()  # nothing
    feed.described = tokyo
    feed.send(0, T.insert(at(1), 1, "2024-01-01 09:00:00"))
    feed.resolve(at(2))
    feed.load()
    feed.described = wrong
    for decode_again in (feed.load, lambda: feed.run.replay(["all"])):
        with pytest.raises(ConfigError, match=r"time_zone: the feed was read with Asia/Tokyo, .* put Asia/Tokyo back"):
            decode_again()
    feed.described = tokyo
    feed.go()
    feed.send(0, T.update(at(3), (1, "2024-01-01 09:00:00"), (1, "2024-02-01 09:00:00")))
    feed.resolve(at(4))
    feed.described = wrong
    with pytest.raises(ConfigError, match=r"time_zone: the feed was read with Asia/Tokyo, .* put Asia/Tokyo back"):
        feed.apply()
    feed.described = tokyo
    feed.go()
    rows = spark.table(feed.live("t")).selectExpr("id", "unix_seconds(at) AS at").collect()
    assert [(row["id"], row["at"]) for row in rows] == [(1, 1_706_778_000)]


@pytest.mark.long
def test_texts_in_utc_get_more_digits_before_their_z(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Debezium's TIMESTAMPs of the later hour, where clocks are turned back."""
    feed = Changefeed(
        spark,
        broker,
        tmp_path,
        protocol="debezium",
        options=EXTENSION,
        described={"time_zone": "America/New_York"},
        schema="CREATE TABLE shop.t (id BIGINT PRIMARY KEY, at TIMESTAMP);",
    )
    sent = ("2021-11-07 05:30:00", "2021-11-07 06:30:00", "1970-01-01 00:00:00")  # the last one: a zero date
    feed.send(0, *(T.insert(at(1), number, text) for number, text in enumerate(sent)))
    feed.send(0, ddl(at(2), "ALTER TABLE `shop`.`t` MODIFY `at` TIMESTAMP(3)", "shop", "t"))
    feed.resolve(at(3))
    feed.go()
    irregular = {row["id"]: row["_ticdc_irregular"] for row in spark.table(feed.live("t")).collect()}
    assert irregular == {0: None, 1: {"at": "2021-11-07T06:30:00.000Z"}, 2: {"at": "0000-00-00 00:00:00.000"}}
