"""What the feed file and people decide about tables that are dropped, or cannot follow their DDL; and late rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_plan import (
    DATA,
    DDL_STOP,
    KNOWN,
    NAME,
    ROWS,
    STATE,
    UNFOLLOWED,
    U,
    V,
    block_reason,
    ddl,
    definition,
    late_point,
    needs_override,
    plan,
    quarantined,
    situation,
    steps,
)

from ticdc_codec.event import Column
from ticdc_lakehouse.planning.naming import Naming, Taken
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, Published
from ticdc_lakehouse.planning.table_plan import MergeRows
from ticdc_lakehouse.planning.window import DdlEvent, RowGroup
from ticdc_lakehouse.planning.window_plan import plan_tables
from ticdc_lakehouse.policy import Mode, OnDrop, OnUnsupportedDdl, Policy

DROP = ddl(16, "DROP TABLE t")
CREATE = ddl(18, "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))")
LATER = replace(ROWS, first=19, last=19)


def applying(policy: Policy) -> GoldConfig:
    """This policy for the table, the usual one for all others."""
    return GoldConfig(feed="f", time_zone="UTC", policy=lambda *name: policy if name == NAME else Policy())


KEEP = applying(Policy(on_drop=OnDrop.KEEP))
IGNORE = applying(Policy(on_unsupported_ddl=OnUnsupportedDdl.IGNORE))


@pytest.mark.parametrize("query", ["DROP TABLE t", "DROP DATABASE d"])
def test_a_table_that_is_kept_stands_still_as_it_was_dropped(query: str) -> None:
    made = plan(situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(16, query),), applying=KEEP))
    assert (made.through, needs_override(made), steps(made)) == (16, True, [("M", 16)])
    assert block_reason(made) == "TiDB dropped it at 16 (on_drop: keep)"


def test_a_table_that_is_kept_gives_way_to_another_of_its_name() -> None:
    now = situation(ROWS, LATER, known=KNOWN, state=STATE, ddls=(DROP, CREATE), applying=KEEP)
    now.naming.history = lambda: [Taken(feed="f", table=NAME, name="f_d_t", data=DATA)]
    (made,) = plan_tables(now).tables
    assert (made.state, block_reason(made), made.through) == (None, None, 20)
    assert made.start is not None
    assert made.start.data == f"{DATA}_18"


def test_only_the_table_of_the_policy_is_kept() -> None:
    ddls = (ddl(12, "CREATE TABLE u (id INT)", "u"), ddl(16, "DROP TABLE u, t", None))
    now = situation(known=KNOWN, state=STATE, ddls=ddls, applying=KEEP)
    assert [each.name for each in plan_tables(now).tables] == [NAME]


@pytest.mark.parametrize(
    "query",
    [
        UNFOLLOWED,
        "ALTER TABLE t SOME NEW THING",
        "ALTER TABLE u EXCHANGE PARTITION p WITH TABLE t",
        "ALTER TABLE t DROP COLUMN x",
    ],
)
def test_an_ignored_ddl_changes_nothing(query: str) -> None:
    now = situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(14, query),), applying=IGNORE)
    made = plan(now)
    assert (made.through, block_reason(made), made.definition) == (20, None, KNOWN)
    assert block_reason(plan(replace(now, applying=KEEP))) is not None


def test_an_ignored_ddl_does_not_keep_rows_that_do_not_fit() -> None:
    wider = replace(LATER, columns=(*ROWS.columns, replace(V, name="w")))
    made = plan(situation(ROWS, wider, known=KNOWN, state=STATE, ddls=(ddl(17, UNFOLLOWED),), applying=IGNORE))
    assert (made.through, needs_override(made)) == (18, False)
    assert block_reason(made) is not None
    assert "lacks: w" in block_reason(made)


def test_a_ddl_that_can_be_followed_is_not_ignored() -> None:
    now = situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, "ALTER TABLE t DROP COLUMN v"),), applying=IGNORE)
    assert steps(plan(now)) == [("M", 17), ("A", 17), ("M", 20)]


def skipping(commit_ts: int, data: str = DATA, query: str = UNFOLLOWED) -> PlanningInput:
    now = situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(14, query),))
    return replace(now, skipped=frozenset({(data, commit_ts)}))


@pytest.mark.parametrize(
    "query",
    [
        UNFOLLOWED,
        "ALTER TABLE t SOME NEW THING",
        "ALTER TABLE t DROP COLUMN v",
        "CREATE TABLE t (id BIGINT PRIMARY KEY)",
    ],
)
def test_a_skipped_ddl_is_passed_over(query: str) -> None:
    """Also one that could be followed: its values may be what cannot be converted."""
    made = plan(skipping(14, query=query))
    assert (made.through, block_reason(made), made.definition, steps(made)[-1]) == (20, None, KNOWN, ("M", 20))


def test_a_rename_to_a_name_that_is_taken_stops_both_tables_until_it_is_skipped() -> None:
    other = replace(definition(), data="f_d_u__data", name="f_d_u", table=replace(KNOWN.table, table="u"))
    renamed = ddl(14, "RENAME TABLE u TO t", None)
    now = situation(ROWS, known=KNOWN, state=STATE, ddls=(renamed,))
    tables = {**now.before.tables, U: replace(STATE, name=other.name, data=other.data)}
    now = replace(now, before=replace(now.before, tables=tables), known={**now.known, other.data: other})
    stopped = {
        made.name[1]: (made.through, needs_override(made), block_reason(made) or "") for made in plan_tables(now).tables
    }
    assert stopped.keys() == {"t", "u"}
    assert all((through, final) == (14, True) for through, final, _ in stopped.values())
    assert "the table exists already: RENAME TABLE u TO t; ways out: `ticdc-lake table skip-ddl`" in stopped["t"][2]
    assert "table d.t exists already: RENAME TABLE u TO t; ways out: `ticdc-lake table skip-ddl`" in stopped["u"][2]
    skipped = replace(now, skipped=frozenset({(DATA, 14), (other.data, 14)}))
    assert [(made.name[1], made.through, block_reason(made)) for made in plan_tables(skipped).tables] == [
        ("t", 20, None),
        ("u", 20, None),
    ]


@pytest.mark.parametrize("other", [(13, DATA), (14, "f_d_t__data_9")])
def test_another_ddl_is_not(other: tuple[int, str]) -> None:
    made = plan(skipping(*other))
    assert (made.through, needs_override(made)) == (14, True)


def late(now: PlanningInput, tso: int) -> PlanningInput:
    return replace(now, late={NAME: late_point(tso)})


def test_rows_that_came_late_stop_their_table_before_them() -> None:
    made = plan(late(situation(ROWS, known=KNOWN, state=STATE), 5))
    assert (made.through, block_reason(made), needs_override(made), made.steps) == (5, "came late", True, ())


def test_rows_of_a_table_that_gold_never_had_stop_it_too() -> None:
    made = plan(late(situation(ROWS), 5))
    assert (made.through, block_reason(made), needs_override(made), made.steps) == (5, "came late", True, ())


def test_rows_that_came_before_a_ddl_cannot_be_read_again() -> None:
    known = replace(definition(7), source="ddl")
    made = plan(late(situation(ROWS, known=known, state=STATE), 5))
    assert (made.through, block_reason(made), needs_override(made)) == (10, "came late", True)


def test_blocked_table_keeps_its_reason() -> None:
    state = replace(STATE, applied_tso=6, stop=DDL_STOP)
    made = plan(late(situation(ROWS, known=KNOWN, state=state), 5))
    assert (made.through, made.stop) == (6, DDL_STOP)


def test_a_late_table_is_dropped_and_renamed_as_any() -> None:
    now = late(situation(ROWS, known=KNOWN, state=STATE, ddls=(DROP,)), 5)
    assert plan_tables(now).tables == ()
    renamed = replace(now, window=replace(now.window, ddls=(ddl(16, "RENAME TABLE t TO u"),)))
    assert [(each.name, block_reason(each)) for each in plan_tables(renamed).tables] == [(U, "came late")]


def test_a_table_that_was_renamed_while_it_stood_still_goes_on_from_its_old_name() -> None:
    rename = ddl(16, "RENAME TABLE t TO u")
    held = situation(ROWS, known=KNOWN, state=STATE, ddls=(rename,), hold=quarantined(12))
    (stopped,) = plan_tables(held).tables
    assert (stopped.name, stopped.through, block_reason(stopped)) == (U, 12, "in quarantine")
    state = replace(STATE, name=stopped.view, applied_tso=12, stop=quarantined(12).stop)
    (made,) = plan_tables(replace(held, before=Published(tso=20, tables={stopped.name: state}), holds={})).tables
    assert (made.name, block_reason(made), steps(made)) == (U, None, [("M", 16), ("M", 20)])


EVENTUAL = GoldConfig(feed="f", time_zone="UTC", mode=Mode.EVENTUAL)
OLD = replace(ROWS, first=5, last=5)


def arriving(*groups: RowGroup, known: Definition | None = KNOWN, ddls: tuple[DdlEvent, ...] = ()) -> PlanningInput:
    """Rows of the eventual mode, of a table that was published under this definition."""
    state = None if known is None else STATE
    return replace(situation(*groups, known=known, state=state, ddls=ddls, applying=EVENTUAL), batches=(3, 4))


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
    assert block_reason(made) == "a late row cannot be merged: a later DDL changed the table"


def test_rows_under_a_former_name_are_missed_by_the_table_that_had_it() -> None:
    now = arriving(OLD)
    renamed = replace(KNOWN, table=replace(KNOWN.table, table="u"), named_at=7)
    now = replace(now, before=replace(now.before, tables={U: STATE}), known={DATA: renamed})
    now.naming.history = lambda: [Taken(feed="f", table=NAME, name="f_d_t", data=DATA)]
    (made,) = plan_tables(now).tables
    assert (made.name, needs_override(made)) == (U, True)
    assert block_reason(made) == "rows arrived late under the name that it had before, d.t"


def test_rows_of_a_table_that_is_gone_do_not_bring_it_back() -> None:
    now = arriving(OLD, known=None)
    now.naming.history = lambda: [Taken(feed="f", table=NAME, name="f_d_t", data=DATA)]
    assert plan_tables(now).tables == ()
    now = replace(now, naming=Naming(feed="f", history=list))
    assert [each.name for each in plan_tables(now).tables] == [NAME]


def coming_late(commit_ts: int, query: str, name: str = "t") -> DdlEvent:
    return replace(ddl(commit_ts, query, name), late=True)


WIDER = replace(ROWS, columns=(*ROWS.columns, Column(name="w", type="int")))


def test_a_ddl_that_comes_after_newer_commits_of_other_tables_is_followed() -> None:
    add = coming_late(8, "ALTER TABLE t ADD w INT")
    made = plan(arriving(WIDER, ddls=(add,)))
    assert (block_reason(made), steps(made)) == (None, [("A", 8), ("M", 20)])
    assert made.definition is not None
    assert (made.definition.commit_ts, made.definition.named_at) == (8, 0)
    rows = arriving(OLD, replace(WIDER, first=9, last=9), WIDER, ddls=(add,))
    made = plan(rows)
    assert (block_reason(made), steps(made)) == (None, [("M", 8), ("A", 8), ("M", 20)])
    again = plan(arriving(WIDER, ddls=(replace(add, late=False),)))
    assert "lacks: w" in (block_reason(again) or "")


def test_tables_come_and_go_late_too() -> None:
    assert plan_tables(arriving(ddls=(coming_late(8, "DROP TABLE t"),))).tables == ()
    made = plan(
        arriving(OLD, ROWS, known=None, ddls=(coming_late(3, "CREATE TABLE t (id BIGINT PRIMARY KEY, v INT)"),))
    )
    assert made.definition is not None
    assert (made.definition.source, made.definition.named_at) == ("ddl", 3)
    older = arriving(ROWS, known=replace(KNOWN, named_at=9), ddls=(coming_late(8, "DROP TABLE t"),))
    assert block_reason(plan(older)) is None
