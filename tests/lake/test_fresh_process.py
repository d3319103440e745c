"""Commands in a process of their own, on a lake that another process made: they know no view but those they make."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

PROJECT = Path(__file__).parents[2]
ORDERS = Source(table="orders")
SECONDS = 300


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """A published window, and a change that is not published yet."""
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("fresh") / "lake", name="fresh")
    feed.send(0, ORDERS.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    feed.go()
    feed.send(0, ORDERS.insert(at(5), 2, "b"))
    feed.load()
    (feed.folder / "feeds").mkdir()
    feed.write_file().rename(feed.folder / "feeds" / "fresh.yml")
    (feed.folder / "fresh.sql").rename(feed.folder / "feeds" / "fresh.sql")
    return feed


def run(feed: Changefeed, *arguments: str) -> str:
    """What ``ticdc-lake`` prints in a process of its own."""
    command = [sys.executable, "-c", "import sys; from ticdc_local.cli import main; sys.exit(main())", *arguments]
    command += ["--project", str(PROJECT), "--lake", str(feed.folder)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended.stdout


@pytest.fixture
def read_only(feed: Changefeed) -> Iterator[dict[Path, tuple[int, int]]]:
    """Nobody but root can write into the lake; gives its files and folders with their sizes and times."""
    modes = {path: path.stat().st_mode for path in (feed.folder, *feed.folder.rglob("*"))}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    yield contents(feed)
    for path, mode in modes.items():
        path.chmod(mode)


def contents(feed: Changefeed) -> dict[Path, tuple[int, int]]:
    found = (feed.folder, *sorted(feed.folder.rglob("*")))
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


def test_reading_creates_nothing(feed: Changefeed, read_only: dict[Path, tuple[int, int]]) -> None:
    status = run(feed, "status", "--feed", "fresh")
    assert "  unapplied    0:00:03, from the watermark to the newest change that arrived\n" in status
    assert f"{feed.topic}" in status
    queries = (
        "SELECT v FROM gold.fresh_shop_orders",
        "SELECT tables, blocked, unapplied_seconds, age_seconds > 1000000 FROM ops.feeds",
        "SELECT table, applied_tso, blocked_at FROM ops.tables",
        "SELECT sum(events), sum(applied), sum(waiting), sum(control) FROM ops.fresh_accounting",
        "SELECT sum(decoded) FROM silver.fresh_accounting",
        "SELECT count(*) FROM silver.fresh_quarantine",
        "SELECT count(*) FROM ops.definitions",
        f"AS OF fresh {at(3)}",
    )
    found = run(feed, "sql", *(part for query in queries for part in ("-e", query)))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found.splitlines() if line[:1] == "|"]
    assert rows[1::2] == [
        ["a"],
        ["1", "0", "3", "true"],
        ["orders", str(at(2)), "NULL"],
        ["3", "1", "1", "1"],
        ["3"],
        ["0"],
        ["1"],
    ]
    assert f"fresh as of 2023-11-14 22:13:22 UTC (TSO {at(2)})" in found
    assert contents(feed) == read_only


@pytest.mark.long
def test_maintenance_needs_no_view_of_an_earlier_process(feed: Changefeed) -> None:
    assert "fresh: readable since" in run(feed, "maintain")
    assert feed.rows("orders") == {1: ("a",)}
