"""DDLs that first arrive below the published watermark: which tables lack them, and what becomes of those."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import (
    DATA,
    DDL_STOP,
    KNOWN,
    NAME,
    ROWS,
    STATE,
    U,
    after_window,
    block_reason,
    ddl,
    definition,
    needs_override,
    plan,
    planning_input,
    quarantined,
    steps,
    table,
)

from ticdc_lakehouse.planning.late_ddls import late_ddl_points, new_ddls
from ticdc_lakehouse.planning.naming import NameInUse, Naming, TakenNames
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, WayOut
from ticdc_lakehouse.planning.window import NO_EARLIER_STATE, DdlEvent
from ticdc_lakehouse.planning.window_plan import plan_tables
from ticdc_lakehouse.schema.names import TableName

ADD = ddl(5, "ALTER TABLE t ADD COLUMN w INT DEFAULT 7")
NO_NAMES = Naming(feed="f", taken=TakenNames())


def published(known: Definition | None = KNOWN, state: TableState = STATE) -> Published:
    return Published(tso=10, tables={NAME: state}, definitions={} if known is None else {DATA: known})


def points(
    *ddls: DdlEvent, before: Published | None = None, since: tuple[DdlEvent, ...] = (), names: Naming = NO_NAMES
) -> dict[str, int]:
    """Table to the TSO up to which it is right."""
    found = late_ddl_points(before or published(), ddls, since, names.ids_named_at)
    assert all(p.stop.kind is StopKind.LATE_DDL and p.stop.needs_override for p in found.values())
    return {name.table: point.tso for name, point in found.items()}


@pytest.mark.parametrize(
    "copy",
    [
        ADD,
        replace(ADD, query="ALTER TABLE `d`.`t` ADD COLUMN `w` INT DEFAULT '7'"),
        replace(ddl(5, "ALTER TABLE `D`.`T` ADD COLUMN w INT", "T", "D")),
        ddl(5, "RENAME TABLE t TO u"),
    ],
    ids=["the same", "another text", "another case", "another DDL of one transaction"],
)
def test_a_ddl_that_came_before_is_a_duplicate(copy: DdlEvent) -> None:
    assert new_ddls([ADD], [copy]) == []


def test_a_drop_of_a_database_is_a_duplicate_in_another_case() -> None:
    assert new_ddls([ddl(5, "DROP DATABASE d", None)], [ddl(5, "DROP DATABASE `D`", None, "D")]) == []


def test_a_ddl_that_names_nothing_is_late_for_all_tables_once() -> None:
    unclear = ddl(5, "DROP TABLE t", None, "")
    assert new_ddls([unclear], [ddl(5, "DROP TABLE `t`", None, "")]) == []
    assert new_ddls([unclear], [ADD]) == [unclear]
    both = Published(tso=10, tables={NAME: STATE, U: STATE}, definitions={DATA: KNOWN})
    assert points(unclear, before=both) == {"t": NO_EARLIER_STATE, "u": NO_EARLIER_STATE}


@pytest.mark.parametrize("other", [ddl(4, ADD.query), ddl(5, "RENAME TABLE v TO u", "v"), ddl(5, "DROP DATABASE e")])
def test_a_ddl_that_never_came_is_new(other: DdlEvent) -> None:
    assert new_ddls([ADD], [other]) == [ADD]


def test_each_part_of_a_rename_of_several_tables_is_a_ddl_of_its_own() -> None:
    away, here = ddl(5, "RENAME TABLE t TO tmp"), ddl(5, "RENAME TABLE u TO t", "u")
    assert new_ddls([here], [away]) == [here]
    assert new_ddls([away], [here]) == [away]
    assert new_ddls([away, here], [ddl(5, "RENAME TABLE `d`.`t` TO `d`.`tmp`, `d`.`u` TO `d`.`T`")]) == []


@pytest.mark.parametrize(
    ("query", "tso"),
    [
        (ADD.query, 5),
        ("TRUNCATE TABLE t", 5),
        ("DROP TABLE t", 5),
        ("DROP DATABASE d", 5),
        ("DROP DATABASE `D`", 5),
        ("ALTER TABLE t TRUNCATE PARTITION p0", 5),
        ("ALTER TABLE t DROP PARTITION p0", 5),
        ("RENAME TABLE t TO u", NO_EARLIER_STATE),
        ("ALTER TABLE u EXCHANGE PARTITION p WITH TABLE t", NO_EARLIER_STATE),
        ("ALTER TABLE t SOMETHING UNHEARD", NO_EARLIER_STATE),
    ],
)
def test_late_ddl_blocks_a_table_that_lacks_it(query: str, tso: int) -> None:
    assert points(ddl(5, query)) == {"t": tso}


@pytest.mark.parametrize(
    ("known", "state"),
    [
        (replace(KNOWN, named_at=5), STATE),
        (replace(KNOWN, origin=Origin.EXPORT, commit_ts=5), STATE),
        (definition(0, "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(9), w INT)"), STATE),
        (KNOWN, replace(STATE, applied_tso=5)),
        (KNOWN, replace(STATE, stop=StopReason(kind=StopKind.DROPPED, commit_ts=10, needs_override=True))),
    ],
    ids=["a younger table", "an export since", "has its effect", "not gone on yet", "dropped, and kept"],
)
def test_late_ddl_that_the_table_includes_does_not_block_it(known: Definition, state: TableState) -> None:
    assert points(ADD, before=published(known, state)) == {}


@pytest.mark.parametrize(
    "query", ["CREATE TABLE t (id INT PRIMARY KEY)", "ALTER TABLE t ADD INDEX i (v)", "DROP TABLE x"]
)
def test_what_changes_no_table_here_blocks_none(query: str) -> None:
    assert points(ddl(5, query)) == {}


def test_a_table_that_was_renamed_since_lacks_it() -> None:
    """And not the one that has its name now."""
    renamed = replace(definition(7), table=replace(table(), table="u"), named_at=7)
    younger = replace(definition(8), stable_id="other", named_at=8)
    other = replace(STATE, stable_id="other")
    before = Published(tso=10, tables={U: STATE, NAME: other}, definitions={DATA: renamed, "other": younger})
    used = ((NAME, DATA, 0), (U, DATA, 7), (NAME, "other", 8))
    taken = (NameInUse(feed="f", table=t, lake_name="", stable_id=d, named_at=at) for t, d, at in used)
    names = Naming(feed="f", taken=TakenNames(names=tuple(taken)))
    truncate, add = "TRUNCATE TABLE t", "ALTER TABLE t ADD COLUMN v VARCHAR(9)"
    assert points(ddl(5, truncate), before=before, names=names) == {"u": NO_EARLIER_STATE}
    assert points(ddl(9, truncate), before=before, names=names) == {"t": 9}
    for query in (add, "TRUNCATE TABLE u", "CREATE TABLE t LIKE u"):
        assert points(ddl(5, query), before=before, names=names) == {}
    exported = replace(before, definitions={**before.definitions, DATA: replace(renamed, origin=Origin.EXPORT)})
    assert points(ddl(5, truncate), before=exported, names=names) == {}


@pytest.mark.parametrize(
    "query",
    [
        "TRUNCATE TABLE t",
        "ALTER TABLE t TRUNCATE PARTITION p0",
        "ALTER TABLE t MODIFY v VARCHAR(5)",
        "DROP TABLE t",
    ],
)
def test_a_table_that_has_its_name_again_lacks_it(query: str) -> None:
    """It was renamed and renamed back, or dropped and recovered, since the DDL."""
    before = published(replace(definition(8), named_at=8))
    for between in ((), ((U, DATA, 5),)):
        used = ((NAME, DATA, 0), *between, (NAME, DATA, 8))
        taken = (NameInUse(feed="f", table=t, lake_name="", stable_id=d, named_at=at) for t, d, at in used)
        names = Naming(feed="f", taken=TakenNames(names=tuple(taken)))
        assert points(ddl(3, query), before=before, names=names) == {"t": NO_EARLIER_STATE}
    assert points(ddl(6, query), before=before, names=names) == {}, "t was another table, or none"


@pytest.mark.parametrize("blocked", [False, True])
def test_a_table_is_blocked_under_the_name_that_it_has_now(blocked: bool) -> None:
    """The definition of one that was renamed while it was blocked has the name of before."""
    (point,) = late_ddl_points(published(), [ADD]).values()
    rename = ddl(9, "RENAME TABLE t TO u")
    renamed = KNOWN if blocked else replace(definition(9), table=replace(table(), table="u"), named_at=9)
    state = replace(STATE, applied_tso=8, stop=quarantined(8).stop) if blocked else STATE
    now = planning_input(known=renamed, ddls=(rename,))
    now = replace(now, before=replace(now.before, tables={U: state}), late_ddl_points={U: point})
    (made,) = plan_tables(now).tables
    assert (made.name, made.stop and made.stop.kind, made.through) == (U, StopKind.LATE_DDL, 5 if blocked else 10)


def test_a_table_without_columns_lacks_it() -> None:
    assert points(ADD, before=published(None)) == {"t": 5}


def test_the_first_of_several_says_up_to_where_the_table_is_right() -> None:
    assert points(ddl(3, "TRUNCATE TABLE t"), ADD) == {"t": 3}
    assert points(ddl(3, "TRUNCATE TABLE t"), ddl(5, "RENAME TABLE t TO u")) == {"t": NO_EARLIER_STATE}


def test_nothing_goes_back_behind_a_later_ddl() -> None:
    before = published(definition(7))
    assert points(ADD, before=before) == {"t": NO_EARLIER_STATE}
    (point,) = late_ddl_points(before, [ADD]).values()
    assert "`ticdc-lake table resume` continues without the late rows and DDLs" in str(point.stop)


def test_late_create_of_an_unseen_table_counts_unless_it_was_dropped_since() -> None:
    create = ddl(5, "CREATE TABLE u (id INT PRIMARY KEY)", "u")
    assert points(create) == points(ddl(5, "CREATE TABLE u LIKE t", "u")) == {"u": 5}
    assert points(ddl(5, "FLASHBACK TABLE v TO u", "u")) == {"u": 5}
    for end in ("DROP TABLE u", "RENAME TABLE u TO v", "DROP DATABASE d"):
        assert points(create, since=(create, ddl(7, end, "u"))) == {}
        assert points(create, since=(ddl(3, end, "u"), create)) == {"u": 5}


def blocked_by(late: DdlEvent, state: TableState = STATE, known: Definition = KNOWN) -> PlanningInput:
    now = planning_input(ROWS, known=known, state=state)
    return replace(now, late_ddl_points=late_ddl_points(published(known, state), [late]))


def test_a_resumed_table_follows_the_ddl_and_takes_its_rows_again() -> None:
    now = blocked_by(ADD)
    made = plan(now)
    assert (made.through, needs_override(made), made.steps) == (5, True, ())
    assert "ADD COLUMN w" in (block_reason(made) or "")
    assert made.stop is not None
    then = after_window(now, 20)
    resumed = replace(then.before.tables[NAME], stop=replace(made.stop, needs_override=False))
    window = replace(now.window, ddls=(ADD,), rows={})
    then = replace(then, before=replace(then.before, tables={NAME: resumed}), window=window, late_ddl_points={})
    assert (block_reason(plan(then)), steps(plan(then))) == (None, [("A", 5), ("M", 20)])


def test_a_blocked_table_goes_back_for_it() -> None:
    """Else an override of its other reason would let it go on without the DDL."""
    state = replace(STATE, applied_tso=8, stop=replace(DDL_STOP, commit_ts=8))
    made = plan(blocked_by(ADD, state))
    assert (made.through, made.stop and made.stop.kind) == (5, StopKind.LATE_DDL)


def test_an_unknown_table_is_blocked_until_it_is_resumed() -> None:
    create = ddl(5, "CREATE TABLE u (id BIGINT PRIMARY KEY, v VARCHAR(9))", "u")
    now = replace(planning_input(), late_ddl_points=late_ddl_points(published(), [create]))
    made = plan(now, U)
    assert (made.through, needs_override(made), made.definition) == (5, True, None)
    assert made.stop is not None
    state = TableState(
        lake_name="", stable_id="", version=-1, applied_tso=5, stop=replace(made.stop, needs_override=False)
    )
    then = replace(now, late_ddl_points={}, before=Published(tso=20, tables={U: state}), tso=30)
    made = plan(replace(then, window=replace(then.window, ddls=(create,))), U)
    assert made.stop is None
    assert made.definition is not None
    assert made.definition.named_at == 5
    assert [each.name for each in plan_tables(planning_input()).tables] == []


@pytest.mark.parametrize(
    ("actions", "included"),
    [
        ("ADD PARTITION (PARTITION P1 VALUES LESS THAN (99))", True),
        ("ADD PARTITION (PARTITION p2 VALUES LESS THAN (999))", False),
        ("ADD PARTITION PARTITIONS 4", False),
        ("REORGANIZE PARTITION p INTO (PARTITION p0 VALUES LESS THAN (9), PARTITION p1 VALUES LESS THAN (99))", True),
        ("REORGANIZE PARTITION p0 INTO (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN (9))", False),
        ("PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (9), PARTITION p1 VALUES LESS THAN (99))", True),
        ("REMOVE PARTITIONING", False),
        ("ADD COLUMN v VARCHAR(9), RENAME INDEX i TO K", True),
        ("ADD COLUMN v VARCHAR(9), RENAME INDEX k TO i", False),
        ("ADD COLUMN v VARCHAR(9), ADD FOREIGN KEY (v) REFERENCES p (id)", True),
        ("ADD COLUMN v VARCHAR(9), ADD FOREIGN KEY (w) REFERENCES p (id)", False),
    ],
)  # fmt: skip
def test_partitions_and_indexes_show_if_a_table_has_a_late_ddls_effect(actions: str, included: bool) -> None:
    known = definition(
        sql="CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(9), w INT, KEY k (v)) "
        "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (9), PARTITION p1 VALUES LESS THAN (99))"
    )
    late = ddl(5, f"ALTER TABLE t {actions}")
    assert points(late, before=published(known)) == ({} if included else {"t": 5})


def overridden(now: PlanningInput, name: TableName = NAME) -> PlanningInput:
    """The window, after `table resume`."""
    state = now.before.tables[name]
    assert state.stop is not None
    resumed = replace(state, stop=replace(state.stop, needs_override=False))
    return replace(now, before=replace(now.before, tables={**now.before.tables, name: resumed}))


def arrives_late(late: DdlEvent, *others: DdlEvent) -> PlanningInput:
    """The window (20, 30], after one in which a DDL arrived late."""
    now = planning_input(known=KNOWN, state=STATE)
    points = late_ddl_points(replace(now.before, definitions=now.definitions), [late], [late, *others])
    now = after_window(replace(now, late_ddl_points=points), 30)
    return replace(now, window=replace(now.window, ddls=(late, *others)), late_ddl_points={})


@pytest.mark.parametrize("query", ["DROP TABLE t", "DROP DATABASE d"])
def test_a_late_drop_is_followed_only_once_the_table_is_resumed(query: str) -> None:
    """The next window followed it without the override."""
    now = arrives_late(ddl(8, query))
    assert (plan(now).through, needs_override(plan(now))) == (8, True)
    assert needs_override(plan(after_window(now, 40)))
    resumed = overridden(now)
    assert plan_tables(resumed).tables == ()
    assert [(each.dropped_at, each.stop) for each in plan_tables(resumed).recoverable] == [(8, None)]
    ended = arrives_late(ddl(8, query), ddl(25, query))
    assert plan_tables(ended).tables == (), "a new one ends a blocked table"


@pytest.mark.parametrize("query", ["RECOVER TABLE t", "FLASHBACK TABLE t TO t"])
def test_a_late_recover_does_not_promise_that_resume_restores_the_rows(query: str) -> None:
    """They are not known any more in the window after: resumed then, the table disappeared."""
    recover = ddl(8, query)
    now = planning_input()
    (point,) = late_ddl_points(now.before, [recover]).values()
    assert (point.tso, point.stop.ways_out) == (8, (WayOut.LOAD_EXPORT,))
    state = replace(STATE, stable_id="", version=-1, applied_tso=8, stop=replace(point.stop, needs_override=False))
    resumed = plan(planning_input(state=state, ddls=(recover,)))
    assert needs_override(resumed)
    assert "the rows of the restored table are unknown" in str(block_reason(resumed))


@pytest.mark.parametrize("again", ["CREATE TABLE t (id INT KEY)", "RENAME TABLE u TO t", "RECOVER TABLE t"])
def test_a_late_drop_of_a_table_that_was_made_again_since_is_not_followed(again: str) -> None:
    """Resumed, the table disappeared until its next row."""
    drop = ddl(5, "DROP TABLE t")
    assert points(drop, since=(drop, ddl(7, again))) == {"t": NO_EARLIER_STATE}
    assert points(drop, since=(drop, ddl(4, again), ddl(12, again))) == {"t": 5}
    assert points(ddl(5, "TRUNCATE TABLE t"), since=(ddl(7, again),)) == {"t": 5}
