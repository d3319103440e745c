"""What a window does to each table: rows and DDLs in turn, tables that begin and end, replays and late rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import (
    DATA,
    DDL_STOP,
    ID,
    KNOWN,
    LATER,
    NAME,
    ROWS,
    STATE,
    block_reason,
    ddl,
    definition,
    late_point,
    needs_override,
    plan,
    planning_input,
    quarantined,
    steps,
    table,
    with_names,
)

from ticdc_lakehouse.planning.naming import NameInUse, NamesNeeded, Naming
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Origin, Published
from ticdc_lakehouse.planning.steps import AlterRows, MergeRows
from ticdc_lakehouse.planning.window_plan import WindowPlan, plan_tables
from ticdc_lakehouse.schema.definition import Key
from ticdc_lakehouse.schema.names import TableName


def test_rows_before_and_after_a_ddl_are_merged_around_it() -> None:
    after = replace(ROWS, columns=(ID,), first=18, last=19)
    now = planning_input(ROWS, after, known=KNOWN, state=STATE, ddls=(ddl(15, "ALTER TABLE t DROP COLUMN v"),))
    made = plan(now)
    assert steps(made) == [("M", 15), ("A", 15), ("M", 20)]
    first, _, last = made.steps
    assert isinstance(first, MergeRows)
    assert isinstance(last, MergeRows)
    assert (first.groups, last.groups) == ((ROWS,), (after,))
    assert (first.table, last.table.columns) == (table(), table().columns[:1])
    assert [each.definition.commit_ts for each in made.new_definitions] == [15]


def test_ddl_that_changes_no_row_does_not_split_the_rows() -> None:
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(15, "ALTER TABLE t COMMENT = 'c'"),))
    assert now.window.ddls[0].statements == (), "else rows are parted by it"
    assert steps(plan(now)) == [("M", 20)]


def test_a_column_that_only_moves_is_a_step_of_its_own() -> None:
    made = plan(planning_input(known=KNOWN, state=STATE, ddls=(ddl(15, "ALTER TABLE t MODIFY v VARCHAR(9) FIRST"),)))
    [step] = (each for each in made.steps if isinstance(each, AlterRows))
    assert (step.commit_ts, step.effects, [column.name for column in step.table.columns]) == (15, (), ["v", "id"])


def test_create_index_does_not_split_the_rows_but_its_name_is_known() -> None:
    keys = (Key(name="PRIMARY", columns=("id",)),)
    known = replace(KNOWN, table=replace(table(), keys=keys))
    now = planning_input(ROWS, known=known, state=STATE, ddls=(ddl(15, "CREATE INDEX i ON t (v)"),))
    made = plan(now)
    assert steps(made) == [("M", 20)]
    assert made.definition is not None
    assert made.definition.table.keys == (*keys, Key(name="i", columns=("v",), unique=False))
    assert [each.definition.commit_ts for each in made.new_definitions] == [KNOWN.commit_ts], (
        "rows are of the definition before"
    )


@pytest.mark.parametrize("index", ["INDEX (v)", "INDEX (v), ADD INDEX j (v)", "FOREIGN KEY (v) REFERENCES p (v)"])
def test_table_that_is_blocked_before_an_index_without_a_name_does_not_have_it_yet(index: str) -> None:
    """The next window reads the DDL again, and the index would be there under two names."""
    keys = (Key(name="PRIMARY", columns=("id",)),)
    known = replace(KNOWN, table=replace(table(), keys=keys))
    now = planning_input(ROWS, known=known, state=STATE, ddls=(ddl(15, f"ALTER TABLE t ADD {index}"),))
    blocked = plan(replace(now, quarantine_points={NAME: quarantined(12)}))
    assert (blocked.through, blocked.new_definitions) == (12, ())
    made = plan(now)
    assert made.definition is not None
    assert (steps(made), made.definition.commit_ts) == ([("M", 15), ("M", 20)], KNOWN.commit_ts)
    assert made.definition.table.keys is not None
    assert made.definition.table.keys[1] == Key(name="v" if "INDEX" in index else "fk_1", columns=("v",), unique=False)


@pytest.mark.parametrize("commit_ts", [16, 20])
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("RENAME TABLE t TO tmp, tmp TO x", "x"),
        ("RENAME TABLE t TO tmp, tmp TO t", "t"),
        ("ALTER TABLE t ADD w BIGINT, RENAME TO x", "x"),
        ("ALTER TABLE t COMMENT 'a'; RENAME TABLE t TO x; ALTER TABLE x ADD w BIGINT; RENAME TABLE x TO y", "y"),
    ],
)
def test_one_text_changes_a_table_several_times(query: str, name: str, commit_ts: int) -> None:
    now = planning_input(known=KNOWN, state=STATE, ddls=(ddl(commit_ts, query),))
    (made,) = plan_tables(now).tables
    assert (made.name, block_reason(made), made.definition and made.definition.table.table) == (("d", name), None, name)
    assert made.definition is not None
    state = replace(STATE, lake_name=made.lake_name, applied_tso=20, ddls=made.ddls)
    again = replace(
        now, before=Published(tso=20, tables={made.name: state}), definitions={DATA: made.definition}, tso=30
    )
    (unchanged,) = plan_tables(again).tables
    assert (unchanged.name, block_reason(unchanged), unchanged.definition) == (made.name, None, made.definition)


@pytest.mark.parametrize("query", ["DROP TABLE t", "DROP DATABASE d", "RENAME TABLE t TO hidden"])
def test_dropped_table_is_gone_even_if_it_was_blocked(query: str) -> None:
    config = GoldConfig(feed="f", time_zone="UTC", matches=lambda _, name: name != "hidden")
    for state in (STATE, replace(STATE, applied_tso=5, stop=DDL_STOP)):
        assert not plan_tables(
            planning_input(ROWS, known=KNOWN, state=state, ddls=(ddl(16, query),), config=config)
        ).tables


def test_a_table_that_the_filter_leaves_out_since_is_gone() -> None:
    """One that it includes again has no rows from before."""
    config = GoldConfig(feed="f", time_zone="UTC", matches=lambda *_: False)
    ddls = (ddl(16, "TRUNCATE TABLE t"), ddl(17, "RENAME TABLE t TO u"), ddl(18, "RECOVER TABLE t"))
    for state in (STATE, replace(STATE, applied_tso=5, stop=DDL_STOP)):
        for window in ((), ddls):
            now = planning_input(ROWS, LATER, known=KNOWN, state=state, ddls=window, config=config)
            assert plan_tables(now) == WindowPlan(tables=(), recoverable=())
    again = planning_input(ROWS, known=KNOWN)
    again = with_names(again, NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA))
    made = plan(again)
    assert (made.state, made.stop, made.definition and made.definition.stable_id) == (None, None, f"{DATA}_15")
    assert steps(made) == [("M", 20)]


@pytest.mark.parametrize("query", ["TRUNCATE TABLE t", "DROP TABLE t"])
def test_truncated_or_recreated_table_is_another_live_table(query: str) -> None:
    """So that what the table held before stays readable as of a TSO."""
    ddls = (ddl(16, query), *([] if "TRUNC" in query else [ddl(17, "CREATE TABLE t (id BIGINT KEY, v VARCHAR(9))")]))
    now = planning_input(replace(ROWS, first=18), known=KNOWN, state=STATE, ddls=ddls)
    now = with_names(now, NameInUse(feed="f", table=NAME, lake_name="f_d_t", stable_id=DATA))
    made = plan(now)
    assert made.start is not None
    assert (made.state, made.start.stable_id) == (None, f"{DATA}_{ddls[-1].commit_ts}")
    assert steps(made) == [("M", 20)]


def test_rows_are_merged_unless_a_quarantined_message_blocks_them() -> None:
    def merged(now: PlanningInput) -> int:
        return sum(isinstance(step, MergeRows) and bool(step.groups) for step in plan(now).steps)

    assert merged(planning_input(ROWS, known=KNOWN, state=STATE)) == 1
    assert merged(planning_input(known=KNOWN, state=STATE)) == 0
    assert merged(planning_input(ROWS, known=KNOWN, state=STATE, quarantined=quarantined(14))) == 0
    assert merged(planning_input(replace(ROWS, first=5, replayed=True), known=KNOWN, state=STATE)) == 1


def test_replayed_row_that_does_not_fit_is_not_merged() -> None:
    """It is older than what the table holds, so there is no state to stop at before it."""
    late = replace(ROWS, first=5, handle_only=True, replayed=True)
    made = plan(planning_input(late, known=KNOWN, state=STATE))
    assert (made.through, needs_override(made)) == (10, True)
    assert not any(step.groups for step in made.steps if isinstance(step, MergeRows))
    assert block_reason(made) is not None
    assert "late row" in block_reason(made)
    changed = plan(planning_input(replace(ROWS, first=5, replayed=True), known=definition(7), state=STATE))
    assert block_reason(changed) is not None
    assert "a later DDL changed" in block_reason(changed)


def test_tables_of_the_schema_file_are_planned_and_filtered_ones_are_not() -> None:
    config = GoldConfig(feed="f", time_zone="UTC", tables=(table(),), matches=lambda _, name: name != "hidden")
    hidden = planning_input(ROWS, config=config)
    hidden = replace(hidden, window=replace(hidden.window, rows={NAME: (ROWS,), TableName("d", "hidden"): (ROWS,)}))
    plans = plan_tables(hidden).tables
    assert [each.name for each in plans] == [NAME]
    assert plans[0].definition == replace(KNOWN, origin=Origin.FILE)


def test_rows_of_a_table_that_the_filter_excludes_need_no_names() -> None:
    """They come in every window, and the names that were ever used grow in number."""
    noise = TableName("d", "hidden")
    config = GoldConfig(feed="f", time_zone="UTC", matches=lambda _, name: name != "hidden")
    now = planning_input(ROWS, known=KNOWN, state=STATE, config=config)
    rows = {**now.window.rows, noise: (replace(ROWS, name=noise),)}
    now = replace(now, naming=Naming(feed="f"), window=replace(now.window, rows=rows))
    assert [each.name for each in plan_tables(now).tables] == [NAME]


@pytest.mark.parametrize("query", ["", "ALTER TABLE t ADD COLUMN w INT", "ALTER TABLE t DROP COLUMN v", "DROP TABLE t"])
def test_a_window_that_gives_no_name_needs_none(query: str) -> None:
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(16, query),) if query else ())
    assert plan_tables(replace(now, naming=Naming(feed="f"))) == plan_tables(now)


@pytest.mark.parametrize(
    ("query", "table"),
    [("CREATE TABLE u (id INT KEY)", "u"), ("RENAME TABLE t TO u", "t"), ("TRUNCATE TABLE t", "t"), ("", None)],
)
def test_a_window_that_gives_a_name_needs_the_names_that_are_taken(query: str, table: str | None) -> None:
    """The last one has a table that its rows make known."""
    known, state = (KNOWN, STATE) if query else (None, None)
    now = planning_input(ROWS, known=known, state=state, ddls=(ddl(16, query, table),) if query else ())
    assert plan_tables(now).tables
    with pytest.raises(NamesNeeded):
        plan_tables(replace(now, naming=Naming(feed="f")))


def test_create_table_knows_better_than_a_file() -> None:
    config = GoldConfig(feed="f", time_zone="UTC", tables=(table(),))
    now = planning_input(ddls=(ddl(5, "CREATE TABLE t (id BIGINT KEY)"),), config=config)
    made = plan(replace(now, before=Published()))
    assert made.definition is not None
    assert (block_reason(made), len(made.definition.table.columns)) == (None, 1)


def test_a_row_that_the_table_has_yet_to_take_is_not_late() -> None:
    """It was blocked below what the feed published, and takes all rows since."""
    lagging = replace(STATE, applied_tso=4)
    row = replace(ROWS, first=5, last=19)
    now = planning_input(row, known=KNOWN, state=lagging)
    made = plan(replace(now, late_points={NAME: late_point(7)}))
    assert (block_reason(made), made.through, steps(made)) == (None, 20, [("M", 20)])
    made = plan(replace(now, late_points={NAME: late_point(3)}))
    assert (block_reason(made), made.through, needs_override(made)) == ("came late", 3, True)
