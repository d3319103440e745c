"""All lanes of a window, followed through its DDLs in commit order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ticdc_codec.errors import ApplyError
from ticdc_lakehouse.planning.compatibility import definition_from_wire
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.recovery import as_it_ends, last_dropped, recoverable_lanes
from ticdc_lakehouse.planning.segments import define, take, untaken
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.table_plan import Lane, exchange_step, unsupported_ddl
from ticdc_lakehouse.planning.table_plans import TablePlans
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.policy import OnDrop, OnUnsupportedDdl
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import (
    AlterTable,
    CreateTable,
    CreateTableLike,
    DropDatabase,
    DropTables,
    ExchangePartition,
    RenameTables,
    RestoreTable,
    Statement,
    TruncateTable,
    Unread,
)


class Lanes:
    """All lanes of a window, while its DDLs are followed."""

    def __init__(self, now: PlanningInput) -> None:
        self.now = now
        self.lanes = TablePlans()
        for name, state in now.before.tables.items():
            self.lanes.add(_published_lane(now, name, state))
        self._from_files = {table.name: table for table in now.applying.tables}
        if now.before.tso == 0:
            for table in now.applying.tables:
                self._begin(table.name, table, 0, "file")
        for name in sorted(now.late.keys() - now.before.tables.keys()):
            lane = self._begin(name, None, now.late[name].tso, "ddl")
            if lane is not None:
                lane.block(now.late[name].stop)
        self.recoverable = recoverable_lanes(now)
        self._remembered = {(lane.name, lane.dropped_at) for lane in self.recoverable}
        firsts = {(shape.first, name) for name, shapes in now.window.rows.items() for shape in shapes}
        self._undiscovered = sorted(firsts, reverse=True)

    def discover(self, through: int) -> None:
        """Make lanes of tables that show themselves by their rows alone, up to ``through``."""
        while self._undiscovered and self._undiscovered[-1][0] <= through:
            first, name = self._undiscovered.pop()
            if self.lanes.named(name) is not None or self._came_late(name, first):
                continue
            from_file = self._from_files.get(name)
            shapes = (shape for shape in self.now.window.rows[name] if shape.first >= first)
            table = from_file or definition_from_wire(name, shapes)
            self._begin(name, table, 0 if from_file else first, "file" if from_file else "wire")

    def _came_late(self, name: TableName, first: int) -> bool:
        """Whether rows belong to a table that no longer bears their name: one that was dropped needs them no more, one
        that is called otherwise lacks them."""
        bearers = self.now.naming.bearers(name) if first <= self.now.before.tso else ()
        for lane in self.lanes if bearers else ():
            if lane.definition is not None and lane.definition.data in bearers:
                detail = f"rows arrived late under the name that it had before, {name}"
                lane.block(StopReason(kind=StopKind.LATE_ROWS, detail=detail, needs_override=True))
        return bool(bearers)

    def finish(self) -> None:
        """Take the rest of the window's rows."""
        for lane in self.lanes:
            take(self.now, lane, self.now.tso)

    def follow(self, ddl: DdlEvent, statement: Statement) -> None:
        """Do what a statement says with the lanes that it is about."""
        match statement:
            case CreateTable(table=table):
                self._create(ddl, table.name, table)
            case CreateTableLike(name=name, source=source):
                self._create_like(ddl, name, source)
            case DropTables() | DropDatabase():
                self._drop(ddl, statement)
            case TruncateTable(name=name):
                self._truncate(ddl, name)
            case RenameTables(pairs=pairs):
                self._rename(ddl, pairs)
            case AlterTable():
                self._alter(ddl, statement)
            case RestoreTable():
                self._restore(ddl, statement)
            case ExchangePartition():
                self._exchange(ddl, statement)
            case Unread():
                self._give_up(ddl, statement)

    def _alter(self, ddl: DdlEvent, statement: AlterTable) -> None:
        for lane in self._meant(ddl, (statement.name,)):
            if not statement.of_indexes:
                take(self.now, lane, ddl.commit_ts)
            if self._is_skipped(ddl, lane):
                lane.note(ddl)
                continue
            try:
                lane.alter(ddl, statement, noncanonical_key_digits=self.now.applying.noncanonical_key_digits)
            except ApplyError as error:
                self._give_lane_up(ddl, lane, str(error))

    def _exchange(self, ddl: DdlEvent, statement: ExchangePartition) -> None:
        names = (statement.partitioned, statement.plain)
        if self.now.batches is not None:
            self._halt(ddl, names, "in gold mode eventual deleted rows stay, and nothing tells their partition")
            return
        lanes = self._meant(ddl, names)
        for lane in lanes:
            take(self.now, lane, ddl.commit_ts)
        if any(lane.stop is not None and not lane.stop.needs_override for lane in lanes):
            for lane in lanes:
                lane.block(_unsupported(ddl, "the other table is blocked", can_skip=False, needs_override=False))
            return
        if any(self._is_skipped(ddl, lane) for lane in lanes):
            self._halt(ddl, names, "the other table skips it")
            return
        try:
            step = exchange_step(ddl, statement.partition, lanes)
        except ApplyError as error:
            self._halt(ddl, names, str(error))
            return
        for lane in lanes:
            lane.exchange(ddl, step)

    def _restore(self, ddl: DdlEvent, statement: RestoreTable) -> None:
        """A dropped or truncated table comes back with the rows that it had."""
        lane = last_dropped((*self.recoverable, *self.lanes), statement.name)
        existing = self.lanes.named(statement.to)
        if existing is not None and existing is not lane:
            if existing.knows(ddl) or not self._replaced(ddl, existing):
                return
        elif not self._is_news(ddl):
            return
        if lane in self.recoverable:
            self.recoverable.remove(lane)
            self._remembered.discard((lane.name, lane.dropped_at))
        if not self.now.applying.matches(*statement.to):
            return
        if lane is None or lane.definition is None or self.now.batches is not None:
            self._halt(ddl, (statement.to,), "the rows of a table that comes back are not known")
            return
        if lane not in self.lanes:
            self.lanes.add(lane)
        name = lane.name if lane.name == statement.to else self.lanes.spelled(statement.to)
        self.lanes.rename(lane, name)
        lane.come_back(ddl, self.now.naming.view(name))

    def _give_up(self, ddl: DdlEvent, statement: Unread) -> None:
        match statement:
            case Unread(names=names, database=None, reason=reason):
                self._halt(ddl, names, reason)
            case Unread(database=str(database), reason=reason):
                self._halt(ddl, [lane.name for lane in self._of_database(ddl, database)], reason)

    def _drop(self, ddl: DdlEvent, statement: DropTables | DropDatabase) -> None:
        match statement:
            case DropTables(names=names):
                dropped = self._meant(ddl, names)
            case DropDatabase(database=database):
                dropped = self._of_database(ddl, database)
        for lane in dropped:
            take(self.now, lane, ddl.commit_ts)
            ended = as_it_ends(lane, ddl)
            if self.now.applying.policy(*lane.name).on_drop is OnDrop.DROP:
                self.lanes.remove(lane)
                self._remember(ended)
            elif ended is not lane:
                self._remember(ended)
            else:
                lane.block(StopReason(kind=StopKind.DROPPED, commit_ts=ddl.commit_ts, needs_override=True))

    def _remember(self, ended: Lane) -> None:
        """Once, however often the DDL is followed: it is again while some table is blocked before it. In the eventual
        mode nothing tells which rows a table had when it ended."""
        if self.now.batches is not None:
            return
        if (ended.name, ended.dropped_at) not in self._remembered:
            self._remembered.add((ended.name, ended.dropped_at))
            self.recoverable.append(ended)

    def _meant(self, ddl: DdlEvent, names: tuple[TableName, ...]) -> list[Lane]:
        """The lanes of these names that the DDL is news to."""
        found = (self.lanes.named(name) for name in names)
        return [lane for lane in found if lane is not None and not lane.knows(ddl)]

    def _of_database(self, ddl: DdlEvent, database: str) -> list[Lane]:
        return [lane for lane in self.lanes.of_database(database) if not lane.knows(ddl)]

    def _begin(self, name: TableName, table: Table | None, commit_ts: int, source: str) -> Lane | None:
        """A new lane, if the feed's filter lets the table in."""
        if not self.now.applying.matches(*name):
            return None
        name = self.lanes.spelled(name)
        table = None if table is None else replace(table, database=name.database)
        after = commit_ts if source == "ddl" else self.now.before.tso
        lane = Lane(name=name, definition=None, state=None, after=after)
        if table is not None:
            define(self.now, lane, table, commit_ts, source)
        self.lanes.add(lane)
        return lane

    def _create(self, ddl: DdlEvent, name: TableName, table: Table | None, reason: str = "") -> None:
        """A CREATE TABLE makes a table that nobody knows, repeats the one that made it, or cannot be right."""
        existing = self.lanes.named(name)
        if existing is not None and (existing.knows(ddl) or not self._replaced(ddl, existing)):
            return
        if existing is None and not self._is_news(ddl):
            return
        lane = self._begin(name, table, ddl.commit_ts, "ddl")
        if lane is None:
            return
        lane.note(ddl)
        if table is None:
            lane.block(_unsupported(ddl, reason, can_skip=False, needs_override=False))

    def _replaced(self, ddl: DdlEvent, existing: Lane) -> bool:
        """Whether a table that is made, renamed or restored takes the place of the lane of its name: of one that is
        blocked, since TiDB must have dropped that, and of a schema_file's that has no rows yet, since the DDL knows
        better. Of no other: that one is blocked."""
        untouched = existing.definition is not None and existing.definition.source == "file" and not existing.steps
        if existing.stop is not None or (untouched and not untaken(self.now, existing, ddl.commit_ts)):
            self.lanes.remove(existing)
            if existing.stop is not None:
                self._remember(as_it_ends(existing, ddl))
            return True
        take(self.now, existing, ddl.commit_ts)
        self._stop(ddl, existing, "the table is there already")
        return False

    def _create_like(self, ddl: DdlEvent, name: TableName, source: TableName) -> None:
        lane = self.lanes.named(source)
        if lane is None or lane.stop is not None or lane.definition is None:
            self._create(ddl, name, None, f"{'.'.join(source)} is not known")
        else:
            self._create(ddl, name, replace(lane.definition.table, database=name[0], table=name[1]))

    def _is_news(self, ddl: DdlEvent) -> bool:
        """Whether a DDL that makes a table is not applied yet."""
        before = self.now.before
        if ddl.late:
            return True
        if ddl.commit_ts != before.tso:
            return ddl.commit_ts > before.tso
        return not any(ddl.query in s.ddls for s in before.tables.values() if s.applied_tso == before.tso)

    def _truncate(self, ddl: DdlEvent, name: TableName) -> None:
        for lane in self._meant(ddl, (name,)):
            was_blocked = lane.stop is not None
            take(self.now, lane, ddl.commit_ts)
            self._remember(as_it_ends(lane, ddl))
            if not was_blocked and lane.definition is not None:  # rows that could not be taken are gone
                self.lanes.remove(lane)
                new = self._begin(lane.name, lane.definition.table, ddl.commit_ts, "ddl")
                assert new is not None
                new.note(ddl)

    def _rename(self, ddl: DdlEvent, pairs: Sequence[tuple[TableName, TableName]]) -> None:
        for old, new in pairs:
            self._rename_one(ddl, old, new)

    def _rename_one(self, ddl: DdlEvent, old: TableName, new: TableName) -> None:
        for lane in self._meant(ddl, (old,)):
            take(self.now, lane, ddl.commit_ts)
            if not self.now.applying.matches(*new):
                self.lanes.remove(lane)
                return
            existing = self.lanes.named(new)
            if existing is None or existing is lane or self._replaced(ddl, existing):
                self.lanes.rename(lane, self.lanes.spelled(new))
                lane.renamed(ddl, self.now.naming.view(new))
            else:
                self._stop(ddl, lane, f"there is a table {'.'.join(new)} already")
            return
        if not self.now.applying.matches(*old) and self._is_news(ddl):
            self._create(ddl, new, None, f"the rows that {'.'.join(old)} had, which the feed's filter leaves out,")

    def _halt(self, ddl: DdlEvent, names: Sequence[TableName], reason: str) -> None:
        """Stop the tables of these names, also those that nobody knows yet."""
        for name in names:
            lane = self.lanes.named(name)
            if lane is not None and not lane.knows(ddl):
                take(self.now, lane, ddl.commit_ts)
            elif lane is None and self._is_news(ddl):
                lane = self._begin(name, None, ddl.commit_ts, "ddl")
            if lane is not None and not lane.knows(ddl):
                self._give_lane_up(ddl, lane, reason)

    def _is_skipped(self, ddl: DdlEvent, lane: Lane) -> bool:
        return lane.definition is not None and (lane.definition.data, ddl.commit_ts) in self.now.skipped

    def _give_lane_up(self, ddl: DdlEvent, lane: Lane, reason: str) -> None:
        """Block a table before a DDL that cannot be followed, unless that is to be ignored."""
        if self.now.applying.policy(*lane.name).on_unsupported_ddl is OnUnsupportedDdl.IGNORE:
            lane.note(ddl)
        else:
            self._stop(ddl, lane, reason)

    def _stop(self, ddl: DdlEvent, lane: Lane, reason: str) -> None:
        """Block a table before a DDL, or skip it if somebody decided so."""
        if self._is_skipped(ddl, lane):
            lane.note(ddl)
        else:
            lane.block(_unsupported(ddl, reason, can_skip=lane.definition is not None))


def _unsupported(ddl: DdlEvent, detail: str, *, can_skip: bool, needs_override: bool = True) -> StopReason:
    return unsupported_ddl(ddl.commit_ts, ddl.query, detail, can_skip=can_skip, needs_override=needs_override)


def _published_lane(now: PlanningInput, name: TableName, state: TableState) -> Lane:
    """A table as it was published, under the name that it had at its ``applied_tso``."""
    definition = now.known.get(state.data)
    if definition is not None:
        name = definition.table.name
    lane = Lane(name=name, definition=definition, start=definition, state=state, after=state.applied_tso)
    lane.seen = (state.applied_tso, state.ddls)
    late = now.late.get(name)
    if state.stop is not None and state.stop.needs_override:
        lane.block(state.stop)
        lane.dropped_at = state.applied_tso if state.dropped else None
    elif late is not None and late.tso < state.applied_tso:  # else the table has yet to take that row, and will
        changed = definition.commit_ts if definition is not None and definition.source == "ddl" else 0
        # From there on all is read again when it resumes; what came before a DDL cannot be.
        lane.after = state.applied_tso if late.tso < changed else late.tso
        lane.seen = (0, ())
        lane.block(late.stop)
    return lane
