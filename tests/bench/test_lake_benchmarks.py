"""The benchmarks on Spark run, at a size that measures nothing: all contestants do the same work."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench import gold, silver
from ticdc_lakehouse.catalog import Lake, Layer


@pytest.fixture
def lake(spark: SparkSession, lake_root: Path) -> Lake:
    made = Lake(
        spark=spark,
        catalog="spark_catalog",
        schemas={layer: f"bench_{layer}" for layer in Layer},
        checkpoints=str(lake_root / "checkpoints"),
        root=lake_root,
    )
    made.register()
    return made


def test_gold_does_what_bare_merges_do(lake: Lake) -> None:
    result = gold.measure(lake, gold.Case(feed="gold", changes=100, spread=2, windows=1), bare=True)
    assert "1 of 100 " in gold.report([result])
    assert "| 200 " in gold.report([result])


def test_every_contestant_of_silver_runs(lake: Lake) -> None:
    result = silver.measure(lake, "canal_json", 100, repetitions=1)
    assert [*result.wall] == ["copy", "mapInArrow", "from_json", "silver"]
    assert [target.bound for target in silver.targets(result)] == [0.85, 2.0]
