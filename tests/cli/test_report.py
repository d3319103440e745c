"""``ticdc-lake report``: the page holds the lake's figures, and a browser would find it whole."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from delta_lake import NOW, write

from ticdc_codec.tso import first_of
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.schema.definition import table_to_json
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_local.cli import main
from ticdc_local.report.plots import SECONDS, Line, bars, lines, stacks

PROJECT = Path(__file__).parents[2]
VOID = {"meta", "br", "link", "img"}
WINDOWS = 24
SQL = """USE crm;
CREATE TABLE orders (id BIGINT PRIMARY KEY, status ENUM('new','paid'), total DECIMAL(12,2), placed DATETIME(3));
CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40));
CREATE TABLE `<b>odd & "name"` (id INT PRIMARY KEY);"""
FEED_FILE = "protocol: craft\ntime_zone: UTC\nkafka: {bootstrap_servers: 'localhost:9092', topics: [crm-changes]}\n"
TABLES = tables_from_sql(SQL, source="crm.sql")


class Elements(HTMLParser):
    """The page's elements; every one that begins must end, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}
        self.text: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def tso(minutes: float) -> int:
    return first_of(round((NOW + timedelta(minutes=minutes)).timestamp() * 1000))


def changes(window: int) -> dict[str, int]:
    """How many row changes a window has of each table."""
    return {TABLES[0].table: 20 + 13 * (window % 5), TABLES[1].table: 4 + window % 3, TABLES[2].table: window % 2}


def made_up_lake(root: Path) -> Path:
    """A project with a feed that published 24 windows, has a blocked table, DDLs and poison; and one that never ran."""
    shutil.copy(PROJECT / "databricks.yml", root)
    feeds = root / "resources" / "feeds"
    feeds.mkdir(parents=True)
    for name in ("crm", "idle"):
        (feeds / f"{name}.yml").write_text(FEED_FILE)
    lake = root / ".lake"
    place = {"topic": "crm-changes", "partition": 0, "index": 0, "timestamp": NOW}
    offset = 0
    events: list[dict[str, object]] = []
    for window in range(WINDOWS):
        row = {**place, "batch": window, "kind": "row", "database": "crm", "commit_ts": tso(window * 5 + 1)}
        for table, count in changes(window).items():
            events += [{**row, "table": table, "offset": offset + number} for number in range(count)]
            offset += count
        events.append({**row, "kind": "resolved", "commit_ts": tso(window * 5 + 2), "offset": offset})
        offset += 1
    last = {**place, "batch": WINDOWS - 1}
    ddl = {"kind": "ddl", "commit_ts": tso(42), "database": "crm", "table": "orders"}
    events += [
        {**last, **ddl, "offset": offset, "query": "ALTER TABLE orders ADD COLUMN note TEXT DEFAULT '<none>'"},
        {**last, "kind": "error", "reason": "bad_json", "offset": offset + 1, "database": "crm", "table": "customers"},
        {**last, "kind": "error", "reason": "bad_json", "offset": offset + 2, "database": "crm", "table": "customers"},
        {**last, "kind": "error", "reason": "truncated", "offset": offset + 3, "database": "crm", "table": "customers"},
    ]
    for window in range(WINDOWS):
        write(lake / "silver" / "crm_events", "events", [event for event in events if event["batch"] == window])
        set_commit_time(lake / "silver" / "crm_events", window, NOW + timedelta(minutes=window * 5 + 3, seconds=8))
    landed = [
        {"batch": window, "topic": "crm-changes", "partition": 0, "listing": window}
        | {"messages": sum(event["batch"] == window for event in events)}
        | {"ingest_time": NOW + timedelta(minutes=window * 5 + 3)}
        for window in range(WINDOWS)
    ]
    write(lake / "bronze" / "crm_offsets", "offsets", landed)
    write_ops(lake / "ops")
    return root


def set_commit_time(table: Path, version: int, time: datetime) -> None:
    """Let a version of a Delta table say that it was committed at a time."""
    log = table / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = round(time.timestamp() * 1000)
    log.write_text("\n".join(map(json.dumps, actions)))


def write_ops(ops: Path) -> None:
    windows = [
        {"feed": "crm", "number": window + 1, "run": f"r{window}", "base": 1, "mode": "watermarks", "batch": window}
        | {"tso": tso(window * 5 + 2), "from_tso": tso(window * 5 - 3), "time": NOW + timedelta(minutes=window * 5 + 2)}
        | {"published_at": NOW + timedelta(minutes=window * 5 + 3, seconds=20 + 7 * (window % 6))}
        | {"row_changes": sum(changes(window).values())}
        for window in range(WINDOWS)
    ]
    write(ops / "windows", "windows", windows)
    first = {"feed": "crm", "number": 1, "run": "r0"}
    stop = StopReason(kind=StopKind.LATE_ROWS, detail="rows of <orders> came late", needs_override=True)
    states = [
        {**first, "database": "crm", "table": table.table, "removed": False, "name": f"crm_crm_{number}", "ddls": []}
        | {"data": f"d{number}", "version": 3, "defined_in": 1, "defined_by": "r0"}
        | ({"stop": stop.to_json(), "applied_tso": tso(50), "blocked_at": tso(50)} if number == 1 else {})
        for number, table in enumerate(TABLES)
    ]
    write(ops / "table_states", "table_states", states)
    definitions = [
        {**first, "place": number, "database": "crm", "table": table.table, "commit_ts": 0, "source": "file"}
        | {"name": f"crm_crm_{number}", "data": f"d{number}", "definition": table_to_json(table), "named_at": 0}
        for number, table in enumerate(TABLES)
    ]
    write(ops / "definitions", "definitions", definitions)
    write(ops / "topics", "topics", [])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = made_up_lake(tmp_path_factory.mktemp("report"))
    assert main(["report", "--project", str(root), "--output", str(root / "report.html")]) == 0
    return root / "report.html"


def test_the_page_is_whole_and_fetches_nothing(page: Path) -> None:
    found = Elements()
    found.feed(page.read_text(encoding="utf-8"))
    assert found.open == []
    assert found.counts["svg"] == 4
    assert "script" not in found.counts
    assert found.addresses == ["#crm", "#idle"]


def test_the_page_holds_the_figures(page: Path) -> None:
    found = Elements()
    found.feed(page.read_text(encoding="utf-8"))
    text = "\n".join(found.text)
    assert "bronze has not run for this feed" in text
    assert "1 table is blocked: crm.customers (rows of <orders> came late); 3 messages are in quarantine" in text
    assert "rows of <orders> came late" in text
    assert "ALTER TABLE orders ADD COLUMN note TEXT DEFAULT '<none>'" in text
    assert "crm.orders, window 5: 72 row changes" in text
    assert "2 messages" in text
    assert "80.0 s" in text  # the age of the first window's data when it was published
    assert "topic crm-changes → bronze.crm_messages → silver.crm_events → live.crm_crm_0 → gold.crm_crm_0" in text
    assert "DECIMAL(12,2)" in text
    assert 'crm.<b>odd & "name"' in text
    assert found.counts["circle"] == 3 * WINDOWS
    assert "8.0 s" in text  # from landed to decoded


def test_the_page_has_the_health_that_status_prints(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feed = page.parent / "resources" / "feeds" / "crm.yml"
    for alarm, worst in (("alarm: {quarantine: 0, blocked: false}\n", "fine: "), ("", "attention: 1 table")):
        feed.write_text(FEED_FILE + alarm)
        output = page.with_name("again.html")
        assert main(["report", "--project", str(page.parent), "--feed", "crm", "--output", str(output)]) == 0
        main(["status", "--check", "--project", str(page.parent), "--feed", "crm"])
        _, _, health = capsys.readouterr().out.splitlines()[-1].partition(": ")
        assert health.startswith(worst)
        found = Elements()
        found.feed(output.read_text(encoding="utf-8"))
        assert health in "".join(found.text)


def test_the_page_on_standard_output_is_all_of_it(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--project", str(page.parent), "--feed", "crm", "--output", "-"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("<!DOCTYPE html>")
    assert output.endswith("</html>\n")
    assert not Path("-").exists()


def test_plots_of_nothing_are_left_out() -> None:
    assert lines([], "s") == lines([Line("a", [])], "s") == ""
    assert stacks(["w"], {"t": [0]}, "rows") == bars({}, "row") == ""
    assert lines([Line("a", [(NOW, 0.0)])], "s").startswith("<svg")


def test_long_times_are_in_a_unit_that_people_read() -> None:
    plot = lines([Line("a", [(NOW, 260_000.0), (NOW + timedelta(minutes=1), 270_000.0)])], SECONDS)
    assert [text for text in texts(plot) if " d" in text] == ["0 d", "1 d", "2 d", "3 d", "4 d", "3.0 d", "3.1 d"]
    assert "5,000.0 rows" in lines([Line("a", [(NOW, 5000.0)])], "rows")


def test_the_ends_of_a_plot_are_named_once() -> None:
    assert texts(lines([Line("a", [(NOW, 1.0)])], SECONDS))[-2:] == [f"{NOW:%Y-%m-%d %H:%M:%S} UTC", "a"]
    assert texts(stacks(["w 1"], {"t": [1]}, "rows"))[-2:] == ["w 1", "t"]
    assert texts(stacks(["w 1", "w 2"], {"t": [1, 2]}, "rows"))[-3:] == ["w 1", "w 2", "t"]


def texts(plot: str) -> list[str]:
    found = Elements()
    found.feed(plot)
    return found.text


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs a browser: apt-get install chromium")
def test_a_browser_renders_it(page: Path, tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1160,1400"]
    done = subprocess.run(
        [*browser, f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={picture}", page.as_uri()],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert picture.is_file(), done.stderr[-2000:]
    assert picture.stat().st_size > 20_000
