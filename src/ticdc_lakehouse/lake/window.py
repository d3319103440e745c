"""What a window (W_prev, W] of silver holds, table by table, before anything is applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ticdc_lakehouse.event import Column, Kind, Op, columns_from
from ticdc_lakehouse.lake import silver
from ticdc_lakehouse.lake.place import Lake, Layer
from ticdc_lakehouse.lake.state import Published, TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The rows of one table that share a description of columns."""

    columns: tuple[Column, ...]
    whole: bool
    """Whether the images hold all columns (an insert's or update's ``after``), or may hold the key alone (a delete's
    ``before``)."""
    handle_only: bool
    """Whether the images hold the key alone because the rows were too large."""
    keyed: bool
    """Whether the wire named the key."""
    first: int
    """Smallest commit_ts."""
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChanges:
    """A table's row changes in the window."""

    shapes: tuple[Shape, ...] = ()
    replayed: bool = False
    """Whether some were decoded again from quarantine after their time had been applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlEvent:
    """A DDL of the window, once however often it arrived."""

    commit_ts: int
    database: str | None
    table: str | None
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """All changes of a feed that are not applied yet, up to W."""

    rows: Mapping[TableName, TableChanges]
    ddls: tuple[DdlEvent, ...]
    """In commit order, equal commit_ts in the order of arrival."""
    replays_seen: datetime | None
    """Newest replay among the events, or as before."""
    row_changes: int


def read_window(lake: Lake, feed: str, before: Published, tso: int) -> Window:
    """The window after the published state ``before``, up to ``tso``; tables that lag behind are read from where they
    stand."""
    events = lake.spark.table(lake.table(Layer.SILVER, silver.events_table(feed)))
    replays = _replays(before.replays_seen)
    rows = (F.col("kind") == Kind.ROW.value) & (F.col("commit_ts") <= tso) & (_unapplied(before) | replays)
    # A DDL at exactly the published watermark may arrive after it (wire.md 2.1), so the window is closed on that side.
    ddls = (F.col("kind") == Kind.DDL.value) & (F.col("commit_ts").between(before.tso, tso) | replays)
    shapes, ddl_lines = _row_lines(events.where(rows)), _ddl_lines(events.where(ddls))
    replayed = [line["newest_replay"] for line in (*shapes, *ddl_lines) if line["newest_replay"] is not None]
    return Window(
        rows=_changes(shapes),
        ddls=tuple(DdlEvent(**{name: line[name] for name in _DDL_FIELDS}) for line in ddl_lines),
        replays_seen=max(replayed, default=before.replays_seen),
        row_changes=sum(line["rows"] for line in shapes),
    )


_DDL_FIELDS = ("commit_ts", "database", "table", "query")


def _replays(seen: datetime | None) -> SparkColumn:
    """Events decoded again from quarantine since the published state."""
    replayed_at = F.col("replayed_at")
    return replayed_at.isNotNull() if seen is None else replayed_at > F.lit(seen)


def _unapplied(before: Published) -> SparkColumn:
    """Rows above the published watermark, and those above the standstill of tables that lag."""
    condition = F.col("commit_ts") > before.tso
    for (database, table), table_state in before.tables.items():
        if table_state.applied_tso < before.tso and not table_state.final:
            of_table = (F.col("database") == database) & (F.col("table") == table)
            condition = condition | (of_table & (F.col("commit_ts") > table_state.applied_tso))
    return condition


def _row_lines(rows: DataFrame) -> list[Row]:
    return (
        rows.groupBy(
            "database",
            "table",
            "columns",
            (F.col("op") != Op.DELETE.value).alias("whole"),
            F.coalesce("handle_only", F.lit(False)).alias("handle_only"),
            F.col("handle_key").isNotNull().alias("keyed"),
        )
        .agg(
            F.min("commit_ts").alias("first"),
            F.count("*").alias("rows"),
            F.max("replayed_at").alias("newest_replay"),
        )
        .collect()
    )


def _changes(lines: list[Row]) -> dict[TableName, TableChanges]:
    found: dict[TableName, TableChanges] = {}
    for line in lines:
        name = (line["database"], line["table"])
        known = found.get(name, TableChanges())
        shape = Shape(
            columns=columns_from(line["columns"]),
            whole=line["whole"],
            handle_only=line["handle_only"],
            keyed=line["keyed"],
            first=line["first"],
            rows=line["rows"],
        )
        replayed = known.replayed or line["newest_replay"] is not None
        found[name] = TableChanges(shapes=(*known.shapes, shape), replayed=replayed)
    return found


def _ddl_lines(ddls: DataFrame) -> list[Row]:
    """Each DDL once, in commit order, equal commit_ts in the order of arrival."""
    return (
        ddls.groupBy(*_DDL_FIELDS)
        .agg(
            F.min(F.struct("partition", "offset", "index")).alias("arrival"),
            F.max("replayed_at").alias("newest_replay"),
        )
        .orderBy("commit_ts", "arrival")
        .collect()
    )
