"""DDLs that first arrive below the published watermark, as behind a gap of the changefeed: what they block.

TiCDC promises that a watermark arrives after every DDL below it, so such a DDL is a duplicate, as after a restart. One
that never arrived before breaks the promise: its tables were published without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from ticdc_codec.name_case import fold
from ticdc_codec.tso import with_time
from ticdc_lakehouse.planning.published_state import Origin, Published
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, WayOut
from ticdc_lakehouse.planning.window import NO_EARLIER_STATE, BlockingPoint, DdlEvent, keep_earliest
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.repeated_alter import is_done
from ticdc_lakehouse.schema.statement import (
    AlterTable,
    CreateTable,
    CreateTableLike,
    DropDatabase,
    DropPartitions,
    DropTables,
    RenameTables,
    RestoreTable,
    Statement,
    TruncateTable,
    database_of,
    given_names,
    is_of_all_tables,
    names_of,
)

_FOLLOWED = (AlterTable, TruncateTable, DropTables, DropDatabase)
"""Statements that can be followed later, in a table that has rows from after them: those rows are merged again. Others
exchange rows or names with tables that have continued."""

_APPLIES = (WayOut.RESUME, WayOut.LOAD_EXPORT)
_CONTINUES_WITHOUT = (WayOut.LOAD_EXPORT, WayOut.RESUME_WITHOUT)

HadName = Callable[[TableName, int], Set[str]]
"""The stable ids of the tables that had a name at a commit_ts."""


def new_ddls(arrived: Iterable[DdlEvent], earlier: Iterable[DdlEvent]) -> list[DdlEvent]:
    """Returns the DDLs that arrived and have no copy in ``earlier``: no DDL of the same commit_ts names one of their
    tables. The text may differ from one version of TiCDC to the next."""
    came: dict[int, list[DdlEvent]] = {}
    for ddl in earlier:
        came.setdefault(ddl.commit_ts, []).append(ddl)
    return [ddl for ddl in arrived if not any(_is_copy(ddl, other) for other in came.get(ddl.commit_ts, ()))]


def _is_copy(ddl: DdlEvent, other: DdlEvent) -> bool:
    """True if two DDLs of one commit_ts share a table or database. A RENAME of several tables arrives as a DDL for
    each, all of one commit_ts: one may take the name that another gave up, but no two take the same one, so only new
    names are compared."""
    both_rename = all(isinstance(statement, RenameTables) for statement in (*ddl.statements, *other.statements))
    subjects = _new_names if both_rename else _subjects
    return not {*subjects(ddl)}.isdisjoint(subjects(other))


def _new_names(ddl: DdlEvent) -> Iterator[TableName]:
    return (new for statement in ddl.statements if isinstance(statement, RenameTables) for _, new in statement.pairs)


def _subjects(ddl: DdlEvent) -> Iterator[TableName | str]:
    for statement in ddl.statements:
        yield from names_of(statement)
        if (database := database_of(statement)) is not None:
            yield fold(database)
        if is_of_all_tables(statement):
            yield ""


def late_ddl_points(
    before: Published,
    late: Iterable[DdlEvent],
    since: Sequence[DdlEvent] = (),
    had_name: HadName = lambda _name, _commit_ts: frozenset(),
) -> dict[TableName, BlockingPoint]:
    """Returns the tables that lack late DDLs, by their current names, each with the TSO up to which it is correct.
    ``since``: all DDLs since the first of them; a late CREATE TABLE does not add a table that one of these drops or
    renames. ``had_name`` finds the tables that were renamed since, perhaps back: they lack the DDLs, too."""
    found: dict[TableName, BlockingPoint] = {}
    for ddl in late:
        for statement in ddl.statements:
            for name, point in _points(before, ddl, statement, since, had_name):
                keep_earliest(found, name, point)
    return found


def _points(
    before: Published, ddl: DdlEvent, statement: Statement, since: Sequence[DdlEvent], had_name: HadName
) -> Iterator[tuple[TableName, BlockingPoint]]:
    former = {stable_id for name in _concerned(statement) for stable_id in had_name(name, ddl.commit_ts)}
    for name, state in before.tables.items():
        is_known = state.stable_id in former
        if (is_known or _concerns(statement, name)) and _lacks(before, name, ddl, statement, is_known=is_known):
            definition = before.definition_of(name)
            can_return = (
                isinstance(statement, _FOLLOWED)
                and (definition is None or definition.since <= ddl.commit_ts)
                and not _is_made_again(before, ddl, statement, name, since)
            )
            returns = (ddl.commit_ts, _APPLIES) if can_return else (NO_EARLIER_STATE, _CONTINUES_WITHOUT)
            yield name, _point(before, ddl, *returns)
    for name in _made(statement):
        if name not in before.tables and not any(_ends(later, ddl, name) for later in since):
            # A restored table needs rows that are not known any more once a window has passed.
            ways_out = (WayOut.LOAD_EXPORT,) if isinstance(statement, RestoreTable) else _APPLIES
            yield name, _point(before, ddl, ddl.commit_ts, ways_out)


def _concerns(statement: Statement, name: TableName) -> bool:
    if (database := database_of(statement)) is not None:
        return fold(database) == fold(name.database)
    return is_of_all_tables(statement) or name in _concerned(statement)


def _concerned(statement: Statement) -> tuple[TableName, ...]:
    """Returns the names of the tables that a statement changes."""
    return () if isinstance(statement, CreateTable | CreateTableLike) else names_of(statement)


def _lacks(before: Published, name: TableName, ddl: DdlEvent, statement: Statement, *, is_known: bool) -> bool:
    """True if a published table continued without the DDL: the table is not younger, and does not have its effect.
    ``is_known``: it was published with the DDL's name of then, whatever names it has had since."""
    state, definition = before.tables[name], before.definition_of(name)
    if state.dropped or state.applied_tso <= ddl.commit_ts:
        return False
    if definition is None:
        return True
    exported = definition.commit_ts if definition.origin is Origin.EXPORT else 0
    if ddl.commit_ts <= max(0 if is_known else definition.named_at, exported):
        return False
    return not (isinstance(statement, AlterTable) and _changes_nothing(definition.table, statement))


def _changes_nothing(table: Table, statement: AlterTable) -> bool:
    """True if the statement changes only indexes, or if the definition shows its effect already. One that drops
    partitions has more to do: they may be unknown, or exist again, and no definition shows that their rows are gone."""
    drops_partitions = any(isinstance(action, DropPartitions) for action in statement.actions)
    return statement.of_indexes or (is_done(table, statement) and not drops_partitions)


def _made(statement: Statement) -> tuple[TableName, ...]:
    """Returns the names of the tables that a statement makes or restores."""
    return () if isinstance(statement, RenameTables) else given_names(statement)


def _is_made_again(
    before: Published, ddl: DdlEvent, statement: Statement, name: TableName, since: Sequence[DdlEvent]
) -> bool:
    """True if a late DROP is of a table whose name a later DDL, up to the watermark, gives again: followed, the DROP
    would take away the table that has the name now."""
    later = (each for each in since if ddl.commit_ts < each.commit_ts <= before.tso)
    gives = (name in given_names(each) for other in later for each in other.statements)
    return isinstance(statement, DropTables | DropDatabase) and any(gives)


def _ends(later: DdlEvent, ddl: DdlEvent, name: TableName) -> bool:
    """True if a later DDL drops or renames the table of this name."""
    ending = (s for s in later.statements if isinstance(s, DropTables | DropDatabase | RenameTables))
    names = {name, fold(name.database)}
    return later.commit_ts > ddl.commit_ts and any(
        not names.isdisjoint({*names_of(s), fold(database_of(s) or "")}) for s in ending
    )


def _point(before: Published, ddl: DdlEvent, tso: int, ways_out: tuple[WayOut, ...]) -> BlockingPoint:
    detail = (
        f"the DDL at {with_time(ddl.commit_ts)} arrived only after the watermark covering it ({before.tso}) was "
        f"published: {' '.join(ddl.query.split())}"
    )
    stop = StopReason(
        kind=StopKind.LATE_DDL,
        detail=detail,
        ways_out=ways_out,
        commit_ts=ddl.commit_ts,
        query=ddl.query,
        needs_override=True,
    )
    return BlockingPoint(tso=tso, stop=stop)
