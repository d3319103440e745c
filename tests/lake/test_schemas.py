"""Simple: rows find the schema that they name, whenever and wherever it comes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, ddl

from ticdc_codec.errors import SCHEMA_MISSING, ConfigError
from ticdc_codec.event import Bootstrap, Column
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.silver import external_schemas, quarantine

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_codec.event import RowChange
    from ticdc_local.broker import Broker

COLUMNS = (Column(name="id", type="bigint", key=True), Column(name="v", type="varchar(10)"))
T = Source(table="t", columns=COLUMNS)
VERSION = 7


def row(commit_ts: int, *values: object) -> RowChange:
    return replace(T.insert(commit_ts, *values), schema_version=VERSION)


def test_rows_wait_in_quarantine_for_their_schema(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake", protocol="simple", partitions=2)
    feed.send(1, row(at(1), 1, "early"))
    feed.resolve(at(2))
    feed.go()
    [waiting] = quarantine.open_messages(feed.lake, feed.name).collect()
    assert (waiting["reason"], waiting["database"], waiting["table"]) == (SCHEMA_MISSING, "shop", "t")

    feed.send(0, Bootstrap(database="shop", table="t", columns=COLUMNS, schema_version=VERSION))
    feed.send(1, row(at(3), 2, "late"))
    feed.resolve(at(4))
    assert feed.go().tso == at(4)
    assert quarantine.open_messages(feed.lake, feed.name).collect() == []
    assert spark.table(feed.lake.table(Layer.GOLD, f"{feed.name}_shop_t")).orderBy("id").collect() == [
        (1, "early"),
        (2, "late"),
    ]
    assert feed.accounted_messages == len(feed.sent)

    # A later run needs no schema of its own, and learns nothing twice. Rows that were finished late are no news when
    # they come again.
    feed.send(0, Bootstrap(database="shop", table="t", columns=COLUMNS, schema_version=VERSION))
    feed.send(1, row(at(1), 1, "early"), row(at(5), 3, "later"))
    feed.resolve(at(6))
    applied = feed.go()
    assert (applied.row_changes, applied.blocked) == (1, {})
    assert spark.table(feed.lake.table(Layer.SILVER, external_schemas.schemas_table(feed.name))).count() == 1


@pytest.mark.long
def test_newest_schema_of_a_version_holds_for_later_batches(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """As within a batch: two tables that changed their names keep their versions."""
    feed = Changefeed(spark, broker, tmp_path / "lake", protocol="simple")
    wide = (*COLUMNS, Column(name="w", type="int"))
    for number, columns in enumerate((COLUMNS, wide), start=1):
        feed.send(0, Bootstrap(database="shop", table="t", columns=columns, schema_version=VERSION))
        feed.resolve(at(number))
        feed.go()
    feed.send(0, replace(Source(table="t", columns=wide).insert(at(3), 1, "a", 5), schema_version=VERSION))
    feed.resolve(at(4))
    assert feed.go().blocked == {}
    assert feed.rows("t") == {1: ("a", 5)}


def test_default_of_a_ddl_gives_old_rows_their_value(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """A TIMESTAMP's is in UTC, whatever the session's zone. It is no part of the schema that rows name."""
    feed = Changefeed(
        spark,
        broker,
        tmp_path / "lake",
        protocol="simple",
        schema="CREATE TABLE shop.t (id BIGINT PRIMARY KEY, v VARCHAR(10));",
        described={"gold": {"on_computed_default": "block"}},
    )
    wide = (*COLUMNS, Column(name="at", type="timestamp(3)"))
    schemas = [Bootstrap(database="shop", table="t", columns=c, schema_version=v) for v, c in ((7, COLUMNS), (8, wide))]
    query = "ALTER TABLE `shop`.`t` ADD COLUMN `at` TIMESTAMP(3) DEFAULT _UTF8MB4'2020-01-01 00:00:00.5'"
    sent = (*COLUMNS, replace(wide[-1], default="2019-12-31 16:00:00.500"))
    added = replace(ddl(at(2), query, "shop", "t", "ALTER"), columns=sent, schema_version=8)
    feed.send(0, schemas[0], row(at(1), 1, "old"), added)
    feed.send(0, replace(Source(table="t", columns=wide).insert(at(3), 2, "new", None), schema_version=8))
    feed.resolve(at(4))
    assert feed.go().blocked == {}
    assert {key: str(values[1]) for key, values in feed.rows("t").items()} == {
        1: "2019-12-31 16:00:00.500000",
        2: "None",
    }
    feed.send(0, schemas[1])
    feed.load()
    assert len(external_schemas.learned(feed.lake, feed.name)) == 2
    assert spark.table(feed.lake.table(Layer.SILVER, external_schemas.schemas_table(feed.name))).count() == 2


def test_silver_of_simple_is_not_continuous(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake", protocol="simple")
    with pytest.raises(ConfigError, match="runs with trigger available_now"):
        replace(feed.run, continuous=True).silver()
