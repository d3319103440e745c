"""Which rows a partition holds, and how a partition and a plain table exchange them, in the tables themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import lake_in

from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold.alter_table import LiveVersion, exchange
from ticdc_lakehouse.gold.live_table import create_live_table
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import ExchangeRows
from ticdc_lakehouse.schema.effect import RowsRemoved
from ticdc_lakehouse.schema.partition_effects import drop_partitions, exchanged
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.schema.statement import DropPartitions
from ticdc_lakehouse.sql.partition_rows import partition_condition_sql

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CONFIG = GoldConfig(feed="f", time_zone="UTC")


# What TiDB held in each partition.
BY_YEAR = [
    (
        "RANGE (y) (PARTITION a VALUES LESS THAN (50), PARTITION b VALUES LESS THAN (2000),"
        " PARTITION c VALUES LESS THAN (99999))",
        {"a": [None, 0], "b": [1901, 1950, 1999], "c": [2000, 2049, 2155]},
    ),
    (
        "LIST (y) (PARTITION a VALUES IN (50, 0, NULL), PARTITION b VALUES IN (1901, 1950, 1999, 2000, 2049, 2155))",
        {"a": [None, 0], "b": [1901, 1950, 1999, 2000, 2049, 2155]},
    ),
    ("HASH (y) PARTITIONS 3", {"p0": [None, 0, 1950, 2049], "p1": [1999, 2155], "p2": [1901, 2000]}),
]


@pytest.mark.parametrize(("by", "held"), BY_YEAR)
def test_rows_of_a_partition_by_a_year(spark: SparkSession, by: str, held: dict[str, list[int | None]]) -> None:
    """A bound is a number, of two digits, too: TiDB adds no century to it."""
    (table,) = tables_from_sql(f"CREATE TABLE d.t (y YEAR) PARTITION BY {by}")
    years = ", ".join("(NULL)" if year is None else f"({year}S)" for rows in held.values() for year in rows)
    for partition, rows in held.items():
        _, (gone,) = drop_partitions(table, DropPartitions(names=(partition,), keep=True))
        assert isinstance(gone, RowsRemoved)
        condition = partition_condition_sql(gone, "UTC")
        found = spark.sql(f"SELECT y FROM VALUES {years} AS t(y) WHERE {condition} ORDER BY y").collect()
        assert [row["y"] for row in found] == rows, partition


def test_exchanged_rows_get_the_names_that_their_table_has(spark: SparkSession, tmp_path: Path) -> None:
    """TiDB takes two columns whose names differ in case alone for one."""
    parts = "PARTITION BY RANGE (Id) (PARTITION low VALUES LESS THAN (9), PARTITION high VALUES LESS THAN (99))"
    parted, plain = tables_from_sql(
        f"CREATE TABLE d.parted (Id BIGINT PRIMARY KEY, `Day` DATE, v INT) {parts};"
        "CREATE TABLE d.plain (id BIGINT PRIMARY KEY, DAY DATE, v INT);"
    )
    lake = lake_in(spark, tmp_path, "exchanged")
    lake.register()
    for table, low in ((parted, 1), (plain, 2)):
        create_live_table(lake, table.table, table, stable_id=f"{table.table}__data", config=CONFIG)
        day = table.columns[1].name
        values = f"({low}, NULL, 5, 1, map('{day}', '2024-00-00'), '[\"{low}\"]')"
        more = ", (11, NULL, 6, 1, NULL, '[\"11\"]')" if table is parted else ""
        spark.sql(f"INSERT INTO {lake.table(Layer.LIVE, table.table)} VALUES {values}{more}")
    part = exchanged(parted, plain, "low")
    step = ExchangeRows(commit_ts=2, query="", part=part, partitioned="parted__data", plain="plain__data")
    versions = (LiveVersion(name=table.table, version=1, definition=table) for table in (parted, plain))
    exchange(lake, step, *versions, "UTC")
    shown = [spark.table(lake.table(Layer.LIVE, name)) for name in ("parted", "plain")]
    assert [rows.columns[:3] for rows in shown] == [["Id", "Day", "v"], ["id", "DAY", "v"]]
    held = [sorted((row[0], row["_ticdc_irregular"]) for row in rows.collect()) for rows in shown]
    assert held == [[(2, {"Day": "2024-00-00"}), (11, None)], [(1, {"DAY": "2024-00-00"})]]
    lake.drop(Layer.LIVE, "parted")
    lake.drop(Layer.LIVE, "plain")
