"""The files that a step reads beside the window's events: staged latest changes, and rows read whole from TiDB. A
session reads them through temporary views."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.own_columns import KEY
from ticdc_lakehouse.planning.steps import MergeRows, Stage
from ticdc_lakehouse.sql.text import literal

WHOLE_COLUMNS = f"{KEY} STRING, commit_ts BIGINT, image STRING, error STRING"
"""SQL: the result for a row that is read from TiDB: its image, or why it has none."""
STAGE_COLUMNS = f"segment INT, {KEY} STRING, commit_ts BIGINT, image STRING"
"""SQL: the columns of staged files (`Stage`)."""


@contextmanager
def files_shown(lake: Lake, rows: MergeRows) -> Iterator[None]:
    """Creates the session's views of the files that the step reads, for the context."""
    views = [*_views_of_files(rows)]
    try:
        for view, columns, path in views:  # with columns, which Spark need then not look for in the files
            lake.spark.sql(
                f"CREATE OR REPLACE TEMPORARY VIEW {view} ({columns}) USING parquet OPTIONS (path {literal(path)})"
            )
        yield
    finally:
        for view, _, _ in views:
            lake.spark.catalog.dropTempView(view)


def _views_of_files(rows: MergeRows) -> Iterator[tuple[str, str, str]]:
    """Yields name, columns and folder of each view."""
    if rows.stage is not None:
        yield stage_view(rows.stage), STAGE_COLUMNS, rows.stage.path
    if rows.whole_rows is not None:
        yield whole_rows_view(rows.whole_rows), WHOLE_COLUMNS, rows.whole_rows


def whole_rows_view(path: str) -> str:
    """Returns the name of the view of the rows that were read whole from TiDB: it has the id of their folder."""
    return f"_ticdc_source_{path.rpartition('_')[2]}"


def stage_view(stage: Stage) -> str:
    """Returns the name of the view of the files with a staged segment."""
    return f"_ticdc_stage_{stage.segment}"
