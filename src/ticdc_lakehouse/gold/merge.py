"""One table's share of a window: its latest change per handle key, merged into its live table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.key_range import key_range
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, DELETED, KEY
from ticdc_lakehouse.gold.step_changes import YIELDS, StepChanges
from ticdc_lakehouse.gold.step_files import files_shown
from ticdc_lakehouse.sql.text import quoted
from ticdc_lakehouse.sql.typed_columns import IRREGULAR, typed_columns


def merge(lake: Lake, name: str, changes: StepChanges) -> None:
    """Merges the latest change of each key into the live table. Repeating it changes nothing."""
    rows = changes.rows
    columns = [quoted(column.name) for column in typed_columns(rows.table)]
    tombstones = rows.eventual
    stored = [KEY, COMMIT_TS, IRREGULAR, *([DELETED] if tombstones else []), *columns]
    assignments = ", ".join(f"{column} = s.{column}" for column in stored[1:])
    deletes = "" if tombstones else f"WHEN MATCHED AND s.{COMMIT_TS} >= t.{COMMIT_TS} AND s.{DELETED} THEN DELETE"
    inserted = "" if tombstones else f"AND NOT s.{DELETED}"
    newer = f"s.{COMMIT_TS} >= t.{COMMIT_TS}"
    if tombstones:  # the upsert of the same commit may have come in an earlier batch
        is_row = f"(s.{DELETED} OR NOT t.{DELETED})"
        newer += f" AND NOT (s.{COMMIT_TS} = t.{COMMIT_TS} AND s.{YIELDS} AND {is_row})"
    with files_shown(lake, rows):
        keys = key_range(lake, name, rows, changes.keys_sql())
        lake.spark.sql(f"""
        MERGE INTO {lake.table(Layer.LIVE, name)} t
        USING ({changes.latest_typed_sql()}) s
        ON t.{KEY} = s.{KEY} {keys.of_stored}
        {deletes}
        WHEN MATCHED AND {newer} THEN UPDATE SET {assignments}
        WHEN NOT MATCHED {inserted} {keys.of_changes} THEN
            INSERT ({", ".join(stored)}) VALUES ({", ".join(f"s.{column}" for column in stored)})""")


@contextmanager
def first_rows(lake: Lake, changes: StepChanges) -> Iterator[DataFrame]:
    """Yields what a MERGE of these changes makes of a table without rows, with the columns of
    `StepChanges.latest_typed_sql`. It can be read only within the context."""
    kept = "" if changes.rows.eventual else f"WHERE NOT {DELETED}"
    with files_shown(lake, changes.rows):
        yield lake.spark.sql(f"SELECT * FROM ({changes.latest_typed_sql()}) {kept}")
