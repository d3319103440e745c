"""A primary key that names its columns in another order than the table has them: its rows are found again in every
window, whatever a DDL does to the order or to the names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, ddl

from ticdc_codec.event import Column
from ticdc_lakehouse.gold import key_range

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

SCHEMA = "CREATE TABLE shop.t (a INT, b INT, v VARCHAR(9), PRIMARY KEY (b, a));"
A, B = (Column(name=name, type="int", key=True) for name in "ab")
V = Column(name="v", type="varchar")
T = Source(table="t", columns=(A, B, V))
MOVED = replace(T, columns=(B, A, V))
RENAMED = replace(T, columns=(B, replace(A, name="z"), V))


@pytest.mark.long
@pytest.mark.parametrize(
    "fewest_files", [pytest.param(0, id="range of keys"), pytest.param(key_range.FEWEST_FILES, id="whole")]
)
def test_updates_and_deletes_find_rows_by_every_composite_key(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fewest_files: int
) -> None:
    monkeypatch.setattr(key_range, "FEWEST_FILES", fewest_files)
    feed = Changefeed(spark, broker, tmp_path, schema=SCHEMA)

    def window(second: int, *events: object) -> list[tuple[object, ...]]:
        feed.send(0, *events)  # type: ignore[arg-type]
        feed.resolve(at(second))
        feed.go()
        assert feed.status.blocked == {}
        return sorted(tuple(row) for row in spark.table(feed.view("t")).collect())

    rows = window(2, T.insert(at(1), 1, 100, "x"), T.insert(at(1), 2, 50, "y"), T.insert(at(1), 3, 1, "z"))
    assert rows == [(1, 100, "x"), (2, 50, "y"), (3, 1, "z")]

    updated = (T.update(at(3), (1, 100, "x"), (1, 100, "X")), T.delete(at(3), 2, 50, "y"))
    moved = ddl(at(5), "ALTER TABLE `shop`.`t` MODIFY COLUMN `b` INT FIRST", "shop", "t", "ALTER")
    renamed = ddl(at(7), "ALTER TABLE `shop`.`t` RENAME COLUMN `a` TO `z`", "shop", "t", "ALTER")
    changed = RENAMED.update(at(8), (100, 1, "moved"), (100, 1, "renamed"))
    rows = window(10, *updated, moved, MOVED.update(at(6), (100, 1, "X"), (100, 1, "moved")), renamed, changed)
    assert rows == [(1, 3, "z"), (100, 1, "renamed")]

    rows = window(12, RENAMED.delete(at(11), 1, 3, "z"), RENAMED.update(at(11), (100, 1, "renamed"), (7, 8, "new key")))
    assert rows == [(7, 8, "new key")]
