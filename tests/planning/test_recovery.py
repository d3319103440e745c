"""Rows that come, go or change places without row messages: tables that come back, partitions that are exchanged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import (
    DATA,
    DDL_STOP,
    KNOWN,
    LATER,
    NAME,
    ROWS,
    STATE,
    UNFOLLOWED,
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

from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, Recoverable, TableState
from ticdc_lakehouse.planning.steps import ExchangeRows
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, restored
from ticdc_lakehouse.planning.window import BatchRange, DdlEvent
from ticdc_lakehouse.planning.window_plan import WindowPlan, plan_tables
from ticdc_lakehouse.policy import OnDrop, Policy
from ticdc_lakehouse.schema.names import TableName

DELETED = Recoverable(name=NAME, stable_id=DATA, version=4, dropped_at=9)
COLUMNS = "(id BIGINT PRIMARY KEY, v VARCHAR(9))"
PARTED = f"CREATE TABLE d.t {COLUMNS} PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (9))"
KEYED = f"CREATE TABLE d.t {COLUMNS} PARTITION BY KEY (id) PARTITIONS 4"
U = TableName("d", "u")
PLAIN = replace(definition(sql=f"CREATE TABLE d.u {COLUMNS}"), lake_name="f_d_u", stable_id="f_d_u__data")
OTHER_SIZE = replace(PLAIN, table=table(f"CREATE TABLE d.u {COLUMNS}".replace("9", "10")))
OTHER_KEY = replace(PLAIN, table=replace(PLAIN.table, key=("v",)))
EXCHANGED = "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u"


def dropped(
    *ddls: DdlEvent, gone: tuple[Recoverable, ...] = (DELETED,), config: GoldConfig | None = None
) -> PlanningInput:
    """A window before which the table was dropped."""
    now = planning_input(known=KNOWN, ddls=ddls, config=config)
    return replace(now, before=replace(now.before, recoverable=gone))


@pytest.mark.parametrize(
    ("query", "name"),
    [("RECOVER TABLE t", NAME), ("FLASHBACK TABLE T TO u", U)],
)
def test_dropped_table_comes_back_with_its_rows(query: str, name: TableName) -> None:
    now = dropped(ddl(12, query))
    now = replace(now, window=replace(now.window, rows={name: (replace(ROWS, first=15),)}))
    made = plan(now, name)
    assert (made.state and made.state.version, made.start, block_reason(made)) == (4, KNOWN, None)
    assert steps(made) == [("A", 12), ("M", 20)]
    assert [(each.definition.stable_id, each.definition.named_at) for each in made.new_definitions] == [(DATA, 12)]
    assert [(gone.dropped_at, gone.start) for gone in plan_tables(now).recoverable] == [(9, None)]


def test_a_table_that_came_back_hides_older_ones_of_its_former_name() -> None:
    """TiDB looks for the newest DROP of that name, whose table it finds again once it is dropped under another name."""
    older = replace(DELETED, stable_id="f_d_t__data_5", dropped_at=5)
    ddls = (ddl(12, "FLASHBACK TABLE t TO u"), ddl(13, "DROP TABLE u"), ddl(14, "FLASHBACK TABLE t TO w"))
    made = plan(dropped(*ddls, gone=(DELETED, older)), TableName("d", "w"))
    assert "rows of the restored table" in (block_reason(made) or "")


def test_a_table_that_comes_back_into_another_schema_has_no_rows_there() -> None:
    """The feed file got a ``gold.schema`` since the DROP, and no catalog moves a table."""
    now = dropped(ddl(12, "RECOVER TABLE t"))
    made = plan(replace(now, naming=replace(now.naming, template="{table}", schema_template="{database}")))
    assert (made.start, made.through, needs_override(made)) == (None, 12, True)
    assert "gold.schema gives the new name another schema" in (block_reason(made) or "")


def test_a_job_does_not_say_which_of_several_dropped_tables_comes_back() -> None:
    older = replace(DELETED, stable_id="f_d_t__data_5", dropped_at=5)
    by_job = ddl(12, "RECOVER TABLE BY JOB 105")
    assert plan(dropped(by_job)).state == replace(STATE, applied_tso=9)
    assert "rows of the restored table" in (block_reason(plan(dropped(by_job, gone=(DELETED, older)))) or "")


def test_rows_after_a_drop_without_a_create_are_of_a_table_with_older_rows() -> None:
    """Debezium sends no RECOVER TABLE (wire.md 8.8)."""
    now = dropped()
    now = replace(now, window=replace(now.window, rows={NAME: (ROWS,)}))
    made = plan(now)
    assert made.stop is not None
    assert (made.stop.kind, made.stop.commit_ts, needs_override(made)) == (StopKind.RESTORED, 9, True)
    assert (made.definition, steps(made), made.through) == (None, [], 9)
    assert "no CREATE TABLE came" in str(made.stop)


def test_a_restored_table_stays_blocked_when_it_is_resumed_and_until_it_is_created_again() -> None:
    now = dropped()
    stop = restored(9)
    resumed = TableState(
        lake_name="", stable_id="", version=-1, applied_tso=9, stop=replace(stop, needs_override=False)
    )
    now = replace(now, before=replace(now.before, tables={NAME: resumed}))
    now = replace(now, window=replace(now.window, rows={NAME: (ROWS,)}))
    assert plan(now).stop == stop
    anew = replace(now, window=replace(now.window, ddls=(ddl(14, f"CREATE TABLE t {COLUMNS}"),)))
    assert (plan(anew).stop, steps(plan(anew))) == (None, [("M", 20)])


def test_rows_after_a_drop_are_of_a_restored_table_in_the_window_of_the_drop() -> None:
    now = planning_input(LATER, known=KNOWN, state=STATE, ddls=(ddl(16, "DROP DATABASE d"),))
    made = plan(now)
    assert made.stop == restored(16)


def test_rows_of_its_name_in_between_are_another_table_s() -> None:
    """It was dropped, made anew, dropped again, and it is the first that is left to come back."""
    other = replace(ROWS, first=13, last=13)
    now = dropped(ddl(12, f"CREATE TABLE t {COLUMNS}"), ddl(14, "RENAME TABLE t TO u"), ddl(15, "RECOVER TABLE t"))
    now = replace(now, window=replace(now.window, rows={NAME: (other,)}))
    assert steps(plan(now)) == [("A", 15), ("M", 20)]
    assert steps(plan(now, U)) == [("M", 14), ("M", 20)]


def test_table_dropped_and_recovered_within_a_window_continues() -> None:
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(16, "DROP TABLE t"), ddl(18, "RECOVER TABLE t")))
    assert steps(plan(now)) == [("M", 16), ("A", 18), ("M", 20)]


def test_truncated_table_comes_back_beside_the_new_one() -> None:
    now = planning_input(
        ROWS, known=KNOWN, state=STATE, ddls=(ddl(16, "TRUNCATE TABLE t"), ddl(18, "FLASHBACK TABLE t TO u"))
    )
    assert plan(now).state is None
    assert plan(now, U).state == STATE


@pytest.mark.parametrize(
    ("gone", "restore", "name"),
    [("DROP TABLE t", "RECOVER TABLE t", NAME), ("TRUNCATE TABLE t", "FLASHBACK TABLE t TO u", U)],
)
def test_a_dropped_table_that_gold_never_saw_is_the_one_that_comes_back(
    gone: str, restore: str, name: TableName
) -> None:
    """It had the name of an older dropped table, whose rows are not its own."""
    ddls = (ddl(11, "RENAME TABLE e TO t"), ddl(12, gone), ddl(15, restore))
    made = plan(dropped(*ddls), name)
    assert (made.definition, made.through) == (None, 15)
    assert "the rows of the restored table are unknown" in str(made.stop)
    first = dropped(*ddls[:2])
    (unknown,) = [each for each in plan_tables(first).recoverable if each.dropped_at == 12]
    assert (unknown.stop is not None, unknown.start) == (True, None)


def test_a_kept_table_does_not_come_back_for_one_that_gold_never_saw() -> None:
    """``on_drop: keep``: the older table is still shown when the other one gets its name."""
    texts = ("DROP TABLE t", "RENAME TABLE e TO t", "DROP TABLE t", "RECOVER TABLE t")
    ddls = tuple(ddl(commit_ts, text) for commit_ts, text in enumerate(texts, 11))
    keep = GoldConfig(feed="f", time_zone="UTC", policy=lambda *_: Policy(on_drop=OnDrop.KEEP))
    made = plan(planning_input(known=KNOWN, state=STATE, ddls=ddls, config=keep))
    assert made.definition is None
    assert "the rows of the restored table are unknown" in str(made.stop)


def test_the_table_that_was_dropped_last_comes_back() -> None:
    older = replace(DELETED, stable_id="f_d_t__data_5", dropped_at=5)
    now = dropped(ddl(12, "RECOVER TABLE t"), gone=(DELETED, older))
    assert plan(now).state == replace(STATE, applied_tso=9)
    assert [each.dropped_at for each in plan_tables(now).recoverable] == [5, 9]


OLDER = replace(DELETED, stable_id="f_d_t__data_5", dropped_at=5)
FLASHBACK = ddl(18, "FLASHBACK TABLE t TO u")


def test_a_kept_table_that_the_filter_leaves_out_since_is_the_one_that_comes_back() -> None:
    """It is not shown any more, and TiDB dropped it last."""
    left_out = GoldConfig(feed="f", time_zone="UTC", matches=lambda _, table: table != "t")
    kept = replace(STATE, applied_tso=9, stop=StopReason(kind=StopKind.DROPPED, commit_ts=9, needs_override=True))
    for ddls, gone in (((), [(9, DATA), (5, None)]), ((FLASHBACK,), [(9, None), (5, None)])):
        now = dropped(*ddls, gone=(OLDER,), config=left_out)
        made = plan_tables(replace(now, before=replace(now.before, tables={NAME: kept})))
        known = [(each.dropped_at, each.start and each.start.stable_id) for each in made.recoverable]
        assert sorted(known, key=lambda each: each[0] or 0, reverse=True) == gone
        assert [(each.name, each.start, block_reason(each)) for each in made.tables] == [(U, KNOWN, None)][: len(ddls)]


def test_what_a_truncate_so_soon_after_an_export_removed_is_what_comes_back() -> None:
    """Gold does not know these rows: the export may be from after the TRUNCATE."""
    exported = replace(KNOWN, origin=Origin.EXPORT, commit_ts=10, named_at=10)
    now = planning_input(known=exported, state=STATE, ddls=(ddl(12, "TRUNCATE TABLE t"), FLASHBACK))
    definitions = {DATA: exported, OLDER.stable_id: replace(KNOWN, stable_id=OLDER.stable_id)}
    now = replace(now, before=replace(now.before, recoverable=(OLDER,)), definitions=definitions)
    made = plan(now, U)
    assert "the rows of the restored table are unknown" in (block_reason(made) or "")
    assert "taken seconds before" in (block_reason(plan(now)) or "")


def test_a_table_is_not_restored_to_a_name_that_another_one_has() -> None:
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, "RECOVER TABLE t"),))
    now = replace(now, before=replace(now.before, recoverable=(replace(DELETED, stable_id="f_d_t__data_5"),)))
    made = plan(now)
    assert "the table exists already" in (block_reason(made) or "")


@pytest.mark.parametrize("ending", ["DROP TABLE t", "TRUNCATE TABLE t"])
def test_table_that_was_blocked_does_not_come_back(ending: str) -> None:
    """Nor does an older one of its name."""
    state = replace(STATE, applied_tso=5, stop=DDL_STOP)
    now = planning_input(known=KNOWN, state=state, ddls=(ddl(15, ending), ddl(16, "FLASHBACK TABLE t TO u")))
    now = replace(now, before=replace(now.before, recoverable=(DELETED,)))
    assert "rows of the restored table" in (block_reason(plan(now, U)) or "")
    assert [each.dropped_at for each in plan_tables(now).recoverable] == [9, 15]
    again = replace(now, window=replace(now.window, ddls=now.window.ddls[:1] * 2))
    assert [each.dropped_at for each in plan_tables(again).recoverable] == [9, 15]


def test_table_that_was_blocked_in_an_earlier_window_is_not_recoverable() -> None:
    made = plan(dropped(ddl(12, "RECOVER TABLE t"), gone=(replace(DELETED, version=-1),)))
    assert "rows of the restored table" in (block_reason(made) or "")


def test_columns_that_are_not_known_are_no_better_known_after_a_truncate() -> None:
    ddls = (ddl(15, UNFOLLOWED), ddl(16, "TRUNCATE TABLE t"))
    made = plan(planning_input(ROWS, known=KNOWN, state=STATE, ddls=ddls))
    assert (made.state, made.through) == (STATE, 15)
    assert UNFOLLOWED in (block_reason(made) or "")


def test_truncate_removes_rows_that_could_not_be_merged() -> None:
    now = planning_input(replace(ROWS, handle_only=True), known=KNOWN, state=STATE, ddls=(ddl(16, "TRUNCATE TABLE t"),))
    assert (block_reason(plan(now)), plan(now).through) == (None, 20)
    assert [gone.start for gone in plan_tables(now).recoverable] == [None]


def test_nothing_is_remembered_in_mode_eventual() -> None:
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(16, "DROP TABLE t"),))
    assert plan_tables(replace(now, batches=BatchRange(after=None, through=0))).recoverable == ()


def test_kept_table_continues_when_it_is_recovered() -> None:
    config = GoldConfig(feed="f", time_zone="UTC", policy=lambda _database, _table: Policy(on_drop=OnDrop.KEEP))
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(16, "DROP TABLE t"),), config=config)
    kept = plan(now)
    assert (needs_override(kept), kept.dropped_at) == (True, None), "it is shown"
    state = replace(STATE, applied_tso=kept.through, stop=kept.stop)
    back = replace(now, before=Published(tso=20, tables={NAME: state}), tso=30)
    back = replace(back, window=replace(now.window, rows={}, ddls=(ddl(22, "RECOVER TABLE t"),)))
    assert (block_reason(plan(back)), plan(back).through) == (None, 30)
    assert needs_override(plan(replace(back, batches=BatchRange(after=None, through=0)))), (
        "in mode eventual nobody knows its rows"
    )
    anew = replace(back, window=replace(back.window, ddls=(ddl(22, "CREATE TABLE t (id BIGINT KEY)"),)))
    assert plan(anew).state is None
    assert [(block_reason(p), p.state) for p in plan_tables(anew).recoverable] == [(None, state)]


def test_kept_table_that_was_blocked_at_its_drop_continues_when_it_is_recovered() -> None:
    config = GoldConfig(feed="f", time_zone="UTC", policy=lambda _database, _table: Policy(on_drop=OnDrop.KEEP))
    stopped = planning_input(known=KNOWN, state=STATE, ddls=(ddl(16, "DROP TABLE t"),), config=config)
    stopped = replace(stopped, quarantine_points={NAME: quarantined(12)})
    (gone,) = plan_tables(stopped).recoverable
    assert (gone.start, gone.dropped_at) == (None, 16)
    state = replace(STATE, applied_tso=12, stop=plan(stopped).stop)
    unknown = Recoverable(name=NAME, stable_id="", version=-1, dropped_at=16)
    now = replace(stopped, before=Published(tso=20, tables={NAME: state}, recoverable=(unknown,)), quarantine_points={})
    assert block_reason(plan(replace(now, tso=30))) == "TiDB dropped it at 16 (on_drop: keep)"
    back = replace(now, window=replace(now.window, ddls=(*now.window.ddls, ddl(22, "RECOVER TABLE t"))), tso=30)
    assert (block_reason(plan(back)), plan(back).through) == (None, 30)


def test_dropped_table_is_not_recoverable_after_the_retention() -> None:
    day = 24 * 60 * 60 * 1000 << 18
    config = GoldConfig(feed="f", time_zone="UTC", retention_days=8)
    now = replace(dropped(ddl(8 * day, "RECOVER TABLE t"), config=config), tso=9 * day)
    assert "rows of the restored table" in (block_reason(plan(now)) or "")
    assert plan_tables(now).recoverable == ()


def exchange(sql: str = PARTED, plain: Definition = PLAIN, query: str = EXCHANGED, **more: object) -> PlanningInput:
    """The window (10, 20] of a partitioned table t and a plain one, u, whose rows they exchange at 17."""
    other = TableState(lake_name="f_d_u", stable_id=plain.stable_id, version=2, applied_tso=10)
    now = planning_input(ROWS, known=definition(sql=sql), state=STATE, ddls=(ddl(17, query),), **more)  # type: ignore[arg-type]
    return replace(
        now,
        before=replace(now.before, tables={NAME: STATE, U: other}),
        definitions={**now.definitions, plain.stable_id: plain},
        window=replace(now.window, rows={NAME: (ROWS, replace(ROWS, first=18)), U: (ROWS,)}),
    )


def test_exchange_partition_is_one_step_in_both_plans() -> None:
    now = exchange()
    partitioned, plain = plan(now), plan(now, U)
    step = partitioned.steps[1]
    assert isinstance(step, ExchangeRows)
    assert (step.partitioned, step.plain, step.part.high) == (DATA, PLAIN.stable_id, "9")
    assert plain.steps[1] == step
    assert [steps(each) for each in (partitioned, plain)] == [[("M", 17), ("E", 17), ("M", 20)]] * 2
    assert (block_reason(partitioned), block_reason(plain)) == (None, None)
    assert [[each.name for each in group] for group in plan_tables(now).groups()] == [[NAME, U]]


def test_row_from_before_an_exchange_is_not_put_into_the_other_table() -> None:
    made = plan(exchange())
    assert made.definition is not None
    late = replace(ROWS, first=15, replayed=True)
    changed = plan(planning_input(late, known=made.definition, state=replace(STATE, applied_tso=20)))
    assert "a later DDL changed" in (block_reason(changed) or "")


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (exchange(sql=KEYED), "is unknown"),
        (exchange(query=EXCHANGED.replace(" p ", " q ")), "has no partition q"),
        (exchange(plain=OTHER_SIZE), "not the same"),
        (exchange(plain=OTHER_KEY), "not the same"),
    ],
)
def test_an_exchange_that_fails_blocks_both_tables(now: PlanningInput, reason: str) -> None:
    for name in (NAME, U):
        made = plan(now, name)
        assert (made.through, needs_override(made)) == (17, True)
        assert reason in (block_reason(made) or "")


def test_exchange_in_mode_eventual_blocks_both_tables() -> None:
    """Its data tables have tombstones, which are of no partition."""
    now = replace(exchange(), batches=BatchRange(after=None, through=0))
    assert all("mode eventual" in (block_reason(plan(now, name)) or "") for name in (NAME, U))


def test_row_from_before_a_truncated_partition_is_not_put_in_again() -> None:
    made = plan(exchange(query="ALTER TABLE t TRUNCATE PARTITION p"))
    assert made.definition is not None
    late = replace(ROWS, first=15, replayed=True)
    changed = plan(planning_input(late, known=made.definition, state=replace(STATE, applied_tso=20)))
    assert "a later DDL changed" in (block_reason(changed) or "")


def test_chains_of_exchanges_are_one_group() -> None:
    now = exchange()
    groups = plan_tables(now).groups()
    step = plan(now).steps[1]
    assert isinstance(step, ExchangeRows)
    chained = replace(step, partitioned="f_d_w__data")
    (both,) = groups
    third = replace(both[0], name=TableName("d", "w"), steps=(chained,))
    apart = replace(both[0], name=TableName("d", "x"), steps=())
    found = WindowPlan(tables=(apart, third, *both), recoverable=()).groups()
    assert sorted([plan.name[1] for plan in group] for group in found) == [["w", "t", "u"], ["x"]]


def test_a_table_waits_for_the_other_one_of_its_exchange() -> None:
    """What keeps the other may go away by itself, so the next run tries again."""
    now = exchange(quarantined=quarantined(12))
    assert (plan(now).through, block_reason(plan(now))) == (12, "in quarantine")
    waiting = plan(now, U)
    assert (waiting.through, needs_override(waiting)) == (17, False)
    assert "the other table is blocked" in (block_reason(waiting) or "")


def caught_up(*ddls: DdlEvent) -> PlanningInput:
    """The window (20, 30], in which a table that was truncated at 18 while the other was blocked catches up with it."""
    now = exchange()
    waiting = replace(now.before.tables[U], applied_tso=17, stop=plan(exchange(quarantined=quarantined(12)), U).stop)
    tables = {NAME: replace(STATE, applied_tso=12, stop=quarantined(12).stop), U: waiting}
    gone = Recoverable(name=U, stable_id="", version=-1, dropped_at=18)
    window = replace(now.window, ddls=(*now.window.ddls, ddl(18, "TRUNCATE TABLE u", "u"), *ddls))
    return replace(now, before=Published(tso=20, tables=tables, recoverable=(gone,)), window=window, tso=30)


def test_a_truncated_table_that_catches_up_has_its_rows() -> None:
    """Without them the other table could not exchange its own."""
    now = caught_up()
    made = plan_tables(now)
    assert [(each.name, each.dropped_at, steps(each)) for each in made.recoverable] == [(U, 18, [("E", 17), ("M", 18)])]
    assert [{each.name for each in group} for group in made.groups()] == [{NAME, U}, {U}]
    assert [block_reason(each) for each in made.tables] == [None, None]
    came_back = ddl(19, "FLASHBACK TABLE u TO w", "u")
    assert [(each.name, each.start) for each in plan_tables(caught_up(came_back)).recoverable] == [(U, None)]


def test_an_exchange_that_one_table_skips_blocks_the_other_one() -> None:
    now = replace(exchange(), skipped=frozenset({(DATA, 17)}))
    assert block_reason(plan(now)) is None
    assert steps(plan(now)) == [("M", 17), ("M", 20)]
    assert "skips it" in (block_reason(plan(now, U)) or "")


def test_a_table_skips_an_exchange_also_while_the_other_one_is_blocked_by_rows() -> None:
    """It was blocked again, by a reason that no override removes, until those rows fit."""
    now = replace(exchange(quarantined=quarantined(12)), skipped=frozenset({(PLAIN.stable_id, 17)}))
    assert (block_reason(plan(now, U)), plan(now, U).through) == (None, 20)
    assert (block_reason(plan(now)), plan(now).through) == ("in quarantine", 12)
