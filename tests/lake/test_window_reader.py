"""Rows of a window are parted at the DDLs of their own table, in Spark as `Barriers.passed` says."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from ticdc_lakehouse.gold.window_reader import with_barriers_passed
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
