"""How often a MERGE asks Delta for the files of its live table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import lake_in
from pyspark.errors import AnalysisException

from ticdc_codec.event import Column
from ticdc_lakehouse.gold.key_range import key_range_sql, remember_new
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.window import RowGroup
from ticdc_lakehouse.schema.script import tables_from_sql

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

(TABLE,) = tables_from_sql("CREATE TABLE shop.t (id BIGINT PRIMARY KEY)")


def changes(number: int) -> MergeRows:
    columns = (Column(name="id", type="bigint", key=True),)
    group = RowGroup(
        name=TABLE.name, columns=columns, is_upsert=True, handle_only=False, keyed=True, first=1, last=1, rows=number
    )
    return MergeRows(table=TABLE, after=0, through=1, groups=(group,))


def test_a_table_that_this_process_made_of_few_rows_is_not_asked_for_its_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Asking would fail: there is no such table."""
    lake = lake_in(spark, tmp_path, "key_range")
    remember_new(lake, "small", changes(1000))
    for _ in range(3):
        assert key_range_sql(lake, "small", changes(1), "none") == ""
    with pytest.raises(AnalysisException, match="small"):
        key_range_sql(lake, "small", changes(1), "none")
    remember_new(lake, "large", changes(1_000_000))
    with pytest.raises(AnalysisException, match="large"):
        key_range_sql(lake, "large", changes(1), "none")
