"""Which rows below the published watermark came before, and which are late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ticdc_lakehouse.gold.late_rows import first_deliveries
from ticdc_lakehouse.planning.published_state import Published

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = (
    "batch BIGINT, replayed_at TIMESTAMP, kind STRING, database STRING, table STRING, commit_ts BIGINT, op STRING, "
    "handle_key STRING, before STRING, after STRING, old_handle_key STRING"
)
BEFORE, AFTER, OTHER_ORDER = '{"id":"1","v":"a"}', '{"id":"1","v":"b"}', '{"v":"b","id":"1"}'
UPDATED = ("update", '["1"]', BEFORE, AFTER)
MOVED = '{"id":"2","v":"b"}'
WITH_KEY = ("update", '["2"]', BEFORE, MOVED, '["1"]')
PARTS = {"leaves": ("delete", '["1"]', BEFORE, None), "comes": ("insert", '["2"]', None, MOVED)}
AGAIN = {
    "the same": UPDATED,
    "columns in another order": ("update", '["1"]', '{"v":"a","id":"1"}', OTHER_ORDER),
    "no old row": ("insert", '["1"]', None, AFTER),
}
LATE = {
    "another key": ("update", '["2"]', BEFORE, AFTER),
    "the key is left": ("delete", '["1"]', AFTER, None),
    "without a key, other images": ("update", None, BEFORE, OTHER_ORDER),
}


def late(spark: SparkSession, first: tuple[str | None, ...], again: tuple[str | None, ...], *, exact: bool) -> int:
    lines = [
        (batch, None, "row", database, "t", 5, *change, *[None] * (5 - len(change)))
        for batch, database, change in ((1, "d", first), (2, "D", again))
    ]
    found = first_deliveries(spark.createDataFrame(lines, EVENTS), Published(tso=10, batch=1), 10, exact=exact)
    assert found is not None
    return found.count()


def test_a_row_that_another_version_of_ticdc_sends_again_is_not_late(spark: SparkSession) -> None:
    """The classic architecture lists Open Protocol's columns by name, the new one as the table does."""
    assert {name: late(spark, UPDATED, again, exact=True) for name, again in AGAIN.items()} == dict.fromkeys(AGAIN, 0)


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_the_parts_of_an_update_of_a_key_that_came_whole_are_not_late(
    spark: SparkSession, part: tuple[str | None, ...]
) -> None:
    """Versions and `output-raw-change-event` differ in whether they split one (wire.md 2.3)."""
    assert late(spark, WITH_KEY, part, exact=True) == 0
    assert late(spark, WITH_KEY, ("delete", '["2"]', MOVED, None), exact=True) == 1
    assert late(spark, UPDATED, ("delete", '["1"]', BEFORE, None), exact=True) == 1


@pytest.mark.parametrize("again", LATE.values(), ids=LATE)
def test_another_change_of_the_same_commit_ts_is_late(spark: SparkSession, again: tuple[str | None, ...]) -> None:
    assert late(spark, UPDATED, again, exact=True) == 1


def test_two_changes_of_one_millisecond_are_two(spark: SparkSession) -> None:
    assert late(spark, UPDATED, ("update", '["1"]', AFTER, BEFORE), exact=False) == 1
    assert late(spark, UPDATED, UPDATED, exact=False) == 0
