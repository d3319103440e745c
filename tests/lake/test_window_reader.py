"""Rows of a window are parted at the DDLs of their own table, in Spark as `Barriers.passed` says; those of tables that
lag are found among all."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from ticdc_lakehouse.gold.window_reader import unapplied_rows, with_barriers_passed
from ticdc_lakehouse.planning.barriers import Barriers
from ticdc_lakehouse.schema.names import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {TableName("Shop", "Orders"): (10, 20), TableName("shop", "ΟΔΟΣ"): (15,), TableName("other", "orders"): ()}
NAMES = [("shop", "ORDERS"), ("SHOP", "οδος"), ("shop", "οδοσ"), ("other", "orders"), ("none", "orders")]


def check(spark: SparkSession, parted: Barriers) -> list[int]:
    lines = [(*name, commit_ts) for name, commit_ts in product(NAMES, (9, 10, 11, 15, 16, 20, 21, 31))]
    rows = spark.createDataFrame(lines, "database STRING, table STRING, commit_ts BIGINT")
    found = {
        (row["database"], row["table"], row["commit_ts"]): row["barriers_passed"]
        for row in with_barriers_passed(rows, parted).collect()
    }
    assert found == {line: parted.passed(TableName(*line[:2]), line[2]) for line in lines}
    return sorted(set(found.values()))


def test_rows_are_parted_by_the_barriers_of_their_own_table_and_database(spark: SparkSession) -> None:
    assert check(spark, Barriers(tables=TABLES, databases={"shop": (30,)})) == [0, 1, 2, 3]
    assert check(spark, Barriers(tables=TABLES, databases={})) == [0, 1, 2]
    assert check(spark, Barriers(tables={}, databases={"shop": (30,)})) == [0, 1]
    assert check(spark, Barriers(tables={}, databases={})) == [0]


def test_rows_are_parted_by_the_barriers_of_their_table_in_any_database(spark: SparkSession) -> None:
    unqualified = {"orders": (16,)}
    assert check(spark, Barriers(tables={}, databases={}, in_any_database=unqualified)) == [0, 1]
    assert check(spark, Barriers(tables=TABLES, databases={"shop": (30,)}, in_any_database=unqualified)) == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_rows_of_many_tables_that_lag_are_found_without_a_condition_for_each(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One condition is left for all of them: by the lowest commit_ts files are skipped."""
    lagging = [(TableName("shop", f"T{number}"), 10 + number) for number in range(2000)]
    lagging += [(TableName("Shop", "ΟΔΟΣ"), 30), (TableName("shop", "οδοσ"), 20), (TableName("shop", "ΟΔΟΣ"), 40)]
    names = [("SHOP", "t5"), ("shop", "T1999"), ("shop", "οδοσ"), ("other", "t5"), (None, "t5"), ("shop", None)]
    lines = [(*name, commit_ts) for name, commit_ts in product(names, (9, 15, 16, 20, 21, 2009, 2010, 5000, 5001))]
    fields = "database STRING, table STRING, commit_ts BIGINT"
    spark.createDataFrame(lines, fields).write.parquet(f"{tmp_path}/rows")
    unapplied = unapplied_rows(spark.read.parquet(f"{tmp_path}/rows"), F.col("commit_ts") > 5000, lagging)
    after = {("SHOP", "t5"): 15, ("shop", "T1999"): 2009, ("shop", "οδοσ"): 20}
    expected = [line for line in lines if line[2] > after.get(line[:2], 5000)]
    unapplied.explain()
    plan = capsys.readouterr().out
    assert "PushedFilters: [Or(GreaterThan(commit_ts,5000),GreaterThan(commit_ts,10))]" in plan
    assert plan.count(" > ") < 10, "of each row a commit_ts is compared a few times"
    assert sorted(map(str, map(tuple, unapplied.collect()))) == sorted(map(str, expected))


def test_without_tables_that_lag_the_new_rows_are_read_without_a_join(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = spark.range(4).withColumnRenamed("id", "commit_ts")
    unapplied = unapplied_rows(rows, F.col("commit_ts") > 2, [])
    assert [*map(tuple, unapplied.collect())] == [(3,)]
    unapplied.explain()
    assert "Join" not in capsys.readouterr().out
