"""Which tables of an export take their places in gold, as far as their names tell."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.gold.live_commits import Commits
from ticdc_lakehouse.ops import load
from ticdc_lakehouse.ops.dumpling.dialect import Dialect
from ticdc_lakehouse.ops.dumpling.export import Export, ExportedTable
from ticdc_lakehouse.ops.load import ExportLoader
from ticdc_lakehouse.planning.naming import NameInUse, Naming, TakenNames
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, Recoverable, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import DdlEvent, statements_of
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.silver.retention_floor import RetentionFloor

T, U = TableName("d", "t"), TableName("d", "u")
(TABLE,) = tables_from_sql("CREATE TABLE d.t (id BIGINT PRIMARY KEY)")
OF_T = NameInUse(feed="f", table=T, lake_name="f_d_t", stable_id="f_d_t__data")


def exported_at(name: TableName, tso: int, lake: Any) -> ExportLoader:
    """What loads a table that was exported at a TSO."""
    exported = ExportedTable(definition=TABLE.named(name), columns=TABLE.columns)
    export = Export(folder="x", tso=tso, tables={name: exported}, unreadable={}, dialect=Dialect(), sizes={})
    config, commits = GoldConfig(feed="f", time_zone="UTC"), cast("Commits", None)
    return ExportLoader(lake=lake, config=config, export=export, time_zone=None, commits=commits)


def definition(name: TableName, tso: int, before: Published, *ddls: DdlEvent) -> Definition:
    """That of a table which was exported at a TSO; ``ddls`` came since."""
    events = [{"commit_ts": d.commit_ts, "database": d.database, "table": d.table, "query": d.query} for d in ddls]
    lake: Any = SimpleNamespace(table=lambda _layer, table: table, rows=lambda _sql: events)
    loader = exported_at(name, tso, lake)
    names = Naming(feed="f", taken=TakenNames(names=(OF_T,)))
    return loader._definition(name, before, loader._names_since(before), (), names)


def blocked(kind: StopKind, data: str = "") -> TableState:
    stop = StopReason(kind=kind, commit_ts=10, needs_override=True)
    return TableState(
        lake_name=data and "f_d_t", stable_id=data, version=-1 if data == "" else 3, applied_tso=10, stop=stop
    )


@pytest.mark.parametrize("kind", [StopKind.RESTORED, StopKind.UNSUPPORTED_DDL])
def test_a_table_whose_rows_are_not_known_is_loaded_under_a_name_that_another_had(kind: StopKind) -> None:
    """One that TiDB restored had its name before it was dropped."""
    before = Published(tso=30, tables={T: blocked(kind)})
    assert definition(T, 12, before).stable_id == "f_d_t__data_12"
    with pytest.raises(ConfigError, match="was renamed or dropped since, or another table had its name"):
        definition(T, 10, before)


@pytest.mark.parametrize("query", ["DROP TABLE `t`", "DROP DATABASE `D`"])
def test_a_name_that_no_table_has_any_more_is_refused(query: str) -> None:
    dropped = DdlEvent(commit_ts=20, database="d", table="t", query=query, statements=())
    with pytest.raises(ConfigError, match="was renamed or dropped since"):
        definition(T, 12, Published(tso=30), dropped)


def test_a_table_that_the_filter_left_out_for_a_while_is_loaded() -> None:
    other = DdlEvent(commit_ts=20, database="d", table="u", query="DROP TABLE `u`", statements=())
    assert definition(T, 12, Published(tso=30), other).stable_id == "f_d_t__data_12"


def test_a_table_that_was_exported_after_its_drop_came_back() -> None:
    """TiCDC sends no FLASHBACK DATABASE, and Debezium no RECOVER TABLE."""
    gone = tuple(Recoverable(name=T, stable_id=OF_T.stable_id, version=1, dropped_at=at) for at in (9, 11))
    assert definition(T, 12, Published(tso=30, recoverable=gone)).table.name == T
    with pytest.raises(ConfigError, match="was renamed or dropped since"):
        definition(T, 10, Published(tso=30, recoverable=gone))


def known(name: TableName, data: str, origin: Origin = Origin.DDL) -> Definition:
    table = TABLE.named(name)
    return Definition(
        table=table, commit_ts=5, origin=origin, lake_name=f"f_d_{name.table}", stable_id=data, named_at=5
    )


def renamed(old: str, new: str) -> DdlEvent:
    query = f"RENAME TABLE `{old}` TO `{new}`"
    return DdlEvent(commit_ts=20, database="d", table=old, query=query, statements=statements_of(query, "d", old))


CURRENT = TableState(lake_name="f_d_u", stable_id="current", version=1, applied_tso=30)


@pytest.mark.parametrize("of_rows", [False, True])
def test_a_table_that_was_renamed_needs_a_later_export(of_rows: bool) -> None:
    """Also where its definition does not tell it: of rows, or of a table that was blocked when it was renamed."""
    state = CURRENT if of_rows else blocked(StopKind.UNSUPPORTED_DDL, OF_T.stable_id)
    newest = known(U, "current", Origin.WIRE) if of_rows else known(T, OF_T.stable_id)
    before = Published(tso=30, tables={U: state}, definitions={newest.stable_id: newest})
    assert definition(U, 12, before).table.name == U
    assert definition(U, 12, before, renamed("x", "v")).table.name == U
    for ddl in (renamed("t", "u"), renamed("u", "v")):
        with pytest.raises(ConfigError, match="was created, renamed or truncated later, at 20"):
            definition(U, 12, before, ddl)


@pytest.mark.parametrize(
    "query", ["CREATE TABLE `t` (id BIGINT PRIMARY KEY)", "CREATE TABLE t LIKE u", "RECOVER TABLE `t`"]
)
def test_another_table_of_the_name_of_one_that_gold_never_had_needs_a_later_export(query: str) -> None:
    """Gold would follow the DROP of the exported one, and never have the other."""
    drop, make = (
        DdlEvent(commit_ts=at, database="e", table="t", query=text, statements=())
        for at, text in ((20, "DROP TABLE `t`"), (22, query))
    )
    exported = TableName("e", "t")
    with pytest.raises(ConfigError, match="was created, renamed or truncated later, at 22"):
        definition(exported, 12, Published(tso=30), drop, make)
    assert definition(exported, 12, Published(tso=30), make).commit_ts == 12
    assert definition(exported, 25, Published(tso=30)).commit_ts == 25


@pytest.mark.parametrize("is_published", [True, False])
@pytest.mark.parametrize("repaired", [{"data": "former"}, {"data": None}, {}], ids=["by id", "by name", "by name, old"])
def test_an_export_from_before_a_repair_would_undo_it(
    repaired: dict[str, object], is_published: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silver lacks what the repair put in place: a change that the changefeed never sent. So it does for a table that
    the feed left out for a while, which has a new id."""
    row = {"database": "D", "table": "T", "commit_ts": 20, **repaired}
    used = NameInUse(feed="f", table=T, lake_name="f_d_t", stable_id="former")
    monkeypatch.setattr(load, "repair_rows", lambda *_: [row])
    monkeypatch.setattr(load, "taken_names", lambda *_: TakenNames(names=(used,)))
    monkeypatch.setattr(load, "retention_floor", lambda *_: RetentionFloor())
    before = Published(tso=30, tables={T: replace(CURRENT, lake_name="f_d_t")} if is_published else {})
    with pytest.raises(ConfigError, match=r"x: table d\.t was repaired from TiDB later, at 20.*: export it again"):
        exported_at(T, 12, None).definitions([T], before)
    exported_at(T, 20, None)._check_not_repaired(T, 20)
