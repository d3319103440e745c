"""A rename whose text names the database of the new name alone, as TiCDC's classic writer sends it: of which table it
is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import KNOWN, NAME, ROWS, STATE, after_window, block_reason, ddl, needs_override, plan, planning_input

from ticdc_lakehouse.planning.barriers import barriers
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.planning.window_plan import plan_tables
from ticdc_lakehouse.schema.names import TableName

OTHER = "CREATE TABLE e.t (id BIGINT PRIMARY KEY)"
MOVED = "RENAME TABLE `t` TO `e`.`u`"
E_T, E_U = TableName("e", "t"), TableName("e", "u")


def planned(*ddls: DdlEvent) -> PlanningInput:
    return planning_input(ROWS, known=KNOWN, state=STATE, ddls=ddls)


def names(now: PlanningInput) -> list[TableName]:
    return [each.name for each in plan_tables(now).tables]


@pytest.mark.parametrize("query", [MOVED, "ALTER TABLE t RENAME e.u", "RENAME TABLE `T` TO `e`.`t`"])
def test_the_one_table_of_that_name_moves(query: str) -> None:
    now = planned(ddl(16, query, "u", "e"))
    (moved,) = plan_tables(now).tables
    assert moved.name in (E_U, E_T)
    assert (moved.state, moved.stop, moved.through) == (STATE, None, 20)
    assert names(after_window(now, 30)) == [moved.name], "the same DDL again"


def test_it_stays_in_its_database_if_no_other_has_a_table_of_that_name() -> None:
    now = planned(ddl(16, "RENAME TABLE t TO d.u"))
    assert names(now) == [TableName("d", "u")]


def test_of_several_tables_none_moves() -> None:
    now = planned(ddl(12, OTHER, "t", "e"), ddl(16, MOVED, "u", "e"))
    assert names(now) == [NAME, E_T, E_U]
    for name in names(now):
        assert "does not say from which database t comes" in str(block_reason(plan(now, name)))
        assert needs_override(plan(now, name))
    assert [plan(now, name).through for name in (NAME, E_T)] == [16, 16]
    renames = now.window.ddls[1:]
    assert barriers(renames, now.before).tables[NAME] == (16,), "rows behind it go on if it is skipped"


def test_a_table_that_is_behind_does_not_move() -> None:
    """Rows of its new name may be published by then."""
    behind = replace(STATE, applied_tso=5, stop=StopReason(kind=StopKind.QUARANTINED, detail="in quarantine"))
    now = planned(ddl(8, MOVED, "u", "e"))
    now = replace(now, before=replace(now.before, tables={NAME: behind}))
    (stayed,) = plan_tables(now).tables
    assert (stayed.name, stayed.through) == (NAME, 8)
    assert needs_override(stayed)


def test_a_table_that_was_dropped_is_none_of_them() -> None:
    now = planned(ddl(12, OTHER, "t", "e"), ddl(13, "DROP TABLE e.t", "t", "e"), ddl(16, MOVED, "u", "e"))
    assert names(now) == [E_U]
    assert plan(now, E_U).state == STATE
