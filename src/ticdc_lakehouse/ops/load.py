"""Rows from before the changefeed: tables of an export at TSO S take the place of what gold had of them.

Each gets a new Delta table with the export's definition and rows, and begins anew as a table that is applied up to S
and lags behind: gold takes its changes with commit_ts above S out of silver, DDLs included, and publishes both in one.
So a change at S or before counts only as far as the export has it, one after S wins over the export, and a row that
the export has not is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import uuid4
from zoneinfo import ZoneInfo

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.errors import ApplyError, ConfigError
from ticdc_codec.event import Kind
from ticdc_codec.mysql_type import Family
from ticdc_codec.tso import with_time
from ticdc_lakehouse.catalog import USER_METADATA, Lake, Layer
from ticdc_lakehouse.gold import windows
from ticdc_lakehouse.gold.alter_table import wire_text_sql
from ticdc_lakehouse.gold.live_table import Commits, create_live_table, version_of
from ticdc_lakehouse.gold.merge import COMMIT_TS, KEY, key_text_sql
from ticdc_lakehouse.gold.naming import naming
from ticdc_lakehouse.gold.state import data_tables, published
from ticdc_lakehouse.ops import dumpling
from ticdc_lakehouse.ops.dumpling import Export
from ticdc_lakehouse.planning.naming import Naming
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Definition, Published, Restart, TableState
from ticdc_lakehouse.planning.table_plan import NONCANONICAL_KEY_DIGITS, name_clash
from ticdc_lakehouse.policy import Mode, OnIrregular
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table
from ticdc_lakehouse.schema.names import TableName, fold
from ticdc_lakehouse.silver import decode_stream
from ticdc_lakehouse.sql.text import quoted
from ticdc_lakehouse.sql.typed_columns import IRREGULAR, by_name, irregular_sql, lost_sql, typed_columns, values_sql

_AGAIN = "export it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What one load did."""

    tso: int
    rows: dict[TableName, int]
    """How many rows each table had at ``tso``."""


def load(
    lake: Lake, applying: GoldConfig, folder: str, time_zone: str | None = None, *, until_tso: int | None = None
) -> Loaded:
    """A run of gold with the tables of Dumpling's export in ``folder`` in the place of what it had of them.

    Tables that the feed's filter leaves out are passed over. ``time_zone`` is that of the session which exported, in
    which TIMESTAMP values are written. The changefeed must have begun at the export's TSO or before: no message says
    when it did.

    Raises ConfigError for an export that is not whole, that gold has not reached, or that is older than a table's last
    CREATE, RENAME or TRUNCATE, and ApplyError for rows that gold cannot have. Nothing is published then.
    """
    windows.create_tables(lake)
    before = published(lake, applying.feed)
    export = dumpling.read_export(lake.spark, folder)
    commits = Commits(lake=lake, feed=applying.feed, run=str(uuid4()))
    loading = _Loading(lake=lake, applying=applying, export=export, time_zone=time_zone, commits=commits)
    loading.check(before)
    taken, names = data_tables(lake, applying.feed), naming(lake, applying.feed, applying.name_template)
    found = [loading.definition(name, _newest(before, name), taken, names) for name in loading.tables]
    rows = {d.table.name: loading.fill(d) for d in found}
    states = {name: loading.state(definition) for name, definition in zip(rows, found, strict=True)}
    windows.apply(lake, applying, until_tso=until_tso, restart=Restart(tables=states, definitions=tuple(found)))
    return Loaded(tso=export.tso, rows=rows)


def _newest(before: Published, name: TableName) -> Definition | None:
    """The definition of the table that has the name now."""
    return before.definitions.get(before.tables[name].data) if name in before.tables else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loading:
    lake: Lake
    applying: GoldConfig
    export: Export
    time_zone: str | None
    commits: Commits

    @property
    def tables(self) -> list[TableName]:
        """Those of the export that the feed's filter lets in."""
        return [name for name in self.export.tables if self.applying.matches(*name)]

    def check(self, before: Published) -> None:
        """Raise ConfigError for an export that cannot be loaded now."""
        tso, feed = self.export.tso, self.applying.feed
        if self.applying.mode is not Mode.WATERMARKS:
            raise ConfigError(f"feed {feed}: in gold mode eventual nothing tells which changes came after an export")
        if before.tso < tso:
            reached = with_time(before.tso) if before.tso else "published nothing"
            raise ConfigError(
                f"{self.export.folder}: exported at {with_time(tso)}, gold of feed {feed} has {reached}: "
                "load it when gold has passed the export's TSO"
            )
        if self.time_zone is not None:
            _check_time_zone(self.time_zone)
        if not self.tables:
            exported = ", ".join(map(".".join, self.export.tables))
            raise ConfigError(f"{self.export.folder}: feed {feed} takes none of its tables: {exported}")

    def definition(
        self, name: TableName, newest: Definition | None, taken: Collection[str], names: Naming
    ) -> Definition:
        """The exported table's definition. Raises ConfigError if its rows have no place in gold."""
        tso, what = self.export.tso, f"{self.export.folder}: table {'.'.join(name)}"
        if newest is not None and newest.named_at > tso:
            raise ConfigError(f"{what} was made, renamed or truncated at {with_time(newest.named_at)}, after: {_AGAIN}")
        if newest is None and names.data_of_name(name):
            raise ConfigError(f"{what} was renamed or dropped since, or another table had its name: {_AGAIN}")
        table = _with_forms(self.export.tables[name].definition, newest)
        self._check_table(what, table)
        view, data = names.view(name), names.data(name, tso)
        if data in taken:
            raise ConfigError(f"{what} was loaded from an export of this TSO: to load it once more, {_AGAIN}")
        return Definition(table=table, commit_ts=tso, source="ddl", name=view, data=data, named_at=tso)

    def _check_table(self, what: str, table: Table) -> None:
        columns = {fold(column.name): column for column in table.columns}
        key = [columns[fold(name)] for name in table.key]
        if not key:
            raise ConfigError(f"{what} has no handle key: nothing tells its rows apart")
        if (clash := name_clash(table)) is not None:
            raise ConfigError(f"{what}: {clash}")
        for column in key:
            rewritten = self.applying.noncanonical_key_digits and column.type.family in NONCANONICAL_KEY_DIGITS
            if rewritten or (column.type.elements and column.by is None):
                raise ConfigError(
                    f"{what}: key column {column.name}: how the feed writes keys of {column.type.text} is not known"
                )
        moments = [column.name for column in table.sent if column.type.family is Family.TIMESTAMP]
        if moments and self.time_zone is None:
            raise ConfigError(
                f"{what}: column {moments[0]} is a TIMESTAMP: give the time zone of the session that exported, "
                "UTC with Dumpling's --params time_zone=+00:00"
            )

    def fill(self, definition: Definition) -> int:
        """Make the Delta table and write the rows; gives their number. Raises ApplyError for rows that it cannot
        have."""
        applying, data, table = self.applying, definition.data, definition.table
        if self.lake.exists(Layer.LIVE, data):
            self.lake.drop(Layer.LIVE, data)  # of a run that died before it published
        lake = self.commits.at(self.export.tso)
        days = applying.retention_days
        # Under its id until it is published: the table whose place it takes has the name.
        create_live_table(lake, data, table, data=data, feed=applying.feed, mode=applying.mode, retention_days=days)
        exported = self.export.tables[table.name]
        if not exported.files:
            return 0
        texts = dumpling.rows(self.lake.spark, self.export, exported)
        with _worker_errors():
            rows = self._keyed(table, _typed(texts, table, self.time_zone or applying.time_zone))
            metadata = lake.spark.conf.get(USER_METADATA)
            rows.write.format("delta").mode("append").option("userMetadata", metadata).saveAsTable(
                self.lake.table(Layer.LIVE, data)
            )
        return self._checked(definition)

    def _keyed(self, table: Table, rows: DataFrame) -> DataFrame:
        columns = {fold(column.name): column for column in table.columns}
        key = key_text_sql([wire_text_sql(columns[fold(name)], self.applying.time_zone) for name in table.key])
        return rows.selectExpr(f"{key} AS {KEY}", f"{self.export.tso}L AS {COMMIT_TS}", "*")

    def _checked(self, definition: Definition) -> int:
        rows = self.lake.spark.table(self.lake.table(Layer.LIVE, definition.data))
        what = f"{self.export.folder}: table {definition.table.database}.{definition.table.table}"
        counted = rows.agg(F.count("*").alias("rows"), F.count_distinct(KEY).alias("keys")).collect()[0]
        if counted["rows"] != counted["keys"]:
            raise ApplyError(
                f"{what}: {counted['rows']} rows with {counted['keys']} different keys: is there more than one export?"
            )
        policy = self.applying.policy(definition.table.database, definition.table.table)
        odd = rows.where(F.col(IRREGULAR).isNotNull()).select(KEY, IRREGULAR).first()
        if odd is not None and policy.on_irregular is OnIrregular.BLOCK:
            raise ApplyError(f"{what}: row {odd[KEY]} has {odd[IRREGULAR]}, which is no date (on_irregular: block)")
        return int(counted["rows"])

    def state(self, definition: Definition) -> TableState:
        """Applied up to the export's TSO, with the DDLs of exactly that TSO."""
        events = self.lake.spark.table(self.lake.table(Layer.SILVER, decode_stream.events_table(self.applying.feed)))
        ddls = events.where((F.col("kind") == Kind.DDL.value) & (F.col("commit_ts") == self.export.tso))
        return TableState(
            name=definition.name,
            data=definition.data,
            version=version_of(self.lake, definition.data),
            applied_tso=self.export.tso,
            ddls=tuple(line["query"] for line in ddls.select("query").distinct().collect()),
        )


def _check_time_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ConfigError(f"time zone: expected a name such as UTC or Asia/Shanghai, found {name!r}") from None


def _with_forms(table: Table, newest: Definition | None) -> Table:
    """The table, with what rows have shown of how the feed writes ENUM and SET."""
    shown = {} if newest is None else {column.name: column.by for column in newest.table.columns}
    return replace(table, columns=tuple(replace(c, by=shown.get(c.name)) for c in table.columns))


def _typed(texts: DataFrame, table: Table, time_zone: str) -> DataFrame:
    """What was exported as gold has it: the typed columns, and what they cannot hold."""
    typed = typed_columns(replace(table, columns=tuple(map(by_name, table.columns))))
    names, values = [f"t{i}" for i in range(len(typed))], [f"v{i}" for i in range(len(typed))]
    whole = texts.selectExpr(*(f"{_text_sql(c.definition)} AS {t}" for c, t in zip(typed, names, strict=True)))
    inlined = f"inline(array({values_sql(typed, names, time_zone)})) AS ({', '.join(values)})"
    lost = whole.selectExpr(*names, inlined).selectExpr(*values, f"{lost_sql(typed, names, values)} AS lost")
    shown = (f"{value} AS {quoted(column.name)}" for column, value in zip(typed, values, strict=True))
    return lost.selectExpr(f"{irregular_sql('lost')} AS {IRREGULAR}", *shown)


def _text_sql(column: ColumnDefinition) -> str:
    """MySQL's text of an exported value (`event` docstring)."""
    match column.type.family:
        case Family.BINARY:
            return f"lower(hex({quoted(column.name)}))"
        case Family.BIT:
            return f"conv(hex({quoted(column.name)}), 16, 10)"
        case _:
            return quoted(column.name)


@contextmanager
def _worker_errors() -> Iterator[None]:
    """What a Python worker found wrong, as it said it."""
    try:
        yield
    except PySparkException as error:
        _, _, said = str(error).partition(f"{ConfigError.__name__}: ")
        if not said:
            raise
        raise ConfigError(said.splitlines()[0]) from None
