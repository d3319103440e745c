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
from ticdc_lakehouse.planning.naming import NameInUse, Naming, TakenNames
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Origin, Published, TableState
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import BatchRange, DdlEvent, RowGroup
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
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
    parted = barriers(renames, now.before)
    assert [parted.passed(NAME, at) for at in (16, 17)] == [0, 1], "rows behind it go on if it is skipped"


def test_a_blocked_one_of_several_tables_is_blocked_for_the_rename() -> None:
    """Once it continues, the other one may be gone."""
    now = planned(ddl(12, OTHER, "t", "e"), ddl(13, "ALTER TABLE t SOME NEW THING"), ddl(16, MOVED, "u", "e"))
    assert names(now) == [NAME, E_T, E_U]
    assert all("does not say of which database t is" in str(block_reason(plan(now, name))) for name in names(now))
    assert [plan(now, name).through for name in (NAME, E_T)] == [13, 16]


def rows_of(name: TableName, *commit_ts: int) -> tuple[RowGroup, ...]:
    return tuple(replace(ROWS, name=name, first=at, last=at) for at in commit_ts)


def with_rows(now: PlanningInput, *groups: RowGroup) -> PlanningInput:
    by_name = {group.name: tuple(other for other in groups if other.name == group.name) for group in groups}
    return replace(now, window=replace(now.window, rows=by_name))


def merged(made: TablePlan) -> list[RowGroup]:
    return [group for step in made.steps if isinstance(step, MergeRows) for group in step.groups]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_table_with_rows_since_is_not_the_one_that_moved(is_known: bool) -> None:
    """TiDB renamed a table of another database, of which nothing came before."""
    now = planned(ddl(16, MOVED, "u", "e")) if is_known else planning_input(ddls=(ddl(16, MOVED, "u", "e"),))
    assert barriers(now.window.ddls, now.before).passed(TableName("x", "T"), 17) == 1, "also of a table that is new"
    now = with_rows(now, *rows_of(NAME, 15, 18), *rows_of(E_U, 19))
    assert [(each.name, each.through, each.stop) for each in plan_tables(now).tables] == [
        (NAME, 20, None),
        (E_U, 20, None),
    ]
    assert merged(plan(now, NAME)) == [*rows_of(NAME, 15, 18)]
    moved = plan(now, E_U)
    assert (merged(moved), moved.start and moved.start.named_at) == ([*rows_of(E_U, 19)], 16)


def test_of_several_tables_the_one_without_rows_since_moves() -> None:
    now = with_rows(planned(ddl(12, OTHER, "t", "e"), ddl(16, MOVED, "u", "e")), *rows_of(E_T, 18))
    assert [(each.name, each.stop and each.stop.kind) for each in plan_tables(now).tables] == [
        (E_T, StopKind.INCOMPATIBLE_ROWS),
        (E_U, None),
    ]
    assert plan(now, E_U).state == STATE


@pytest.mark.parametrize(
    "given",
    ["CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))", "RENAME TABLE idle TO t", "ALTER TABLE u RENAME t"],
)
def test_rows_of_a_table_that_has_the_name_since_do_not_count(given: str) -> None:
    now = with_rows(planned(ddl(16, MOVED, "u", "e"), ddl(17, given)), *rows_of(NAME, 18))
    assert [(each.name, each.stop) for each in plan_tables(now).tables] == [(NAME, None), (E_U, None)]
    assert plan(now, E_U).state == STATE


def test_in_mode_eventual_rows_since_do_not_count() -> None:
    """The DDL that gives the name to another table may arrive later."""
    now = with_rows(planned(ddl(16, MOVED, "u", "e")), *rows_of(NAME, 18))
    assert plan(replace(now, batches=BatchRange(after=3, through=4)), E_U).state == STATE


def moved_before(*ddls: DdlEvent, query: str = MOVED) -> PlanningInput:
    """The window after one in which gold renamed d.t, with a row under that name."""
    rename = ddl(8, query, "u", "e")
    moved = replace(KNOWN, table=replace(KNOWN.table, database="e", table="u"), named_at=8)
    used = [
        NameInUse(feed="f", table=name, lake_name=f"f_{name.database}_{name.table}", stable_id=DATA, named_at=at)
        for name, at in ((NAME, 0), (E_U, 8))
    ]
    now = with_rows(planning_input(known=moved, state=STATE), *rows_of(NAME, 15))
    return replace(
        now,
        before=replace(now.before, tables={E_U: STATE}),
        naming=Naming(feed="f", taken=TakenNames(names=tuple(used))),
        past_ddls=(rename, *ddls),
    )


def test_rows_under_the_name_that_a_table_left_show_that_another_one_moved() -> None:
    """Both are blocked until exports of them are loaded: the one has the other's rows."""
    now = moved_before()
    assert names(now) == [NAME, E_U]
    for name, through in ((NAME, 14), (E_U, 10)):
        made = plan(now, name)
        assert (made.through, needs_override(made), steps(made)) == (through, True, [])
        reason = str(block_reason(made))
        assert "rows follow under d.t, so gold renamed the wrong table" in reason
        assert MOVED in reason
        assert "skip-ddl" not in reason


def test_other_tables_are_not_blocked_by_the_wrong_rename() -> None:
    now, name = moved_before(), TableName("d", "w")
    other = replace(KNOWN, table=replace(KNOWN.table, table="w"), stable_id="w", lake_name="f_d_w")
    tables = {**now.before.tables, name: replace(STATE, stable_id="w", lake_name="f_d_w")}
    now = replace(now, before=replace(now.before, tables=tables), definitions={**now.definitions, "w": other})
    assert {str(each.name): each.stop is None for each in plan_tables(now).tables} == {
        "d.t": False,
        "d.w": True,
        "e.u": False,
    }


@pytest.mark.parametrize(
    "now",
    [
        moved_before(ddl(9, "CREATE TABLE t (id BIGINT PRIMARY KEY)"), ddl(9, "RENAME TABLE t TO gone")),
        moved_before(ddl(9, "RENAME TABLE idle TO t")),
        moved_before(query="RENAME TABLE d.t TO e.u"),
        replace(moved_before(), batches=BatchRange(after=3, through=4)),
    ],
    ids=["another table had it", "another table has it", "the text names the database", "it may arrive later"],
)
def test_rows_under_a_name_that_another_table_may_have_since_block_none(now: PlanningInput) -> None:
    assert [(each.name, each.stop) for each in plan_tables(now).tables] == [(NAME, None), (E_U, None)]


def loaded(*groups: RowGroup) -> PlanningInput:
    """The window after an export of x.t, taken at 5, was loaded: e.u is d.t, which gold renamed at 8."""
    rename, name = ddl(8, MOVED, "u", "e"), TableName("x", "t")
    exported = replace(
        KNOWN, table=replace(KNOWN.table, database="x"), commit_ts=5, named_at=5, origin=Origin.EXPORT, stable_id="x"
    )
    now = with_rows(moved_before(), *groups)
    tables = {**now.before.tables, name: replace(STATE, stable_id="x", lake_name="f_x_t", applied_tso=5)}
    return replace(
        now,
        before=replace(now.before, tables=tables),
        definitions={**now.definitions, "x": exported},
        window=replace(now.window, ddls=(rename,)),
    )


def test_a_table_of_an_older_export_is_not_renamed_by_a_ddl_that_another_one_took() -> None:
    """It may be the one that moved, unless rows show that it did not."""
    (moved, exported) = plan_tables(loaded()).tables
    assert [(each.name, each.through, each.stop) for each in (moved,)] == [(E_U, 20, None)]
    assert (exported.name, exported.through, needs_override(exported)) == (("x", "t"), 8, True)
    assert "does not say of which database t is" in str(block_reason(exported))
    now = loaded(*rows_of(TableName("x", "t"), 9))
    assert [(each.name, each.through, each.stop) for each in plan_tables(now).tables] == [
        (E_U, 20, None),
        (("x", "t"), 20, None),
    ]


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


def test_a_rename_before_the_one_that_may_mean_another_table_is_followed_again() -> None:
    stop = StopReason(
        kind=StopKind.AMBIGUOUS_TABLE, commit_ts=9, query="RENAME TABLE `u` TO `d`.`x`", needs_override=True
    )
    state = replace(STATE, applied_tso=5, stop=stop)
    ddls = (ddl(7, MOVED, "u", "e"), ddl(9, "RENAME TABLE `u` TO `d`.`x`", "x"))
    now = planning_input(known=KNOWN, ddls=ddls)
    (table, *_) = plan_tables(replace(now, before=replace(now.before, tables={NAME: state}))).tables
    assert (table.name, table.stop) == (E_U, stop)


def test_a_table_that_is_blocked_again_before_an_ambiguous_rename_does_not_forget_that_it_may_be_meant() -> None:
    """It is resumed, as a late row or its own DDL blocked it, and read again; the other table may be gone by then."""
    unread, moved = ddl(12, "ALTER TABLE t SOME NEW THING"), ddl(16, "RENAME TABLE `t` TO `d`.`u`", "u")
    now = planned(ddl(11, OTHER, "t", "e"), unread, moved)
    state = TableState(
        lake_name="f_d_t",
        stable_id=DATA,
        version=1,
        applied_tso=10,
        stop=StopReason(kind=StopKind.AMBIGUOUS_TABLE, commit_ts=16, query=moved.query),
    )
    again = replace(now, before=replace(now.before, tables={NAME: state}))
    for each in (now, again):
        stop = plan(each, NAME).stop
        assert stop is not None
        assert (stop.kind, stop.commit_ts) == (StopKind.AMBIGUOUS_TABLE, 16)


def test_a_table_that_was_dropped_is_none_of_them() -> None:
    now = planned(ddl(12, OTHER, "t", "e"), ddl(13, "DROP TABLE e.t", "t", "e"), ddl(16, MOVED, "u", "e"))
    assert names(now) == [E_U]
    assert plan(now, E_U).state == STATE


COLUMNS = "(id BIGINT PRIMARY KEY, v VARCHAR(9))"
PARTED = definition(sql=f"CREATE TABLE d.t {COLUMNS} PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (9))")


def exchanged(plain: TableName, *ddls: DdlEvent) -> PlanningInput:
    """The window of d.t and of a plain table, of which the text alone names the database."""
    known = replace(definition(sql=f"CREATE TABLE {'.'.join(plain)} {COLUMNS}"), lake_name="plain", stable_id="plain")
    other = TableState(lake_name="plain", stable_id="plain", version=2, applied_tso=10)
    exchange = ddl(16, f"ALTER TABLE t EXCHANGE PARTITION p WITH TABLE {'.'.join(plain)}", *reversed(plain))
    now = planning_input(ROWS, known=PARTED, state=STATE, ddls=(*ddls, exchange))
    before = replace(now.before, tables={NAME: STATE, plain: other})
    return replace(now, before=before, definitions={DATA: PARTED, "plain": known})


def test_the_one_table_of_that_name_in_the_database_of_the_other_exchanges_its_rows() -> None:
    d_u = TableName("d", "u")
    now = exchanged(d_u)
    assert [steps(plan(now, name)) for name in (NAME, d_u)] == [[("M", 16), ("E", 16), ("M", 20)]] * 2
    assert barriers(now.window.ddls, now.before).passed(NAME, 17) > 0


@pytest.mark.parametrize("others", [(), (ddl(12, OTHER, "t", "e"),)])
def test_a_table_that_may_be_of_another_database_does_not_exchange_its_rows(others: tuple[DdlEvent, ...]) -> None:
    """Gold may not have the one that the text means, and no row would show it."""
    now = exchanged(E_U, *others)
    assert names(now) == [NAME, *([E_T] if others else []), E_U]
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
