"""Texts that name one table with its database and another without: the event has the database of the one, and the
other may be of any. TiCDC's classic writer sends them so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import (
    DATA,
    KNOWN,
    NAME,
    ROWS,
    STATE,
    after_window,
    block_reason,
    ddl,
    definition,
    needs_override,
    plan,
    planning_input,
    steps,
)

from ticdc_lakehouse.planning.barriers import barriers
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Published, TableState
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


def test_a_renamed_table_stays_in_its_database_if_no_other_has_a_table_of_that_name() -> None:
    now = planned(ddl(16, "RENAME TABLE t TO d.u"))
    assert names(now) == [TableName("d", "u")]


def test_of_several_tables_none_moves() -> None:
    now = planned(ddl(12, OTHER, "t", "e"), ddl(16, MOVED, "u", "e"))
    assert names(now) == [NAME, E_T, E_U]
    for name in names(now):
        assert "does not say of which database t is" in str(block_reason(plan(now, name)))
        assert needs_override(plan(now, name))
    assert [plan(now, name).through for name in (NAME, E_T)] == [16, 16]
    renames = now.window.ddls[1:]
    assert barriers(renames, now.before).tables[NAME] == (16,), "rows behind it go on if it is skipped"


def test_an_ambiguous_table_is_not_guessed_later_either() -> None:
    """The other table may be gone by then. An override that skips the DDL says that it is not this one."""
    now = planned(ddl(12, OTHER, "t", "e"), ddl(16, "RENAME TABLE t TO d.u"))
    stop = plan(now, NAME).stop
    assert stop is not None
    resumed = replace(STATE, applied_tso=16, stop=replace(stop, needs_override=False))
    alone = replace(now, before=Published(tso=20, tables={NAME: resumed}), tso=30)
    assert [(each.name, each.through) for each in plan_tables(alone).tables] == [(NAME, 16)]
    skipped = replace(alone, skipped=frozenset({(DATA, 16)}))
    assert [(each.name, each.through, each.stop) for each in plan_tables(skipped).tables] == [(NAME, 30, None)]


def test_a_table_that_is_behind_moves_without_its_rows() -> None:
    """Rows of its new name may be published by then, and are not read again when it is resumed."""
    state = replace(STATE, applied_tso=5, stop=StopReason(kind=StopKind.QUARANTINED, detail="in quarantine"))
    now, name = planning_input(known=KNOWN, ddls=(ddl(8, MOVED, "u", "e"),)), NAME
    for needs in (True, False, False):
        (moved,) = plan_tables(replace(now, before=replace(now.before, tables={name: state}))).tables
        assert (moved.name, moved.through, needs_override(moved)) == (E_U, 8, True)
        assert "rows under its new name may be published already" in str(block_reason(moved))
        assert moved.stop is not None
        name, state = E_U, replace(state, applied_tso=8, stop=replace(moved.stop, needs_override=needs))


def test_a_table_that_was_dropped_is_none_of_them() -> None:
    now = planned(ddl(12, OTHER, "t", "e"), ddl(13, "DROP TABLE e.t", "t", "e"), ddl(16, MOVED, "u", "e"))
    assert names(now) == [E_U]
    assert plan(now, E_U).state == STATE


COLUMNS = "(id BIGINT PRIMARY KEY, v VARCHAR(9))"
PARTED = definition(sql=f"CREATE TABLE d.t {COLUMNS} PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (9))")
PLAIN = replace(definition(sql=f"CREATE TABLE e.u {COLUMNS}"), lake_name="f_e_u", stable_id="f_e_u__data")


def exchanged(*ddls: DdlEvent) -> PlanningInput:
    other = TableState(lake_name="f_e_u", stable_id=PLAIN.stable_id, version=2, applied_tso=10)
    exchange = ddl(16, "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE e.u", "u", "e")
    now = planning_input(ROWS, known=PARTED, state=STATE, ddls=(*ddls, exchange))
    before = replace(now.before, tables={NAME: STATE, E_U: other})
    return replace(now, before=before, known={DATA: PARTED, PLAIN.stable_id: PLAIN})


def test_the_one_table_of_that_name_exchanges_its_rows() -> None:
    now = exchanged()
    assert [steps(plan(now, name)) for name in (NAME, E_U)] == [[("M", 16), ("E", 16), ("M", 20)]] * 2
    assert barriers(now.window.ddls, now.before).tables[NAME] == (16,)


def test_of_several_tables_none_exchanges_its_rows() -> None:
    now = exchanged(ddl(12, OTHER, "t", "e"))
    assert names(now) == [NAME, E_T, E_U]
    assert all("of which database t is" in str(block_reason(plan(now, name))) for name in names(now))


@pytest.mark.parametrize("others", [(), (ddl(12, OTHER, "t", "e"),)])
def test_a_table_is_made_like_the_one_table_of_that_name(others: tuple[DdlEvent, ...]) -> None:
    """If several tables have the name, the rows show which one is meant."""
    now = planned(*others, ddl(16, "CREATE TABLE e.u LIKE t", "u", "e"))
    made = plan(now, E_U)
    if others:
        assert (made.definition, made.stop and made.stop.kind) == (None, StopKind.AWAITS_ROWS)
    else:
        assert made.definition is not None
        assert made.definition.table == replace(KNOWN.table, database="e", table="u")
