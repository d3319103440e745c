"""Random scripts in random windows: wherever a window ends, and whichever of the DDLs at its end are in, the tables
are those of TiDB."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random

import pytest
from planned import Planner, topics_of
from random_database import DatabaseScript
from random_script import Script

from ticdc_lakehouse.planning.naming import Naming, TakenNames
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.window import BlockingPoint, DdlEvent
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.schema.names import TableName


class ScriptPlanner(Planner):
    """Plans a script's windows, and does with row numbers what gold does with rows."""

    def __init__(self, script: Script) -> None:
        self.script, self.before, self.definitions, self.taken = script, Published(), {}, []
        self.rows, self.ddls, self.fresh = script.rows, [], []
        self.merged: dict[str, set[int]] = defaultdict(set)
        self.quarantine_points: dict[TableName, BlockingPoint] = {}
        self.late_points: dict[TableName, BlockingPoint] = {}

    @property
    def topics(self) -> set[str]:
        return topics_of(self.script.topics)

    @property
    def skipped(self) -> frozenset[tuple[str, int]]:
        return frozenset()

    def play(self, tso: int, ddls: list[DdlEvent]) -> None:
        self.ddls = ddls
        now = PlanningInput(
            config=GoldConfig(feed="f", time_zone="UTC"), before=self.before, definitions=self.definitions,
            window=self._window(tso), quarantine_points=self.quarantine_points, tso=tso, skipped=self.skipped,
            naming=Naming(feed="f", taken=TakenNames(names=tuple(self.taken))), late_points=self.late_points,
        )  # fmt: skip
        plan = plan_tables(now)
        for each in (*plan.tables, *plan.recoverable):
            self._merge(each)
        tables = {each.name: self._publish(each) for each in plan.tables}
        recoverable = tuple(map(self._remember, plan.recoverable))
        self.before = Published(tso=tso, tables=tables, recoverable=recoverable, definitions=dict(self.definitions))

    def _merge(self, plan: TablePlan) -> None:
        for step in plan.steps:
            if isinstance(step, MergeRows) and plan.definition is not None:
                rows = (row for row in self.rows if step.after < (row.commit_ts or 0) <= step.through)
                own = (row for row in rows if TableName(row.database, row.table) == step.table.name)
                self.merged[plan.definition.stable_id] |= {int((row.after or {})["id"] or 0) for row in own}

    def held(self) -> dict[str, tuple[list[str], set[int], str]]:
        """Columns, rows, and why it is blocked."""
        return {
            name.table: (
                [column.name for column in self.definitions[state.stable_id].table.columns] if state.stable_id else [],
                self.merged[state.stable_id],
                str(state.stop or ""),
            )
            for name, state in self.before.tables.items()
        }


def assert_windows(seed: int) -> None:
    random = Random(seed)
    script = Script(random)
    script.play(random.choice((15, 40)))
    planner = ScriptPlanner(script)
    for end, ddls, whole in windows(script):
        planner.play(end, ddls)
        if whole:
            expected = {name: (table.columns, table.rows, "") for name, table in script.at(end).items()}
            assert planner.held() == expected, (seed, end)


def assert_idle_tables(seed: int) -> None:
    random = Random(seed)
    script = Script(random, idle=True)
    script.play(random.choice((15, 40)))
    planner = ScriptPlanner(script)
    for end, ddls, whole in windows(script):
        planner.play(end, ddls)
        tables, held = script.at(end), planner.held()
        for name, (columns, rows, stop) in held.items() if whole else ():
            assert stop or (columns, rows) == (tables[name].columns, tables[name].rows), (seed, end, name)
        assert not whole or {name for name, table in tables.items() if table.rows} <= held.keys(), (seed, end)


def windows(script: Script | DatabaseScript) -> Iterator[tuple[int, list[DdlEvent], bool]]:
    """The end of each window, the DDLs that arrived by then, and whether those are all."""
    random, at = script.random, sorted(script.states)
    for end in sorted({*random.sample(at, random.randint(1, len(at) // 2)), random.choice(at) - 1, at[-1] + 1}):
        last = [ddl for ddl in script.ddls if ddl.commit_ts == end]
        arrived = random.choice((len(last), random.randint(0, len(last))))
        ddls = [ddl for ddl in script.ddls if ddl.commit_ts < end] + last[:arrived]
        yield end, sorted(ddls, key=lambda ddl: (ddl.commit_ts, ddl.topic)), arrived == len(last)


def test_tables_of_random_scripts_are_those_of_tidb() -> None:
    for seed in range(100):
        assert_windows(seed)


def test_tables_inferred_from_the_wire_equal_tidb() -> None:
    """They were there before the changefeed, and may get a name that another one had."""
    for seed in range(100):
        assert_idle_tables(seed)


@pytest.mark.long
def test_tables_of_many_random_scripts_are_those_of_tidb() -> None:
    for seed in range(100, 5000):
        assert_windows(seed)


@pytest.mark.long
def test_many_tables_inferred_from_the_wire_equal_tidb() -> None:
    for seed in range(100, 5000):
        assert_idle_tables(seed)
