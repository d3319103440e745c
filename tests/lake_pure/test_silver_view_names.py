"""Columns of silver's views that are about the change have other names where the table has their own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.table_views import silver_view
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.schema.script import tables_from_sql


def view_of(create: str) -> str:
    """The query of a table's view."""
    made: list[str] = []
    lake = SimpleNamespace(
        table=lambda layer, name: f"{layer}.{name}", alter_view=lambda _layer, _name, query, **_: made.append(query)
    )
    (table,) = tables_from_sql(create)
    silver_view(cast("Lake", lake), GoldConfig(feed="f", time_zone="UTC"), "f_d_t", table)
    (query,) = made
    assert f"{Layer.SILVER}.f_events" in query
    return query


def test_a_name_that_is_the_same_to_spark_is_taken() -> None:
    query = view_of("CREATE TABLE d.t (id BIGINT PRIMARY KEY, `comm\u0131t_time` INT, OP INT)")
    assert "commit_time AS _ticdc_commit_time" in query
    assert "op AS _ticdc_op" in query
    assert "topic AS topic" in query
