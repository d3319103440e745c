"""What is said of rows that arrive below the published watermark."""

from __future__ import annotations

import pytest

from ticdc_lakehouse.gold.late_rows import LateRows, blocking_point


@pytest.mark.parametrize(
    ("deleted_through", "way_out"),
    [
        (4, "`ticdc-lake table resume` goes back and applies the late rows and DDLs"),
        (
            5,
            "silver no longer has all changes up to 5 (silver.retention_days); ways out: `ticdc-lake load` continues "
            "from an export taken since",
        ),
    ],
)
def test_only_late_rows_that_can_be_merged_are_promised_to_be(deleted_through: int, way_out: str) -> None:
    late = LateRows(count=1, commit_ts=5, last=6, position="topic/0/7")
    point = blocking_point(late, published_tso=10, deleted_through=deleted_through)
    assert (point.tso, point.last) == (4, 6)
    said = "1 row change arrived only after the watermark covering them (10) was published, the oldest at topic/0/7"
    assert point.stop.detail.startswith(said)
    assert way_out in str(point.stop)
