"""Commands in a process of their own, on a lake that another process made: they know no view but those they make."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import mariadb
import pytest
from changefeed import Changefeed, Source, at, ddl
from dumpling_export import write_metadata, write_table

from ticdc_codec.tso import with_time
from ticdc_lakehouse import as_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

PROJECT = Path(__file__).parents[2]
TABLES = ("extras", "orders", "stock")
EXTRAS, ORDERS, STOCK = (Source(table=name) for name in TABLES)
STORED = "ALTER TABLE extras ADD w BIGINT AS (id + 1) STORED"
COLUMNS = "id BIGINT PRIMARY KEY, v VARCHAR(2000)"
LARGE = "c" * 1000
GARBAGE, TOO_LARGE = 8, 9
"""Offsets of the messages in quarantine."""
SECONDS = 300
COMMAND = "import sys; from ticdc_local.cli import main; sys.exit(main())"
WITH_MARIADB = """
import sys
from ticdc_lakehouse import entry
from ticdc_lakehouse.tidb.session import Snapshot
from ticdc_local.cli import main, verify_source

class Newest(Snapshot):  # MariaDB has the SQL, and no TSO
    def connect(self):
        return self.address.connect()

entry.Snapshot = verify_source.Snapshot = Newest
sys.exit(main())
"""


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """Published windows with a table that is blocked by a late row, and one by a DDL; above them two messages in
    quarantine."""
    schema = "\n".join(f"CREATE TABLE shop.{name} ({COLUMNS});" for name in TABLES)
    folder = tmp_path_factory.mktemp("fresh") / "lake"
    small = {"max_message_bytes": 1000}
    feed = Changefeed(spark, broker, folder, name="fresh", schema=schema, described=small, is_new_lake=True)
    feed.send(0, ORDERS.insert(at(1), 1, "a"), STOCK.insert(at(1), 1, "x"), EXTRAS.insert(at(1), 1, "e"))
    feed.resolve(at(2))
    feed.go()
    feed.send(0, STOCK.insert(at(1, 1), 2, "late"), ddl(at(3), STORED, "shop", "extras"), ORDERS.insert(at(3), 2, "b"))
    feed.resolve(at(4))
    feed.go()
    feed.send(0, b"{not JSON", ORDERS.insert(at(5), 3, LARGE), ORDERS.insert(at(6), 4, "d"))
    feed.send(0, EXTRAS.insert(at(6), 2, "f"))
    feed.resolve(at(7))
    feed.load()
    (feed.folder / "feeds").mkdir()
    write_feed_file(feed)
    return feed


def write_feed_file(feed: Changefeed) -> None:
    """Where the commands find it."""
    for written in (feed.write_file(), feed.folder / "fresh.sql"):
        written.rename(feed.folder / "feeds" / written.name)


def run(feed: Changefeed, *arguments: str, code: int = 0, program: str = COMMAND) -> str:
    """What ``ticdc-lake`` prints in a process of its own."""
    return ended(feed, *arguments, code=code, program=program).stdout


def ended(feed: Changefeed, *arguments: str, code: int = 0, program: str = COMMAND) -> subprocess.CompletedProcess[str]:
    """``ticdc-lake`` after it ran in a process of its own."""
    command = [sys.executable, "-c", program, *arguments, "--project", str(PROJECT), "--lake", str(feed.folder)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert process.returncode == code, process.stderr[-2000:]
    return process


@pytest.fixture
def read_only(feed: Changefeed) -> Iterator[dict[Path, tuple[int, int]]]:
    """Nobody but root can write into the lake; gives its files and folders with their sizes and times."""
    modes = {path: path.stat().st_mode for path in (feed.folder, *feed.folder.rglob("*"))}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    yield contents(feed)
    for path, mode in modes.items():
        path.chmod(mode)


def rows(feed: Changefeed, table: str) -> dict[int, tuple[str, ...]]:
    """What is published of a table, whichever process did it: key to the other columns."""
    found = as_of(feed.spark, feed.name, lake=feed.lake)[f"shop.{table}"].select("id", "v").collect()
    return {row["id"]: (row["v"],) for row in found}


def contents(feed: Changefeed) -> dict[Path, tuple[int, int]]:
    found = (feed.folder, *sorted(feed.folder.rglob("*")))
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


def test_reading_creates_nothing(feed: Changefeed, read_only: dict[Path, tuple[int, int]], tmp_path: Path) -> None:
    status = run(feed, "status", "--feed", "fresh")
    assert "  unapplied    0:00:02, from the watermark to the newest change that arrived\n" in status
    assert f"  shop.extras  BLOCKED at TSO {at(3)}" in status
    page = tmp_path / "report.html"
    assert run(feed, "report", "--output", str(page)) == f"wrote {page}\n"
    assert "unsupported DDL" in page.read_text(encoding="utf-8")
    queries = (
        "SELECT v FROM gold.fresh_shop_orders ORDER BY id",
        "SELECT tables, blocked, unapplied_seconds, age_seconds > 1000000 AS old FROM ops.feeds",
        "SELECT table, applied_tso, blocked_at IS NULL AS well FROM ops.tables ORDER BY table",
        "SELECT sum(events), sum(applied), sum(waiting), sum(quarantined), sum(control) FROM ops.fresh_accounting",
        "SELECT sum(decoded) FROM silver.fresh_accounting",
        "SELECT count(*) FROM silver.fresh_quarantine",
        "SELECT count(*) FROM ops.definitions",
    )
    statements = (part for query in (*queries, f"AS OF fresh {at(3)}") for part in ("-e", query))
    found = ended(feed, "sql", "--format", "csv", *statements)
    assert [
        line for line in found.stdout.splitlines() if line[0].isdigit() or line in ("a", "b") or line.startswith(TABLES)
    ] == [
        "a",
        "b",
        "3,2,2,true",
        f"extras,{at(3)},false",
        f"orders,{at(4)},true",
        f"stock,{at(1)},false",
        "13,4,3,2,4",
        "11",
        "2",
        "3",
    ]
    as_of_line = f"fresh as of 2023-11-14 22:13:22 UTC (TSO {at(2)}); "
    assert as_of_line in found.stderr
    assert as_of_line not in found.stdout, "results alone"
    assert contents(feed) == read_only


def test_quarantine_is_looked_at_and_tried_without_a_change(
    feed: Changefeed, read_only: dict[Path, tuple[int, int]]
) -> None:
    garbage, too_large = f"{feed.topic}/0/{GARBAGE}", f"{feed.topic}/0/{TOO_LARGE}"
    broken = run(feed, "status", "--check", "--feed", "fresh", code=2)
    waiting, blocked, _ = broken.split("; ", 2)
    assert waiting == f"fresh: broken: waiting on the quarantined message {garbage}"
    assert blocked.startswith("2 tables are blocked: shop.extras (unsupported DDL at ")
    listed = run(feed, "quarantine", "list", "--feed", "fresh").splitlines()
    assert listed[0] == "fresh: 2 open (1 bad_json, 1 message_too_large)"
    assert [line.split()[0] for line in listed[1:]] == [garbage, too_large]
    shown = run(feed, "quarantine", "show", "--feed", "fresh", "--at", garbage)
    assert shown.startswith(f"{garbage} of feed fresh: bad_json")
    assert "{not JSON" in shown
    tried = run(feed, "quarantine", "replay", "--feed", "fresh", "--dry-run", code=1)
    assert tried.startswith("fresh: of 2 messages 0 would decode, 2 stay open\n")
    assert contents(feed) == read_only


@pytest.mark.long
def test_a_stopped_feed_is_repaired_by_commands(feed: Changefeed, tmp_path: Path) -> None:
    garbage = f"{feed.topic}/0/{GARBAGE}"
    dismissed = run(feed, "quarantine", "dismiss", "--feed", "fresh", "--at", garbage, "--reason", "made up")
    assert dismissed == "fresh: 1 dismissed\n"
    feed.described = {}
    write_feed_file(feed)
    tried = run(feed, "quarantine", "replay", "--feed", "fresh", "--dry-run")
    assert tried == "fresh: of 1 message 1 would decode, 0 stay open\n"
    assert run(feed, "quarantine", "replay", "--feed", "fresh") == "fresh: 1 decoded, 0 still open\n"
    resumed = run(feed, "table", "resume", "shop.stock", "--feed", "fresh", "--reason", "looked at")
    assert resumed.startswith(f"shop.stock was blocked at TSO {at(1)}: 1 row change arrived only after the watermark")
    skipped = run(feed, "table", "skip-ddl", "shop.extras", "--feed", "fresh", "--reason", "nobody reads w")
    assert skipped.startswith(f"shop.extras was blocked at TSO {at(3)}: unsupported DDL at {with_time(at(3))}: ")
    write_metadata(tmp_path, at(2))
    write_table(tmp_path, "shop.orders", f"CREATE TABLE orders ({COLUMNS})", ("id", "v"), [(1, "a"), (7, "old")])
    loaded = run(feed, "load", str(tmp_path), "--feed", "fresh")
    assert loaded == f"shop.orders: 2 rows as of {with_time(at(2))}, and what the changefeed sent since\n"
    ended = run(feed, "run", "--feed", "fresh", "--param", f"feeds_root={feed.folder / 'feeds'}")
    assert ended.splitlines()[-1].startswith("job ticdc_lake: success in ")
    assert run(feed, "status", "--check", "--feed", "fresh") == "fresh: fine: nothing: caught up\n"
    assert rows(feed, "orders") == {1: ("a",), 2: ("b",), 3: (LARGE,), 4: ("d",), 7: ("old",)}
    assert rows(feed, "extras") == {1: ("e",), 2: ("f",)}
    assert rows(feed, "stock") == {1: ("x",), 2: ("late",)}


@pytest.mark.long
@pytest.mark.skipif(mariadb.missing() is not None, reason=str(mariadb.missing()))
def test_gold_is_compared_with_its_source(feed: Changefeed, tmp_path: Path) -> None:
    with mariadb.mariadb(tmp_path) as port:
        connection = mariadb.connect(port)
        with connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE shop")
            for name in TABLES:
                cursor.execute(f"CREATE TABLE shop.{name} ({COLUMNS})")
                values = [(key, *others) for key, others in rows(feed, name).items()]
                cursor.executemany(f"INSERT INTO shop.{name} VALUES (%s, %s)", values)
        connection.close()
        dsn = f"mysql://root@127.0.0.1:{port}/"
        found = run(feed, "verify-source", "--feed", "fresh", "--dsn", dsn, program=WITH_MARIADB)
    head, extras, orders, stock = found.splitlines()
    assert head == f"fresh at {with_time(feed.state.tso)}"
    assert extras.startswith("  shop.extras  equal")
    assert orders.startswith(f"  shop.orders  equal: {len(rows(feed, 'orders'))} rows in ")
    assert stock.startswith("  shop.stock   equal")


@pytest.mark.long
def test_maintenance_needs_no_view_of_an_earlier_process(feed: Changefeed) -> None:
    before = {name: rows(feed, name) for name in TABLES}
    [line] = run(feed, "maintain").splitlines()
    assert line.startswith("fresh: readable since ")
    assert {name: rows(feed, name) for name in TABLES} == before
