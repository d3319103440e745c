"""What is published of a table whose columns are unknown."""

from __future__ import annotations

from typing import cast

from ticdc_lakehouse.gold.apply_plan import apply_plans
from ticdc_lakehouse.gold.run import GoldRun
from ticdc_lakehouse.planning.stop_reason import UNKNOWN_COLUMNS
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.schema.names import TableName


def test_state_of_a_table_without_columns_has_the_ddls_that_it_is_through() -> None:
    """The next window reads them again: those of a swap would give the table another name."""
    swap = ("RENAME TABLE t TO tmp", "RENAME TABLE u TO t", "RENAME TABLE tmp TO u")
    plan = TablePlan(
        name=TableName("d", "u"),
        lake_name="",
        state=None,
        start=None,
        steps=(),
        through=16,
        ddls=swap,
        stop=UNKNOWN_COLUMNS,
    )
    (outcome,) = apply_plans(cast(GoldRun, None), [plan])
    assert (outcome.state.applied_tso, outcome.state.ddls) == (16, swap)
