"""Which tables the rows of a window are of: it adds those that are inferred from the wire, and blocks those that lack
rows, which arrived late or under a name that they had before."""

from __future__ import annotations

from collections.abc import Iterable, Set

from ticdc_codec.name_case import fold
from ticdc_lakehouse.planning.barriers import names_after, unapplied_after
from ticdc_lakehouse.planning.blocking import of_wrong_table
from ticdc_lakehouse.planning.compatibility import definition_from_wire
from ticdc_lakehouse.planning.plan_builder import TablePlanBuilder
from ticdc_lakehouse.planning.published_state import Origin
from ticdc_lakehouse.planning.recovery import last_recoverable, recoverable_of
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, WayOut, restored
from ticdc_lakehouse.planning.window import BlockingPoint, DdlEvent, earliest
from ticdc_lakehouse.planning.window_tables import WindowTables
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import RenameTables, may_give_name, names_of, unqualified_name


class TablesOfRows:
    """Finds the tables of a window's rows among the window's tables."""

    def __init__(self, tables: WindowTables) -> None:
        self._tables = tables
        self._inputs = inputs = tables.inputs
        self._from_files = {table.name: table for table in inputs.config.tables}
        self._read_again = [*unapplied_after(inputs.window.ddls, inputs.before, in_any_order=inputs.eventual)]
        firsts = {(group.first, name) for name, groups in inputs.window.rows.items() for group in groups}
        self._unreadable = {name: point for name, point in inputs.quarantine_points.items() if not inputs.eventual}
        """The first message in quarantine of each table: in mode eventual a table of its name may come later."""
        firsts |= {(point.tso + 1, name) for name, point in self._unreadable.items() if point.tso >= inputs.before.tso}
        self._first_rows = sorted(firsts, reverse=True)

    def block_late(self) -> None:
        """Blocks the tables that lack rows or DDLs which arrived late."""
        for name, point in sorted(self._inputs.late_points.items()):
            self._block_named_before(name, point)
        inputs = self._inputs
        for name in sorted({*inputs.late_points, *inputs.late_ddl_points} - inputs.before.tables.keys()):
            self._begin_late(name, inputs.late_points.get(name), inputs.late_ddl_points.get(name))

    def _block_named_before(self, name: TableName, point: BlockingPoint) -> None:
        """Blocks the table of late rows where it has another name since. (One that has the name is blocked:
        `published_builder`. One that is gone does not need them. One that is blocked before them takes them.)"""
        if not self._includes(name, point.tso + 1):
            self._block_former(name, point.tso + 1, self._inputs.before.tso if point.last is None else point.last)

    def _begin_late(self, name: TableName, of_rows: BlockingPoint | None, of_ddls: BlockingPoint | None) -> None:
        """Adds a blocked table of late rows and DDLs that gold never had."""
        if of_rows is not None and self._had_name(name, of_rows.tso):
            of_rows = None
        if (point := earliest(filter(None, (of_ddls, of_rows)))) is not None:
            self._tables.begin_blocked(name, point.tso, point.stop)

    def infer_tables(self, through: int) -> None:
        """Adds builders for tables that are inferred from the wire: their first rows are at or below ``through``."""
        while self._first_rows and self._first_rows[-1][0] <= through:
            first, name = self._first_rows.pop()
            if self._includes(name, first) or self._is_of_former_name(name, first):
                continue
            if not self._inputs.config.matches(*name):
                continue  # no name in the history matters
            self._end_kept(name, first)
            if self._tables.builders.named(name) is None and not self._begin_blocked(name, first):
                self._infer_table(name, first, through)

    def end_late_tables(self, ddls: Iterable[DdlEvent]) -> None:
        """Ends each table that began with late rows, and that these DDLs, of one commit_ts up to the watermark, gave
        the name of a published table: they are one, of which gold did not know the former name. It lacks the rows."""
        named = {(name, ddl.commit_ts) for ddl in ddls for each in ddl.statements for name in names_of(each)}
        for name, commit_ts in sorted(named):
            self._end_late_tables_named(name, commit_ts)

    def _end_late_tables_named(self, name: TableName, commit_ts: int) -> None:
        tables = self._tables.builders.all_named(name)
        late = [each for each in tables if self._is_unpublished(each)]
        known = next((each for each in tables if each not in late and each.named_at <= commit_ts), None)
        if not late or known is None:
            return
        for each in late:
            self._tables.builders.remove(each)
        known.stop = _lacks_rows(known.stop, "one that gold did not know")

    def _is_unpublished(self, builder: TablePlanBuilder) -> bool:
        """True if the table was not published under its name, nor with columns under another one."""
        if builder.published_name is None:
            return builder.state is None
        published = self._inputs.before.tables[builder.published_name]
        return builder.published_name != builder.name and not published.stable_id

    def _begin_blocked(self, name: TableName, first: int) -> bool:
        """Adds a table of rows from ``first`` on that is blocked, for the first reason that there is; False if there is
        none."""
        return (
            self._block_unreadable(name, first)
            or self._block_wrongly_renamed(name, first)
            or self._block_restored(name)
        )

    def _infer_table(self, name: TableName, first: int, through: int) -> None:
        """Adds a table of rows from ``first`` on, which show its columns unless the schema_file has them."""
        after = self._tables.renamed_unknown.get(name, first - 1 if self._is_reused(name, first) else 0)
        # A file may describe the table that had the name before.
        from_file = None if after else self._from_files.get(name)
        groups = [group for group in self._inputs.window.rows[name] if group.first >= first]
        only_deletes = not any(group.is_upsert for group in groups if group.first <= through)  # up to the next DDL
        table = from_file or definition_from_wire(name, () if only_deletes else groups)
        origin, begins_at = (Origin.WIRE, first) if from_file is None else (Origin.FILE, 0)
        self._tables.begin(name, table, begins_at, origin, after=after)

    def _block_unreadable(self, name: TableName, first: int) -> bool:
        """Adds a table of which the message before all rows is in quarantine, and blocks it: DDLs that follow are of
        it. False if there is no such message."""
        point = self._unreadable.get(name)
        if point is None or point.tso + 1 != first:
            return False
        self._tables.begin_blocked(name, point.tso, point.stop)
        return True

    def _is_reused(self, name: TableName, first: int) -> bool:
        """True if rows of this name up to a first one are of another table, which had the name before. (In eventual
        mode earlier rows of this one may arrive later.)"""
        earlier = any(group.first < first for group in self._inputs.window.rows[name])
        return not self._inputs.eventual and (earlier or bool(self._inputs.naming.ids_named(name)))

    def _end_kept(self, name: TableName, first: int) -> None:
        """Ends a dropped table that gold keeps (``on_drop: keep``) where rows of its name arrive after the DROP: they
        are not rows of the table that gold shows. In eventual mode, where rows may be in any order, it is blocked."""
        kept = self._tables.builders.named(name)
        if kept is None or kept.dropped_at is None:
            return
        if self._inputs.eventual:
            if any(group.last > kept.dropped_at for group in self._inputs.window.rows[name]):
                kept.stop = restored(kept.dropped_at)
        elif kept.dropped_before(first):
            kept.stop = None
            self._tables.builders.remove(kept)
            self._tables.keep_recoverable(kept)

    def _block_wrongly_renamed(self, name: TableName, first: int) -> bool:
        """Blocks the last table that left this name, and adds one that is blocked for its rows from ``first`` on, if
        the RENAME does not name the database and no later DDL gives the name to another table: TiDB renamed a table of
        another database. False if rows may have this name. In mode eventual the DDL may arrive later."""
        left = self._inputs.naming.left_name(name, first) if not self._inputs.eventual else None
        if left is None:
            return False
        renamed_at, stable_id = left
        ddls = [
            ddl for ddl in (*self._inputs.past_ddls, *self._inputs.window.ddls) if renamed_at <= ddl.commit_ts < first
        ]
        unqualified = (ddl for ddl in ddls if ddl.commit_ts == renamed_at and _may_rename(ddl, name))
        ddl = next(unqualified, None)
        if ddl is None or may_be_given(name, (each for each in ddls if each.commit_ts > renamed_at)):
            return False
        stop = of_wrong_table(ddl, name)
        for builder in self._tables.builders:
            if builder.definition is not None and builder.definition.stable_id == stable_id:
                builder.stop = stop if builder.dropped_at is None else builder.stop
        self._make_unknown({stable_id})
        self._tables.begin_blocked(name, first - 1, stop)
        return True

    def _block_restored(self, name: TableName) -> bool:
        """Adds a table whose rows continue after its DROP, although no statement created it again, and blocks it for
        good: the rows that it has from before are not known. False if TiDB did not drop a table of this name."""
        dropped = last_recoverable(recoverable_of(self._tables.recoverable, name))
        if dropped is None or dropped.dropped_at is None:
            return False
        self._tables.begin_blocked(name, dropped.dropped_at, restored(dropped.dropped_at))
        return True

    def _is_of_former_name(self, name: TableName, first: int) -> bool:
        """True if rows at or below the watermark belong to a table that had this name before. They are read again for
        a blocked table that had or got this name, too: whatever table they are of has them, or is gone. A renamed
        table lacks rows that arrived late and is blocked; a dropped one does not need them."""
        if first > self._inputs.before.tso:
            return False
        groups = [group for group in self._inputs.window.rows.get(name, ()) if group.first <= first]
        if not self._inputs.eventual and not any(group.replayed for group in groups):
            return True
        of_first = [group for group in groups if group.first == first]
        is_new = any(group.replayed for group in of_first)
        if is_new or not any(each == name and first > after for each, after in self._read_again):
            self._block_former(name, first, max(group.last for group in of_first))
        dropped = recoverable_of(self._tables.recoverable, name)
        return self._had_name(name, first - 1) or not all(each.dropped_before(first) for each in dropped)

    def _includes(self, name: TableName, commit_ts: int) -> bool:
        """True if a table that has this name includes its rows at a commit_ts. One whose columns and rows are unknown
        may have got the name later."""
        known = (
            b
            for b in self._tables.builders.all_named(name)
            if b.definition is not None or b.awaits_rows_reason is not None
        )
        return any(builder.named_at < commit_ts <= builder.complete_through for builder in known)

    def _had_name(self, name: TableName, tso: int) -> bool:
        """True if a published table had this name, or may have had it after ``tso``, where it is blocked."""
        published = bool(self._inputs.naming.ids_named(name))
        return published or name in names_after(tso, self._inputs.window.ddls, self._inputs.before)

    def _block_former(self, name: TableName, first: int, last: int) -> None:
        """Blocks the tables that had this name at these commit_ts, if they are still there: rows of them arrived late.
        One that lags behind may still have the name, and takes them, as does the one that has it now; one that was
        dropped cannot come back without them."""
        ids = self._inputs.naming.ids_named_between(name, first, last)
        for builder in self._tables.builders:
            takes = builder.name == name and builder.named_at < last
            had_name = builder.definition is not None and builder.definition.stable_id in ids
            if (had_name or builder.awaited_rows_at(first)) and not takes:
                builder.stop = _lacks_rows(builder.stop, str(name), replayed=self._has_replayed_rows(builder))
        self._make_unknown(ids)

    def _has_replayed_rows(self, builder: TablePlanBuilder) -> bool:
        """True if rows under the table's name were replayed: once it is blocked, no window merges them."""
        groups = self._inputs.window.rows.get(builder.name, ())
        through = builder.complete_through
        return any(each.replayed and each.first <= through and each.last > builder.named_at for each in groups)

    def _make_unknown(self, ids: Set[str]) -> None:
        """Takes the rows from the recoverable tables with these stable ids."""
        self._tables.forget_rows_of(lambda each: each.definition is not None and each.definition.stable_id in ids)


def keeps_name(tables: WindowTables, name: TableName, ddl: DdlEvent) -> bool:
    """True if rows show that a table kept its name at a RENAME that may be of another one: they follow it, and no
    DDL in between gives the name to a table. In mode eventual such a DDL may arrive later."""
    rows = tables.inputs.window.rows.get(name, ()) if not tables.inputs.eventual else ()
    first = min((group.first for group in rows if group.first > ddl.commit_ts), default=None)
    if first is None or recoverable_of(tables.recoverable, name):
        return False
    since = (d for d in tables.inputs.window.ddls if ddl.commit_ts <= d.commit_ts < first)
    return not may_be_given(name, since)


def _may_rename(ddl: DdlEvent, name: TableName) -> bool:
    """True if a DDL renames a table of this name in a database that the text does not name."""
    renames = (statement for statement in ddl.statements if isinstance(statement, RenameTables))
    unqualified = filter(None, map(unqualified_name, renames))
    return any(fold(each.table) == fold(name.table) for each in unqualified)


def may_be_given(name: TableName, ddls: Iterable[DdlEvent]) -> bool:
    """True if one of the DDLs gives this name to a table, or may do so."""
    return any(may_give_name(statement, name) for ddl in ddls for statement in ddl.statements)


def _lacks_rows(stop: StopReason | None, former_name: str, *, replayed: bool = False) -> StopReason:
    """Returns the reason of a table that lacks rows which no later window reads; its present one if only an export, or
    the table's end, removes that, or if rows are missing already."""
    if stop is not None and (
        stop.kind is StopKind.DROPPED
        or (stop.kind is StopKind.LATE_ROWS and WayOut.RESUME not in stop.ways_out)
        or (stop.of_ddl and not stop.can_skip)
    ):
        return stop
    none_blocked = "; rows of its own were replayed" if replayed else ""
    first_cause = "" if stop is None else stop.quotable
    blocked = none_blocked if stop is None else f" while it was blocked ({first_cause})"
    return StopReason(
        kind=StopKind.LATE_ROWS,
        detail=f"rows arrived late under the name that it had before, {former_name}{blocked}",
        first_cause=first_cause,
        commit_ts=None if stop is None else stop.unfollowed or None,
        ways_out=(WayOut.LOAD_EXPORT, WayOut.RESUME_WITHOUT),
        needs_override=True,
    )
