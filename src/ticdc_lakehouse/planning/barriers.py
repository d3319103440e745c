"""Barriers split the rows of a table into row groups at the DDLs of that table, so that the number of groups grows with
the sum of tables and DDLs, not with their product."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ticdc_codec.name_case import fold
from ticdc_lakehouse.planning.published_state import Definition, Published
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import (
    AlterTable,
    RenameTables,
    database_of,
    is_of_all_tables,
    names_of,
    unqualified_name,
)

_Key = TypeVar("_Key", TableName, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Barriers:
    """Ascending commit_ts at which the definition of a table may change. A row at a barrier is before it."""

    tables: Mapping[TableName, tuple[int, ...]]
    databases: Mapping[str, tuple[int, ...]]
    """Barriers of DDLs on whole databases, by the database's folded name."""
    in_any_database: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Barriers of DDLs that write a table's name without its database, by the table's folded name."""

    def passed(self, name: TableName, commit_ts: int) -> int:
        """Returns the number of barriers below a row. Rows of one table with equal numbers are between the same two
        barriers."""
        of_name = (
            self.tables.get(name, ()),
            self.databases.get(fold(name.database), ()),
            self.in_any_database.get(fold(name.table), ()),
        )
        return sum(bisect_left(some, commit_ts) for some in of_name)


def barriers(ddls: Iterable[DdlEvent], before: Published, past: Iterable[Definition] = ()) -> Barriers:
    """Returns the barriers of the window after ``before``. ``past``: definitions whose DDLs also split late rows."""
    tables: dict[TableName, set[int]] = defaultdict(set)
    databases: dict[str, set[int]] = defaultdict(set)
    ddls = tuple(ddls)
    for ddl in ddls:
        for statement in ddl.statements:
            if isinstance(statement, AlterTable) and statement.of_named_indexes:
                continue  # no row depends on it, and a table that is blocked before it may do it twice
            for name in names_of(statement):
                tables[name].add(ddl.commit_ts)
            if (database := database_of(statement)) is not None:
                databases[fold(database)].add(ddl.commit_ts)
    of_all = {ddl.commit_ts for ddl in ddls if any(map(is_of_all_tables, ddl.statements))}
    for name in {*before.tables, *tables} if of_all else ():
        tables[name] |= of_all
    for definition in past:
        tables[definition.table.name] |= {definition.commit_ts, definition.named_at}
    # Several tables may use one name in turn: split the rows at the TSO up to which each of them is applied.
    for name, names in lagging_names(ddls, before).items():
        for each in names:
            tables[each] |= {before.tso, before.tables[name].applied_tso}
    return Barriers(tables=_sorted(tables), databases=_sorted(databases), in_any_database=_in_any_database(ddls))


def _in_any_database(ddls: Iterable[DdlEvent]) -> dict[str, tuple[int, ...]]:
    """Returns the barriers of DDLs that write a table's name without its database, by the table's folded name."""
    found: dict[str, set[int]] = defaultdict(set)
    for ddl in ddls:
        for name in filter(None, map(unqualified_name, ddl.statements)):
            found[fold(name.table)].add(ddl.commit_ts)
    return _sorted(found)


def _sorted(found: Mapping[_Key, set[int]]) -> dict[_Key, tuple[int, ...]]:
    return {name: tuple(sorted(some)) for name, some in found.items()}


def unapplied_after(
    ddls: Iterable[DdlEvent], before: Published, *, in_any_order: bool
) -> Iterator[tuple[TableName, int]]:
    """Yields the names of tables below the watermark, each with the commit_ts after which its rows are read again.

    ``in_any_order``: rows of any commit_ts may have arrived while a table waited for an override (mode eventual). All
    rows of its definition are read again then; those from before it cannot be merged.
    """
    lagging = lagging_names(ddls, before)
    for name, state in before.tables.items():
        definition = before.definitions.get(state.stable_id) if in_any_order and state.overridden else None
        own = None if definition is None else definition.table.name
        if definition is not None:
            yield definition.table.name, definition.mergeable_since
        yield from ((each, state.applied_tso) for each in sorted(lagging.get(name, ())) if each != own)


def lagging_names(ddls: Iterable[DdlEvent], before: Published) -> dict[TableName, frozenset[TableName]]:
    """Returns the tables below the watermark that need no override, each with all names that it may have had since. The
    state has the last of these names; the plan begins with the first."""
    lagging = [n for n, state in before.tables.items() if state.applied_tso < before.tso and not state.needs_override]
    if not lagging:
        return {}
    renamed = _renamed(ddls)
    return {name: _reached(name, renamed) for name in lagging}


def names_after(tso: int, ddls: Iterable[DdlEvent], before: Published) -> frozenset[TableName]:
    """Returns the names that tables which are applied up to ``tso`` or less may have had since: they take rows of these
    names after it once they continue."""
    renamed = _renamed(ddls)
    below = [name for name, state in before.tables.items() if state.applied_tso <= tso and not state.dropped]
    return frozenset(each for name in below for each in _reached(name, renamed))


def _renamed(ddls: Iterable[DdlEvent]) -> Mapping[TableName, set[TableName]]:
    """Maps each name to its direct old and new names."""
    renamed: dict[TableName, set[TableName]] = defaultdict(set)
    for ddl in ddls:
        for statement in ddl.statements:
            for old, new in statement.pairs if isinstance(statement, RenameTables) else ():
                renamed[old].add(new)
                renamed[new].add(old)
    return renamed


def _reached(name: TableName, renamed: Mapping[TableName, set[TableName]]) -> frozenset[TableName]:
    reached, waiting = {name}, [name]
    while waiting:
        more = renamed.get(waiting.pop(), set()) - reached
        reached |= more
        waiting += more
    return frozenset(reached)
