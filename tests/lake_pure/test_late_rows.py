"""What is said of rows that arrive below the published watermark."""

from __future__ import annotations

import pytest

from ticdc_lakehouse.gold.late_rows import blocking_point


@pytest.mark.parametrize(
    ("gone", "since", "way_out"),
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
def test_only_late_rows_that_can_be_merged_are_promised_to_be(gone: int, since: int, way_out: str) -> None:
    point = blocking_point(1, (5, "topic", 0, 7), published=10, gone=gone, since=since)
    assert point.tso == 4
    assert "1 row change arrived only after the watermark covering them (10) was published" in point.stop.detail
    assert way_out in str(point.stop)
