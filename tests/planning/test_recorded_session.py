"""A session of 150 statements in random case that a real TiDB recorded, as a changefeed: after every statement each
table is defined as TiDB has it, or is blocked by a statement that no message explains."""

from __future__ import annotations

from pathlib import Path

import pytest
from planned import Planner

from ticdc_codec.mysql_type import same_type
from ticdc_lakehouse.planning.stop_reason import StopKind
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.schema.definition import Table
from ticdc_testkit.recorded_session import HeldTable, Step, session_steps, session_stream

SESSION = Path(__file__).parents[1] / "data" / "session.jsonl.gz"
PROTOCOLS = {"canal_json": {"enable-tidb-extension": True}, "open_protocol": {}}
COMPUTED = {15, 32, 57, 82, 96, 100, 119, 144}
"""Statements whose ADD COLUMN gives old rows a value that no message has (facts of TiDB: docs/ddl.md)."""
LIKE = {109, 147}
"""CREATE TABLE … LIKE a table that may be blocked."""


@pytest.fixture(scope="module")
def steps() -> dict[int, Step]:
    return {step.watermark: step for step in session_steps(SESSION)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_statement_leaves_the_definitions_of_tidb(steps: dict[int, Step], protocol: str, tmp_path: Path) -> None:
    unfollowed = {ddl_at(step) for step in steps.values() if step.number in COMPUTED | LIKE}
    planner = Planner(session_stream(SESSION, protocol, PROTOCOLS[protocol], tmp_path))
    numbers, going_on = set(), set[str]()
    for tso, plans in planner.windows():
        step = steps[tso]
        numbers.add(step.number)
        going_on = {str(plan.name) for plan in plans if plan.stop is None}
        assert {str(plan.name) for plan in plans} == set(map(str, step.tables)), step.statement
        views = [plan.view for plan in plans if plan.view]
        assert len(views) == len(set(views)), "a blocked table follows its names: another one may have its first name"
        for plan in plans:
            if plan.stop is None:
                assert plan.definition is not None
                assert_defined(plan.definition.table, step.tables[plan.name].definition, step.statement)
            else:
                assert_explained(plan, step.tables[plan.name], unfollowed)
    assert numbers == set(range(1, 151))
    assert going_on >= {"Oracle_Main.At9", "oracle_Side.Codes", "Oracle_Main.parts"}


def ddl_at(step: Step) -> int | None:
    return step.events[0].commit_ts


def assert_defined(found: Table, held: Table, statement: str) -> None:
    assert str(found.name) == str(held.name), statement
    assert [(c.name, c.nullable, c.virtual) for c in found.columns] == [
        (c.name, c.nullable, c.virtual) for c in held.columns
    ], statement
    pairs = zip(found.columns, held.columns, strict=True)
    assert [(one.name, one.type.text) for one, other in pairs if not same_type(one.type, other.type)] == [], statement
    assert (found.key, found.partitioning) == (held.key, held.partitioning), statement


def assert_explained(plan: TablePlan, held: HeldTable, unfollowed: set[int | None]) -> None:
    """Blocked because it has no handle key, because of a DDL whose effect is not on the wire, or made LIKE such a
    table."""
    assert plan.stop is not None
    if plan.stop.kind is StopKind.UNSUPPORTED_DDL:
        assert plan.stop.commit_ts in unfollowed, plan.stop
    else:
        assert not held.definition.key or plan.definition is None, plan.stop
