"""The commands of docs/start.md in their order, each in a process of its own, on a clean checkout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from terminal import PROJECT, clone, kept_up, type_in

from ticdc_local.broker import free_ports

START = (PROJECT / "docs" / "start.md").read_text(encoding="utf-8")
LAST_LINES = {
    "generate": r"10\d\d\d row changes, .* to topic crm|[\d, a-z.]+ to topic crm",
    "feed new": r"Next: ticdc-lake feed check crm",
    "feed check": r"Next: ticdc-lake run --feed crm",
    "run": r"job ticdc_lake: success in .* s",
    "status": r"  shop\.stock +at the watermark",
    "sql": r"\+-+\+-+\+",
    "report": r"wrote report\.html",
}
"""What each command ends with."""


def own_feed() -> list[str]:
    """The commands of the page's section, without ``kafka``, which stays up beside them."""
    section = START[START.index("## A feed of your own") : START.index("## Generate test data")]
    found = re.findall(r"^ {4}(ticdc-lake .*)$", section, re.MULTILINE)
    assert found[0] == "ticdc-lake kafka"
    return found[1:]


def key(line: str) -> str:
    words = line.split()
    return " ".join(words[1:3]) if words[1] == "feed" else words[1]


def test_the_page_has_the_commands_whose_ends_are_known() -> None:
    assert [key(line) for line in own_feed()] == [*LAST_LINES]


@pytest.mark.long
def test_the_first_hour(tmp_path: Path) -> None:
    folder, port = clone(tmp_path), free_ports(1)[0]
    with kept_up(folder, f"ticdc-lake kafka --port {port}") as first_line:
        assert first_line.startswith(f"Kafka runs at localhost:{port}")
        for line in own_feed():
            ended = type_in(folder, line.replace("localhost:9092", f"localhost:{port}"))
            print(f"{ended.cpu_seconds:6.1f} s of CPU  {line}  →  {ended.last_line}")
            assert ended.code == 0, ended.err[-2000:]
            assert re.fullmatch(LAST_LINES[key(line)], ended.last_line), ended.last_line


def test_a_feed_of_ones_own_up_to_its_first_run(tmp_path: Path) -> None:
    """The same without what starts Spark."""
    folder, port = clone(tmp_path), free_ports(1)[0]
    quick = [line for line in own_feed() if key(line) in ("generate", "feed new", "feed check")]
    with kept_up(folder, f"ticdc-lake kafka --port {port}"):
        for line in quick:
            ended = type_in(folder, line.replace("localhost:9092", f"localhost:{port}"))
            assert ended.code == 0, ended.err[-2000:]
            assert re.fullmatch(LAST_LINES[key(line)], ended.last_line), ended.last_line
