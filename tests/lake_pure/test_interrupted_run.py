"""What the commits of runs that died have done of a plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ticdc_codec.mysql_type import parse_type
from ticdc_lakehouse.gold.interrupted_run import count_done_steps
from ticdc_lakehouse.gold.live_commits import Commit
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.steps import AlterRows, MergeRows
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.schema.definition import ColumnDefinition, PendingDefault
from ticdc_lakehouse.schema.effect import ColumnAdded, ColumnConverted, Effect
from ticdc_lakehouse.schema.script import tables_from_sql

(TABLE,) = tables_from_sql("CREATE TABLE d.t (id BIGINT PRIMARY KEY)")
PLAN = TablePlan(
    name=TABLE.name,
    lake_name="t",
    state=TableState(lake_name="t", stable_id="t__data", version=7, applied_tso=100),
    start=None,
    steps=(
        MergeRows(table=TABLE, after=100, through=200, groups=()),
        AlterRows(commit_ts=200, query="", effects=(), table=TABLE),
        MergeRows(table=TABLE, after=200, through=300, groups=()),
    ),
    through=300,
)


def commit(operation: str, tso: int) -> Commit:
    return Commit(version=8, operation=operation, timestamp=datetime.now(UTC), feed="crm", tso=tso, run="dead")


def test_steps_up_to_the_last_ddl_are_done() -> None:
    merged, altered = commit("MERGE", 200), commit("REPLACE TABLE AS SELECT", 200)
    assert count_done_steps(PLAN, [], "crm") == 0
    assert count_done_steps(PLAN, [merged], "crm") == 0
    assert count_done_steps(PLAN, [merged, altered], "crm") == 2
    assert count_done_steps(PLAN, [merged, altered, commit("MERGE", 300)], "crm") == 2
    assert count_done_steps(PLAN, [merged, altered], "another feed") is None
    assert count_done_steps(PLAN, [commit("MERGE", 301)], "crm") is None


def test_a_repair_that_died_is_none_of_the_plan() -> None:
    """It merged rows of the published TSO, and recorded no override."""
    assert count_done_steps(PLAN, [commit("MERGE", 100)], "crm") is None


def test_nothing_is_done_of_a_table_that_is_resumed() -> None:
    """Published at 100, it was blocked at 40 by a row at 41 that came after a run had died on it: the plan's first step
    has the row, the dead run's first commit has not."""
    assert PLAN.state is not None
    stop = StopReason(kind=StopKind.LATE_ROWS, detail="a late row", ways_out=(), needs_override=False)
    merges, *later = PLAN.steps
    assert isinstance(merges, MergeRows)
    resumed = replace(
        PLAN,
        state=replace(PLAN.state, applied_tso=40, stop=stop),
        steps=(replace(merges, after=40), *later),
    )
    dead = [commit("MERGE", 200), commit("REPLACE TABLE AS SELECT", 200), commit("MERGE", 300)]
    assert count_done_steps(PLAN, dead, "crm") == 2
    assert count_done_steps(resumed, dead, "crm") is None


def column(kind: str, *, pending: PendingDefault | None = None) -> ColumnDefinition:
    return ColumnDefinition(name="c", type=parse_type(kind), pending=pending)


def converted(before: str, after: str) -> Effect:
    return ColumnConverted(before=column(before), after=column(after))


@pytest.mark.parametrize(
    ("effect", "done"),
    [
        (ColumnAdded(column=column("datetime"), value="2024-01-01 00:00:00"), 2),
        (ColumnAdded(column=column("timestamp"), value=None), 2),
        (ColumnAdded(column=column("timestamp"), value="2024-01-01 00:00:00"), None),
        (ColumnAdded(column=column("datetime", pending=PendingDefault(name="c", since=200)), value=None), None),
        (converted("int", "bigint"), 2),
        (converted("timestamp", "timestamp(3)"), 2),
        (converted("timestamp", "datetime"), None),
        (converted("datetime", "timestamp"), None),
    ],
)
def test_a_ddl_whose_values_follow_from_settings_is_done_again(effect: Effect, done: int | None) -> None:
    merges, alters, *later = PLAN.steps
    assert isinstance(alters, AlterRows)
    plan = replace(PLAN, steps=(merges, replace(alters, effects=(effect,)), *later))
    assert count_done_steps(plan, [commit("MERGE", 200), commit("REPLACE TABLE AS SELECT", 200)], "crm") == done
    assert count_done_steps(plan, [commit("MERGE", 200)], "crm") == 0, "the run died before the DDL"
