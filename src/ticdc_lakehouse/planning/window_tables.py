"""The plan builders of all tables of a window: which there are, which of them a DDL affects, and how one begins, is
replaced, is blocked or is kept as recoverable by any statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace

from ticdc_lakehouse.planning.barriers import names_after, unapplied_after
from ticdc_lakehouse.planning.blocking import (
    block_unless_ignored,
    block_unless_skipped,
    of_wrong_table,
    unsupported,
)
from ticdc_lakehouse.planning.builder_index import BuilderIndex
from ticdc_lakehouse.planning.compatibility import UNKNOWN_COLUMNS, definition_from_wire
from ticdc_lakehouse.planning.plan_builder import TablePlanBuilder
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Origin
from ticdc_lakehouse.planning.published_tables import published_builder
from ticdc_lakehouse.planning.recovery import (
    end_table,
    last_recoverable,
    recoverable_builders,
    recoverable_of,
    restored,
    unknown_table,
    without_rows,
)
from ticdc_lakehouse.planning.segments import define, merge_rest, merge_until, remaining_groups
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, WayOut
from ticdc_lakehouse.planning.window import BlockingPoint, DdlEvent
from ticdc_lakehouse.schema.computed_default import without_old_rows
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName, fold
from ticdc_lakehouse.schema.statement import RenameTables, may_give_name, unqualified_name


class WindowTables:
    """The plan builders of all tables of a window."""

    def __init__(self, inputs: PlanningInput) -> None:
        self.inputs = inputs
        self.builders = BuilderIndex()
        for name, state in inputs.before.tables.items():
            if inputs.config.matches(*name):  # else it goes (`left_out`), as by a RENAME to such a name
                self.builders.add(published_builder(inputs, name, state))
        self._from_files = {table.name: table for table in inputs.config.tables}
        if inputs.before.tso == 0:
            for table in inputs.config.tables:
                self._begin(table.name, table, 0, Origin.FILE)
        self.recoverable = recoverable_builders(inputs)
        self._read_again = [*unapplied_after(inputs.window.ddls, inputs.before, in_any_order=inputs.eventual)]
        for name, point in sorted(inputs.late_points.items()):
            self._block_late(name, point)
        self.renamed_unknown: dict[TableName, int] = {}
        """The names that RENAMEs gave to tables which gold does not know, each with its commit_ts."""
        self._kept_recoverable = {(builder.name, builder.dropped_at) for builder in self.recoverable}
        firsts = {(group.first, name) for name, groups in inputs.window.rows.items() for group in groups}
        self._first_rows = sorted(firsts, reverse=True)

    def _block_late(self, name: TableName, point: BlockingPoint) -> None:
        """Blocks the table of late rows where it has another name since, or adds one that gold never had. (One that has
        the name is blocked: `published_builder`. One that is gone does not need them. One that is blocked before them
        takes them.)"""
        of_rows = point.stop.kind is StopKind.LATE_ROWS
        if of_rows and not self._includes(name, point.tso + 1):
            self._block_former(name, point.tso + 1, self.inputs.before.tso)
        if name in self.inputs.before.tables or (of_rows and self._had_name(name, point.tso)):
            return
        builder = self._begin(name, None, point.tso, Origin.DDL)
        if builder is not None:
            builder.block(point.stop)

    def _includes(self, name: TableName, commit_ts: int) -> bool:
        """True if a table that has this name includes its rows at a commit_ts. One whose columns and rows are unknown
        may have got the name later."""
        known = (b for b in self.builders.all_named(name) if b.definition is not None or b.awaits_rows is not None)
        return any(builder.named_at < commit_ts <= builder.complete_through for builder in known)

    def _had_name(self, name: TableName, tso: int) -> bool:
        """True if a published table had this name, or may have had it after ``tso``, where it is blocked."""
        published = bool(self.inputs.naming.ids_named(name))
        return published or name in names_after(tso, self.inputs.window.ddls, self.inputs.before)

    def infer_tables(self, through: int) -> None:
        """Adds builders for tables that are inferred from the wire: their first rows are at or below ``through``."""
        while self._first_rows and self._first_rows[-1][0] <= through:
            first, name = self._first_rows.pop()
            if self._includes(name, first) or self._is_of_former_name(name, first):
                continue
            if not self.inputs.config.matches(*name):
                continue  # no name in the history matters
            self._end_kept(name, first)
            has_builder = self.builders.named(name) is not None
            if has_builder or self._block_wrongly_renamed(name, first) or self._block_restored(name):
                continue
            after = self.renamed_unknown.get(name, first - 1 if self._is_reused(name, first) else 0)
            # A file may describe the table that had the name before.
            from_file = None if after else self._from_files.get(name)
            groups = [group for group in self.inputs.window.rows[name] if group.first >= first]
            only_deletes = not any(group.whole for group in groups if group.first <= through)  # up to the next DDL
            table = from_file or definition_from_wire(name, () if only_deletes else groups)
            self._begin(name, table, 0 if from_file else first, Origin.FILE if from_file else Origin.WIRE, after=after)

    def _is_reused(self, name: TableName, first: int) -> bool:
        """True if rows of this name up to a first one are of another table, which had the name before. (In eventual
        mode earlier rows of this one may arrive later.)"""
        earlier = any(group.first < first for group in self.inputs.window.rows[name])
        return not self.inputs.eventual and (earlier or bool(self.inputs.naming.ids_named(name)))

    def _end_kept(self, name: TableName, first: int) -> None:
        """Ends a dropped table that gold keeps (``on_drop: keep``) where rows of its name arrive after the DROP: they
        are not rows of the table that gold shows. In eventual mode rows may be in any order."""
        kept = self.builders.named(name)
        if not self.inputs.eventual and kept is not None and kept.dropped_before(first):
            kept.stop = None
            self.builders.remove(kept)
            self.keep_recoverable(kept)

    def _block_wrongly_renamed(self, name: TableName, first: int) -> bool:
        """Blocks the last table that left this name, and adds one that is blocked for its rows from ``first`` on, if
        the RENAME does not name the database and no later DDL gives the name to another table: TiDB renamed a table of
        another database. False if rows may have this name. In mode eventual the DDL may arrive later."""
        left = self.inputs.naming.left_name(name, first) if not self.inputs.eventual else None
        if left is None:
            return False
        renamed_at, stable_id = left
        ddls = [
            ddl for ddl in (*self.inputs.past_ddls, *self.inputs.window.ddls) if renamed_at <= ddl.commit_ts < first
        ]
        unqualified = (ddl for ddl in ddls if ddl.commit_ts == renamed_at and _may_rename(ddl, name))
        ddl = next(unqualified, None)
        if ddl is None or _may_be_given(name, (each for each in ddls if each.commit_ts > renamed_at)):
            return False
        stop = of_wrong_table(ddl, name)
        for builder in self.builders:
            if builder.definition is not None and builder.definition.stable_id == stable_id:
                builder.stop = stop if builder.dropped_at is None else builder.stop
        self._make_unknown({stable_id})
        added = self._begin(name, None, first - 1, Origin.DDL)
        assert added is not None, "the feed's filter includes it"
        added.block(stop)
        return True

    def keeps_name(self, name: TableName, ddl: DdlEvent) -> bool:
        """True if rows show that a table kept its name at a RENAME that may be of another one: they follow it, and no
        DDL in between gives the name to a table. In mode eventual such a DDL may arrive later."""
        rows = self.inputs.window.rows.get(name, ()) if not self.inputs.eventual else ()
        first = min((group.first for group in rows if group.first > ddl.commit_ts), default=None)
        if first is None or recoverable_of(self.recoverable, name):
            return False
        since = (d for d in self.inputs.window.ddls if ddl.commit_ts <= d.commit_ts < first)
        return not _may_be_given(name, since)

    def _block_restored(self, name: TableName) -> bool:
        """Adds a table whose rows continue after its DROP, although no statement created it again, and blocks it for
        good: the rows that it has from before are not known. False if TiDB did not drop a table of this name."""
        dropped = last_recoverable(recoverable_of(self.recoverable, name))
        if dropped is None or dropped.dropped_at is None:
            return False
        builder = self._begin(name, None, dropped.dropped_at, Origin.DDL)
        assert builder is not None, "the feed's filter includes it"
        builder.block(restored(dropped.dropped_at))
        return True

    def _is_of_former_name(self, name: TableName, first: int) -> bool:
        """True if rows at or below the watermark belong to a table that had this name before. They are read again for
        a blocked table that had or got this name, too: whatever table they are of has them, or is gone. A renamed
        table lacks rows that arrived late and is blocked; a dropped one does not need them."""
        if first > self.inputs.before.tso:
            return False
        groups = [group for group in self.inputs.window.rows[name] if group.first <= first]
        if not self.inputs.eventual and not any(group.replayed for group in groups):
            return True
        of_first = [group for group in groups if group.first == first]
        is_new = any(group.replayed for group in of_first)
        if is_new or not any(each == name and first > after for each, after in self._read_again):
            self._block_former(name, first, max(group.last for group in of_first))
        return self._had_name(name, first - 1)

    def _block_former(self, name: TableName, first: int, last: int) -> None:
        """Blocks the tables that had this name at these commit_ts, if they are still there: rows of them arrived late.
        One that lags behind may still have the name, and takes them, as does the one that has it now; one that was
        dropped cannot come back without them."""
        ids = self.inputs.naming.ids_named_between(name, first, last)
        for builder in self.builders:
            takes = builder.name == name and builder.named_at < last
            had_name = builder.definition is not None and builder.definition.stable_id in ids
            if (had_name or builder.awaited_rows_at(first)) and not takes:
                builder.stop = _lacks_rows(builder.stop, name)
        self._make_unknown(ids)

    def _make_unknown(self, ids: Set[str]) -> None:
        """Takes the rows from the recoverable tables with these stable ids."""
        self._forget_rows_of(lambda each: each.definition is not None and each.definition.stable_id in ids)

    def finish(self) -> None:
        """Merges the remaining rows of all tables."""
        for builder in self.builders:
            merge_rest(self.inputs, builder)

    def record_renames(self, ddls: Sequence[DdlEvent]) -> None:
        """Records all renames of one commit_ts for every table that one of them renamed. In a swap its new name is
        another rename's old name, and the window after one that ends here sees them all again. A blocked table has its
        old definition, if any, and is renamed again when it continues."""
        renames = [ddl for ddl in ddls if any(isinstance(statement, RenameTables) for statement in ddl.statements)]
        for builder in self.builders if len(renames) > 1 else ():
            missing = [ddl for ddl in renames if not builder.has_recorded(ddl)]
            follows = builder.stop is None or builder.definition is None
            if follows and len(missing) < len(renames):
                for ddl in missing:
                    builder.record_ddl(ddl)

    def affected(self, ddl: DdlEvent, names: Sequence[TableName]) -> list[TablePlanBuilder]:
        """Returns the builders of these names whose tables do not include the DDL yet."""
        return [builder for name in names if (builder := self.affected_by(ddl, name)) is not None]

    def affected_by(self, ddl: DdlEvent, name: TableName) -> TablePlanBuilder | None:
        """Returns the builder of this name whose table does not include the DDL yet; None if there is none."""
        return next((builder for builder in self.builders.all_named(name) if not builder.includes(ddl)), None)

    def of_database(self, ddl: DdlEvent, database: str) -> list[TablePlanBuilder]:
        """Returns the builders of a database's tables that do not include the DDL yet."""
        return [builder for builder in self.builders.of_database(database) if not builder.includes(ddl)]

    def is_new(self, ddl: DdlEvent) -> bool:
        """True if a DDL that creates a table is not applied yet."""
        before = self.inputs.before
        if ddl.out_of_order:
            return True
        if ddl.commit_ts != before.tso:
            return ddl.commit_ts > before.tso
        return not any(ddl.query in s.ddls for s in before.tables.values() if s.applied_tso == before.tso)

    def _begin(
        self, name: TableName, table: Table | None, commit_ts: int, origin: Origin, *, after: int = 0
    ) -> TablePlanBuilder | None:
        """Adds and returns a builder; None if the feed's filter excludes the table. Rows of its name up to ``after``
        are of another table; 0 if none are known to be."""
        if not self.inputs.config.matches(*name):
            return None
        name = self.builders.spelled(name)
        table = None if table is None else without_old_rows(replace(table, database=name.database))
        begin = commit_ts if origin is Origin.DDL else max(after, self.inputs.before.tso)
        builder = TablePlanBuilder(name=name, definition=None, state=None, complete_through=begin)
        if table is not None:
            define(self.inputs, builder, table, commit_ts, origin, named_at=after)
        elif after:
            builder.awaits_rows = replace(UNKNOWN_COLUMNS, commit_ts=after, named_at=after)
        self.builders.add(builder)
        return builder

    def begin_at(self, ddl: DdlEvent, name: TableName, table: Table | None) -> TablePlanBuilder | None:
        """Adds and returns a table that the DDL makes; None if the feed's filter excludes it."""
        builder = self._begin(_as_sent(ddl, name), table, ddl.commit_ts, Origin.DDL)
        if builder is not None:
            builder.record_ddl(ddl)
        return builder

    def create(self, ddl: DdlEvent, name: TableName, table: Table | None) -> TablePlanBuilder | None:
        """Begins and returns a table; None if the CREATE TABLE is applied already, or if an existing table contradicts
        it."""
        existing = self.builders.named(name)
        if existing is not None and (existing.includes(ddl) or not self.replace_existing(ddl, existing)):
            return None
        if existing is None and not self.is_new(ddl):
            return None
        return self.begin_at(ddl, name, table)

    def replace_existing(self, ddl: DdlEvent, existing: TablePlanBuilder) -> bool:
        """Lets a created, renamed or restored table replace the existing one of its name; False if it cannot. It
        replaces a blocked table, which TiDB must have dropped, a table whose columns are unknown, and a table of the
        schema_file without rows, whose definition the DDL supersedes. Any other existing table is blocked."""
        untouched = existing.definition is not None and existing.definition.origin is Origin.FILE and not existing.steps
        untouched = untouched and not remaining_groups(self.inputs, existing, ddl.commit_ts)
        if existing.stop is not None or existing.definition is None or untouched:
            self.builders.remove(existing)
            if existing.stop is not None:
                self.keep_recoverable(end_table(existing, ddl))
            return True
        merge_until(self.inputs, existing, ddl.commit_ts)
        if existing.may_include(ddl):
            existing.record_ddl(ddl)
        else:
            block_unless_skipped(self.inputs, ddl, existing, unsupported(ddl, "the table exists already"))
        return False

    def block_named(self, ddl: DdlEvent, names: Sequence[TableName], stop: StopReason) -> None:
        """Blocks the tables of these names that do not include the DDL; adds the ones that are unknown so far."""
        for name in names:
            builder = self.affected_by(ddl, name)
            if builder is not None:
                merge_until(self.inputs, builder, ddl.commit_ts)
            elif self.builders.named(name) is None and self.is_new(ddl):
                builder = self.begin_at(ddl, name, None)
            if builder is not None:
                block_unless_ignored(self.inputs, ddl, builder, stop)

    def keep_recoverable(self, ended: TablePlanBuilder) -> None:
        """Keeps a dropped table as recoverable, once: windows apply the same DDL again while a table is blocked before
        it. Once that one has caught up, its rows are known. In eventual mode no table is recoverable, because its rows
        at the DROP are unknown."""
        if self.inputs.eventual:
            return
        dropped = ended.name, ended.dropped_at
        if dropped not in self._kept_recoverable:
            self._kept_recoverable.add(dropped)
            self.recoverable.append(ended)
        elif ended.definition is not None:
            unknown = [each for each in self.recoverable if (each.name, each.dropped_at) == dropped]
            self.recoverable = [ended if each in unknown else each for each in self.recoverable]

    def keep_unknown_tables(self, ddl: DdlEvent, names: Iterable[TableName]) -> None:
        """Keeps, as recoverable tables without rows, those of a DROP or TRUNCATE that gold does not have and that took
        the name of a dropped table: TiDB restores them, and not the older one."""
        for name in names if self.is_new(ddl) else ():
            if self._is_of_dropped_table(name, ddl.commit_ts):
                self.keep_recoverable(unknown_table(name, ddl.commit_ts))

    def _is_of_dropped_table(self, name: TableName, commit_ts: int) -> bool:
        """True if the last table of this name that gold knows was dropped before a commit_ts."""
        named = self.builders.named(name)
        return bool(recoverable_of(self.recoverable, name)) if named is None else named.dropped_before(commit_ts)

    def forget_rows(self, builder: TablePlanBuilder) -> None:
        """Takes the rows from a recoverable table that an earlier window restored, and that has caught up since."""
        self._forget_rows_of(lambda each: each is builder)

    def _forget_rows_of(self, is_affected: Callable[[TablePlanBuilder], bool]) -> None:
        self.recoverable = [without_rows(each) if is_affected(each) else each for each in self.recoverable]

    def forget_recoverable(self, builder: TablePlanBuilder | None) -> None:
        """Takes a table that is restored out of the recoverable ones, if it is among them."""
        if builder in self.recoverable:
            self.recoverable.remove(builder)
            self._kept_recoverable.discard((builder.name, builder.dropped_at))


def _as_sent(ddl: DdlEvent, name: TableName) -> TableName:
    """Returns the name with its database as the DDL's message spells it, which is as CREATE DATABASE did; the text has
    what was typed. The message of a RENAME has it in lower case (wire.md 8.14)."""
    is_rename = any(isinstance(statement, RenameTables) for statement in ddl.statements)
    if is_rename or ddl.database is None or fold(ddl.database) != fold(name.database):
        return name
    return TableName(ddl.database, name.table)


def _may_rename(ddl: DdlEvent, name: TableName) -> bool:
    """True if a DDL renames a table of this name in a database that the text does not name."""
    renames = (statement for statement in ddl.statements if isinstance(statement, RenameTables))
    unqualified = filter(None, map(unqualified_name, renames))
    return any(fold(each.table) == fold(name.table) for each in unqualified)


def _may_be_given(name: TableName, ddls: Iterable[DdlEvent]) -> bool:
    """True if one of the DDLs gives this name to a table, or may do so."""
    return any(may_give_name(statement, name) for ddl in ddls for statement in ddl.statements)


def _lacks_rows(stop: StopReason | None, name: TableName) -> StopReason:
    """Returns the reason of a table that lacks rows which no later window reads; its present one if only an export, or
    the table's end, removes that."""
    if stop is not None and (
        stop.kind in (StopKind.DROPPED, StopKind.LATE_ROWS) or (stop.of_ddl and not stop.can_skip)
    ):
        return stop
    blocked = "" if stop is None else f" while it was blocked ({stop.cause})"
    detail = f"rows arrived late under the name that it had before, {name}{blocked}"
    ways_out = (WayOut.LOAD_EXPORT, WayOut.RESUME_WITHOUT)
    return StopReason(kind=StopKind.LATE_ROWS, detail=detail, ways_out=ways_out, needs_override=True)
