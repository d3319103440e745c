"""When gold deletes a table's old tombstones in mode eventual."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ticdc_codec.tso import first_of
from ticdc_lakehouse.gold.table_execution import begin
from ticdc_lakehouse.planning.published_state import Definition, Origin, TableState
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.schema.script import tables_from_sql

HOUR = 3_600_000
ALTERED, NOON, TONIGHT, TOMORROW = (first_of(hours * HOUR) for hours in (5, 108, 119, 121))


@pytest.mark.parametrize(
    ("published", "newest", "through", "due"),
    [(150, 151, TONIGHT, False), (150, 151, TOMORROW, True), (199, 200, TONIGHT, True), (200, 201, TONIGHT, False)],
)
def test_tombstones_are_purged_once_a_day_and_once_in_a_hundred_versions(
    published: int, newest: int, through: int, due: bool
) -> None:
    """A DDL changed the table days before."""
    (table,) = tables_from_sql("CREATE TABLE d.t (id BIGINT PRIMARY KEY)")
    definition = Definition(table=table, commit_ts=ALTERED, origin=Origin.DDL, lake_name="t", stable_id="t__data")
    state = TableState(lake_name="t", stable_id="t__data", version=published, applied_tso=NOON)
    plan = TablePlan(name=table.name, lake_name="t", state=state, start=definition, steps=(), through=through)
    run = SimpleNamespace(live=lambda *_: "t", undisturbed=True)
    execution = begin(run, plan, definition, alone=True)  # type: ignore[arg-type]
    execution.version = newest
    assert execution._is_purge_due(through) is due
