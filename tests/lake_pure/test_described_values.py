"""Comments of a live table's columns say what may be wrong with values, as soon as rows show it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ticdc_codec.writer_defects import DEBEZIUM_DATE
from ticdc_lakehouse.gold import planned_table
from ticdc_lakehouse.gold.planned_table import GoldRun, PlannedTable
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.table_plan import MergeRows
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.script import tables_from_sql

(DEFINED,) = tables_from_sql("CREATE TABLE d.t (id BIGINT PRIMARY KEY, v DATE)")
SHOWN = replace(DEFINED, columns=(DEFINED.columns[0], replace(DEFINED.columns[1], defect=DEBEZIUM_DATE)))


@contextmanager
def no_rows(*_: object) -> Iterator[None]:
    yield None


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Table]]:
    """What is done to the live table, each with the definition that its comments are of."""
    found: list[tuple[str, Table]] = []
    monkeypatch.setattr(planned_table, "first_rows", no_rows)
    monkeypatch.setattr(planned_table, "drop_unpublished", lambda *_: None)
    monkeypatch.setattr(planned_table, "remember_new", lambda *_: None)
    monkeypatch.setattr(planned_table, "create_live_table", lambda *given, **_: found.append(("created", given[2])))
    monkeypatch.setattr(planned_table, "alter", lambda *given: found.append(("altered", given[3].table)))
    monkeypatch.setattr(planned_table, "merge", lambda *given: found.append(("merged", given[3].table)))
    return found


def merged(version: int, *tables: Table) -> int:
    """Merges rows with these definitions, one after the other, into a table that was published with the first."""
    lake: Any = SimpleNamespace(table=None)

    def committed(commit: Any) -> int:
        commit()
        return table.version + 1

    lake.committed = committed
    run = SimpleNamespace(
        config=GoldConfig(feed="f", time_zone="UTC"), lake=lake, commits=SimpleNamespace(at=lambda _tso: lake)
    )
    plan = cast("TablePlan", None)
    table = PlannedTable(run=cast("GoldRun", run), plan=plan, data="x", name="x", table=DEFINED, version=version, tso=0)
    for number, definition in enumerate(tables, 1):
        table._merge(MergeRows(table=definition, after=number, through=number + 1, groups=()))
    return table.version


def test_a_table_that_is_made_with_its_first_rows_says_it(written: list[tuple[str, Table]]) -> None:
    assert merged(-1, SHOWN, SHOWN) == 1
    assert written == [("created", SHOWN), ("merged", SHOWN)]


def test_a_table_that_was_there_before_says_it_once(written: list[tuple[str, Table]]) -> None:
    assert merged(3, DEFINED, SHOWN, SHOWN) == 7
    assert written == [("merged", DEFINED), ("altered", SHOWN), ("merged", SHOWN), ("merged", SHOWN)]
