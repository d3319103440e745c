"""``ticdc-lake status`` where feeds have a file but never ran."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pseudo_terminal import on_a_terminal

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config import feed
from ticdc_lakehouse.config.document import Document
from ticdc_local.cli import main, status

PROJECT = Path(__file__).parents[2]
RIGHT = "protocol: craft\ntime_zone: UTC\nkafka: {bootstrap_servers: 'h:1', topics: [t]}\n"
WATCH = """
import os
from ticdc_local.cli import main, watch
watch.time.sleep = lambda _: os._exit(0)
main(["status", "--watch"])
"""
READS = """
from ticdc_lakehouse.config import feed
read = feed.document_of
def noted(path):
    with open("reads", "a") as reads:
        print(path.stem, file=reads)
    return read(path)
feed.document_of = noted
"""
WRONG = "protocol: crafty\ntime_zone: Nowhere\nkafka: {bootstrap_servers: 'h:1', topics: [t]}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake, a feed whose file is right, and one before and after it whose file is wrong."""
    shutil.copy(PROJECT / "databricks.yml", tmp_path)
    (tmp_path / ".lake" / "bronze").mkdir(parents=True)
    feeds = tmp_path / "resources" / "feeds"
    feeds.mkdir(parents=True)
    for name, text in {"a": WRONG, "b": RIGHT, "c": WRONG}.items():
        (feeds / f"{name}.yml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_wrong_feed_file_is_broken_and_the_other_feeds_are_checked(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--check"]) == 2
    a, b, c = capsys.readouterr().out.splitlines()
    assert a.startswith(f"a: broken: {project}/resources/feeds/a.yml: protocol: expected one of craft")
    assert "; " in a, "all mistakes are on the feed's line"
    assert b == "b: attention: bronze has not run for this feed"
    assert c.startswith("c: broken: ")
    assert main(["status", "--check", "--feed", "b"]) == 1


def test_people_see_a_wrong_feed_file_and_one_feed_is_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 0
    a, b, _ = capsys.readouterr().out.split("\n\n")
    assert f"\n  feed file    broken: {project}/resources/feeds/a.yml: protocol: expected one of craft" in a
    assert "feed file" not in b
    with pytest.raises(SystemExit) as ending:
        main(["status", "--check", "--feed", "a", "--feed", "b"])
    assert ending.value.code == 2
    assert "argument --feed: expected one, found a and b" in capsys.readouterr().err


def test_a_lake_that_cannot_be_read_is_broken(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(project / ".lake" / "silver"))

    monkeypatch.setattr(status, "status_of", refused)
    assert main(["status", "--check"]) == 2
    assert capsys.readouterr().err.endswith(
        f"the lake cannot be read: [Errno 13] Permission denied: '{project}/.lake/silver'\n"
    )


@pytest.mark.parametrize(
    "command",
    [
        "status",
        "status --check",
        "status --json",
        "report --output -",
        "quarantine list",
        "quarantine list --json",
        "quarantine show --at t/0/1",
    ],
)
def test_where_there_is_no_feed_a_monitor_does_not_find_that_all_is_fine(
    project: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    feeds = project / "resources" / "feeds"
    shutil.rmtree(feeds)
    assert main(command.split()) == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert f"expected a feed, found none: no feed file in {feeds} or {project}/.lake/feeds" in said
    assert (f", and {project}/.lake has published none; name" in said) == (not command.startswith("quarantine"))


def test_the_command_that_runs_a_new_feed_is_for_the_same_place(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = project / ".lake"
    assert main(["status", "--feed", "b", "--project", str(project), "--lake", str(lake)]) == 0
    command = f"ticdc-lake run --feed b --project {project} --lake {lake}"
    assert capsys.readouterr().out == f"b\n  bronze has not run for this feed: {command}\n"


def test_what_macos_and_emacs_leave_beside_a_feed_file_is_no_feed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feeds = project / "resources" / "feeds"
    (feeds / "._b.yml").write_bytes(b"\x00\x05\x16\x07")
    (feeds / ".#b.yml").symlink_to("user@host.1234")
    assert main(["status", "--check"]) == 2
    assert [line[0] for line in capsys.readouterr().out.splitlines()] == ["a", "b", "c"]
    with pytest.raises(ConfigError, match=r"no such feed; expected one of a, b, c$"):
        feed.feed_file(feeds, "._b2")


@pytest.mark.usefixtures("project")
def test_json_has_the_feeds_beside_a_wrong_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["health"] for each in found] == ["broken", "attention", "broken"]
    assert {each["waiting_on"] for each in found} == {"bronze: it has not run for this feed"}


@pytest.mark.usefixtures("project")
def test_a_wrong_feed_file_is_broken_and_the_other_feeds_are_watched() -> None:
    shown = on_a_terminal(WATCH, TERM="xterm")
    assert "a: broken: " in shown
    assert "b: attention: bronze has not run for this feed" in shown
    assert "c: broken: " in shown


@pytest.mark.usefixtures("project")
def test_a_terminal_that_cannot_erase_lines_is_refused() -> None:
    assert "--watch: expected a terminal that can erase lines" in on_a_terminal(WATCH, TERM="dumb")


@pytest.mark.parametrize(
    "command", [("status",), ("status", "--check"), ("status", "--json"), ("report", "--output", "-")], ids=" ".join
)
@pytest.mark.usefixtures("project")
def test_each_feed_file_is_read_once(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    document_of = feed.document_of

    def noted(path: Path) -> Document:
        read.append(path.stem)
        return document_of(path)

    monkeypatch.setattr(feed, "document_of", noted)
    main([*command])
    assert read == ["a", "b", "c"]


def test_each_feed_file_is_read_once_for_a_look_of_watch(project: Path) -> None:
    assert "b: attention: " in on_a_terminal(READS + WATCH, TERM="xterm")
    assert (project / "reads").read_text().split() == ["a", "b", "c"]
