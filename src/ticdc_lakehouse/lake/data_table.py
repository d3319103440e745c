"""The Delta table of a table's rows: made, mended after a run that died, and taken through the steps of a plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from delta.tables import DeltaTable
from pyspark.sql import functions as F

from ticdc_lakehouse.ddl.statement import TableName
from ticdc_lakehouse.definition import Table
from ticdc_lakehouse.errors import ApplyError
from ticdc_lakehouse.lake.eventual import purge
from ticdc_lakehouse.lake.evolve import alter
from ticdc_lakehouse.lake.irregular import first_irregular
from ticdc_lakehouse.lake.lane import Alter, Rows, Step, stop_reason
from ticdc_lakehouse.lake.merge import COMMIT_TS, GONE, KEY, merge
from ticdc_lakehouse.lake.place import Lake, Layer, literal, quoted
from ticdc_lakehouse.lake.plan import TablePlan
from ticdc_lakehouse.lake.situation import Applying
from ticdc_lakehouse.lake.state import Definition, TableState
from ticdc_lakehouse.lake.typed import IRREGULAR, typed_columns
from ticdc_lakehouse.lake.watermark import Hold
from ticdc_lakehouse.policy import RETENTION_DAYS, Mode, OnIrregular

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


def apply_plan(lake: Lake, applying: Applying, plan: TablePlan) -> Outcome:
    """Do a plan's steps. One that cannot be done leaves the table at its last right state, standing still."""
    if plan.start is None:
        state = TableState(name="", data="", version=-1, applied_tso=plan.through, reason=plan.reason, final=plan.final)
        return Outcome(name=plan.name, state=state)
    data = _Data(lake=lake, applying=applying, name=plan.start.data, table=plan.start.table)
    data.begin(-1 if plan.state is None else plan.state.version, writes=any(map(_writes, plan.steps)))
    done: list[Step] = []
    for step in plan.steps:
        stop = data.take(step)
        if stop is not None:
            return _outcome(_cut(plan, done, stop), data.end())
        done.append(step)
    return _outcome(plan, data.end())


def _cut(plan: TablePlan, done: list[Step], stop: _Stop) -> TablePlan:
    """The plan as far as it was done."""
    through = stop.hold.tso
    return replace(
        plan,
        through=through,
        ddls=tuple(step.query for step in done if isinstance(step, Alter) and step.commit_ts == through),
        reason=stop.hold.reason,
        final=stop.final,
        found=tuple(definition for definition in plan.found if definition.commit_ts < stop.first),
    )


def _outcome(plan: TablePlan, version: int) -> Outcome:
    assert plan.start is not None
    state = TableState(
        name=plan.view,
        data=plan.start.data,
        version=version,
        applied_tso=plan.through,
        ddls=plan.ddls,
        reason=plan.reason,
        final=plan.final,
    )
    merged = any(map(_merges, plan.steps))
    definition = (plan.start, *plan.found)[-1]
    return Outcome(name=plan.name, state=state, definition=definition, found=plan.found, merged=merged)


def _merges(step: Step) -> bool:
    return isinstance(step, Rows) and bool(step.shapes)


def _writes(step: Step) -> bool:
    return isinstance(step, Alter) or _merges(step)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stop:
    """Why a step was not done, or not whole."""

    hold: Hold
    first: int
    """commit_ts of the first change that is not in."""
    final: bool


@dataclass(slots=True)
class _Data:
    """A data table on its way through the steps."""

    lake: Lake
    applying: Applying
    name: str
    table: Table
    version: int = -1
    """-1 while the table is not made: what changes before its first row only changes its definition."""
    written: bool = False
    """Whether something was written since ``version`` was looked up."""

    def begin(self, version: int, *, writes: bool) -> None:
        """Take the table as it was published."""
        self.version = version
        if version >= 0 and writes:
            mend(self.lake, self.name, version)
            self.written = True  # mending is a version of its own

    def take(self, step: Step) -> _Stop | None:
        """Do one step, or as much of it as can be done."""
        match step:
            case Rows() if step.shapes:
                return self._take_rows(step)
            case Alter() if self.version >= 0:
                return self._alter(step)
            case Alter(table=table):
                self.table = table
        return None

    def _take_rows(self, rows: Rows) -> _Stop | None:
        hold = self._irregular(rows)
        self._make()
        # Rows that came late are not taken in part: their table stands still for good.
        late = hold is not None and hold.tso < rows.after
        if not late:
            through = rows.through if hold is None else hold.tso
            merge(self.lake, self.applying.feed, self.name, replace(rows, through=through), self.applying.time_zone)
        if self.applying.mode is Mode.EVENTUAL:
            purge(self.lake, self.name, self.applying.tombstone_days)
        self.written = True
        if hold is None:
            return None
        return _Stop(hold=replace(hold, tso=max(hold.tso, rows.after)), first=hold.tso + 1, final=late)

    def _irregular(self, rows: Rows) -> Hold | None:
        policy = self.applying.policy(rows.table.database, rows.table.table)
        if policy.on_irregular is not OnIrregular.STOP:
            return None
        return first_irregular(self.lake, self.applying.feed, rows, self.applying.time_zone)

    def _alter(self, step: Alter) -> _Stop | None:
        self._look_up()
        try:
            alter(self.lake, self.name, step, self.applying.time_zone)
        except ApplyError as error:
            reason = stop_reason(step.commit_ts, step.query, str(error))
            return _Stop(hold=Hold(tso=step.commit_ts, reason=reason), first=step.commit_ts, final=True)
        self.written = True
        return None

    def end(self) -> int:
        """The table's version after the steps; a table without a row is made now."""
        self._make()
        self._look_up()
        return self.version

    def _look_up(self) -> None:
        if self.written:
            self.version = version_of(self.lake, self.name)
            self.written = False

    def _make(self) -> None:
        if self.version >= 0:
            return
        left_over = self.lake.exists(Layer.GOLD, self.name)
        create_data_table(self.lake, self.name, self.table, self.applying.mode, self.applying.retention_days)
        self.version = 0
        if left_over:  # by a run that died
            mend(self.lake, self.name, 0)
            self.written = True


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
        f"'delta.logRetentionDuration' = 'interval {retention_days} days', "
        f"'delta.deletedFileRetentionDuration' = 'interval {retention_days} days', "
        f"'delta.dataSkippingStatsColumns' = '{KEY},{COMMIT_TS}')",
    )


def mend(lake: Lake, data: str, version: int) -> None:
    """Put a data table back to its published version if a run died after writing to it."""
    if same_rows(lake, data, version) is None:
        DeltaTable.forName(lake.spark, lake.table(Layer.GOLD, data)).restoreToVersion(version)


def same_rows(lake: Lake, data: str, version: int) -> int | None:
    """The newest version of a data table if it has the rows of ``version``: nothing but upkeep came after that."""
    newest = version_of(lake, data)
    if newest == version:
        return version
    later = lake.history(lake.table(Layer.GOLD, data)).where(F.col("version") > version)
    return None if later.where(~F.col("operation").isin(*_UPKEEP)).head(1) else newest


def version_of(lake: Lake, data: str) -> int:
    """The newest Delta version of a data table."""
    return lake.version(lake.table(Layer.GOLD, data))
