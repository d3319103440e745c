"""``quarantine list``, ``show`` and ``replay --dry-run``, which start no Spark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from delta_lake import NOW, write

from ticdc_codec.event import Resolved
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import PROTOCOLS
from ticdc_local.cli import main, quarantined_messages
from ticdc_local.cli import quarantine as quarantine_command
from ticdc_local.cli.quarantine import message_text
from ticdc_local.cli.quarantined_messages import dump

PROJECT = Path(__file__).parents[2]
EXTENSION = {"enable-tidb-extension": True}
FEED = """
protocol: canal-json
time_zone: UTC
options: {enable-tidb-extension: true}
kafka: {bootstrap_servers: "h:1", topics: [t]}
"""
POISON = b'{"database": "shop", "table": "\x00 not JSON'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A feed with a message that decodes by now, and one that does not."""
    shutil.copy(PROJECT / "databricks.yml", tmp_path)
    (tmp_path / "resources" / "feeds").mkdir(parents=True)
    (tmp_path / "resources" / "feeds" / "crm.yml").write_text(FEED)
    [good] = PROTOCOLS["canal_json"].encode(
        [Resolved(commit_ts=470_000_000_000 << 18)], sink_options("canal_json", EXTENSION)
    )
    place = {"topic": "t", "partition": 0, "timestamp": NOW, "batch": 0}
    lake = tmp_path / ".lake"
    write(
        lake / "bronze" / "crm_messages",
        "messages",
        [{**place, "offset": 1, "value": good.value}, {**place, "offset": 2, "value": POISON}],
    )
    write(lake / "bronze" / "crm_offsets", "offsets", [{"batch": 0, "topic": "t", "partition": 0, "messages": 2}])
    error = {**place, "index": 0, "kind": "error", "reason": "bad_json", "detail": "no value", "error_offset": 31}
    write(lake / "silver" / "crm_events", "events", [{**error, "offset": 1}, {**error, "offset": 2}])
    return tmp_path


def quarantine(project: Path, *arguments: str) -> int:
    return main(["quarantine", *arguments, "--project", str(project)])


def test_open_messages_are_listed_as_text_and_as_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert quarantine(project, "list") == 0
    assert capsys.readouterr().out.splitlines() == [
        "crm: 2 open (2 bad_json)",
        "  t/0/1  any table  bad_json at byte 31: no value",
        "  t/0/2  any table  bad_json at byte 31: no value",
    ]
    assert quarantine(project, "list", "--json", "--at", "t/0/2") == 0
    [message] = json.loads(capsys.readouterr().out)
    assert (message["feed"], message["offset"], message["reason"]) == ("crm", 2, "bad_json")
    assert message["timestamp"] == "2026-11-21T08:00:00+00:00"


@pytest.mark.parametrize(("layer", "has_tables"), [("silver", False), ("bronze", False), ("bronze", True)])
def test_the_command_that_runs_a_new_feed_is_for_the_same_place(
    project: Path, capsys: pytest.CaptureFixture[str], layer: str, has_tables: bool
) -> None:
    """A first run of bronze that does not reach Kafka leaves tables without rows."""
    shutil.rmtree(project / ".lake" / layer)
    (project / ".lake" / "bronze").mkdir(exist_ok=True)
    if has_tables:
        write(project / ".lake" / "bronze" / "crm_offsets", "offsets", [])
    assert quarantine(project, "list") == 0
    command = f"ticdc-lake run --feed crm --project {project}"
    expected = f"crm: {layer} has not run for this feed: {command}\n"
    assert capsys.readouterr().out == expected
    for more in (["show", "--at", "t/0/2"], ["replay", "--dry-run"]):
        assert quarantine(project, *more) == 2
        assert expected in capsys.readouterr().err


@pytest.mark.parametrize("count", [1, 0])
def test_a_dismissal_ends_with_the_run_that_goes_on_without_the_messages(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    run = SimpleNamespace(feed=SimpleNamespace(name="crm"), dismiss=lambda *_: count)
    monkeypatch.setattr(quarantine_command, "feed_run", lambda *_: run)
    assert quarantine(project, "dismiss", "--at", "t/0/1", "--reason", "made up") == 0
    out, notes = capsys.readouterr()
    assert out == f"crm: {count} dismissed\n"
    command = f"ticdc-lake run --feed crm --project {project}"
    assert notes == (f"The next run of gold continues without them: {command}\n" if count else "")


def test_a_message_stays_on_its_line_whatever_its_table_is_called() -> None:
    row = {"topic": "t", "partition": 0, "offset": 1, "database": "shop", "table": "t\n  t/0/9\x1b[2J"}
    assert message_text({**row, "reason": "bad_json", "error_offset": None, "detail": "no \x1b"}).isprintable()


def test_a_message_is_shown_with_its_bytes_and_what_inspect_makes_of_them(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert quarantine(project, "show", "--at", "t/0/2") == 0
    out, notes = capsys.readouterr()
    assert out.startswith("t/0/2 of feed crm: bad_json at byte 31: no value\n  Kafka's time 2026-11-21 08:00:00")
    assert f"  > 00000010  {POISON[16:32].hex(' ')}  " in out
    assert "protocol canal-json as given" in out
    assert notes == f"Next: ticdc-lake quarantine replay --feed crm --at t/0/2 --dry-run --project {project}\n"
    assert quarantine(project, "show", "--at", "t/0/7") == 1
    assert capsys.readouterr().out == "crm: no open message at t/0/7\n"
    assert quarantine(project, "show") == 2
    assert "messages (--at): expected topic/partition/offset of each" in capsys.readouterr().err


@pytest.mark.parametrize("action", [("show",), ("replay", "--dry-run")], ids=["show", "dry run"])
def test_a_message_that_bronze_has_lost_is_no_traceback(
    project: Path, capsys: pytest.CaptureFixture[str], action: tuple[str, ...]
) -> None:
    shutil.rmtree(project / ".lake" / "bronze" / "crm_messages")
    write(project / ".lake" / "bronze" / "crm_messages", "messages", [])
    assert quarantine(project, *action, "--at", "t/0/2") == 2
    said = capsys.readouterr().err
    assert "feed crm: bronze has no message t/0/2 in batch 0, which silver has in quarantine: bronze's tables" in said


@pytest.mark.parametrize("group_bytes", [1, 2**26], ids=["one by one", "together"])
def test_a_dry_run_says_what_would_decode_and_changes_nothing(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, group_bytes: int
) -> None:
    monkeypatch.setattr(quarantined_messages, "_GROUP_BYTES", group_bytes)
    before = sorted(project.rglob("*"))
    assert quarantine(project, "replay", "--dry-run") == 1
    out, notes = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "crm: of 2 messages 1 would decode, 1 stay open"
    assert lines[1].startswith("  t/0/2  ")
    assert (len(lines), notes) == (2, f"Next: ticdc-lake quarantine replay --feed crm --project {project}\n")
    assert quarantine(project, "replay", "--dry-run", "--json") == 1
    tried = json.loads(capsys.readouterr().out)
    assert [(each["position"], each["decodes"]) for each in tried] == [("t/0/1", True), ("t/0/2", False)]
    assert quarantine(project, "replay", "--dry-run", "--at", "t/0/1") == 0
    out, notes = capsys.readouterr()
    assert out == "crm: of 1 message 1 would decode, 0 stay open\n"
    assert notes == f"Next: ticdc-lake quarantine replay --feed crm --at t/0/1 --project {project}\n"
    for json_or_text in ([], ["--json"]):
        assert quarantine(project, "replay", "--dry-run", "--at", "t/0/9", *json_or_text) == 1
    *text, objects = capsys.readouterr().out.splitlines()
    assert text == ["crm: of 0 messages 0 would decode, 0 stay open", "crm: no open message at t/0/9"]
    assert json.loads(objects) == [
        {"position": "t/0/9", "decodes": False, "reason": "absent", "detail": "no open message"}
    ]
    assert sorted(project.rglob("*")) == before


@pytest.fixture
def acted(project: Path) -> Path:
    """The project, with its first message dismissed and the second one replayed."""
    place = {"feed": "crm", "topic": "t", "partition": 0, "acted_at": NOW}
    actions = [{**place, "offset": 1, "action": "dismissed"}, {**place, "offset": 2, "action": "replayed"}]
    write(project / ".lake" / "ops" / "quarantine_actions", "quarantine_actions", actions)
    return project


def test_a_dry_run_takes_a_dismissed_message_by_its_position_as_a_replay_does(
    acted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert quarantine(acted, "replay", "--dry-run", "--at", "t/0/1") == 0
    assert capsys.readouterr().out == "crm: of 1 message 1 would decode, 0 stay open\n"
    assert quarantine(acted, "replay", "--dry-run", "--json", "--at", "t/0/1", "--at", "t/0/2") == 1
    found = json.loads(capsys.readouterr().out)
    assert [(each["position"], each["decodes"]) for each in found] == [("t/0/1", True), ("t/0/2", False)]
    assert quarantine(acted, "replay", "--dry-run") == 0
    assert capsys.readouterr().out == "crm: of 0 messages 0 would decode, 0 stay open\n"


def test_a_dry_run_refuses_a_message_whose_later_changes_are_deleted_as_a_replay_does(
    acted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    floor = {"feed": "crm", "layer": "silver", "first_batch": 1, "tso": 0, "held_by": "-", "kept_at": NOW}
    write(acted / ".lake" / "ops" / "retention", "retention", [floor])
    landed = {"batch": 0, "topic": "t", "partition": 0, "end_offset": 3, "messages": 0}
    write(acted / ".lake" / "bronze" / "crm_offsets", "offsets", [landed])
    assert quarantine(acted, "replay", "--dry-run", "--at", "t/0/1") == 2
    said = "feed crm: message t/0/1 cannot be replayed: bronze and silver keep those from offset 3 on"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("action", [["replay"], ["dismiss", "--reason", "made up"]])
def test_messages_that_are_not_open_are_named_before_spark_starts(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, action: list[str]
) -> None:
    monkeypatch.setattr(quarantine_command, "feed_run", None)
    assert quarantine(project, *action, "--at", "t/0/9", "--at", "t/0/10", "--at", "t/0/9") == 1
    assert capsys.readouterr() == ("crm: no open message at t/0/9\ncrm: no open message at t/0/10\n", "")


def test_a_dry_run_that_ends_before_the_last_open_message_says_so(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine_command, "_TRIED", 1)
    assert quarantine(project, "replay", "--dry-run") == 0
    out, notes = capsys.readouterr()
    assert out == "crm: of 1 message 1 would decode, 0 stay open\n"
    assert notes.startswith("crm: only the first 1 were tried\n")


def test_a_dry_run_knows_that_a_message_is_too_large(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (project / "resources" / "feeds" / "crm.yml").open("a") as file:
        file.write("max_message_bytes: 10\n")
    assert quarantine(project, "replay", "--dry-run", "--at", "t/0/1") == 1
    output = capsys.readouterr().out.splitlines()[1]
    assert output.startswith("  t/0/1  message_too_large: expected at most 10 bytes (max_message_bytes), found ")


def test_a_dump_shows_the_bytes_around_the_fault() -> None:
    assert dump(b"", None) == []
    assert dump(b"ab\n", None) == ["  00000000  61 62 0a" + " " * 39 + "  ab."]
    lines = dump(bytes(4096), 1000)
    assert [line[2:10] for line in lines] == [f"{number * 16:08x}" for number in range(58, 67)]
    assert [line[0] for line in lines].index(">") == 4
