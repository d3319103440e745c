"""Late rows, repeated DDLs and filters that concern a name which a table had before, or has since."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import (
    DATA,
    KNOWN,
    LATER,
    NAME,
    ROWS,
    STATE,
    U,
    after_window,
    block_reason,
    ddl,
    definition,
    late_point,
    plan,
    planning_input,
    steps,
    with_names,
)

from ticdc_lakehouse.planning.naming import NameInUse
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Origin, Published
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import NO_EARLIER_STATE, DdlEvent
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.schema.names import TableName

EXPORTED = replace(KNOWN, origin=Origin.EXPORT, commit_ts=7, named_at=7)


@pytest.mark.parametrize("known", [EXPORTED, replace(KNOWN, origin=Origin.FILE, named_at=7)])
@pytest.mark.parametrize(("last", "reason"), [(6, None), (7, None), (8, "came late"), (None, "came late")])
def test_late_rows_from_before_a_table_do_not_block_it(known: object, last: int | None, reason: str | None) -> None:
    """Its export has them, or they are of the table that had the name; one later row blocks it."""
    now = planning_input(ROWS, known=known, state=STATE)  # type: ignore[arg-type]
    now = replace(now, late_points={NAME: replace(late_point(5), last=last)})
    made = plan(now)
    assert (made.through, block_reason(made)) == (20 if reason is None else 10, reason)


def test_late_rows_from_before_the_first_rows_of_a_table_block_it() -> None:
    """That it began with them is a guess."""
    known = replace(KNOWN, origin=Origin.WIRE, commit_ts=8, named_at=7)
    now = replace(planning_input(known=known, state=STATE), late_points={NAME: replace(late_point(5), last=6)})
    assert block_reason(plan(now)) == "came late"


def named(table: TableName, named_at: int, stable_id: str = DATA) -> NameInUse:
    return NameInUse(feed="f", table=table, lake_name="", stable_id=stable_id, named_at=named_at)


@pytest.mark.parametrize("between", [(), (named(U, 5),)], ids=["dropped and recovered", "renamed and renamed back"])
@pytest.mark.parametrize("last", [4, 9, None])
def test_late_rows_of_a_table_that_has_its_former_name_again_block_it(
    last: int | None, between: tuple[NameInUse, ...]
) -> None:
    known = replace(KNOWN, named_at=8)
    now = planning_input(ROWS, known=known, state=STATE)
    now = with_names(now, named(NAME, 0), *between, named(NAME, 8))
    made = plan(replace(now, late_points={NAME: replace(late_point(3), last=last)}))
    assert (made.through, made.stop and made.stop.kind) == (10, StopKind.LATE_ROWS)


def test_a_late_ddl_of_one_table_does_not_hide_late_rows_of_the_one_that_had_its_name() -> None:
    """`t` was another table until 8, which is `u` since."""
    before = replace(KNOWN, table=replace(KNOWN.table, table="u"), named_at=8)
    younger = replace(KNOWN, stable_id="younger", lake_name="younger", commit_ts=8, named_at=8)
    state = replace(STATE, lake_name="younger", stable_id="younger")
    now = with_names(planning_input(), named(NAME, 0), named(U, 8), named(NAME, 8, "younger"))
    now = replace(now, before=Published(tso=10, tables={U: STATE, NAME: state}))
    now = replace(now, definitions={DATA: before, "younger": younger})
    late_ddl = replace(late_point(NO_EARLIER_STATE), stop=replace(late_point(0).stop, kind=StopKind.LATE_DDL))
    now = replace(now, late_points={NAME: replace(late_point(5), last=6)}, late_ddl_points={NAME: late_ddl})
    found = {made.name: made.stop and made.stop.kind for made in plan_tables(now).tables}
    assert found == {U: StopKind.LATE_ROWS, NAME: StopKind.LATE_DDL}


PARTED = definition(
    0,
    "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(9)) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (9))",
)
PLAIN = replace(definition(0, "CREATE TABLE d.u (id BIGINT PRIMARY KEY, v VARCHAR(9))"), stable_id="u", lake_name="u")
EXCHANGES = [f"ALTER TABLE {name} EXCHANGE PARTITION p WITH TABLE d.u" for name in ("t", "d.t")]


def exchanging(*queries: str, at: int = 15) -> PlanningInput:
    now = planning_input(known=PARTED, state=STATE, ddls=tuple(ddl(at, query) for query in queries))
    tables = {NAME: STATE, U: replace(STATE, lake_name="u", stable_id="u")}
    return replace(now, before=Published(tso=10, tables=tables), definitions={DATA: PARTED, "u": PLAIN})


@pytest.mark.parametrize("order", [1, -1])
def test_an_exchange_that_comes_again_with_its_database_is_done_once(order: int) -> None:
    for name in (NAME, U):
        assert steps(plan(exchanging(*EXCHANGES[::order]), name)) == [("M", 15), ("E", 15), ("M", 20)]


@pytest.mark.parametrize("order", [1, -1])
def test_an_exchange_that_comes_again_after_its_window_is_done_once(order: int) -> None:
    again, one = EXCHANGES[::order]
    later = after_window(exchanging(one, at=20), 30)
    later = replace(later, window=exchanging(again, one, at=20).window)
    assert [steps(plan(later, name)) for name in (NAME, U)] == [[("M", 30)], [("M", 30)]]


def test_of_two_texts_of_a_rename_the_one_with_the_database_counts() -> None:
    other = TableName("x", "t")
    texts = ("RENAME TABLE `t` TO `d`.`w`", "RENAME TABLE `d`.`t` TO `d`.`w`")
    now = planning_input(known=KNOWN, state=STATE, ddls=tuple(ddl(15, text) for text in texts))
    of_x = replace(KNOWN, table=replace(KNOWN.table, database="x"), stable_id="x", lake_name="x")
    tables = {NAME: STATE, other: replace(STATE, lake_name="x", stable_id="x")}
    now = replace(now, before=Published(tso=10, tables=tables), definitions={DATA: KNOWN, "x": of_x})
    assert {each.name: block_reason(each) for each in plan_tables(now).tables} == {("d", "w"): None, other: None}


NO_FORMER = GoldConfig(feed="f", time_zone="UTC", matches=lambda _, table: table not in ("t", "between"))
RESUMED = StopReason(kind=StopKind.UNSUPPORTED_DDL, commit_ts=5, query="?", needs_override=False)


@pytest.mark.parametrize(
    "queries",
    [
        ("TRUNCATE TABLE t", "RENAME TABLE t TO u"),
        ("RENAME TABLE t TO `between`", "RENAME TABLE `between` TO u"),
    ],
)
def test_a_lagging_table_is_followed_through_names_that_the_filter_excludes_since(queries: tuple[str, str]) -> None:
    lagging = replace(STATE, applied_tso=5, stop=RESUMED)
    ddls = tuple(ddl(at, query) for at, query in zip((6, 8), queries, strict=True))
    now = planning_input(known=KNOWN, ddls=ddls, config=NO_FORMER)
    now = replace(now, before=Published(tso=10, tables={U: lagging}), definitions={DATA: KNOWN})
    (made,) = plan_tables(now).tables
    assert (made.name, made.through, block_reason(made)) == (U, 20, None)


def test_a_table_leaves_the_feed_by_a_new_rename_to_a_name_that_the_filter_excludes() -> None:
    of_u = replace(KNOWN, table=replace(KNOWN.table, table="u"))
    now = planning_input(known=of_u, ddls=(ddl(15, "RENAME TABLE u TO `between`"),), config=NO_FORMER)
    assert plan_tables(replace(now, before=Published(tso=10, tables={U: STATE}))).tables == ()


RENAMED = replace(
    definition(9, "CREATE TABLE d.u (id BIGINT PRIMARY KEY, v VARCHAR(9))"), origin=Origin.WIRE, named_at=7
)
"""Of `u`, whose first row came at 9; gold did not know it as `t`."""


def late_under_former_name(*ddls: DdlEvent, named_at: int = 7, resumed: bool = True) -> list[TablePlan]:
    """The plans of a window after one in which a row of `t` at 5 came late."""
    known = replace(RENAMED, named_at=named_at)
    unknown = replace(STATE, lake_name="", stable_id="", version=-1, applied_tso=4)
    unknown = replace(unknown, stop=replace(late_point(4).stop, needs_override=not resumed))
    now = planning_input(replace(ROWS, first=5, last=5), known=known, ddls=ddls)
    rows = {**now.window.rows, U: (replace(LATER, name=U),)}
    now = replace(now, window=replace(now.window, rows=rows))
    now = replace(now, before=replace(now.before, tables={NAME: unknown, U: STATE}))
    return [*plan_tables(now).tables]


def test_a_late_row_of_a_table_that_was_renamed_before_gold_knew_it_blocks_that_table() -> None:
    """Followed to its name, the table of the late row would be another one of that name."""
    (made,) = late_under_former_name(ddl(7, "RENAME TABLE t TO u"))
    assert (made.name, made.through, made.stop and made.stop.kind) == (U, 10, StopKind.LATE_ROWS)
    assert "late under the name that it had before, one that gold did not know; ways out" in str(block_reason(made))


def test_until_it_is_resumed_the_table_of_the_late_row_is_listed_alone() -> None:
    rows, made = late_under_former_name(ddl(7, "RENAME TABLE t TO u"), resumed=False)
    assert (rows.name, rows.through, block_reason(rows)) == (NAME, 4, "came late")
    assert (made.name, made.through, block_reason(made)) == (U, 20, None)


def test_late_rows_of_a_table_that_was_truncated_since_leave_one_table_too() -> None:
    renamed, emptied = ddl(7, "RENAME TABLE t TO u"), ddl(8, "TRUNCATE TABLE u", "u")
    (made,) = late_under_former_name(renamed, emptied, named_at=8)
    assert (made.name, made.stop and made.stop.kind) == (U, StopKind.LATE_ROWS)


def test_a_late_row_of_a_table_that_is_called_otherwise_by_now_leaves_the_next_one_alone() -> None:
    """TiDB has no table of it any more, and gold has another of that name since."""
    made = late_under_former_name(
        ddl(7, "RENAME TABLE t TO u"), ddl(8, "DROP TABLE u", "u"), ddl(8, "RENAME TABLE x TO u"), named_at=8
    )
    assert [(each.name, each.through, block_reason(each)) for each in made] == [(U, 20, None)]
