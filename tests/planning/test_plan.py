"""What a window does to each table: decided without Spark, so every stop can be a line of a table here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ticdc_codec.event import Column
from ticdc_codec.options import sink_options
from ticdc_lakehouse.planning.naming import Naming, Taken
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, Published, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.table_plan import MergeRows
from ticdc_lakehouse.planning.window import BlockingPoint, DdlEvent, RowGroup, Window, statements_of
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.schema.definition import Key, Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql

NAME, U = TableName("d", "t"), TableName("d", "u")
DDL_STOP = StopReason(kind=StopKind.UNSUPPORTED_DDL, commit_ts=5, query="?", can_skip=True, needs_override=True)
UNFOLLOWED = "ALTER TABLE t ADD w BIGINT AS (id + 1) STORED"
ID, V = Column(name="id", type="bigint", key=True), Column(name="v", type="varchar")
ROWS = RowGroup(name=NAME, columns=(ID, V), whole=True, handle_only=False, keyed=True, first=15, last=15, rows=2)
DATA = "f_d_t__data"


def table(sql: str = "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(9))") -> Table:
    return tables_from_sql(sql)[0]


def definition(commit_ts: int = 0, sql: str | None = None) -> Definition:
    return Definition(table=table(sql) if sql else table(), commit_ts=commit_ts, source="ddl", name="f_d_t", data=DATA)


def ddl(commit_ts: int, query: str, name: str | None = "t", database: str = "d") -> DdlEvent:
    statements = statements_of(query, database, name)
    return DdlEvent(commit_ts=commit_ts, database=database, table=name, query=query, statements=statements)


def quarantined(tso: int) -> BlockingPoint:
    return BlockingPoint(tso=tso, stop=StopReason(kind=StopKind.QUARANTINED, detail="in quarantine"))


def late_point(tso: int) -> BlockingPoint:
    stop = StopReason(kind=StopKind.LATE_ROWS, detail="came late", needs_override=True)
    return BlockingPoint(tso=tso, stop=stop)


def block_reason(made: TablePlan) -> str | None:
    """The sentence that people read."""
    return None if made.stop is None else str(made.stop)


def needs_override(made: TablePlan) -> bool:
    return made.stop is not None and made.stop.needs_override


def situation(
    *groups: RowGroup,
    ddls: tuple[DdlEvent, ...] = (),
    known: Definition | None = None,
    state: TableState | None = None,
    hold: BlockingPoint | None = None,
    applying: GoldConfig | None = None,
) -> PlanningInput:
    """The window (10, 20] of one table."""
    return PlanningInput(
        applying=applying or GoldConfig(feed="f", time_zone="UTC"),
        before=Published(tso=10, batch=3, tables={} if state is None else {NAME: state}),
        known={} if known is None else {DATA: known},
        window=Window(rows={NAME: groups} if groups else {}, ddls=ddls, replays_seen=None, row_changes=0),
        holds={} if hold is None else {NAME: hold},
        tso=20,
        naming=Naming(feed="f", history=list),
    )


def plan(now: PlanningInput, name: TableName = NAME) -> TablePlan:
    return {each.name: each for each in plan_tables(now).tables}[name]


KNOWN = definition()
STATE = TableState(name="f_d_t", data=DATA, version=4, applied_tso=10)
SIMPLE = GoldConfig(feed="f", time_zone="UTC", external_schemas=True)
DEBEZIUM = GoldConfig(feed="f", time_zone="UTC", noncanonical_key_digits=True)
DECIMAL_KEY = "CREATE TABLE d.t (id DECIMAL(9,2) PRIMARY KEY, v VARCHAR(9))"
DECIMAL = definition(sql=DECIMAL_KEY)
SIMPLE_TRUSTED = replace(SIMPLE, options=sink_options("simple", {"simple-column-order": "trust"}))
STOPS = {
    "nothing in the way": (situation(ROWS, known=KNOWN, state=STATE), 20, None),
    "a new table, from the wire": (situation(ROWS), 20, None),
    "a new table with a column that is named as gold's own": (
        situation(replace(ROWS, columns=(ID, replace(V, name="_TiCDC_Key")))),
        10,
        "column `_TiCDC_Key`: names that begin with _ticdc_",
    ),
    "CREATE TABLE with such a column": (
        situation(ddls=(ddl(12, "CREATE TABLE t (id INT PRIMARY KEY, _ticdc_key INT)"),)),
        12,
        "column `_ticdc_key`: names that begin with _ticdc_",
    ),
    "ADD COLUMN of such a column": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, "ALTER TABLE t ADD _ticdc_irregular INT"),)),
        17,
        "unsupported DDL at 17 (1970-01-01 00:00:00.000 UTC): column `_ticdc_irregular`: names that begin",
    ),
    "rows with their key alone": (
        situation(replace(ROWS, handle_only=True), known=KNOWN, state=STATE),
        14,
        "a row was too large",
    ),
    "deletes of a table that nobody knows": (situation(replace(ROWS, whole=False)), 10, "columns are unknown"),
    "no key on the wire, none in the definition": (
        situation(
            replace(ROWS, keyed=False), known=definition(sql="CREATE TABLE d.t (id BIGINT, v TEXT)"), state=STATE
        ),
        14,
        "no handle key",
    ),
    "no key on the wire, one in the definition": (
        situation(replace(ROWS, keyed=False), known=KNOWN, state=STATE),
        20,
        None,
    ),
    "a column that the definition has not": (
        situation(replace(ROWS, columns=(ID, V, replace(V, name="w"))), known=KNOWN, state=STATE),
        14,
        "lacks: w",
    ),
    "a column of the definition is missing": (
        situation(replace(ROWS, columns=(ID,)), known=KNOWN, state=STATE),
        14,
        "rows lack columns of the table's definition: v",
    ),
    "a delete may hold the key alone": (
        situation(replace(ROWS, columns=(ID,), whole=False), known=KNOWN, state=STATE),
        20,
        None,
    ),
    "another kind of type": (
        situation(replace(ROWS, columns=(ID, replace(V, type="int"))), known=KNOWN, state=STATE),
        14,
        "column v is VARCHAR(9) in the table's definition, rows have int",
    ),
    "signed and unsigned": (
        situation(replace(ROWS, columns=(replace(ID, type="bigint unsigned"), V)), known=KNOWN, state=STATE),
        14,
        "rows have bigint unsigned",
    ),
    "an integer that is larger than the definition knows": (
        situation(ROWS, known=definition(sql="CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(9))"), state=STATE),
        14,
        "column id is INT in the table's definition, rows have bigint",
    ),
    "an integer that is smaller than the definition knows": (
        situation(replace(ROWS, columns=(replace(ID, type="mediumint"), V)), known=KNOWN, state=STATE),
        20,
        None,
    ),
    "a decimal with more digits after the point than the definition knows": (
        situation(replace(ROWS, columns=(replace(ID, type="decimal(9,3)"), V)), known=DECIMAL, state=STATE),
        14,
        "column id is DECIMAL(9,2) in the table's definition, rows have decimal(9,3)",
    ),
    "a decimal with more digits before the point than the definition knows": (
        situation(replace(ROWS, columns=(replace(ID, type="decimal(9)"), V)), known=DECIMAL, state=STATE),
        14,
        "rows have decimal(9)",
    ),
    "a decimal of which the wire does not tell the digits": (
        situation(replace(ROWS, columns=(replace(ID, type="decimal"), V)), known=DECIMAL, state=STATE),
        20,
        None,
    ),
    "a message in quarantine": (
        situation(ROWS, known=KNOWN, state=STATE, hold=quarantined(12)),
        12,
        "in quarantine",
    ),
    "a message in quarantine before everything": (
        situation(ROWS, known=KNOWN, state=STATE, hold=quarantined(0)),
        10,
        "in quarantine",
    ),
    "a message in quarantine beyond the window": (
        situation(ROWS, known=KNOWN, state=STATE, hold=quarantined(20)),
        20,
        None,
    ),
    "a DDL that is followed": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, "ALTER TABLE t ADD w INT"),)),
        20,
        None,
    ),
    "an unsupported DDL": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, UNFOLLOWED),)),
        17,
        "unsupported DDL at 17 (1970-01-01 00:00:00.000 UTC)",
    ),
    "at the window's end": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(20, UNFOLLOWED),)),
        20,
        "unsupported DDL at 20 ",
    ),
    "at the published watermark": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(10, UNFOLLOWED),)),
        10,
        "unsupported DDL at 10 ",
    ),
    "at the published watermark, and in already": (
        situation(
            ROWS,
            known=KNOWN,
            state=replace(STATE, ddls=("ALTER TABLE t DROP COLUMN v",)),
            ddls=(ddl(10, "ALTER TABLE t DROP COLUMN v"),),
        ),
        20,
        None,
    ),
    "the first of two DDLs": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(12, UNFOLLOWED), ddl(13, "ALTER TABLE t ADD w INT"))),
        12,
        "unsupported DDL at 12 ",
    ),
    "rows that do not know of a DDL": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(12, "ALTER TABLE t ADD w INT"),)),
        14,
        "rows lack columns of the table's definition: w",
    ),
    "a hold before a DDL": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, UNFOLLOWED),), hold=quarantined(12)),
        12,
        "in quarantine",
    ),
    "an unreadable DDL of the database": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(12, "FLASHBACK DATABASE d", None),)),
        12,
        "FLASHBACK",
    ),
    "CREATE TABLE": (situation(ddls=(ddl(12, "CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)"),)), 20, None),
    "CREATE TABLE at the published watermark, again": (
        situation(
            known=definition(10),
            state=replace(STATE, ddls=("CREATE TABLE t (id BIGINT PRIMARY KEY)",)),
            ddls=(ddl(10, "CREATE TABLE t (id BIGINT PRIMARY KEY)"),),
        ),
        20,
        None,
    ),
    "CREATE TABLE of one that is there": (
        situation(known=definition(9), state=STATE, ddls=(ddl(12, "CREATE TABLE t (id BIGINT PRIMARY KEY)"),)),
        12,
        "exists already",
    ),
    "CREATE TABLE LIKE one that nobody knows": (
        situation(ddls=(ddl(12, "CREATE TABLE t LIKE nobody"),)),
        12,
        "d.nobody is unknown",
    ),
    "EXCHANGE PARTITION with a table that nobody knows": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, "ALTER TABLE u EXCHANGE PARTITION p WITH TABLE t"),)),
        17,
        "one table is unknown to this feed or blocked",
    ),
    "RECOVER TABLE of one that nobody knew": (
        situation(ddls=(ddl(12, "RECOVER TABLE t"),)),
        12,
        "rows of the restored table",
    ),
    "renamed out of what the filter leaves out": (
        situation(
            ddls=(ddl(12, "RENAME TABLE hidden TO t"),),
            applying=GoldConfig(feed="f", time_zone="UTC", matches=lambda _, name: name != "hidden"),
        ),
        12,
        "filter excludes",
    ),
    "Craft's FLOAT, refused": (
        situation(
            replace(ROWS, columns=(ID, replace(V, defect="craft-float"))),
            known=KNOWN,
            state=STATE,
            applying=GoldConfig(feed="f", time_zone="UTC", options=sink_options("craft", {})),
        ),
        14,
        "it has a FLOAT column",
    ),
    "Craft's FLOAT, trusted": (
        situation(
            replace(ROWS, columns=(ID, replace(V, defect="craft-float"))),
            known=KNOWN,
            state=STATE,
            applying=GoldConfig(feed="f", time_zone="UTC", options=sink_options("craft", {"craft-float": "trust"})),
        ),
        20,
        None,
    ),
    "a key of digits that are the protocol's own": (
        situation(
            known=definition(sql=DECIMAL_KEY),
            state=STATE,
            ddls=(ddl(17, "ALTER TABLE t MODIFY id DECIMAL(9,4)"),),
            applying=DEBEZIUM,
        ),
        17,
        "DECIMAL(9,4) keys with different digits",
    ),
    "a key of digits that are the protocol's own, as it was": (
        situation(
            known=definition(sql=DECIMAL_KEY),
            state=STATE,
            ddls=(ddl(17, "ALTER TABLE t ADD w INT"),),
            applying=DEBEZIUM,
        ),
        20,
        None,
    ),
    "columns in another order than the table's": (
        situation(replace(ROWS, columns=(V, ID)), known=KNOWN, state=STATE, applying=SIMPLE),
        14,
        "set the feed's option simple-column-order to trust only if",
    ),
    "columns in another order, trusted": (
        situation(replace(ROWS, columns=(V, ID)), known=KNOWN, state=STATE, applying=SIMPLE_TRUSTED),
        20,
        None,
    ),
    "columns in another order, of a protocol whose rows describe themselves": (
        situation(replace(ROWS, columns=(V, ID)), known=KNOWN, state=STATE),
        20,
        None,
    ),
    "a DDL that nobody can read": (
        situation(
            known=KNOWN, state=STATE, ddls=(ddl(12, "ALTER TABLE d.T SOME NEW THING", name="T", database="D"),)
        ),
        12,
        "expected an action of ALTER TABLE",
    ),
    "a DDL that nobody can read, of a table that nobody knows": (
        situation(ddls=(ddl(12, "ALTER TABLE t SOME NEW THING"),)),
        12,
        "expected an action of ALTER TABLE",
    ),
    "blocked until a person decides": (
        situation(ROWS, known=KNOWN, state=replace(STATE, applied_tso=5, stop=DDL_STOP)),
        5,
        "unsupported DDL at 5 ",
    ),
    "blocked for a while": (
        situation(ROWS, known=KNOWN, state=replace(STATE, applied_tso=5, stop=quarantined(5).stop)),
        20,
        None,
    ),
}


@pytest.mark.parametrize(("now", "through", "reason"), STOPS.values(), ids=STOPS)
def test_where_a_table_stops(now: PlanningInput, through: int, reason: str | None) -> None:
    made = plan(now)
    assert made.through == through
    if reason is None:
        assert block_reason(made) is None
    else:
        assert block_reason(made) is not None
        assert reason in block_reason(made)
    waits = any(word in (block_reason(made) or "") for word in ("nobody", "hidden"))
    unsupported = made.stop is not None and made.stop.kind is StopKind.UNSUPPORTED_DDL
    assert needs_override(made) == (unsupported and not waits)


def test_unsupported_ddl_names_the_ways_out_in_one_line() -> None:
    anew = "`ticdc-lake load` goes on from an export taken since; DROP and CREATE in TiDB starts the table anew"
    unfollowed = ddl(17, UNFOLLOWED.replace(" ADD", "\n  ADD"))
    known = block_reason(plan(situation(ROWS, known=KNOWN, state=STATE, ddls=(unfollowed,)))) or ""
    assert known.endswith(f": {UNFOLLOWED}; ways out: `ticdc-lake table skip-ddl` skips it; {anew}")
    unknown = block_reason(plan(situation(ddls=(ddl(17, "CREATE TABLE t LIKE hidden"),)))) or ""
    assert unknown.endswith(f": CREATE TABLE t LIKE hidden; ways out: {anew}")


def steps(made: TablePlan) -> list[tuple[str, int]]:
    """R rows through, A alter at, E exchange at."""
    return [(type(s).__name__[0], s.through if isinstance(s, MergeRows) else s.commit_ts) for s in made.steps]


def test_rows_take_turns_with_ddls() -> None:
    after = replace(ROWS, columns=(ID,), first=18, last=19)
    now = situation(ROWS, after, known=KNOWN, state=STATE, ddls=(ddl(15, "ALTER TABLE t DROP COLUMN v"),))
    made = plan(now)
    assert steps(made) == [("M", 15), ("A", 15), ("M", 20)]
    first, _, last = made.steps
    assert isinstance(first, MergeRows)
    assert isinstance(last, MergeRows)
    assert (first.groups, last.groups) == ((ROWS,), (after,))
    assert (first.table, last.table.columns) == (table(), table().columns[:1])
    assert [found.commit_ts for found in made.found] == [15]


def test_what_is_no_change_is_no_barrier() -> None:
    now = situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(15, "ALTER TABLE t COMMENT = 'c'"),))
    assert now.window.ddls[0].statements == (), "else rows are parted by it"
    assert steps(plan(now)) == [("M", 20)]


def test_an_index_is_no_barrier_but_its_name_is_known() -> None:
    keys = (Key(name="PRIMARY", columns=("id",)),)
    known = replace(KNOWN, table=replace(table(), keys=keys))
    now = situation(ROWS, known=known, state=STATE, ddls=(ddl(15, "CREATE INDEX i ON t (v)"),))
    made = plan(now)
    assert steps(made) == [("M", 20)]
    assert made.definition is not None
    assert made.definition.table.keys == (*keys, Key(name="i", columns=("v",), unique=False))
    assert [found.commit_ts for found in made.found] == [KNOWN.commit_ts], "rows are of the definition before"


def test_renamed_table_keeps_its_rows_under_the_new_name() -> None:
    now = situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(16, "RENAME TABLE t TO u"),))
    later = replace(ROWS, first=18, last=18)
    now = replace(now, window=replace(now.window, rows={NAME: (ROWS,), U: (later,)}))
    made = plan(now, U)
    assert [each.name for each in plan_tables(now).tables] == [U]
    assert (made.state, made.view) == (STATE, "f_d_u")
    assert [(s.table.table, s.groups) for s in made.steps if isinstance(s, MergeRows)] == [
        ("t", (ROWS,)),
        ("u", (later,)),
    ]
    assert [(found.data, found.table.table) for found in made.found] == [(DATA, "u")]


@pytest.mark.parametrize("commit_ts", [16, 20])
def test_swapped_names_are_swapped_once(commit_ts: int) -> None:
    """The next window sees DDLs at exactly the watermark again."""
    ddls = tuple(ddl(commit_ts, f"RENAME TABLE {a} TO {b};") for a, b in (("t", "tmp"), ("u", "t"), ("tmp", "u")))
    other = replace(definition(), table=replace(table(), table="u"), name="f_d_u", data="f_d_u__data")
    now = situation(known=KNOWN, state=STATE, ddls=ddls)
    before = replace(now.before, tables={NAME: STATE, U: replace(STATE, name="f_d_u", data="f_d_u__data")})
    now = replace(now, before=before, known={DATA: KNOWN, "f_d_u__data": other})
    assert {p.name: p.state.data for p in plan_tables(now).tables if p.state} == {
        NAME: "f_d_u__data",
        U: DATA,
    }
    seen = {
        p.name: replace(p.state, name=p.view, ddls=p.ddls, applied_tso=20) for p in plan_tables(now).tables if p.state
    }
    found = {p.definition.data: p.definition for p in plan_tables(now).tables if p.definition}
    again = replace(now, before=Published(tso=20, tables=seen), known=found, tso=30)
    assert {p.name: p.state.data for p in plan_tables(again).tables if p.state} == {
        NAME: "f_d_u__data",
        U: DATA,
    }


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
    now = situation(known=KNOWN, state=STATE, ddls=(ddl(commit_ts, query),))
    (made,) = plan_tables(now).tables
    assert (made.name, block_reason(made), made.definition and made.definition.table.table) == (("d", name), None, name)
    assert made.definition is not None
    state = replace(STATE, name=made.view, applied_tso=20, ddls=made.ddls)
    again = replace(now, before=Published(tso=20, tables={made.name: state}), known={DATA: made.definition}, tso=30)
    (unchanged,) = plan_tables(again).tables
    assert (unchanged.name, block_reason(unchanged), unchanged.definition) == (made.name, None, made.definition)


def test_rename_of_a_swap_that_arrives_after_its_watermark_is_applied() -> None:
    """Also to a table that a message in quarantine blocks meanwhile."""
    ddls = tuple(ddl(20, f"RENAME TABLE {a} TO {b};") for a, b in (("t", "tmp"), ("u", "t"), ("tmp", "u")))
    other = replace(definition(), table=replace(table(), table="u"), name="f_d_u", data="f_d_u__data")
    now = situation(known=KNOWN, state=STATE, ddls=ddls[:1])
    before = replace(now.before, tables={NAME: STATE, U: replace(STATE, name="f_d_u", data="f_d_u__data")})
    first = replace(now, before=before, known={DATA: KNOWN, "f_d_u__data": other})
    second = replace(after_window(first, 30), window=replace(now.window, ddls=ddls))
    blocked = replace(second, holds={TableName("d", "tmp"): quarantined(19)})
    third = replace(after_window(blocked, 40), window=second.window)
    for last in (second, third):
        assert {p.name: p.state.data for p in plan_tables(last).tables if p.state} == {NAME: "f_d_u__data", U: DATA}
    assert {str(p.name): block_reason(p) for p in plan_tables(blocked).tables} == {"d.t": None, "d.u": "in quarantine"}
    assert [block_reason(p) for p in plan_tables(third).tables] == [None, None]
    assert [p.definition.table.name for p in plan_tables(third).tables if p.definition] == [NAME, U]


def after_window(now: PlanningInput, tso: int) -> PlanningInput:
    """The window up to ``tso`` that follows one in which every step succeeded."""
    made = [each for each in plan_tables(now).tables if each.state and each.definition]
    tables = {
        p.name: replace(p.state, name=p.view, ddls=p.ddls, applied_tso=p.through, stop=p.stop) for p in made if p.state
    }
    known = {p.definition.data: p.definition for p in made if p.definition}
    return replace(now, before=Published(tso=now.tso, tables=tables), known=known, holds={}, tso=tso)


@pytest.mark.parametrize("query", ["DROP TABLE t", "DROP DATABASE d", "RENAME TABLE t TO hidden"])
def test_dropped_table_is_gone_even_if_it_stood_still(query: str) -> None:
    applying = GoldConfig(feed="f", time_zone="UTC", matches=lambda _, name: name != "hidden")
    for state in (STATE, replace(STATE, applied_tso=5, stop=DDL_STOP)):
        assert not plan_tables(
            situation(ROWS, known=KNOWN, state=state, ddls=(ddl(16, query),), applying=applying)
        ).tables


@pytest.mark.parametrize("query", ["TRUNCATE TABLE t", "DROP TABLE t"])
def test_new_rows_lie_in_another_place(query: str) -> None:
    """So that what the table held before stays readable as of a TSO."""
    ddls = (ddl(16, query), *([] if "TRUNC" in query else [ddl(17, "CREATE TABLE t (id BIGINT KEY, v VARCHAR(9))")]))
    now = situation(replace(ROWS, first=18), known=KNOWN, state=STATE, ddls=ddls)
    now.naming.history = lambda: [Taken(feed="f", table=NAME, name="f_d_t", data=DATA)]
    made = plan(now)
    assert made.start is not None
    assert (made.state, made.start.data) == (None, f"{DATA}_{ddls[-1].commit_ts}")
    assert steps(made) == [("M", 20)]


def test_what_is_merged() -> None:
    def merged(now: PlanningInput) -> int:
        return sum(isinstance(step, MergeRows) and bool(step.groups) for step in plan(now).steps)

    assert merged(situation(ROWS, known=KNOWN, state=STATE)) == 1
    assert merged(situation(known=KNOWN, state=STATE)) == 0
    assert merged(situation(ROWS, known=KNOWN, state=STATE, hold=quarantined(14))) == 0
    assert merged(situation(replace(ROWS, first=5, replayed=True), known=KNOWN, state=STATE)) == 1


def test_replayed_row_that_does_not_fit_is_not_merged() -> None:
    """It is older than what the table holds, so there is no state to stop at before it."""
    late = replace(ROWS, first=5, handle_only=True, replayed=True)
    made = plan(situation(late, known=KNOWN, state=STATE))
    assert (made.through, needs_override(made)) == (10, True)
    assert not any(step.groups for step in made.steps if isinstance(step, MergeRows))
    assert block_reason(made) is not None
    assert "late row" in block_reason(made)
    changed = plan(situation(replace(ROWS, first=5, replayed=True), known=definition(7), state=STATE))
    assert block_reason(changed) is not None
    assert "a later DDL changed" in block_reason(changed)


def by_database(*ddls: DdlEvent) -> PlanningInput:
    """A window of a feed with one schema a database."""
    now = situation(ROWS, ddls=ddls, known=replace(KNOWN, name="d.t"), state=replace(STATE, name="d.t"))
    return replace(now, naming=Naming(feed="f", history=list, template="{table}", schema_template="{database}"))


def test_a_table_keeps_its_rows_while_its_schema_is_the_same() -> None:
    renamed = plan(by_database(ddl(12, "RENAME TABLE t TO u")), U)
    assert (renamed.view, renamed.start, renamed.stop) == ("d.u", replace(KNOWN, name="d.t"), None)


@pytest.mark.parametrize("query", ["RENAME TABLE t TO other.t", "ALTER TABLE t RENAME other.t"])
def test_a_table_that_goes_to_another_schema_has_no_rows_there(query: str) -> None:
    """No catalog moves a table; TiDB may make another one in its place."""
    create = "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))"
    now = by_database(ddl(12, query), ddl(13, create))
    moved, new = plan(now, TableName("other", "t")), plan(now)
    assert (moved.start, moved.through) == (None, 12)
    assert needs_override(moved)
    assert "`ticdc-lake load` an export taken since" in str(block_reason(moved))
    assert (new.view, new.stop, new.start and new.start.commit_ts) == ("d.t", None, 13)
    again = replace(now, before=replace(now.before, tso=20), window=replace(now.window, rows={}, ddls=()))
    state = TableState(name="", data="", version=-1, applied_tso=12, stop=moved.stop)
    later = {moved.name: (replace(ROWS, name=moved.name, first=25),)}
    again = replace(again, before=replace(again.before, tables={moved.name: state}), tso=30)
    assert plan(replace(again, window=replace(again.window, rows=later)), moved.name).start is None


def test_tables_of_a_file_and_of_the_filter() -> None:
    applying = GoldConfig(feed="f", time_zone="UTC", tables=(table(),), matches=lambda _, name: name != "hidden")
    hidden = situation(ROWS, applying=applying)
    hidden = replace(hidden, window=replace(hidden.window, rows={NAME: (ROWS,), TableName("d", "hidden"): (ROWS,)}))
    plans = plan_tables(hidden).tables
    assert [each.name for each in plans] == [NAME]
    assert plans[0].definition == replace(KNOWN, source="file")


def test_create_table_knows_better_than_a_file() -> None:
    applying = GoldConfig(feed="f", time_zone="UTC", tables=(table(),))
    now = situation(ddls=(ddl(5, "CREATE TABLE t (id BIGINT KEY)"),), applying=applying)
    made = plan(replace(now, before=Published()))
    assert made.definition is not None
    assert (block_reason(made), len(made.definition.table.columns)) == (None, 1)


@pytest.mark.parametrize("other", [TableName("d", "T"), TableName("D", "t"), TableName("D", "T")])
def test_names_that_differ_in_case_alone_are_one_table(other: TableName) -> None:
    now = situation(ROWS, known=KNOWN, state=STATE)
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
    made = plan(situation(*groups, known=KNOWN, state=STATE))
    assert (block_reason(made) or "").startswith(reason or "")
    assert (block_reason(made) is None) == (reason is None)
    assert made.through == (20 if reason is None else 10)


def test_restart_after_a_rename_sends_rows_again_in_the_spelling_of_the_create() -> None:
    """tiflow takes the database's name from the RENAME's job, and after a restart from TiDB (wire.md 8.14)."""
    capital = replace(KNOWN, table=replace(KNOWN.table, database="Shop"))
    renamed = ddl(12, "RENAME TABLE `Shop`.`t` TO `Shop`.`new`", "new", "shop")
    before = replace(MIXED_ROWS, name=TableName("shop", "new"), first=14, last=17)
    again = replace(MIXED_ROWS, name=TableName("Shop", "new"), first=15, last=19)
    now = situation(known=capital, ddls=(renamed,))
    now = replace(now, before=replace(now.before, tables={TableName("Shop", "t"): STATE}))
    now = replace(now, window=replace(now.window, rows={before.name: (before, again)}))
    (made,) = plan_tables(now).tables
    assert (str(made.name), block_reason(made), steps(made)) == ("Shop.new", None, [("M", 12), ("M", 20)])


def test_renamed_table_keeps_the_spelling_of_its_database() -> None:
    """In the message of a RENAME, and sometimes in its text, tiflow has the database in lower case."""
    capital = replace(KNOWN, table=replace(KNOWN.table, database="Shop"))
    renamed = ddl(14, "RENAME TABLE `shop`.`t` TO `shop`.`New`", "New", "shop")
    state = {TableName("Shop", "t"): STATE}
    now = situation(known=capital, ddls=(renamed, ddl(16, "CREATE TABLE SHOP.other (id INT KEY)", None)))
    rows = {name: (replace(ROWS, name=name),) for name in (TableName("shop", "New"),)}
    now = replace(now, before=replace(now.before, tables=state), window=replace(now.window, rows=rows))
    assert {str(made.name): steps(made) for made in plan_tables(now).tables} == {
        "Shop.New": [("M", 14), ("M", 20)],
        "Shop.other": [("M", 20)],
    }


SWAP = ("RENAME TABLE `d`.`t` TO `d`.`aaa`", "RENAME TABLE `d`.`u` TO `d`.`t`", "RENAME TABLE `d`.`aaa` TO `d`.`u`")


@pytest.mark.parametrize("arrived", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_a_swap_through_several_topics_is_done_in_the_order_that_is_possible(arrived: tuple[int, ...]) -> None:
    other = replace(KNOWN, table=table("CREATE TABLE d.u (id BIGINT PRIMARY KEY)"), name="f_d_u", data="f_d_u__data")
    now = situation(known=KNOWN, state=STATE)
    ddls = tuple(replace(ddl(15, SWAP[number]), topic=f"topic {number}") for number in arrived)
    tables = {NAME: STATE, U: replace(STATE, name="f_d_u", data=other.data)}
    now = replace(
        now,
        known={DATA: KNOWN, other.data: other},
        before=replace(now.before, tables=tables),
        window=replace(now.window, ddls=ddls),
    )
    made = {each.name: each.definition.data for each in plan_tables(now).tables if each.definition is not None}
    assert made == {U: DATA, NAME: other.data}


def test_blocked_table_without_columns_keeps_the_name_that_it_got_in_a_swap() -> None:
    """A window reads the DDLs again since any table was blocked. This one's state has its newest name alone."""
    unknown = TableState(name="", data="", version=-1, applied_tso=5, stop=DDL_STOP)
    rows = replace(ROWS, name=U)
    now = situation(known=KNOWN, state=STATE, ddls=tuple(ddl(8, query) for query in SWAP))
    now = replace(now, before=replace(now.before, tables={NAME: STATE, U: unknown}))
    now = replace(now, window=replace(now.window, rows={U: (rows,)}))
    assert {each.name: (each.definition and each.definition.data, each.stop) for each in plan_tables(now).tables} == {
        NAME: (DATA, None),
        U: (None, DDL_STOP),
    }


def test_a_row_that_the_table_has_yet_to_take_is_not_late() -> None:
    """It stood still below what the feed published, and takes all rows since."""
    lagging = replace(STATE, applied_tso=4)
    row = replace(ROWS, first=5, last=19)
    now = situation(row, known=KNOWN, state=lagging)
    made = plan(replace(now, late={NAME: late_point(7)}))
    assert (block_reason(made), made.through, steps(made)) == (None, 20, [("M", 20)])
    made = plan(replace(now, late={NAME: late_point(3)}))
    assert (block_reason(made), made.through, needs_override(made)) == ("came late", 3, True)
