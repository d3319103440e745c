"""What is said of rows that arrive below the published watermark."""

from __future__ import annotations

import pytest

from ticdc_lakehouse.gold.late_rows import LateRows, blocking_point


@pytest.mark.parametrize(
    ("deleted_through", "mergeable_since", "way_out"),
    [
        (4, 4, "`ticdc-lake table resume` goes back and applies the late rows and DDLs"),
        (
            0,
            5,
            "a DDL changed the table at 5; ways out: `ticdc-lake load` continues from an export taken since; "
            "`ticdc-lake table resume` continues without the late rows and DDLs",
        ),
        (
            5,
            5,
            "silver no longer has all changes up to 5 (silver.retention_days); ways out: `ticdc-lake load` continues "
            "from an export taken since",
        ),
    ],
)
def test_only_late_rows_that_can_be_merged_are_promised_to_be(
    deleted_through: int, mergeable_since: int, way_out: str
) -> None:
    late = LateRows(count=1, commit_ts=5, last=6, position="topic/0/7")
    point = blocking_point(late, published_tso=10, deleted_through=deleted_through, mergeable_since=mergeable_since)
    assert (point.tso, point.last) == (4, 6)
    said = "1 row change arrived only after the watermark covering them (10) was published, the oldest at topic/0/7"
    assert point.stop.detail.startswith(said)
    assert way_out in str(point.stop)
