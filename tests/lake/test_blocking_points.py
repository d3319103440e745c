"""Where messages in quarantine make their tables stop: one query finds all places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from changefeed import lake_in

from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.gold.retired_topics import UNSEEN
from ticdc_lakehouse.gold.watermark import completeness
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.sql.text import rows_sql
from ticdc_local.delta_reader import DeltaReader

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_lakehouse.catalog import Lake, Layer, Reader, Values

TOPICS = ("one", "two")
TABLES = 40
_COLUMNS = """topic: STRING, partition: INT, offset: BIGINT, index: INT, batch: BIGINT, kind: STRING, commit_ts: BIGINT,
    database: STRING, table: STRING, reason: STRING"""


@dataclass(slots=True)
class CountingReader:
    """Answers as another reader does, and counts the queries."""

    reader: Reader
    queries: int = 0

    def exists(self, layer: Layer, name: str) -> bool:
        return self.reader.exists(layer, name)

    def table(self, layer: Layer, name: str) -> str:
        return self.reader.table(layer, name)

    def columns(self, layer: Layer, name: str) -> list[str]:
        return self.reader.columns(layer, name)

    def property(self, layer: Layer, name: str, key: str) -> str | None:
        return self.reader.property(layer, name, key)

    def rows(self, sql: str) -> list[Values]:
        self.queries += 1
        return self.reader.rows(sql)


def event(topic: str, partition: int, offset: int, **more: object) -> dict[str, object]:
    position = {"topic": topic, "partition": partition, "offset": offset}
    return {**position, "index": 0, "batch": 0, "kind": "error", **more}


def append(lake: Lake, feed: str, tables: int) -> None:
    """Watermarks 100, 110, … at offsets 0, 10, … of two topics' partitions; a message in quarantine, of a table of its
    own, at offset 5, and 10 further on for each next table."""
    landing.create_tables(lake, feed)
    events_table.create_tables(lake, feed)
    watermarks = [
        event(topic, partition, 10 * number, kind="resolved", commit_ts=100 + 10 * number)
        for topic in TOPICS
        for partition in (0, 1)
        for number in range(30)
    ]
    errors = [
        event(TOPICS[n % 2], n // 2 % 2, 5 + 10 * (n // 4), database="shop", table=f"t{n}", reason="schema_missing")
        for n in range(tables)
    ]
    # What a partition sent first comes last; a watermark at a message's own offset is not before it.
    last = event(TOPICS[0], 0, 5 + 10 * ((tables - 1) // 4), kind="resolved", commit_ts=999)
    names = ", ".join(each.partition(":")[0].strip() for each in _COLUMNS.split(","))
    rows = rows_sql([*reversed(watermarks), *errors, last], _COLUMNS)
    lake.spark.sql(f"INSERT INTO {events_table.full_name(lake, feed)} ({names}) {rows}")


def points(reader: Reader, feed: str, batch: int = -1) -> dict[str, int]:
    found = completeness(reader, feed, Published(tso=110, batch=batch), lambda *_: True).quarantine_points
    return {name.table: point.tso for name, point in found.items()}


def test_tables_stop_at_the_watermark_before_their_message(spark: SparkSession, lake_root: Path) -> None:
    lake = lake_in(spark, lake_root, "points")
    lake.register()
    queries = set()
    for feed, tables in (("few", 2), ("many", TABLES)):
        append(lake, feed, tables)
        # Watermark 110 is published: one that is not above it counts as none.
        expected = {f"t{n}": 100 + 10 * (n // 4) if n >= 8 else UNSEEN for n in range(tables)}
        assert points(lake, feed) == expected
        counting = CountingReader(DeltaReader(lake_root))
        assert points(counting, feed) == expected
        queries.add(counting.queries)
    assert len(queries) == 1, "whatever the number of messages"

    # The published state has read it there.
    read = {name: 110 if 4 <= int(name[1:]) < 8 else tso for name, tso in expected.items()}
    assert points(lake, feed, batch=0) == read
