"""Random scripts of which some rows come late, or are replayed from quarantine, below the published watermark.

At the end every table holds the rows that TiDB's holds, or was blocked because it lacks some: none is lost silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest
from random_script import Script
from test_random_blocks import OverriddenPlanner
from test_random_windows import windows

from ticdc_codec.event import RowChange
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import BlockingPoint, DdlEvent
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.schema.names import TableName
from ticdc_testkit.respelled_streams import commit_order

LATE = StopReason(kind=StopKind.LATE_ROWS, detail="came late", needs_override=True)


class LatePlanner(OverriddenPlanner):
    """With rows that nothing waits for until they come, after the watermark that covers them."""

    def __init__(self, script: Script, missing: Iterable[RowChange], *, replayed: bool) -> None:
        super().__init__(script, ())
        self.missing, self.replays = [*missing], replayed
        self.rows = [row for row in self.rows if row not in self.missing]
        self.late_tables: set[str] = set()
        """Tables, by stable id, that were blocked because they lack rows."""

    def come(self, some: Callable[[], bool]) -> None:
        """Some of the missing rows come."""
        came = [row for row in self.missing if some()]
        self.missing = [row for row in self.missing if row not in came]
        self.rows = sorted([*self.rows, *came], key=commit_order)
        if self.replays:
            self.fresh += came
            return
        for row in (row for row in came if commit_order(row) <= self.before.tso):
            name, at = TableName(str(row.database), str(row.table)), commit_order(row)
            known = self.late_points.get(name)
            first, last = (at - 1, at) if known is None else (min(known.tso, at - 1), max(known.last or 0, at))
            self.late_points[name] = BlockingPoint(tso=first, stop=LATE, last=last)

    def play(self, tso: int, ddls: list[DdlEvent]) -> None:
        super().play(tso, ddls)
        self.fresh, self.late_points = [], {}
        states = self.before.tables.values()
        self.late_tables |= {
            each.stable_id for each in states if each.stop is not None and each.stop.kind is StopKind.LATE_ROWS
        }

    def _merge(self, plan: TablePlan) -> None:
        super()._merge(plan)
        for step in plan.steps:
            if isinstance(step, MergeRows) and step.replayed and plan.definition is not None:
                rows = (row for row in self.fresh if step.mergeable_since < commit_order(row) <= step.after)
                own = (row for row in rows if TableName(row.database, row.table) == step.table.name)
                self.merged[plan.definition.stable_id] |= {int((row.after or {})["id"] or 0) for row in own}


def assert_late_rows(seed: int, *, replayed: bool, blocks: bool, comes_back: bool) -> None:
    script = Script(Random(seed), blocks=blocks, comes_back=comes_back)
    planner, end = played(script, replayed=replayed)
    for name, state in planner.before.tables.items():
        table = script.at(end).get(name.table)
        # A table that gold never had under a name begins anew with what is replayed there.
        if state.stop is None and (table is not None or not (blocks and replayed)):
            assert table is not None, (seed, name)
            held = planner.merged[state.stable_id]
            assert held <= table.rows if state.stable_id in planner.late_tables else held == table.rows, (seed, name)


def played(script: Script, *, replayed: bool) -> tuple[LatePlanner, int]:
    """The planner of a script after all of its rows have come, and the end of the script's last window."""
    random = script.random
    script.play(random.choice((15, 40)))
    planner = LatePlanner(script, [row for row in script.rows if random.random() < 0.2], replayed=replayed)
    end = 0
    for end, ddls, _ in windows(script):
        planner.play(end, ddls)
        for name in planner.undecided():
            if random.random() < 0.4:
                planner.override(name)
        planner.come(lambda: random.random() < 0.3)
    planner.come(lambda: True)
    for later in range(1, len(script.ddls) + 3):
        for name in planner.undecided():
            planner.override(name)
        planner.play(end + later, script.ddls)
    return planner, end


@pytest.mark.parametrize("comes_back", [False, True])
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("replayed", [False, True])
def test_no_row_that_comes_late_is_lost_silently(replayed: bool, blocks: bool, comes_back: bool) -> None:
    for seed in range(50):
        assert_late_rows(seed, replayed=replayed, blocks=blocks, comes_back=comes_back)


ONCE_LOST = {
    "a late row of a former name of a blocked table": (556, False, False),
    "a replay under a name that a table made by LIKE got later": (873, True, True),
    "a replay under the name of a recovered table": (1133, True, True),
    "a replay under a name that a table got by a RENAME before its first row": (3071, True, True),
    "a replay from before the RENAME of a table without rows": (4204, True, True),
}


@pytest.mark.parametrize(("seed", "replayed", "comes_back"), ONCE_LOST.values(), ids=ONCE_LOST)
def test_rows_that_were_once_lost_silently(seed: int, replayed: bool, comes_back: bool) -> None:
    assert_late_rows(seed, replayed=replayed, blocks=True, comes_back=comes_back)


TWO_OF_ONE_NAME = {
    "a late row from before the RENAME of a table that gold did not know": (15, False, False, False),
    "the same, of a table that lags behind": (10, False, True, False),
    "the same, of a table whose former name another one has since": (1085, False, True, True),
    "a replay from before a RENAME at the watermark": (41, True, True, False),
}


@pytest.mark.parametrize(("seed", "replayed", "blocks", "comes_back"), TWO_OF_ONE_NAME.values(), ids=TWO_OF_ONE_NAME)
def test_rows_that_once_made_two_tables_of_one_name(seed: int, replayed: bool, blocks: bool, comes_back: bool) -> None:
    played(Script(Random(seed), idle=True, blocks=blocks, comes_back=comes_back), replayed=replayed)


@pytest.mark.long
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("replayed", [False, True])
def test_late_rows_of_tables_that_gold_did_not_know_end_no_run(replayed: bool, blocks: bool) -> None:
    for seed in range(2000):
        played(Script(Random(seed), idle=True, blocks=blocks, comes_back=seed % 2 > 0), replayed=replayed)


@pytest.mark.long
@pytest.mark.parametrize("comes_back", [False, True])
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("replayed", [False, True])
def test_none_of_many_rows_that_come_late_is_lost_silently(replayed: bool, blocks: bool, comes_back: bool) -> None:
    for seed in range(50, 2000):
        assert_late_rows(seed, replayed=replayed, blocks=blocks, comes_back=comes_back)
