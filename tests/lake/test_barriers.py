"""Spark counts the barriers below a row as `Barriers.passed` does."""

from __future__ import annotations

from random import Random

from pyspark.sql import SparkSession

from ticdc_lakehouse.gold.window_reader import with_passed
from ticdc_lakehouse.planning.barriers import Barriers
from ticdc_lakehouse.schema.names import TableName

NAMES = [TableName(database, table) for database in ("d", "D", "İd", "o'\\") for table in ("t", "T", "ΑΣ", 'q"$')]


def test_barriers_below_a_row_are_counted_alike(spark: SparkSession) -> None:
    random = Random(7)
    parted = Barriers(
        tables={name: tuple(sorted(random.sample(range(50), 5))) for name in NAMES if random.random() < 0.7},
        databases={"d": (5, 30), "o'\\": (1 << 60,)},
    )
    lines = [(*name, commit_ts) for name in NAMES for commit_ts in (*range(0, 52, 3), (1 << 60) + 1)]
    rows = spark.createDataFrame(lines, "database STRING, table STRING, commit_ts BIGINT")
    for barriers in (parted, Barriers(tables={}, databases={})):
        found = with_passed(rows, barriers).select("database", "table", "commit_ts", "passed").collect()
        assert len(found) == len(lines)
        for database, table, commit_ts, passed in found:
            assert passed == barriers.passed(TableName(database, table), commit_ts), (database, table, commit_ts)
