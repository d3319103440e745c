"""Where a table ends whose rows cannot all be merged."""

from __future__ import annotations

from typing import Any

import pytest

from ticdc_lakehouse.gold.table_execution import TableExecution
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import BlockingPoint
from ticdc_lakehouse.schema.script import tables_from_sql

(TABLE,) = tables_from_sql("CREATE TABLE d.t (id BIGINT PRIMARY KEY)")
UNREADABLE = StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail="it cannot be read")


class HotRow:
    """A table with changes of one row, of which only the newest in a step is looked at, and cannot be merged."""

    def __init__(self, *changes: int) -> None:
        self.changes = changes
        self.merged_through: int | None = None

    def _merge_unless_blocked(self, rows: MergeRows, **_: bool) -> BlockingPoint | None:
        newest = max((change for change in self.changes if change <= rows.through), default=None)
        if newest is None:
            self.merged_through = rows.through
            return None
        return BlockingPoint(tso=newest - 1, stop=UNREADABLE)


def merged(row: Any, after: int) -> Any:
    return TableExecution._merge_rows(row, MergeRows(table=TABLE, after=after, through=5000, groups=()))


@pytest.mark.parametrize("count", [1, 2_000])
def test_a_table_ends_before_the_first_change_that_cannot_be_merged(count: int) -> None:
    row = HotRow(*range(100, 100 + 2 * count, 2))
    incomplete = merged(row, after=10)
    assert (incomplete.point.tso, incomplete.first_missing, row.merged_through) == (99, 100, 99)
    assert incomplete.point.stop == UNREADABLE


def test_a_late_row_that_cannot_be_merged_waits_for_a_person() -> None:
    """No later run reads it again, whatever the feed's file says then."""
    row = HotRow(5)
    incomplete = merged(row, after=10)
    assert (incomplete.point.tso, incomplete.first_missing, row.merged_through) == (10, 5, None)
    stop = incomplete.point.stop
    assert (stop.kind, stop.needs_override) == (StopKind.LATE_ROWS, True)
    assert str(stop).startswith("a late row cannot be merged: it cannot be read; ways out: ")


def test_all_rows_are_merged_where_none_blocks() -> None:
    assert merged(HotRow(), after=10) is None
