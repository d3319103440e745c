"""Rows and DDLs that arrive below the published watermark or are replayed, and tables that lag behind."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import (
    CREATE,
    DATA,
    DDL_STOP,
    DROP,
    KNOWN,
    LATER,
    NAME,
    OLD,
    ROWS,
    STATE,
    WIDER,
    U,
    W,
    block_reason,
    ddl,
    definition,
    late_point,
    needs_override,
    plan,
    planning_input,
    quarantined,
    steps,
    with_names,
)

from ticdc_lakehouse.planning.naming import NameInUse
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, Recoverable, TableState
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, WayOut
from ticdc_lakehouse.planning.window import DdlEvent, RowGroup
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.schema.names import TableName


def late(now: PlanningInput, tso: int) -> PlanningInput:
    return replace(now, late_points={NAME: late_point(tso)})


def test_late_rows_block_their_table_before_them() -> None:
    made = plan(late(planning_input(ROWS, known=KNOWN, state=STATE), 5))
    assert (made.through, block_reason(made), needs_override(made), made.steps) == (5, "came late", True, ())


def test_late_rows_of_a_table_that_gold_never_had_block_it_too() -> None:
    made = plan(late(planning_input(ROWS), 5))
    assert (made.through, block_reason(made), needs_override(made), made.steps) == (5, "came late", True, ())


def test_late_rows_of_a_table_that_began_with_a_message_in_quarantine_block_it() -> None:
    """No other table is known to have had its name."""
    stop = quarantined(8).stop
    state = TableState(lake_name="", stable_id="", version=-1, applied_tso=8, stop=stop)
    point = replace(late_point(6), last=7)
    made = plan(replace(planning_input(ROWS, state=state), late_points={NAME: point}))
    assert (made.through, block_reason(made), needs_override(made), made.steps) == (6, "came late", True, ())


def test_rows_that_came_before_a_ddl_cannot_be_read_again() -> None:
    known = replace(definition(7), origin=Origin.DDL)
    made = plan(late(planning_input(ROWS, known=known, state=STATE), 5))
    assert (made.through, block_reason(made), needs_override(made)) == (10, "came late", True)


def test_rows_that_came_before_a_table_had_its_name_are_not_read_again() -> None:
    """They are of the table that had it, as after a swap of names."""
    made = plan(late(planning_input(ROWS, known=replace(KNOWN, origin=Origin.FILE, named_at=7), state=STATE), 5))
    assert (made.through, block_reason(made), needs_override(made)) == (10, "came late", True)
    replayed = plan(planning_input(replace(ROWS, replayed=True), known=replace(KNOWN, named_at=7), state=STATE))
    assert [step.mergeable_since for step in replayed.steps if isinstance(step, MergeRows)] == [7]


@pytest.mark.parametrize("stop", [DDL_STOP, late_point(6).stop])
def test_a_blocked_table_goes_back_for_late_rows(stop: StopReason) -> None:
    """Else an override of its other reason would let it go on without them."""
    state = replace(STATE, applied_tso=6, stop=stop)
    made = plan(late(planning_input(ROWS, known=KNOWN, state=state), 5))
    assert (made.through, block_reason(made), needs_override(made)) == (5, "came late", True)


def test_a_table_that_waits_for_an_override_goes_back_for_replayed_rows() -> None:
    """They had been dismissed. Later windows do not read them again."""
    replayed = replace(ROWS, first=5, last=5, replayed=True)
    made = plan(planning_input(replayed, known=KNOWN, state=replace(STATE, applied_tso=8, stop=DDL_STOP)))
    assert (made.through, needs_override(made), made.stop and made.stop.kind) == (4, True, StopKind.LATE_ROWS)
    assert str(block_reason(made)).startswith("while it was blocked (unsupported DDL at 5")
    assert "?), rows were replayed; ways out: `ticdc-lake table resume` goes back" in str(block_reason(made))
    changed = plan(planning_input(replayed, known=definition(7), state=replace(STATE, applied_tso=8, stop=DDL_STOP)))
    assert (changed.through, needs_override(changed)) == (8, True), "rows from before its last DDL cannot be merged"
    ways_out = "`ticdc-lake load` continues from an export taken since; `ticdc-lake table resume` continues without"
    assert f"rows were replayed; a DDL changed the table at 7; ways out: {ways_out}" in str(block_reason(changed))
    above = replace(replayed, first=9, last=9)
    made = plan(planning_input(above, known=KNOWN, state=replace(STATE, applied_tso=8, stop=DDL_STOP)))
    assert (made.through, made.stop) == (8, DDL_STOP)


def test_late_rows_from_before_a_ddl_are_not_promised_to_be_applied_by_resume() -> None:
    """Also of a table that was renamed while it was blocked: its definition has the name of before, as they have."""
    known, state = definition(7), replace(STATE, applied_tso=8, stop=DDL_STOP)
    point = replace(late_point(5), stop=replace(late_point(5).stop, ways_out=(WayOut.RESUME,)))
    now = planning_input(known=known)
    now = replace(now, before=replace(now.before, tables={U: state}), late_points={NAME: point})
    without = "`ticdc-lake table resume` continues without the late rows and DDLs"
    ways_out = f"`ticdc-lake load` continues from an export taken since; {without}"
    not_renamed = replace(planning_input(known=known, state=state), late_points={NAME: point})
    for made in (plan(now, U), plan(not_renamed)):
        assert made.through == 8
        assert str(block_reason(made)) == f"came late; a DDL changed the table at 7; ways out: {ways_out}"


def test_a_table_that_needs_an_export_keeps_its_reason() -> None:
    """Resumed from late rows it would be taken for a table without former rows, or for the one that a DDL means."""
    unknown = replace(STATE, stable_id="", version=-1, applied_tso=6, stop=DDL_STOP)
    made = plan(late(planning_input(ROWS, state=unknown), 5))
    assert (made.through, made.stop) == (6, DDL_STOP)
    ambiguous = replace(DDL_STOP, kind=StopKind.AMBIGUOUS_TABLE)
    made = plan(late(planning_input(ROWS, known=KNOWN, state=replace(STATE, applied_tso=6, stop=ambiguous)), 5))
    assert (made.through, made.stop) == (6, ambiguous)


def test_a_late_table_is_dropped_and_renamed_as_any() -> None:
    now = late(planning_input(ROWS, known=KNOWN, state=STATE, ddls=(DROP,)), 5)
    assert plan_tables(now).tables == ()
    renamed = replace(now, window=replace(now.window, ddls=(ddl(16, "RENAME TABLE t TO u"),)))
    assert [(each.name, block_reason(each)) for each in plan_tables(renamed).tables] == [(U, "came late")]


def test_a_table_that_was_renamed_while_it_was_blocked_goes_on_from_its_old_name() -> None:
    rename = ddl(16, "RENAME TABLE t TO u")
    held = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(rename,), quarantined=quarantined(12))
    (stopped,) = plan_tables(held).tables
    assert (stopped.name, stopped.through, block_reason(stopped)) == (U, 12, "in quarantine")
    state = replace(STATE, lake_name=stopped.lake_name, applied_tso=12, stop=quarantined(12).stop)
    (made,) = plan_tables(
        replace(held, before=Published(tso=20, tables={stopped.name: state}), quarantine_points={})
    ).tables
    assert (made.name, block_reason(made), steps(made)) == (U, None, [("M", 16), ("M", 20)])


def lagging(name: TableName, other: TableName, *ddls: DdlEvent) -> PlanningInput:
    """The window (10, 20] with a table that was blocked at 4 as ``t`` and is called ``name`` now, and with another one
    that was made at 8 under a name that the first one had between."""
    new = replace(
        definition(8, f"CREATE TABLE {other} (id BIGINT PRIMARY KEY, v VARCHAR(9))"), stable_id="other", named_at=8
    )
    old = replace(STATE, applied_tso=4, stop=quarantined(4).stop)
    now = planning_input(
        known=KNOWN, ddls=(*ddls, ddl(8, f"CREATE TABLE {other} (id BIGINT PRIMARY KEY, v VARCHAR(9))"))
    )
    rows = {name: (LATER,), other: (replace(ROWS, first=9, last=9), LATER)}
    return replace(
        now,
        before=replace(now.before, tables={other: replace(STATE, lake_name="f_other", stable_id="other"), name: old}),
        definitions={DATA: KNOWN, "other": new},
        window=replace(now.window, rows=rows),
    )


def test_lagging_table_is_followed_through_a_name_that_another_table_has_since() -> None:
    now = lagging(W, U, ddl(5, "RENAME TABLE t TO u"), ddl(7, "RENAME TABLE u TO w"))
    made = {each.name: (each.definition and each.definition.stable_id, steps(each)) for each in plan_tables(now).tables}
    assert made == {W: (DATA, [("M", 5), ("M", 7), ("M", 20)]), U: ("other", [("M", 20)])}
    assert [block_reason(each) for each in plan_tables(now).tables] == [None, None]


def test_lagging_table_leaves_a_name_that_another_table_has_since() -> None:
    now = lagging(U, NAME, ddl(5, "RENAME TABLE t TO u"))
    made = {each.name: (each.definition and each.definition.stable_id, steps(each)) for each in plan_tables(now).tables}
    assert made == {U: (DATA, [("M", 5), ("M", 20)]), NAME: ("other", [("M", 20)])}
    rows = {NAME: now.window.rows[NAME]}
    ddls = (ddl(5, "DROP TABLE t"), *now.window.ddls[1:])
    dropped = replace(now, window=replace(now.window, rows=rows, ddls=ddls))
    assert [each.name for each in plan_tables(dropped).tables] == [NAME]


@pytest.mark.parametrize(
    "query",
    ["ALTER TABLE t SOME NEW THING", "FLASHBACK DATABASE d", "ALTER TABLE x EXCHANGE PARTITION p WITH TABLE t"],
)
def test_a_ddl_blocks_the_lagging_table_that_had_its_name_then(query: str) -> None:
    """And not the one that has the name since."""
    now = lagging(U, NAME, ddl(5, query), ddl(6, "RENAME TABLE t TO u"))
    made = {each.name: (each.through, block_reason(each) or "") for each in plan_tables(now).tables}
    assert (made[U][0], made[NAME]) == (5, (20, ""))
    assert query in made[U][1]


def test_rows_that_are_read_again_for_a_lagging_table_bring_no_table_back() -> None:
    """The table of these rows was itself blocked when TiDB dropped it, so that gold never had it under this name."""
    now = lagging(W, U, ddl(5, "RENAME TABLE t TO u"), ddl(7, "RENAME TABLE u TO w"))
    rows, ddls = {U: (replace(ROWS, first=9, last=9),)}, (*now.window.ddls, ddl(9, "DROP TABLE u"))
    now = replace(now, before=replace(now.before, tables={W: now.before.tables[W]}))
    now = replace(now, window=replace(now.window, rows=rows, ddls=ddls))
    assert [each.name for each in plan_tables(now).tables] == [W]


ADD_W = replace(ddl(5, "ALTER TABLE t ADD w INT DEFAULT 3"), replayed=True)


LACKING = StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail="rows have columns that the table's definition lacks: w")


def after_dismissal(*ddls: DdlEvent, known: Definition | None = KNOWN, stop: StopReason | None = LACKING) -> TablePlan:
    """The plan of a table that was blocked at 8, by rows after a DDL at 5 that was dismissed and is replayed."""
    state = replace(
        STATE, applied_tso=8, stop=stop, stable_id=STATE.stable_id if known else "", version=4 if known else -1
    )
    deleted = replace(ROWS, is_upsert=False, first=7, last=7)
    return plan(planning_input(deleted, replace(WIDER, first=9, last=9), WIDER, known=known, state=state, ddls=ddls))


def test_a_dismissed_ddl_that_is_replayed_is_followed_where_rows_after_it_blocked_the_table() -> None:
    made = after_dismissal(ADD_W)
    assert (block_reason(made), steps(made)) == (None, [("A", 5), ("M", 20)])
    rows = made.steps[1]
    assert isinstance(rows, MergeRows)
    assert [group.first for group in rows.groups] == [7, 9, 15], "rows since the DDL are merged again"
    made = after_dismissal(ADD_W, replace(ddl(6, "ALTER TABLE t RENAME COLUMN w TO x"), replayed=True))
    assert steps(made)[:3] == [("A", 5), ("M", 6), ("A", 6)]
    assert "definition lacks: w" in (block_reason(after_dismissal(replace(ADD_W, replayed=False))) or "")


def test_a_dismissed_create_table_that_is_replayed_begins_the_table() -> None:
    create = replace(ddl(5, "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9), w INT)"), replayed=True)
    unknown = StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail="columns are unknown")
    made = after_dismissal(create, known=None, stop=unknown)
    assert (block_reason(made), steps(made), made.state) == (None, [("M", 20)], None)


def test_a_dismissed_ddl_does_not_change_a_table_that_continued() -> None:
    """A table that later DDLs changed is not the one that the statement found; one that was dropped does not return."""
    assert "lacks: w" in (block_reason(after_dismissal(ADD_W, known=definition(7))) or "")
    assert after_dismissal(ADD_W, known=definition(7)).through == 8
    fitting = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ADD_W,))
    assert (block_reason(plan(fitting)), steps(plan(fitting))) == (None, [("M", 20)])
    assert plan_tables(planning_input(ddls=(replace(CREATE, commit_ts=5, replayed=True),))).tables == ()


def swapped(*groups: RowGroup, stop: StopReason | None = None) -> PlanningInput:
    """The window (10, 20] after the tables t and u exchanged their names at 8: DATA, which was t before, is u now."""
    former = replace(KNOWN, table=replace(KNOWN.table, table="u"), origin=Origin.FILE, commit_ts=8, named_at=8)
    other = replace(KNOWN, stable_id="other", origin=Origin.FILE, commit_ts=8, named_at=8)
    now = planning_input(*groups, known=KNOWN)
    tables = {NAME: replace(STATE, lake_name="f_other", stable_id="other"), U: replace(STATE, stop=stop)}
    now = replace(now, before=replace(now.before, tables=tables), definitions={DATA: former, "other": other})
    used = (
        NameInUse(feed="f", table=name, lake_name=f"f_d_{name.table}", stable_id=data, named_at=named_at)
        for name, data, named_at in ((NAME, DATA, 0), (U, "other", 0), (NAME, "other", 8), (U, DATA, 8))
    )
    return with_names(now, *used)


REPLAYED = replace(OLD, replayed=True)


def test_replayed_rows_from_before_a_swap_of_names_are_missed_by_the_table_that_had_the_name() -> None:
    made = {each.name: each for each in plan_tables(swapped(REPLAYED, LATER)).tables}
    assert "under the name that it had before, d.t; ways out: `ticdc-lake load`" in (block_reason(made[U]) or "")
    assert (made[U].through, needs_override(made[U]), block_reason(made[NAME])) == (10, True, None)
    assert [step.groups for step in made[NAME].steps if isinstance(step, MergeRows)] == [(LATER,)]
    own = {each.name: block_reason(each) for each in plan_tables(swapped(replace(REPLAYED, first=9, last=9))).tables}
    assert own == {NAME: None, U: None}


def had_the_name(now: PlanningInput, **since: int) -> PlanningInput:
    """With the tables that had d.t's name, ``own`` being DATA, each since a commit_ts."""
    used = (
        NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA if data == "own" else data, named_at=at)
        for data, at in since.items()
    )
    return with_names(now, *used)


def test_rows_of_one_group_may_be_of_several_tables_that_had_their_name() -> None:
    now = swapped(replace(REPLAYED, first=2, last=5))
    made = plan(had_the_name(now, gone=0, own=4, other=8), U)
    assert "under the name that it had before, d.t" in (block_reason(made) or "")


def test_late_rows_may_be_of_several_tables_that_had_their_name_since() -> None:
    now = late(swapped(), 5)
    made = plan(had_the_name(now, gone=0, own=6, other=8), U)
    assert "under the name that it had before, d.t" in (block_reason(made) or "")


def test_the_table_that_has_the_name_takes_what_is_its_own_of_a_group() -> None:
    now = planning_input(replace(REPLAYED, first=2, last=5), known=replace(KNOWN, named_at=4), state=STATE)
    made = plan(had_the_name(now, gone=0, own=4))
    assert block_reason(made) is None
    assert [step.mergeable_since for step in made.steps if isinstance(step, MergeRows)] == [4]


def test_late_rows_from_before_a_swap_of_names_block_both_tables() -> None:
    made = {each.name: block_reason(each) for each in plan_tables(late(swapped(), 5)).tables}
    assert made[NAME] == "came late"
    assert "under the name that it had before, d.t" in (made[U] or "")
    assert {each.name: block_reason(each) for each in plan_tables(late(swapped(), 8)).tables} == {
        NAME: "came late",
        U: None,
    }


def test_late_rows_of_a_table_that_has_another_name_since_block_it_and_begin_no_other() -> None:
    """One that began with them would follow the RENAME again, and stand where the table is."""
    now = swapped()
    now = replace(now, before=replace(now.before, tables={U: STATE}))
    (made,) = plan_tables(late(now, 5)).tables
    assert (made.name, made.definition and made.definition.stable_id) == (U, DATA)
    assert "under the name that it had before, d.t" in (block_reason(made) or "")
    gone = replace(now, before=replace(now.before, tables={}))
    assert plan_tables(late(gone, 5)).tables == ()


def test_a_dropped_table_does_not_come_back_without_rows_that_came_late() -> None:
    now = late(swapped(), 5)
    dropped = Recoverable(name=NAME, stable_id=DATA, version=4, dropped_at=8)
    window = replace(now.window, ddls=(ddl(16, "RECOVER TABLE t"),))
    now = replace(now, before=replace(now.before, tables={}, recoverable=(dropped,)), window=window)
    assert "the rows of the restored table are unknown" in (block_reason(plan(now)) or "")
    assert block_reason(plan(replace(now, late_points={}))) is None


def test_a_table_that_lags_behind_takes_late_rows_of_its_name_itself() -> None:
    """And not those of a table that had its name since."""
    now = swapped(replace(REPLAYED, first=7, last=7))
    behind = replace(STATE, applied_tso=6, stop=quarantined(6).stop)
    now = replace(now, before=replace(now.before, tables={U: behind}), definitions={DATA: KNOWN})
    assert block_reason(plan(now)) is None
    named = [
        NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=data, named_at=at)
        for data, at in ((DATA, 0), ("other", 6))
    ]
    now = with_names(now, *named)
    other = replace(KNOWN, table=replace(KNOWN.table, table="w"), stable_id="other", named_at=8)
    tables = {U: behind, W: replace(STATE, lake_name="f_d_w", stable_id="other")}
    now = replace(now, before=replace(now.before, tables=tables), definitions={DATA: KNOWN, "other": other})
    assert "under the name that it had before, d.t" in (block_reason(plan(now, W)) or "")
    late_rows = late(replace(now, window=replace(now.window, rows={})), 7)
    assert "under the name that it had before, d.t" in (block_reason(plan(late_rows, W)) or "")


def test_rows_from_before_a_table_that_awaits_its_rows_are_not_its_own() -> None:
    like = ddl(16, "CREATE TABLE t LIKE nobody")
    now = planning_input(REPLAYED, ddls=(like,))
    now = with_names(now, NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id="gone"))
    made = plan(now)
    assert (made.definition, made.stop and made.stop.kind) == (None, StopKind.AWAITS_ROWS)


@pytest.mark.parametrize(
    ("at", "kind"), [(2, StopKind.AWAITS_ROWS), (5, StopKind.LATE_ROWS), (9, StopKind.AWAITS_ROWS)]
)
def test_a_renamed_table_that_awaits_its_rows_lacks_those_under_its_former_name(at: int, kind: StopKind) -> None:
    """It is CREATE TABLE t LIKE nobody at 3, and u since 8."""
    awaits = StopReason(kind=StopKind.AWAITS_ROWS, detail="nobody is unknown", commit_ts=3, named_at=8)
    now = planning_input(replace(REPLAYED, first=at, last=at))
    awaiting = replace(STATE, lake_name="f_d_u", stable_id="", version=-1, stop=awaits)
    made = plan(replace(now, before=replace(now.before, tables={U: awaiting})), U)
    assert (made.stop and made.stop.kind) is kind


def test_a_table_that_waits_for_an_override_tells_of_rows_under_its_former_name() -> None:
    made = plan(swapped(REPLAYED, stop=DDL_STOP), U)
    assert (made.stop and made.stop.kind, needs_override(made)) == (StopKind.LATE_ROWS, True)
    assert "while it was blocked (unsupported DDL at 5" in (block_reason(made) or "")
    assert "skip-ddl" not in str(made.stop)  # the way out of the reason that this one quotes
    lacking = replace(DDL_STOP, ways_out=())
    assert plan(swapped(REPLAYED, stop=lacking), U).stop == lacking


def test_a_table_that_has_its_first_name_again_lacks_rows_of_before_itself() -> None:
    now = swapped(REPLAYED)
    back = replace(KNOWN, origin=Origin.FILE, commit_ts=8, named_at=8)
    now = replace(now, before=replace(now.before, tables={NAME: STATE}), definitions={DATA: back})
    assert "under the name that it had before, d.t" in (block_reason(plan(now)) or "")


def test_ddls_that_are_applied_already_are_not_applied_again_after_late_rows() -> None:
    """The table cannot go back behind its last DDL, which is of the commit_ts up to which it is applied."""
    known = replace(definition(10), origin=Origin.DDL)
    state = replace(STATE, ddls=("ALTER TABLE t ADD v VARCHAR(9)",))
    made = plan(late(planning_input(known=known, state=state), 5))
    assert (made.through, made.ddls, block_reason(made)) == (10, state.ddls, "came late")
