"""Which rows a partition holds, and how a partition and a plain table exchange them, in the tables themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import lake_in

from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold.alter_table import exchange
from ticdc_lakehouse.gold.live_table import create_live_table
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import ExchangeRows
from ticdc_lakehouse.schema.partition_effects import exchanged
from ticdc_lakehouse.schema.script import tables_from_sql

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CONFIG = GoldConfig(feed="f", time_zone="UTC")


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
    exchange(lake, step, ("parted", "plain"), (1, 1), (parted, plain), "UTC")
    shown = [spark.table(lake.table(Layer.LIVE, name)) for name in ("parted", "plain")]
    assert [rows.columns[:3] for rows in shown] == [["Id", "Day", "v"], ["id", "DAY", "v"]]
    held = [sorted((row[0], row["_ticdc_irregular"]) for row in rows.collect()) for rows in shown]
    assert held == [[(2, {"Day": "2024-00-00"}), (11, None)], [(1, {"DAY": "2024-00-00"})]]
    lake.drop(Layer.LIVE, "parted")
    lake.drop(Layer.LIVE, "plain")
