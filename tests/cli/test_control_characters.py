"""Commands print on a line whatever the names in messages hold: no terminal obeys them."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from delta_lake import NOW, write

from ticdc_lakehouse.gold.maintenance import Maintained
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.schema.names import TableName
from ticdc_local.cli import feed as feed_command
from ticdc_local.cli import main, maintain
from ticdc_local.cli import table as table_command
from ticdc_local.delta_reader import DeltaReader
from ticdc_local.preflight import Sample

PROJECT = Path(__file__).parents[2]
NAME = "t\n\x1b[2J\x9b"
SHOWN = r"shop.t\n\x1b[2J\x9b"
FEED = """
protocol: canal-json
time_zone: UTC
options: {enable-tidb-extension: true}
kafka: {bootstrap_servers: "h:1", topics: [t]}
tables: {include: ["other.*"]}
"""
ROW = {"id": 0, "database": "shop", "table": NAME, "pkNames": ["id"], "isDdl": False, "type": "INSERT", "es": 1} | {
    "ts": 1,
    "sql": "",
    "sqlType": {"id": 4},
    "mysqlType": {"id": "int"},
    "old": None,
    "data": [{"id": "1"}],
    "_tidb": {"commitTs": 470_000_000_000},
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(PROJECT / "databricks.yml", tmp_path)
    (tmp_path / "resources" / "feeds").mkdir(parents=True)
    (tmp_path / "resources" / "feeds" / "crm.yml").write_text(FEED)
    (tmp_path / ".lake" / "bronze").mkdir(parents=True)
    floor = {"feed": "crm", "layer": "silver", "first_batch": 3, "tso": 0, "kept_at": NOW}
    held_by = f"table {TableName('shop', NAME)}, blocked"
    write(tmp_path / ".lake" / "ops" / "retention", "retention", [{**floor, "held_by": held_by}])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was printed; each line is one that a terminal only shows."""
    printed = capsys.readouterr().out.split("\n")
    assert all(line.isprintable() for line in printed)
    return printed


RETAINED = f"silver keeps batches from 3 on, for table {SHOWN}, blocked"


@pytest.mark.usefixtures("project")
def test_status_shows_what_holds_silver_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 0
    assert f"  retention    {RETAINED}" in lines(capsys)


def test_maintain_shows_what_holds_silver_on_a_line(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = Maintained(feed="crm", since=datetime(2026, 11, 1, tzinfo=UTC), compacted=3, dropped=())
    reader = DeltaReader(project / ".lake")
    monkeypatch.setattr(maintain, "open_lake", lambda *_, **__: reader)
    monkeypatch.setattr(maintain, "feed_run", lambda *_: SimpleNamespace(maintain=lambda: done))
    assert main(["maintain", "--feed", "crm"]) == 0
    assert lines(capsys)[1] == f"crm: {RETAINED}"


@pytest.mark.usefixtures("project")
def test_feed_check_shows_the_tables_of_the_first_messages_on_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = Sample(partitions={"t": 1}, messages=[(None, json.dumps(ROW).encode())])
    monkeypatch.setattr(feed_command, "read_sample", lambda *_: sample)
    monkeypatch.setattr(feed_command, "problems", lambda *_: {})
    monkeypatch.setattr(feed_command, "left_out", lambda *_: [TableName("shop", NAME)])
    assert main(["feed", "check", "crm"]) == 0
    printed = lines(capsys)
    assert f"crm: table {SHOWN}: the key tables of the feed file leaves it out: the next run takes it out of gold" in (
        printed
    )
    assert f"crm: first 1 message: 1 row of {SHOWN}" in printed
    assert f"crm: of these, the key tables of the feed file leaves out {SHOWN}" in printed


@pytest.mark.usefixtures("project")
def test_table_shows_why_it_was_blocked_on_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = StopReason(kind=StopKind.UNSUPPORTED_DDL, commit_ts=7, query=f"RENAME TABLE {NAME}", needs_override=True)
    run = SimpleNamespace(override=lambda *_: SimpleNamespace(applied_tso=7, stop=stop))
    monkeypatch.setattr(table_command, "_check_table", lambda _: None)
    monkeypatch.setattr(table_command, "feed_run", lambda *_: run)
    assert main(["table", "resume", "shop.t", "--feed", "crm", "--reason", "made up"]) == 0
    assert lines(capsys)[0].endswith(r"RENAME TABLE t \x1b[2J\x9b")  # a DDL's text is shown without line ends
