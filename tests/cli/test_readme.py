"""What the README tells to type is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ticdc_lakehouse.config.feed import load_feed
from ticdc_local.cli import COMMANDS, parsed

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
ROLES = ("start", "engineer", "operator", "analyst", "developer")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found.group(1)


def test_feed_example_is_valid(tmp_path: Path) -> None:
    (tmp_path / "crm.sql").write_text("USE crm; CREATE TABLE t (id int primary key);")
    (tmp_path / "crm.yml").write_text(block("yaml"))
    feed = load_feed(tmp_path / "crm.yml")
    assert feed.protocol == "canal_json"


def test_every_command_is_there() -> None:
    named = set(re.findall(r"^ {4}ticdc-lake ([a-z-]+)|`ticdc-lake ([a-z][a-z-]*)`", README, re.MULTILINE))
    assert {one or other for one, other in named} <= set(COMMANDS)
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {
        one or other for one, other in re.findall(r"`make ([a-z-]+)|^ {4}make ([a-z-]+)", README, re.MULTILINE)
    } <= targets


def documented_commands() -> list[str]:
    """Every line of the README and of the pages by role that begins with ``ticdc-lake``, or has it behind a pipe."""
    pages = [PROJECT / "README.md", *(PROJECT / "docs" / f"{role}.md" for role in ROLES)]
    lines = [line for page in pages for line in re.findall(r"^ {4}(.*ticdc-lake .*)$", page.read_text(), re.MULTILINE)]
    parts = [part.strip() for line in lines for part in line.split("|")]
    return sorted({re.sub(r" +[<>] *[\w./-]+", "", part) for part in parts if part.startswith("ticdc-lake ")})


@pytest.mark.parametrize("line", documented_commands())
def test_every_documented_command_line_is_understood(line: str) -> None:
    _, *arguments = shlex.split(line)
    assert parsed(arguments).command == arguments[0]


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len(README.splitlines()) <= 150


def test_the_topic_that_is_inspected_is_the_one_that_was_generated() -> None:
    written = re.findall(r"generate .* --bootstrap-servers (\S+) --topic (\S+)", README)
    assert re.findall(r"kcat -b (\S+) -t (\S+)", README) == written
