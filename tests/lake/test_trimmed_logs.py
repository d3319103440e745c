"""Tables whose logs were trimmed, as Spark and delta-rs read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import lake_in

from ticdc_lakehouse import log_folder, stream_checkpoint
from ticdc_lakehouse.catalog import Layer
from ticdc_local.delta_reader import DeltaReader

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from ticdc_lakehouse.folder_lake import FolderLake

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
