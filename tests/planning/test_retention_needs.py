"""What bronze and silver must keep: the oldest of all needs decides, and is named."""

from __future__ import annotations

from datetime import timedelta

from ticdc_codec.tso import first_of, time_of
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.planning.retention_needs import NeededBatch, horizon, oldest_batch, oldest_commit
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.schema.names import TableName

DAY = 24 * 60 * 60 * 1000
W = first_of(1_700_000_000_000)
T, U = TableName("d", "t"), TableName("d", "u")


def state(applied_tso: int, kind: StopKind | None = None) -> TableState:
    stop = None if kind is None else StopReason(kind=kind, commit_ts=applied_tso, needs_override=True)
    return TableState(lake_name="f_d_t", stable_id="f_d_t__data", version=1, applied_tso=applied_tso, stop=stop)


def published(**tables: TableState) -> Published:
    return Published(tso=W, number=1, tables={TableName("d", name): each for name, each in tables.items()})


def before_watermark(days: int) -> int:
    return first_of((W >> 18) - days * DAY)


def test_days_count_back_from_the_watermark() -> None:
    """A feed that rests keeps what it has: duplicates and exports are as old as its watermark."""
    now = published(t=state(W))
    assert oldest_commit(now, 7).tso == before_watermark(7)
    assert oldest_commit(now, 7).what == "retention_days: 7 days before the watermark"
    assert horizon(now, 7) == time_of(W) - timedelta(days=7)
    assert oldest_commit(Published(), 7).tso == 0


def test_a_blocked_table_keeps_its_changes() -> None:
    old, new = before_watermark(9), before_watermark(3)
    needed = oldest_commit(published(t=state(old, StopKind.UNSUPPORTED_DDL), u=state(new, StopKind.LATE_ROWS)), 7)
    assert (needed.tso, needed.what.partition(" (")[0]) == (old, f"table d.t, blocked at {old}")
    assert oldest_commit(published(u=state(new, StopKind.LATE_ROWS)), 7).tso == before_watermark(7)


def test_a_table_that_lags_behind_keeps_its_changes_whether_or_not_it_is_blocked() -> None:
    assert oldest_commit(published(t=state(before_watermark(9))), 7).tso == before_watermark(9)


def test_a_dropped_table_that_gold_shows_needs_nothing() -> None:
    assert oldest_commit(published(t=state(before_watermark(9), StopKind.DROPPED)), 7).tso == before_watermark(7)


def test_the_oldest_batch_that_is_needed_holds_the_others() -> None:
    needs = [NeededBatch(batch=5, what="a"), NeededBatch(batch=3, what="b"), NeededBatch(batch=3, what="c")]
    assert oldest_batch(needs) == NeededBatch(batch=3, what="b")
