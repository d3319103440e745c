"""Protocols reach gold, and every message is counted. Craft, Canal-JSON and Simple in JSON do so in other tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at

from ticdc_codec.event import Column
from ticdc_lakehouse.catalog import Layer
from ticdc_local.broker import KafkaMessage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

COLUMNS = (
    Column(name="id", type="bigint", key=True),
    Column(name="v", type="varchar"),
    Column(name="e", type="enum('new','old')", by="index"),
    Column(name="s", type="set('x','y','z')", by="index"),
)
T = Source(table="t", columns=COLUMNS)
SCHEMA = "USE shop; CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(10), e ENUM('new','old'), s SET('x','y','z'));"


@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        ("open-protocol", {}),
        pytest.param("simple", {"encoding-format": "avro"}, marks=pytest.mark.long),
        ("debezium", {"enable-tidb-extension": True, "debezium-disable-schema": True}),
    ],
)
def test_enum_and_set_have_names_in_gold_whether_the_wire_has_names_or_numbers(
    spark: SparkSession, broker: Broker, tmp_path: Path, protocol: str, options: dict[str, object]
) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake", protocol=protocol, options=options, schema=SCHEMA)
    if protocol == "open-protocol":  # it allows a key that is nothing but a version (wire.md 1.2.1): no event
        feed.produce([KafkaMessage(partition=0, key=bytes(7) + b"\x01", value=b"")])
    feed.send(0, T.insert(at(1), 1, "a", 1, 0), T.insert(at(1), 2, "b", None, None))
    feed.send(0, T.update(at(2), (1, "a", 1, 0), (1, "c", 2, 5)), T.delete(at(2), 2, "b", None, None))
    feed.resolve(at(3))
    assert feed.go().tso == at(3)
    found = spark.table(feed.lake.table(Layer.GOLD, f"{feed.name}_shop_t")).collect()
    assert found == [(1, "c", "old", "x,z")]  # by name, whether the wire has names or numbers
    assert counted(feed) == (len(feed.sent), len(feed.sent), 0)


def counted(feed: Changefeed) -> tuple[int, int, int]:
    """Messages, decoded, waiting."""
    accounting = feed.spark.table(feed.lake.table(Layer.SILVER, f"{feed.name}_accounting"))
    messages, decoded, waiting = accounting.selectExpr("sum(messages)", "sum(decoded)", "sum(waiting)").collect()[0]
    return messages, decoded, waiting
