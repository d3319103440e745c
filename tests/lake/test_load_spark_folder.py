"""An export's folder and files as Spark sees them, without a feed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ticdc_lakehouse.ops.dumpling.folder import SparkFolder

if TYPE_CHECKING:
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
