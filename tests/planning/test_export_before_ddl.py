"""An export that is taken just before a DDL's commit_ts has its effect already: the DDL is done once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ticdc_codec.event import Column
from ticdc_codec.tso import first_of
from ticdc_lakehouse.planning.naming import Naming, TakenNames
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, TableState
from ticdc_lakehouse.planning.steps import AlterRows
from ticdc_lakehouse.planning.stop_reason import StopKind
from ticdc_lakehouse.planning.window import DdlEvent, RowGroup, Window, statements_of
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql

NAME, U = TableName("d", "t"), TableName("d", "u")
CREATE = (
    "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(9), w INT, UNIQUE KEY u (v)) "
    "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (9), PARTITION p1 VALUES LESS THAN (99))"
)
EXPORTED_AT = first_of(1_700_000_000_000)
SOON, LATER = first_of(1_700_000_000_300), first_of(1_700_000_020_000)
DATA = "f_d_t__data"


def planned(
    commit_ts: int, query: str, *rows: RowGroup, origin: Origin = Origin.EXPORT, sql: str = CREATE
) -> TablePlan:
    """The table, as exported or made at ``EXPORTED_AT``, after a window with the DDL."""
    ddl = DdlEvent(commit_ts=commit_ts, database="d", table="t", query=query, statements=statements_of(query, "d", "t"))
    (plan,) = plan_tables(exported(ddl, *rows, origin=origin, sql=sql)).tables
    return plan


def exported(ddl: DdlEvent, *rows: RowGroup, origin: Origin = Origin.EXPORT, sql: str = CREATE) -> PlanningInput:
    """The window with the DDL, after which the table is as it was exported or made."""
    table = tables_from_sql(sql)[0]
    definition = Definition(
        table=table, commit_ts=EXPORTED_AT, origin=origin, lake_name="f_d_t", stable_id=DATA, named_at=EXPORTED_AT
    )
    return PlanningInput(
        config=GoldConfig(feed="f", time_zone="UTC"),
        before=Published(
            tso=EXPORTED_AT,
            tables={NAME: TableState(lake_name="f_d_t", stable_id=DATA, version=1, applied_tso=EXPORTED_AT)},
        ),
        definitions={DATA: definition},
        window=Window(rows={NAME: rows} if rows else {}, ddls=(ddl,), replays_seen=None, row_changes=0),
        quarantine_points={},
        tso=LATER + 1,
        naming=Naming(feed="f", taken=TakenNames()),
    )


DONE = [
    "ALTER TABLE t ADD COLUMN w INT",
    "ALTER TABLE t ADD COLUMN w INT DEFAULT 7, DROP COLUMN x, RENAME COLUMN y TO V",
    "ALTER TABLE t DROP COLUMN x",
    "ALTER TABLE t RENAME COLUMN x TO w",
    "ALTER TABLE t CHANGE COLUMN x w INT",
    "ALTER TABLE t ADD UNIQUE KEY u (v)",
    "ALTER TABLE t DROP PARTITION p9",
    CREATE,
]


@pytest.mark.parametrize("query", DONE)
@pytest.mark.parametrize("commit_ts", [SOON, EXPORTED_AT + 1])
def test_what_an_export_has_already_is_not_done_again(query: str, commit_ts: int) -> None:
    plan = planned(commit_ts, query)
    assert (plan.stop, plan.definition and plan.definition.table) == (None, tables_from_sql(CREATE)[0])
    assert [step for step in plan.steps if isinstance(step, AlterRows)] == []


@pytest.mark.parametrize("query", DONE)
def test_of_any_other_time_or_table_it_contradicts_the_definition(query: str) -> None:
    for plan in (planned(LATER, query), planned(SOON, query, origin=Origin.DDL)):
        assert plan.stop is not None
        assert plan.stop.kind is StopKind.UNSUPPORTED_DDL


@pytest.mark.parametrize(
    "query",
    [
        "ALTER TABLE t ADD COLUMN w BIGINT",
        "ALTER TABLE t DROP COLUMN x, ADD COLUMN z INT",
        "ALTER TABLE t CHANGE v w INT",
    ],
)
def test_what_it_has_in_another_form_blocks(query: str) -> None:
    assert planned(SOON, query).stop is not None


@pytest.mark.parametrize(
    "query",
    [
        "ALTER TABLE t ADD UNIQUE (x)",
        "ALTER TABLE t ADD UNIQUE (y, x), ADD COLUMN w INT",
        "ALTER TABLE t ADD INDEX (x)",
        "ALTER TABLE t ADD UNIQUE ((x + 1))",
        "ALTER TABLE t DROP INDEX z, ADD UNIQUE (x)",
        "ALTER TABLE t ADD FOREIGN KEY (x) REFERENCES p (id)",
    ],
)
def test_a_key_without_a_name_that_an_export_has_already_gets_no_second_one(query: str) -> None:
    keys = "UNIQUE KEY x_2 (x), UNIQUE KEY y (y, x), KEY X (x), UNIQUE KEY expression_index ((x + 1))"
    sql = f"CREATE TABLE d.t (id BIGINT PRIMARY KEY, x INT NOT NULL, y INT NOT NULL, w INT, {keys})"
    plan = planned(SOON, query, sql=sql)
    assert plan.stop is None
    assert [key.name for key in (plan.definition and plan.definition.table.keys) or ()] == [
        key.name for key in tables_from_sql(sql)[0].keys or ()
    ]
    later = planned(LATER, "ALTER TABLE t ADD UNIQUE (x)", sql=sql)
    assert [key.name for key in (later.definition and later.definition.table.keys) or ()][-1] == "x_3"


def test_what_an_export_has_not_is_done() -> None:
    plan = planned(SOON, "ALTER TABLE t ADD COLUMN z INT")
    assert plan.definition is not None
    assert [column.name for column in plan.definition.table.columns] == ["id", "v", "w", "z"]


@pytest.mark.parametrize(
    "query",
    [
        "TRUNCATE TABLE t",
        "ALTER TABLE t TRUNCATE PARTITION p0",
        "ALTER TABLE t RENAME COLUMN v TO W, RENAME COLUMN w TO V",
        "ALTER TABLE t CHANGE v w INT, CHANGE w v VARCHAR(9)",
    ],
)
def test_rows_that_may_be_of_after_a_truncate_are_not_taken_away(query: str) -> None:
    stop = planned(SOON, query).stop
    assert stop is not None
    assert "may have rows from after it" in str(stop)
    assert planned(LATER, query).stop is None


def test_rows_are_not_exchanged_twice() -> None:
    """The partition and the table of an export have either rows."""
    for commit_ts, blocked in ((SOON, True), (LATER, False)):
        query = "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u"
        ddl = DdlEvent(
            commit_ts=commit_ts, database="d", table="t", query=query, statements=statements_of(query, "d", "t")
        )
        now = exported(ddl)
        other = replace(
            now.definitions[DATA],
            table=replace(now.definitions[DATA].table, table="u", partitioning=None),
            stable_id="u",
        )
        tables = {**now.before.tables, U: replace(now.before.tables[NAME], stable_id="u")}
        now = replace(now, before=replace(now.before, tables=tables), definitions={**now.definitions, "u": other})
        stops = [plan.stop for plan in plan_tables(now).tables]
        assert [stop is not None and "may have rows from after it" in stop.detail for stop in stops] == [blocked] * 2


def test_rows_between_the_export_and_the_ddl_that_lack_its_column_block() -> None:
    """TiCDC reads them with the schema of before; TiDB wrote them with that of after."""
    columns = (Column(name="id", type="bigint", key=True), Column(name="v", type="varchar"))
    rows = RowGroup(
        name=NAME,
        columns=columns,
        is_upsert=True,
        handle_only=False,
        keyed=True,
        first=EXPORTED_AT + 1,
        last=EXPORTED_AT + 1,
        rows=1,
    )
    stop = planned(SOON, "ALTER TABLE t ADD COLUMN w INT", rows).stop
    assert stop is not None
    assert stop.kind is StopKind.INCOMPATIBLE_ROWS
    whole = replace(rows, columns=(*columns, Column(name="w", type="int")))
    assert planned(SOON, "ALTER TABLE t ADD COLUMN w INT", whole).stop is None
