"""What the feed file and people decide about tables that are dropped, or cannot follow their DDL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from one_table import (
    CREATE,
    DATA,
    DROP,
    ID,
    KNOWN,
    LATER,
    NAME,
    ROWS,
    STATE,
    UNFOLLOWED,
    U,
    V,
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
from ticdc_codec.traits import ProtocolTraits
from ticdc_lakehouse.planning.naming import NameInUse
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.planning.steps import AlterRows, MergeRows
from ticdc_lakehouse.planning.window import BatchRange, RowGroup
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.policy import OnComputedDefault, OnDrop, OnHandleKeyOnly, OnUnsupportedDdl, Policy
from ticdc_lakehouse.schema.definition import PendingDefault
from ticdc_lakehouse.schema.effect import ColumnAdded


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
    now = with_names(now, NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA))
    (made,) = plan_tables(now).tables
    assert (made.state, block_reason(made), made.through) == (None, None, 20)
    assert made.start is not None
    assert made.start.stable_id == f"{DATA}_18"


@pytest.mark.parametrize("later", ["TRUNCATE TABLE t", "ALTER TABLE t ADD COLUMN q INT", "RENAME TABLE t TO u"])
@pytest.mark.parametrize("published", [False, True])
def test_a_table_that_is_kept_gives_way_to_one_that_gold_does_not_have(later: str, published: bool) -> None:
    """What follows under the name is not of the kept one."""
    ddls = (DROP, ddl(17, "RENAME TABLE x TO t"), ddl(18, later))
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=ddls, config=KEEP)
    if published:
        kept = plan(replace(now, window=replace(now.window, ddls=ddls[:1])))
        before = Published(tso=16, tables={NAME: replace(STATE, applied_tso=16, stop=kept.stop)})
        now = replace(now, before=before, window=replace(now.window, rows={}, ddls=ddls[1:]))
    made = plan_tables(now)
    assert made.tables == ()
    assert [(gone.name, gone.dropped_at) for gone in made.recoverable if gone.definition is not None] == [(NAME, 16)]


@pytest.mark.parametrize(
    "later", ["TRUNCATE TABLE t", "RENAME TABLE t TO u", "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u"]
)
@pytest.mark.parametrize("made", ["CREATE TABLE t (id BIGINT PRIMARY KEY) CHARACTER SET binary", "ALTER TABLE t ADD x"])
def test_a_table_that_is_kept_gives_way_where_a_ddl_cannot_be_read(made: str, later: str) -> None:
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(DROP, ddl(17, made), ddl(18, later)), config=KEEP)
    assert all(each.definition is None for each in plan_tables(now).tables)
    assert DATA in {gone.definition.stable_id for gone in plan_tables(now).recoverable if gone.definition}


def test_a_kept_table_that_is_restored_in_eventual_mode_is_blocked() -> None:
    """By rows alone, too: Debezium sends no RECOVER."""
    batches = BatchRange(after=None, through=0)
    now = replace(planning_input(ROWS, known=KNOWN, state=STATE, ddls=(DROP,), config=KEEP), batches=batches)
    assert block_reason(plan(now)) == "TiDB dropped it at 16 (on_drop: keep)"
    rows = {NAME: (ROWS, LATER)}
    restored = replace(now, window=replace(now.window, rows=rows))
    assert "its rows continue after TiDB dropped it at 16" in (block_reason(plan(restored)) or "")
    ddls = (DROP, ddl(17, "RECOVER TABLE t"))
    restored = replace(now, window=replace(now.window, rows=rows, ddls=ddls))
    assert "the rows of the restored table are unknown" in (block_reason(plan(restored)) or "")


@pytest.mark.parametrize("query", ["RECOVER TABLE t", "CREATE TABLE t AS SELECT 1"])
def test_a_ddl_without_which_rows_are_missing_is_not_ignored(query: str) -> None:
    made = plan(planning_input(LATER, ddls=(ddl(16, query),), config=IGNORE))
    assert (made.definition, made.through, needs_override(made)) == (None, 16, True)


def test_a_table_that_is_kept_leaves_gold_when_it_is_restored_to_a_name_that_the_filter_excludes() -> None:
    ddls = (DROP, ddl(17, "FLASHBACK TABLE t TO u"), ddl(18, "DROP TABLE u"), ddl(19, "RECOVER TABLE t"))
    excludes = replace(KEEP, matches=lambda _, table: table != "u")
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=ddls, config=excludes)
    assert plan_tables(replace(now, window=replace(now.window, ddls=ddls[:2]))).tables == ()
    made = plan(now)
    assert made.definition is None
    assert "the rows of the restored table are unknown" in (block_reason(made) or "")


def test_a_table_that_is_kept_gives_way_to_a_rename_at_the_end_of_the_window() -> None:
    """The RENAME does not wait for one of the kept table, as it would for one of a table that is there."""
    ddls = (ddl(12, "CREATE TABLE u (id INT KEY)", "u"), DROP, ddl(20, "RENAME TABLE u TO t"))
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=ddls, config=KEEP)
    now = with_names(now, NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA))
    (made,) = plan_tables(now).tables
    assert (made.name, made.state, block_reason(made), made.through) == (NAME, None, None, now.tso)


@pytest.mark.parametrize("published", [False, True])
def test_a_table_that_is_kept_gives_way_to_rows_that_come_after_its_drop(published: bool) -> None:
    """TiDB restored it by a DDL that was not sent, and what it shows is no longer all of it."""
    now = planning_input(ROWS, *([] if published else [LATER]), known=KNOWN, state=STATE, ddls=(DROP,), config=KEEP)
    if published:
        rows = {NAME: (replace(LATER, first=25, last=25),)}
        kept = Published(tso=20, tables={NAME: replace(STATE, applied_tso=16, stop=plan(now).stop)})
        now = replace(now, before=kept, window=replace(now.window, rows=rows, ddls=()), tso=30)
    made = plan(now)
    assert (made.start, made.through, needs_override(made)) == (None, 16, True)
    assert "its rows continue after TiDB dropped it at 16" in (block_reason(made) or "")
    assert [(gone.dropped_at, gone.stop) for gone in plan_tables(now).recoverable] == [(16, None)]
    assert plan_tables(replace(now, batches=BatchRange(after=None, through=0))).recoverable == ()


def test_a_table_that_is_kept_was_dropped_once() -> None:
    """Also where its database goes later."""
    ddls = (DROP, ddl(18, "DROP DATABASE d"))
    made = plan(planning_input(ROWS, known=KNOWN, state=STATE, ddls=ddls, config=KEEP))
    assert (made.through, block_reason(made)) == (16, "TiDB dropped it at 16 (on_drop: keep)")


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


@pytest.mark.parametrize("resumed", [False, True])
def test_a_table_that_is_blocked_already_continues_by_another_policy_once_it_is_resumed(resumed: bool) -> None:
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(14, UNFOLLOWED),))
    blocked = plan(now)
    assert blocked.stop
    assert "gold.on_unsupported_ddl: ignore, and `ticdc-lake table resume`" in str(blocked.stop)
    stop = replace(blocked.stop, needs_override=not resumed)
    state = replace(STATE, applied_tso=blocked.through, stop=stop)
    made = plan(planning_input(ROWS, known=KNOWN, state=state, ddls=(ddl(14, UNFOLLOWED),), config=IGNORE))
    assert (made.through, made.stop) == ((20, None) if resumed else (blocked.through, stop))


def test_a_first_key_that_is_ignored_blocks_the_table_at_its_first_row() -> None:
    keyless = definition(sql="CREATE TABLE d.t (id BIGINT NOT NULL, v VARCHAR(9))")
    first_key = ddl(11, "ALTER TABLE t ADD PRIMARY KEY (id)")
    made = plan(planning_input(ROWS, known=keyless, state=STATE, ddls=(first_key,), config=IGNORE))
    assert made.through == ROWS.first - 1
    assert "handle key of its rows" in (block_reason(made) or "")


def test_an_ignored_ddl_does_not_keep_rows_that_do_not_fit() -> None:
    wider = replace(LATER, columns=(*ROWS.columns, replace(V, name="w")))
    made = plan(planning_input(ROWS, wider, known=KNOWN, state=STATE, ddls=(ddl(17, UNFOLLOWED),), config=IGNORE))
    assert (made.through, needs_override(made)) == (18, False)
    assert block_reason(made) is not None
    assert "lacks: w" in block_reason(made)


def test_an_ignored_ddl_of_a_table_in_quarantine_hides_none_that_was_done() -> None:
    """It would be done again after the replay."""
    done = ddl(12, "ALTER TABLE t RENAME COLUMN v TO w")
    ddls = (done, ddl(15, "ALTER TABLE t SOME NEW THING"))
    made = plan(planning_input(known=KNOWN, state=STATE, ddls=ddls, quarantined=quarantined(12), config=IGNORE))
    assert (made.through, made.ddls) == (12, (done.query,))


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
    why = "the handle key of its rows was id and is v; ways out: `ticdc-lake load` continues from an export taken since"
    assert after_skipping(f"ALTER TABLE t {change}, {STORED}") == (14, why)
    ignore = Policy(on_unsupported_ddl=OnUnsupportedDdl.IGNORE)
    assert after_skipping(f"ALTER TABLE t {change}, {STORED}", ignore) == (14, why)


@pytest.mark.parametrize("change", ["DROP INDEX w", "ADD KEY (v)", "MODIFY w BIGINT", "RENAME COLUMN w TO u"])
def test_other_skipped_changes_leave_the_keys_known(change: str) -> None:
    assert after_skipping(f"ALTER TABLE t {change}, {STORED}") == (20, None)


def skipping_names(change: str, by: str = "index", *, key: bool = False) -> TablePlan:
    """The plan of a table, with rows before and after an ALTER TABLE of its ENUM that is skipped."""
    sql = f"CREATE TABLE d.t (id BIGINT, v ENUM('a','b'), PRIMARY KEY (id{', v' if key else ''}))"
    rows = replace(ROWS, columns=(ID, Column(name="v", type="enum", by=by, key=key)), first=12, last=12)
    known, ddls = definition(sql=sql), (ddl(14, f"ALTER TABLE t {change}"),)
    now = planning_input(rows, replace(rows, first=16, last=16), known=known, state=STATE, ddls=ddls)
    return plan(replace(now, skipped=frozenset({(DATA, 14)})))


@pytest.mark.parametrize(
    ("change", "by", "after"),
    [
        ("MODIFY V ENUM('b','a')", "index", ("b", "a")),
        ("CHANGE v v ENUM('x','a','b') FIRST", "index", ("x", "a", "b")),
        ("ADD v ENUM('b','a')", "index", ("b", "a")),
        ("MODIFY v ENUM('b','a')", "name", ("a", "b")),
        ("MODIFY v VARCHAR(9)", "index", ("a", "b")),
        (STORED, "index", ("a", "b")),
    ],
)
def test_after_a_skipped_change_of_names_numbers_have_the_new_ones(
    change: str, by: str, after: tuple[str, ...]
) -> None:
    """Messages have the numbers alone, so nothing else would show it."""
    made = skipping_names(change, by)
    merged = [step.table.columns[1].type.elements for step in made.steps if isinstance(step, MergeRows)]
    assert (made.through, block_reason(made), merged) == (20, None, [("a", "b"), after])


def test_a_change_of_names_in_a_key_cannot_be_skipped() -> None:
    """Stored keys have the numbers of the former names: a row that comes again would be a second one."""
    made = skipping_names("MODIFY v ENUM('b','a')", key=True)
    assert (made.through, needs_override(made)) == (14, True)
    assert "key column `v`: its numbers get other names" in (block_reason(made) or "")
    assert "skip-ddl" not in (block_reason(made) or "")


@pytest.mark.parametrize(
    ("kind", "change", "through"),
    [
        ("unknown", "MODIFY v DATETIME(3)", 14),
        ("unknown", "CHANGE v v DATETIME(6) NOT NULL", 20),
        ("unknown", STORED, 20),
        ("datetime", "MODIFY v DATETIME(3)", 20),
    ],
)
def test_a_change_of_a_type_that_messages_do_not_declare_cannot_be_skipped(
    kind: str, change: str, through: int
) -> None:
    """Milliseconds would be read as microseconds."""
    rows = replace(ROWS, columns=(ID, Column(name="v", type=kind)), first=12, last=12)
    known = definition(sql="CREATE TABLE d.t (id BIGINT PRIMARY KEY, v DATETIME(6))")
    now = planning_input(
        rows, replace(rows, first=16, last=16), known=known, state=STATE, ddls=(ddl(14, f"ALTER TABLE t {change}"),)
    )
    made = plan(replace(now, skipped=frozenset({(DATA, 14)})))
    assert made.through == through
    assert ("column `v` gets another type" in (block_reason(made) or "")) is (through == 14)


def test_a_table_that_is_blocked_before_a_skipped_ddl_keeps_its_definition() -> None:
    query = f"ALTER TABLE t DROP PRIMARY KEY, {STORED}"
    now = planning_input(known=KNOWN, state=STATE, ddls=(ddl(14, query),), quarantined=quarantined(12))
    made = plan(replace(now, skipped=frozenset({(DATA, 14)})))
    assert (made.through, made.definition) == (12, KNOWN)


def test_rename_to_an_existing_name_blocks_both_tables_until_it_is_skipped() -> None:
    other = replace(definition(), stable_id="f_d_u__data", lake_name="f_d_u", table=replace(KNOWN.table, table="u"))
    renamed = ddl(14, "RENAME TABLE u TO t", None)
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(renamed,))
    tables = {**now.before.tables, U: replace(STATE, lake_name=other.lake_name, stable_id=other.stable_id)}
    now = replace(
        now, before=replace(now.before, tables=tables), definitions={**now.definitions, other.stable_id: other}
    )
    stopped = {
        made.name[1]: (made.through, needs_override(made), block_reason(made) or "") for made in plan_tables(now).tables
    }
    assert stopped.keys() == {"t", "u"}
    assert all((through, final) == (14, True) for through, final, _ in stopped.values())
    ways = "`ticdc-lake load` continues from an export taken since; `ticdc-lake table skip-ddl` skips it"
    assert f"the table exists already: RENAME TABLE u TO t; ways out: {ways}" in stopped["t"][2]
    assert f"table d.t exists already: RENAME TABLE u TO t; ways out: {ways}" in stopped["u"][2]
    skipped = replace(now, skipped=frozenset({(DATA, 14), (other.stable_id, 14)}))
    assert [(made.name[1], made.through, block_reason(made)) for made in plan_tables(skipped).tables] == [
        ("t", 20, None),
        ("u", 20, None),
    ]


@pytest.mark.parametrize("other", [(13, DATA), (14, "f_d_t__data_9")])
def test_another_ddl_is_not_skipped(other: tuple[int, str]) -> None:
    made = plan(skipping(*other))
    assert (made.through, needs_override(made)) == (14, True)


def test_rows_cut_to_their_handle_key_block_unless_they_are_read_or_null() -> None:
    cut = replace(ROWS, columns=(ID,), handle_only=True)
    blocked = plan(planning_input(cut, known=KNOWN, state=STATE))
    assert (blocked.through, needs_override(blocked)) == (14, False)
    assert "gold.on_handle_key_only" in (block_reason(blocked) or "")
    config = config_of(Policy(on_handle_key_only=OnHandleKeyOnly.NULL))
    made = plan(planning_input(cut, known=KNOWN, state=STATE, config=config))
    assert (block_reason(made), steps(made)) == (None, [("M", 20)])
    assert [step.has_cut_rows for step in made.steps if isinstance(step, MergeRows)] == [True]
    keyless = plan(planning_input(replace(cut, columns=(V,)), known=KNOWN, state=STATE, config=config))
    assert "its rows name no handle key" in (block_reason(keyless) or "")


OPEN = GoldConfig(feed="f", time_zone="UTC", traits=ProtocolTraits(flags_may_be_stale=True))
BYTES = "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARBINARY(9))"
UNFLAGGED = replace(ROWS, columns=(ID, replace(V, defect="open-flags")))
UNFLAGGED_KEY = replace(ROWS, columns=(ID, replace(V, defect="open-flags", key=True)))


@pytest.mark.parametrize("missing", [{"defect": "open-flags"}, {"flags": 0}], ids=["of a partition", "of a table"])
def test_bytes_may_come_as_plain_texts_where_flags_are_missing(missing: dict[str, Any]) -> None:
    """wire.md 8.4: the definition knows that they are bytes. Without partitions only the definition does."""
    unflagged = replace(ROWS, columns=(ID, replace(V, **missing)))
    flagged = replace(ROWS, columns=(ID, replace(V, type="varbinary")), first=12)
    made = plan(planning_input(flagged, unflagged, known=definition(sql=BYTES), state=STATE, config=OPEN))
    assert (block_reason(made), steps(made)) == (None, [("M", 20)])
    (rows,) = made.steps
    assert isinstance(rows, MergeRows)
    assert rows.misread == {"v": {"varchar"}}
    (rows,) = plan(planning_input(flagged, known=definition(sql=BYTES), state=STATE, config=OPEN)).steps
    assert isinstance(rows, MergeRows)
    assert rows.misread == {}


@pytest.mark.parametrize(
    ("group", "sql"),
    [
        (ROWS, BYTES),
        (replace(ROWS, columns=(ID, replace(V, flags=64))), BYTES),
        (UNFLAGGED, "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v INT)"),
    ],
)
def test_texts_that_are_no_bytes_for_certain_block_the_table(group: RowGroup, sql: str) -> None:
    made = plan(planning_input(group, known=definition(sql=sql), state=STATE, config=OPEN))
    assert "column v is" in (block_reason(made) or "")


def test_a_key_of_bytes_that_came_as_texts_is_made_from_the_definition() -> None:
    known = definition(sql="CREATE TABLE d.t (id BIGINT, v VARBINARY(9), PRIMARY KEY (id, v))")
    (rows,) = plan(planning_input(UNFLAGGED_KEY, known=known, state=STATE, config=OPEN)).steps
    assert isinstance(rows, MergeRows)
    assert (rows.misread, rows.wire_keys) == ({"v": {"varchar"}}, False)


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
    assert isinstance(added, ColumnAdded)
    assert (added.value is None) == (policy is OnComputedDefault.LEARN)


def test_computed_default_may_block_the_table() -> None:
    config = config_of(Policy(on_computed_default=OnComputedDefault.BLOCK))
    made = plan(planning_input(known=KNOWN, state=STATE, ddls=(ADD_CLOCK,), config=config))
    assert (made.through, needs_override(made)) == (14, True)
    assert "DEFAULT NOW() is computed by TiDB" in (block_reason(made) or "")


def test_a_table_that_begins_empty_has_no_old_rows() -> None:
    ddls = (ADD_CLOCK, ddl(15, "CREATE TABLE u LIKE t", "u"), ddl(16, "TRUNCATE TABLE t"))
    now = planning_input(known=KNOWN, state=STATE, ddls=ddls)
    now = with_names(now, NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA))
    assert pending(plan(now)) == pending(plan(now, U)) == [None, None, None]
    restored = (ADD_CLOCK, ddl(15, "DROP TABLE t"), ddl(16, "RECOVER TABLE t"))
    assert pending(plan(planning_input(known=KNOWN, state=STATE, ddls=restored))) == [None, None, CLOCK]


CREATE_KEYED = ddl(12, "CREATE TABLE u (id BIGINT, PRIMARY KEY (id) NONCLUSTERED)", "u")
ADD_KEY = "DROP PRIMARY KEY, ADD PRIMARY KEY (id, c)"


@pytest.mark.parametrize("policy", OnComputedDefault)
@pytest.mark.parametrize(
    "added", [["ADD c DATETIME NOT NULL DEFAULT NOW()", ADD_KEY], [f"ADD c DATETIME NOT NULL DEFAULT NOW(), {ADD_KEY}"]]
)
def test_column_that_an_empty_table_gets_is_not_pending(policy: OnComputedDefault, added: list[str]) -> None:
    """No row waits for its value, so it may become a part of the key."""
    config = config_of(Policy(on_computed_default=policy))
    ddls = (CREATE_KEYED, *(ddl(14 + at, f"ALTER TABLE u {text}", "u") for at, text in enumerate(added)))
    now = planning_input(known=KNOWN, state=STATE, ddls=ddls, config=config)
    made = plan(now, U)
    assert (block_reason(made), pending(made)) == (None, [None, None])
    assert made.definition is not None
    assert made.definition.table.key == ("id", "c")
    assert made.definition.table.columns[1].origin_default == "of 14", "EXCHANGE compares it with another table's"


def test_column_that_a_table_gets_after_its_first_row_is_pending() -> None:
    rows = replace(ROWS, name=U, columns=(ID,), first=13, last=13)
    ddls = (CREATE_KEYED, ddl(14, "ALTER TABLE u ADD c DATETIME DEFAULT NOW()", "u"))
    now = planning_input(ddls=ddls)
    assert pending(plan(replace(now, window=replace(now.window, rows={U: (rows,)})), U)) == [None, CLOCK]
    assert pending(plan(replace(now, batches=BatchRange(after=3, through=4)), U)) == [None, CLOCK], "it may come later"
