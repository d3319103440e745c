"""Open Protocol: keys and values together, and messages without any event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changefeed import Changefeed, Source, at

from ticdc_lakehouse.event import Column
from ticdc_lakehouse.lake.place import Layer
from ticdc_lakehouse.local.broker import KafkaMessage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_lakehouse.local.broker import Broker

T = Source(table="t", columns=(Column(name="id", type="bigint", key=True), Column(name="v", type="varchar")))


def test_every_message_is_counted(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake", protocol="open-protocol")
    feed.send(0, T.insert(at(1), 1, "a"), T.insert(at(1), 2, "b"))
    feed.produce([KafkaMessage(partition=0, key=bytes(7) + b"\x01", value=b"")])
    feed.send(0, T.update(at(2), (1, "a"), (1, "c")), T.delete(at(2), 2, "b"))
    feed.resolve(at(3))
    assert feed.go().tso == at(3)
    assert spark.table(feed.lake.table(Layer.GOLD, f"{feed.name}_shop_t")).collect() == [(1, "c")]
    accounting = spark.table(feed.lake.table(Layer.SILVER, f"{feed.name}_accounting"))
    assert accounting.selectExpr("sum(messages)", "sum(decoded)", "sum(waiting)").collect() == [(6, 6, 0)]
