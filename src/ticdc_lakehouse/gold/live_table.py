"""Live tables: the Delta table of each TiDB table, for everybody to read.

    live.<name>    the table's columns, then _ticdc_commit_ts, _ticdc_irregular, _ticdc_key

Every Delta version is the table as TiDB held it at the TSO in its commit's metadata (``live_commits``); not in mode
eventual, where rows are as new as what had arrived.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_codec.mysql_type import Family
from ticdc_codec.name_case import fold
from ticdc_lakehouse.catalog import Lake, Layer, Reader
from ticdc_lakehouse.error_text import first_line
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, DELETED, KEY, OWN_COLUMNS
from ticdc_lakehouse.gold.state import names_ever
from ticdc_lakehouse.log import warn
from ticdc_lakehouse.planning.naming import dropped_name, is_internal, schema_part
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.typed_columns import IRREGULAR, TypedColumn, typed_columns

ID, FEED = "ticdc.id", "ticdc.feed"
"""Properties of a live table: its stable id (``TableState.stable_id``) and its feed, which a RENAME does not change."""

_ABANDONED_AFTER = timedelta(days=1)
_MOST_CLUSTERING_COLUMNS = 4
_WITHOUT_RANGES = (Family.BINARY, Family.JSON, Family.VECTOR, Family.OTHER)
"""Types for whose values Delta keeps no minimum and maximum that could skip a file."""
_DERIVED_PROPERTIES = (
    "delta.columnMapping.maxColumnId",
    "delta.dataSkippingStatsColumns",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
    "delta.rowTracking.materializedRowIdColumnName",
)
"""Properties that Delta derives, or that follow from the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveColumn:
    """A column of a live table as SQL declares it."""

    name: str
    spark_type: str
    comment: str

    @property
    def declaration(self) -> str:
        """Name, type and comment."""
        return f"{quoted(self.name)} {self.spark_type} COMMENT {literal(self.comment)}"


def live_columns(table: Table, *, tombstones: bool) -> list[LiveColumn]:
    """Returns all columns of a live table: the table's, then gold's own."""
    own = (COMMIT_TS, IRREGULAR, KEY, *((DELETED,) if tombstones else ()))
    return [*map(_column, typed_columns(table)), *map(_own_column, own)]


def _column(column: TypedColumn) -> LiveColumn:
    return LiveColumn(name=column.name, spark_type=column.spark_type, comment=column.comment)


def _own_column(name: str) -> LiveColumn:
    spark_type, comment = OWN_COLUMNS[name]
    return LiveColumn(name=name, spark_type=spark_type, comment=comment)


def _clustering(table: Table) -> tuple[str, ...]:
    """Returns the columns by which Delta lays a live table's rows out: the key's, or gold's key where Delta cannot."""
    columns = {fold(column.name): column for column in table.columns}
    key = [columns[fold(name)] for name in table.key]
    fits = 0 < len(key) <= _MOST_CLUSTERING_COLUMNS and all(map(_has_statistics, key))
    return tuple(column.name for column in key) if fits else (KEY,)


def _has_statistics(column: ColumnDefinition) -> bool:
    # Delta's property that lists such columns takes names apart at commas and dots.
    return column.type.family not in _WITHOUT_RANGES and not column.virtual and column.name.isidentifier()


def layout_sql(table: Table, columns: Iterable[LiveColumn], properties: Mapping[str, str]) -> str:
    """Returns the clauses of CREATE and REPLACE TABLE after the columns: clustering, comment, properties."""
    columns, clustered = tuple(columns), _clustering(table)
    with_statistics = ",".join(quoted(name) for name in dict.fromkeys((*clustered, COMMIT_TS, KEY)))
    listed = properties_sql({**properties, "delta.dataSkippingStatsColumns": with_statistics})
    # What `sql.text.literal` says of CLUSTER BY cannot be avoided in names: such a table is not clustered.
    clusters = all(ord(char) < 2**16 for column in columns for char in column.name)
    clustering = f"CLUSTER BY ({', '.join(map(quoted, clustered))})" if clusters else ""
    return f"{clustering} COMMENT {_comment_sql(table, columns)} TBLPROPERTIES ({listed})"


def _comment_sql(table: Table, columns: Iterable[LiveColumn]) -> str:
    return literal(f"TiDB table {table.database}.{table.table}; {_promise(columns)}")


def _promise(columns: Iterable[LiveColumn]) -> str:
    if any(column.name == DELETED for column in columns):  # mode eventual
        return f"rows are as new as what had arrived, at no common TSO; deleted ones stay, marked in {DELETED}"
    return "each version is the table at its commit's TSO"


def create_live_table(
    lake: Lake,
    name: str,
    table: Table,
    *,
    stable_id: str,
    config: GoldConfig,
    rows: DataFrame | None = None,
) -> None:
    """Creates a table's live table in one commit: with these rows, which have its columns, or empty."""
    columns = live_columns(table, tombstones=config.mode is Mode.EVENTUAL)
    clauses = layout_sql(table, columns, _first_properties(table, stable_id, config))
    created, where = f"CREATE TABLE {lake.table(Layer.LIVE, name)}", lake.location(Layer.LIVE, name)
    with lake.creating(Layer.LIVE, name):  # another feed, which this one's lock does not hold, may take the name, too
        if rows is None:
            declared = ", ".join(column.declaration for column in columns)
            lake.spark.sql(f"{created} ({declared}) USING delta {clauses} {where}")
        else:
            typed = rows.select(*(F.col(quoted(c.name)).cast(c.spark_type).alias(c.name) for c in columns))
            with temporary_view(lake, commented(typed, columns)) as source:
                lake.spark.sql(f"{created} USING delta {clauses} {where} AS SELECT * FROM {source}")
    if lake.on_databricks:
        _tag(lake, lake.table(Layer.LIVE, name), config.feed, table)


def update_comment(lake: Lake, config: GoldConfig, name: str, table: Table) -> None:
    """Makes the comment and tags of a live table, which stay as they are where it is renamed, name the table of TiDB
    that it is. No row changes."""
    live, columns = lake.table(Layer.LIVE, name), live_columns(table, tombstones=config.mode is Mode.EVENTUAL)
    lake.spark.sql(f"COMMENT ON TABLE {live} IS {_comment_sql(table, columns)}")
    if lake.on_databricks:
        _tag(lake, live, config.feed, table)


def _first_properties(table: Table, stable_id: str, config: GoldConfig) -> dict[str, str]:
    """Returns the properties with which a live table is created."""
    return {
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "true",
        "delta.enableTypeWidening": "true",
        # An ALTER TABLE may add the first DATETIME, and Delta enables TIMESTAMP_NTZ only for tables that declare it.
        "delta.feature.timestampNtz": "supported",
        **config.table_properties(table.database, table.table),
        **retention_properties(config.retention_days),
        ID: stable_id,
        FEED: config.feed,
    }


def drop_unpublished(lake: Lake, name: str, feed: str) -> None:
    """Drops the live table that a run of the feed left when it died before it published: the table may have had other
    columns then.

    Raises ConfigError where another feed took the name: both began at once, and neither had published it.
    """
    if not lake.exists(Layer.LIVE, name):
        return
    other = lake.property(Layer.LIVE, name, FEED)
    if other != feed:
        raise ConfigError(
            f"feed {feed}: live table {name} is of {f'feed {other}' if other else 'something else'}, which took the "
            "name meanwhile: run gold again when that one has published, and the table gets another name"
        )
    lake.drop(Layer.LIVE, name)


def commented(rows: DataFrame, columns: Sequence[LiveColumn]) -> DataFrame:
    """Returns the rows with the columns in this order and their comments: CREATE and REPLACE TABLE … AS SELECT take the
    comments from the query's columns."""
    return rows.select(*(F.col(quoted(c.name)).alias(c.name, metadata={"comment": c.comment}) for c in columns))


@contextmanager
def temporary_view(lake: Lake, rows: DataFrame) -> Iterator[str]:
    """Creates a temporary view of rows, and yields its name, which is unique: other tables are written in this session
    at the same time."""
    name = f"_ticdc_rows_{uuid4().hex}"
    rows.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        lake.spark.catalog.dropTempView(name)


def _tag(lake: Lake, live: str, feed: str, table: Table) -> None:
    """Tags a live table in Unity Catalog with its feed and database, by which people find tables and policies choose
    them. This makes no version of the table; where tags are not allowed, the table has none, and nothing
    else depends on them."""
    try:
        lake.spark.sql(tags_sql(live, feed, table))
    except PySparkException as error:
        name = f"{table.database}.{table.table}"
        warn("gold", "table not tagged", feed=feed, table=name, reason=first_line(error))


def tags_sql(live: str, feed: str, table: Table) -> str:
    """Returns the statement that tags a live table; a tag's value has at most 256 characters.

    https://docs.databricks.com/sql/language-manual/sql-ref-syntax-ddl-alter-table-tags
    """
    tags = {"ticdc_feed": feed, "ticdc_database": table.database[:256]}
    return f"ALTER TABLE {live} SET TAGS ({', '.join(f'{literal(k)} = {literal(v)}' for k, v in tags.items())})"


def given_properties(lake: Lake, table: str) -> dict[str, str]:
    """Returns the properties of a live table that its replacement must keep."""
    properties = lake.spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]["properties"]
    return {name: value for name, value in properties.items() if name not in _DERIVED_PROPERTIES}


def kept_days(retention_days: int) -> int:
    """Returns the days for which Delta keeps versions and files: a state is readable for the retention time after the
    next one took its place, and maintenance may run a week later."""
    return retention_days + 8


def retention_properties(retention_days: int) -> dict[str, str]:
    """Returns the table properties by which Delta keeps what stays readable."""
    names = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
    return dict.fromkeys(names, f"interval {kept_days(retention_days)} days")


def properties_sql(properties: Mapping[str, str]) -> str:
    """Returns table properties as SQL lists them."""
    return ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())


def live_names(tables: Iterable[TableState]) -> dict[str, str]:
    """Returns the names of the published live tables by stable id; another one is called `dropped_name`."""
    return {state.stable_id: state.lake_name for state in tables if state.has_live_table}


def live_name(names: Mapping[str, str], stable_id: str) -> str:
    """Returns the name that the live table with this stable id has where ``names`` are published."""
    return names.get(stable_id, dropped_name(stable_id))


def published_name(lake: Reader, feed: str, name: str, names: Mapping[str, str]) -> str | None:
    """Returns the published name of the live table that has this name now; None if none of the feed has it."""
    stable_id = id_of(lake, name, feed)
    return None if stable_id is None else live_name(names, stable_id)


def misnamed(
    lake: Lake, feed: str, names: Mapping[str, str], known: Iterable[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Returns two groups of a feed's live tables, which a run leaves that dies between publishing and renaming: by
    present name, the published name of each table that has another one; and the tables to drop (`is_left_over`).

    ``names`` are the published names; ``known`` all ids that were ever published. A copy that somebody made of a live
    table, whose properties it has, stays as it is.
    """
    published = set(known)
    parts = {schema_part(name) for name in (*names.values(), *published)}
    found = [name for part in sorted(parts) for name in lake.tables(Layer.LIVE, part)]
    places = {name: stable_id for name in found if (stable_id := id_of(lake, name, feed)) is not None}
    targets = {name: live_name(names, each) for name, each in places.items() if each in published}
    others = {old: new for old, new in targets.items() if old != new and places.get(new) != places[old]}
    ever = names_ever(lake, feed) if others else set()
    renames = {old: new for old, new in others.items() if old in ever or is_internal(old)}
    unpublished = sorted(places.keys() - targets.keys())
    return renames, tuple(each for each in unpublished if is_left_over(lake, feed, each, published, renames.values()))


def is_left_over(lake: Lake, feed: str, name: str, published: Collection[str], taken: Collection[str]) -> bool:
    """True if a live table was never published, and may be dropped: the run that made it is dead, or its name is one of
    those to be ``taken``."""
    stable_id = id_of(lake, name, feed)
    if stable_id is None or stable_id in published:
        return False
    return name in taken or is_abandoned(lake, _last_written(lake, name))


def is_abandoned(lake: Lake, written: datetime) -> bool:
    """True if the run that left something unpublished (a version of a live table, temporary files), ``written`` then,
    counts as dead. On a laptop it is: the lock keeps other runs out (`run_lock`). Elsewhere another run, such as a long
    ``load``, has a day to publish what it wrote."""
    return not lake.on_databricks or written.astimezone(UTC) < datetime.now(UTC) - _ABANDONED_AFTER


def _last_written(lake: Lake, name: str) -> datetime:
    newest = lake.history(lake.table(Layer.LIVE, name), 1).first()
    assert newest is not None
    written: datetime = newest["timestamp"]
    return written


def has_published_names(lake: Reader, names: Mapping[str, str]) -> bool:
    """True if the live tables have their published names; False after a run that died between publishing and
    renaming."""
    return all(id_of(lake, name) == stable_id for stable_id, name in names.items())


def id_of(lake: Reader, name: str, feed: str | None = None) -> str | None:
    """Returns the id of the live table of this name; None if there is none, or if ``feed`` is given and is not its
    feed."""
    if not lake.exists(Layer.LIVE, name):
        return None
    if feed is not None and lake.property(Layer.LIVE, name, FEED) != feed:
        return None
    return lake.property(Layer.LIVE, name, ID)
