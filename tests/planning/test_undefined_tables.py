"""Tables without columns: whose rows tell them, and which stay blocked because nobody can tell their former rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import (
    DATA,
    ID,
    KNOWN,
    NAME,
    ROWS,
    STATE,
    V,
    block_reason,
    ddl,
    late_point,
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
from ticdc_lakehouse.planning.published_state import Published, Recoverable, TableState
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import BatchRange, DdlEvent, RowGroup
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.schema.names import TableName

U, TMP = TableName("d", "u"), TableName("d", "tmp")
LIKE = ddl(12, "CREATE TABLE t LIKE nobody")
RENAME = ddl(16, "RENAME TABLE t TO u")
RECOVER = ddl(20, "RECOVER TABLE t")


def group(name: TableName, at: int) -> RowGroup:
    return replace(ROWS, name=name, first=at, last=at)


def window(
    *ddls: DdlEvent, rows: tuple[RowGroup, ...] = (), tables: dict[TableName, TableState] | None = None
) -> PlanningInput:
    now = planning_input(ddls=ddls)
    by_name = {name: tuple(each for each in rows if each.name == name) for name in {each.name for each in rows}}
    return replace(now, before=replace(now.before, tables=tables or {}), window=replace(now.window, rows=by_name))


def published(made: TablePlan, *, resumed: bool = False) -> TableState:
    assert made.stop
    stop = replace(made.stop, needs_override=made.stop.needs_override and not resumed)
    return TableState(lake_name="", stable_id="", version=-1, applied_tso=made.through, ddls=made.ddls, stop=stop)


def following(
    now: PlanningInput, *made: TablePlan, resumed: bool = False, rows: tuple[RowGroup, ...] = ()
) -> PlanningInput:
    """The window up to 30, in which all DDLs are read again."""
    tables = {each.name: published(each, resumed=resumed) for each in made}
    by_name = {**now.window.rows, **window(rows=rows).window.rows}
    return replace(now, before=Published(tso=20, tables=tables), window=replace(now.window, rows=by_name), tso=30)


def merged(made: TablePlan) -> list[RowGroup]:
    return [each for step in made.steps if isinstance(step, MergeRows) for each in step.groups]


def test_rows_tell_the_columns_of_a_new_table() -> None:
    made = plan(window(LIKE, rows=(group(NAME, 15),)))
    assert (block_reason(made), merged(made)) == (None, [group(NAME, 15)])


@pytest.mark.parametrize("published", [False, True])
def test_rows_of_a_reused_name_are_of_the_table_that_had_it(published: bool) -> None:
    """A RENAME gave it to a table that gold did not know."""
    create = ddl(11, "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))")
    ddls = RENAME, ddl(16, "RENAME TABLE idle TO t")
    now = window(*(ddls if published else (create, *ddls)), rows=(group(NAME, 15), group(NAME, 18), group(U, 19)))
    if published:
        now = replace(now, before=replace(now.before, tables={NAME: STATE}), definitions={DATA: KNOWN})
    assert (merged(plan(now, U)), merged(plan(now))) == ([group(NAME, 15), group(U, 19)], [group(NAME, 18)])
    made = plan(now)
    assert made.definition is not None
    assert (made.definition.origin, made.definition.named_at) == ("wire", 16)
    assert [each.after for each in made.steps if isinstance(each, MergeRows)] == [16]
    new = plan(window(rows=(group(NAME, 15),)))
    assert new.definition is not None
    assert (new.definition.named_at, [each.after for each in new.steps if isinstance(each, MergeRows)]) == (0, [10])


def test_a_name_that_a_table_had_before_the_window_is_reused_from_its_rows_on() -> None:
    """Replayed rows from before are of the other one. In mode eventual earlier rows may come later."""
    now = window(rows=(group(NAME, 15),))
    for batches, named_at in ((None, 14), (BatchRange(after=3, through=4), 0)):
        before = NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA)
        made = plan(with_names(replace(now, batches=batches), before))
        assert made.definition is not None
        assert made.definition.named_at == named_at


def test_schema_file_does_not_describe_the_next_table_of_a_name() -> None:
    """Its ENUM may have other names, and rows have only the numbers."""
    config = GoldConfig(feed="f", time_zone="UTC", tables=(KNOWN.table,))
    swap = ddl(16, "RENAME TABLE t TO u, idle TO t")
    now = replace(window(swap, rows=(group(NAME, 18), group(U, 19))), config=config)
    now = replace(now, before=replace(now.before, tso=0))
    for made, origin in ((plan(now, U), "file"), (plan(now), "wire")):
        assert made.start is not None
        assert (made.start.origin, block_reason(made)) == (origin, None)
    later = replace(window(rows=(group(NAME, 15),)), config=config)
    assert [each.start and each.start.origin for each in plan_tables(later).tables] == ["file"]
    before = NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA)
    later = with_names(later, before)
    assert [each.start and each.start.origin for each in plan_tables(later).tables] == ["wire"]


def test_a_primary_key_of_an_unknown_table_shows_that_its_rows_were_not_sent() -> None:
    made = plan(window(ddl(14, "ALTER TABLE t ADD PRIMARY KEY (id)"), rows=(group(NAME, 15),)))
    assert (made.through, needs_override(made), steps(made)) == (14, True, [])
    assert "its earlier rows are unknown" in (block_reason(made) or "")
    assert "skip-ddl" not in (block_reason(made) or "")


@pytest.mark.parametrize(
    "altered",
    [
        ddl(14, "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id)"),
        ddl(14, "ALTER TABLE t ADD UNIQUE KEY (id)"),
        replace(ddl(14, "ALTER TABLE t ADD PRIMARY KEY (id)"), out_of_order=True),
        ddl(9, "ALTER TABLE t ADD PRIMARY KEY (id)"),
    ],
)
def test_other_changes_of_an_unknown_table_leave_its_rows_to_tell_it(altered: DdlEvent) -> None:
    """One that came late, or is read again for another table, may be of a table that is gone."""
    made = plan(window(altered, rows=(group(NAME, 15),)))
    assert (block_reason(made), merged(made)) == (None, [group(NAME, 15)])


def test_table_that_awaits_rows_keeps_those_under_its_former_name() -> None:
    """And takes none of a table that had its new name before."""
    rows = group(U, 11), group(NAME, 15), group(U, 18)
    made = plan(window(ddl(10, "CREATE TABLE u (id BIGINT KEY)"), LIKE, ddl(14, "DROP TABLE u"), RENAME, rows=rows), U)
    assert (block_reason(made), merged(made)) == (None, [*rows[1:]])


def test_table_that_awaits_rows_is_renamed_and_altered_meanwhile() -> None:
    now = window(LIKE, ddl(14, "ALTER TABLE t ADD w INT"), RENAME)
    waiting = plan(now, U)
    assert waiting.stop
    assert (waiting.stop.kind, waiting.through, needs_override(waiting)) == (StopKind.AWAITS_ROWS, 16, False)
    again = plan(following(now, waiting, rows=(group(U, 15), group(U, 25))), U)
    assert (block_reason(again), merged(again)) == (None, [group(U, 25)])


def test_truncated_table_without_columns_has_the_rows_since() -> None:
    cut = replace(group(NAME, 15), handle_only=True)
    made = plan(window(LIKE, ddl(16, "TRUNCATE TABLE t"), rows=(cut, group(NAME, 18))))
    assert (block_reason(made), merged(made)) == (None, [group(NAME, 18)])


@pytest.mark.parametrize("swap", ["RENAME TABLE t TO u, idle TO t", "RENAME TABLE t TO tmp, idle TO t, tmp TO u"])
def test_a_table_that_took_a_name_and_shows_only_deletes_keeps_it(swap: str) -> None:
    """The window after reads the RENAME again, since the table is not complete."""
    state = TableState(lake_name="f_d_t", stable_id=DATA, version=4, applied_tso=10)
    deleted = replace(group(NAME, 17), is_upsert=False)
    now = replace(window(ddl(14, swap), rows=(deleted,)), definitions={DATA: KNOWN})
    now = replace(now, before=replace(now.before, tables={NAME: state}))
    now = with_names(now, NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA))
    made = plan_tables(now).tables
    assert [(each.name, each.definition is None) for each in made] == [(NAME, True), (U, False)]
    again = following(now, made[0])
    kept = replace(state, lake_name="f_d_u", applied_tso=20)
    moved = {stable_id: each.definition for each in made if each.definition for stable_id in [DATA]}
    again = replace(again, before=replace(again.before, tables={**again.before.tables, U: kept}), definitions=moved)
    assert [(each.name, each.definition is None) for each in plan_tables(again).tables] == [(NAME, True), (U, False)]


C = Column(name="c", type="int")
GONE = replace(group(NAME, 12), is_upsert=False)


def test_deletes_before_a_ddl_do_not_block_a_table_that_gold_does_not_have() -> None:
    """Gold never had their rows. The rows after the DDL do not tell the columns that it changes."""
    add, row = ddl(14, "ALTER TABLE t ADD COLUMN c INT"), replace(group(NAME, 16), columns=(*ROWS.columns, C))
    made = plan(window(add, rows=(GONE, row)))
    assert (block_reason(made), merged(made)) == (None, [row])
    assert made.definition is not None
    assert [column.name for column in made.definition.table.columns] == ["id", "v", "c"]


@pytest.mark.parametrize("query", ["ALTER TABLE t ADD COLUMN c INT", "ALTER TABLE t COMMENT 'c'"])
def test_deletes_of_an_earlier_window_do_not_block_a_table_for_good(query: str) -> None:
    now = window(rows=(GONE,))
    waiting = plan(now)
    assert ("columns are unknown" in (block_reason(waiting) or ""), waiting.through) == (True, 10)
    changed = replace(group(NAME, 28), columns=(*ROWS.columns, C))
    again = following(now, waiting, rows=(GONE, changed))
    again = replace(again, window=replace(again.window, ddls=(ddl(24, query),)))
    made = plan(again)
    assert (block_reason(made), made.through, changed in merged(made)) == (None, 30, True)


def test_table_of_which_only_deletes_came_is_followed_through_a_rename() -> None:
    """It takes no row of a table that had its new name before."""
    now = window(RENAME, rows=(group(U, 11), GONE))
    now = replace(now, window=replace(now.window, ddls=(ddl(13, "DROP TABLE u"), RENAME)))
    waiting = plan(now, U)
    assert ("columns are unknown" in (block_reason(waiting) or ""), waiting.through) == (True, 16)
    made = plan(following(now, waiting, rows=(group(U, 25),)), U)
    assert (block_reason(made), merged(made)) == (None, [group(U, 25)])
    assert made.definition is not None
    assert made.definition.named_at == 16
    of_other = replace(ddl(12, "ALTER TABLE u ADD c INT", "u"), replayed=True)
    again = following(now, waiting)
    again = replace(again, window=replace(again.window, ddls=(of_other, *now.window.ddls)))
    assert plan(again, U).through == 16, "the table that had the name before lacks it"


OTHER = ddl(14, "CREATE TABLE other (id BIGINT PRIMARY KEY)", "other")


def reused(now: PlanningInput) -> PlanningInput:
    """Another table had the name up to 5."""
    had = NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA)
    left = NameInUse(feed="f", table=U, lake_name="f_d_u", stable_id=DATA, named_at=5)
    return with_names(now, had, left)


def test_a_reused_name_whose_first_rows_are_deletes_is_reused_from_them_on() -> None:
    """Also if the columns come after a DDL of another table, or in a later window."""
    made = plan(reused(window(OTHER, rows=(GONE, group(NAME, 16)))))
    assert made.definition is not None
    assert made.definition.named_at == 11
    now = reused(window(OTHER, rows=(GONE,)))
    of_other, row = replace(group(NAME, 4), replayed=True), group(NAME, 25)
    later = plan(following(now, plan(now), rows=(of_other, GONE, row)))
    assert (block_reason(later), merged(later)) == (None, [GONE, row])
    assert later.definition is not None
    assert later.definition.named_at == 11
    waiting = plan(following(now, plan(now), rows=(of_other, GONE)))
    assert not needs_override(waiting), "the replayed rows are not its own"


EVENTUAL = BatchRange(after=3, through=4)


def test_deletes_of_a_table_that_gold_does_not_have_block_it_in_mode_eventual() -> None:
    """Rows from before them may arrive later: tombstones need a table."""
    now = replace(window(ddl(14, "ALTER TABLE t ADD COLUMN c INT"), rows=(GONE,)), batches=EVENTUAL)
    assert "columns are unknown" in (block_reason(plan(now)) or "")
    renamed = plan(replace(window(RENAME, rows=(GONE, group(U, 18))), batches=EVENTUAL), U)
    assert "its columns are unknown" in (block_reason(renamed) or ""), "the tombstones are of its former name"


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        ("MODIFY v VARCHAR(20)", ROWS.columns),
        ("ADD INDEX (v)", ROWS.columns),
        ("DROP INDEX i", ROWS.columns),
        ("ADD COLUMN c INT", (*ROWS.columns, C)),
        ("DROP COLUMN v", (ID,)),
        ("RENAME COLUMN v TO w", (ID, replace(V, name="w"))),
        ("MODIFY v INT", (ID, replace(V, type="int"))),
    ],
)
def test_deletes_before_a_ddl_are_merged_with_the_rows_after_it_in_mode_eventual(
    change: str, columns: tuple[Column, ...]
) -> None:
    """As tombstones. The rows may come in a later window."""
    altered, row = ddl(14, f"ALTER TABLE t {change}"), replace(group(NAME, 16), columns=columns)
    made = plan(replace(window(altered, rows=(GONE, row)), batches=EVENTUAL))
    assert (block_reason(made), made.through, merged(made)) == (None, 20, [GONE, row])
    now = replace(window(altered, rows=(GONE,)), batches=EVENTUAL)
    again = plan(replace(following(now, plan(now), rows=(GONE, row)), batches=BatchRange(after=4, through=5)))
    assert (block_reason(again), again.through, merged(again)) == (None, 30, [GONE, row])


@pytest.mark.parametrize(("made_by", "named_at"), [(LIKE, 12), (ddl(11, "RENAME TABLE idle TO t"), 11)])
def test_table_whose_first_rows_are_tombstones_keeps_since_when_it_has_its_name(
    made_by: DdlEvent, named_at: int
) -> None:
    gone = replace(group(NAME, 15), is_upsert=False)
    now = replace(window(made_by, rows=(gone,)), batches=EVENTUAL)
    made = plan(
        replace(following(now, plan(now), rows=(gone, group(NAME, 25))), batches=BatchRange(after=4, through=5))
    )
    assert made.definition is not None
    assert (made.definition.named_at, merged(made)) == (named_at, [gone, group(NAME, 25)])


def test_blocked_table_without_columns_is_not_followed_through_a_rename() -> None:
    """Its rows so far came under its former name, those of its new name may be another table's."""
    now = window(LIKE, RENAME, rows=(replace(group(NAME, 15), handle_only=True),))
    blocked = plan(now, U)
    assert needs_override(blocked)
    assert "its columns are unknown (a row was too large" in (block_reason(blocked) or "")
    again = plan(following(now, blocked, resumed=True, rows=(group(U, 25),)), U)
    assert (block_reason(again), steps(again)) == (block_reason(blocked), [])


def hidden_renamed() -> PlanningInput:
    config = GoldConfig(feed="f", time_zone="UTC", matches=lambda _, name: name != "hidden")
    return replace(window(ddl(12, "RENAME TABLE hidden TO t")), config=config)


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("now", [window(RECOVER), hidden_renamed()])
def test_table_with_unknown_rows_does_not_begin_with_the_next_ones(now: PlanningInput, resumed: bool) -> None:
    again = plan(following(now, plan(now), resumed=resumed, rows=(group(NAME, 25),)))
    assert (needs_override(again), steps(again)) == (True, [])


def test_recover_at_the_watermark_restores_no_older_table() -> None:
    older = Recoverable(name=NAME, stable_id=DATA, version=4, dropped_at=5)
    now = window(RECOVER)
    again = following(now, plan(now))
    again = replace(again, before=replace(again.before, recoverable=(older,)), definitions={DATA: KNOWN})
    assert needs_override(plan(again))
    assert [each.dropped_at for each in plan_tables(again).recoverable] == [5]


@pytest.mark.parametrize("arrived", [1, 2, 3])
def test_table_with_unknown_rows_follows_a_swap_that_arrives_in_parts(arrived: int) -> None:
    swap = [ddl(20, f"RENAME TABLE {old} TO {new}") for old, new in (("t", "tmp"), ("u", "t"), ("tmp", "u"))]
    unknown = published(replace(plan(window(RECOVER)), through=8, ddls=()))
    now = window(*swap[:arrived], tables={NAME: STATE, U: unknown})
    now = replace(now, definitions={DATA: KNOWN})
    first = plan_tables(now).tables
    states = {
        each.name: replace(each.state or STATE, applied_tso=each.through, ddls=each.ddls, stop=each.stop)
        for each in first
    }
    known = {DATA: next(each.definition for each in first if each.definition)}
    second = replace(now, before=Published(tso=20, tables=states), definitions=known, tso=30)
    second = replace(second, window=replace(second.window, ddls=tuple(swap)))
    assert {each.name: each.definition is None for each in plan_tables(second).tables} == {NAME: True, U: False}


REPLAYED = replace(ROWS, first=12, last=12, replayed=True)
"""The message that was in quarantine above 11."""


def after_quarantine(
    *ddls: DdlEvent, rows: tuple[RowGroup, ...] = (), tso: int = 11
) -> tuple[list[TablePlan], PlanningInput]:
    """What a window leaves of a table that gold does not know, of which the first message is in quarantine above a TSO;
    and the next window, in which nothing is in quarantine any more."""
    now = replace(window(*ddls), quarantine_points={NAME: quarantined(tso)})
    made = plan_tables(now)
    gone = [
        Recoverable(name=each.name, stable_id="", version=-1, dropped_at=each.dropped_at or 0)
        for each in made.recoverable
    ]
    later = replace(following(now, *made.tables, rows=rows), quarantine_points={})
    return list(made.tables), replace(later, before=replace(later.before, recoverable=tuple(gone)))


def test_an_unknown_table_whose_first_message_is_in_quarantine_is_blocked() -> None:
    (made,), replayed = after_quarantine(rows=(REPLAYED,))
    assert (made.name, made.through, block_reason(made)) == (NAME, 11, "in quarantine")
    again = plan(replayed)
    assert (block_reason(again), merged(again)) == (None, [REPLAYED])


def test_it_waits_for_its_rows_once_the_message_is_dismissed() -> None:
    _, later = after_quarantine()
    assert "the table's columns are unknown" in (block_reason(plan(later)) or "")
    _, later = after_quarantine(rows=(group(NAME, 25),))
    assert (block_reason(plan(later)), merged(plan(later))) == (None, [group(NAME, 25)])


@pytest.mark.parametrize("ddls", [(), (ddl(11, "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))"),)])
@pytest.mark.parametrize("tso", [10, 11])
def test_a_replayed_row_of_a_table_that_was_dropped_since_makes_no_table(tso: int, ddls: tuple[DdlEvent, ...]) -> None:
    """Also where the next window does not read the DROP again."""
    made, replayed = after_quarantine(*ddls, ddl(15, "DROP TABLE t"), rows=(REPLAYED,), tso=tso)
    assert (made, plan_tables(replayed).tables) == ([], ())
    replayed = replace(replayed, window=replace(replayed.window, ddls=()))
    assert plan_tables(replayed).tables == ()


def test_a_replayed_row_from_after_a_drop_shows_that_the_table_is_back() -> None:
    _, replayed = after_quarantine(ddl(11, "CREATE TABLE t LIKE nobody"), ddl(15, "DROP TABLE t"))
    row = replace(REPLAYED, first=17, last=17)
    replayed = replace(replayed, window=replace(replayed.window, ddls=(), rows={NAME: (row,)}))
    assert "its rows continue after TiDB dropped it" in (block_reason(plan(replayed)) or "")


def test_a_replayed_row_from_before_a_truncate_is_not_the_tables() -> None:
    (made,), replayed = after_quarantine(ddl(15, "TRUNCATE TABLE t"), rows=(REPLAYED, group(NAME, 25)))
    assert (made.through, block_reason(made)) == (15, "in quarantine")
    assert (block_reason(plan(replayed)), merged(plan(replayed))) == (None, [group(NAME, 25)])


def test_a_table_that_is_renamed_with_its_first_message_in_quarantine_is_blocked() -> None:
    (made,), _ = after_quarantine(ddl(15, "RENAME TABLE t TO u"))
    assert made.name == U
    assert "it was blocked before, and its columns are unknown" in (block_reason(made) or "")


def test_late_rows_from_before_a_table_without_columns_had_its_name_do_not_block_it() -> None:
    """They are of the table that had the name before: resumed from them, this one was taken for that one."""
    awaits = StopReason(kind=StopKind.AWAITS_ROWS, commit_ts=7, named_at=8)
    state = replace(STATE, stable_id="", version=-1, applied_tso=10, stop=awaits)
    points = (replace(late_point(6), last=last) for last in (7, 8, 9))
    made = [plan(replace(planning_input(state=state), late_points={NAME: point})) for point in points]
    assert [needs_override(each) for each in made] == [False, False, True]
