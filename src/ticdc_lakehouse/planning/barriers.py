"""Where the rows of a table are parted into row groups: at the DDLs of that table alone, so that the groups of a window
grow with its tables and its DDLs and not with their product."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ticdc_lakehouse.planning.published_state import Definition, Published
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.schema.names import TableName, fold
from ticdc_lakehouse.schema.statement import AlterTable, RenameTables, database_of, names_of

_Key = TypeVar("_Key", TableName, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Barriers:
    """The commit_ts, rising, at which a table may become another. A row at a barrier is before it."""

    tables: Mapping[TableName, tuple[int, ...]]
    databases: Mapping[str, tuple[int, ...]]
    """Of DDLs of whole databases, by their folded names."""

    def passed(self, name: TableName, commit_ts: int) -> int:
        """How many barriers lie below a row: rows of one name and one number lie between the same two."""
        of_table = bisect_left(self.tables.get(name, ()), commit_ts)
        return of_table + bisect_left(self.databases.get(fold(name.database), ()), commit_ts)


def barriers(ddls: Iterable[DdlEvent], before: Published, past: Iterable[Definition] = ()) -> Barriers:
    """The barriers of a window after ``before``; ``past``: of rows from before the window too, at the DDLs to which
    these definitions are due."""
    tables: dict[TableName, set[int]] = defaultdict(set)
    databases: dict[str, set[int]] = defaultdict(set)
    ddls = tuple(ddls)
    for ddl in ddls:
        for statement in ddl.statements:
            if isinstance(statement, AlterTable) and statement.of_indexes:
                continue  # no row depends on it
            for name in names_of(statement):
                tables[name].add(ddl.commit_ts)
            if (database := database_of(statement)) is not None:
                databases[fold(database)].add(ddl.commit_ts)
    for definition in past:
        tables[definition.table.name] |= {definition.commit_ts, definition.named_at}
    # Rows of one name may be of several tables in turn: those that one of them has are parted from those it has not.
    for name, names in lagging_names(ddls, before).items():
        for each in names:
            tables[each] |= {before.tso, before.tables[name].applied_tso}
    return Barriers(tables=_sorted(tables), databases=_sorted(databases))


def _sorted(found: Mapping[_Key, set[int]]) -> dict[_Key, tuple[int, ...]]:
    return {name: tuple(sorted(some)) for name, some in found.items()}


def lagging_names(ddls: Iterable[DdlEvent], before: Published) -> dict[TableName, frozenset[TableName]]:
    """The tables that are below the watermark and go on by themselves, each with all names that it may have had since:
    it is published under the last of them, and goes on from the first."""
    lagging = [n for n, state in before.tables.items() if state.applied_tso < before.tso and not state.needs_override]
    if not lagging:
        return {}
    renamed = _renamed(ddls)
    return {name: _reached(name, renamed) for name in lagging}


def _renamed(ddls: Iterable[DdlEvent]) -> Mapping[TableName, set[TableName]]:
    """Each name with those that it was exchanged for, in either direction."""
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
