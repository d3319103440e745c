"""What gold has published: the windows of each feed, with the tables' states and definitions.

Append-only: the newest line is the state.

    ops.windows       one line a published watermark: each table's Delta table and version, TSO, why it stands still,
                      and the definitions that are new in the window
    ops.definitions   view: the history of every table's definition, by the commit_ts from which it holds

One append publishes a window, so that it is there whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_codec.tso import time_of
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.planning.published_state import Definition, Published, Recoverable, TableState
from ticdc_lakehouse.planning.stop_reason import StopReason
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.definition import table_from_json, table_to_json
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.sql.text import literal

WINDOWS = "windows"
DEFINITIONS = "definitions"

_TABLE_FIELDS = (
    "database: STRING, table: STRING, name: STRING, data: STRING, version: BIGINT, applied_tso: BIGINT, "
    "ddls: ARRAY<STRING>, reason: STRING, stop: STRING"
)
_RECOVERABLE_FIELDS = "database: STRING, table: STRING, data: STRING, version: BIGINT, dropped_at: BIGINT"
_DEFINITION_FIELDS = (
    "database: STRING, table: STRING, commit_ts: BIGINT, source: STRING, name: STRING, data: STRING, "
    "definition: STRING, named_at: BIGINT"
)
_WINDOW_COLUMNS = f"""
    feed STRING NOT NULL,
    tso BIGINT NOT NULL COMMENT 'published watermark: every change with commit_ts at or below it is in',
    time TIMESTAMP NOT NULL COMMENT 'physical part of tso',
    mode STRING NOT NULL COMMENT 'watermarks; or eventual: tso is the newest commit that was seen, not a watermark',
    from_tso BIGINT NOT NULL COMMENT 'watermark published before; the window is (from_tso, tso]',
    batch BIGINT NOT NULL COMMENT 'last bronze batch that silver had decoded whole',
    published_at TIMESTAMP NOT NULL,
    row_changes BIGINT NOT NULL COMMENT 'row changes of the window, repeats included',
    replays_seen TIMESTAMP COMMENT 'newest replay from quarantine that the window took in',
    tables ARRAY<STRUCT<{_TABLE_FIELDS}>> NOT NULL
        COMMENT 'each table: Delta version of its data, TSO applied to, why it stands still; none after the retention',
    recoverable ARRAY<STRUCT<{_RECOVERABLE_FIELDS}>> NOT NULL
        COMMENT 'tables that TiDB dropped or truncated, as they were then: it can bring them back without sending rows',
    definitions ARRAY<STRUCT<{_DEFINITION_FIELDS}>> NOT NULL
        COMMENT 'definitions that are new in this window; source: file (schema_file), ddl, or wire (row messages alone)'
"""


def create_tables(lake: Lake) -> None:
    """Create the ops table and its view where they are missing."""
    # By feed: the maintenance of one does not stand in the way of another's.
    properties = "PARTITIONED BY (feed) TBLPROPERTIES ('delta.checkpointInterval' = '50')"
    windows = lake.create(
        Layer.OPS, WINDOWS, _WINDOW_COLUMNS, comment="Published watermarks of every feed", properties=properties
    )
    if not lake.exists(Layer.OPS, DEFINITIONS):
        exploded = f"SELECT feed, tso AS published_tso, posexplode(definitions) AS (place, d) FROM {windows}"
        query = f"SELECT feed, published_tso, place, d.* FROM ({exploded})"
        lake.view(Layer.OPS, DEFINITIONS, query, comment="Definitions of every feed's tables, by commit_ts")


def windows_of(lake: Lake, feed: str) -> DataFrame:
    """The lines of ``ops.windows`` of a feed."""
    return lake.spark.table(lake.table(Layer.OPS, WINDOWS)).where(F.col("feed") == feed)


def published(lake: Lake, feed: str, at: int | None = None) -> Published:
    """The newest watermark that ``feed`` has published, or the newest at or below the TSO ``at``."""
    windows = windows_of(lake, feed)
    if at is not None:
        windows = windows.where(F.col("tso") <= at)
    line = windows.drop("definitions").orderBy(F.desc("tso"), F.desc("published_at")).first()
    return Published() if line is None else _published(line)


def _published(line: Row) -> Published:
    return Published(
        tso=line["tso"],
        mode=Mode(line["mode"]),
        batch=line["batch"],
        replays_seen=line["replays_seen"],
        tables={TableName(t["database"], t["table"]): _table_state(t) for t in line["tables"]},
        recoverable=tuple(map(_recoverable, line["recoverable"])),
    )


def _recoverable(line: Row) -> Recoverable:
    name = TableName(line["database"], line["table"])
    return Recoverable(name=name, data=line["data"], version=line["version"], dropped_at=line["dropped_at"])


def _table_state(line: Row) -> TableState:
    return TableState(
        name=line["name"],
        data=line["data"],
        version=line["version"],
        applied_tso=line["applied_tso"],
        ddls=tuple(line["ddls"]),
        stop=None if line["stop"] is None else StopReason.from_json(line["stop"]),
    )


def _stop_texts(stop: StopReason | None) -> tuple[str | None, str | None]:
    return (None, None) if stop is None else (str(stop), stop.to_json())


def publish(
    lake: Lake, feed: str, before: Published, now: Published, found: Iterable[Definition], row_changes: int
) -> None:
    """Append the window's line: from here on readers may see it.

    Raises ConfigError if another run published since ``before`` was read.
    """
    newest = published(lake, feed)
    if (newest.tso, newest.batch, newest.tables) != (before.tso, before.batch, before.tables):
        raise ConfigError(f"feed {feed}: another run published {newest.tso} meanwhile; this one publishes nothing")
    tables = [
        (
            *name,
            s.name,
            s.data,
            s.version,
            s.applied_tso,
            list(s.ddls),
            str(s.stop) if s.stop else None,
            s.stop and s.stop.to_json(),
        )
        for name, s in sorted(now.tables.items())
    ]
    new = [
        (d.table.database, d.table.table, d.commit_ts, d.source, d.name, d.data, table_to_json(d.table), d.named_at)
        for d in found
    ]
    line = (
        feed,
        now.tso,
        time_of(now.tso),
        now.mode.value,
        before.tso,
        now.batch,
        datetime.now(UTC),
        row_changes,
        now.replays_seen,
        tables,
        [(*gone.name, gone.data, gone.version, gone.dropped_at) for gone in now.recoverable],
        new,
    )
    _append(lake, WINDOWS, [line])


def forget_states(lake: Lake, feed: str, before: datetime) -> None:
    """Empty the lines published before a moment of the tables' states: nobody can read them any more, and each run
    reads all lines. Watermarks and definitions stay, they are the feed's history."""
    moment = literal(before.astimezone(UTC).isoformat())
    lake.spark.sql(f"""
        UPDATE {lake.table(Layer.OPS, WINDOWS)}
        SET tables = filter(tables, t -> false), recoverable = filter(recoverable, t -> false)
        WHERE feed = {literal(feed)} AND published_at < TIMESTAMP {moment} AND size(tables) + size(recoverable) > 0""")


def definitions(lake: Lake, feed: str) -> Mapping[str, Definition]:
    """The newest definition of each Delta table of a feed, by the table's name (``TableState.data``)."""
    lines = lake.spark.table(lake.table(Layer.OPS, DEFINITIONS)).where(F.col("feed") == feed)
    whole = F.struct("commit_ts", "source", "name", "data", "definition", "named_at")
    # Several DDLs may share a commit_ts: the last one in the last window's list holds.
    order = F.struct("commit_ts", "published_tso", "place")
    newest = lines.groupBy("data").agg(F.max_by(whole, order).alias("d"))
    return {line["data"]: _definition(line["d"]) for line in newest.collect()}


def names_ever(lake: Lake, feed: str) -> set[str]:
    """The names that views of a feed ever had."""
    lines = lake.spark.table(lake.table(Layer.OPS, DEFINITIONS)).where(F.col("feed") == feed)
    return {line["name"] for line in lines.select("name").distinct().collect()}


def _definition(line: Row) -> Definition:
    return Definition(
        table=table_from_json(line["definition"]),
        commit_ts=line["commit_ts"],
        source=line["source"],
        name=line["name"],
        data=line["data"],
        named_at=line["named_at"],
    )


def _append(lake: Lake, name: str, lines: Sequence[tuple[object, ...]]) -> None:
    table = lake.table(Layer.OPS, name)
    schema = lake.spark.table(table).schema
    lake.spark.createDataFrame(list(lines), schema).coalesce(1).write.format("delta").mode("append").saveAsTable(table)
