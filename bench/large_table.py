"""A small change to a large table: 1,000 changed recent keys are merged, and the table's files are counted that the
MERGE reads.

A MERGE scans its target two or three times: for the files with matches, to rewrite them and, with deletion vectors, for
the rows to mark. Each scan is of the same files, or fewer, so the largest scan says how many of the table's files are
read.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.report import Target, table
from bench.scans import files_read, last_execution
from ticdc_codec.event import Column
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.live_table import create_live_table
from ticdc_lakehouse.gold.merge import merge
from ticdc_lakehouse.gold.step_changes import StepChanges
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.window import RowGroup
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.silver import events_table

FEED, _NAME = "large", "large_shop_orders"
_CHANGES, _FILES, _BOUND = 1_000, 100, 0.10
_CREATE = "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(12,2), note VARCHAR(40))"
_COLUMNS = tuple(Column(name=name, type="bigint", key=name == "id") for name in ("id", "customer", "amount", "note"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One MERGE."""

    rows: int
    files: int
    scans: tuple[int, ...]
    """Files of the table that each of its scans read."""
    seconds: float

    @property
    def ratio(self) -> float:
        """Files read as a part of the table's."""
        return max(self.scans) / self.files


def main(lake: Lake, rows: int) -> list[Target]:
    """Measure a table of so many rows, print, and give the target."""
    result = measure(lake, rows)
    scans = ", ".join(map(str, result.scans))
    cells = (f"{result.rows:,}", str(result.files), scans, f"{result.ratio:.0%}", f"{result.seconds:.1f}")
    heads = ("rows", "files", "read by each scan", "ratio", "s")
    print(table(f"{_CHANGES:,} recent keys into a large table", heads, [cells]), flush=True)
    what = f"files read to merge {_CHANGES:,} recent keys into {result.rows:,} rows"
    return [Target(what=what, measured=result.ratio, bound=_BOUND, at_most=True)]


def measure(lake: Lake, rows: int) -> Result:
    """Lay the table and the changes down, merge, and count."""
    (definition,) = tables_from_sql(_CREATE)
    create_live_table(lake, _NAME, definition, stable_id=_NAME, config=GoldConfig(feed=FEED, time_zone="UTC"))
    live = lake.table(Layer.LIVE, _NAME)
    lake.spark.sql(f"""
        INSERT INTO {live} SELECT id, id % 1000, CAST(id % 999 AS DECIMAL(12,2)), concat('note ', id), 1L, NULL,
               concat('["', id, '"]') FROM range(0, {rows}, 1, {_FILES})""")
    _lay_changes(lake, rows)
    files = lake.spark.sql(f"DESCRIBE DETAIL {live}").collect()[0]["numFiles"]
    name = TableName(definition.database, definition.table)
    group = RowGroup(
        name=name, columns=_COLUMNS, is_upsert=True, handle_only=False, keyed=True, first=2, last=2, rows=_CHANGES
    )
    step = MergeRows(table=definition, after=1, through=2, groups=(group,))
    before, started = last_execution(lake.spark), time.monotonic()
    merge(lake, _NAME, StepChanges(lake=lake, feed=FEED, rows=step, time_zone="UTC"))
    seconds = time.monotonic() - started
    scans = files_read(lake.spark, live, before)
    (updated,) = lake.spark.sql(f"SELECT count(*) FROM {live} WHERE _ticdc_commit_ts = 2").collect()
    assert updated[0] == _CHANGES
    return Result(rows=rows, files=files, scans=scans, seconds=seconds)


def _lay_changes(lake: Lake, rows: int) -> None:
    """Updates of keys among the newest five in a hundred, as silver has them."""
    landing.create_tables(lake, FEED)
    events_table.create_tables(lake, FEED)
    image = "to_json(named_struct('id', id, 'customer', '7', 'amount', '1.00', 'note', 'changed'))"
    span = max(1, rows // 20 // _CHANGES)
    lake.spark.sql(f"""
        INSERT INTO {events_table.full_name(lake, FEED)}
               (topic, partition, offset, index, batch, kind, op, database, table, commit_ts, handle_key, before, after)
        SELECT 't', 0, place, 0, 0, 'row', 'update', 'shop', 'orders', 2, concat('["', id, '"]'), {image}, {image}
        FROM (SELECT id AS place, CAST({rows} - 1 - id * {span} AS STRING) AS id FROM range(0, {_CHANGES}, 1, 1))""")
