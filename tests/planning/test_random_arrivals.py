"""Random scripts in mode eventual, in batches of which some come again, as after a changefeed's restart.

The tables are those of TiDB after each batch: what comes again changes nothing, and brings back no table that was
renamed or dropped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random

import pytest
from planned import row_group
from random_script import Script
from test_random_windows import ScriptPlanner

from ticdc_codec.event import RowChange
from ticdc_lakehouse.gold.window_reader import first_unapplied
from ticdc_lakehouse.planning.barriers import barriers
from ticdc_lakehouse.planning.naming import Naming, TakenNames
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.window import BatchRange, DdlEvent, RowGroup, Window
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName
from ticdc_testkit.respelled_streams import commit_order

Arrival = RowChange | DdlEvent
CONFIG = GoldConfig(feed="f", time_zone="UTC", mode=Mode.EVENTUAL)


class ArrivalPlanner(ScriptPlanner):
    """Plans what arrives, as `gold.window_reader.read_arrivals` finds it in silver."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.batches: list[Sequence[Arrival]] = []

    def arrive(self, batch: Sequence[Arrival]) -> None:
        self.batches.append(batch)
        number, tso = len(self.batches) - 1, max([self.before.tso, *map(_commit_ts, batch)])
        now = PlanningInput(
            config=CONFIG, before=self.before, definitions=self.definitions, window=self._arrived(batch),
            quarantine_points={}, tso=tso,
            naming=Naming(feed="f", taken=TakenNames(names=tuple(self.taken))),
            batches=BatchRange(after=number - 1 if number else None, through=number),
        )  # fmt: skip
        plan = plan_tables(now)
        for each in plan.tables:
            self._merge(each)
        tables = {each.name: self._publish(each) for each in plan.tables}
        kept = {state.stable_id for state in tables.values()}
        definitions = {data: definition for data, definition in self.definitions.items() if data in kept}
        self.before = Published(tso=tso, batch=number, tables=tables, definitions=definitions)

    def _arrived(self, batch: Sequence[Arrival]) -> Window:
        earlier = {id(event) for batch in self.batches[:-1] for event in batch}
        newest = max((ddl.commit_ts for ddl in self._ddls() if id(ddl) in earlier), default=0)
        new = [row for row in _rows(batch) if id(row) not in earlier or commit_order(row) > newest]
        first, own = first_unapplied(self.before), {*map(id, batch)}
        ddls = tuple(ddl for ddl in self._ddls() if ddl.commit_ts >= first or id(ddl) in own)
        parted = barriers(ddls, self.before, self.before.definitions.values())
        by_layout: dict[tuple[object, ...], list[RowChange]] = defaultdict(list)
        for row in new:
            by_layout[row.table, row.columns, parted.passed(_name(row), commit_order(row))].append(row)
        groups: dict[TableName, tuple[RowGroup, ...]] = defaultdict(tuple)
        for group in map(row_group, by_layout.values()):
            groups[group.name] = (*groups[group.name], group)
        return Window(rows=groups, ddls=ddls, replays_seen=None, row_changes=len(new))

    def _ddls(self) -> Iterator[DdlEvent]:
        """Those that have arrived, once each."""
        arrived = {id(event) for batch in self.batches for event in batch}
        return (ddl for ddl in self.ddls if id(ddl) in arrived)

    def _merge(self, plan: TablePlan) -> None:
        for step in plan.steps:
            if isinstance(step, MergeRows) and step.groups and plan.definition is not None:
                assert step.batches is not None
                first = 0 if step.batches.after is None else step.batches.after + 1
                arrived = [row for batch in self.batches[first:] for row in _rows(batch)]
                within = (row for row in arrived if step.after < commit_order(row) <= step.through)
                own = {int((row.after or {})["id"] or 0) for row in within if _name(row) == step.table.name}
                self.merged[plan.definition.stable_id] |= own


def _commit_ts(event: Arrival) -> int:
    return commit_order(event) if isinstance(event, RowChange) else event.commit_ts


def _rows(batch: Sequence[Arrival]) -> list[RowChange]:
    return [event for event in batch if isinstance(event, RowChange)]


def _name(row: RowChange) -> TableName:
    return TableName(str(row.database), str(row.table))


def arrivals(script: Script) -> Iterator[tuple[Sequence[Arrival], int]]:
    """Batches, each with the commit_ts up to which all has arrived. None ends within a commit."""
    random, at = script.random, sorted(script.states)
    events = sorted([*script.rows, *script.ddls], key=_commit_ts)
    since = 0
    for end in sorted({*random.sample(at, random.randint(1, len(at) // 2)), at[-1]}):
        yield [event for event in events if since < _commit_ts(event) <= end], end
        if random.random() < 0.4:
            again = random.choice(at)
            yield [event for event in events if again <= _commit_ts(event) <= end], end
        since = end


def assert_arrivals(seed: int) -> None:
    random = Random(seed)
    script = Script(random, comes_back=False)
    script.play(random.choice((15, 40)))
    planner = ArrivalPlanner(script)
    planner.ddls = script.ddls
    for batch, end in arrivals(script):
        planner.arrive(batch)
        expected = {name: (table.columns, table.rows, "") for name, table in script.at(end).items()}
        assert planner.held() == expected, (seed, end)


def assert_idle_tables(seed: int) -> None:
    random = Random(seed)
    script = Script(random, comes_back=False, idle=True)
    script.play(random.choice((15, 40)))
    planner = ArrivalPlanner(script)
    planner.ddls = script.ddls
    for batch, end in arrivals(script):
        planner.arrive(batch)
        tables, held = script.at(end), planner.held()
        for name, (columns, rows, stop) in held.items():
            assert stop or (columns, rows) == (tables[name].columns, tables[name].rows), (seed, end, name)
        assert {name for name, table in tables.items() if table.rows} <= held.keys(), (seed, end)


def test_tables_inferred_from_the_wire_equal_tidb_in_mode_eventual() -> None:
    for seed in range(100):
        assert_idle_tables(seed)


def test_duplicates_change_nothing_in_mode_eventual() -> None:
    for seed in range(100):
        assert_arrivals(seed)


@pytest.mark.long
def test_duplicates_in_many_random_scripts_change_nothing_in_mode_eventual() -> None:
    for seed in range(100, 5000):
        assert_arrivals(seed)
