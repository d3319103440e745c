"""Renames that come through several topics, at the end of a window, and read again for a table that is below the
watermark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import DDL_STOP, KNOWN, STATE, after_window, ddl, planning_input, table, with_names

from ticdc_lakehouse.planning.naming import NameInUse
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.planning.stop_reason import WayOut
from ticdc_lakehouse.planning.window import BatchRange, DdlEvent
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.policy import OnUnsupportedDdl, Policy
from ticdc_lakehouse.schema.names import TableName

A, B, F = (TableName("d", name) for name in "abf")
SWAP = ("a tmp 1", "f a 0", "tmp f 1")


def renames(commit_ts: int, *texts: str) -> tuple[DdlEvent, ...]:
    """Each ``old new topic``."""
    parts = [text.split() for text in texts]
    return tuple(replace(ddl(commit_ts, f"RENAME TABLE d.{old} TO d.{new}"), topic=topic) for old, new, topic in parts)


def reads_again(*ddls: DdlEvent, shown: TableName, tso: int = 50) -> PlanningInput:
    """The window after ``tso``. The table `a` is complete up to 20 and was followed to the name ``shown``. The other
    table of a swap at 30 was blocked, and dropped since. `b` is complete."""
    now = planning_input(ddls=ddls)
    data = {
        name.table: replace(
            KNOWN, table=table(f"CREATE TABLE d.{name.table} (id INT KEY)"), lake_name=f"f_d_{name.table}",
            stable_id=name.table, commit_ts=10, named_at=10,
        )
        for name in (A, B)
    }  # fmt: skip
    tables = {
        shown: replace(STATE, lake_name=f"f_d_{shown.table}", stable_id="a", applied_tso=20),
        B: replace(STATE, lake_name="f_d_b", stable_id="b", applied_tso=tso),
    }
    names = [
        NameInUse(feed="f", table=d.table.name, lake_name=d.lake_name, stable_id=d.stable_id, named_at=d.named_at)
        for d in data.values()
    ]
    return replace(with_names(now, *names), definitions=data, before=Published(tso=tso, tables=tables), tso=tso + 10)


def planned(now: PlanningInput) -> dict[TableName, TablePlan]:
    return {made.name: made for made in plan_tables(now).tables}


def test_a_table_that_cannot_be_followed_again_is_blocked_under_its_name() -> None:
    now = reads_again(*renames(30, *SWAP), ddl(40, "DROP TABLE d.a"), ddl(50, "DROP TABLE d.x"), shown=F)
    for tso in (60, 70):
        made = planned(now)
        assert made.keys() == {B, F}
        assert made[F].definition is not None
        assert (made[F].definition.stable_id, made[F].through, made[F].lake_name) == ("a", 30, "f_d_f")
        assert made[F].stop is not None
        assert not made[F].stop.can_skip
        assert made[B].stop is None
        now = after_window(now, tso + 10)


def test_it_is_followed_by_later_ddls_from_its_name() -> None:
    ddls = *renames(30, *SWAP), ddl(40, "DROP TABLE d.a"), ddl(55, "RENAME TABLE d.f TO d.g")
    made = planned(reads_again(*ddls, shown=F))
    assert made.keys() == {B, TableName("d", "g")}
    assert planned(reads_again(*ddls, ddl(56, "DROP TABLE d.g"), shown=F)).keys() == {B}


def test_it_does_not_get_the_names_of_renames_that_led_to_its_own() -> None:
    ddls = *renames(30, *SWAP), ddl(35, "RENAME TABLE d.a TO d.g"), ddl(40, "RENAME TABLE d.f TO d.a")
    assert planned(reads_again(*ddls, shown=A)).keys() == {A, B}


def test_a_ddl_at_the_watermark_that_is_in_its_name_is_not_done_twice() -> None:
    last = ddl(50, "RENAME TABLE d.g TO d.tmp, d.f TO d.b, d.tmp TO d.f")
    swap = renames(30, "a tmp 1", "g a 0", "tmp g 1")
    now = reads_again(*swap, last, shown=F)
    states = now.before.tables | {B: replace(now.before.tables[B], ddls=(last.query,))}
    assert planned(replace(now, before=replace(now.before, tables=states))).keys() == {B, F}


def test_a_table_emptied_since_is_found_under_its_name() -> None:
    ddls = ddl(25, "TRUNCATE TABLE d.a"), *renames(30, *SWAP), ddl(40, "DROP TABLE d.a")
    made = planned(reads_again(*ddls, shown=F))
    assert made.keys() == {B, F}
    assert made[F].stop is not None


def test_renames_at_the_watermark_that_may_be_in_its_name_are_not_done_twice() -> None:
    """The window before may have ended among them, so other tables may get the names."""
    ddls = *renames(30, "a tmp 1", "c a 0", "tmp c 1"), ddl(40, "RENAME TABLE d.c TO d.a"), *renames(50, *SWAP)
    made = planned(reads_again(*ddls, shown=F))
    assert [name for name, each in made.items() if each.definition is not None] == [B, F]
    assert [name for name, each in made.items() if each.stop is None] == [B]


def test_its_name_does_not_tell_the_order_of_renames_before_it_had_it() -> None:
    """`b` is below the watermark, too: it left its name for `f`, and that one for `y`."""
    swap = renames(30, "a tmp 1", "g a 0", "tmp g 1")
    now = reads_again(*swap, *renames(35, "f y 0", "b f 1"), ddl(45, "RENAME TABLE d.g TO d.f"), shown=F)
    lagging = replace(now.before.tables[B], applied_tso=20)
    y = TableName("d", "y")
    made = planned(replace(now, before=replace(now.before, tables={F: now.before.tables[F], y: lagging})))
    assert made.keys() == {F, y}
    assert all(each.stop is not None for each in made.values())


def test_a_rename_at_the_end_of_a_window_waits_for_that_of_the_table_in_its_way() -> None:
    """Which of these arrive first, nobody knows: each topic has its own."""
    pairs = renames(60, "a tmp 1", "b a 0", "tmp b 2")
    for arrived in (pairs[1:2], pairs[2:], pairs[1:], pairs[:2], pairs[::2], pairs):
        now = reads_again(*arrived, shown=A)
        made = planned(now)
        assert all(each.stop is None for each in made.values())
        later = after_window(now, 70)
        made = planned(replace(later, window=replace(later.window, ddls=pairs)))
        assert {name: each.definition.stable_id for name, each in made.items() if each.definition} == {A: "b", B: "a"}
        assert all(each.stop is None for each in made.values())


def test_a_rename_to_a_name_that_stays_taken_blocks_in_the_next_window() -> None:
    now = after_window(reads_again(*renames(60, "b a 0"), shown=A), 70)
    made = planned(replace(now, window=replace(now.window, ddls=renames(60, "b a 0"))))
    assert all("exists already" in str(each.stop) for each in made.values())


@pytest.mark.parametrize("eventual", [False, True])
def test_of_two_tables_that_a_rename_blocked_one_may_continue(eventual: bool) -> None:
    """The other one keeps its name: the RENAME, read again, would give it that of the first one."""
    pairs = renames(5, "a b 0")
    now = reads_again(*pairs, shown=A)
    blocked = replace(now.before.tables[A], applied_tso=5, stop=replace(DDL_STOP, query=pairs[0].query))
    before = replace(now.before, tables={**now.before.tables, A: blocked})
    now = replace(now, before=before, batches=BatchRange(after=0, through=1) if eventual else None)
    assert {name: each.stop is None for name, each in planned(now).items()} == {A: False, B: True}


def test_renames_in_an_unknown_order_are_not_offered_to_be_skipped() -> None:
    """The next window reads them again, and blocks their tables again, also where the policy ignores such DDLs."""
    ddls = renames(55, "a x 1", "x a 2", "a y 3", "b a 4")
    for policy in (Policy(), Policy(on_unsupported_ddl=OnUnsupportedDdl.IGNORE)):
        now = reads_again(*ddls, shown=A)
        now = replace(now, config=replace(now.config, policy=lambda _database, _table, policy=policy: policy))
        stops = [made.stop for made in planned(now).values()]
        assert [stop.ways_out for stop in stops if stop] == [(WayOut.LOAD_EXPORT, WayOut.RECREATE)] * 4
