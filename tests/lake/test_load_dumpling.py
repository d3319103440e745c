"""Exports that the real Dumpling made, through Spark and Delta: gold has every cell that TiDB answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed
from recorded_exports import OPTIONS, AnsweredTable, answered, unpacked

from ticdc_codec.errors import ApplyError
from ticdc_lakehouse.ops.dumpling.dialect import DumplingOptions
from ticdc_lakehouse.ops.load_options import LoadOptions
from ticdc_lakehouse.schema.names import TableName
from ticdc_testkit.comparison import Difference, differences, gold_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

AFTER_ALL_EXPORTS = 470652853900000000
LOADED = {
    "csv_separator": ("sl/ash", "quote\"s'", "x.000000000"),
    "csv_bigquery": ("binaries", "bits"),
    "sql_no_backslash": ("texts", "jsons", "composite_clustered"),
    "csv_zstd": ("decimals", "times"),
}
"""Exports, in the order of their TSOs, and tables of theirs: names and types that are hard, split and whole files."""


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("dumpling"))
    feed.resolve(AFTER_ALL_EXPORTS)
    feed.go()
    return feed


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(tmp_path_factory.mktemp("exports"))


def options(export: str, tables: Sequence[str], time_zone: str = "UTC") -> LoadOptions:
    names = tuple(f"fixtures.{table}" for table in tables)
    return LoadOptions(time_zone=time_zone, tables=names, dumpling=OPTIONS.get(export, DumplingOptions()))


def found_wrong(feed: Changefeed, name: str, held: AnsweredTable) -> Iterator[Difference]:
    rows = [
        [
            str(int(cell, 16)) if cell and c["data_type"] == "bit" else cell
            for c, cell in zip(held.columns, row, strict=True)
        ]
        for row in held.rows
    ]
    found = gold_rows(feed.spark.table(feed.view(name, "fixtures")), held.columns, "UTC")
    yield from differences(name, held.columns, rows, found)


@pytest.mark.long
def test_an_ambiguous_local_time_in_the_exports_zone_is_refused(feed: Changefeed, exports: Path) -> None:
    """2024-11-03 05:30 and 06:30 UTC are 01:30 in New York (facts of Dumpling, docs/loading.md)."""
    before = feed.state
    with pytest.raises(ApplyError, match=r"row .*: the time in column ts6 is two instants in America/New_York"):
        feed.run.load(str(exports / "csv_new_york" / "export"), options("csv_new_york", ["times"], "America/New_York"))
    assert feed.state == before


@pytest.mark.long
@pytest.mark.parametrize("export", LOADED)
def test_gold_has_every_cell_of_an_export(feed: Changefeed, exports: Path, export: str) -> None:
    folder = exports / export / "export"
    loaded = feed.run.load(str(folder), options(export, LOADED[export]))
    held = {table: answered(folder)[TableName("fixtures", table)] for table in LOADED[export]}
    assert loaded.rows == {("fixtures", table): len(held[table].rows) for table in held}
    assert [str(each) for table in held for each in found_wrong(feed, table, held[table])] == []
