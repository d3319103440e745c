"""The order of the renames of one commit_ts.

TiCDC sends a RENAME TABLE of several tables as one DDL for each, all of one commit_ts, and each to the topic of its old
name (wire.md 2.4 and 8.6): from one topic they arrive in TiDB's order, from several in no fixed order. In TiDB's order
each finds a table of its old name and its new name free. A swap through a third name has one such order. Where there
are several that leave a name to different tables, the renames are `Unread`, which blocks the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from ticdc_lakehouse.planning.connected import connected
from ticdc_lakehouse.planning.plan_builder import TablePlanBuilder
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import RenameTables, Unread

_MOST_STATES = 1_000
"""Arrangements of tables that renames may lead to until their order counts as unknown."""
_REASON = "it came with other renames through several topics, and more than one order of them is possible"


@dataclass(frozen=True, slots=True)
class _Rename:
    ddl: DdlEvent
    pairs: tuple[tuple[TableName, TableName], ...]

    @property
    def names(self) -> tuple[TableName, ...]:
        return tuple(name for pair in self.pairs for name in pair)


@dataclass(frozen=True, slots=True)
class _State:
    left: tuple[int, ...]
    """Positions of the renames that are not done, in order of arrival."""
    tables: frozenset[tuple[TableName, TableName]]
    """(name, the table's name before all renames)."""


def in_execution_order(ddls: list[DdlEvent], tables: Iterable[TablePlanBuilder]) -> list[DdlEvent]:
    """Sorts DDLs of one commit_ts in TiDB's order, given the tables before them. Only renames that arrived through
    several topics need another order than that of arrival. The window before, if it ends at this commit_ts, may have
    done some of them: the tables have the names since."""
    renames = [_Rename(ddl, s.pairs) for ddl in ddls for s in ddl.statements if isinstance(s, RenameTables)]
    are_all = len(renames) == len(ddls) == sum(len(ddl.statements) for ddl in ddls)
    if len({ddl.topic for ddl in ddls}) < 2 or not are_all:
        return ddls
    # A name that renames of unknown order may give has a builder that waits since: no table has it before them.
    builders = [builder for builder in tables if not any(_waits_since(builder, ddl) for ddl in ddls)]
    done = [rename for rename in renames if any(builder.has_recorded(rename.ddl) for builder in builders)]
    left = connected((rename for rename in renames if rename not in done), lambda rename: rename.names)
    names = {builder.name for builder in builders}
    return [*(rename.ddl for rename in done), *(ddl for related in left for ddl in _ordered(related, names))]


def _waits_since(builder: TablePlanBuilder, ddl: DdlEvent) -> bool:
    """True if the rename made this builder, whose table is blocked before it."""
    stop = builder.stop
    waits = stop is not None and stop.of_ddl and stop.commit_ts == ddl.commit_ts
    return waits and builder.has_recorded(ddl)


def _ordered(renames: Sequence[_Rename], names: Set[TableName]) -> list[DdlEvent]:
    """Returns the renames in TiDB's order, given the names that tables have before: as `Unread` if orders with
    different results are possible, in order of arrival if no order is."""
    made = {new for rename in renames for _, new in rename.pairs}
    # A table that gold does not have has its name all the same.
    used = {name for rename in renames for name in rename.names if name in names or name not in made}
    begin = _State(tuple(range(len(renames))), frozenset((name, name) for name in used))
    orders: dict[_State, tuple[int, ...]] = {begin: ()}
    for _ in renames:
        orders = {after: (*order, at) for state, order in orders.items() for at, after in _possible(renames, state)}
        if len(orders) > _MOST_STATES:
            break
    if len(orders) > 1:
        return [_unread(rename) for rename in renames]
    return [renames[at].ddl for order in (orders.values() or (begin.left,)) for at in order]


def _possible(renames: Sequence[_Rename], state: _State) -> Iterator[tuple[int, _State]]:
    """Yields each rename that TiDB may have done next, and the state after it."""
    passed: set[str] = set()
    for at in state.left:
        rename = renames[at]
        tables = None if rename.ddl.topic in passed else _renamed(rename, dict(state.tables))
        passed.add(rename.ddl.topic)
        if tables is not None:
            yield at, _State(tuple(other for other in state.left if other != at), frozenset(tables.items()))


def _renamed(rename: _Rename, tables: dict[TableName, TableName]) -> dict[TableName, TableName] | None:
    """Returns the tables by name after a rename; None if it is not possible."""
    for old, new in rename.pairs:
        if old not in tables or (new in tables and new != old):
            return None
        tables[new] = tables.pop(old)
    return tables


def _unread(rename: _Rename) -> DdlEvent:
    return replace(rename.ddl, statements=(Unread(names=rename.names, database=None, reason=_REASON),))
