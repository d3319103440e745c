"""When a feed needs attention although its run did its work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ticdc_codec.tso import time_of
from ticdc_lakehouse.ops.alarm import Thresholds, problems_of
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.schema.names import TableName

TSO = 450_000_000_000_000_000
NOW = time_of(TSO) + timedelta(seconds=90)
ALL = Thresholds(behind_seconds=60)


def state(stop: StopReason | None = None) -> TableState:
    return TableState(lake_name="f_d_t", stable_id="f_d_t__data", version=1, applied_tso=TSO, stop=stop)


def published(**stops: StopReason | None) -> Published:
    return Published(tso=TSO, tables={TableName("d", name): state(stop) for name, stop in stops.items()})


MISFIT = StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail="no column c")
DROPPED = StopReason(kind=StopKind.DROPPED, commit_ts=5)


@pytest.mark.parametrize(
    ("now", "landed", "quarantined", "thresholds", "expected"),
    [
        (published(t=None), 9, {}, Thresholds(behind_seconds=90), []),
        (published(t=None), 9, {}, ALL, ["the published watermark is 0:01:30 old, more than 0:01:00"]),
        (Published(), 0, {}, ALL, ["no watermark is published"]),
        (Published(), 0, {}, Thresholds(), []),
        (Published(), 1, {}, Thresholds(), ["nothing was ever published, though 1 message has landed"]),
        (Published(), 7, {}, ALL, ["nothing was ever published, though 7 messages have landed"]),
        (published(t=MISFIT, u=None), 9, {}, Thresholds(), ["1 table is blocked: d.t (no column c)"]),
        (published(t=MISFIT), 9, {}, Thresholds(blocked=False), []),
        (published(t=DROPPED), 9, {}, Thresholds(), []),
        (published(), 9, {"truncated": 1}, Thresholds(), ["1 message is in quarantine: 1 truncated"]),
        (published(), 9, {"truncated": 2, "bad_json": 1}, Thresholds(quarantine=4), []),
        (
            published(),
            9,
            {"truncated": 2, "bad_json": 1},
            Thresholds(quarantine=3),
            ["3 messages are in quarantine: 1 bad_json, 2 truncated"],
        ),
        (published(), 9, {"truncated": 2}, Thresholds(quarantine=0), []),
    ],
)
def test_each_threshold_that_is_passed_is_a_sentence(
    now: Published, landed: int, quarantined: dict[str, int], thresholds: Thresholds, expected: list[str]
) -> None:
    assert problems_of(now, landed, quarantined, thresholds, NOW) == expected


def test_of_many_blocked_tables_some_are_named() -> None:
    (problem,) = problems_of(published(**dict.fromkeys("hgfedcba", MISFIT)), 9, {}, Thresholds(), datetime.now(UTC))
    assert problem.startswith("8 tables are blocked: d.a (no column c), d.b ")
    assert problem.endswith(", d.e (no column c), and 3 more")
