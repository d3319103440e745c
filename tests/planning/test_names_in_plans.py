"""Renames, swaps, and names that differ in case alone or are routed to one, in the plans of a window."""

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
    W,
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
    with_names,
)

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.planning.late_ddls import late_ddl_points
from ticdc_lakehouse.planning.naming import NameInUse, TakenNames
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput, left_out
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.window import DdlEvent, RowGroup
from ticdc_lakehouse.planning.window_plan import plan_tables
from ticdc_lakehouse.schema.names import TableName


def test_renamed_table_keeps_its_rows_under_the_new_name() -> None:
    now = planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(16, "RENAME TABLE t TO u"),))
    later = replace(ROWS, first=18, last=18)
    now = replace(now, window=replace(now.window, rows={NAME: (ROWS,), U: (later,)}))
    made = plan(now, U)
    assert [each.name for each in plan_tables(now).tables] == [U]
    assert (made.state, made.lake_name) == (STATE, "f_d_u")
    assert [(s.table.table, s.groups) for s in made.steps if isinstance(s, MergeRows)] == [
        ("t", (ROWS,)),
        ("u", (later,)),
    ]
    assert [(d.definition.stable_id, d.definition.table.table) for d in made.new_definitions] == [(DATA, "u")]


@pytest.mark.parametrize("commit_ts", [16, 20])
def test_swapped_names_are_swapped_once(commit_ts: int) -> None:
    """The next window sees DDLs at exactly the watermark again."""
    ddls = tuple(ddl(commit_ts, f"RENAME TABLE {a} TO {b};") for a, b in (("t", "tmp"), ("u", "t"), ("tmp", "u")))
    other = replace(definition(), table=replace(table(), table="u"), lake_name="f_d_u", stable_id="f_d_u__data")
    now = planning_input(known=KNOWN, state=STATE, ddls=ddls)
    before = replace(now.before, tables={NAME: STATE, U: replace(STATE, lake_name="f_d_u", stable_id="f_d_u__data")})
    now = replace(now, before=before, definitions={DATA: KNOWN, "f_d_u__data": other})
    assert {p.name: p.state.stable_id for p in plan_tables(now).tables if p.state} == {
        NAME: "f_d_u__data",
        U: DATA,
    }
    seen = {
        p.name: replace(p.state, lake_name=p.lake_name, ddls=p.ddls, applied_tso=20)
        for p in plan_tables(now).tables
        if p.state
    }
    found = {p.definition.stable_id: p.definition for p in plan_tables(now).tables if p.definition}
    again = replace(now, before=Published(tso=20, tables=seen), definitions=found, tso=30)
    assert {p.name: p.state.stable_id for p in plan_tables(again).tables if p.state} == {
        NAME: "f_d_u__data",
        U: DATA,
    }


def test_rename_of_a_swap_that_arrives_after_its_watermark_is_applied() -> None:
    """Also to a table that a message in quarantine blocks meanwhile."""
    ddls = tuple(ddl(20, f"RENAME TABLE {a} TO {b};") for a, b in (("t", "tmp"), ("u", "t"), ("tmp", "u")))
    other = replace(definition(), table=replace(table(), table="u"), lake_name="f_d_u", stable_id="f_d_u__data")
    now = planning_input(known=KNOWN, state=STATE, ddls=ddls[:1])
    before = replace(now.before, tables={NAME: STATE, U: replace(STATE, lake_name="f_d_u", stable_id="f_d_u__data")})
    first = replace(now, before=before, definitions={DATA: KNOWN, "f_d_u__data": other})
    second = replace(after_window(first, 30), window=replace(now.window, ddls=ddls))
    blocked = replace(second, quarantine_points={TableName("d", "tmp"): quarantined(19)})
    third = replace(after_window(blocked, 40), window=second.window)
    for last in (second, third):
        assert {p.name: p.state.stable_id for p in plan_tables(last).tables if p.state} == {
            NAME: "f_d_u__data",
            U: DATA,
        }
    assert {str(p.name): block_reason(p) for p in plan_tables(blocked).tables} == {"d.t": None, "d.u": "in quarantine"}
    assert [block_reason(p) for p in plan_tables(third).tables] == [None, None]
    assert [p.definition.table.name for p in plan_tables(third).tables if p.definition] == [NAME, U]


def by_database(*ddls: DdlEvent) -> PlanningInput:
    """A window of a feed with one schema a database."""
    now = planning_input(ROWS, ddls=ddls, known=replace(KNOWN, lake_name="d.t"), state=replace(STATE, lake_name="d.t"))
    return replace(now, naming=replace(now.naming, template="{table}", schema_template="{database}"))


def test_a_table_keeps_its_rows_while_its_schema_is_the_same() -> None:
    renamed = plan(by_database(ddl(12, "RENAME TABLE t TO u")), U)
    assert (renamed.lake_name, renamed.start, renamed.stop) == ("d.u", replace(KNOWN, lake_name="d.t"), None)


@pytest.mark.parametrize("query", ["RENAME TABLE t TO other.t", "ALTER TABLE t RENAME other.t"])
def test_a_table_that_goes_to_another_schema_has_no_rows_there(query: str) -> None:
    """No catalog moves a table; TiDB may make another one in its place."""
    create = "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))"
    now = by_database(ddl(12, query), ddl(13, create))
    moved, new = plan(now, TableName("other", "t")), plan(now)
    assert (moved.start, moved.through) == (None, 12)
    assert needs_override(moved)
    assert "`ticdc-lake load` continues from an export taken since" in str(block_reason(moved))
    assert (new.lake_name, new.stop, new.start and new.start.commit_ts) == ("d.t", None, 13)
    again = replace(now, before=replace(now.before, tso=20), window=replace(now.window, rows={}, ddls=()))
    state = TableState(lake_name="", stable_id="", version=-1, applied_tso=12, stop=moved.stop)
    later = {moved.name: (replace(ROWS, name=moved.name, first=25),)}
    again = replace(again, before=replace(again.before, tables={moved.name: state}), tso=30)
    assert plan(replace(again, window=replace(again.window, rows=later)), moved.name).start is None


def by_table(*ddls: DdlEvent) -> PlanningInput:
    """A window of a feed whose tables are named without their databases."""
    known, state = replace(KNOWN, lake_name="t"), replace(STATE, lake_name="t")
    used = NameInUse(feed="f", table=NAME, lake_name="t", stable_id="t__data")
    now = with_names(planning_input(ROWS, ddls=ddls, known=known, state=state), used)
    return replace(now, naming=replace(now.naming, template="{table}"))


def test_a_table_keeps_a_name_that_does_not_name_its_database() -> None:
    other = TableName("other", "t")
    renamed = plan(by_table(ddl(16, "RENAME TABLE t TO other.t")), other)
    assert (renamed.lake_name, renamed.start, renamed.stop) == ("t", replace(KNOWN, lake_name="t"), None)
    create = ddl(18, "CREATE TABLE other.t (id BIGINT PRIMARY KEY)")
    created = plan(by_table(ddl(16, "DROP TABLE t"), create), other)
    assert (created.lake_name, created.stop) == ("t", None)
    assert created.definition is not None
    assert created.definition.stable_id == "t__data_18", "the dropped table keeps its rows"
    moved_away = plan_tables(by_table(ddl(16, "RENAME TABLE t TO u"), create))
    assert [(str(each.name), each.lake_name) for each in moved_away.tables] == [("d.u", "u"), ("other.t", "t")]
    with pytest.raises(ConfigError, match=r"table other.t would be called t, which has table d.t of feed f"):
        plan_tables(by_table(create))


def test_a_name_that_a_table_has_for_a_moment_may_be_that_of_another_feed() -> None:
    """Only the names at the end of a window count, as for two tables of one feed."""
    used = [
        NameInUse(feed="o", table=TableName("x", name), lake_name=name, stable_id="x__data") for name in ("tmp", "z")
    ]
    made = [ddl(15, f"CREATE TABLE {name} (id BIGINT PRIMARY KEY)") for name in ("a", "b")]
    swap = ddl(16, "RENAME TABLE a TO tmp, b TO a, tmp TO b")
    taken = TakenNames(names=tuple(used), feeds=frozenset({"f", "o"}))
    now = planning_input(ddls=(*made, swap, ddl(17, "CREATE TABLE tmp LIKE a"), ddl(18, "DROP TABLE tmp")))
    now = replace(now, naming=replace(now.naming, taken=taken, template="{table}"))
    assert [(str(each.name), each.lake_name) for each in plan_tables(now).tables] == [("d.a", "a"), ("d.b", "b")]
    for name, why in (("z", "has table x.z of feed o"), ("z__renaming", "is reserved")):
        stays = replace(now.window, ddls=(*now.window.ddls, ddl(19, f"RENAME TABLE a TO {name}")))
        with pytest.raises(ConfigError, match=f"table d.{name} would be called {name}, which {why}"):
            plan_tables(replace(now, window=stays))


@pytest.mark.parametrize("other", [TableName("d", "T"), TableName("D", "t"), TableName("D", "T")])
def test_names_that_differ_in_case_alone_are_one_table(other: TableName) -> None:
    now = planning_input(ROWS, known=KNOWN, state=STATE)
    now = replace(now, window=replace(now.window, rows={other: (ROWS,)}))
    assert steps(plan(now, other)) == steps(plan(now)) == [("M", 20)]
    assert [str(each.name) for each in plan_tables(now).tables] == ["d.t"], "spelled as it was made"
    dropped = replace(now, window=replace(now.window, ddls=(ddl(16, f"DROP TABLE {other}"),)))
    assert plan_tables(dropped).tables == ()


MIXED_ROWS = replace(ROWS, first=14, last=18)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (replace(MIXED_ROWS, name=TableName("d", "T")), "rows come under d.t and d.T, one name in TiDB: route"),
        (replace(MIXED_ROWS, name=TableName("D", "t"), first=12), "rows come under D.t and d.t"),
        (replace(MIXED_ROWS, name=TableName("D", "t"), first=18), None),
        (replace(MIXED_ROWS, name=NAME), None),
    ],
)
def test_two_tables_that_are_routed_to_one_name_are_blocked(other: RowGroup, reason: str | None) -> None:
    """The rows of one table change their spelling at a DDL, and not back and forth."""
    groups = sorted((replace(MIXED_ROWS, last=16), other), key=lambda group: group.first)
    made = plan(planning_input(*groups, known=KNOWN, state=STATE))
    assert (block_reason(made) or "").startswith(reason or "")
    assert (block_reason(made) is None) == (reason is None)
    assert made.through == (20 if reason is None else 10)


def test_restart_after_a_rename_sends_rows_again_in_the_spelling_of_the_create() -> None:
    """tiflow takes the database's name from the RENAME's job, and after a restart from TiDB (wire.md 8.14)."""
    capital = replace(KNOWN, table=replace(KNOWN.table, database="Shop"))
    renamed = ddl(12, "RENAME TABLE `Shop`.`t` TO `Shop`.`new`", "new", "shop")
    before = replace(MIXED_ROWS, name=TableName("shop", "new"), first=14, last=17)
    again = replace(MIXED_ROWS, name=TableName("Shop", "new"), first=15, last=19)
    now = planning_input(known=capital, ddls=(renamed,))
    now = replace(now, before=replace(now.before, tables={TableName("Shop", "t"): STATE}))
    now = replace(now, window=replace(now.window, rows={before.name: (before, again)}))
    (made,) = plan_tables(now).tables
    assert (str(made.name), block_reason(made), steps(made)) == ("Shop.new", None, [("M", 12), ("M", 20)])


def test_renamed_table_keeps_the_spelling_of_its_database() -> None:
    """In the message of a RENAME, and sometimes in its text, tiflow has the database in lower case."""
    capital = replace(KNOWN, table=replace(KNOWN.table, database="Shop"))
    renamed = ddl(14, "RENAME TABLE `shop`.`t` TO `shop`.`New`", "New", "shop")
    state = {TableName("Shop", "t"): STATE}
    now = planning_input(known=capital, ddls=(renamed, ddl(16, "CREATE TABLE SHOP.other (id INT KEY)", None)))
    rows = {name: (replace(ROWS, name=name),) for name in (TableName("shop", "New"),)}
    now = replace(now, before=replace(now.before, tables=state), window=replace(now.window, rows=rows))
    assert {str(made.name): steps(made) for made in plan_tables(now).tables} == {
        "Shop.New": [("M", 14), ("M", 20)],
        "Shop.other": [("M", 20)],
    }


@pytest.mark.parametrize(
    "first",
    [
        ddl(12, "CREATE TABLE `SHOP`.`T` (id INT KEY)", "T", "Shop"),
        ddl(12, "CREATE TABLE `SHOP`.`T` LIKE `d`.`t`", "T", "Shop"),
        ddl(12, "ALTER TABLE `SHOP`.`T` ADD PRIMARY KEY (id)", "T", "Shop"),
    ],
)
def test_database_is_spelled_as_messages_spell_it(first: DdlEvent) -> None:
    """The text of a DDL has what was typed, its message what CREATE DATABASE had."""
    second = ddl(14, "CREATE TABLE `shop`.`Other` (id INT KEY)", "Other", "Shop")
    now = planning_input(known=KNOWN, state=STATE, ddls=(first, second))
    assert [str(made.name) for made in plan_tables(now).tables] == ["d.t", "Shop.Other", "Shop.T"]


@pytest.mark.parametrize(
    ("event", "made"),
    [
        (ddl(12, "CREATE TABLE `Shop`.`T` (id INT KEY)", "T", "d"), "Shop.T"),
        (replace(ddl(12, "CREATE TABLE `Shop`.`T` (id INT KEY)", "T"), database=None), "Shop.T"),
        (ddl(12, "RENAME TABLE `left_out`.`T` TO `Shop`.`T`", "T", "shop"), "Shop.T"),
    ],
)
def test_database_is_spelled_as_its_text_where_the_message_does_not_say(event: DdlEvent, made: str) -> None:
    """The message of a RENAME has it in lower case (wire.md 8.14)."""
    config = GoldConfig(feed="f", time_zone="UTC", matches=lambda database, _table: database != "left_out")
    (table,) = plan_tables(planning_input(ddls=(event,), config=config)).tables
    assert str(table.name) == made


@pytest.mark.parametrize("late", [False, True])
def test_a_table_that_the_filter_leaves_out_goes_and_does_not_come(late: bool) -> None:
    """Also where its CREATE TABLE arrives late."""
    config = GoldConfig(feed="f", time_zone="UTC", matches=lambda _database, table: table != "t")
    create = ddl(5, "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))")
    now = planning_input(ROWS, known=None if late else KNOWN, state=None if late else STATE, config=config)
    now = replace(now, late_ddl_points=late_ddl_points(now.before, [create]))
    assert late == bool(now.late_ddl_points)
    assert left_out(config, now.before) == ([] if late else [NAME])
    assert plan_tables(now).tables == ()


SWAP = ("RENAME TABLE `d`.`t` TO `d`.`aaa`", "RENAME TABLE `d`.`u` TO `d`.`t`", "RENAME TABLE `d`.`aaa` TO `d`.`u`")


@pytest.mark.parametrize("arrived", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_a_swap_through_several_topics_is_done_in_the_order_that_is_possible(arrived: tuple[int, ...]) -> None:
    other = replace(
        KNOWN, table=table("CREATE TABLE d.u (id BIGINT PRIMARY KEY)"), lake_name="f_d_u", stable_id="f_d_u__data"
    )
    now = planning_input(known=KNOWN, state=STATE)
    ddls = tuple(replace(ddl(15, SWAP[number]), topic=f"topic {number}") for number in arrived)
    tables = {NAME: STATE, U: replace(STATE, lake_name="f_d_u", stable_id=other.stable_id)}
    now = replace(
        now,
        definitions={DATA: KNOWN, other.stable_id: other},
        before=replace(now.before, tables=tables),
        window=replace(now.window, ddls=ddls),
    )
    made = {each.name: each.definition.stable_id for each in plan_tables(now).tables if each.definition is not None}
    assert made == {U: DATA, NAME: other.stable_id}


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("arrived", [(0, 1, 2), (2, 1, 0)])
def test_a_swap_through_several_topics_may_go_on_in_the_next_window(first: int, arrived: tuple[int, ...]) -> None:
    """The first window ends at the commit_ts of the swap, whose DDLs come behind that watermark."""
    ddls = [replace(ddl(20, query), topic=f"topic {number}") for number, query in enumerate(SWAP)]
    begun = swapped(*ddls[:first])
    later = replace(after_window(begun, 30), window=replace(begun.window, ddls=tuple(ddls[each] for each in arrived)))
    made = {each.name: each.definition.stable_id for each in plan_tables(later).tables if each.definition is not None}
    assert made == {U: DATA, NAME: "f_d_u__data"}


@pytest.mark.parametrize("arrived", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
@pytest.mark.parametrize("first", [0, 1, 3])
def test_a_swap_through_one_topic_in_an_order_that_is_impossible_is_done(arrived: tuple[int, ...], first: int) -> None:
    """Versions of tiflow up to 8.5 send its DDLs in random order; a window may end among them."""
    ddls = [ddl(20, SWAP[number]) for number in arrived]
    begun = swapped(*ddls[:first])
    later = replace(after_window(begun, 30), window=replace(begun.window, ddls=tuple(ddls)))
    made = {each.name: each.definition.stable_id for each in plan_tables(later).tables if each.definition is not None}
    assert made == {U: DATA, NAME: "f_d_u__data"}


def test_a_table_is_replaced_in_an_order_that_is_impossible() -> None:
    """As tools for online schema changes do it."""
    now = swapped(*(ddl(15, f"RENAME TABLE `d`.`{old}` TO `d`.`{new}`") for old, new in (("u", "t"), ("t", "w"))))
    made = {each.name: each.definition.stable_id for each in plan_tables(now).tables if each.definition is not None}
    assert made == {W: DATA, NAME: "f_d_u__data"}


def test_renames_of_one_topic_are_done_in_its_order() -> None:
    """Each is in the topic of its old name. The last of them is possible at once, too."""
    topics = {"topic 1": (SWAP[1], "RENAME TABLE `d`.`u` TO `d`.`w`"), "topic 2": (SWAP[0], SWAP[2])}
    now = swapped(*(replace(ddl(15, query), topic=topic) for topic, some in topics.items() for query in some))
    made = {each.name: each.definition.stable_id for each in plan_tables(now).tables if each.definition is not None}
    assert made == {W: DATA, NAME: "f_d_u__data"}


def swapped(*ddls: DdlEvent, tso: int = 20) -> PlanningInput:
    """A window of two tables."""
    other = replace(
        KNOWN, table=table("CREATE TABLE d.u (id BIGINT PRIMARY KEY)"), lake_name="f_d_u", stable_id="f_d_u__data"
    )
    now = planning_input(known=KNOWN, state=STATE, ddls=ddls)
    before = replace(now.before, tables={NAME: STATE, U: replace(STATE, lake_name="f_d_u", stable_id=other.stable_id)})
    return replace(now, definitions={DATA: KNOWN, other.stable_id: other}, before=before, tso=tso)


@pytest.mark.parametrize("first_sent", [0, 1, 2, 3])
def test_a_swap_that_another_version_of_ticdc_sends_again_is_done_once(first_sent: int) -> None:
    """The classic architecture writes no semicolon, the new one does. Some of the DDLs may have come before the window,
    which ended at their commit_ts."""
    classic, new = ([ddl(20, f"{query}{end}") for query in SWAP] for end in ("", ";"))
    both = (*classic[:first_sent], *new)
    wanted = {U: DATA, NAME: "f_d_u__data"}
    whole = swapped(*both)
    assert {each.name: each.definition.stable_id for each in plan_tables(whole).tables if each.definition} == wanted
    begun = swapped(*classic[:first_sent])
    later = after_window(begun, 30)
    later = replace(later, window=replace(begun.window, ddls=both))
    assert {each.name: each.definition.stable_id for each in plan_tables(later).tables if each.definition} == wanted


@pytest.mark.parametrize(
    "query",
    [
        "ALTER TABLE t ADD COLUMN c INT",
        "ALTER TABLE t DROP COLUMN v",
        "ALTER TABLE t RENAME COLUMN v TO w",
        "CREATE TABLE w (id INT PRIMARY KEY)",
        "TRUNCATE TABLE t",
    ],
)
def test_a_ddl_that_comes_again_in_another_text_is_done_once(query: str) -> None:
    once, twice = ([ddl(15, query), ddl(15, f"/* new */ {query};")][:count] for count in (1, 2))
    made = plan_tables(swapped(*twice)).tables
    assert made == plan_tables(swapped(*once)).tables
    assert [block_reason(each) for each in made] == [None] * len(made)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("TIMESTAMP DEFAULT _UTF8MB4'2024-01-01 00:00:00'", "TIMESTAMP DEFAULT '2024-01-01 00:00:00'"),
        ("DATETIME DEFAULT CURRENT_TIMESTAMP()", "DATETIME DEFAULT CURRENT_TIMESTAMP"),
        ("CHAR(36) DEFAULT (UUID())", "CHAR(36) DEFAULT UUID()"),
    ],
)
def test_a_computed_default_that_comes_again_in_another_text_is_one(one: str, other: str) -> None:
    twice = (ddl(15, f"ALTER TABLE t ADD COLUMN c {text}") for text in (one, other))
    made = next(each for each in plan_tables(swapped(*twice)).tables if each.name == NAME)
    assert block_reason(made) is None
    assert made.definition is not None
    assert [column.name for column in made.definition.table.columns] == ["id", "v", "c"]


def test_blocked_table_without_columns_keeps_the_name_that_it_got_in_a_swap() -> None:
    """A window reads the DDLs again since any table was blocked. This one's state has its newest name alone."""
    unknown = TableState(lake_name="", stable_id="", version=-1, applied_tso=5, stop=DDL_STOP)
    rows = replace(ROWS, name=U)
    now = planning_input(known=KNOWN, state=STATE, ddls=tuple(ddl(8, query) for query in SWAP))
    now = replace(now, before=replace(now.before, tables={NAME: STATE, U: unknown}))
    now = replace(now, window=replace(now.window, rows={U: (rows,)}))
    assert {
        each.name: (each.definition and each.definition.stable_id, each.stop) for each in plan_tables(now).tables
    } == {
        NAME: (DATA, None),
        U: (None, DDL_STOP),
    }
