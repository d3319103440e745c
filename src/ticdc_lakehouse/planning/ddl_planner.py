"""What each statement does to the plans of a window's tables. DDLs are applied in commit order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ticdc_codec.errors import ApplyError
from ticdc_lakehouse.planning.blocking import (
    ambiguous,
    await_rows,
    block_unless_ignored,
    block_unless_skipped,
    ignores_unsupported_ddls,
    is_skipped,
    leave_former_rows,
    skip,
    unsupported,
)
from ticdc_lakehouse.planning.names_without_database import block_ambiguous, is_any_ambiguous, possible_tables
from ticdc_lakehouse.planning.naming import schema_part
from ticdc_lakehouse.planning.plan_builder import TablePlanBuilder, exchange_step
from ticdc_lakehouse.planning.recovery import end_table, last_recoverable, recoverable_of, unknown_table
from ticdc_lakehouse.planning.segments import has_only_tombstones, merge_until
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.tables_of_rows import keeps_name, may_be_given
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.planning.window_tables import WindowTables
from ticdc_lakehouse.policy import OnDrop
from ticdc_lakehouse.schema.computed_default import OldRows, with_old_rows
from ticdc_lakehouse.schema.key import adds_primary_key
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.repeated_alter import adds_unnamed_key, must_not_repeat
from ticdc_lakehouse.schema.statement import (
    AlterTable,
    CreateTable,
    CreateTableLike,
    DropDatabase,
    DropTables,
    ExchangePartition,
    RenameTables,
    RestoreTable,
    TableStatement,
    TruncateTable,
    Unread,
    is_of_all_tables,
    names_of,
)

_EXPORT_TOO_CLOSE = "the export of the table was taken seconds before this DDL and may have rows from after it"
_AFTER_NEWER_ROWS = "it arrived late, and the table may have rows from after it, which it must not change"
_KEYLESS_BEFORE = (
    "gold did not know the table: it had no primary key, and TiCDC sends neither the CREATE TABLE nor the rows of a "
    "table without a key, so its earlier rows are unknown"
)
_FIRST_KEY = (
    "the table had no key that could be its handle key, and TiCDC sends no row of such a table, so its earlier rows "
    "are unknown"
)
_RENAMED_WHILE_BLOCKED = (
    "the table was blocked when it was renamed out of a database that the text does not name: rows under its new name "
    "may be published already"
)
_OTHER_SCHEMA = "gold.schema gives the new name another schema, and no catalog moves a table: it starts without rows"


def plan_ddl(tables: WindowTables, ddl: DdlEvent, statement: TableStatement) -> None:
    """Updates the plans of all tables that the statement affects."""
    tables.end_kept(ddl, _names_in_use(statement))
    match statement:
        case CreateTable(table=table):
            tables.create(ddl, table.name, table)
        case CreateTableLike():
            _create_like(tables, ddl, statement)
        case DropTables() | DropDatabase():
            _drop(tables, ddl, statement)
        case TruncateTable(name=name):
            _truncate(tables, ddl, name)
        case RenameTables():
            _rename(tables, ddl, statement)
        case AlterTable():
            _alter(tables, ddl, statement)
        case RestoreTable():
            _restore(tables, ddl, statement)
        case ExchangePartition():
            _exchange(tables, ddl, statement)
        case Unread():
            _block_unread(tables, ddl, statement)


def _names_in_use(statement: TableStatement) -> Sequence[TableName]:
    """Returns the names that tables of TiDB have before a statement, which does not drop or restore them."""
    match statement:
        case RenameTables(pairs=pairs, unqualified=False):
            return [old for old, _ in pairs if old not in {new for _, new in pairs}]
        case AlterTable() | TruncateTable() | ExchangePartition() | Unread():
            return names_of(statement)
        case _:
            return ()


def _create_like(tables: WindowTables, ddl: DdlEvent, statement: CreateTableLike) -> None:
    name, source = statement.name, statement.source
    found = [source]
    if statement.unqualified:
        of_name = tables.builders.named_in_any_database(source.table)
        found = [builder.name for builder in of_name if builder.dropped_at is None and builder.name != name]
    builder = tables.builders.named(found[0]) if len(found) == 1 else None
    if builder is None or builder.stop is not None or builder.definition is None:
        await_rows(ddl, tables.create(ddl, name, None), f"{'.'.join(source)} is unknown")
    else:
        tables.create(ddl, name, replace(builder.definition.table, database=name[0], table=name[1]))


def _drop(tables: WindowTables, ddl: DdlEvent, statement: DropTables | DropDatabase) -> None:
    match statement:
        case DropTables(names=names):
            tables.keep_unknown_tables(ddl, names)
            dropped = tables.affected(ddl, names)
        case DropDatabase(database=database):
            dropped = tables.of_database(ddl, database)
    is_new = tables.is_new(ddl)
    for builder in dropped:
        if builder.waits_for_override and not is_new:
            continue  # a late DROP: the override lets the table go back to it
        merge_until(tables.inputs, builder, ddl.commit_ts)
        ended = end_table(builder, ddl)
        if tables.inputs.config.policy(*builder.name).on_drop is OnDrop.DROP:
            tables.builders.remove(builder)
            tables.keep_recoverable(ended)
        elif ended is not builder:
            tables.keep_recoverable(ended)
        else:
            builder.block(StopReason(kind=StopKind.DROPPED, commit_ts=builder.dropped_at, needs_override=True))


def _truncate(tables: WindowTables, ddl: DdlEvent, name: TableName) -> None:
    tables.keep_unknown_tables(ddl, (name,))
    builder = tables.affected_by(ddl, name)
    if builder is None:
        return
    if builder.may_include(ddl):
        merge_until(tables.inputs, builder, ddl.commit_ts)
        block_unless_skipped(tables.inputs, ddl, builder, unsupported(ddl, _EXPORT_TOO_CLOSE))
        tables.keep_recoverable(unknown_table(builder.name, ddl.commit_ts))  # TiDB restores it, not an older one
        return
    was_blocked = builder.stop is not None
    merge_until(tables.inputs, builder, ddl.commit_ts)
    tables.keep_recoverable(end_table(builder, ddl))
    if builder.definition is None or not was_blocked:  # rows that could not be merged are deleted now
        table = None if builder.definition is None else builder.definition.table
        emptied = tables.begin_successor(ddl, builder, builder.name, table)
        await_rows(ddl, emptied, "the table's columns are unknown")
        emptied.published_name = builder.published_name


def _alter(tables: WindowTables, ddl: DdlEvent, statement: AlterTable) -> None:
    if adds_primary_key(statement) and not ddl.out_of_order and tables.builders.named(statement.name) is None:
        tables.block_named(ddl, (statement.name,), unsupported(ddl, _KEYLESS_BEFORE))
    builder = tables.affected_by(ddl, statement.name)
    if builder is None:
        return
    # Rows after the DDL show the columns of a table of which only deletes came before it.
    if not (statement.of_named_indexes or has_only_tombstones(tables.inputs, builder, ddl.commit_ts)):
        merge_until(tables.inputs, builder, ddl.commit_ts)
    if is_skipped(tables.inputs, ddl, builder):
        skip(ddl, builder)
    elif builder.may_include(ddl) and must_not_repeat(statement):
        builder.block(unsupported(ddl, _EXPORT_TOO_CLOSE))
    elif ddl.out_of_order and builder.state is not None and must_not_repeat(statement):
        builder.block(unsupported(ddl, _AFTER_NEWER_ROWS))
    elif adds_unnamed_key(statement) and builder.has_effect_of(ddl, statement):
        builder.record_ddl(ddl)
    else:
        _alter_columns(tables, ddl, builder, statement)


def _alter_columns(tables: WindowTables, ddl: DdlEvent, builder: TablePlanBuilder, statement: AlterTable) -> None:
    """Changes the columns, keys or partitions of a table that has all rows up to the DDL. Blocks it if that fails."""
    resolved = with_old_rows(statement, ddl.commit_ts, _old_rows(tables, ddl, builder))
    try:
        if builder.gets_first_key(resolved):
            _add_first_key(tables, ddl, builder)
        else:
            builder.alter(ddl, resolved, tables.inputs.config)
    except ApplyError as error:
        if builder.has_effect_of(ddl, statement):
            builder.record_ddl(ddl)
        else:
            block_unless_ignored(tables.inputs, ddl, builder, unsupported(ddl, str(error)))


def _add_first_key(tables: WindowTables, ddl: DdlEvent, builder: TablePlanBuilder) -> None:
    """Blocks a table that gets its first key, unless the policy ignores the DDL: TiCDC has sent no row of it. Skipping
    the DDL does not help: the next rows have a key that it lacks."""
    if ignores_unsupported_ddls(tables.inputs, builder):
        skip(ddl, builder)
    else:
        builder.block(unsupported(ddl, _FIRST_KEY, can_skip=False))


def _old_rows(tables: WindowTables, ddl: DdlEvent, builder: TablePlanBuilder) -> OldRows:
    config = tables.inputs.config
    return OldRows(
        policy=config.policy(*builder.name).on_computed_default,
        time_zone=config.time_zone,
        ddl_time_zone=config.ddl_time_zone,
        sent=ddl.defaults,
        none=builder.is_empty and not tables.inputs.eventual,  # in mode eventual earlier rows may come later
    )


def _restore(tables: WindowTables, ddl: DdlEvent, statement: RestoreTable) -> None:
    """Restores a dropped or truncated table with the rows that it had."""
    builder = _dropped_table(tables, ddl, statement)
    is_free = _frees_name(tables, ddl, statement.to, restored=builder)
    is_left = not is_free and tables.affected_by(ddl, statement.to) is not None  # blocked: nothing was restored
    if builder is not None and not tables.is_new(ddl) and not is_left:
        tables.forget_rows(builder)
    if not is_free:
        return
    tables.forget_recoverable(builder)
    if builder is not None and builder.dropped_at is not None:
        # TiDB still finds it by that DROP, once it is dropped under another name: what it will hold is not known here.
        tables.keep_recoverable(unknown_table(statement.name, builder.dropped_at))
    if not tables.inputs.config.matches(*statement.to):
        if builder is not None and builder in tables.builders:  # on_drop: keep
            tables.builders.remove(builder)  # as by a RENAME to such a name
        return
    is_same = builder is not None and builder.name == statement.to
    name = builder.name if builder is not None and is_same else tables.builders.spelled(statement.to)
    if builder is None or builder.definition is None or tables.inputs.eventual:
        if builder is not None and builder in tables.builders:
            tables.builders.remove(builder)
        restored = tables.begin_by_ddl(ddl, name, None)
        if restored is not None:
            restored.block(unsupported(ddl, "the rows of the restored table are unknown", can_skip=False))
        return
    _bring_back(tables, ddl, builder, name)


def _dropped_table(tables: WindowTables, ddl: DdlEvent, statement: RestoreTable) -> TablePlanBuilder | None:
    """Returns the table that TiDB restores; None if it is unknown, or not known which of several."""
    dropped = recoverable_of((*tables.recoverable, *tables.builders), statement.name)
    named = [each for each in dropped if each.dropped_before(ddl.commit_ts)]
    return None if statement.by_job and len(named) > 1 else last_recoverable(named)


def _bring_back(tables: WindowTables, ddl: DdlEvent, builder: TablePlanBuilder, name: TableName) -> None:
    """Restores a table whose rows gold has."""
    if builder not in tables.builders:
        tables.builders.add(builder)
    lake_name = tables.inputs.naming.planned_lake_name(name)
    if _leaves_schema(builder, lake_name):
        _leave_schema(tables, ddl, builder, name)
        return
    tables.builders.rename(builder, name)
    builder.restore(ddl, lake_name)


def _frees_name(tables: WindowTables, ddl: DdlEvent, name: TableName, *, restored: TablePlanBuilder | None) -> bool:
    """True if a restored table can have this name: no other table has it, or the one that has it is replaced. False
    also if the DDL is applied already."""
    existing = tables.builders.named(name)
    if existing is None or existing is restored:
        return tables.is_new(ddl)
    return not existing.includes(ddl) and tables.replace_existing(ddl, existing)


def _rename(tables: WindowTables, ddl: DdlEvent, statement: RenameTables) -> None:
    rename = _rename_unqualified if statement.unqualified else _rename_one
    for old, new in statement.pairs:
        rename(tables, ddl, old, new)


def _rename_unqualified(tables: WindowTables, ddl: DdlEvent, old: TableName, new: TableName) -> None:
    """Renames the table of this name in any database. Blocks all of them if there are several. Those that rows show to
    keep the name are none of them."""
    candidates = [name for name in possible_tables(tables, ddl, old, new) if not keeps_name(tables, name, ddl)]
    if not candidates:
        _rename_unknown(tables, ddl, old, new)
        return
    if not tables.is_new(ddl) and tables.inputs.naming.got_name_at(new, ddl.commit_ts):
        # Another table took it, when these were not known: their exports are from before it.
        tables.block_named(ddl, candidates, ambiguous(ddl, old))
        return
    if len(candidates) > 1 or is_any_ambiguous(tables, ddl, candidates):
        block_ambiguous(tables, ddl, old, candidates, new)
        return
    for builder in tables.affected(ddl, candidates) if candidates[0] != old else ():
        if builder.stop is not None or not tables.is_new(ddl):
            merge_until(tables.inputs, builder, ddl.commit_ts)
            builder.block(unsupported(ddl, _RENAMED_WHILE_BLOCKED, can_skip=False))
    _rename_one(tables, ddl, candidates[0], new)


def _rename_one(tables: WindowTables, ddl: DdlEvent, old: TableName, new: TableName) -> None:
    builder = tables.affected_by(ddl, old)
    if builder is None:
        _rename_unknown(tables, ddl, old, new)
        return
    merge_until(tables.inputs, builder, ddl.commit_ts)
    if is_skipped(tables.inputs, ddl, builder):
        skip(ddl, builder)
        return
    if tables.leaves_feed(ddl, new):
        tables.builders.remove(builder)
        return
    existing = tables.affected_by(ddl, new)
    other = None if existing is builder else existing
    if other is not None and tables.may_wait(ddl, other):
        tables.waiting.append(ddl)
        return
    stays = other is not None and not tables.replace_existing(ddl, other)
    if stays or _was_not_followed(tables, ddl, builder, new):
        stop = unsupported(ddl, f"table {'.'.join(new)} exists already")
        block_unless_skipped(tables.inputs, ddl, builder, stop)
        return
    lake_name = tables.inputs.naming.planned_lake_name(new)
    if _leaves_schema(builder, lake_name):
        _leave_schema(tables, ddl, builder, new)
        return
    leave_former_rows(ddl, builder)
    tables.builders.rename(builder, tables.builders.spelled(new))
    builder.rename(ddl, lake_name)


def _was_not_followed(tables: WindowTables, ddl: DdlEvent, builder: TablePlanBuilder, new: TableName) -> bool:
    """True if an earlier window left a table its name at a RENAME to that of another one, which has continued without
    the RENAME since, or from an export."""
    own = builder.published_name
    began = builder.state is not None and builder.state.stable_id  # else late rows, and the RENAME shows its table
    if not began or own is None or own == new or tables.is_new(ddl):
        return False
    since = (each for each in tables.inputs.window.ddls if ddl.commit_ts <= each.commit_ts <= tables.inputs.before.tso)
    named = tables.builders.all_named(new)
    return any(o.published_name == new and o.includes(ddl) for o in named) and not may_be_given(own, since)


def _rename_unknown(tables: WindowTables, ddl: DdlEvent, old: TableName, new: TableName) -> None:
    """Records that a table which gold does not have gets a name. Blocks it if the filter excludes its old name. A kept
    table of the new name gives way: what follows under it is of the other one."""
    if not tables.is_new(ddl):
        return
    tables.renamed_unknown[new] = ddl.commit_ts
    tables.end_kept(ddl, (new,))
    if not tables.inputs.config.matches(*old):
        moved = tables.create(ddl, new, None)
        if moved is not None:
            reason = f"the feed's filter excludes {'.'.join(old)}, so its rows are unknown"
            moved.block(unsupported(ddl, reason, can_skip=False))


def _leave_schema(tables: WindowTables, ddl: DdlEvent, builder: TablePlanBuilder, new: TableName) -> None:
    """Ends a table whose new name belongs to another schema of the lake, since no catalog moves a table; the table of
    the new name has no rows."""
    moved = tables.begin_successor(ddl, builder, new, None)
    moved.block(unsupported(ddl, _OTHER_SCHEMA, can_skip=False))


def _exchange(tables: WindowTables, ddl: DdlEvent, statement: ExchangePartition) -> None:
    names = statement.partitioned, statement.plain
    if _blocks_ambiguous_exchange(tables, ddl, statement):
        return
    if tables.inputs.eventual:
        reason = "gold mode eventual keeps deleted rows, whose partition is unknown"
        tables.block_named(ddl, names, unsupported(ddl, reason))
        return
    builders = tables.affected(ddl, names)
    for builder in builders:
        merge_until(tables.inputs, builder, ddl.commit_ts)
    if any(is_skipped(tables.inputs, ddl, builder) for builder in builders):
        tables.block_named(ddl, names, unsupported(ddl, "the other table skips it"))
        return
    if any(builder.stop is not None and not builder.stop.needs_override for builder in builders):
        for builder in builders:
            builder.block(unsupported(ddl, "the other table is blocked", can_skip=False, needs_override=False))
        return
    if any(builder.may_include(ddl) for builder in builders):
        tables.block_named(ddl, names, unsupported(ddl, _EXPORT_TOO_CLOSE))
        return
    try:
        step = exchange_step(ddl, statement.partition, builders)
    except ApplyError as error:
        tables.block_named(ddl, names, unsupported(ddl, str(error)))
        return
    for builder in builders:
        builder.exchange(ddl, step)


def _blocks_ambiguous_exchange(tables: WindowTables, ddl: DdlEvent, statement: ExchangePartition) -> bool:
    """Blocks the tables that an EXCHANGE may mean if another database than the event's has one of them: no row would
    show which it means."""
    partitioned, plain = statement.partitioned, statement.plain
    found = possible_tables(tables, ddl, partitioned, plain) if statement.unqualified else []
    others = [name for name in found if name != partitioned]
    if not others and not is_any_ambiguous(tables, ddl, (partitioned, plain)):
        return False
    block_ambiguous(tables, ddl, partitioned, found or [partitioned], plain)
    return True


def _block_unread(tables: WindowTables, ddl: DdlEvent, statement: Unread) -> None:
    names: Sequence[TableName] = statement.names
    if is_of_all_tables(statement):
        names = [builder.name for builder in tables.builders if not builder.includes(ddl)]
    elif statement.database is not None:
        names = [builder.name for builder in tables.of_database(ddl, statement.database)]
    if statement.gives_names and ddl.commit_ts < tables.inputs.before.tso:
        tables.block_lagging(ddl, names, unsupported(ddl, statement.reason, can_skip=False))
    # The next window reads such RENAMEs again, and blocks the tables again: none can be skipped.
    tables.block_named(ddl, names, unsupported(ddl, statement.reason, can_skip=not statement.gives_names))


def _leaves_schema(builder: TablePlanBuilder, lake_name: str) -> bool:
    return builder.definition is not None and schema_part(builder.definition.lake_name) != schema_part(lake_name)
