"""What a window does to each table: decided without Spark, so every stop can be a line of a table here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ticdc_lakehouse.codec.options import CraftFloat
from ticdc_lakehouse.ddl.script import tables_from_sql
from ticdc_lakehouse.definition import Table
from ticdc_lakehouse.event import Column
from ticdc_lakehouse.lake.plan import Applying, Situation, TablePlan, plan_tables
from ticdc_lakehouse.lake.state import Definition, Published, TableName, TableState
from ticdc_lakehouse.lake.watermark import Hold
from ticdc_lakehouse.lake.window import DdlEvent, Shape, TableChanges, Window

NAME = ("d", "t")
ID, V = Column(name="id", type="bigint", key=True), Column(name="v", type="varchar")
ROWS = Shape(columns=(ID, V), whole=True, handle_only=False, keyed=True, first=15, rows=2)


def table(sql: str = "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(9))") -> Table:
    return tables_from_sql(sql)[0]


def definition(commit_ts: int = 0, sql: str | None = None) -> Definition:
    return Definition(table=table(sql) if sql else table(), commit_ts=commit_ts, source="ddl", name="f_d_t")


def ddl(commit_ts: int, query: str, name: str | None = "t", database: str = "d") -> DdlEvent:
    return DdlEvent(commit_ts=commit_ts, database=database, table=name, query=query)


def situation(
    *shapes: Shape,
    ddls: tuple[DdlEvent, ...] = (),
    known: Definition | None = None,
    state: TableState | None = None,
    hold: Hold | None = None,
    applying: Applying | None = None,
) -> Situation:
    """The window (10, 20] of one table."""
    return Situation(
        applying=applying or Applying(feed="f", time_zone="UTC"),
        before=Published(tso=10, batch=3, tables={} if state is None else {NAME: state}),
        known={} if known is None else {NAME: known},
        window=Window(
            rows={NAME: TableChanges(shapes=shapes)} if shapes else {}, ddls=ddls, replays_seen=None, row_changes=0
        ),
        holds={} if hold is None else {NAME: hold},
        tso=20,
        name_of=lambda name: "_".join(("f", *name)),
    )


def plan(now: Situation, name: TableName = NAME) -> TablePlan:
    return {each.name: each for each in plan_tables(now)}[name]


KNOWN = definition()
STATE = TableState(name="f_d_t", version=4, applied_tso=10)
STOPS = {
    "nothing in the way": (situation(ROWS, known=KNOWN, state=STATE), 20, None),
    "a new table, from the wire": (situation(ROWS), 20, None),
    "rows with their key alone": (
        situation(replace(ROWS, handle_only=True), known=KNOWN, state=STATE),
        14,
        "a row was too large",
    ),
    "deletes of a table that nobody knows": (situation(replace(ROWS, whole=False)), 14, "columns are not known yet"),
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
        "has not: w",
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
    "a message in quarantine": (
        situation(ROWS, known=KNOWN, state=STATE, hold=Hold(tso=12, reason="in quarantine")),
        12,
        "in quarantine",
    ),
    "a message in quarantine before everything": (
        situation(ROWS, known=KNOWN, state=STATE, hold=Hold(tso=0, reason="in quarantine")),
        10,
        "in quarantine",
    ),
    "a message in quarantine beyond the window": (
        situation(ROWS, known=KNOWN, state=STATE, hold=Hold(tso=20, reason="in quarantine")),
        20,
        None,
    ),
    "a DDL": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, "ALTER TABLE t ADD w INT"),)),
        17,
        "DDL at 17 is not followed yet: ALTER",
    ),
    "a DDL at the window's end": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(20, "TRUNCATE TABLE t"),)),
        20,
        "DDL at 20",
    ),
    "a DDL at the published watermark": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(10, "TRUNCATE TABLE t"),)),
        10,
        "DDL at 10",
    ),
    "the first of two DDLs": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(12, "DROP TABLE t"), ddl(13, "ALTER TABLE t ADD w INT"))),
        12,
        "DROP TABLE",
    ),
    "a hold before a DDL": (
        situation(
            ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, "DROP TABLE t"),), hold=Hold(tso=12, reason="in quarantine")
        ),
        12,
        "in quarantine",
    ),
    "DROP DATABASE": (situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(12, "DROP DATABASE d", None),)), 12, "DROP"),
    "DROP DATABASE, of a table that only its rows tell": (
        situation(ROWS, ddls=(ddl(17, "DROP DATABASE d", None),)),
        17,
        "DROP",
    ),
    "DROP DATABASE before the table's first rows": (
        situation(ROWS, ddls=(ddl(12, "DROP DATABASE d", None), ddl(13, "CREATE TABLE t (id BIGINT KEY, v TEXT)"))),
        20,
        None,
    ),
    "DROP of another database": (
        situation(ROWS, known=KNOWN, state=STATE, ddls=(ddl(12, "DROP DATABASE e", None, "e"),)),
        20,
        None,
    ),
    "CREATE TABLE": (situation(ddls=(ddl(12, "CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)"),)), 20, None),
    "the CREATE TABLE that made it, again": (
        situation(known=definition(12), state=STATE, ddls=(ddl(12, "CREATE TABLE t (id BIGINT PRIMARY KEY)"),)),
        20,
        None,
    ),
    "CREATE TABLE of one that is there": (
        situation(known=definition(9), state=STATE, ddls=(ddl(12, "CREATE TABLE t (id BIGINT PRIMARY KEY)"),)),
        12,
        "CREATE TABLE",
    ),
    "Craft's FLOAT, refused": (
        situation(
            replace(ROWS, columns=(ID, replace(V, doubt="craft-float"))),
            known=KNOWN,
            state=STATE,
            applying=Applying(feed="f", time_zone="UTC", craft_float=CraftFloat.REFUSE),
        ),
        14,
        "it has a FLOAT column",
    ),
    "Craft's FLOAT, trusted": (
        situation(replace(ROWS, columns=(ID, replace(V, doubt="craft-float"))), known=KNOWN, state=STATE),
        20,
        None,
    ),
    "it stood still for good": (
        situation(ROWS, known=KNOWN, state=replace(STATE, applied_tso=5, reason="DDL at 5", final=True)),
        5,
        "DDL at 5",
    ),
    "it stood still for a while": (
        situation(ROWS, known=KNOWN, state=replace(STATE, applied_tso=5, reason="x")),
        20,
        None,
    ),
}


@pytest.mark.parametrize(("now", "through", "reason"), STOPS.values(), ids=STOPS)
def test_where_a_table_stops(now: Situation, through: int, reason: str | None) -> None:
    made = plan(now)
    assert made.through == through
    if reason is None:
        assert made.reason is None
    else:
        assert made.reason is not None
        assert reason in made.reason
    assert made.after == (10 if not now.before.tables else now.before.tables[NAME].applied_tso)
    assert made.final == (made.reason is not None and made.reason.startswith("DDL"))


def test_what_is_merged() -> None:
    assert plan(situation(ROWS, known=KNOWN, state=STATE)).merges
    assert not plan(situation(known=KNOWN, state=STATE)).merges
    assert not plan(situation(ROWS, known=KNOWN, state=STATE, hold=Hold(tso=14, reason="x"))).merges
    replayed = situation(known=KNOWN, state=STATE)
    changes = TableChanges(shapes=(replace(ROWS, first=5),), replayed=True)
    assert plan(replace(replayed, window=replace(replayed.window, rows={NAME: changes}))).merges


def test_replayed_row_that_does_not_fit_is_not_merged() -> None:
    """It is older than what the table holds, so there is no state to stop at before it."""
    now = situation(known=KNOWN, state=STATE)
    late = TableChanges(shapes=(replace(ROWS, first=5, handle_only=True),), replayed=True)
    made = plan(replace(now, window=replace(now.window, rows={NAME: late})))
    assert (made.through, made.final, made.merges) == (10, True, False)
    assert made.reason is not None
    assert "replayed from quarantine" in made.reason


def test_other_tables_of_a_ddl_stop_too() -> None:
    now = situation(known=KNOWN, state=STATE, ddls=(ddl(12, "RENAME TABLE t TO u"),))
    assert plan(now).through == plan(now, ("d", "u")).through == 12
    assert plan(now, ("d", "u")).definition is None


def test_tables_of_a_file_and_of_the_filter() -> None:
    applying = Applying(feed="f", time_zone="UTC", tables=(table(),), matches=lambda _, name: name != "hidden")
    hidden = situation(ROWS, applying=applying)
    hidden = replace(hidden, window=replace(hidden.window, rows={("d", "hidden"): TableChanges(shapes=(ROWS,))}))
    plans = plan_tables(hidden)
    assert [each.name for each in plans] == [NAME]
    assert plans[0].definition == Definition(table=table(), commit_ts=0, source="file", name="f_d_t")
