"""Rows from before the changefeed: tables of an export at TSO S take the place of what gold had of them.

Each gets a new Delta table with the export's definition and rows, and starts as a table that is applied up to S and
lags behind: gold takes its changes with commit_ts above S out of silver, DDLs included, and publishes both in one. So a
change at S or before counts only as far as the export has it, one after S wins over the export, and a row that the
export does not have is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from operator import itemgetter
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.errors import ApplyError, ConfigError
from ticdc_codec.event import Kind
from ticdc_codec.mysql_type import Family
from ticdc_codec.name_case import fold
from ticdc_codec.tso import with_time
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.commit_sessions import threads
from ticdc_lakehouse.gold import views, windows
from ticdc_lakehouse.gold.ambiguous_keys import KEPT_APART, timestamps_in_key
from ticdc_lakehouse.gold.live_commits import Commits, version_of
from ticdc_lakehouse.gold.live_table import create_live_table
from ticdc_lakehouse.gold.naming import naming, taken_names
from ticdc_lakehouse.gold.overrides import last_repair, repair_rows
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, KEY
from ticdc_lakehouse.gold.state import published, published_ids
from ticdc_lakehouse.gold.time_zones import check_time_zones
from ticdc_lakehouse.gold.typed_rows import typed_rows
from ticdc_lakehouse.ops.dumpling.ends import check_ends
from ticdc_lakehouse.ops.dumpling.export import Export, read_export
from ticdc_lakehouse.ops.dumpling.folder import SparkFolder
from ticdc_lakehouse.ops.dumpling.rows import rows as exported_rows
from ticdc_lakehouse.ops.load_options import LoadOptions
from ticdc_lakehouse.ops.loadable import all_problems, loadable_tables, unknown_key
from ticdc_lakehouse.planning.naming import Naming
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, Restart, TableState
from ticdc_lakehouse.planning.window import statements_of
from ticdc_lakehouse.policy import OnIrregular
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import (
    CreateTable,
    CreateTableLike,
    DropDatabase,
    DropTables,
    RenameTables,
    RestoreTable,
    database_of,
    given_names,
    names_of,
)
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.silver.retention_floor import retention_floor
from ticdc_lakehouse.sql.instant import backward_shifts, is_ambiguous_sql
from ticdc_lakehouse.sql.key_text import stored_key_sql
from ticdc_lakehouse.sql.text import quoted
from ticdc_lakehouse.sql.typed_columns import IRREGULAR, by_name, typed_columns
from ticdc_lakehouse.tidb.session import SnapshotAt

_AGAIN = "export it again"
_TABLES_AT_ONCE = 4
"""As many as gold applies at a time."""
_MAKING = (CreateTable, CreateTableLike, RestoreTable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What one load did."""

    tso: int
    rows: dict[TableName, int]
    """How many rows each table had at ``tso``."""


def load(
    lake: Lake,
    config: GoldConfig,
    folder: str,
    options: LoadOptions | None = None,
    *,
    until_tso: int | None = None,
    source: SnapshotAt | None = None,
) -> Loaded:
    """Runs gold with the tables of Dumpling's export in ``folder`` in place of what it had of them. Skips tables that
    the feed's filter excludes. ``source`` is that of `gold.windows.apply`.

    The changefeed must have begun at the export's TSO or before: no message says when it did. Raises ConfigError for an
    export that is incomplete or not written as ``options`` say, that gold has not reached, or that is older than a
    table's last CREATE, RENAME, TRUNCATE or repair, ApplyError for rows that gold cannot hold, and
    PublishedMeanwhileError if another run publishes meanwhile. Nothing is published then.
    """
    options = options or LoadOptions()
    export = read_export(SparkFolder(spark=lake.spark, path=folder), options.dumpling)
    tables = loadable_tables(export, config, options)
    check_time_zones(lake, config, options.time_zone)
    windows.create_tables(lake)
    before = published(lake, config.feed)
    # Before the export's live tables are made: it drops those that were never published.
    views.finish_publishing(lake, config, before, replaced=tables)
    with closing(Commits(lake=lake, feed=config.feed, run=str(uuid4()))) as commits:
        loader = ExportLoader(lake=lake, config=config, export=export, time_zone=options.time_zone, commits=commits)
        definitions = loader.definitions(tables, before)
        check_ends(lake.spark, export, [export.tables[name] for name in tables])
        lake.make_schemas(definition.lake_name for definition in definitions)
        rows = loader.write_tables(definitions)
        states = loader.initial_states(definitions)
    restart = Restart(number=before.number, tables=states, definitions=tuple(definitions))
    windows.apply(lake, config, until_tso=until_tso, restart=restart, source=source)
    return Loaded(tso=export.tso, rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamesSince:
    """The names of tables that DDLs since the export changed or dropped."""

    renamed: Mapping[TableName, int]
    """Those that RENAMEs gave or took away, each with the last one's commit_ts. The definition of a table that is
    inferred from the wire, or was renamed while it was blocked, lacks them."""
    made: Mapping[TableName, int]
    """Those that CREATEs and RECOVERs gave, each with the last one's commit_ts."""
    dropped: Collection[TableName]
    databases: Collection[str]
    """Folded names of the databases that were dropped."""

    def replaced_at(self, name: TableName) -> int:
        """Returns the commit_ts at which another table got the name of a dropped one; 0 if none did. A CREATE alone
        may be of the exported table: TiDB shows a table some time before its commit_ts."""
        return self.made.get(name, 0) if self.drops(name) else 0

    def drops(self, name: TableName) -> bool:
        """True if a table of this name was dropped."""
        return name in self.dropped or fold(name.database) in self.databases


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportLoader:
    """Makes live tables of an export's tables. They are published when gold continues from their initial states."""

    lake: Lake
    config: GoldConfig
    export: Export
    time_zone: str | None
    """Time zone of the session that exported; None if it was not given."""
    commits: Commits

    def _check_reached(self, before: Published) -> None:
        """Raises ConfigError for an export that gold has not reached, or that is older than silver's retention."""
        tso = self.export.tso
        if before.tso < tso:
            reached = with_time(before.tso) if before.tso else "published nothing"
            raise ConfigError(
                f"{self.export.folder}: exported at {with_time(tso)}, gold of feed {self.config.feed} has {reached}: "
                "load it when gold has passed the export's TSO"
            )
        gone = retention_floor(self.lake, self.config.feed, Layer.SILVER).tso
        if tso < gone:
            raise ConfigError(
                f"{self.export.folder}: exported at {with_time(tso)}, but of feed {self.config.feed} silver no "
                f"longer has all changes up to {with_time(gone)} (silver.retention_days): {_AGAIN}"
            )

    def _check_not_repaired(self, name: TableName, repaired: int) -> None:
        """Raises ConfigError for an export from before the table's last repair: silver lacks what the repair put in
        place."""
        if self.export.tso < repaired:
            raise ConfigError(
                f"{self.export.folder}: table {name} was repaired from TiDB later, at {with_time(repaired)}, and what "
                f"differed then would differ again: {_AGAIN}"
            )

    def definitions(self, tables: Sequence[TableName], before: Published) -> list[Definition]:
        """Returns the exported tables' definitions. Raises ConfigError for an export at another TSO than gold needs,
        and one for all tables whose rows have no place in gold."""
        self._check_reached(before)
        names = naming(self.config, taken_names(self.lake, self.config))
        repairs = repair_rows(self.lake, self.config.feed)
        all_problems(
            tables, lambda name: self._check_not_repaired(name, last_repair(repairs, name, names.ids_named(name)))
        )
        taken = published_ids(self.lake, self.config.feed)
        since = self._names_since(before)
        definitions = all_problems(tables, lambda name: self._definition(name, before, since, taken, names))
        current = {name: state.lake_name for name, state in before.tables.items()}
        names.check_distinct((current | {each.table.name: each.lake_name for each in definitions}).items())
        return definitions

    def _names_since(self, before: Published) -> _NamesSince:
        """Returns the names of tables that DDLs since the export changed or dropped."""
        events = events_table.full_name(self.lake, self.config.feed)
        ddls = self.lake.rows(f"""
            SELECT commit_ts, database, table, query FROM {events}
            WHERE kind = '{Kind.DDL}' AND commit_ts > {self.export.tso} AND commit_ts <= {before.tso}""")
        statements = [
            (ddl["commit_ts"], statement)
            for ddl in sorted(ddls, key=itemgetter("commit_ts"))
            for statement in statements_of(ddl["query"], ddl["database"], ddl["table"])
        ]
        drops = [statement for _, statement in statements if isinstance(statement, DropTables | DropDatabase)]
        return _NamesSince(
            renamed={name: at for at, each in statements if isinstance(each, RenameTables) for name in names_of(each)},
            made={name: at for at, each in statements if isinstance(each, _MAKING) for name in given_names(each)},
            dropped={name for each in drops for name in names_of(each)},
            databases={fold(name) for name in map(database_of, drops) if name is not None},
        )

    def _definition(
        self,
        name: TableName,
        before: Published,
        since: _NamesSince,
        taken: Collection[str],
        names: Naming,
    ) -> Definition:
        tso, what = self.export.tso, f"{self.export.folder}: table {name}"
        newest = before.definition_of(name)
        named_at = max(since.renamed.get(name, 0), since.replaced_at(name), 0 if newest is None else newest.named_at)
        if newest is None and not _awaits_export(before, since, name, tso) and names.ids_named(name):
            raise ConfigError(f"{what} was renamed or dropped since, or another table had its name: {_AGAIN}")
        if named_at > tso:
            at = with_time(named_at)
            raise ConfigError(f"{what} was created, renamed or truncated later, at {at}: {_AGAIN}")
        table = _with_enum_representation(self.export.tables[name].definition, newest)
        for column in table.columns:
            if fold(column.name) in map(fold, table.key) and column.type.elements and column.by is None:
                unknown = unknown_key(what, column.name, column.type.text)
                raise ConfigError(f"{unknown} yet: load it when gold has applied a row of it")
        lake_name, stable_id = names.lake_name(name), names.new_stable_id(name, tso)
        if stable_id in taken:
            raise ConfigError(f"{what} was loaded from an export of this TSO already: to load it again, {_AGAIN}")
        return Definition(
            table=table, commit_ts=tso, origin=Origin.EXPORT, lake_name=lake_name, stable_id=stable_id, named_at=tso
        )

    def write_tables(self, definitions: Sequence[Definition]) -> dict[TableName, int]:
        """Runs `write_rows` for each table, some at a time as gold does; returns the number of rows by table."""
        with ThreadPoolExecutor(threads(self.lake, _TABLES_AT_ONCE)) as pool:
            counts = pool.map(self.write_rows, definitions)
            return {each.table.name: count for each, count in zip(definitions, counts, strict=True)}

    def write_rows(self, definition: Definition) -> int:
        """Creates the Delta table and writes the rows; returns their number. Raises ApplyError for rows that it cannot
        hold."""
        config, stable_id, table = self.config, definition.stable_id, definition.table
        self.lake.drop(Layer.LIVE, stable_id)  # of a run that died before it published
        lake = self.commits.at(self.export.tso)
        rows, exported = None, self.export.tables[table.name]
        with _worker_errors():
            if exported.files:
                texts = exported_rows(lake.spark, self.export, exported)
                rows = self._keyed(table, _typed(texts, table, self.time_zone or config.time_zone))
            # Under its id until it is published: the table whose place it takes has the name.
            create_live_table(lake, stable_id, table, stable_id=stable_id, config=config, rows=rows)
        return self._checked(definition)

    def _keyed(self, table: Table, rows: DataFrame) -> DataFrame:
        key = stored_key_sql(table, self.config.time_zone)
        return rows.selectExpr(f"{key} AS {KEY}", f"{self.export.tso}L AS {COMMIT_TS}", "*")

    def _checked(self, definition: Definition) -> int:
        rows = self.lake.spark.table(self.lake.table(Layer.LIVE, definition.stable_id))
        what = f"{self.export.folder}: table {definition.table.name}"
        counted = rows.agg(F.count("*").alias("rows"), F.count_distinct(KEY).alias("keys")).collect()[0]
        if counted["rows"] != counted["keys"]:
            cause = self._cause_of_doubles(definition.table, rows, counted["rows"])
            raise ApplyError(f"{what}: {counted['rows']} rows with {counted['keys']} different keys: {cause}")
        self._check_times(definition.table, rows, what)
        policy = self.config.policy(definition.table.database, definition.table.table)
        odd = rows.where(F.col(IRREGULAR).isNotNull()).select(KEY, IRREGULAR).first()
        if odd is not None and policy.on_irregular is OnIrregular.BLOCK:
            raise ApplyError(f"{what}: row {odd[KEY]} has {odd[IRREGULAR]}, which is no date (on_irregular: block)")
        return int(counted["rows"])

    def _cause_of_doubles(self, table: Table, rows: DataFrame, count: int) -> str:
        """Returns why some of the ``count`` rows have the same key."""
        times = timestamps_in_key(table)
        if not times or rows.select(KEY, *map(quoted, times)).distinct().count() < count:
            return "is there more than one export? Keep the others in folders of their own; if not, export it again"
        zone = self.config.time_zone
        return (
            f"times in column {', '.join(times)} are two instants with one text in {zone}, the feed's time_zone, where "
            f"clocks were set back: {KEPT_APART}"
        )

    def _check_times(self, table: Table, rows: DataFrame, what: str) -> None:
        """Raises ApplyError for a TIMESTAMP that is two instants in the zone of the session that exported."""
        zone = self.time_zone or "UTC"
        for column in table.sent if backward_shifts(zone) else ():
            if column.type.family is Family.TIMESTAMP:
                odd = rows.where(is_ambiguous_sql(quoted(column.name), zone)).select(KEY).first()
                if odd is not None:
                    raise ApplyError(
                        f"{what}: row {odd[KEY]}: the time in column {column.name} is two instants in {zone}, where "
                        "clocks were turned back: export with --params time_zone=+00:00"
                    )

    def initial_states(self, definitions: Sequence[Definition]) -> dict[TableName, TableState]:
        """Returns the states of tables that are applied up to the export's TSO, with the DDLs of exactly that TSO."""
        events = events_table.events(self.lake, self.config.feed)
        ddls = events.where((F.col("kind") == Kind.DDL.value) & (F.col("commit_ts") == self.export.tso))
        queries = tuple(row["query"] for row in ddls.select("query").distinct().collect())
        return {
            each.table.name: TableState(
                lake_name=each.lake_name,
                stable_id=each.stable_id,
                version=version_of(self.lake, each.stable_id),
                applied_tso=self.export.tso,
                ddls=queries,
            )
            for each in definitions
        }


def _awaits_export(before: Published, since: _NamesSince, name: TableName, tso: int) -> bool:
    """True if gold does not know the rows of the table that had this name at the export's TSO: its columns are unknown,
    TiDB restored it after its last DROP without a DDL event, or the feed's filter left it out for a while. Another
    table may have had the name before."""
    state = before.tables.get(name)
    if state is not None:
        return state.applied_tso < tso
    dropped_at = max((gone.dropped_at for gone in before.recoverable if gone.name == name), default=0)
    return dropped_at < tso and not since.drops(name)


def _with_enum_representation(table: Table, newest: Definition | None) -> Table:
    """Returns the table with ENUM and SET as the feed writes them, by name or by number, where rows have shown it."""
    shown = {} if newest is None else {column.name: column.by for column in newest.table.columns}
    return replace(table, columns=tuple(replace(c, by=shown.get(c.name)) for c in table.columns))


def _typed(texts: DataFrame, table: Table, time_zone: str) -> DataFrame:
    typed = typed_columns(replace(table, columns=tuple(map(by_name, table.columns))))
    numbered = (f"{quoted(column.definition.name)} AS t{i}" for i, column in enumerate(typed))
    return typed_rows(texts.selectExpr(*numbered), typed, time_zone)


@contextmanager
def _worker_errors() -> Iterator[None]:
    """Raises the ConfigError of a Python worker in place of Spark's exception."""
    try:
        yield
    except PySparkException as error:
        _, _, message = str(error).partition(f"{ConfigError.__name__}: ")
        if not message:
            raise
        raise ConfigError(message.splitlines()[0]) from None
