"""The plan builders of all tables of a window: which there are, which of them a DDL affects, and how one begins, is
replaced, is blocked or is kept as recoverable by any statement. (`tables_of_rows`: which of them rows belong to.)"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ticdc_codec.name_case import fold
from ticdc_lakehouse.planning.blocking import (
    block_unless_ignored,
    block_unless_skipped,
    unsupported,
)
from ticdc_lakehouse.planning.builder_index import BuilderIndex
from ticdc_lakehouse.planning.plan_builder import AppliedDdls, TablePlanBuilder
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Origin, Published
from ticdc_lakehouse.planning.published_tables import published_builder
from ticdc_lakehouse.planning.recovery import (
    end_table,
    recoverable_builders,
    recoverable_of,
    unknown_table,
    without_rows,
)
from ticdc_lakehouse.planning.segments import define, merge_rest, merge_until, remaining_groups
from ticdc_lakehouse.planning.stop_reason import UNKNOWN_COLUMNS, StopReason
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.schema.computed_default import without_old_rows
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import RenameTables


class WindowTables:
    """The plan builders of all tables of a window."""

    def __init__(self, inputs: PlanningInput) -> None:
        self.inputs = inputs
        self.builders = BuilderIndex()
        for name, state in inputs.before.tables.items():
            if inputs.config.matches(*name):  # else it goes (`left_out`), as by a RENAME to such a name
                self.builders.add(published_builder(inputs, name, state))
        if inputs.before.tso == 0:
            for table in inputs.config.tables:
                self.begin(table.name, table, 0, Origin.FILE)
        self.recoverable = recoverable_builders(inputs)
        self.renamed_unknown: dict[TableName, int] = {}
        """The names that RENAMEs gave to tables which gold does not know, each with its commit_ts."""
        self.waiting: list[DdlEvent] = []
        """RENAMEs at the window's end that the next window does."""
        self._kept_recoverable = {(builder.name, builder.dropped_at) for builder in self.recoverable}
        self._keep_left_out_recoverable()

    def _keep_left_out_recoverable(self) -> None:
        """Keeps dropped tables that gold showed (``on_drop: keep``), and that the feed's filter leaves out since, as
        recoverable: TiDB restores them, and not older ones of their names."""
        for name, state in self.inputs.before.tables.items():
            if state.dropped and not self.inputs.config.matches(*name):
                kept = published_builder(self.inputs, name, state)
                kept.stop = None
                self.keep_recoverable(kept)

    def finish(self) -> None:
        """Merges the remaining rows of all tables. Then blocked ones give way."""
        for builder in self.builders:
            merge_rest(self.inputs, builder)
        self.give_way()

    def give_way(self) -> None:
        """Renames a blocked table to its published name where another table has its name: from there the next window
        follows it again."""
        for builder in self.builders:
            former = builder.published_name
            if builder.stop is not None and former is not None and len(self.builders.all_named(builder.name)) > 1:
                self.builders.rename(builder, former)

    def record_renames(self, ddls: Sequence[DdlEvent]) -> None:
        """Records all renames of one commit_ts for every table that one of them renamed. In a swap its new name is
        another rename's old name, and the window after one that ends here sees them all again. A blocked table has its
        old definition, if any, and is renamed again when it continues."""
        done = [ddl for ddl in ddls if ddl not in self.waiting]
        renames = [ddl for ddl in done if any(isinstance(statement, RenameTables) for statement in ddl.statements)]
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
        return not AppliedDdls(commit_ts=before.tso, queries=_last_ddls(before)).has(ddl)

    def may_wait(self, ddl: DdlEvent, existing: TablePlanBuilder) -> bool:
        """True if a RENAME to the name of an existing table is at the window's end: that table may be renamed at the
        same commit_ts by a DDL that is still to come (`rename_order`), and the next window has both. False if TiDB
        dropped the existing table. False also if it is blocked, and all of the feed comes through the topic of this
        RENAME: the other one would have come before it."""
        if ddl.commit_ts != self.inputs.tso or existing.dropped_at is not None:
            return False
        if existing.stop is not None and {*self.inputs.before.topics, *self.inputs.window.topics} == {ddl.topic}:
            return False
        return all(isinstance(statement, RenameTables) and len(statement.pairs) == 1 for statement in ddl.statements)

    def begin(
        self, name: TableName, table: Table | None, commit_ts: int, origin: Origin, *, after: int = 0
    ) -> TablePlanBuilder | None:
        """Adds and returns a builder; None if the feed's filter excludes the table. Rows of its name up to ``after``
        are of another table; 0 if none are known to be."""
        if not self.inputs.config.matches(*name):
            return None
        return self._begin_included(name, table, commit_ts, origin, after)

    def _begin_included(
        self, name: TableName, table: Table | None, commit_ts: int, origin: Origin, after: int
    ) -> TablePlanBuilder:
        name = self.builders.spelled(name)
        table = None if table is None else without_old_rows(replace(table, database=name.database))
        begin = commit_ts if origin is Origin.DDL else max(after, self.inputs.before.tso)
        builder = TablePlanBuilder(name=name, definition=None, state=None, complete_through=begin)
        if table is not None:
            define(self.inputs, builder, table, commit_ts, origin, named_at=after)
        elif after:
            builder.awaits_rows_reason = replace(UNKNOWN_COLUMNS, commit_ts=after, named_at=after)
        self.builders.add(builder)
        return builder

    def begin_blocked(self, name: TableName, tso: int, stop: StopReason) -> None:
        """Adds a table without columns that is blocked at ``tso``, unless the feed's filter excludes it. It begins
        there, as one that a DDL makes, and not at the published watermark: what follows is read until it continues."""
        builder = self.begin(name, None, tso, Origin.DDL)
        if builder is not None:
            builder.block(stop)

    def begin_by_ddl(self, ddl: DdlEvent, name: TableName, table: Table | None) -> TablePlanBuilder | None:
        """Adds and returns a table that the DDL makes; None if the feed's filter excludes it."""
        builder = self.begin(_as_sent(ddl, name), table, ddl.commit_ts, Origin.DDL)
        if builder is not None:
            builder.record_ddl(ddl)
        return builder

    def begin_successor(
        self, ddl: DdlEvent, ended: TablePlanBuilder, name: TableName, table: Table | None
    ) -> TablePlanBuilder:
        """Removes a table, and adds and returns the one that the DDL makes of it. The feed's filter includes it, also
        where it excludes the name that a lagging table had then (`leaves_feed`)."""
        self.builders.remove(ended)
        builder = self._begin_included(_as_sent(ddl, name), table, ddl.commit_ts, Origin.DDL, 0)
        builder.record_ddl(ddl)
        return builder

    def leaves_feed(self, ddl: DdlEvent, name: TableName) -> bool:
        """True if the feed's filter excludes the name that a DDL gives to a table. Below the published watermark a
        table is included by its published name: the filter may exclude a former one since."""
        return self.is_new(ddl) and not self.inputs.config.matches(*name)

    def create(self, ddl: DdlEvent, name: TableName, table: Table | None) -> TablePlanBuilder | None:
        """Begins and returns a table; None if the CREATE TABLE is applied already, or if an existing table contradicts
        it."""
        existing = self.builders.named(name)
        if existing is not None and (existing.includes(ddl) or not self.replace_existing(ddl, existing)):
            return None
        if existing is None and not self.is_new(ddl):
            return None
        return self.begin_by_ddl(ddl, name, table)

    def replace_existing(self, ddl: DdlEvent, existing: TablePlanBuilder) -> bool:
        """Lets a created, renamed or restored table replace the existing one of its name; False if it cannot. It
        replaces a blocked table, which TiDB must have dropped, a table whose columns are unknown, and a table of the
        schema_file without rows, whose definition the DDL supersedes. Any other existing table is blocked."""
        if existing.is_published_blocked and (existing.was_blocked_by(ddl) or not self.is_new(ddl)):
            return False  # an earlier window did not let this DDL replace it: that may be what blocks it
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

    def end_kept(self, ddl: DdlEvent, names: Iterable[TableName]) -> None:
        """Ends the kept tables (``on_drop: keep``) of these names: TiDB has other tables of them."""
        for name in names if self.is_new(ddl) else ():
            kept = self.builders.named(name)
            if kept is not None and kept.dropped_before(ddl.commit_ts):
                self.builders.remove(kept)
                self.keep_recoverable(end_table(kept, ddl))

    def block_named(self, ddl: DdlEvent, names: Sequence[TableName], stop: StopReason) -> None:
        """Blocks the tables of these names that do not include the DDL; adds the ones that are unknown so far."""
        for name in names:
            builder = self.affected_by(ddl, name)
            if builder is not None:
                merge_until(self.inputs, builder, ddl.commit_ts)
            elif self.builders.named(name) is None and self.is_new(ddl):
                builder = self.begin_by_ddl(ddl, name, None)
            if builder is not None:
                block_unless_ignored(self.inputs, ddl, builder, stop)

    def block_lagging(self, ddl: DdlEvent, names: Sequence[TableName], stop: StopReason) -> None:
        """Blocks the published tables of these names at renames that cannot be followed again: each has the name to
        which an earlier window has followed it."""
        before = self.inputs.before
        for builder in [builder for name in dict.fromkeys(names) for builder in self.builders.all_named(name)]:
            if builder.published_name is not None and not builder.includes(ddl):
                merge_until(self.inputs, builder, ddl.commit_ts)
                builder.block(stop)
                self.builders.rename(builder, builder.published_name)
                builder.named_until = before.tso
                builder.applied_ddls = AppliedDdls(commit_ts=before.tso, queries=_last_ddls(before))

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
        self.forget_rows_of(lambda each: each is builder)

    def forget_rows_of(self, is_affected: Callable[[TablePlanBuilder], bool]) -> None:
        """Takes the rows from the recoverable tables that are affected."""
        self.recoverable = [without_rows(each) if is_affected(each) else each for each in self.recoverable]

    def forget_recoverable(self, builder: TablePlanBuilder | None) -> None:
        """Takes a table that is restored out of the recoverable ones, if it is among them."""
        if builder in self.recoverable:
            self.recoverable.remove(builder)
            self._kept_recoverable.discard((builder.name, builder.dropped_at))


def _last_ddls(before: Published) -> tuple[str, ...]:
    """Returns the DDLs at exactly the watermark that published tables include."""
    states = (state for state in before.tables.values() if state.applied_tso == before.tso)
    return tuple(dict.fromkeys(query for state in states for query in state.ddls))


def _as_sent(ddl: DdlEvent, name: TableName) -> TableName:
    """Returns the name with its database as the DDL's message spells it, which is as CREATE DATABASE did; the text has
    what was typed. The message of a RENAME has it in lower case (wire.md 8.14)."""
    is_rename = any(isinstance(statement, RenameTables) for statement in ddl.statements)
    if is_rename or ddl.database is None or fold(ddl.database) != fold(name.database):
        return name
    return TableName(ddl.database, name.table)
