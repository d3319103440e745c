"""The commands of docs/start.md in their order, each in a process of its own, on a clean checkout."""

from __future__ import annotations

import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from terminal import PROJECT, clone, kept_up, make, type_in

from ticdc_local.broker import free_ports

START = (PROJECT / "docs" / "start.md").read_text(encoding="utf-8")
LAST_LINES = {
    "generate": "",
    "feed new": r"wrote .*/resources/feeds/crm\.yml",
    "feed check": r"[ │└─]+ .*",
    "run": r"job ticdc_lake: success in .* s",
    "status": r"  shop\.stock +at the watermark",
    "sql": r"\+-+\+-+\+",
    "report": r"wrote report\.html",
}
"""What each command's result ends with."""
DEMO = {
    "make demo": r"\[ *[\d.]+ s\] Kafka is stopped\. The lake stays in \.lake",
    """make sql ARGS='-e "SELECT count(*) AS orders FROM gold.shop_craft_shop_orders"'""": r"\+-+\+",
    "ticdc-lake run notebooks/tour.ipynb --feed shop_craft": r"TSO \d+: 3 tables, \d+ rows, 0 differences",
}
"""What the README begins with, and the tour of the lake that it leaves."""
STEPS = ("generate", "feed new", "feed check", "run")
"""Commands that print the next one beside it."""


def own_feed(port: int = 9092) -> list[str]:
    """The commands of the page's section, without ``kafka``, which stays up beside them."""
    section = START[START.index("## A feed of your own") : START.index("## Generate test data")]
    found = re.findall(r"^ {4}(ticdc-lake .*)$", section, re.MULTILINE)
    assert found[0] == "ticdc-lake kafka"
    return [line.replace("localhost:9092", f"localhost:{port}") for line in found[1:]]


def key(line: str) -> str:
    words = line.split()
    return " ".join(words[1:3]) if words[1] == "feed" else words[1]


def type_all(folder: Path, lines: list[str], then: str) -> None:
    """Run the commands one after the other; each ends as is known, and prints the one after it if it is a step."""
    for line, after in pairwise([*lines, then]):
        ended = type_in(folder, line)
        print(f"{ended.seconds:6.1f} s, {ended.cpu_seconds:6.1f} s of CPU  {line}  →  {ended.last_line}")
        assert ended.code == 0, ended.err[-2000:]
        assert re.fullmatch(LAST_LINES[key(line)], ended.last_line), ended.last_line
        if key(line) in STEPS:
            assert ended.err.endswith(f"Next: {after}\n"), ended.err


def test_the_page_has_the_commands_whose_ends_are_known() -> None:
    assert [key(line) for line in own_feed()] == [*LAST_LINES]


def test_the_readme_has_them_in_the_same_order() -> None:
    readme = re.findall(r"^ {4}(ticdc-lake .*)$", (PROJECT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    own = readme[readme.index("ticdc-lake kafka") + 1 :]
    assert own[: len(LAST_LINES) - 1] == [line for line in own_feed() if key(line) != "sql"]


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_a_second_terminal_finds_the_command(page: str) -> None:
    text = (PROJECT / page).read_text(encoding="utf-8")
    [between] = re.findall(r"^ {4}ticdc-lake kafka\n(.*?)^ {4}ticdc-lake", text, re.MULTILINE | re.DOTALL)
    assert "in another terminal, after the same `source`:" in between.lower()
    assert "`source .venv/bin/activate`" in text[: text.index(between)]


@pytest.mark.long
def test_every_command_of_the_first_hour_works(tmp_path: Path) -> None:
    folder, port = clone(tmp_path), free_ports(1)[0]
    with kept_up(folder, f"ticdc-lake kafka --port {port}") as first_line:
        assert first_line.startswith(f"Kafka runs at localhost:{port}")
        type_all(folder, own_feed(port), then="")


@pytest.mark.long
def test_demo_prompt_and_tour_of_its_lake_run(tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", PROJECT, tmp_path / "clone"], check=True)
    for line, last_line in DEMO.items():
        run = make if line.startswith("make ") else type_in
        ended = run(tmp_path / "clone", line)
        print(f"{ended.seconds:6.1f} s, {ended.cpu_seconds:6.1f} s of CPU  {line}  →  {ended.last_line}")
        assert ended.code == 0, ended.err[-2000:]
        assert re.fullmatch(last_line, ended.last_line), ended.out[-2000:]
        years = {*re.findall(r"\b(\d{4})-\d\d-\d\d \d\d:", ended.out)}
        assert line != "make demo" or years == {"2026"}, "when the demo's changes were committed"


def test_every_command_before_the_first_run_works_and_names_the_next(tmp_path: Path) -> None:
    folder, port = clone(tmp_path), free_ports(1)[0]
    *quick, run = own_feed(port)[: len(STEPS)]
    with kept_up(folder, f"ticdc-lake kafka --port {port}"):
        type_all(folder, quick, then=run)
