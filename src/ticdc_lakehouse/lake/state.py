"""What gold has published: the windows of each feed and the tables' definitions.

Append-only: the newest line is the state.

    ops.windows       one line a published watermark: each table's Delta version, TSO, and why it stands still
    ops.definitions   one line a table definition, by the commit_ts from which it holds

One append publishes a window, so that it is there whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import Row
from pyspark.sql import functions as F

from ticdc_lakehouse.definition import Table, table_from_json, table_to_json
from ticdc_lakehouse.lake.place import Lake, Layer, object_name
from ticdc_lakehouse.tso import time_of

TableName = tuple[str, str]
"""(database, table) as TiDB names them."""

WINDOWS = "windows"
DEFINITIONS = "definitions"

_TABLE_FIELDS = (
    "database: STRING, table: STRING, name: STRING, version: BIGINT, applied_tso: BIGINT, "
    "reason: STRING, final: BOOLEAN"
)
_WINDOW_COLUMNS = f"""
    feed STRING NOT NULL,
    tso BIGINT NOT NULL COMMENT 'published watermark: every change with commit_ts at or below it is in',
    time TIMESTAMP NOT NULL COMMENT 'physical part of tso',
    from_tso BIGINT NOT NULL COMMENT 'watermark published before; the window is (from_tso, tso]',
    batch BIGINT NOT NULL COMMENT 'last bronze batch that silver had decoded whole',
    published_at TIMESTAMP NOT NULL,
    row_changes BIGINT NOT NULL COMMENT 'row changes of the window, repeats included',
    replays_seen TIMESTAMP COMMENT 'newest replay from quarantine that the window took in',
    tables ARRAY<STRUCT<{_TABLE_FIELDS}>> NOT NULL
        COMMENT 'state of every table: Delta version of its data, TSO it is applied to, why it stands still'
"""
_DEFINITION_COLUMNS = """
    feed STRING NOT NULL,
    database STRING NOT NULL,
    table STRING NOT NULL,
    commit_ts BIGINT NOT NULL COMMENT 'TSO from which the definition holds',
    source STRING NOT NULL COMMENT 'file (schema_file), ddl (CREATE TABLE), or wire (the row messages alone)',
    name STRING NOT NULL COMMENT 'name of the table in silver and gold',
    definition STRING NOT NULL COMMENT 'JSON: columns with MySQL types, key',
    recorded_at TIMESTAMP NOT NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """How one table stands at a published watermark."""

    name: str
    """Its name in the lake."""
    version: int
    """Delta version of its data."""
    applied_tso: int
    """Every change up to here is in; below the watermark if the table stands still."""
    reason: str | None = None
    """Why it stands still, None if it does not."""
    final: bool = False
    """True if only a person can set it going again; False if the next run tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The newest published watermark of a feed; all zero before the first."""

    tso: int = 0
    batch: int = -1
    replays_seen: datetime | None = None
    tables: dict[TableName, TableState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A table's definition, from where, since when, and the table's name in the lake."""

    table: Table
    commit_ts: int
    source: str
    name: str


def create_tables(lake: Lake) -> None:
    """Create the ops tables where they are missing."""
    lake.create(Layer.OPS, WINDOWS, _WINDOW_COLUMNS, comment="Published watermarks of every feed", properties=_SMALL)
    lake.create(
        Layer.OPS,
        DEFINITIONS,
        _DEFINITION_COLUMNS,
        comment="Definitions of every feed's tables",
        properties=_SMALL,
    )


_SMALL = "TBLPROPERTIES ('delta.checkpointInterval' = '50')"


def published(lake: Lake, feed: str, at: int | None = None) -> Published:
    """The newest watermark that ``feed`` has published, or the newest at or below the TSO ``at``."""
    windows = lake.spark.table(lake.table(Layer.OPS, WINDOWS)).where(F.col("feed") == feed)
    if at is not None:
        windows = windows.where(F.col("tso") <= at)
    line = windows.orderBy(F.desc("tso"), F.desc("published_at")).first()
    return Published() if line is None else _published(line)


def _published(line: Row) -> Published:
    return Published(
        tso=line["tso"],
        batch=line["batch"],
        replays_seen=line["replays_seen"],
        tables={(t["database"], t["table"]): _table_state(t) for t in line["tables"]},
    )


def _table_state(line: Row) -> TableState:
    return TableState(
        name=line["name"],
        version=line["version"],
        applied_tso=line["applied_tso"],
        reason=line["reason"],
        final=line["final"],
    )


def publish(lake: Lake, feed: str, before: Published, now: Published, row_changes: int) -> None:
    """Append the window's line: from here on readers may see it."""
    tables = [
        (database, table, s.name, s.version, s.applied_tso, s.reason, s.final)
        for (database, table), s in sorted(now.tables.items())
    ]
    published_at = datetime.now(UTC)
    line = (feed, now.tso, time_of(now.tso), before.tso, now.batch, published_at, row_changes, now.replays_seen, tables)
    _append(lake, WINDOWS, [line])


def definitions(lake: Lake, feed: str) -> dict[TableName, Definition]:
    """The newest definition of each table of a feed."""
    lines = lake.spark.table(lake.table(Layer.OPS, DEFINITIONS)).where(F.col("feed") == feed)
    newest = lines.groupBy("database", "table").agg(
        F.max_by(F.struct("commit_ts", "source", "name", "definition"), "commit_ts").alias("d")
    )
    return {(database, table): _definition(d) for database, table, d in newest.collect()}


def _definition(line: Row) -> Definition:
    return Definition(
        table=table_from_json(line["definition"]),
        commit_ts=line["commit_ts"],
        source=line["source"],
        name=line["name"],
    )


def record_definitions(lake: Lake, feed: str, found: Iterable[Definition]) -> None:
    """Append definitions to the history."""
    lines = [
        (
            feed,
            d.table.database,
            d.table.table,
            d.commit_ts,
            d.source,
            d.name,
            table_to_json(d.table),
            datetime.now(UTC),
        )
        for d in found
    ]
    if lines:
        _append(lake, DEFINITIONS, lines)


def new_names(lake: Lake, feed: str) -> Callable[[TableName], str]:
    """Gives a new table's name in silver and gold: ``<feed>_<database>_<table>``, with a hash if that is taken."""
    taken: dict[str, tuple[str, str, str]] = {}

    def name_of(table: TableName) -> str:
        if not taken:  # most windows have no new table, and do not ask
            taken.update(_names(lake))
        plain = object_name(feed, *table)
        # A table `t__data` would stand where the rows of a table `t` lie.
        free = taken.get(plain, (feed, *table)) == (feed, *table) and not plain.endswith("__data")
        name = plain if free else object_name(feed, *table, "\0")
        taken[name] = (feed, *table)
        return name

    return name_of


def _names(lake: Lake) -> dict[str, tuple[str, str, str]]:
    """Feed, database and table by their name in the lake."""
    lines = lake.spark.table(lake.table(Layer.OPS, DEFINITIONS)).select("name", "feed", "database", "table").distinct()
    return {line["name"]: (line["feed"], line["database"], line["table"]) for line in lines.collect()}


def _append(lake: Lake, name: str, lines: Sequence[tuple[object, ...]]) -> None:
    table = lake.table(Layer.OPS, name)
    schema = lake.spark.table(table).schema
    lake.spark.createDataFrame(list(lines), schema).coalesce(1).write.format("delta").mode("append").saveAsTable(table)
