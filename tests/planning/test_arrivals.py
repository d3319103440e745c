"""Mode eventual: rows and DDLs that arrive in any order, and what they do to tables that went on or wait."""

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
    block_reason,
    ddl,
    definition,
    needs_override,
    plan,
    planning_input,
    quarantined,
    steps,
    with_names,
)

from ticdc_codec.event import Column
from ticdc_lakehouse.planning.naming import NameInUse
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Definition
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import BatchRange, DdlEvent, RowGroup
from ticdc_lakehouse.planning.window_plan import plan_tables
from ticdc_lakehouse.policy import Mode

EVENTUAL = GoldConfig(feed="f", time_zone="UTC", mode=Mode.EVENTUAL)


NEW_BATCH, ALL_BATCHES = BatchRange(after=3, through=4), BatchRange(after=None, through=4)


def arriving(*groups: RowGroup, known: Definition | None = KNOWN, ddls: tuple[DdlEvent, ...] = ()) -> PlanningInput:
    """Rows of the eventual mode, of a table that was published under this definition."""
    state = None if known is None else STATE
    return replace(planning_input(*groups, known=known, state=state, ddls=ddls, config=EVENTUAL), batches=NEW_BATCH)


def coming_late(commit_ts: int, query: str, name: str = "t") -> DdlEvent:
    return replace(ddl(commit_ts, query, name), out_of_order=True)


def waiting(
    stop: StopReason, *groups: RowGroup, ddls: tuple[DdlEvent, ...] = (), since: int = 0, named_at: int = 0
) -> PlanningInput:
    """Arrivals while the table waits at 8 for an override; ``since``: commit_ts of its last DDL."""
    known = replace(KNOWN, commit_ts=since, named_at=named_at)
    now = arriving(*groups, known=known, ddls=ddls)
    state = replace(STATE, applied_tso=8, stop=stop)
    return replace(now, before=replace(now.before, tables={NAME: state}, definitions={DATA: known}))


def test_rows_of_a_table_that_had_the_name_before_are_not_its_successors() -> None:
    """TRUNCATE, or DROP and CREATE, between them: what is gone needs them no more."""
    truncated = arriving(OLD, ROWS, known=replace(KNOWN, commit_ts=7, named_at=7))
    made_anew = arriving(ROWS, LATER, ddls=(DROP, CREATE))
    for window, own in ((truncated, ROWS), (made_anew, LATER)):
        made = plan(window)
        assert block_reason(made) is None
        assert [step.groups for step in made.steps if isinstance(step, MergeRows)] == [(own,)]


def test_rows_from_before_an_alter_table_cannot_be_put_in_their_place() -> None:
    made = plan(arriving(OLD, known=replace(KNOWN, commit_ts=7)))
    assert str(block_reason(made)).startswith("a late row cannot be merged: a later DDL changed the table; ways out: ")


def test_repeats_from_before_an_alter_table_are_not_merged_beside_new_rows() -> None:
    """The window has no group of them (``gold.window_reader``), and the MERGE reads the batches by itself."""
    made = plan(arriving(ROWS, known=replace(KNOWN, commit_ts=7)))
    assert [(step.after, step.through) for step in made.steps if isinstance(step, MergeRows)] == [(7, 20)]


def test_all_batches_are_read_for_what_may_be_in_older_ones() -> None:
    replayed, blocked = arriving(replace(OLD, replayed=True)), replace(STATE, stop=quarantined(10).stop)
    was_blocked = arriving(ROWS)
    was_blocked = replace(was_blocked, before=replace(was_blocked.before, tables={NAME: blocked}))
    for window, batches in ((arriving(OLD), NEW_BATCH), (replayed, ALL_BATCHES), (was_blocked, ALL_BATCHES)):
        assert [step.batches for step in plan(window).steps if isinstance(step, MergeRows)] == [batches]


def test_rows_under_a_former_name_are_missed_by_the_table_that_had_it() -> None:
    now = arriving(OLD)
    renamed = replace(KNOWN, table=replace(KNOWN.table, table="u"), named_at=7)
    now = replace(now, before=replace(now.before, tables={U: STATE}), definitions={DATA: renamed})
    now = with_names(now, NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA))
    (made,) = plan_tables(now).tables
    assert (made.name, needs_override(made)) == (U, True)
    assert (block_reason(made) or "").startswith("rows arrived late under the name that it had before, d.t; ways out: ")


def test_rows_of_a_table_that_is_gone_do_not_bring_it_back() -> None:
    now = arriving(OLD, known=None)
    now = with_names(now, NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA))
    assert plan_tables(now).tables == ()
    now = with_names(now)
    assert [each.name for each in plan_tables(now).tables] == [NAME]


def test_what_came_late_while_a_table_was_blocked_and_cannot_be_merged_is_reported() -> None:
    now = waiting(DDL_STOP, replace(OLD, first=4, last=4), since=6)
    made = plan(now)
    assert (made.through, needs_override(made), made.stop and made.stop.kind) == (8, True, StopKind.LATE_ROWS)
    assert (
        "?), a late row came, and a later DDL changed the table; ways out: `ticdc-lake table resume` continues without"
        in str(block_reason(made))
    )
    assert plan(waiting(DDL_STOP, OLD, since=3)).stop == DDL_STOP
    assert plan(waiting(DDL_STOP, replace(OLD, first=4, last=4), since=6, named_at=6)).stop == DDL_STOP


def test_a_table_that_was_renamed_while_it_was_blocked_keeps_its_name_when_more_comes_late() -> None:
    now = waiting(DDL_STOP, replace(OLD, first=3, last=3), since=4)
    state = replace(now.before.tables[NAME], lake_name="f_d_u")
    now = replace(now, before=replace(now.before, tables={U: state}))
    now = with_names(now, NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA))
    assert [(each.name, each.stop is not None) for each in plan_tables(now).tables] == [(U, True)]


@pytest.mark.parametrize(("since", "through"), [(0, 6), (7, 8)])
def test_a_ddl_that_came_late_while_a_table_was_blocked_is_reported(since: int, through: int) -> None:
    made = plan(waiting(DDL_STOP, ddls=(coming_late(6, "ALTER TABLE t DROP COLUMN v"),), since=since))
    assert (made.through, needs_override(made), made.stop and made.stop.kind) == (through, True, StopKind.LATE_DDL)


def test_a_table_that_a_late_ddl_makes_takes_the_rows_that_came_before_it() -> None:
    made = plan(arriving(replace(ROWS, first=9, last=9), ddls=(coming_late(8, "TRUNCATE TABLE t"),)))
    assert [(each.after, each.batches) for each in made.steps if isinstance(each, MergeRows)] == [(8, ALL_BATCHES)]
    fresh = plan(arriving(ROWS, ddls=(ddl(12, "TRUNCATE TABLE t"),)))
    assert [(each.after, each.batches) for each in fresh.steps if isinstance(each, MergeRows)] == [(12, NEW_BATCH)]


def test_rows_after_a_late_ddl_are_merged_again() -> None:
    """It may have changed or removed them."""
    newer = replace(WIDER, first=9, last=9)
    made = plan(arriving(newer, WIDER, ddls=(coming_late(8, "ALTER TABLE t ADD w INT"),)))
    assert steps(made) == [("A", 8), ("M", 20)]
    (merged,) = (step for step in made.steps if isinstance(step, MergeRows))
    assert (merged.after, merged.groups, merged.batches) == (8, (newer, WIDER), ALL_BATCHES)


def test_a_ddl_that_comes_after_newer_commits_of_other_tables_is_followed() -> None:
    add = coming_late(8, "ALTER TABLE t ADD w INT")
    made = plan(arriving(WIDER, ddls=(add,)))
    assert (block_reason(made), steps(made)) == (None, [("A", 8), ("M", 20)])
    assert made.definition is not None
    assert (made.definition.commit_ts, made.definition.named_at) == (8, 0)
    rows = arriving(OLD, replace(WIDER, first=9, last=9), WIDER, ddls=(add,))
    made = plan(rows)
    assert (block_reason(made), steps(made)) == (None, [("M", 8), ("A", 8), ("M", 20)])
    again = plan(arriving(WIDER, ddls=(replace(add, out_of_order=False),)))
    assert "lacks: w" in (block_reason(again) or "")


def test_a_ddl_from_before_one_that_is_followed_merges_no_row_from_before_that_again() -> None:
    """Those rows lack what the later DDL added."""
    known = definition(9, "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(9), c INT NOT NULL DEFAULT 5)")
    add = coming_late(6, "ALTER TABLE t ADD w INT")
    wider = replace(ROWS, columns=(*ROWS.columns, Column(name="c", type="int"), Column(name="w", type="int")))
    made = plan(arriving(wider, known=known, ddls=(add,)))
    assert (made.stop, steps(made)) == (None, [("A", 6), ("M", 20)])
    assert [(each.after, each.mergeable_since) for each in made.steps if isinstance(each, MergeRows)] == [(9, 9)]
    made = plan(arriving(replace(wider, first=8, last=8), known=known, ddls=(add,)))
    assert str(block_reason(made)).startswith("a late row cannot be merged: a later DDL changed the table; ways out: ")


@pytest.mark.parametrize("action", ["TRUNCATE PARTITION p0", "RENAME COLUMN id TO v, RENAME COLUMN v TO id"])
def test_a_ddl_that_changes_any_row_is_not_done_to_newer_ones(action: str) -> None:
    partitioned = "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 2"
    made = plan(arriving(known=definition(sql=partitioned), ddls=(coming_late(8, f"ALTER TABLE t {action}"),)))
    assert "it arrived late, and the table may have rows from after it" in (block_reason(made) or "")


def test_tables_come_and_go_late_too() -> None:
    assert plan_tables(arriving(ddls=(coming_late(8, "DROP TABLE t"),))).tables == ()
    made = plan(
        arriving(OLD, ROWS, known=None, ddls=(coming_late(3, "CREATE TABLE t (id BIGINT PRIMARY KEY, v INT)"),))
    )
    assert made.definition is not None
    assert (made.definition.origin, made.definition.named_at) == ("ddl", 3)
    older = arriving(ROWS, known=replace(KNOWN, named_at=9), ddls=(coming_late(8, "DROP TABLE t"),))
    assert block_reason(plan(older)) is None
