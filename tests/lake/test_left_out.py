"""What accounting says of a table that the feed file leaves out after gold had it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, ddl
from test_order import counted_fates

from ticdc_lakehouse.gold.state import forget_states

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

KEPT, GONE = Source(table="kept"), Source(table="gone")
CREATE = "CREATE TABLE `shop`.`gone` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))"
SCHEMA = f"{CREATE};\n{CREATE.replace('gone', 'kept')};"


def fates(feed: Changefeed) -> tuple[int, int, int]:
    counted = counted_fates(feed)
    return counted["applied"], counted["filtered"], counted["waiting"]


def test_its_row_changes_are_filtered_from_the_window_on_in_which_it_goes(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Changefeed(spark, broker, tmp_path, schema=SCHEMA)
    feed.send(0, KEPT.insert(at(1), 1, "a"), GONE.insert(at(1), 1, "a"), GONE.insert(at(2), 2, "b"))
    feed.resolve(at(3))
    feed.go()
    assert fates(feed) == (3, 0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(feed, "described", {"tables": {"exclude": ["shop.gone"]}})
        feed.send(0, KEPT.insert(at(4), 2, "b"), GONE.insert(at(4), 3, "c"), GONE.update(at(5), (1, "a"), (1, "z")))
        feed.resolve(at(6))
        feed.go()
        assert fates(feed) == (4, 2, 0), "what was applied stays applied"
        feed.send(0, KEPT.insert(at(7), 3, "c"), GONE.insert(at(7), 4, "d"))
        feed.resolve(at(8))
        feed.go()
        assert fates(feed) == (5, 3, 0)
    forget_states(feed.lake, feed.name, feed.state.number)
    assert fates(feed) == (5, 3, 0), "maintenance forgets no table that was left out"
    feed.send(0, ddl(at(9), "DROP TABLE `shop`.`gone`", "shop", "gone", "ERASE"))
    feed.send(0, ddl(at(10), CREATE, "shop", "gone", "CREATE"), GONE.insert(at(11), 1, "of the new one"))
    feed.resolve(at(12))
    feed.go()
    assert feed.rows("gone") == {1: ("of the new one",)}
    assert fates(feed) == (6, 3, 0)
