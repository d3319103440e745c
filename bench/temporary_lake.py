"""A lake in a temporary folder, on the session that the local runner uses."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_local.session import SETTINGS, local_session

_AS_ON_A_CLUSTER = {
    "spark.databricks.delta.merge.deletionVectors.persistent": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""The defaults of what the local runner sets for small tables: neither side of a comparison may lose by it."""


@contextmanager
def as_users_run_it(spark: SparkSession) -> Iterator[None]:
    """The session with the local runner's own settings meanwhile."""
    before = {name: spark.conf.get(name) for name in _AS_ON_A_CLUSTER}
    for name in before:
        spark.conf.set(name, SETTINGS[name])
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value or SETTINGS[name])


def folder_lake(spark: SparkSession, root: Path, prefix: str = "") -> FolderLake:
    """A lake in a folder; ``prefix`` of its schemas keeps it apart from other lakes of the session."""
    return FolderLake(
        spark=spark,
        catalog="spark_catalog",
        schemas={layer: f"{prefix}{layer}" for layer in Layer},
        checkpoints=str(root / "checkpoints"),
        root=root,
    )


@contextmanager
def temporary_lake() -> Iterator[FolderLake]:
    """A lake that is gone afterwards, with its session: a process has one."""
    with tempfile.TemporaryDirectory(prefix="ticdc-lake-bench-") as folder:
        root = Path(folder)
        lake = folder_lake(local_session(root, app_name="bench"), root)
        lake.register()
        for name, value in _AS_ON_A_CLUSTER.items():
            lake.spark.conf.set(name, value)
        yield lake
        lake.spark.stop()
