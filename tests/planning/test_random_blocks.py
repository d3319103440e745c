"""Random scripts in which some DDLs block their table, and an override skips them some windows later, or at the end. So
do rows whose message is in quarantine until then.

Wherever a window ends, a blocked table has the name that TiDB gave it and holds what it held before the DDL. Every
other table is that of TiDB, and at the end all are, but those whose columns or rows only an export tells
(`ticdc_lakehouse.planning.blocking`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from random_script import HeldTable, Script
from test_random_windows import ScriptPlanner, windows

from ticdc_codec.event import RowChange
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import BlockingPoint, DdlEvent
from ticdc_lakehouse.schema.names import TableName
from ticdc_testkit.respelled_streams import commit_order

if TYPE_CHECKING:
    from random_database import DatabaseScript
    from test_random_database_blocks import OverriddenDatabasePlanner


class OverriddenPlanner(ScriptPlanner):
    """With overrides, as `ticdc_lakehouse.gold.overrides` records and reads them, and with a quarantine."""

    def __init__(self, script: Script, quarantine: Iterable[RowChange]) -> None:
        super().__init__(script)
        self.passed: set[tuple[str, int]] = set()
        """What was decided, by stable id."""
        self.quarantine = [*quarantine]
        self.rows = [row for row in self.rows if row not in self.quarantine]

    def play(self, tso: int, ddls: list[DdlEvent]) -> None:
        stop = StopReason(kind=StopKind.QUARANTINED, detail="in quarantine")
        self.quarantine_points = {}
        for row in self.quarantine:
            if commit_order(row) <= tso:
                point = BlockingPoint(tso=commit_order(row) - 1, stop=stop)
                self.quarantine_points.setdefault(TableName(str(row.database), str(row.table)), point)
        super().play(tso, ddls)

    def replay(self, some: Callable[[], bool], end: int) -> None:
        """Reads some of the messages up to ``end`` that are in quarantine."""
        replayed = [row for row in self.quarantine if commit_order(row) <= end and some()]
        self.quarantine = [row for row in self.quarantine if row not in replayed]
        self.rows = sorted([*self.rows, *replayed], key=commit_order)

    @property
    def skipped(self) -> frozenset[tuple[str, int]]:
        blocked = {state.stable_id for state in self.before.tables.values() if state.stop}
        return frozenset(ddl for ddl in self.passed if ddl[0] in blocked)

    def undecided(self) -> list[TableName]:
        return [name for name, state in self.before.tables.items() if state.needs_override]

    def override(self, name: TableName) -> None:
        """Skips the DDL; where that is not possible, tries again."""
        state = self.before.tables[name]
        assert state.stop
        if state.stop.can_skip:
            self.passed.add((state.stable_id, state.applied_tso))
        resumed = replace(state, stop=replace(state.stop, needs_override=False))
        self.before = replace(self.before, tables={**self.before.tables, name: resumed})

    def assert_shows(self, end: int) -> None:
        script = self.script
        tables = script.at(end)
        assert {name.table for name in self.before.tables} == tables.keys()
        for name, state in self.before.tables.items():
            if state.stable_id:
                held = (
                    [column.name for column in self.definitions[state.stable_id].table.columns],
                    self.merged[state.stable_id],
                )
                assert held in [(t.columns, t.rows) for t in versions(script, tables[name.table], state)], (end, name)
                unread = {(state.stable_id, at) for at in tables[name.table].unread}
                assert state.stop or unread <= self.passed, (end, name, "a DDL was passed over without an override")
            else:
                assert state.stop, (end, name)


def versions(script: Script, table: HeldTable, state: TableState) -> list[HeldTable]:
    """What may be shown as a table: what TiDB held where it is blocked, also before a TRUNCATE."""
    if state.stop is None:
        return [table]
    return [each for each in script.at(state.applied_tso).values() if {*each.ids} & {*table.ids}]


def is_lost(state: TableState) -> bool:
    """Whether renames led to the table's name that cannot be followed again."""
    return "more than one order of them is possible" in str(state.stop) and not (state.stop and state.stop.can_skip)


def lag_and_catch_up(script: Script | DatabaseScript, planner: OverriddenPlanner | OverriddenDatabasePlanner) -> None:
    """Plays a script: some overrides and replays after each window, all at the end."""
    random, end, ddls = script.random, 0, list[DdlEvent]()
    for end, ddls, whole in windows(script):
        planner.play(end, ddls)
        if whole:
            planner.assert_shows(end)
        for name in planner.undecided():
            if random.random() < 0.3:
                planner.override(name)
        planner.replay(lambda: random.random() < 0.3, end)
    planner.replay(lambda: True, end)
    for later in range(1, len(script.ddls) + 2):
        for name in planner.undecided():
            planner.override(name)
        planner.play(end + later, ddls)
        planner.assert_shows(end + later)


def assert_overridden(seed: int, *, comes_back: bool, quarantined: float, topics: int = 1) -> None:
    random = Random(seed)
    script = Script(random, blocks=True, comes_back=comes_back, topics=topics)
    script.play(random.choice((15, 40)))
    planner = OverriddenPlanner(script, [row for row in script.rows if random.random() < quarantined])
    lag_and_catch_up(script, planner)
    left = [state for state in planner.before.tables.values() if state.stop and not is_lost(state)]
    assert {state.stable_id for state in left} <= ({""} if comes_back else set()), seed


@pytest.mark.parametrize("quarantined", [0, 0.15])
@pytest.mark.parametrize("comes_back", [False, True])
def test_blocked_tables_of_random_scripts_lag_and_catch_up(comes_back: bool, quarantined: float) -> None:
    for seed in range(100):
        assert_overridden(seed, comes_back=comes_back, quarantined=quarantined)


@pytest.mark.parametrize("quarantined", [0, 0.15])
def test_blocked_tables_are_followed_through_renames_that_come_through_several_topics(quarantined: float) -> None:
    for seed in range(100):
        assert_overridden(seed, comes_back=False, quarantined=quarantined, topics=3)


@pytest.mark.long
@pytest.mark.parametrize("quarantined", [0, 0.15])
@pytest.mark.parametrize("comes_back", [False, True])
def test_blocked_tables_of_many_random_scripts_lag_and_catch_up(comes_back: bool, quarantined: float) -> None:
    for seed in range(100, 5000):
        assert_overridden(seed, comes_back=comes_back, quarantined=quarantined)
