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
    return TableState(name="f_d_t", data="f_d_t__data", version=1, applied_tso=TSO, stop=stop)


def published(**stops: StopReason | None) -> Published:
    return Published(tso=TSO, tables={TableName("d", name): state(stop) for name, stop in stops.items()})


MISFIT = StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail="no column c")
DROPPED = StopReason(kind=StopKind.DROPPED, commit_ts=5)


@pytest.mark.parametrize(
    ("now", "quarantined", "thresholds", "expected"),
    [
        (published(t=None), {}, Thresholds(behind_seconds=90), []),
        (published(t=None), {}, ALL, ["the published watermark is 90 s old, more than 60 s"]),
        (Published(), {}, ALL, ["no watermark is published"]),
        (Published(), {}, Thresholds(), []),
        (published(t=MISFIT, u=None), {}, Thresholds(), ["1 table is blocked: d.t (no column c)"]),
        (published(t=MISFIT), {}, Thresholds(blocked=False), []),
        (published(t=DROPPED), {}, Thresholds(), []),
        (published(), {"truncated": 1}, Thresholds(), ["1 message is in quarantine: 1 truncated"]),
        (published(), {"truncated": 2, "bad_json": 1}, Thresholds(quarantine=4), []),
        (
            published(),
            {"truncated": 2, "bad_json": 1},
            Thresholds(quarantine=3),
            ["3 messages are in quarantine: 1 bad_json, 2 truncated"],
        ),
        (published(), {"truncated": 2}, Thresholds(quarantine=0), []),
    ],
)
def test_each_threshold_that_is_passed_is_a_sentence(
    now: Published, quarantined: dict[str, int], thresholds: Thresholds, expected: list[str]
) -> None:
    assert problems_of(now, quarantined, thresholds, NOW) == expected


def test_of_many_blocked_tables_some_are_named() -> None:
    (problem,) = problems_of(published(**dict.fromkeys("hgfedcba", MISFIT)), {}, Thresholds(), datetime.now(UTC))
    assert problem.startswith("8 tables are blocked: d.a (no column c), d.b ")
    assert problem.endswith(", d.e (no column c), and 3 more")
