"""A live table on its way through the steps of its plan: each step that changes it is one commit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from ticdc_codec.errors import ApplyError
from ticdc_codec.tso import time_of
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.commit_sessions import committed
from ticdc_lakehouse.gold.alter_table import LiveVersion, alter
from ticdc_lakehouse.gold.ambiguous_keys import first_ambiguous, may_be_ambiguous
from ticdc_lakehouse.gold.eventual import purge
from ticdc_lakehouse.gold.interrupted_run import ResumePoint, resume
from ticdc_lakehouse.gold.irregular import first_irregular
from ticdc_lakehouse.gold.key_range import remember_new
from ticdc_lakehouse.gold.learned_defaults import learned, without_rows
from ticdc_lakehouse.gold.live_commits import own_version
from ticdc_lakehouse.gold.live_table import create_live_table, drop_unpublished
from ticdc_lakehouse.gold.merge import first_rows, merge
from ticdc_lakehouse.gold.misread_values import first_unreadable_sql, unreadable_point
from ticdc_lakehouse.gold.run import GoldRun
from ticdc_lakehouse.gold.source_rows import needs_source, read_whole
from ticdc_lakehouse.gold.state import check_is_newest
from ticdc_lakehouse.gold.step_changes import StepChanges
from ticdc_lakehouse.log import log
from ticdc_lakehouse.planning.published_state import Definition
from ticdc_lakehouse.planning.steps import AlterRows, ExchangeRows, MergeRows, Step
from ticdc_lakehouse.planning.stop_reason import unmergeable_late_row, unsupported_ddl
from ticdc_lakehouse.planning.window import BlockingPoint, earliest
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.policy import Mode, OnIrregular
from ticdc_lakehouse.schema.computed_default import pending_defaults, settled
from ticdc_lakehouse.schema.definition import PendingDefault, Table

_PURGED_AFTER = 100
"""Versions of a live table after which its tombstones are purged again on the same day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncompleteStep:
    """Why a step was not done, or not whole."""

    point: BlockingPoint
    first_missing: int
    """commit_ts of the first change that is not in."""


def _incomplete_ddl(step: AlterRows | ExchangeRows, reason: str) -> IncompleteStep:
    """Returns the incomplete step of a DDL that cannot be followed, for this ``reason``: it blocks the table there."""
    point = BlockingPoint(tso=step.commit_ts, stop=unsupported_ddl(step.commit_ts, step.query, reason))
    return IncompleteStep(point=point, first_missing=step.commit_ts)


def begin(run: GoldRun, plan: TablePlan, start: Definition, *, alone: bool) -> TableExecution:
    """Returns the execution of a plan, before its first step: the table is as it was published, or as a run that died
    left it after a DDL. ``alone``: no other table takes part in its steps."""
    version, tso = -1, start.empty_at
    if plan.state is not None and plan.state.has_live_table:
        version, tso = plan.state.version, plan.state.applied_tso
    table = TableExecution(
        run=run,
        plan=plan,
        stable_id=start.stable_id,
        name=run.live(plan, start.stable_id),
        table=start.table,
        version=version,
        tso=tso,
    )
    if table.has_live_table and any(map(_writes, plan.steps)) and not run.undisturbed:
        table.continue_from(resume(run, plan, table.name, alone=alone))
    return table


@dataclass(slots=True, kw_only=True)
class TableExecution:
    """A live table on its way through the steps of its plan."""

    run: GoldRun
    plan: TablePlan
    stable_id: str
    name: str
    table: Table
    version: int
    """-1 while the table is not made: what changes before its first row only changes its definition."""
    tso: int
    """The TSO at which the table is: that of the last step that was done."""
    written: bool = False
    """True if the table has versions after ``version`` that are to be looked up."""
    created: bool = False
    """True if this run made it."""
    done: list[Step] = field(default_factory=list)
    learned: set[PendingDefault] = field(default_factory=set)
    """Values of old rows that became known on the way: the plan's definitions have them as pending."""
    incomplete: IncompleteStep | None = None
    """The step at which the table is blocked; no later one is done."""

    @property
    def has_live_table(self) -> bool:
        """True once the live table is made."""
        return self.version >= 0

    def continue_from(self, point: ResumePoint) -> None:
        """Begins after the steps that an interrupted run has done."""
        self.version = point.version
        for step in point.done:
            self._finish(step)

    def _finish(self, step: Step) -> None:
        match step:
            case AlterRows(table=table):
                self.table = settled(table, self.learned)
        self.tso = turn_of(step)[0]
        self.done.append(step)

    def apply(self, step: MergeRows | AlterRows) -> None:
        """Does one step, or as much of it as can be done: ``incomplete`` is set if that is not all of it. Does nothing
        if the step is done already, or one before it is incomplete."""
        if self.incomplete is not None or any(step is done for done in self.done):
            return
        match step:
            case MergeRows() if step.groups:
                self.incomplete = self._merge_rows(self._learn(step))
            case AlterRows(table=table):
                self.learned |= self._without_rows(table)
                if self.has_live_table:
                    self.incomplete = self._alter(replace(step, table=settled(table, self.learned)))
        if self.incomplete is None:
            self._finish(step)

    def _learn(self, rows: MergeRows) -> MergeRows:
        """Fills pending columns of old rows with the values that these rows show; returns these rows with the
        definition that holds then. In mode eventual a row's changes may overtake each other, so the first that arrives
        shows nothing."""
        config, rows = self.run.config, replace(rows, table=settled(rows.table, self.learned))
        if not self.has_live_table or config.mode is Mode.EVENTUAL or not pending_defaults(rows.table):
            return rows
        found = learned(self.name, self._changes(rows))
        if not found.settled:
            return rows
        rows = replace(rows, table=settled(rows.table, found.settled))
        incomplete = self._alter(AlterRows(commit_ts=rows.after, query="", effects=found.fills, table=rows.table))
        assert incomplete is None, "a learned value needs no conversion"
        self.learned |= found.settled
        names = ", ".join(sorted(each.name for each in found.settled))
        log("gold", "default learned", feed=config.feed, table=rows.table.name, tso=rows.after, columns=names)
        return rows

    def _without_rows(self, table: Table) -> frozenset[PendingDefault]:
        """Returns the values of the table's pending columns that no row waits for. In mode eventual rows from before
        may arrive later."""
        if self.run.config.mode is Mode.EVENTUAL:
            return frozenset()
        if not self.has_live_table:
            return frozenset(pending_defaults(table))
        return without_rows(self.run.lake, self.name, settled(table, self.learned))

    def begin_exchange(self) -> LiveVersion:
        """Returns the version of the table that the exchange reads."""
        self._create_if_missing()
        self._read_version()
        return LiveVersion(name=self.name, version=self.version, definition=self.table)

    def end_exchange(self, step: ExchangeRows, reason: str | None) -> None:
        """Ends an exchange: rows were exchanged, or were not for a ``reason``."""
        if self.incomplete is not None:
            return
        if reason is None:
            self.written = True
            self._finish(step)
        else:
            self.incomplete = _incomplete_ddl(step, reason)

    def end(self) -> TablePlan:
        """Returns the plan as far as it was done. From then on the table is there, also without a row, and ``version``
        is its newest one."""
        self._create_if_missing()
        self._read_version()
        return self.plan if self.incomplete is None else _done_part(self.plan, self.done, self.incomplete)

    def _merge_rows(self, rows: MergeRows) -> IncompleteStep | None:
        """Merges rows up to the first that the table must not take; returns None if there is none."""
        first, point = None, self._merge_unless_blocked(rows)
        while point is not None:
            first = point
            if point.tso < rows.after:  # late rows are not merged in part: a person decides about their table
                break
            # Below the point an older change may be the newest of its key: it is looked at again.
            point = self._merge_unless_blocked(replace(rows, through=point.tso), again=True)
        if first is None:
            return None
        if first.tso < rows.after:  # no later run reads them again
            return IncompleteStep(
                point=BlockingPoint(tso=rows.after, stop=unmergeable_late_row(first.stop.cause)),
                first_missing=first.tso + 1,
            )
        stop = replace(first.stop, needs_override=False)
        return IncompleteStep(point=BlockingPoint(tso=first.tso, stop=stop), first_missing=first.tso + 1)

    def _merge_unless_blocked(self, rows: MergeRows, *, again: bool = False) -> BlockingPoint | None:
        """Merges the rows; merges none, and returns the point before the first row that the table must not take, if
        there is one. ``again``: as in `read_whole`."""
        with self._whole(rows, again=again) as (whole, unread):
            point = self._unmergeable(whole, unread)
            if point is None:
                self._merge(whole)
        return point

    def _whole(self, rows: MergeRows, *, again: bool) -> AbstractContextManager[tuple[MergeRows, BlockingPoint | None]]:
        """Returns a context with the step, in which the rows to be read from TiDB are whole, and the point before the
        first row that cannot be read."""
        run = self.run
        if not needs_source(run.config, rows):
            return nullcontext((rows, None))
        assert run.source is not None, "a feed that reads from TiDB has its address (config.feed)"
        return read_whole(run.lake, run.config, run.source, rows, again=again)

    def _merge(self, rows: MergeRows) -> None:
        config, lake = self.run.config, self.run.commits.at(rows.through)
        if not self.has_live_table:
            with first_rows(lake, self._changes(rows)) as first:
                self._create(lake, first)
            remember_new(lake, self.name, rows)
        else:
            self._commit(lake, lambda: merge(lake, self.name, self._changes(rows)))
        if rows.batches is not None and self._is_purge_due(rows.through):
            days, batches = config.tombstone_days, rows.batches
            self._commit(lake, lambda: purge(lake, self.name, days, config.feed, batches))

    def _changes(self, rows: MergeRows) -> StepChanges:
        config = self.run.config
        return StepChanges(lake=self.run.lake, feed=config.feed, rows=rows, time_zone=config.time_zone)

    def _is_purge_due(self, through: int) -> bool:
        """True in the feed's first window of a day, and once in some versions, since a table may never change in such a
        window: a purge reads the whole table."""
        published = 0 if self.plan.state is None else self.plan.state.version
        is_next_day = time_of(self.tso).date() < time_of(through).date()
        return is_next_day or max(published, 0) // _PURGED_AFTER < self.version // _PURGED_AFTER

    def _unmergeable(self, rows: MergeRows, unread: BlockingPoint | None) -> BlockingPoint | None:
        """Returns the point before the first row that the table must not take; None if there is none."""
        points = (unread, self._irregular(rows), self._unreadable(rows), self._ambiguous(rows))
        return earliest([point for point in points if point is not None])

    def _irregular(self, rows: MergeRows) -> BlockingPoint | None:
        config = self.run.config
        if config.policy(rows.table.database, rows.table.table).on_irregular is not OnIrregular.BLOCK:
            return None
        return first_irregular(self._changes(rows))

    def _unreadable(self, rows: MergeRows) -> BlockingPoint | None:
        if not rows.misread:
            return None
        (first,) = self.run.lake.spark.sql(first_unreadable_sql(rows, self._changes(rows).all_sql())).collect()[0]
        return None if first is None else unreadable_point(rows, first)

    def _ambiguous(self, rows: MergeRows) -> BlockingPoint | None:
        if not may_be_ambiguous(rows, self.run.config.time_zone):
            return None
        return first_ambiguous(self._changes(rows))

    def _alter(self, step: AlterRows) -> IncompleteStep | None:
        self._read_version()
        lake, config = self.run.commits.at(step.commit_ts), self.run.config
        try:
            self._commit(lake, lambda: alter(lake, config, self.name, step, self.version))
        except ApplyError as error:
            return _incomplete_ddl(step, str(error))
        return None

    def _commit(self, lake: Lake, commit: Callable[[], object]) -> None:
        """Calls ``commit``. If its version is the next one, nobody else wrote to the table; else history decides."""
        version = committed(lake.spark, commit)
        if version == self.version + 1 and not self.written:
            self.version = version
        else:
            self.written = True

    def _read_version(self) -> None:
        if self.written:
            self.version = own_version(self.run.lake, self.name, self.version, self.run.commits.run)
            self.written = False

    def _create_if_missing(self) -> None:
        if not self.has_live_table:
            self._create(self.run.commits.at(self.tso))

    def _create(self, lake: Lake, rows: DataFrame | None = None) -> None:
        """Creates the live table in one commit, empty or with its first rows."""
        config = self.run.config
        if self.run.lake.exists(Layer.LIVE, self.name):
            check_is_newest(self.run.lake, config.feed, self.run.number)
            drop_unpublished(self.run.lake, self.name, config.feed)
        create_live_table(lake, self.name, self.table, stable_id=self.stable_id, config=config, rows=rows)
        self.version, self.created = 0, True


def _done_part(plan: TablePlan, done: list[Step], incomplete: IncompleteStep) -> TablePlan:
    """Returns the plan as far as it was done. A DDL of an index leaves the definition its commit_ts: where the steps
    before it lead shows if it is done."""
    through = incomplete.point.tso
    defined = (
        each for each in plan.new_definitions if max(each.definition.commit_ts, each.after) < incomplete.first_missing
    )
    return replace(
        plan,
        through=through,
        ddls=tuple(step.query for step in done if not isinstance(step, MergeRows) and step.commit_ts == through),
        stop=incomplete.point.stop,
        new_definitions=tuple(defined),
    )


def turn_of(step: Step) -> tuple[int, bool]:
    """Returns the TSO at which a step has its turn, and whether it is an exchange: that follows all that either table
    does up to its commit_ts."""
    match step:
        case MergeRows(through=tso) | AlterRows(commit_ts=tso):
            return tso, False
        case ExchangeRows(commit_ts=tso):
            return tso, True


def merges_rows(step: Step) -> bool:
    """True if the step merges rows and has some."""
    return isinstance(step, MergeRows) and bool(step.groups)


def _writes(step: Step) -> bool:
    return not isinstance(step, MergeRows) or merges_rows(step)
