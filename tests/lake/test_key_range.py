"""How often a MERGE asks Delta for the files of its live table, and what it does with changes outside its range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, lake_in
from pyspark.errors import AnalysisException

from ticdc_codec.event import Column
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold import merge
from ticdc_lakehouse.gold.key_range import KeyRange, key_range, remember_new
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.window import RowGroup
from ticdc_lakehouse.schema.script import tables_from_sql

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

(TABLE,) = tables_from_sql("CREATE TABLE shop.t (id BIGINT PRIMARY KEY)")


def changes(number: int) -> MergeRows:
    columns = (Column(name="id", type="bigint", key=True),)
    group = RowGroup(
        name=TABLE.name, columns=columns, is_upsert=True, handle_only=False, keyed=True, first=1, last=1, rows=number
    )
    return MergeRows(table=TABLE, after=0, through=1, groups=(group,))


def test_a_table_that_this_process_made_of_few_rows_is_not_asked_for_its_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Asking would fail: there is no such table."""
    lake = lake_in(spark, tmp_path, "key_range")
    remember_new(lake, "small", changes(1000))
    for _ in range(3):
        assert key_range(lake, "small", changes(1), "none") == KeyRange()
    with pytest.raises(AnalysisException, match="small"):
        key_range(lake, "small", changes(1), "none")
    remember_new(lake, "large", changes(1_000_000))
    with pytest.raises(AnalysisException, match="large"):
        key_range(lake, "large", changes(1), "none")


def test_a_change_that_silver_got_after_the_range_was_found_makes_no_second_row(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a message that was replayed meanwhile: its stored row may be outside, and is not found."""
    orders = Source(table="orders")
    feed = Changefeed(spark, broker, tmp_path)
    feed.send(0, *(orders.insert(at(1), number, "old") for number in (1, 2, 3)))
    feed.resolve(at(2))
    feed.go()
    feed.send(
        0, *(orders.update(at(3), (number, "old"), (number, "new")) for number in (2, 3)), orders.insert(at(3), 9, "x")
    )
    feed.resolve(at(4))
    feed.load()
    within = "BETWEEN 2 AND 2"
    found = KeyRange(f"AND t.id {within}", f"AND try_cast(get_json_object(s._ticdc_key, '$[0]') AS BIGINT) {within}")
    monkeypatch.setattr(merge, "key_range", lambda *_: found)
    feed.apply()
    rows = feed.lake.spark.table(feed.lake.table(Layer.GOLD, f"{feed.name}_shop_orders")).select("id", "v").collect()
    assert sorted(map(tuple, rows)) == [(1, "old"), (2, "new"), (3, "old")]
