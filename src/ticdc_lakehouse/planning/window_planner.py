"""Builds the plans of all tables of a window from its DDLs in commit order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ticdc_codec.errors import ApplyError
from ticdc_lakehouse.planning.blocking import (
    ambiguous,
    block_unless_ignored,
    block_unless_skipped,
    is_ambiguous,
    is_skipped,
    unsupported,
)
from ticdc_lakehouse.planning.compatibility import definition_from_wire
from ticdc_lakehouse.planning.naming import schema_part
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_tables import published_builder
from ticdc_lakehouse.planning.recovery import end_table, last_recoverable, recoverable_builders
from ticdc_lakehouse.planning.segments import define, merge_rest, merge_until, remaining_groups
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.table_plan import TablePlanBuilder, exchange_step
from ticdc_lakehouse.planning.table_plans import TablePlans
from ticdc_lakehouse.planning.undefined_tables import await_rows, leave_former_rows
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.policy import OnDrop
from ticdc_lakehouse.schema.computed_default import OldRows, with_old_rows, without_old_rows
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.repeated import removes_rows
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

MOVED = (
    "gold.schema gives the new name another schema, and no catalog moves a table: its rows are not there. "
    "`ticdc-lake load` an export taken since"
)


class WindowPlanner:
    """The plan builders of all tables of a window. Each DDL updates the plans of the tables that it affects."""

    def __init__(self, now: PlanningInput) -> None:
        self.now = now
        self.builders = TablePlans()
        for name, state in now.before.tables.items():
            self.builders.add(published_builder(now, name, state))
        self._from_files = {table.name: table for table in now.config.tables}
        if now.before.tso == 0:
            for table in now.config.tables:
                self._begin(table.name, table, 0, "file")
        for name in sorted(now.late.keys() - now.before.tables.keys()):
            builder = self._begin(name, None, now.late[name].tso, "ddl")
            if builder is not None:
                builder.block(now.late[name].stop)
        self.recoverable = recoverable_builders(now)
        self._kept_recoverable = {(builder.name, builder.dropped_at) for builder in self.recoverable}
        firsts = {(group.first, name) for name, groups in now.window.rows.items() for group in groups}
        self._first_rows = sorted(firsts, reverse=True)

    def infer_tables(self, through: int) -> None:
        """Adds builders for tables that are inferred from the wire: their first rows lie at or below ``through``."""
        while self._first_rows and self._first_rows[-1][0] <= through:
            first, name = self._first_rows.pop()
            if self.builders.named(name) is not None or self._is_of_former_name(name, first):
                continue
            from_file = self._from_files.get(name)
            groups = (group for group in self.now.window.rows[name] if group.first >= first)
            table = from_file or definition_from_wire(name, groups)
            self._begin(name, table, 0 if from_file else first, "file" if from_file else "wire")

    def _is_of_former_name(self, name: TableName, first: int) -> bool:
        """True if rows at or below the watermark belong to a table that had this name before. They are read again for
        a blocked table that had or got this name, too: whatever table they are of has them, or is gone. A renamed
        table lacks rows that arrived late and is blocked; a dropped one does not need them."""
        if first > self.now.before.tso:
            return False
        if self.now.batches is None and not any(g.replayed for g in self.now.window.rows[name] if g.first <= first):
            return True
        data_of_name = self.now.naming.data_of_name(name)
        for builder in self.builders if data_of_name else ():
            if builder.definition is not None and builder.definition.data in data_of_name:
                detail = f"rows arrived late under the name that it had before, {name}"
                builder.block(StopReason(kind=StopKind.LATE_ROWS, detail=detail, needs_override=True))
        return bool(data_of_name)

    def finish(self) -> None:
        """Merges the remaining rows of all tables."""
        for builder in self.builders:
            merge_rest(self.now, builder)

    def apply_ddl(self, ddl: DdlEvent, statement: Statement) -> None:
        """Updates the plans of all tables that the statement affects."""
        match statement:
            case CreateTable(table=table):
                self._create(ddl, table.name, table)
            case CreateTableLike():
                self._create_like(ddl, statement)
            case DropTables() | DropDatabase():
                self._drop(ddl, statement)
            case TruncateTable(name=name):
                self._truncate(ddl, name)
            case RenameTables():
                self._rename(ddl, statement)
            case AlterTable():
                self._alter(ddl, statement)
            case RestoreTable():
                self._restore(ddl, statement)
            case ExchangePartition():
                self._exchange(ddl, statement)
            case Unread():
                self._block_unread(ddl, statement)

    def record_renames(self, ddls: Sequence[DdlEvent]) -> None:
        """Records all renames of one commit_ts for every table that one of them renamed. In a swap its new name is
        another rename's old name, and the window after one that ends here sees them all again. A blocked table has its
        old definition, if any, and is renamed again when it goes on."""
        renames = [ddl for ddl in ddls if any(isinstance(statement, RenameTables) for statement in ddl.statements)]
        for builder in self.builders if len(renames) > 1 else ():
            missing = [ddl for ddl in renames if not builder.has_recorded(ddl)]
            follows = builder.stop is None or builder.definition is None
            if follows and len(missing) < len(renames):
                for ddl in missing:
                    builder.record_ddl(ddl)

    def _alter(self, ddl: DdlEvent, statement: AlterTable) -> None:
        for builder in self._affected(ddl, (statement.name,)):
            if not statement.of_indexes:
                merge_until(self.now, builder, ddl.commit_ts)
            if is_skipped(self.now, ddl, builder):
                builder.record_ddl(ddl)
                continue
            if builder.may_include(ddl) and removes_rows(statement):
                builder.block(unsupported(ddl, _UNCERTAIN))
                continue
            digits = self.now.config.noncanonical_key_digits
            resolved = with_old_rows(statement, ddl.commit_ts, self._old_rows(builder.name))
            try:
                builder.alter(ddl, resolved, noncanonical_key_digits=digits)
            except ApplyError as error:
                if builder.has_effect_of(ddl, statement):
                    builder.record_ddl(ddl)
                else:
                    block_unless_ignored(self.now, ddl, builder, unsupported(ddl, str(error)))

    def _old_rows(self, name: TableName) -> OldRows:
        config = self.now.config
        policy = config.policy(*name).on_computed_default
        return OldRows(policy=policy, time_zone=config.time_zone, ddl_time_zone=config.ddl_time_zone)

    def _exchange(self, ddl: DdlEvent, statement: ExchangePartition) -> None:
        partitioned, plain = statement.partitioned, statement.plain
        candidates = self._candidates(ddl, partitioned, plain) if statement.unqualified else [partitioned]
        names = (candidates[0], plain)
        if len(candidates) > 1 or self._is_any_ambiguous(ddl, names):
            self._block_ambiguous(ddl, partitioned, candidates, plain)
            return
        if self.now.batches is not None:
            reason = "gold mode eventual keeps deleted rows, whose partition is unknown"
            self._block_named(ddl, names, unsupported(ddl, reason))
            return
        builders = self._affected(ddl, names)
        for builder in builders:
            merge_until(self.now, builder, ddl.commit_ts)
        if any(builder.stop is not None and not builder.stop.needs_override for builder in builders):
            for builder in builders:
                builder.block(unsupported(ddl, "the other table is blocked", can_skip=False, needs_override=False))
            return
        if any(is_skipped(self.now, ddl, builder) for builder in builders):
            self._block_named(ddl, names, unsupported(ddl, "the other table skips it"))
            return
        try:
            step = exchange_step(ddl, statement.partition, builders)
        except ApplyError as error:
            self._block_named(ddl, names, unsupported(ddl, str(error)))
            return
        for builder in builders:
            builder.exchange(ddl, step)

    def _restore(self, ddl: DdlEvent, statement: RestoreTable) -> None:
        """Restores a dropped or truncated table with the rows that it had."""
        builder = last_recoverable((*self.recoverable, *self.builders), statement.name)
        existing = self.builders.named(statement.to)
        if existing is not None and existing is not builder:
            if existing.includes(ddl) or not self._replaced(ddl, existing):
                return
        elif not self._is_new(ddl):
            return
        if builder in self.recoverable:
            self.recoverable.remove(builder)
            self._kept_recoverable.discard((builder.name, builder.dropped_at))
        if not self.now.config.matches(*statement.to):
            return
        if builder is None or builder.definition is None or self.now.batches is not None:
            stop = unsupported(ddl, "the rows of the restored table are unknown")
            self._block_named(ddl, (statement.to,), stop)
            return
        if builder not in self.builders:
            self.builders.add(builder)
        name = builder.name if builder.name == statement.to else self.builders.spelled(statement.to)
        view = self.now.naming.view(name)
        if _leaves_schema(builder, view):
            self._leave_schema(ddl, builder, name)
            return
        self.builders.rename(builder, name)
        builder.restore(ddl, view)

    def _block_unread(self, ddl: DdlEvent, statement: Unread) -> None:
        names: Sequence[TableName] = statement.names
        if statement.database is not None:
            names = [builder.name for builder in self._of_database(ddl, statement.database)]
        self._block_named(ddl, names, unsupported(ddl, statement.reason))

    def _drop(self, ddl: DdlEvent, statement: DropTables | DropDatabase) -> None:
        match statement:
            case DropTables(names=names):
                dropped = self._affected(ddl, names)
            case DropDatabase(database=database):
                dropped = self._of_database(ddl, database)
        for builder in dropped:
            merge_until(self.now, builder, ddl.commit_ts)
            ended = end_table(builder, ddl)
            if self.now.config.policy(*builder.name).on_drop is OnDrop.DROP:
                self.builders.remove(builder)
                self._keep_recoverable(ended)
            elif ended is not builder:
                self._keep_recoverable(ended)
            else:
                builder.block(StopReason(kind=StopKind.DROPPED, commit_ts=ddl.commit_ts, needs_override=True))

    def _keep_recoverable(self, ended: TablePlanBuilder) -> None:
        """Keeps a dropped table as recoverable, once: windows apply the same DDL again while a table is blocked before
        it. In eventual mode no table is recoverable, because its rows at the DROP are unknown."""
        if self.now.batches is not None:
            return
        if (ended.name, ended.dropped_at) not in self._kept_recoverable:
            self._kept_recoverable.add((ended.name, ended.dropped_at))
            self.recoverable.append(ended)

    def _affected(self, ddl: DdlEvent, names: Sequence[TableName]) -> list[TablePlanBuilder]:
        """The builders of these names whose tables do not include the DDL yet."""
        found = ([b for b in self.builders.all_named(name) if not b.includes(ddl)] for name in names)
        return [builders[0] for builders in found if builders]

    def _of_database(self, ddl: DdlEvent, database: str) -> list[TablePlanBuilder]:
        return [builder for builder in self.builders.of_database(database) if not builder.includes(ddl)]

    def _begin(self, name: TableName, table: Table | None, commit_ts: int, source: str) -> TablePlanBuilder | None:
        """Adds and returns a builder; None if the feed's filter excludes the table."""
        if not self.now.config.matches(*name):
            return None
        name = self.builders.spelled(name)
        table = None if table is None else without_old_rows(replace(table, database=name.database))
        after = commit_ts if source == "ddl" else self.now.before.tso
        builder = TablePlanBuilder(name=name, definition=None, state=None, after=after)
        if table is not None:
            define(self.now, builder, table, commit_ts, source)
        self.builders.add(builder)
        return builder

    def _create(self, ddl: DdlEvent, name: TableName, table: Table | None) -> TablePlanBuilder | None:
        """Begins and returns a table; None if the CREATE TABLE is applied already, or if an existing table contradicts
        it."""
        existing = self.builders.named(name)
        if existing is not None and (existing.includes(ddl) or not self._replaced(ddl, existing)):
            return None
        if existing is None and not self._is_new(ddl):
            return None
        return self._begin_at(ddl, name, table)

    def _begin_at(self, ddl: DdlEvent, name: TableName, table: Table | None) -> TablePlanBuilder | None:
        builder = self._begin(name, table, ddl.commit_ts, "ddl")
        if builder is not None:
            builder.record_ddl(ddl)
        return builder

    def _replaced(self, ddl: DdlEvent, existing: TablePlanBuilder) -> bool:
        """True if a created, renamed or restored table replaces the existing table of its name. It replaces a blocked
        table, which TiDB must have dropped, a table whose columns are unknown, and a table of the schema_file without
        rows, whose definition the DDL supersedes. Any other existing table is blocked."""
        untouched = existing.definition is not None and existing.definition.source == "file" and not existing.steps
        untouched = untouched and not remaining_groups(self.now, existing, ddl.commit_ts)
        if existing.stop is not None or existing.definition is None or untouched:
            self.builders.remove(existing)
            if existing.stop is not None:
                self._keep_recoverable(end_table(existing, ddl))
            return True
        merge_until(self.now, existing, ddl.commit_ts)
        if existing.may_include(ddl):
            existing.record_ddl(ddl)
        else:
            block_unless_skipped(self.now, ddl, existing, unsupported(ddl, "the table exists already"))
        return False

    def _create_like(self, ddl: DdlEvent, statement: CreateTableLike) -> None:
        name, source = statement.name, statement.source
        found = [source]
        if statement.unqualified:
            of_name = self.builders.named_in_any_database(source.table)
            found = [builder.name for builder in of_name if builder.dropped_at is None and builder.name != name]
        builder = self.builders.named(found[0]) if len(found) == 1 else None
        if builder is None or builder.stop is not None or builder.definition is None:
            await_rows(ddl, self._create(ddl, name, None), f"{'.'.join(source)} is unknown")
        else:
            self._create(ddl, name, replace(builder.definition.table, database=name[0], table=name[1]))

    def _is_new(self, ddl: DdlEvent) -> bool:
        """True if a DDL that creates a table is not applied yet."""
        before = self.now.before
        if ddl.late:
            return True
        if ddl.commit_ts != before.tso:
            return ddl.commit_ts > before.tso
        return not any(ddl.query in s.ddls for s in before.tables.values() if s.applied_tso == before.tso)

    def _truncate(self, ddl: DdlEvent, name: TableName) -> None:
        for builder in self._affected(ddl, (name,)):
            if builder.may_include(ddl):
                merge_until(self.now, builder, ddl.commit_ts)
                block_unless_skipped(self.now, ddl, builder, unsupported(ddl, _UNCERTAIN))
                continue
            was_blocked = builder.stop is not None
            merge_until(self.now, builder, ddl.commit_ts)
            self._keep_recoverable(end_table(builder, ddl))
            if builder.definition is None or not was_blocked:  # rows that could not be merged are deleted now
                self.builders.remove(builder)
                table = None if builder.definition is None else builder.definition.table
                await_rows(ddl, self._begin_at(ddl, builder.name, table), "the table's columns are unknown")

    def _rename(self, ddl: DdlEvent, statement: RenameTables) -> None:
        rename = self._rename_unqualified if statement.unqualified else self._rename_one
        for old, new in statement.pairs:
            rename(ddl, old, new)

    def _rename_unqualified(self, ddl: DdlEvent, old: TableName, new: TableName) -> None:
        """Renames the table of this name, whatever its database. Of several all are blocked."""
        candidates = self._candidates(ddl, old, new)
        if len(candidates) > 1 or self._is_any_ambiguous(ddl, candidates):
            self._block_ambiguous(ddl, old, candidates, new)
            return
        for builder in self._affected(ddl, candidates) if candidates[0] != old else ():
            if builder.stop is not None or not self._is_new(ddl):
                merge_until(self.now, builder, ddl.commit_ts)
                builder.block(unsupported(ddl, _MOVED_WHILE_BLOCKED, can_skip=False))
        self._rename_one(ddl, candidates[0], new)

    def _candidates(self, ddl: DdlEvent, unqualified: TableName, other: TableName) -> list[TableName]:
        """The tables, whatever their database, that a DDL may mean by a name without one: those that do not include it
        yet, but not the ``other`` that it names. The name as it is read if there are none."""
        existing = self.builders.named_in_any_database(unqualified.table)
        names = dict.fromkeys(b.name for b in existing if b.dropped_at is None and not b.includes(ddl))
        return [name for name in names if name != other] or [unqualified]

    def _is_any_ambiguous(self, ddl: DdlEvent, names: Sequence[TableName]) -> bool:
        """True if one of the tables is blocked because an earlier DDL may mean another: its name since is uncertain."""
        return any(map(is_ambiguous, self._affected(ddl, names)))

    def _block_ambiguous(
        self, ddl: DdlEvent, unqualified: TableName, candidates: Sequence[TableName], other: TableName
    ) -> None:
        """Blocks the candidates and the other table that the DDL names. A candidate that is blocked before gets this
        reason instead of its own: the next windows may not find the others any more."""
        stop = ambiguous(ddl, unqualified)
        self._block_named(ddl, [*candidates, other], stop)
        for builder in self._affected(ddl, candidates):
            if builder.stop is not None and not is_ambiguous(builder):
                builder.stop = stop

    def _rename_one(self, ddl: DdlEvent, old: TableName, new: TableName) -> None:
        for builder in self._affected(ddl, (old,)):
            merge_until(self.now, builder, ddl.commit_ts)
            if not self.now.config.matches(*new):
                self.builders.remove(builder)
                return
            existing = next((b for b in self._affected(ddl, (new,)) if b is not builder), None)
            if existing is None or self._replaced(ddl, existing):
                view = self.now.naming.view(new)
                if _leaves_schema(builder, view):
                    self._leave_schema(ddl, builder, new)
                    return
                leave_former_rows(ddl, builder)
                self.builders.rename(builder, self.builders.spelled(new))
                builder.rename(ddl, view)
            else:
                stop = unsupported(ddl, f"table {'.'.join(new)} exists already")
                block_unless_skipped(self.now, ddl, builder, stop)
            return
        if not self.now.config.matches(*old) and self._is_new(ddl):
            moved = self._create(ddl, new, None)
            if moved is not None:
                reason = f"the feed's filter excludes {'.'.join(old)}, so its rows are unknown"
                moved.block(unsupported(ddl, reason, can_skip=False))

    def _leave_schema(self, ddl: DdlEvent, builder: TablePlanBuilder, new: TableName) -> None:
        """Ends a table whose new name lies in another schema of the lake, since no catalog moves a table; the table of
        the new name has no rows."""
        self.builders.remove(builder)
        moved = self._begin_at(ddl, new, None)
        if moved is not None:
            moved.block(unsupported(ddl, MOVED, can_skip=False))

    def _block_named(
        self,
        ddl: DdlEvent,
        names: Sequence[TableName],
        stop: StopReason,
    ) -> None:
        """Blocks the tables of these names; adds the ones that are unknown so far."""
        for name in names:
            builder = self.builders.named(name)
            if builder is not None and not builder.includes(ddl):
                merge_until(self.now, builder, ddl.commit_ts)
            elif builder is None and self._is_new(ddl):
                builder = self._begin_at(ddl, name, None)
            if builder is not None and not builder.includes(ddl):
                block_unless_ignored(self.now, ddl, builder, stop)


_UNCERTAIN = (
    "the export that the table is of was taken so shortly before that it may have rows of after: export it again"
)

_MOVED_WHILE_BLOCKED = (
    "it was blocked when it came from a database that the text does not name: rows of its new name may be published "
    "already"
)


def _leaves_schema(builder: TablePlanBuilder, view: str) -> bool:
    return builder.definition is not None and schema_part(builder.definition.name) != schema_part(view)
