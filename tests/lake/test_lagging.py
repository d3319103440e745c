"""A table that is blocked while tables get other names: it, and the others, have all their rows in the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from changefeed import ID, Changefeed, Source, V, at, ddl

from ticdc_codec.event import Column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

SCHEMA = """
CREATE TABLE shop.slow (id BIGINT PRIMARY KEY, d DATE);
CREATE TABLE shop.quick (id BIGINT PRIMARY KEY, v VARCHAR(9));
"""
DAY = "2024-01-01"


@pytest.mark.long
def test_rows_under_both_names_are_applied_once_the_table_is_resumed(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    feed = Changefeed(spark, broker, tmp_path, schema=SCHEMA, described={"gold": {"on_irregular": "block"}})
    slow, slower = (Source(table=name, columns=(ID, Column(name="d", type="date"))) for name in ("slow", "slower"))
    quick, quicker = (Source(table=name, columns=(ID, V)) for name in ("quick", "quicker"))
    feed.send(0, slow.insert(at(1), 1, DAY), quick.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    feed.go()
    feed.send(0, slow.insert(at(3), 2, "0000-00-00"), slow.insert(at(4), 3, DAY))
    for source, name in ((slow, "slower"), (quick, "quicker")):
        feed.send(0, ddl(at(5), f"RENAME TABLE `{source.table}` TO `{name}`", "shop", source.table, "RENAME"))
    feed.send(0, slower.insert(at(6), 4, DAY), quicker.insert(at(6), 2, "b"))
    feed.resolve(at(7))
    assert set(feed.go().blocked) == {("shop", "slower")}
    feed.send(0, quicker.insert(at(8), 3, "c"))
    feed.resolve(at(9))
    feed.go()
    assert feed.rows("quicker") == {1: ("a",), 2: ("b",), 3: ("c",)}
    feed.described = {}
    assert feed.apply().blocked == {}
    assert sorted(feed.rows("slower")) == [1, 2, 3, 4]
