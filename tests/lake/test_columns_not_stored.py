"""A MODIFY after which rows that do not store the column may show another DEFAULT blocks a table that may have such
rows, and no other (`unwritten_rows`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from altered_table import alter_live_table, fill
from changefeed import lake_in

from ticdc_codec.errors import ApplyError
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.schema.change import change
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.schema.statement import AlterTable

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

WRITTEN = "(1, 1, 6, 'x', 1, NULL, '[\"1\"]')"


def test_rows_that_may_not_store_a_column_block_the_table(spark: SparkSession, lake_root: Path) -> None:
    lake = lake_in(spark, lake_root, "unwritten_rows")
    lake.register()
    (created,) = tables_from_sql("CREATE TABLE d.t (id BIGINT PRIMARY KEY, c BIGINT)")
    (added,) = read_ddl("ALTER TABLE t ADD COLUMN a BIGINT DEFAULT 5, ADD COLUMN s CHAR(4) DEFAULT ' '", "d", "t")
    assert isinstance(added, AlterTable)
    table = change(created, added).table
    unwritten = {
        "MODIFY c INT DEFAULT 7": "(2, NULL, 6, 'x', 1, NULL, '[\"2\"]')",
        "MODIFY a INT": "(2, 1, 5, 'x', 1, NULL, '[\"2\"]')",
        "MODIFY s VARCHAR(9) DEFAULT ' '": "(2, 1, 6, '', 1, NULL, '[\"2\"]')",
    }
    for ddl, row in unwritten.items():
        fill(lake, table, f"{WRITTEN}, {row}")
        with pytest.raises(ApplyError, match="may show another DEFAULT in rows that were not written"):
            alter_live_table(lake, table, f"ALTER TABLE t {ddl}")
        lake.drop(Layer.LIVE, "t")
    fill(lake, table, WRITTEN)
    name = alter_live_table(lake, table, f"ALTER TABLE t {', '.join(unwritten)}")
    assert [tuple(row)[:4] for row in spark.table(name).collect()] == [(1, 1, 6, "x")]
    lake.drop(Layer.LIVE, "t")


def test_rows_that_got_null_since_a_modify_block_the_table(spark: SparkSession, lake_root: Path) -> None:
    """That MODIFY may have written all rows again, and a NULL is not stored then."""
    lake = lake_in(spark, lake_root, "unwritten_nulls")
    lake.register()
    (table,) = tables_from_sql("CREATE TABLE d.t (id BIGINT PRIMARY KEY)")
    for text in ("ADD COLUMN a BIGINT DEFAULT 5", "MODIFY a INT DEFAULT 5"):
        (altered,) = read_ddl(f"ALTER TABLE t {text}", "d", "t")
        assert isinstance(altered, AlterTable)
        table = change(table, altered).table
    for value in (5, "NULL"):
        fill(lake, table, f"(1, {value}, 1, NULL, '[\"1\"]')")
        with pytest.raises(ApplyError, match="may show another DEFAULT in rows that were not written"):
            alter_live_table(lake, table, "ALTER TABLE t MODIFY a SMALLINT DEFAULT 5")
        lake.drop(Layer.LIVE, "t")
    fill(lake, table, "(1, 6, 1, NULL, '[\"1\"]')")
    name = alter_live_table(lake, table, "ALTER TABLE t MODIFY a SMALLINT DEFAULT 5")
    assert [tuple(row)[:2] for row in spark.table(name).collect()] == [(1, 6)]
    lake.drop(Layer.LIVE, "t")
