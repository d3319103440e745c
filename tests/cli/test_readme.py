"""What the README tells to type is there."""

from __future__ import annotations

import re
from pathlib import Path

from ticdc_lakehouse.config.feed import load_feed
from ticdc_local.cli import COMMANDS

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")


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


def test_the_topics_are_those_of_feeds() -> None:
    feeds = [load_feed(path) for path in (PROJECT / "resources" / "feeds").glob("*.yml")]
    assert set(re.findall(r"kcat .* -t (\S+)", README)) <= {topic for feed in feeds for topic in feed.topics}


def test_every_file_that_is_linked_is_there() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (PROJECT / target).exists(), target
