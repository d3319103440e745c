"""The Delta tables of what gold has published, and their rows as values.

    ops.windows        one short row a window: the commit point. Rows of the other tables count only if the window of
                       their number and run is here
    ops.table_states   one row per table and window in which its state changed; the window ``base`` has all tables
    ops.definitions    one row per definition of a table, in the window that made it known
    ops.topics         one row per topic and table of which the topic delivered a row change or DDL
    ops.overrides      operators' overrides of blocked tables (`overrides`)

All are append-only, except for what maintenance deletes. A run writes the window's row last, so that the rows of a run
that died are never read. Rows of ``ops.topics`` count whoever wrote them: they say what Kafka has delivered, which
stays true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Lake, Layer, Reader, Values
from ticdc_lakehouse.planning.published_state import Definition, Origin, Recoverable, TableState
from ticdc_lakehouse.planning.stop_reason import StopReason
from ticdc_lakehouse.schema.definition import table_from_json, table_to_json
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.sql.text import folded_sql, literal, rows_sql

WINDOWS = "windows"
TABLE_STATES = "table_states"
DEFINITIONS = "definitions"
OVERRIDES = "overrides"
TOPICS = "topics"
_LEFT_OUT = "the feed's filter leaves it out"
IS_LEFT_OUT = f"removed AND block_reason = {literal(_LEFT_OUT)}"
"""SQL condition on the rows of `left_out_row`."""
FORMAT = 2
"""Version of what a lake stores. Windows of earlier builds have no column for it."""

_IDENTITY = """
    feed STRING NOT NULL COMMENT 'changefeed, as its file is named',
    number BIGINT NOT NULL COMMENT 'number of the window: 1, 2, 3 …',
    run STRING NOT NULL COMMENT 'UUID of the run that wrote it; it counts if ops.windows has this number with this run',
"""
_WINDOW_COLUMNS = f"""{_IDENTITY}
    base BIGINT NOT NULL COMMENT 'newest window up to this one that has the states of all tables in ops.table_states',
    tso BIGINT NOT NULL COMMENT 'published watermark: every change with commit_ts at or below it is applied',
    time TIMESTAMP NOT NULL COMMENT 'physical part of tso',
    mode STRING NOT NULL COMMENT 'watermarks; or eventual: tso is the newest commit that was seen, not a watermark',
    time_zone STRING COMMENT 'time_zone of the feed file, in which TIMESTAMPs and keys were read',
    from_tso BIGINT NOT NULL COMMENT 'watermark published before; the window is (from_tso, tso]',
    batch BIGINT NOT NULL COMMENT 'last bronze batch that silver had decoded completely',
    published_at TIMESTAMP NOT NULL COMMENT 'when the window was published',
    row_changes BIGINT NOT NULL COMMENT 'row changes of the window, duplicates included',
    replays_seen TIMESTAMP COMMENT 'time of the newest replay from quarantine that the window applied',
    format INT NOT NULL COMMENT 'version of the stored state: 2 orders the values in a key by the names of its columns'
"""
_STATE_COLUMNS = f"""{_IDENTITY}
    database STRING NOT NULL COMMENT 'database in TiDB',
    table STRING NOT NULL COMMENT 'table in TiDB',
    dropped_at BIGINT COMMENT 'commit_ts of the DROP or TRUNCATE of a table that TiDB can bring back; else NULL',
    removed BOOLEAN NOT NULL COMMENT 'true: the table does not exist from this window on',
    name STRING COMMENT 'name of its views',
    data STRING COMMENT 'stable id of its live table (property ticdc.id)',
    version BIGINT COMMENT 'Delta version of its live table; -1 if it has none',
    applied_tso BIGINT COMMENT 'TSO up to which every change is applied; NULL: the watermark',
    ddls ARRAY<STRING> COMMENT 'DDLs at exactly applied_tso that are applied',
    blocked_at BIGINT COMMENT 'TSO at which the table is blocked; NULL if it is not',
    block_reason STRING COMMENT 'why it is blocked, or dropped but kept; if removed, that the feed leaves it out',
    stop STRING COMMENT 'why it is blocked, as JSON',
    defined_in BIGINT COMMENT 'number of the window with its newest definition in ops.definitions',
    defined_by STRING COMMENT 'run of that window'
"""
_DEFINITION_COLUMNS = f"""{_IDENTITY}
    place INT NOT NULL COMMENT 'order of the definitions of one window',
    database STRING NOT NULL COMMENT 'database in TiDB',
    table STRING NOT NULL COMMENT 'table in TiDB',
    commit_ts BIGINT NOT NULL COMMENT 'TSO from which on the definition is valid',
    source STRING NOT NULL COMMENT 'origin: file (schema_file), ddl, export (load), or wire (row messages only)',
    name STRING NOT NULL COMMENT 'name of the views of the table',
    data STRING NOT NULL COMMENT 'stable id of the live table (property ticdc.id)',
    definition STRING NOT NULL COMMENT 'columns, key and partitions, as JSON',
    named_at BIGINT NOT NULL COMMENT 'commit_ts since which rows of this name are rows of this table; 0 if always'
"""
_OVERRIDE_COLUMNS = f"""{_IDENTITY}
    database STRING NOT NULL COMMENT 'database in TiDB',
    table STRING NOT NULL COMMENT 'table in TiDB, by its name then',
    data STRING COMMENT 'stable id of its live table (property ticdc.id); NULL if it had none',
    action STRING NOT NULL COMMENT 'skip-ddl, resume or repair; of one commit_ts the largest number is valid',
    commit_ts BIGINT NOT NULL COMMENT 'commit_ts of the DDL that blocked the table; else TSO of its block or repair',
    reason STRING NOT NULL COMMENT 'reason that the operator gave',
    decided_at TIMESTAMP NOT NULL COMMENT 'when the operator gave it'
"""
_TOPIC_COLUMNS = """
    feed STRING NOT NULL COMMENT 'changefeed, as its file is named',
    topic STRING NOT NULL COMMENT 'Kafka topic',
    database STRING NOT NULL COMMENT 'database in TiDB',
    table STRING NOT NULL COMMENT 'table in TiDB',
    number BIGINT NOT NULL COMMENT 'window that found the first row change or DDL of the table in the topic'
"""
_TABLES = {
    WINDOWS: (_WINDOW_COLUMNS, "Published windows of every feed: the commit point of gold"),
    TABLE_STATES: (_STATE_COLUMNS, "The state of each table, a row for each window in which it changed"),
    DEFINITIONS: (_DEFINITION_COLUMNS, "Definitions of every feed's tables, by commit_ts"),
    OVERRIDES: (
        _OVERRIDE_COLUMNS,
        "Operators' overrides of blocked tables (skip-ddl, resume), and their repairs of rows",
    ),
    TOPICS: (_TOPIC_COLUMNS, "Tables of which each topic has delivered a row change or DDL"),
}
NAMES = tuple(_TABLES)
# Each window appends a small file: from 50 on they are compacted. History is in the rows, so old versions may go.
_PROPERTIES = (
    "PARTITIONED BY (feed) TBLPROPERTIES ('delta.checkpointInterval' = '50', "
    "'delta.autoOptimize.autoCompact' = 'true', 'delta.logRetentionDuration' = 'interval 1 days', "
    "'delta.deletedFileRetentionDuration' = 'interval 1 days')"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """What ties a row to its window."""

    feed: str
    number: int
    run: str

    def row(self, **values: object) -> dict[str, object]:
        """Returns a row of one of the tables."""
        return {"feed": self.feed, "number": self.number, "run": self.run, **values}


def create_tables(lake: Lake) -> None:
    """Creates the tables that are missing. Raises ConfigError for a lake of the first version."""
    check_format(lake)
    for name, (columns, comment) in _TABLES.items():
        if not lake.exists(Layer.OPS, name):
            lake.create(Layer.OPS, name, columns, comment=comment, properties=_PROPERTIES)


def check_format(lake: Reader) -> None:
    """Raises ConfigError for a lake of version 0.1 of this package, or of a build before 0.2.0: what this version would
    write does not fit what they stored."""
    if lake.exists(Layer.OPS, WINDOWS) and "format" not in lake.columns(Layer.OPS, WINDOWS):
        windows = lake.table(Layer.OPS, WINDOWS)
        raise ConfigError(
            f"{windows}: written by a version before 0.2.0, which this version does not read: use a new lake "
            "folder (`--lake`) or new schemas, and run the feeds from their topics' beginning or from an export"
        )


def check_not_newer(window: Values) -> None:
    """Raises ConfigError for a window that a later version of this package published."""
    if window["format"] > FORMAT:
        raise ConfigError(
            f"feed {window['feed']}: window {window['number']} was published by a newer version of ticdc-lakehouse "
            f"(format {window['format']}, this one knows {FORMAT}): install that version"
        )


def rows_of(lake: Lake, name: str, feed: str) -> DataFrame:
    """Returns a feed's rows of one of the tables."""
    return lake.spark.table(lake.table(Layer.OPS, name)).where(F.col("feed") == feed)


def published_states(lake: Lake, feed: str) -> DataFrame:
    """Returns a feed's table states, without those of runs that died before they wrote their window's row."""
    states, windows = rows_of(lake, TABLE_STATES, feed), rows_of(lake, WINDOWS, feed)
    return states.join(windows, ["feed", "number", "run"], "left_semi")


def values_of(lake: Reader, name: str, feed: str, where: str, columns: str = "*") -> list[Values]:
    """Returns a feed's rows of one of the tables that meet an SQL condition, or what ``columns`` makes of them."""
    table = lake.table(Layer.OPS, name)
    return lake.rows(f"SELECT {columns} FROM {table} WHERE feed = {literal(feed)} AND {where}")


def append(
    lake: Lake, name: str, rows: Sequence[Mapping[str, object]], *, transaction: tuple[str, int] | None = None
) -> None:
    """Appends rows; with ``transaction`` (application, version) Delta skips what that application has written already.

    Raises Delta's ConcurrentTransactionException if another writer commits the same transaction meanwhile.
    """
    table = lake.table(Layer.OPS, name)
    fields = ", ".join(f"{name}: {kind}" for name, kind in lake.spark.table(table).dtypes)
    writer = lake.spark.sql(rows_sql(rows, fields)).write.format("delta").mode("append")
    if transaction is not None:
        application, version = transaction
        writer = writer.option("txnAppId", application).option("txnVersion", version)
    writer.saveAsTable(table)


def state_row(
    identity: Identity, name: TableName, state: TableState, definition: Definition | None, tso: int
) -> dict[str, object]:
    """Returns the row of a table's state at the watermark ``tso``; ``definition`` is the newest of its rows. It is the
    same in the next window if the table got no changes there."""
    return identity.row(
        database=name[0],
        table=name[1],
        removed=False,
        name=state.lake_name,
        data=state.stable_id,
        version=state.version,
        applied_tso=None if state.applied_tso == tso else state.applied_tso,
        ddls=list(state.ddls),
        blocked_at=state.applied_tso if state.blocked else None,
        **({} if state.stop is None else {"block_reason": str(state.stop), "stop": state.stop.to_json()}),
        **_defined(definition),
    )


def recoverable_row(identity: Identity, gone: Recoverable, definition: Definition | None) -> dict[str, object]:
    """Returns the row of a table that TiDB dropped and can restore."""
    return identity.row(
        database=gone.name[0],
        table=gone.name[1],
        dropped_at=gone.dropped_at,
        removed=False,
        data=gone.stable_id,
        version=gone.version,
        **_defined(definition),
    )


def removed_row(identity: Identity, name: TableName, dropped_at: int | None) -> dict[str, object]:
    """Returns the row that ends a table's states."""
    return identity.row(database=name[0], table=name[1], dropped_at=dropped_at, removed=True)


def left_out_row(identity: Identity, name: TableName, state: TableState) -> dict[str, object]:
    """Returns the row that ends the states of a table that the feed's filter leaves out. Maintenance keeps it: it shows
    which row changes gold has not applied."""
    return removed_row(identity, name, None) | {"applied_tso": state.applied_tso, "block_reason": _LEFT_OUT}


def _defined(definition: Definition | None) -> dict[str, object]:
    if definition is None:
        return {}
    return {"defined_in": definition.number, "defined_by": definition.run}


def state_from(row: Values, tso: int) -> TableState:
    """Inverse of `state_row`."""
    return TableState(
        lake_name=row["name"],
        stable_id=row["data"],
        version=row["version"],
        applied_tso=tso if row["applied_tso"] is None else row["applied_tso"],
        ddls=tuple(row["ddls"]),
        stop=None if row["stop"] is None else StopReason.from_json(row["stop"]),
    )


def recoverable_from(row: Values) -> Recoverable:
    """Inverse of `recoverable_row`."""
    name = TableName(row["database"], row["table"])
    return Recoverable(name=name, stable_id=row["data"], version=row["version"], dropped_at=row["dropped_at"])


def definition_row(identity: Identity, place: int, definition: Definition) -> dict[str, object]:
    """Returns the row of a definition, the ``place``-th that is new in its window."""
    table = definition.table
    return identity.row(
        place=place,
        database=table.database,
        table=table.table,
        commit_ts=definition.commit_ts,
        source=definition.origin.value,
        name=definition.lake_name,
        data=definition.stable_id,
        definition=table_to_json(table),
        named_at=definition.named_at,
    )


def definition_from(row: Values) -> Definition:
    """Inverse of `definition_row`."""
    return Definition(
        table=table_from_json(row["definition"]),
        commit_ts=row["commit_ts"],
        origin=Origin(row["source"]),
        lake_name=row["name"],
        stable_id=row["data"],
        named_at=row["named_at"],
        number=row["number"],
        run=row["run"],
    )


def topic_rows(identity: Identity, topics: Mapping[str, Iterable[TableName]]) -> list[dict[str, object]]:
    """Returns the rows of tables that are new in their topics."""
    return [
        {"feed": identity.feed, "topic": topic, "database": name[0], "table": name[1], "number": identity.number}
        for topic, names in topics.items()
        for name in names
    ]


def topics_from(rows: Iterable[Values]) -> dict[str, frozenset[TableName]]:
    """Inverse of `topic_rows`, for all that were ever written."""
    found: dict[str, set[TableName]] = {}
    for row in rows:
        found.setdefault(row["topic"], set()).add(TableName(row["database"], row["table"]))
    return {topic: frozenset(names) for topic, names in found.items()}


def newest_states_sql(lake: Lake) -> str:
    """Returns SQL of the newest published state of each table of every feed, with the columns of
    ``ops.table_states``."""
    windows, states = lake.table(Layer.OPS, WINDOWS), lake.table(Layer.OPS, TABLE_STATES)
    return f"""
        SELECT * EXCEPT (age, base, applied_tso, tso), coalesce(applied_tso, tso) AS applied_tso FROM (
            SELECT s.*, base, tso, row_number() OVER (
                PARTITION BY feed, {folded_sql("database")}, {folded_sql("table")}, dropped_at
                ORDER BY number DESC) AS age
            FROM {states} s LEFT SEMI JOIN {windows} w USING (feed, number, run)
            JOIN (SELECT feed, max_by(base, number) AS base, max_by(tso, number) AS tso
                  FROM {windows} GROUP BY feed) USING (feed)
            WHERE number >= base
        ) WHERE age = 1 AND NOT removed AND dropped_at IS NULL"""


def definitions_sql(lake: Lake, feed: str | None = None) -> str:
    """Returns SQL of the published definitions of a feed, or of all, with the columns of ``ops.definitions``."""
    windows, definitions = lake.table(Layer.OPS, WINDOWS), lake.table(Layer.OPS, DEFINITIONS)
    where = "" if feed is None else f"WHERE d.feed = {literal(feed)}"
    return f"SELECT d.* FROM {definitions} d LEFT SEMI JOIN {windows} w USING (feed, number, run) {where}"
