"""The order of the renames of one commit_ts.

TiCDC sends a RENAME TABLE of several tables as one DDL for each, all of one commit_ts, and each to the topic of its old
name (wire.md 2.4 and 8.6): from one topic they arrive in TiDB's order, from several in no fixed order. In TiDB's order
each finds a table of its old name and its new name free. A swap through a third name has one such order. Where there
are several that leave a name to different tables, the renames are `Unread`, which blocks the tables. So they are if
that depends on whether TiDB has a table that gold does not have: of ``RENAME TABLE t TO old, new TO t`` gold may have
`new` alone, which is `t` afterwards, and would be `old` in the other order.

Versions of tiflow up to 8.5 send them to one topic in random order, too (docs/defects.md). So an order of arrival that
is not possible is none.

They are read again for a table that is below the watermark, and another one that was blocked and then dropped may have
had one of the names: gold does not know its former names. A table that cannot be followed through them any more is
**lost**: it is blocked, with the name that it has by now, to which an earlier window has followed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from ticdc_lakehouse.planning.connected import connected
from ticdc_lakehouse.planning.naming import Naming
from ticdc_lakehouse.planning.plan_builder import TablePlanBuilder
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.stop_reason import StopKind
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import RenameTables, Unread

_MOST_STATES = 1_000
"""Arrangements of tables that renames may lead to until their order counts as unknown."""
_REASON = "it came with other renames of one commit_ts, and more than one order of them is possible"


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
    settled: frozenset[TableName]
    """The names of which it is known whether a table has them. Any other may be of a table that gold does not have."""


def in_execution_order(
    ddls: list[DdlEvent], tables: Iterable[TablePlanBuilder], inputs: PlanningInput
) -> list[DdlEvent]:
    """Sorts DDLs of one commit_ts in TiDB's order, given the tables since, and the dropped ones. Only renames need
    another order than that of arrival."""
    renames = [_Rename(ddl, s.pairs) for ddl in ddls for s in ddl.statements if isinstance(s, RenameTables)]
    are_all = len(renames) == len(ddls) == sum(len(ddl.statements) for ddl in ddls)
    if len(ddls) < 2 or not are_all:
        return ddls
    # A name that renames of unknown order may give has a builder that waits since: no table has it before them.
    builders = [builder for builder in tables if not any(_waits_since(builder, ddl) for ddl in ddls)]
    commit_ts = ddls[0].commit_ts
    found = (_name_before(builder, commit_ts, inputs.naming) for builder in builders)
    names = {name for name in found if name is not None}
    doubtful = {builder.name for builder in builders if _may_not_exist(builder)} - names
    # A table that the filter leaves out gets into gold by a rename.
    doubtful |= {name for rename in renames for name in rename.names if not inputs.config.matches(*name)}
    # A window may have ended among these renames: it may have done some of them to a table that nobody can follow.
    lost = {builder.name for builder in builders if builder.is_lost and builder.named_until == commit_ts}
    ordered: list[DdlEvent] = []
    for each in connected(renames, lambda rename: rename.names):
        is_clear = lost.isdisjoint(name for rename in each for name in rename.names)
        ordered += _ordered(each, names, doubtful) if is_clear else map(_unread, each)
    return ordered


def _name_before(builder: TablePlanBuilder, commit_ts: int, naming: Naming) -> TableName | None:
    """Returns the name that a table had before the renames of a commit_ts; None if it was not there, or may not have
    been. A window before may have done some of them, or all, and later ones: they are read again for a table that is
    below the watermark."""
    if builder.dropped_before(commit_ts) or _may_not_exist(builder):
        return None
    if builder.is_lost and commit_ts <= builder.named_until:
        return None
    if builder.definition is None:
        is_later = builder.dropped_at is not None or builder.named_at >= commit_ts
        return None if is_later else builder.name
    if builder.named_at < commit_ts:
        return builder.name
    return naming.name_before(builder.definition.stable_id, commit_ts)


def _may_not_exist(builder: TablePlanBuilder) -> bool:
    """True if gold knows of a table only that a DDL names it which it cannot follow."""
    is_named = builder.stop is not None and builder.stop.kind is StopKind.UNSUPPORTED_DDL
    return builder.definition is None and is_named and builder.dropped_at is None


def _waits_since(builder: TablePlanBuilder, ddl: DdlEvent) -> bool:
    """True if the rename made this builder, whose table is blocked before it. (One with a definition was there: it may
    have recorded others of the commit_ts, if a window ended among them.)"""
    stop = builder.stop
    waits = stop is not None and stop.of_ddl and stop.commit_ts == ddl.commit_ts
    return waits and builder.definition is None and builder.has_recorded(ddl)


def _ordered(renames: Sequence[_Rename], names: Set[TableName], doubtful: Set[TableName]) -> list[DdlEvent]:
    """Returns the renames in TiDB's order, given the ``names`` that gold's tables have before, and those that they may
    have: as `Unread` if orders with different results for these tables are possible, in order of arrival if no order
    is. Those of one topic keep their order, unless none is possible then."""
    before = frozenset((name, name) for rename in renames for name in rename.names if name in names)
    begin = _State(left=tuple(range(len(renames))), tables=before, settled=frozenset(name for name, _ in before))
    apart = [replace(rename, ddl=replace(rename.ddl, topic=str(at))) for at, rename in enumerate(renames)]
    orders = _orders(renames, begin) or _orders(apart, begin)
    own = names | doubtful
    results = {frozenset((name, former) for name, former in state.tables if former in own) for state in orders}
    if len(results) > 1 or len(orders) > _MOST_STATES:
        return [_unread(rename) for rename in renames]
    return [renames[at].ddl for at in next(iter(orders.values()), begin.left)]


def _orders(renames: Sequence[_Rename], begin: _State) -> dict[_State, tuple[int, ...]]:
    """Returns what the renames may lead to, with one order for each; only a part if there is too much."""
    orders: dict[_State, tuple[int, ...]] = {begin: ()}
    for _ in renames:
        orders = {after: (*order, at) for state, order in orders.items() for at, after in _possible(renames, state)}
        if len(orders) > _MOST_STATES:
            break
    return orders


def _possible(renames: Sequence[_Rename], state: _State) -> Iterator[tuple[int, _State]]:
    """Yields each rename that TiDB may have done next, and the state after it."""
    passed: set[str] = set()
    for at in state.left:
        rename = renames[at]
        tables = None if rename.ddl.topic in passed else _renamed(rename, state)
        passed.add(rename.ddl.topic)
        if tables is not None:
            left = tuple(other for other in state.left if other != at)
            yield at, _State(left=left, tables=frozenset(tables.items()), settled=state.settled.union(rename.names))


def _renamed(rename: _Rename, state: _State) -> dict[TableName, TableName] | None:
    """Returns the tables by name after a rename; None if it is not possible."""
    tables, settled = dict(state.tables), {*state.settled}
    for old, new in rename.pairs:
        if old not in settled:
            tables[old] = old  # a table that gold does not have
        if old not in tables or (new in tables and new != old):
            return None
        tables[new] = tables.pop(old)
        settled |= {old, new}
    return tables


def _unread(rename: _Rename) -> DdlEvent:
    statement = Unread(names=rename.names, database=None, reason=_REASON, gives_names=True)
    return replace(rename.ddl, statements=(statement,))
