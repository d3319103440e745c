"""Random scripts of several databases in which some DDLs block their table, and some rows are in quarantine, until an
override or a replay some windows later, or at the end.

Wherever a window ends, a table that is not blocked is that of TiDB, and a blocked one holds what TiDB's held where it
is blocked. None is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from random import Random

import pytest
from random_database import DatabaseScript
from random_tables import HeldTable
from test_random_blocks import lag_and_catch_up
from test_random_databases import DatabasePlanner, config_of

from ticdc_codec.event import RowChange
from ticdc_codec.name_case import fold
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import BlockingPoint, DdlEvent
from ticdc_lakehouse.schema.names import TableName
from ticdc_testkit.respelled_streams import commit_order

IN_QUARANTINE = StopReason(kind=StopKind.QUARANTINED, detail="in quarantine")


class OverriddenDatabasePlanner(DatabasePlanner):
    """With overrides, as `ticdc_lakehouse.gold.overrides` records and reads them, and with a quarantine."""

    def __init__(self, script: DatabaseScript, config: GoldConfig, quarantine: Iterable[RowChange]) -> None:
        super().__init__(script, config)
        self.passed = set[tuple[str, int]]()
        self.quarantine = {*map(id, quarantine)}
        self._read()

    def _read(self) -> None:
        """Takes the rows that are not in quarantine."""
        self.rows = [row for row in self.script_rows if id(row) not in self.quarantine]
        self.named.clear()
        for row in self.rows:
            self.named[TableName(row.database, row.table)].append(row)

    def play(self, tso: int, ddls: list[DdlEvent]) -> None:
        self.quarantine_points = {}
        for row in self.script_rows:
            if id(row) in self.quarantine and commit_order(row) <= tso:
                point = BlockingPoint(tso=commit_order(row) - 1, stop=IN_QUARANTINE)
                self.quarantine_points.setdefault(TableName(row.database, row.table), point)
        blocked = {state.stable_id for state in self.before.tables.values() if state.stop}
        self.skipped = frozenset(ddl for ddl in self.passed if ddl[0] in blocked)
        super().play(tso, ddls)

    def replay(self, some: Callable[[], bool], end: int) -> None:
        """Reads some of the messages up to ``end`` that are in quarantine."""
        waiting = [row for row in self.script_rows if id(row) in self.quarantine and commit_order(row) <= end]
        self.quarantine -= {id(row) for row in waiting if some()}
        self._read()

    def undecided(self) -> list[TableName]:
        return [name for name, state in self.before.tables.items() if state.needs_override and not state.dropped]

    def override(self, name: TableName) -> None:
        """Skips a DDL that nobody can read; tries again where another one blocks the table."""
        state = self.before.tables[name]
        assert state.stop
        if state.stop.can_skip and "SOME NEW THING" in str(state.stop):
            assert state.stop.commit_ts is not None
            self.passed.add((state.stable_id, state.stop.commit_ts))
        resumed = replace(state, stop=replace(state.stop, needs_override=False))
        self.before = replace(self.before, tables={**self.before.tables, name: resumed})

    def may_be_left(self, name: TableName, state: TableState) -> bool:
        """Also a kept table that was blocked at its DROP: where it was restored under another name, that one has no
        rows."""
        return super().may_be_left(name, state) or fold(name.table) == fold(self.script.kept)

    def assert_shows(self, end: int) -> None:
        differences = [*self.differences_at(end)]
        assert not differences, (end, differences)

    def differences_at(self, end: int) -> Iterator[str]:
        tables, kept = self.script.at(end), self.script.kept_at(end)
        for table in (*tables.values(), *kept.values()):
            table.uncertain = True  # any may be blocked
        yield from self.differences_from(tables, kept)
        for name, state in self.before.tables.items():
            if name in tables and state.stable_id:
                if state.stop is not None and not state.dropped:
                    yield from self._differences_of_blocked(name, state, tables[name])
                passed = {at for data, at in self.passed if data == state.stable_id}
                if state.stop is None and not tables[name].unread <= passed:
                    yield f"{name}: a DDL was passed over without an override"

    def _differences_of_blocked(self, name: TableName, state: TableState, table: HeldTable) -> Iterator[str]:
        """A table that is blocked before a TRUNCATE, or an EXCHANGE, shows the rows from before it."""
        held = [table for at in (state.applied_tso, state.applied_tso - 1) for table in self.script.at(at).values()]
        same = [each for each in held if {each.number, *each.former} & {table.number, *table.former}]
        found = [[*self._differences_of(state.stable_id, each)] for each in same]
        if all(found):
            yield f"{name}, blocked: {found or 'it was not there'}"


def assert_overridden(seed: int, *, quarantined: float) -> None:
    random = Random(seed)
    lowers, idle = random.random() < 0.5, not quarantined and random.random() < 0.3
    hidden, kept = random.choice(("", "ς")), random.choice(("", "B"))
    script = DatabaseScript(random, blocks=True, lowers=lowers, idle=idle, hidden=hidden, kept=kept)
    script.repeats = random.random() < 0.3  # DDLs in two texts
    script.play(random.choice((15, 40)))
    quarantine = [row for row in script.rows if random.random() < quarantined]
    planner = OverriddenDatabasePlanner(script, config_of(script), quarantine)
    lag_and_catch_up(script, planner)


@pytest.mark.parametrize("quarantined", [0, 0.15])
def test_blocked_tables_of_random_databases_lag_and_catch_up(quarantined: float) -> None:
    for seed in range(50):
        assert_overridden(seed, quarantined=quarantined)


@pytest.mark.long
@pytest.mark.parametrize("quarantined", [0, 0.15])
def test_blocked_tables_of_many_random_databases_lag_and_catch_up(quarantined: float) -> None:
    for seed in range(50, 3000):
        assert_overridden(seed, quarantined=quarantined)
