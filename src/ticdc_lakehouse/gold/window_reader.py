"""What a window (W_prev, W] of silver holds, table by table, before anything is applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ticdc_codec.event import Kind, Op, columns_from
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.planning.barriers import Barriers, barriers, lagging_names
from ticdc_lakehouse.planning.published_state import Definition, Published
from ticdc_lakehouse.planning.window import DdlEvent, RowGroup, Window, statements_of
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.silver import decode_stream
from ticdc_lakehouse.sql.text import is_table_sql

_DDL_IDENTITY = ("commit_ts", "database", "table", "query")


def read_window(
    lake: Lake, feed: str, before: Published, tso: int, *, has_ddls: bool = True, has_replays: bool = True
) -> Window:
    """The window after the published state ``before``, up to ``tso``; tables that lag behind are read from where they
    are blocked. What it surely has not, DDLs or replays, is not looked for."""
    events = lake.spark.table(lake.table(Layer.SILVER, decode_stream.events_table(feed)))
    replays = replayed_since(before) if has_replays else F.lit(False)
    return _window(events, before, tso, F.col("commit_ts") > before.tso, replays, has_ddls=has_ddls)


def read_arrivals(
    lake: Lake, feed: str, before: Published, tso: int, batch: int, known: Iterable[Definition]
) -> Window:
    """The events of the bronze batches after those of the published state ``before``, up to ``batch``, whatever their
    commit_ts. Rows are also parted at the DDLs that the ``known`` definitions come from."""
    events = lake.spark.table(lake.table(Layer.SILVER, decode_stream.events_table(feed)))
    ordered = events.withColumn("commit_ts", F.expr(decode_stream.COMMIT_ORDER)).where(F.col("batch") <= batch)
    new, replays = F.col("batch") > before.batch, replayed_since(before)
    return _window(ordered, before, tso, new, replays, past=tuple(known), seen=before.batch)


def _window(
    events: DataFrame,
    before: Published,
    tso: int,
    new: SparkColumn,
    replays: SparkColumn,
    *,
    has_ddls: bool = True,
    past: Sequence[Definition] = (),
    seen: int | None = None,
) -> Window:
    """``seen`` is the bronze batch after which a DDL is new, whatever its commit_ts."""
    due = (F.col("commit_ts") >= first_unapplied(before)) | replays
    ddls = events.where((F.col("kind") == Kind.DDL.value) & (F.col("commit_ts") <= tso))
    lines = _ddl_lines(ddls.where(due if seen is None else due | new)) if has_ddls else []
    late = _first_deliveries(ddls, lines, before.tso, seen) if seen is not None else frozenset()
    found = tuple(_ddl_event(line, late=_identity(line) in late) for line in lines)
    unapplied = new | _unapplied(before, found) | replays
    rows = (F.col("kind") == Kind.ROW.value) & (F.col("commit_ts") <= tso) & unapplied
    groups = _row_lines(events.where(rows), barriers(found, before, past))
    replayed = [line["newest_replay"] for line in (*groups, *lines) if line["newest_replay"] is not None]
    return Window(
        rows=_by_table(groups),
        ddls=found,
        replays_seen=max(replayed, default=before.replays_seen),
        row_changes=sum(line["rows"] for line in groups),
    )


def first_unapplied(before: Published) -> int:
    """The lowest commit_ts of a DDL that some table may not have applied. A DDL at exactly the published watermark may
    arrive after it (wire.md 2.1)."""
    applied = (state.applied_tso for state in before.tables.values() if not state.dropped)
    return min(before.tso, min(applied, default=before.tso))


def replayed_since(before: Published) -> SparkColumn:
    """Whether an event was decoded again from quarantine since the published state."""
    replayed_at, seen = F.col("replayed_at"), before.replays_seen
    return replayed_at.isNotNull() if seen is None else replayed_at > F.lit(seen)


def _unapplied(before: Published, ddls: Iterable[DdlEvent]) -> SparkColumn:
    """Rows that tables below the watermark have yet to take."""
    condition = F.lit(False)
    for name, names in lagging_names(ddls, before).items():
        of_table = _any([F.expr(is_table_sql(each)) for each in sorted(names)])
        condition = condition | (of_table & (F.col("commit_ts") > before.tables[name].applied_tso))
    return condition


def _any(conditions: Sequence[SparkColumn]) -> SparkColumn:
    result = conditions[0]
    for condition in conditions[1:]:
        result = result | condition
    return result


def _row_lines(rows: DataFrame, parted: Barriers) -> list[Row]:
    """Rows by table, description and the barriers that they lie between."""
    rows_of_groups = (
        with_passed(rows, parted)
        .groupBy(
            "database",
            "table",
            "columns",
            (F.col("op") != Op.DELETE.value).alias("whole"),
            F.coalesce("handle_only", F.lit(False)).alias("handle_only"),
            F.col("handle_key").isNotNull().alias("keyed"),
            "passed",
        )
        .agg(
            F.min("commit_ts").alias("first"),
            F.max("commit_ts").alias("last"),
            F.count("*").alias("rows"),
            F.max("replayed_at").alias("newest_replay"),
        )
        .collect()
    )
    return sorted(rows_of_groups, key=lambda row: row["first"])


def with_passed(rows: DataFrame, parted: Barriers) -> DataFrame:
    """The rows with ``passed``, the number of barriers below each: of all tables', which parts more than needed."""
    every = sorted({at for some in (*parted.tables.values(), *parted.databases.values()) for at in some})
    below = F.size(F.filter(F.array(*map(F.lit, every)), lambda barrier: barrier < F.col("commit_ts")))
    return rows.withColumn("passed", below if every else F.lit(0))


def _by_table(lines: list[Row]) -> dict[TableName, tuple[RowGroup, ...]]:
    found: dict[TableName, list[RowGroup]] = {}
    for line in lines:
        name = TableName(line["database"], line["table"])
        group = RowGroup(
            name=name,
            columns=columns_from(line["columns"]),
            whole=line["whole"],
            handle_only=line["handle_only"],
            keyed=line["keyed"],
            first=line["first"],
            last=line["last"],
            rows=line["rows"],
            replayed=line["newest_replay"] is not None,
        )
        found.setdefault(TableName(line["database"], line["table"]), []).append(group)
    return {name: tuple(groups) for name, groups in found.items()}


def _ddl_lines(ddls: DataFrame) -> list[Row]:
    """Each DDL once, in commit order, equal commit_ts in the order of arrival."""
    arrival = F.min(F.struct("topic", "partition", "offset", "index")).alias("arrival")
    rows = ddls.groupBy(*_DDL_IDENTITY).agg(arrival, F.max("replayed_at").alias("newest_replay")).collect()
    return sorted(rows, key=lambda row: (row["commit_ts"], row["arrival"]))


def _identity(line: Row) -> tuple[object, ...]:
    return tuple(line[name] for name in _DDL_IDENTITY)


def _first_deliveries(ddls: DataFrame, lines: Sequence[Row], tso: int, seen: int) -> Set[tuple[object, ...]]:
    """Those of the DDLs below ``tso`` that did not come up to the bronze batch ``seen``."""
    below = {_identity(line) for line in lines if line["commit_ts"] < tso}
    if not below:
        return below
    earlier = ddls.where((F.col("batch") <= seen) & F.col("commit_ts").isin([identity[0] for identity in below]))
    return below - {tuple(line) for line in earlier.select(*_DDL_IDENTITY).distinct().collect()}


def _ddl_event(line: Row, *, late: bool) -> DdlEvent:
    return DdlEvent(
        commit_ts=line["commit_ts"],
        database=line["database"],
        table=line["table"],
        query=line["query"],
        statements=statements_of(line["query"], line["database"], line["table"]),
        topic=line["arrival"]["topic"],
        late=late,
    )
