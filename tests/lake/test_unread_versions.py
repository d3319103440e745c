"""A row that was too large for a message, with many versions in one window, and a TiDB that has none of them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from changefeed import ID, Changefeed, Source, at
from pyspark import cloudpickle

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.gold import windows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers do not have the tests
NOTES = Source(table="notes")
CUT_FEED = {
    "gold": {"on_handle_key_only": "source"},
    "source": "mysql://reader@127.0.0.1:4000/?secret=lake/tidb",
}


@dataclass(frozen=True)
class NoVersions:
    """A TiDB that has collected its garbage; it notes the TSOs that it is asked for."""

    asked: Path
    tso: int = 0

    def __call__(self, tso: int) -> NoVersions:
        return replace(self, tso=tso)

    def connect(self) -> Any:
        with self.asked.open("a") as asked:
            asked.write(f"{self.tso}\n")
        raise ConfigError("TiDB has no versions that old")


@pytest.mark.long
def test_the_versions_of_a_row_that_cannot_be_read_are_not_asked_for_in_turn(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    schema = "CREATE TABLE shop.notes (id bigint PRIMARY KEY, v longtext);\n"
    feed = Changefeed(spark, broker, tmp_path, schema=schema, described=CUT_FEED)
    feed.send(0, NOTES.insert(at(1), 1, "whole"))
    for second in range(2, 12):
        change = NOTES.insert(at(second), 9, second)
        feed.send(0, replace(change, columns=(ID,), after={"id": "9"}, handle_only=True))
    feed.send(0, NOTES.insert(at(12), 10, "later"))
    feed.resolve(at(13))
    feed.load()
    source = NoVersions(tmp_path / "asked")
    assert set(windows.apply(feed.lake, feed.run.gold_config, source=source).blocked) == {("shop", "notes")}
    assert [*map(int, source.asked.read_text().split())] == [at(11), at(10)]
    assert feed.rows("notes") == {1: ("whole",)}
    assert feed.state.tables["shop", "notes"].applied_tso == at(2) - 1
