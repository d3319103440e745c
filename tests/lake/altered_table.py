"""A live table with rows, and what a DDL makes of it, without a feed."""

from __future__ import annotations

from ticdc_codec.traits import ProtocolTraits
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.alter_table import alter
from ticdc_lakehouse.gold.live_table import create_live_table
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import AlterRows
from ticdc_lakehouse.policy import Policy
from ticdc_lakehouse.schema.change import change
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.schema.statement import AlterTable


def altered(lake: Lake, create: str, values: str, ddl: str, ddl_time_zone: str | None = None) -> str:
    """A live table with one row, after a DDL; gives its name."""
    (table,) = tables_from_sql(create)
    return altered_table(lake, table, values, ddl, ddl_time_zone)


def altered_table(lake: Lake, table: Table, values: str, ddl: str, ddl_time_zone: str | None = None) -> str:
    fill(lake, table, values)
    return alter_live_table(lake, table, ddl, ddl_time_zone)


def fill(lake: Lake, table: Table, values: str) -> None:
    """Make a live table with rows."""
    create_live_table(lake, "t", table, stable_id="t__data", config=GoldConfig(feed="f", time_zone="UTC"))
    lake.spark.sql(f"INSERT INTO {lake.table(Layer.LIVE, 't')} VALUES {values}")


def alter_live_table(
    lake: Lake,
    table: Table,
    ddl: str,
    ddl_time_zone: str | None = None,
    time_zone: str = "UTC",
    traits: ProtocolTraits | None = None,
    policy: Policy | None = None,
) -> str:
    """Carry out a DDL; gives the live table's name."""
    config = GoldConfig(
        feed="f",
        time_zone=time_zone,
        ddl_time_zone=ddl_time_zone,
        traits=traits or ProtocolTraits(),
        policy=lambda *_: policy or Policy(),
    )
    (statement,) = read_ddl(ddl, "d", "t")
    assert isinstance(statement, AlterTable)
    changed = change(table, statement)
    step = AlterRows(commit_ts=1, query=ddl, effects=changed.effects, table=changed.table)
    alter(lake, config, "t", step, 1)
    return lake.table(Layer.LIVE, "t")
