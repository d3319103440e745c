"""An export's folder and files as Spark sees them, without a feed."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from dumpling_export import csv_bytes, write_metadata, write_table
from recorded_exports import OPTIONS, unpacked

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.ops.dumpling.dialect import DumplingOptions
from ticdc_lakehouse.ops.dumpling.ends import check_ends
from ticdc_lakehouse.ops.dumpling.export import Export, read_export
from ticdc_lakehouse.ops.dumpling.folder import SparkFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_files_of_a_folder_and_of_its_subfolders(spark: SparkSession, tmp_path: Path) -> None:
    """Also those of zero bytes, which Spark has no rows of."""
    for name, content in (("metadata", "x"), ("a%2Eb c.sql", "xy"), ("none.csv", ""), ("data/deep/a%2Eb.csv", "")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    folder = SparkFolder(spark=spark, path=str(tmp_path))
    assert folder.sizes() == {"a%252Eb%20c.sql": 2, "metadata": 1, "none.csv": 0}
    (nested,) = folder.nested()
    assert nested.endswith(f"{tmp_path}/data/deep/a%2Eb.csv")


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_file_that_spark_passes_over_is_refused(spark: SparkSession, tmp_path: Path, scheme: str) -> None:
    for name in ("_price.shop.000000000.csv", "orders.shop.000000000.csv", "_SUCCESS", ".hidden"):
        (tmp_path / name).write_text("x")
    with pytest.raises(ConfigError, match=r"does not read files whose names begin with _: _price\.shop"):
        SparkFolder(spark=spark, path=f"{scheme}{tmp_path}").sizes()


CREATE = "CREATE TABLE `t` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))"
CSV = csv_bytes(("id", "v"), [(number, "x" * 9) for number in range(999)])
SQL = b"/*!40101 SET NAMES binary*/;\nINSERT INTO `t` VALUES\n" + b"(1,'x,\\n'),\n" * 999 + b"(2,'x');\n"


@pytest.fixture
def small_splits(spark: SparkSession) -> Iterator[SparkSession]:
    """Of a thousand bytes."""
    settings = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = {setting: spark.conf.get(setting) for setting in settings}
    for setting in settings:
        spark.conf.set(setting, "1000")
    yield spark
    for setting, value in before.items():
        spark.conf.set(setting, value)


def ends_of(spark: SparkSession, folder: Path, options: DumplingOptions | None = None) -> Export:
    """The export, whose files were found whole."""
    export = read_export(SparkFolder(spark=spark, path=str(folder)), options or DumplingOptions())
    check_ends(spark, export, export.tables.values())
    return export


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("csv", CSV, None),
        ("csv", CSV.replace(b"\r", b""), None),
        ("csv", CSV[:-1], "is cut off"),
        ("csv", CSV[:-9], "is cut off"),
        ("csv.gz", gzip.compress(CSV), None),
        ("csv.gz", gzip.compress(CSV[:-9]), "is cut off"),
        ("csv.gz", gzip.compress(CSV)[:-9], "cannot be decompressed"),
        ("csv.gz", gzip.compress(CSV)[:-8] + bytes(8), "cannot be decompressed"),
        ("csv.gz", CSV, "cannot be decompressed"),
        ("sql", SQL, None),
        ("sql", SQL * 2, None),
        ("sql", SQL.replace(b"(2,'x')", b"(2,'\n')"), "is cut off.*; or was it --escape-backslash=false"),
        ("sql", SQL + SQL[: SQL.index(b"(")], "is cut off"),
        ("sql", SQL[: -len("(2,'x');\n")], "is cut off"),
        ("sql", SQL[:-1], "is cut off"),
        ("sql.gz", gzip.compress(SQL[: -len("(2,'x');\n")]), "is cut off"),
        ("sql.gz", gzip.compress(b""), "holds nothing"),
    ],
)
def test_ends_of_files_that_spark_splits(
    small_splits: SparkSession, tmp_path: Path, name: str, content: bytes, fault: str | None
) -> None:
    write_metadata(tmp_path, 1 << 40)
    write_table(tmp_path, "shop.t", CREATE, ("id", "v"))
    (tmp_path / f"shop.t.000000000.{name}").write_bytes(content)
    if fault is None:
        ends_of(small_splits, tmp_path)
    else:
        with pytest.raises(ConfigError, match=rf"shop\.t\.000000000\.{name} {fault}"):
            ends_of(small_splits, tmp_path)


@pytest.mark.parametrize("name", ["csv_split", "csv_no_header", "csv_gzip", "sql_split", "sql_gzip"])
def test_every_file_of_a_real_export_is_whole(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    exports = unpacked(tmp_path_factory.mktemp("exports"))
    export = ends_of(spark, exports / name / "export", OPTIONS.get(name))
    assert any(table.files for table in export.tables.values())
