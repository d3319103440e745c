"""What the feed file and people decide about tables that are dropped, or cannot follow their DDL; and late rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import (
    DATA,
    DDL_STOP,
    ID,
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
    planning_input,
    quarantined,
    steps,
)

from ticdc_codec.event import Column
from ticdc_lakehouse.planning.naming import NameInUse, Naming
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, Published
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.table_plan import AlterRows, MergeRows
from ticdc_lakehouse.planning.window import DdlEvent, RowGroup
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.policy import Mode, OnComputedDefault, OnDrop, OnHandleKeyOnly, OnUnsupportedDdl, Policy
from ticdc_lakehouse.schema.definition import PendingDefault
from ticdc_lakehouse.schema.effect import Added
from ticdc_lakehouse.schema.names import TableName

DROP = ddl(16, "DROP TABLE t")
CREATE = ddl(18, "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))")
LATER = replace(ROWS, first=19, last=19)
W = TableName("d", "w")


def config_of(policy: Policy) -> GoldConfig:
    """This policy for the table, the usual one for all others."""
    return GoldConfig(feed="f", time_zone="UTC", policy=lambda *name: policy if name == NAME else Policy())


KEEP = config_of(Policy(on_drop=OnDrop.KEEP))
IGNORE = config_of(Policy(on_unsupported_ddl=OnUnsupportedDdl.IGNORE))


@pytest.mark.parametrize("query", ["DROP TABLE t", "DROP DATABASE d"])
def test_kept_table_is_blocked_as_it_was_when_it_was_dropped(query: str) -> None:
    made = plan(planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(16, query),), config=KEEP))
    assert (made.through, needs_override(made), steps(made)) == (16, True, [("M", 16)])
    assert block_reason(made) == "TiDB dropped it at 16 (on_drop: keep)"


def test_a_table_that_is_kept_gives_way_to_another_of_its_name() -> None:
    now = planning_input(ROWS, LATER, known=KNOWN, state=STATE, ddls=(DROP, CREATE), config=KEEP)
    now.naming.history = lambda: [NameInUse(feed="f", table=NAME, name="f_d_t", data=DATA)]
    (made,) = plan_tables(now).tables
    assert (made.state, block_reason(made), made.through) == (None, None, 20)
    assert made.start is not None
    assert made.start.data == f"{DATA}_18"


def test_only_the_table_of_the_policy_is_kept() -> None:
    ddls = (ddl(12, "CREATE TABLE u (id INT)", "u"), ddl(16, "DROP TABLE u, t", None))
    now = planning_input(known=KNOWN, state=STATE, ddls=ddls, config=KEEP)
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
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(14, query),), config=IGNORE)
    made = plan(now)
    assert (made.through, block_reason(made), made.definition) == (20, None, KNOWN)
    assert block_reason(plan(replace(now, config=KEEP))) is not None


def test_an_ignored_ddl_does_not_keep_rows_that_do_not_fit() -> None:
    wider = replace(LATER, columns=(*ROWS.columns, replace(V, name="w")))
    made = plan(planning_input(ROWS, wider, known=KNOWN, state=STATE, ddls=(ddl(17, UNFOLLOWED),), config=IGNORE))
    assert (made.through, needs_override(made)) == (18, False)
    assert block_reason(made) is not None
    assert "lacks: w" in block_reason(made)


def test_a_ddl_that_can_be_followed_is_not_ignored() -> None:
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, "ALTER TABLE t DROP COLUMN v"),), config=IGNORE)
    assert steps(plan(now)) == [("M", 17), ("A", 17), ("M", 20)]


def skipping(commit_ts: int, data: str = DATA, query: str = UNFOLLOWED) -> PlanningInput:
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(14, query),))
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


KEYS = "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(9) NOT NULL, w INT, UNIQUE u (v), KEY (w))"
STORED = "ADD x INT AS (id) STORED"
"""Makes an ALTER TABLE one that is not followed."""


def after_skipping(query: str, policy: Policy | None = None) -> tuple[int, str | None]:
    """Where a table stops, and why, of which rows name v as their key after a DDL that is skipped."""
    columns = (replace(ID, key=False), replace(V, key=True), Column(name="w", type="int"))
    now = planning_input(
        replace(ROWS, columns=columns),
        known=definition(sql=KEYS),
        state=STATE,
        ddls=(ddl(14, query),),
        config=config_of(policy or Policy()),
    )
    made = plan(now if policy else replace(now, skipped=frozenset({(DATA, 14)})))
    return made.through, block_reason(made)


@pytest.mark.parametrize(
    "change",
    [
        "DROP PRIMARY KEY",
        "ADD UNIQUE (w)",
        "DROP INDEX U",
        "RENAME INDEX u TO z",
        "MODIFY V VARCHAR(9)",
        "CHANGE id id INT",
        "DROP COLUMN id",
        "RENAME COLUMN v TO w2",
    ],
)
def test_after_a_skipped_change_of_keys_rows_with_another_one_stop_the_table(change: str) -> None:
    """Each would be a second row: the other key may not be unique any more."""
    why = "the handle key of its rows was id and is v: `ticdc-lake load` an export taken since"
    assert after_skipping(f"ALTER TABLE t {change}, {STORED}") == (14, why)
    ignore = Policy(on_unsupported_ddl=OnUnsupportedDdl.IGNORE)
    assert after_skipping(f"ALTER TABLE t {change}, {STORED}", ignore) == (14, why)


@pytest.mark.parametrize("change", ["DROP INDEX w", "ADD KEY (v)", "MODIFY w BIGINT", "RENAME COLUMN w TO u"])
def test_other_skipped_changes_leave_the_keys_known(change: str) -> None:
    assert after_skipping(f"ALTER TABLE t {change}, {STORED}") == (20, None)


def test_a_table_that_is_blocked_before_a_skipped_ddl_keeps_its_definition() -> None:
    query = f"ALTER TABLE t DROP PRIMARY KEY, {STORED}"
    now = planning_input(known=KNOWN, state=STATE, ddls=(ddl(14, query),), hold=quarantined(12))
    made = plan(replace(now, skipped=frozenset({(DATA, 14)})))
    assert (made.through, made.definition) == (12, KNOWN)


def test_rename_to_an_existing_name_blocks_both_tables_until_it_is_skipped() -> None:
    other = replace(definition(), data="f_d_u__data", name="f_d_u", table=replace(KNOWN.table, table="u"))
    renamed = ddl(14, "RENAME TABLE u TO t", None)
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(renamed,))
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
def test_another_ddl_is_not_skipped(other: tuple[int, str]) -> None:
    made = plan(skipping(*other))
    assert (made.through, needs_override(made)) == (14, True)


def late(now: PlanningInput, tso: int) -> PlanningInput:
    return replace(now, late={NAME: late_point(tso)})


def test_late_rows_block_their_table_before_them() -> None:
    made = plan(late(planning_input(ROWS, known=KNOWN, state=STATE), 5))
    assert (made.through, block_reason(made), needs_override(made), made.steps) == (5, "came late", True, ())


def test_late_rows_of_a_table_that_gold_never_had_block_it_too() -> None:
    made = plan(late(planning_input(ROWS), 5))
    assert (made.through, block_reason(made), needs_override(made), made.steps) == (5, "came late", True, ())


def test_rows_that_came_before_a_ddl_cannot_be_read_again() -> None:
    known = replace(definition(7), source="ddl")
    made = plan(late(planning_input(ROWS, known=known, state=STATE), 5))
    assert (made.through, block_reason(made), needs_override(made)) == (10, "came late", True)


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
    assert "rows were replayed while it was blocked (unsupported DDL at 5" in (block_reason(made) or "")
    above = replace(replayed, first=9, last=9)
    made = plan(planning_input(above, known=KNOWN, state=replace(STATE, applied_tso=8, stop=DDL_STOP)))
    assert (made.through, made.stop) == (8, DDL_STOP)


def test_a_table_that_needs_an_export_keeps_its_reason() -> None:
    """Resumed from late rows it would be taken for a table without former rows, or for the one that a DDL means."""
    unknown = replace(STATE, data="", version=-1, applied_tso=6, stop=DDL_STOP)
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
    held = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(rename,), hold=quarantined(12))
    (stopped,) = plan_tables(held).tables
    assert (stopped.name, stopped.through, block_reason(stopped)) == (U, 12, "in quarantine")
    state = replace(STATE, name=stopped.view, applied_tso=12, stop=quarantined(12).stop)
    (made,) = plan_tables(
        replace(held, before=Published(tso=20, tables={stopped.name: state}), blocking_points={})
    ).tables
    assert (made.name, block_reason(made), steps(made)) == (U, None, [("M", 16), ("M", 20)])


def lagging(name: TableName, other: TableName, *ddls: DdlEvent) -> PlanningInput:
    """The window (10, 20] with a table that was blocked at 4 as ``t`` and is called ``name`` now, and with another one
    that was made at 8 under a name that the first one had between."""
    new = replace(
        definition(8, f"CREATE TABLE {other} (id BIGINT PRIMARY KEY, v VARCHAR(9))"), data="other", named_at=8
    )
    old = replace(STATE, applied_tso=4, stop=quarantined(4).stop)
    now = planning_input(
        known=KNOWN, ddls=(*ddls, ddl(8, f"CREATE TABLE {other} (id BIGINT PRIMARY KEY, v VARCHAR(9))"))
    )
    rows = {name: (LATER,), other: (replace(ROWS, first=9, last=9), LATER)}
    return replace(
        now,
        before=replace(now.before, tables={other: replace(STATE, name="f_other", data="other"), name: old}),
        known={DATA: KNOWN, "other": new},
        window=replace(now.window, rows=rows),
    )


def test_lagging_table_is_followed_through_a_name_that_another_table_has_since() -> None:
    now = lagging(W, U, ddl(5, "RENAME TABLE t TO u"), ddl(7, "RENAME TABLE u TO w"))
    made = {each.name: (each.definition and each.definition.data, steps(each)) for each in plan_tables(now).tables}
    assert made == {W: (DATA, [("M", 5), ("M", 7), ("M", 20)]), U: ("other", [("M", 20)])}
    assert [block_reason(each) for each in plan_tables(now).tables] == [None, None]


def test_lagging_table_leaves_a_name_that_another_table_has_since() -> None:
    now = lagging(U, NAME, ddl(5, "RENAME TABLE t TO u"))
    made = {each.name: (each.definition and each.definition.data, steps(each)) for each in plan_tables(now).tables}
    assert made == {U: (DATA, [("M", 5), ("M", 20)]), NAME: ("other", [("M", 20)])}
    rows = {NAME: now.window.rows[NAME]}
    ddls = (ddl(5, "DROP TABLE t"), *now.window.ddls[1:])
    dropped = replace(now, window=replace(now.window, rows=rows, ddls=ddls))
    assert [each.name for each in plan_tables(dropped).tables] == [NAME]


def test_rows_that_are_read_again_for_a_lagging_table_bring_no_table_back() -> None:
    """The table of these rows was itself blocked when TiDB dropped it, so that gold never had it under this name."""
    now = lagging(W, U, ddl(5, "RENAME TABLE t TO u"), ddl(7, "RENAME TABLE u TO w"))
    rows, ddls = {U: (replace(ROWS, first=9, last=9),)}, (*now.window.ddls, ddl(9, "DROP TABLE u"))
    now = replace(now, before=replace(now.before, tables={W: now.before.tables[W]}))
    now = replace(now, window=replace(now.window, rows=rows, ddls=ddls))
    assert [each.name for each in plan_tables(now).tables] == [W]


def test_rows_cut_to_their_handle_key_block_unless_they_are_read_or_null() -> None:
    cut = replace(ROWS, columns=(ID,), handle_only=True)
    blocked = plan(planning_input(cut, known=KNOWN, state=STATE))
    assert (blocked.through, needs_override(blocked)) == (14, False)
    assert "gold.on_handle_key_only" in (block_reason(blocked) or "")
    config = config_of(Policy(on_handle_key_only=OnHandleKeyOnly.NULL))
    made = plan(planning_input(cut, known=KNOWN, state=STATE, config=config))
    assert (block_reason(made), steps(made)) == (None, [("M", 20)])
    keyless = plan(planning_input(replace(cut, columns=(V,)), known=KNOWN, state=STATE, config=config))
    assert "rows lack columns of the table's definition: id" in (block_reason(keyless) or "")


OPEN = GoldConfig(feed="f", time_zone="UTC", flags_may_be_stale=True)
BYTES = "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARBINARY(9))"
UNFLAGGED = replace(ROWS, columns=(ID, replace(V, defect="open-flags")))
UNFLAGGED_KEY = replace(ROWS, columns=(ID, replace(V, defect="open-flags", key=True)))


def test_bytes_may_come_as_plain_texts_where_flags_are_missing() -> None:
    """wire.md 8.4: the definition knows that they are bytes."""
    flagged = replace(ROWS, columns=(ID, replace(V, type="varbinary")), first=12)
    made = plan(planning_input(flagged, UNFLAGGED, known=definition(sql=BYTES), state=STATE, config=OPEN))
    assert (block_reason(made), steps(made)) == (None, [("M", 20)])
    (rows,) = made.steps
    assert isinstance(rows, MergeRows)
    assert rows.plain_bytes == {"v": {"varchar"}}
    (rows,) = plan(planning_input(flagged, known=definition(sql=BYTES), state=STATE, config=OPEN)).steps
    assert isinstance(rows, MergeRows)
    assert rows.plain_bytes == {}


@pytest.mark.parametrize(
    ("group", "sql"),
    [
        (ROWS, BYTES),
        (UNFLAGGED, "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v INT)"),
        (UNFLAGGED_KEY, "CREATE TABLE d.t (id BIGINT, v VARBINARY(9), PRIMARY KEY (id, v))"),
    ],
)
def test_texts_that_are_no_bytes_for_certain_block_the_table(group: RowGroup, sql: str) -> None:
    made = plan(planning_input(group, known=definition(sql=sql), state=STATE, config=OPEN))
    assert "column v is" in (block_reason(made) or "")


ADD_CLOCK = ddl(14, "ALTER TABLE t ADD c DATETIME DEFAULT NOW()")
CLOCK = PendingDefault(name="c", since=14)


def pending(made: TablePlan) -> list[PendingDefault | None]:
    assert made.definition is not None
    return [column.pending for column in made.definition.table.columns]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(OnComputedDefault.LEARN, CLOCK), (OnComputedDefault.ESTIMATE, replace(CLOCK, estimated=True))],
)
def test_computed_default_is_followed_as_the_policy_says(policy: OnComputedDefault, expected: PendingDefault) -> None:
    config = config_of(Policy(on_computed_default=policy))
    made = plan(planning_input(known=KNOWN, state=STATE, ddls=(ADD_CLOCK,), config=config))
    assert (block_reason(made), pending(made)) == (None, [None, None, expected])
    (alter,) = (step for step in made.steps if isinstance(step, AlterRows))
    (added,) = alter.effects
    assert isinstance(added, Added)
    assert (added.value is None) == (policy is OnComputedDefault.LEARN)


def test_computed_default_may_block_the_table() -> None:
    config = config_of(Policy(on_computed_default=OnComputedDefault.BLOCK))
    made = plan(planning_input(known=KNOWN, state=STATE, ddls=(ADD_CLOCK,), config=config))
    assert (made.through, needs_override(made)) == (14, True)
    assert "DEFAULT NOW() is computed by TiDB" in (block_reason(made) or "")


def test_a_table_that_begins_empty_has_no_old_rows() -> None:
    ddls = (ADD_CLOCK, ddl(15, "CREATE TABLE u LIKE t", "u"), ddl(16, "TRUNCATE TABLE t"))
    now = planning_input(known=KNOWN, state=STATE, ddls=ddls)
    now.naming.history = lambda: [NameInUse(feed="f", table=NAME, name="f_d_t", data=DATA)]
    assert pending(plan(now)) == pending(plan(now, U)) == [None, None, None]
    restored = (ADD_CLOCK, ddl(15, "DROP TABLE t"), ddl(16, "RECOVER TABLE t"))
    assert pending(plan(planning_input(known=KNOWN, state=STATE, ddls=restored))) == [None, None, CLOCK]


WIDER = replace(ROWS, columns=(*ROWS.columns, Column(name="w", type="int")))
ADD_W = replace(ddl(5, "ALTER TABLE t ADD w INT DEFAULT 3"), replayed=True)
LACKING = StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail="rows have columns that the table's definition lacks: w")


def after_dismissal(*ddls: DdlEvent, known: Definition | None = KNOWN, stop: StopReason | None = LACKING) -> TablePlan:
    """The plan of a table that was blocked at 8, by rows after a DDL at 5 that was dismissed and is replayed."""
    state = replace(STATE, applied_tso=8, stop=stop, data=STATE.data if known else "", version=4 if known else -1)
    deleted = replace(ROWS, whole=False, first=7, last=7)
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


def test_a_dismissed_ddl_changes_nothing_that_went_on_without_it() -> None:
    """A table that later DDLs changed is not the one that the statement found; one that was dropped does not return."""
    assert "lacks: w" in (block_reason(after_dismissal(ADD_W, known=definition(7))) or "")
    assert after_dismissal(ADD_W, known=definition(7)).through == 8
    fitting = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ADD_W,))
    assert (block_reason(plan(fitting)), steps(plan(fitting))) == (None, [("M", 20)])
    assert plan_tables(planning_input(ddls=(replace(CREATE, commit_ts=5, replayed=True),))).tables == ()


EVENTUAL = GoldConfig(feed="f", time_zone="UTC", mode=Mode.EVENTUAL)
OLD = replace(ROWS, first=5, last=5)


def arriving(*groups: RowGroup, known: Definition | None = KNOWN, ddls: tuple[DdlEvent, ...] = ()) -> PlanningInput:
    """Rows of the eventual mode, of a table that was published under this definition."""
    state = None if known is None else STATE
    return replace(planning_input(*groups, known=known, state=state, ddls=ddls, config=EVENTUAL), batches=(3, 4))


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


def test_repeats_from_before_an_alter_table_are_not_merged_beside_new_rows() -> None:
    """The window has no group of them (``gold.window_reader``), and the MERGE reads the batches by itself."""
    made = plan(arriving(ROWS, known=replace(KNOWN, commit_ts=7)))
    assert [(step.after, step.through) for step in made.steps if isinstance(step, MergeRows)] == [(7, 20)]


def test_rows_under_a_former_name_are_missed_by_the_table_that_had_it() -> None:
    now = arriving(OLD)
    renamed = replace(KNOWN, table=replace(KNOWN.table, table="u"), named_at=7)
    now = replace(now, before=replace(now.before, tables={U: STATE}), known={DATA: renamed})
    now.naming.history = lambda: [NameInUse(feed="f", table=NAME, name="f_d_t", data=DATA)]
    (made,) = plan_tables(now).tables
    assert (made.name, needs_override(made)) == (U, True)
    assert block_reason(made) == "rows arrived late under the name that it had before, d.t"


def test_rows_of_a_table_that_is_gone_do_not_bring_it_back() -> None:
    now = arriving(OLD, known=None)
    now.naming.history = lambda: [NameInUse(feed="f", table=NAME, name="f_d_t", data=DATA)]
    assert plan_tables(now).tables == ()
    now = replace(now, naming=Naming(feed="f", history=list))
    assert [each.name for each in plan_tables(now).tables] == [NAME]


def coming_late(commit_ts: int, query: str, name: str = "t") -> DdlEvent:
    return replace(ddl(commit_ts, query, name), late=True)


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
