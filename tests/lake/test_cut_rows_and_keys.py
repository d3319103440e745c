"""Rows that came cut to their handle key, with NULL in their other columns, when a DDL gives the table a new key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from altered_table import alter_live_table, fill
from changefeed import lake_in

from ticdc_codec.errors import ApplyError
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.schema.script import tables_from_sql

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_lakehouse.catalog import Lake

CREATE = (
    "CREATE TABLE d.t (id INT, code VARCHAR(9) NOT NULL, v INT, PRIMARY KEY (id) NONCLUSTERED, UNIQUE KEY u (code))"
)
WHOLE, CUT = """(1, 'a', 3, 5, NULL, '["1"]')""", """(2, NULL, NULL, 5, NULL, '["2"]')"""


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    lake = lake_in(spark, tmp_path, "cut_rows")
    lake.register()
    yield lake
    lake.drop(Layer.LIVE, "t")


@pytest.mark.parametrize("ddl", ["DROP PRIMARY KEY", "DROP PRIMARY KEY, ADD PRIMARY KEY (code, id)"])
def test_a_row_without_a_value_of_the_new_key_blocks_its_table(lake: Lake, ddl: str) -> None:
    """All such rows would have one key, and no later change would find its row."""
    (table,) = tables_from_sql(CREATE)
    fill(lake, table, f"{WHOLE}, {CUT}")
    with pytest.raises(ApplyError, match=r"rows have no value in a column of the new key .*on_handle_key_only: null"):
        alter_live_table(lake, table, f"ALTER TABLE d.t {ddl}")


@pytest.mark.parametrize("kind", ["ENUM('a','b')", "SET('a','b')", "DOUBLE", "DATE", "BIT(3)", "VARBINARY(9)"])
def test_a_missing_value_of_any_type_is_missing(lake: Lake, kind: str) -> None:
    (table,) = tables_from_sql(CREATE.replace("VARCHAR(9)", kind))
    fill(lake, table, CUT)
    with pytest.raises(ApplyError, match=r"rows have no value in a column of the new key code"):
        alter_live_table(lake, table, "ALTER TABLE d.t DROP PRIMARY KEY")


def test_rows_that_have_all_values_of_the_new_key_get_it(lake: Lake) -> None:
    (table,) = tables_from_sql(CREATE)
    fill(lake, table, WHOLE)
    name = alter_live_table(lake, table, "ALTER TABLE d.t DROP PRIMARY KEY")
    assert [tuple(row) for row in lake.spark.sql(f"SELECT _ticdc_key, id, v FROM {name}").collect()] == [
        ('["a"]', 1, 3)
    ]
