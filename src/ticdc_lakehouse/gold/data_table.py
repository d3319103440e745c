"""The Delta table of a table's rows: made, mended after a run that died, and taken through the steps of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from delta.tables import DeltaTable

from ticdc_codec.errors import ApplyError, ConfigError
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.alter_table import alter, exchange
from ticdc_lakehouse.gold.eventual import purge
from ticdc_lakehouse.gold.irregular import first_irregular
from ticdc_lakehouse.gold.merge import COMMIT_TS, GONE, KEY, merge
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Definition, TableState
from ticdc_lakehouse.planning.table_plan import Alter, Exchange, Rows, Step, unsupported_ddl
from ticdc_lakehouse.planning.window import BlockingPoint
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.policy import RETENTION_DAYS, Mode, OnIrregular
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.typed_columns import IRREGULAR, typed_columns

_UPKEEP = ("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "COMPUTE STATS", "CLUSTER BY")
"""Operations that change no row: they may follow a published version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a table in a window."""

    name: TableName
    state: TableState
    definition: Definition | None = None
    """The definition that its rows have now."""
    found: tuple[Definition, ...] = ()
    """Definitions that are new."""
    merged: bool = False
    """Whether rows were merged into it."""
    dropped_at: int | None = None
    """commit_ts of the DDL that dropped it, None if it is there."""


def apply_plans(lake: Lake, applying: GoldConfig, plans: Sequence[TablePlan]) -> list[Outcome]:
    """Do the steps of plans, of tables that exchange rows in turns by commit_ts. A step that cannot be done leaves its
    table at its last right state, standing still."""
    tables = [_begun(lake, applying, plan, plan.start) for plan in plans if plan.start is not None]
    by_name = {table.name: table for table in tables}
    turns = [(_turn(step), table, step) for table in tables for step in table.plan.steps]
    for _, table, step in sorted(turns, key=itemgetter(0)):
        if isinstance(step, Exchange):
            _exchange([by_name[name] for name in (step.partitioned, step.plain) if name in by_name], step)
        else:
            table.take(step)
    return [table.outcome() for table in tables] + [_nowhere(plan) for plan in plans if plan.start is None]


def _turn(step: Step) -> tuple[int, bool]:
    """An exchange is after all that either table does up to its commit_ts."""
    match step:
        case Rows(through=tso) | Alter(commit_ts=tso):
            return tso, False
        case Exchange(commit_ts=tso):
            return tso, True


def _nowhere(plan: TablePlan) -> Outcome:
    """Of a table whose columns nothing tells yet."""
    state = TableState(name="", data="", version=-1, applied_tso=plan.through, stop=plan.stop)
    return Outcome(name=plan.name, state=state, dropped_at=plan.dropped_at)


def _exchange(tables: Sequence[_Data], step: Exchange) -> None:
    """Both tables, or neither: one of them may have left the feed since, or stand still. Once, though it is a step of
    both."""
    if any(step in table.done for table in tables):
        return
    reason = None
    if len(tables) < 2 or any(table.stop is not None for table in tables):
        reason = "the other table left the feed, or is blocked"
    try:
        if reason is None:
            partitioned, plain = tables
            versions = partitioned.begin_exchange(), plain.begin_exchange()
            exchange(partitioned.lake, step, versions, partitioned.applying.time_zone)
    except ApplyError as error:
        reason = str(error)
    for table in tables:
        table.end_exchange(step, reason)


def _cut(plan: TablePlan, done: list[Step], stop: _Stop) -> TablePlan:
    """The plan as far as it was done."""
    through = stop.point.tso
    return replace(
        plan,
        through=through,
        ddls=tuple(step.query for step in done if not isinstance(step, Rows) and step.commit_ts == through),
        stop=stop.point.stop,
        found=tuple(definition for definition in plan.found if definition.commit_ts < stop.first),
    )


def _outcome(plan: TablePlan, data: str, version: int) -> Outcome:
    state = TableState(
        name=plan.view,
        data=data,
        version=version,
        applied_tso=plan.through,
        ddls=plan.ddls,
        stop=plan.stop,
    )
    assert plan.start is not None
    merged = any(map(_merges, plan.steps))
    definition = (plan.start, *plan.found)[-1]
    return Outcome(
        name=plan.name,
        state=state,
        definition=definition,
        found=plan.found,
        merged=merged,
        dropped_at=plan.dropped_at,
    )


def _merges(step: Step) -> bool:
    return isinstance(step, Rows) and bool(step.shapes)


def _writes(step: Step) -> bool:
    return not isinstance(step, Rows) or _merges(step)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stop:
    """Why a step was not done, or not whole."""

    point: BlockingPoint
    first: int
    """commit_ts of the first change that is not in."""


def _ddl_stop(step: Alter | Exchange, reason: str) -> _Stop:
    point = BlockingPoint(tso=step.commit_ts, stop=unsupported_ddl(step.commit_ts, step.query, reason))
    return _Stop(point=point, first=step.commit_ts)


def _begun(lake: Lake, applying: GoldConfig, plan: TablePlan, start: Definition) -> _Data:
    """The table as it was published."""
    version = -1 if plan.state is None else plan.state.version
    if version >= 0 and any(map(_writes, plan.steps)):
        version = mend(lake, start.data, version)
    return _Data(lake=lake, applying=applying, plan=plan, name=start.data, table=start.table, version=version)


@dataclass(slots=True)
class _Data:
    """A data table on its way through the steps of its plan."""

    lake: Lake
    applying: GoldConfig
    plan: TablePlan
    name: str
    table: Table
    version: int
    """-1 while the table is not made: what changes before its first row only changes its definition."""
    written: bool = False
    """Whether something was written since ``version`` was looked up."""
    done: list[Step] = field(default_factory=list)
    stop: _Stop | None = None

    def take(self, step: Rows | Alter) -> None:
        """Do one step, or as much of it as can be done."""
        if self.stop is not None:
            return
        match step:
            case Rows() if step.shapes:
                self.stop = self._take_rows(step)
            case Alter() if self.version >= 0:
                self.stop = self._alter(step)
            case Alter(table=table):
                self.table = table
        if self.stop is None:
            self.done.append(step)

    def begin_exchange(self) -> int:
        """The version that the other table reads."""
        self._make()
        self._look_up()
        return self.version

    def end_exchange(self, step: Exchange, reason: str | None) -> None:
        """Rows were exchanged, or were not for a reason."""
        if self.stop is not None:
            return
        if reason is None:
            self.written = True
            self.done.append(step)
        else:
            self.stop = _ddl_stop(step, reason)

    def outcome(self) -> Outcome:
        """What became of the table; one without a row is made now."""
        plan = self.plan if self.stop is None else _cut(self.plan, self.done, self.stop)
        self._make()
        self._look_up()
        return _outcome(plan, self.name, self.version)

    def _take_rows(self, rows: Rows) -> _Stop | None:
        point = self._irregular(rows)
        self._make()
        # Late rows are not merged in part: their table is blocked until a person decides.
        late = point is not None and point.tso < rows.after
        if not late:
            through = rows.through if point is None else point.tso
            merge(self.lake, self.applying.feed, self.name, replace(rows, through=through), self.applying.time_zone)
        if self.applying.mode is Mode.EVENTUAL:
            purge(self.lake, self.name, self.applying.tombstone_days)
        self.written = True
        if point is None:
            return None
        stop = replace(point.stop, needs_override=late)
        return _Stop(point=BlockingPoint(tso=max(point.tso, rows.after), stop=stop), first=point.tso + 1)

    def _irregular(self, rows: Rows) -> BlockingPoint | None:
        policy = self.applying.policy(rows.table.database, rows.table.table)
        if policy.on_irregular is not OnIrregular.STOP:
            return None
        return first_irregular(self.lake, self.applying.feed, rows, self.applying.time_zone)

    def _alter(self, step: Alter) -> _Stop | None:
        self._look_up()
        try:
            alter(self.lake, self.name, step, self.applying.time_zone)
        except ApplyError as error:
            return _ddl_stop(step, str(error))
        self.written = True
        return None

    def _look_up(self) -> None:
        if self.written:
            self.version = own_version(self.lake, self.name, self.version)
            self.written = False

    def _make(self) -> None:
        if self.version >= 0:
            return
        if self.lake.exists(Layer.GOLD, self.name):
            # Of a run that died before it published: the table may have had other columns then.
            self.lake.drop(Layer.GOLD, self.name)
        create_data_table(self.lake, self.name, self.table, self.applying.mode, self.applying.retention_days)
        self.version = 0


def create_data_table(
    lake: Lake, data: str, table: Table, mode: Mode = Mode.WATERMARKS, retention_days: int = RETENTION_DAYS
) -> None:
    """Create a table's data table, empty, if it is not there."""
    columns = [
        f"{KEY} STRING NOT NULL COMMENT 'handle key: JSON array of its values'",
        f"{COMMIT_TS} BIGINT NOT NULL COMMENT 'TSO of the change that left the row so'",
        f"{IRREGULAR} MAP<STRING, STRING> COMMENT 'column to exact MySQL text, for values that its type cannot hold'",
        *([f"{GONE} BOOLEAN COMMENT 'a tombstone: the row was deleted'"] if mode is Mode.EVENTUAL else []),
        *(f"{quoted(c.name)} {c.spark_type} COMMENT {literal(c.comment)}" for c in typed_columns(table)),
    ]
    lake.create(
        Layer.GOLD,
        data,
        ", ".join(columns),
        comment=f"Rows that began as TiDB table {table.database}.{table.table}; read the view that shows them",
        properties=f"CLUSTER BY ({KEY}) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.enableDeletionVectors' = 'true', 'delta.enableTypeWidening' = 'true', "
        # An ALTER TABLE may bring the first DATETIME; Delta wants to be told beforehand.
        "'delta.feature.timestampNtz' = 'supported', "
        f"{retention_sql(retention_days)}, "
        f"'delta.dataSkippingStatsColumns' = '{KEY},{COMMIT_TS}')",
    )


def kept_days(retention_days: int) -> int:
    """For how long Delta keeps versions and files: a state is readable for the retention time after the next one took
    its place, and maintenance may come a week later."""
    return retention_days + 8


def retention_sql(retention_days: int) -> str:
    """The table properties by which Delta keeps what stays readable."""
    names = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
    return ", ".join(f"'{name}' = 'interval {kept_days(retention_days)} days'" for name in names)


def mend(lake: Lake, data: str, version: int) -> int:
    """Put a data table back to its published version if a run died after writing to it. Gives the newest version, which
    has these rows."""
    newest = same_rows(lake, data, version)
    if newest is not None:
        return newest
    dead = version_of(lake, data)
    DeltaTable.forName(lake.spark, lake.table(Layer.GOLD, data)).restoreToVersion(version)
    return own_version(lake, data, dead)


def own_version(lake: Lake, data: str, since: int) -> int:
    """The newest version of a data table, which was at version ``since`` when this run began to write to it.

    Raises ConfigError if another run wrote to it, too: on Databricks no lock keeps one out (`run_lock`).
    """
    commits = lake.commits(lake.table(Layer.GOLD, data), since)
    for commit in commits:
        if commit["operation"] not in _UPKEEP and commit["userMetadata"] != lake.signature():
            raise ConfigError(
                f"{data}: another run wrote version {commit['version']} ({commit['operation']}, {commit['timestamp']}) "
                "while this one was at work; this one publishes nothing. Run gold of a feed once at a time"
            )
    return int(commits[0]["version"]) if commits else since


def same_rows(lake: Lake, data: str, version: int) -> int | None:
    """The newest version of a data table if it has the rows of ``version``: nothing but upkeep came after that."""
    commits = lake.commits(lake.table(Layer.GOLD, data), version)
    if any(commit["operation"] not in _UPKEEP for commit in commits):
        return None
    return int(commits[0]["version"]) if commits else version


def version_of(lake: Lake, data: str) -> int:
    """The newest Delta version of a data table."""
    return lake.version(lake.table(Layer.GOLD, data))
