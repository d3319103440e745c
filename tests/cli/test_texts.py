"""What ``status``, ``quarantine`` and ``doctor`` print."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from pyspark.sql import Row

from ticdc_codec.errors import ConfigError
from ticdc_codec.tso import time_of
from ticdc_lakehouse.ops.status import FeedStatus
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.silver.quarantine import positions_of
from ticdc_local.cli import doctor, quarantine
from ticdc_local.cli.doctor import Finding
from ticdc_local.cli.status import feed_text

TSO = 470613127470252033
EARLIER = 470613127326072832
STATUS = FeedStatus(
    feed="shop",
    landed=100,
    waiting=10,
    quarantined=3,
    tso=TSO,
    time=time_of(TSO),
    newest_change=time_of(TSO + (90_000 << 18)),
    asked_at=time_of(TSO + (3_600_000 << 18)),
    waits="partition shop/0 has sent no watermark yet",
    tables={
        ("shop", "orders"): TableState(name="shop_shop_orders", data="o", version=3, applied_tso=TSO),
        ("shop", "a"): TableState(
            name="shop_shop_a",
            data="a",
            version=2,
            applied_tso=EARLIER,
            stop=StopReason(kind=StopKind.LATE_ROWS, detail="a DDL", needs_override=True),
        ),
        ("shop", "b"): TableState(
            name="",
            data="",
            version=-1,
            applied_tso=0,
            stop=StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail="no key"),
        ),
    },
)


def test_a_status_has_every_count_and_each_table() -> None:
    assert feed_text(STATUS, 2).splitlines() == [
        "shop",
        "  landed       100 messages",
        "  decoded      85 messages",
        "  waiting      10 messages that silver has not decoded",
        "  quarantined  3 messages open, 2 dismissed",
        f"  watermark    {TSO}, 2026-11-21 07:36:50.528 UTC",
        "  unapplied    0:01:30, from the watermark to the newest change that arrived",
        "  age of data  1:00:00, from the watermark to now",
        "  next         waiting on: partition shop/0 has sent no watermark yet",
        f"  shop.a       BLOCKED at TSO {EARLIER}, 2026-11-21 07:36:49.978 UTC (until somebody acts): a DDL",
        "  shop.b       BLOCKED from the start (the next run tries again): no key",
        "  shop.orders  at the watermark",
    ]


def test_a_feed_without_watermarks_says_what_is_not_promised() -> None:
    (line,) = (line for line in feed_text(replace(STATUS, mode=Mode.EVENTUAL), 2).splitlines() if "mode" in line)
    assert line.endswith("no consistent point in time")


def test_a_feed_that_published_nothing_says_so() -> None:
    lines = feed_text(replace(STATUS, tso=0, time=None, waits=None, tables={}), 0).splitlines()
    assert lines[5:] == [
        "  watermark    none published yet",
        "  unapplied    unknown: nothing is published yet",
        "  age of data  unknown: nothing is published yet",
        "  next         nothing is blocking gold: run the job",
    ]


def test_a_feed_that_has_caught_up_is_waiting_on_nothing() -> None:
    caught_up = replace(STATUS, newest_change=None, waiting=0, quarantined=0, waits=None)
    lines = feed_text(caught_up, 0).splitlines()
    assert lines[6:9] == [
        "  unapplied    0:00:00, from the watermark to the newest change that arrived",
        "  age of data  1:00:00, from the watermark to now",
        "  next         nothing: caught up",
    ]


def test_a_position_is_read_as_it_is_printed() -> None:
    line = Row(
        topic="a.b-c",
        partition=3,
        offset=17,
        reason="truncated",
        detail="4 bytes",
        error_offset=9,
        database=None,
        table=None,
    )
    assert quarantine.message_text(line) == "  a.b-c/3/17  any table  truncated at byte 9: 4 bytes"
    assert positions_of(["a.b-c/3/17"]) == [("a.b-c", 3, 17)]


@pytest.mark.parametrize("text", ["a/2147483648/1", "a/1/9223372036854775808"])
def test_a_position_that_kafka_cannot_have(text: str) -> None:
    with pytest.raises(ConfigError, match=f"at most 2147483647/9223372036854775807, found '{text}'"):
        positions_of([text])


@pytest.mark.parametrize("text", ["", "a", "a/1", "a/1/2/3", "/1/2", "a/x/2", "a/1/-2", "a/1/²", f"a/1/{'9' * 5000}"])
def test_no_other_position_is_taken(text: str) -> None:
    with pytest.raises(ConfigError, match="expected topic/partition/offset"):
        positions_of([text])


def test_all_is_said() -> None:
    assert positions_of(["all"]) == []
    for texts in ([], ["all", "a/1/2"]):
        with pytest.raises(ConfigError, match="expected topic/partition/offset"):
            positions_of(texts)


def test_a_summary_begins_with_the_most_frequent_reason() -> None:
    assert quarantine.summary("shop", Counter(bad_json=1, truncated=4)) == "shop: 5 open (4 truncated, 1 bad_json)"
    assert quarantine.summary("shop", Counter()) == "shop: no open message"


def test_a_bad_finding_stands_out() -> None:
    findings = [Finding(subject="Java", good=False, detail="none"), Finding(subject="disk", good=True, detail="9 GB")]
    assert doctor.text_of(findings) == "BAD   Java  none\ngood  disk  9 GB"
