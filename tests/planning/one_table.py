"""One table in the window (10, 20]: what its plan is made from, and how tests read the plan."""

from __future__ import annotations

from dataclasses import replace

from ticdc_codec.event import Column
from ticdc_lakehouse.planning.naming import NameInUse, Naming, TakenNames
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, TableState
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, WayOut
from ticdc_lakehouse.planning.window import BlockingPoint, DdlEvent, RowGroup, Window, statements_of
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql

NAME, U, W = TableName("d", "t"), TableName("d", "u"), TableName("d", "w")
DDL_STOP = StopReason(
    kind=StopKind.UNSUPPORTED_DDL, commit_ts=5, query="?", ways_out=(WayOut.SKIP_DDL,), needs_override=True
)
UNFOLLOWED = "ALTER TABLE t ADD w BIGINT AS (id + 1) STORED"
ID, V = Column(name="id", type="bigint", key=True), Column(name="v", type="varchar")
ROWS = RowGroup(name=NAME, columns=(ID, V), is_upsert=True, handle_only=False, keyed=True, first=15, last=15, rows=2)
LATER = replace(ROWS, first=19, last=19)
DATA = "f_d_t__data"

OLD = replace(ROWS, first=5, last=5)
"""Rows below the published watermark."""
WIDER = replace(ROWS, columns=(*ROWS.columns, Column(name="w", type="int")))
"""Rows with a further column."""


def table(sql: str = "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(9))") -> Table:
    return tables_from_sql(sql)[0]


def definition(commit_ts: int = 0, sql: str | None = None) -> Definition:
    return Definition(
        table=table(sql) if sql else table(), commit_ts=commit_ts, origin=Origin.DDL, lake_name="f_d_t", stable_id=DATA
    )


def ddl(commit_ts: int, query: str, name: str | None = "t", database: str = "d") -> DdlEvent:
    statements = statements_of(query, database, name)
    return DdlEvent(commit_ts=commit_ts, database=database, table=name, query=query, statements=statements)


DROP = ddl(16, "DROP TABLE t")
CREATE = ddl(18, "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))")


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


def planning_input(
    *groups: RowGroup,
    ddls: tuple[DdlEvent, ...] = (),
    known: Definition | None = None,
    state: TableState | None = None,
    quarantined: BlockingPoint | None = None,
    config: GoldConfig | None = None,
) -> PlanningInput:
    """The window (10, 20] of one table."""
    return PlanningInput(
        config=config or GoldConfig(feed="f", time_zone="UTC"),
        before=Published(tso=10, batch=3, tables={} if state is None else {NAME: state}),
        definitions={} if known is None else {DATA: known},
        window=Window(rows={NAME: groups} if groups else {}, ddls=ddls, replays_seen=None, row_changes=0),
        quarantine_points={} if quarantined is None else {NAME: quarantined},
        tso=20,
        naming=Naming(feed="f", taken=TakenNames()),
    )


def with_names(now: PlanningInput, *used: NameInUse) -> PlanningInput:
    """The same window, where tables have or had these names."""
    return replace(now, naming=replace(now.naming, taken=TakenNames(names=used)))


def plan(now: PlanningInput, name: TableName = NAME) -> TablePlan:
    return {each.name: each for each in plan_tables(now).tables}[name]


KNOWN = definition()
STATE = TableState(lake_name="f_d_t", stable_id=DATA, version=4, applied_tso=10)


def steps(made: TablePlan) -> list[tuple[str, int]]:
    """R rows through, A alter at, E exchange at."""
    return [(type(s).__name__[0], s.through if isinstance(s, MergeRows) else s.commit_ts) for s in made.steps]


def after_window(now: PlanningInput, tso: int) -> PlanningInput:
    """The window up to ``tso`` that follows one in which every step succeeded."""
    made = [each for each in plan_tables(now).tables if each.state and each.definition]
    tables = {
        p.name: replace(p.state, lake_name=p.lake_name, ddls=p.ddls, applied_tso=p.through, stop=p.stop)
        for p in made
        if p.state
    }
    definitions = {p.definition.stable_id: p.definition for p in made if p.definition}
    assert now.naming.taken is not None
    published = (d for p in made for d in (p.start, *(new.definition for new in p.new_definitions)) if d is not None)
    names = [
        NameInUse(feed="f", table=d.table.name, lake_name=d.lake_name, stable_id=d.stable_id, named_at=d.named_at)
        for d in published
    ]
    return replace(
        with_names(now, *now.naming.taken.names, *names),
        before=Published(tso=now.tso, tables=tables), definitions=definitions, quarantine_points={}, tso=tso,
    )  # fmt: skip


def check_stop(made: TablePlan, through: int, reason: str | None) -> None:
    """Assert that a plan ends where expected, for this reason, and whether it stays so until an override."""
    assert made.through == through
    if reason is None:
        assert block_reason(made) is None
    else:
        assert block_reason(made) is not None
        assert reason in block_reason(made)
    unsupported = made.stop is not None and made.stop.kind is StopKind.UNSUPPORTED_DDL
    assert needs_override(made) == unsupported
