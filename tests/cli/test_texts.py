"""What ``status``, ``quarantine`` and ``doctor`` print."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from ticdc_codec.errors import AttentionError, ConfigError
from ticdc_codec.tso import time_of
from ticdc_lakehouse.ops.alarm import Thresholds
from ticdc_lakehouse.ops.status import NOTHING_LEFT, FeedStatus, Health
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.silver.quarantine import BlockingMessage, positions_of
from ticdc_local.cli import doctor, main, quarantine
from ticdc_local.cli.doctor import Finding
from ticdc_local.cli.job_text import failure_text
from ticdc_local.cli.status import checked_status, feed_text, status_object
from ticdc_local.cli.watch import rates, watch_view
from ticdc_local.runner.outcome import FailedChain

TSO = 470613127470252033
EARLIER = 470613127326072832
STATUS = FeedStatus(
    feed="shop",
    landed=100,
    waiting=10,
    reasons={"bad_json": 2, "truncated": 1},
    dismissed=2,
    tso=TSO,
    time=time_of(TSO),
    newest_change=time_of(TSO + (90_000 << 18)),
    asked_at=time_of(TSO + (3_600_000 << 18)),
    waiting_on="partition shop/0 has sent no watermark yet",
    tables={
        TableName("shop", "orders"): TableState(
            lake_name="shop_shop_orders", stable_id="o", version=3, applied_tso=TSO
        ),
        TableName("shop", "a"): TableState(
            lake_name="shop_shop_a",
            stable_id="a",
            version=2,
            applied_tso=EARLIER,
            stop=StopReason(kind=StopKind.LATE_ROWS, detail="a DDL", needs_override=True),
        ),
        TableName("shop", "b"): TableState(
            lake_name="",
            stable_id="",
            version=-1,
            applied_tso=0,
            stop=StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail="no key"),
        ),
    },
)


def test_a_status_has_every_count_and_each_table() -> None:
    assert feed_text(STATUS).splitlines() == [
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


def test_a_status_names_the_columns_that_are_pending() -> None:
    status = replace(STATUS, pending={("shop", "orders"): ("made", "seen")})
    assert feed_text(status).splitlines()[-1] == (
        "  shop.orders  at the watermark; value in old rows not known yet: made, seen"
    )


def test_a_status_names_the_tables_that_the_next_run_takes_out_of_gold() -> None:
    status = replace(STATUS, left_out=[TableName("shop", "orders")])
    said = "the key tables of the feed file leaves it out: the next run takes it out of gold"
    assert feed_text(status).splitlines()[-1] == f"  shop.orders  at the watermark; {said}"


def test_a_status_says_of_a_filter_that_leaves_out_everything_that_a_run_refuses_it() -> None:
    lines = feed_text(replace(STATUS, left_out=list(STATUS.tables))).splitlines()[-len(STATUS.tables) :]
    said = "; the key tables of the feed file leaves out all tables: a run refuses that"
    assert all(line.endswith(said) for line in lines)


def test_a_status_stays_on_its_lines_whatever_a_table_and_a_ddl_are_called() -> None:
    stop = StopReason(
        kind=StopKind.UNSUPPORTED_DDL, commit_ts=TSO, query="ALTER TABLE t \x1b]0;x\x07", needs_override=True
    )
    table = TableState(lake_name="t", stable_id="t", version=0, applied_tso=TSO, stop=stop)
    status = replace(STATUS, tables={TableName("shop", "t\n  shop.b  at the watermark\x1b[2J"): table})
    for text in (feed_text(status).splitlines()[-1], checked_status(status, Thresholds())[1]):
        assert text.isprintable()
        assert r"shop.t\n  shop.b  at the watermark\x1b[2J" in text
    error = AttentionError(f"feed shop needs attention: {'; '.join(status.concerns())}")
    assert failure_text(FailedChain(task="alarm[shop]", attempts=1, error=error, trace="", not_run=())).isprintable()


def test_status_of_an_eventual_feed_says_what_is_not_promised() -> None:
    (line,) = (line for line in feed_text(replace(STATUS, mode=Mode.EVENTUAL)).splitlines() if "mode" in line)
    assert line.endswith("no consistent point in time")


def test_a_feed_that_published_nothing_says_so() -> None:
    lines = feed_text(replace(STATUS, tso=0, time=None, waiting_on=None, tables={})).splitlines()
    assert lines[5:] == [
        "  watermark    none published yet",
        "  unapplied    unknown: nothing is published yet",
        "  age of data  unknown: nothing is published yet",
        "  next         nothing is blocking gold: run the job",
    ]


def test_a_feed_that_has_caught_up_is_waiting_on_nothing() -> None:
    tables = {name: state for name, state in STATUS.tables.items() if name.table != "b"}
    caught_up = replace(STATUS, newest_change=None, waiting=0, reasons={}, waiting_on=None, tables=tables)
    lines = feed_text(caught_up).splitlines()
    assert lines[6:9] == [
        "  unapplied    0:00:00, from the watermark to the newest change that arrived",
        "  age of data  1:00:00, from the watermark to now",
        "  next         nothing: caught up",
    ]
    assert lines[9].endswith(" (until somebody acts): a DDL")


@pytest.mark.parametrize(
    "left",
    [{"tables": STATUS.tables}, {"left_out": [TableName("shop", "orders")]}, {"is_behind_silver": True}],
    ids=["a blocked table that is tried again", "a table that the feed leaves out", "a batch"],
)
def test_a_feed_has_not_caught_up_while_the_next_run_has_something_to_do(left: dict[str, object]) -> None:
    fine = replace(STATUS, newest_change=None, waiting=0, reasons={}, waiting_on=None, tables={})
    assert fine.caught_up
    unfinished = replace(fine, **left)
    assert not unfinished.caught_up
    assert "  next         nothing is blocking gold: run the job" in feed_text(unfinished).splitlines()


def test_check_reports_the_worst_health_of_a_feed_and_why() -> None:
    hold = BlockingMessage(topic="shop", partition=0, offset=17, reason="bad_json", database=None, table=None)
    fine = replace(STATUS, newest_change=None, waiting=0, reasons={}, waiting_on=None, tables={})
    assert checked_status(fine, Thresholds()) == (Health.FINE, "fine: nothing: caught up")
    assert checked_status(fine, Thresholds(behind_seconds=3600)) == (Health.FINE, "fine: nothing: caught up")
    old = "attention: the published watermark is 1:00:00 old, more than 0:59:59"
    assert checked_status(fine, Thresholds(behind_seconds=3599)) == (Health.ATTENTION, old)
    never = (Health.ATTENTION, "attention: bronze has not run for this feed")
    assert checked_status(replace(fine, is_landed=False), Thresholds()) == never
    left = (
        "2 tables are blocked: shop.a (a DDL), shop.b (no key); 3 messages are in quarantine: 2 bad_json, 1 truncated"
    )
    assert checked_status(STATUS, Thresholds()) == (Health.ATTENTION, f"attention: {left}")
    assert checked_status(STATUS, Thresholds(blocked=False, quarantine=4))[0] is Health.FINE
    held = f"broken: waiting on the quarantined message shop/0/17; {left}"
    assert checked_status(replace(STATUS, blocked_by=hold), Thresholds()) == (Health.BROKEN, held)


def test_a_table_that_tidb_dropped_needs_no_attention() -> None:
    stop = StopReason(kind=StopKind.DROPPED, commit_ts=TSO)
    kept = TableState(lake_name="shop_shop_a", stable_id="a", version=2, applied_tso=EARLIER, stop=stop)
    status = replace(STATUS, reasons={}, tables={TableName("shop", "a"): kept})
    assert status.health() is Health.FINE
    line = (
        f"  shop.a  last rows at TSO {EARLIER}, 2026-11-21 07:36:49.978 UTC: TiDB dropped it at {TSO} (on_drop: keep)"
    )
    assert feed_text(status).splitlines()[-1] == line
    (table,) = status_object(status, Health.FINE, "fine")["tables"]  # type: ignore[misc]
    assert (table["blocked"], table["dropped"]) == (False, True)


def test_a_watched_feed_has_its_rate_and_what_needs_attention() -> None:
    before: dict[str, tuple[float, int]] = {}
    assert rates([STATUS], before, 10.0) == {}
    faster = replace(STATUS, landed=130)
    assert rates([faster], before, 12.0) == {"shop": 15.0}
    text = watched([faster], {"shop": 15.0}, width=80)
    assert re.search(r"^shop +130 +15\.0 +10 +3 +0:01:30 +1:00:00 +2 of 3 *$", text, re.MULTILINE)
    assert "\nshop: attention: 2 tables are blocked: " in text


def watched(found: Sequence[FeedStatus], rate: Mapping[str, float], width: int, **tolerated: Thresholds) -> str:
    console = Console(width=width, file=StringIO(), force_terminal=False)
    console.print(watch_view(found, rate, lambda each: checked_status(each, tolerated.get(each.feed, NOTHING_LEFT))))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_demos_feeds_are_watched_on_a_small_terminal() -> None:
    names = ("shop_canal", "shop_craft", "shop_debezium", "shop_open", "shop_simple")
    feeds = [replace(STATUS, feed=name, landed=123_456, tso=EARLIER) for name in names]
    lines = watched(feeds, dict.fromkeys(names, 1234.5), width=80).splitlines()
    assert sum(line.startswith(names) and line.rstrip().endswith("2 of 3") for line in lines) == len(names)
    assert not any("…" in line for line in lines)
    assert len(lines) <= 24


def test_a_watched_feed_may_leave_what_its_file_tolerates() -> None:
    tolerated = Thresholds(behind_seconds=None, blocked=False, quarantine=0)
    text = watched([replace(STATUS, blocked_by=None)], {}, width=80, shop=tolerated)
    assert "shop" in text
    assert "attention" not in text


def test_watching_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--watch"]) == 2
    assert "--watch: expected a terminal" in capsys.readouterr().err


def test_a_status_as_json_has_the_figures_of_the_text() -> None:
    found = status_object(STATUS, Health.ATTENTION, "attention: a table")
    assert json.loads(json.dumps(found)) == found
    assert (found["landed"], found["decoded"], found["unapplied_seconds"], found["age_seconds"]) == (100, 85, 90, 3600)
    assert found["blocked_by"] is None
    a, b, orders = found["tables"]
    assert [table["blocked"] for table in (a, b, orders)] == [True, True, False]
    assert (a["blocked_at"], a["block_reason"], a["needs_override"]) == (EARLIER, "a DDL", True)
    assert (orders["blocked_at"], orders["block_reason"], orders["needs_override"]) == (None, None, False)


def test_a_table_that_gold_keeps_after_its_drop_needs_no_override() -> None:
    stop = StopReason(kind=StopKind.DROPPED, commit_ts=EARLIER, needs_override=True)
    dropped = TableState(lake_name="o", stable_id="o", version=3, applied_tso=EARLIER, stop=stop)
    [table] = status_object(replace(STATUS, tables={TableName("shop", "o"): dropped}), Health.FINE, "")["tables"]
    assert (table["dropped"], table["blocked"], table["needs_override"]) == (True, False, False)


def test_a_status_as_json_says_which_columns_are_pending_and_what_the_file_leaves_out() -> None:
    a, orders = TableName("shop", "a"), TableName("shop", "orders")
    message = BlockingMessage(topic="shop", partition=0, offset=7, reason="bad_json", database=None, table=None)
    status = replace(STATUS, pending={orders: ("v",)}, left_out=(a,), blocked_by=message)
    found = status_object(status, Health.BROKEN, "broken: it waits")
    tables = {table["table"]: (table["pending_columns"], table["left_out"]) for table in found["tables"]}
    assert tables == {"a": ([], True), "b": ([], False), "orders": (["v"], False)}
    assert found["blocked_by"] == "shop/0/7"


def test_a_position_is_read_as_it_is_printed() -> None:
    position = {"topic": "a.b-c", "partition": 3, "offset": 17}
    what = {"reason": "truncated", "detail": "4 bytes", "error_offset": 9, "database": None, "table": None}
    line = position | what
    assert quarantine.message_text(line) == "  a.b-c/3/17  any table  truncated at byte 9: 4 bytes"
    assert positions_of(["a.b-c/3/17"]) == [("a.b-c", 3, 17)]


@pytest.mark.parametrize("text", ["a/2147483648/1", "a/1/9223372036854775808"])
def test_a_position_that_kafka_cannot_have(text: str) -> None:
    with pytest.raises(ConfigError, match=f"at most 2147483647/9223372036854775807, found '{text}'"):
        positions_of([text])


@pytest.mark.parametrize("topic", ["a'b", "a\\", "a b", "ä", "a\n", "a" * 250])
def test_a_topic_that_kafka_cannot_have(topic: str) -> None:
    """A quote in it is no error of the lake's SQL."""
    with pytest.raises(ConfigError, match="expected topic/partition/offset, or all alone, found "):
        positions_of([f"{topic}/0/1"])
    assert positions_of([f"{'a' * 249}/0/1"]) == [("a" * 249, 0, 1)]


@pytest.mark.parametrize("text", ["", "a", "a/1", "a/1/2/3", "/1/2", "a/x/2", "a/1/-2", "a/1/²", f"a/1/{'9' * 5000}"])
def test_no_other_position_is_taken(text: str) -> None:
    with pytest.raises(ConfigError, match="expected topic/partition/offset"):
        positions_of([text])


def test_all_means_every_open_message_and_stands_alone() -> None:
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


def test_several_mistakes_of_a_file_stand_below_each_other() -> None:
    findings = [Finding(subject="disk", good=True, detail="9 GB"), Finding(subject="a", good=False, detail="x\ny")]
    assert doctor.text_of(findings) == "good  disk  9 GB\nBAD   a     x\n            y"
