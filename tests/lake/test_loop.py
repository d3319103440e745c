"""The loop carries what arrives between its rounds, tries a feed that fails again, and ends between two commits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, ddl

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold.maintenance import Maintained, last_maintained
from ticdc_lakehouse.gold.time_travel import as_of
from ticdc_lakehouse.loop import FailedMaintenance, FailedRound, Round, event_text, rounds
from ticdc_lakehouse.run_lock import exclusive_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

PROJECT = Path(__file__).parents[2]
ORDERS, ITEMS = Source(table="orders"), Source(table="items")
PATIENCE = 240
"""Seconds in which a round must come, on a machine that runs other tests."""


@pytest.fixture
def feed(spark: SparkSession, broker: Broker, tmp_path: Path) -> Changefeed:
    return Changefeed(spark, broker, tmp_path / "lake")


@pytest.fixture
def loop(feed: Changefeed, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """``ticdc-lake run --every 1s`` (or what the test says) on the feed's lake, as a process of its own."""
    feed.write_file()
    command = [sys.executable, "-u", "-c", "import sys; from ticdc_local.cli import main; sys.exit(main())"]
    command += ["run", "--every", getattr(request, "param", "1s"), "--feed", feed.name, "--lake", str(feed.folder)]
    command += ["--param", f"feeds_root={feed.folder}"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=PROJECT, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(process: subprocess.Popen[str], text: str) -> str:
    """The loop's next line that has a text in it."""
    assert process.stdout is not None
    deadline = time.monotonic() + PATIENCE
    for line in process.stdout:
        if text in line:
            return line
        assert time.monotonic() < deadline, line
    raise AssertionError(f"the loop ended before {text!r}: {process.stderr and process.stderr.read()}")


@pytest.mark.long
def test_gold_follows_what_arrives_between_rounds_and_an_interrupt_leaves_a_lake_to_go_on_with(
    feed: Changefeed, loop: subprocess.Popen[str]
) -> None:
    feed.send(0, ORDERS.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    first = wait_for(loop, f"watermark {at(2)}")
    assert first.startswith(f"{feed.name} round ")
    assert " 1 table, " in first
    feed.send(0, ORDERS.insert(at(3), 2, "b"), ORDERS.delete(at(3, 1), 1, "a"))
    feed.resolve(at(4))
    assert " 2 changes, 1 table, " in wait_for(loop, f"watermark {at(4)}")

    began = time.monotonic()
    os.kill(loop.pid, signal.SIGINT)
    _, output = loop.communicate(timeout=60)
    assert (loop.returncode, output.splitlines()[-1]) == (130, "ticdc-lake run: interrupted; run it again")
    assert "Traceback" not in output
    assert time.monotonic() - began < 10, "5 s are promised, on a machine that does nothing else"

    feed.lake.register()
    orders = as_of(feed.spark, feed.name, lake=feed.lake)["shop.orders"]
    assert [(row["id"], row["v"]) for row in orders.collect()] == [(2, "b")]
    feed.send(0, ORDERS.insert(at(5), 3, "c"))
    feed.resolve(at(6))
    feed.go()
    assert feed.rows("orders") == {2: ("b",), 3: ("c",)}
    feed.check_nothing_lost_or_doubled()


@pytest.mark.long
def test_the_loop_ends_when_its_java_process_has_died(feed: Changefeed, loop: subprocess.Popen[str]) -> None:
    feed.send(0, ORDERS.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    wait_for(loop, f"watermark {at(2)}")
    java = subprocess.run(["pgrep", "-P", str(loop.pid), "java"], capture_output=True, text=True, check=True)
    os.kill(int(java.stdout), signal.SIGKILL)
    printed, errors = loop.communicate(timeout=PATIENCE)
    assert loop.returncode == 1, errors
    assert "loop FAILED: Java has ended, and with it every feed of this loop: run it again" in printed
    assert "Traceback" not in printed


@pytest.mark.long
@pytest.mark.parametrize("loop", ["20s"], indirect=True)
def test_a_loop_goes_on_from_what_another_process_published_meanwhile(
    feed: Changefeed, loop: subprocess.Popen[str]
) -> None:
    """Tables that the other one made and renamed are not in the catalog of the loop's session."""
    feed.send(0, ORDERS.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    wait_for(loop, f"watermark {at(2)}")
    os.killpg(loop.pid, signal.SIGSTOP)  # between two rounds
    feed.lake.register()
    feed.send(0, ddl(at(3), "RENAME TABLE `shop`.`orders` TO `shop`.`sales`", "shop", "sales", "RENAME"))
    feed.send(0, ITEMS.insert(at(4), 1, "x"))
    feed.resolve(at(5))
    feed.go()
    assert feed.state.tso == at(5)
    os.killpg(loop.pid, signal.SIGCONT)
    again = ddl(at(7), "CREATE TABLE `shop`.`orders` (`id` BIGINT PRIMARY KEY, `v` TEXT)", "shop", "orders", "CREATE")
    feed.send(0, ITEMS.update(at(6), (1, "x"), (1, "y")), again, ORDERS.insert(at(8), 2, "b"))
    feed.resolve(at(9))
    wait_for(loop, f"watermark {at(9)}")
    feed.lake.refresh()
    tables = as_of(feed.spark, feed.name, lake=feed.lake)
    found = [
        [(row["id"], row["v"]) for row in tables[f"shop.{name}"].collect()] for name in ("items", "orders", "sales")
    ]
    assert found == [[(1, "y")], [(2, "b")], [(1, "a")]]


def test_a_feed_that_fails_is_tried_again_later_and_holds_no_other(feed: Changefeed) -> None:
    feed.send(0, ORDERS.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    held = replace(feed.run, feed=replace(feed.run.feed, name="held"))
    with exclusive_run(feed.lake, "held", Layer.BRONZE):
        done = list(rounds([held, feed.run], every_seconds=0.05, count=2))
    (failed, *_) = [each for each in done if isinstance(each, FailedRound)]
    good = [each for each in done if isinstance(each, Round)]
    assert isinstance(failed.error, ConfigError)
    assert failed.next_try_seconds == 2.0, "seconds, however short the rounds"
    assert [(each.messages, each.row_changes, each.tso) for each in good] == [(2, 1, at(2)), (0, 0, at(2))]
    with exclusive_run(feed.lake, "held", Layer.BRONZE):
        tries = list(rounds([held], every_seconds=0, count=2))
    assert len(tries) == 2, "a round in which every feed is paused waits for one"

    for file in (feed.lake.root / Layer.LIVE / feed.state.tables["shop", "orders"].lake_name).glob("**/*.parquet"):
        file.write_bytes(b"no Parquet")
        file.with_name(f".{file.name}.crc").unlink()
    feed.send(0, ORDERS.update(at(3), (1, "a"), (1, "b")))
    feed.resolve(at(4))
    (unreadable,) = rounds([feed.run], every_seconds=0.05, count=1)
    assert isinstance(unreadable, FailedRound)
    assert "An error occurred" not in event_text(unreadable)


@pytest.mark.long
def test_a_feed_is_maintained_between_two_rounds_once_that_is_due(feed: Changefeed) -> None:
    assert last_maintained(feed.lake, feed.name) is None, "nothing is published"
    began = datetime.now(UTC)
    feed.send(0, ORDERS.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    (only,) = rounds([feed.run], every_seconds=0, count=1, maintain_every=timedelta(hours=1))
    assert isinstance(only, Round)
    published = last_maintained(feed.lake, feed.name)
    assert published is not None
    assert began < published < datetime.now(UTC), "of a feed that never was maintained the first window counts"

    steps = rounds([feed.run], every_seconds=0, count=2, maintain_every=timedelta(microseconds=1))
    assert [type(next(steps)) for _ in range(2)] == [Round, Maintained]
    maintained = last_maintained(feed.lake, feed.name)
    assert maintained is not None
    assert published < maintained
    feed.send(0, ORDERS.update(at(3), (1, "a"), (1, "b")))
    feed.resolve(at(4))
    done = next(steps)
    assert isinstance(done, Round)
    assert (done.row_changes, done.tso) == (1, at(4))
    assert feed.rows("orders") == {1: ("b",)}


def test_a_round_and_maintenance_are_one_line_each() -> None:
    done = Round(
        feed="shop", number=7, messages=9, row_changes=8, tables=2, blocked=(), tso=0, waiting_on="the first watermark",
        behind_seconds=None, seconds=1.25,
    )  # fmt: skip
    assert event_text(done) == (
        "shop round 7: 9 messages, 8 changes, 2 tables, no watermark yet, took 1.2 s, waiting on: the first watermark"
    )
    published = replace(done, tso=at(1), waiting_on=None, behind_seconds=3.21)
    assert event_text(published).endswith(f"watermark {at(1)} (2023-11-14 22:13:21.000 UTC), 3.2 s behind, took 1.2 s")
    assert "), 1:02:05 behind, took" in event_text(replace(published, behind_seconds=3725.4))
    blocked = replace(done, blocked=("d.a", "d.b", "d.c", "d.d"), waiting_on=None)
    assert event_text(blocked).endswith("took 1.2 s, blocked: d.a, d.b, d.c and 1 more")
    failed = FailedRound(feed="shop", number=8, error=ConfigError("no broker\nmore"), next_try_seconds=20)
    assert event_text(failed) == "shop round 8: FAILED, next try in 20 s: no broker"
    reported = replace(failed, error=ValueError("[X] Traceback (most recent call last):\nOSError: full"))
    assert event_text(reported).endswith("s: OSError: full")
    kept = Maintained(feed="shop", since=datetime(2026, 1, 2, tzinfo=UTC), compacted=2, dropped=())
    assert event_text(kept) == "shop: readable since 2026-01-02 00:00 UTC; 2 tables compacted"
    late = FailedMaintenance(feed="shop", error=ConfigError("full\nmore"), next_try=datetime(2026, 1, 2, tzinfo=UTC))
    assert event_text(late) == "shop maintenance: FAILED, next try at 2026-01-02 00:00 UTC: full"
