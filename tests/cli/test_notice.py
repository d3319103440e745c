"""Notes, progress and the pager: what a terminal is shown beside a command's result."""

from __future__ import annotations

import re

import pytest
from pseudo_terminal import on_a_terminal

from ticdc_local.cli import main, notice

PROGRESS = """
import time
from ticdc_local.cli import notice
notice.DELAY_SECONDS = 0.1
with notice.progress("starting Spark"):
    time.sleep(1)
print("result")
"""
WATCH = """
import os
from ticdc_local.cli.watch import watch
looks = iter([([], None)])
watch(lambda: next(looks, None) if looks.__length_hint__() else os._exit(0), 0)
"""
PAGED = "from ticdc_local.cli.sql_result import show_paged; show_paged({!r})"


def test_a_terminal_shows_what_takes_long_and_then_only_the_result() -> None:
    shown = on_a_terminal(PROGRESS, TERM="xterm")
    assert re.match(r"\rstarting Spark: \d s\x1b\[K", shown)
    assert shown.endswith("\r\x1b[Kresult\r\n")


def test_what_takes_no_longer_than_two_seconds_shows_nothing() -> None:
    assert on_a_terminal(PROGRESS.replace("DELAY_SECONDS = 0.1", "DELAY_SECONDS = 9"), TERM="xterm") == "result\r\n"


def test_a_terminal_that_cannot_erase_a_line_gets_no_progress() -> None:
    assert on_a_terminal(PROGRESS, TERM="dumb") == "result\r\n"


def test_a_file_gets_no_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notice, "DELAY_SECONDS", 0)
    with notice.progress("starting Spark"):
        pass
    assert capsys.readouterr() == ("", "")


def test_quiet_leaves_the_result_alone(capsys: pytest.CaptureFixture[str]) -> None:
    generate = ["generate", "--workload", "shop", "--protocol", "craft", "--file", "-", "--rows", "1"]
    assert main(generate) == 0
    loud = capsys.readouterr()
    assert main([*generate, "--quiet"]) == 0
    assert capsys.readouterr() == (loud.out, "")
    assert "row changes" in loud.err


def test_a_watch_that_is_cut_off_leaves_the_cursor_shown() -> None:
    shown = on_a_terminal(WATCH, TERM="xterm")
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")


@pytest.mark.parametrize("text", ["x\n" * 40, "x" * 100], ids=["too many lines", "a line that is too long"])
def test_a_table_larger_than_the_terminal_is_paged(text: str) -> None:
    assert on_a_terminal(PAGED.format(text), PAGER="sed 's/^/page: /'").startswith("page: x")


def test_a_result_that_fits_is_printed() -> None:
    assert on_a_terminal(PAGED.format("x\ny"), PAGER="sed 's/^/page: /'") == "x\r\ny\r\n"
