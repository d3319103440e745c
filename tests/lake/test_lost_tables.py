"""A feed that gold has published, and whose tables of bronze or silver are lost: no command hides that."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at
from dumpling_export import write_metadata, write_table

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.silver import decode_stream, events_table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

ORDERS = Source(table="orders")
CREATE = "CREATE TABLE `orders` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))"


def test_no_command_makes_lost_tables_anew(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake", is_new_lake=True)
    feed.send(0, ORDERS.insert(at(1), 1, "a"), ORDERS.insert(at(3), 2, "later"))
    feed.resolve(at(4))
    feed.go()
    export = tmp_path / "export"
    write_metadata(export, at(2))
    write_table(export, "shop.orders", CREATE, ("id", "v"), [[1, "a"]])

    feed.lake.drop(Layer.SILVER, events_table.table_name(feed.name))
    with pytest.raises(ConfigError, match="silver has not run for this feed: run it first"):
        feed.run.load(str(export))
    for act in (feed.run.silver, lambda: feed.run.replay(["all"]), lambda: feed.run.dismiss(["all"], "not needed")):
        with pytest.raises(ConfigError, match=r"silver's events are lost, and its checkpoint .* delete that folder"):
            act()
    shutil.rmtree(decode_stream.stream(feed.lake, feed.name))
    feed.run.silver()
    feed.run.gold()
    feed.run.load(str(export))
    assert set(feed.rows("orders")) == {1, 2}, "not as of the export"
    for name in (landing.messages_table(feed.name), landing.offsets_table(feed.name)):
        feed.lake.drop(Layer.BRONZE, name)
    for act in (
        lambda: feed.run.replay(["all"]),
        lambda: feed.run.dismiss(["all"], "not needed"),
        feed.run.bronze,
    ):
        with pytest.raises(ConfigError, match="gold has published it, and bronze has none of its tables"):
            act()
    assert not feed.lake.exists(Layer.BRONZE, landing.messages_table(feed.name))
