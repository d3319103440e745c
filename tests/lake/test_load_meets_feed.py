"""Case 18: an export of TSO S, and what the feed sent before, at and after S."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, ddl
from dumpling_export import write_metadata, write_table

from ticdc_codec.errors import PublishedMeanwhileError
from ticdc_lakehouse.gold import windows
from ticdc_lakehouse.ops import load

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_lakehouse.planning.published_state import Definition
    from ticdc_local.broker import Broker

ORDERS = Source(table="orders")
CREATE = "CREATE TABLE `orders` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))"
S = at(10)


def test_rows_of_an_export_and_later_changes_make_the_table(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake")
    feed.send(0, ORDERS.insert(at(9), 1, "before"), ORDERS.insert(at(9), 2, "gone by S"))
    feed.send(0, ORDERS.update(S, (1, "before"), (1, "at S")))
    feed.send(0, ORDERS.update(at(11), (3, "of S"), (3, "later")), ORDERS.delete(at(12), 4, "of S"))
    feed.resolve(at(20))
    feed.go()
    write_metadata(tmp_path / "export", S)
    of_s = ((1, "at S"), (3, "of S"), (4, "of S"), (5, None))
    write_table(tmp_path / "export", "shop.orders", CREATE, ("id", "v"), of_s)
    assert feed.run.load(str(tmp_path / "export")).tso == S
    assert feed.rows("orders") == {1: ("at S",), 3: ("later",), 5: (None,)}


@pytest.mark.long
def test_a_load_fails_if_another_run_publishes_while_it_writes(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Databricks, where no lock keeps two runs apart: the cut-over of a schema change may rename the table."""
    feed = Changefeed(spark, broker, tmp_path / "lake")
    feed.send(0, ORDERS.insert(at(9), 1, "before"))
    feed.resolve(at(20))
    feed.go()
    write_metadata(tmp_path / "export", S)
    write_table(tmp_path / "export", "shop.orders", CREATE, ("id", "v"), ((1, "at S"),))
    write_rows = load.ExportLoader.write_rows

    def write_while_gold_publishes(loader: load.ExportLoader, definition: Definition) -> int:
        windows.apply(loader.lake, loader.config)
        return write_rows(loader, definition)

    monkeypatch.setattr(load.ExportLoader, "write_rows", write_while_gold_publishes)
    feed.send(0, ddl(at(21), "RENAME TABLE `shop`.`orders` TO `shop`.`orders_old`", "shop", "orders_old"))
    feed.resolve(at(30))
    feed.run.bronze()
    feed.run.silver()
    with pytest.raises(PublishedMeanwhileError, match="another run published window 2 meanwhile"):
        feed.run.load(str(tmp_path / "export"))
    assert feed.rows("orders_old") == {1: ("before",)}
