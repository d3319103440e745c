"""Tables whose logs were trimmed, as Spark and delta-rs read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bench.old_logs import lengthen
from changefeed import Changefeed, Source, at, lake_in

from ticdc_lakehouse import log_folder, stream_checkpoint
from ticdc_lakehouse.catalog import Layer
from ticdc_local.delta_reader import DeltaReader

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from ticdc_lakehouse.folder_lake import FolderLake
    from ticdc_local.broker import Broker

OFTEN = "TBLPROPERTIES ('delta.checkpointInterval' = '2')"


def append(lake: FolderLake, name: str, values: range) -> str:
    """A commit for each value. Returns the table."""
    table = lake.create(Layer.BRONZE, name, "id BIGINT COMMENT 'a number'", comment="numbers", properties=OFTEN)
    for value in values:
        lake.spark.sql(f"INSERT INTO {table} VALUES ({value})")
    return table


def commits(lake: FolderLake, name: str) -> list[int]:
    return sorted(int(path.stem) for path in (lake.root / Layer.BRONZE / name / "_delta_log").glob("[0-9]*.json"))


def read_on(lake: FolderLake, table: str, checkpoint: Path) -> list[int]:
    """What a stream of the table finds since its last run."""
    found: list[int] = []

    def note(rows: DataFrame, _number: int) -> None:
        found.extend(row["id"] for row in rows.collect())

    stream = lake.spark.readStream.table(table).writeStream.option("checkpointLocation", str(checkpoint))
    stream.foreachBatch(note).trigger(availableNow=True).start().awaitTermination()
    return sorted(found)


def test_a_trimmed_table_is_what_it_was(
    spark: SparkSession, lake_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_folder, "_YOUNG_SECONDS", -60)
    lake = lake_in(spark, lake_root, "trimmed")
    lake.register()
    table = append(lake, "numbers", range(6))
    checkpoint = str(tmp_path)
    assert read_on(lake, table, tmp_path) == [0, 1, 2, 3, 4, 5]
    assert stream_checkpoint.version_needed(checkpoint) is None, "its first batch, and all before"
    append(lake, "numbers", range(6, 9))
    assert read_on(lake, table, tmp_path) == [6, 7, 8]
    needed, version = stream_checkpoint.version_needed(checkpoint), lake.version(table)
    assert needed is not None
    assert 0 < needed < version

    # All versions stay readable, then those that a stream may still read.
    lake.trim_log(Layer.BRONZE, "numbers", keeps_versions=True)
    lake._clear_delta_cache()
    counts = [spark.sql(f"SELECT count(*) FROM {table} VERSION AS OF {v}").collect()[0][0] for v in range(version + 1)]
    assert counts == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    lake.trim_log(Layer.BRONZE, "numbers", read_from=needed)
    assert commits(lake, "numbers") == [*range(needed - needed % 2, version + 1)]

    # Whoever read it before, in this session or another process, reads on, and so does a new one.
    reader = DeltaReader(lake.root)
    for remembered in (True, False):
        if not remembered:
            lake._clear_delta_cache()
        assert spark.table(table).count() == 9
        assert (
            reader.rows(f"SELECT count(*) AS numbers FROM {reader.table(Layer.BRONZE, 'numbers')}")[0]["numbers"] == 9
        )
    append(lake, "numbers", range(9, 13))
    assert read_on(lake, table, tmp_path) == [9, 10, 11, 12]
    lake.trim_log(Layer.BRONZE, "numbers", read_from=stream_checkpoint.version_needed(checkpoint))
    assert read_on(lake, table, tmp_path) == []
    lake.trim_log(Layer.BRONZE, "numbers")
    assert len(commits(lake, "numbers")) <= 2
    assert spark.table(table).count() == 13
    lake.drop(Layer.BRONZE, "numbers")
    assert not (lake.root / Layer.BRONZE / "numbers").exists()


def versions(log: Path, pattern: str) -> set[int]:
    return {int(path.name.lstrip(".").partition(".")[0]) for path in log.glob(pattern)}


def test_gold_trims_the_logs_of_its_feed(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed, table = Changefeed(spark, broker, tmp_path), Source(table="t")
    for second in (1, 3):
        feed.send(0, table.insert(at(second), second, "a"))
        feed.resolve(at(second + 1))
        assert feed.go().tso == at(second + 1)
    lengthen(feed.lake, 3)
    ends = {log.parent: max(versions(log, "[0-9]*.json")) for log in feed.lake.root.rglob("_delta_log")}
    feed.send(0, table.insert(at(5), 5, "a"))
    feed.resolve(at(6))
    assert feed.go().tso == at(6)

    # Every table has a checkpoint at its end before: no checksum below it stays, nor a commit that nobody reads.
    live = feed.lake.root / Layer.LIVE / feed.state.tables["shop", "t"].lake_name
    silver, bronze = feed.lake.root / Layer.SILVER / f"{feed.name}_events", feed.lake.root / Layer.BRONZE
    changed = (live, silver, bronze / f"{feed.name}_offsets", feed.lake.root / Layer.OPS / "windows")
    first = {folder: min(versions(folder / "_delta_log", "[0-9]*.json")) for folder in changed}
    assert first == {live: 0, silver: 0, **{folder: ends[folder] for folder in changed[2:]}}
    for folder in (*changed, bronze / f"{feed.name}_messages"):
        for checksums in (".*.json.crc", "[0-9]*.crc"):
            assert min(versions(folder / "_delta_log", checksums)) >= ends[folder]
    assert feed.rows("t") == {1: ("a",), 3: ("a",), 5: ("a",)}
    feed.send(0, table.delete(at(7), 3, "a"))
    feed.resolve(at(8))
    assert feed.go().tso == at(8)
    assert feed.rows("t") == {1: ("a",), 5: ("a",)}
    feed.check_nothing_lost_or_doubled()
