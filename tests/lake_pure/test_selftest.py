"""What the selftest makes, and where."""

from __future__ import annotations

from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.ops.selftest import Environment


def test_the_view_lies_in_another_schema_than_its_table_as_gold_views_do() -> None:
    lake = Lake(spark=None, catalog="c", schemas={layer: layer.value for layer in Layer}, checkpoints="")  # type: ignore[arg-type]
    env = Environment(lake=lake, name="t")
    assert (env.table, env.view) == ("`c`.`ops`.`t`", "`c`.`gold`.`t`")
