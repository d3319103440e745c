"""Standard output that takes no more, or not every character; each command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ticdc_codec.event import Ddl
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import PROTOCOLS

COMMAND = (sys.executable, "-c", "import sys; from ticdc_local.cli import main; sys.exit(main())")
GENERATE = (*COMMAND, "generate", "--workload", "shop", "--protocol", "craft", "--file", "-")


@pytest.mark.parametrize("command", [(), ("decode", "--protocol", "craft", "stream"), ("inspect", "stream")])
def test_a_reader_that_wants_no_more_ends_the_command_in_silence(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "stream").write_bytes(
        subprocess.run([*GENERATE, "--rows", "1000"], capture_output=True, check=True).stdout
    )
    writing = [*COMMAND, *command] if command else [*GENERATE, "--rows", "5000"]
    with subprocess.Popen(writing, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 141)


@pytest.mark.parametrize("command", [("decode", "--protocol", "craft"), ("inspect",)])
def test_a_command_continues_without_standard_output(command: tuple[str, ...]) -> None:
    stream = subprocess.run([*GENERATE, "--rows", "1"], capture_output=True, check=True).stdout
    closed = ["sh", "-c", '"$@" >&-', "sh", *COMMAND, *command]
    ended = subprocess.run(closed, input=stream, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (("inspect",), "name a file"),
        (("decode", "--protocol", "craft", "-"), "name a file"),
        (("sql",), "give a statement with -e"),
    ],
)
def test_a_closed_standard_input_is_reported(command: tuple[str, ...], instead: str) -> None:
    closed = ["sh", "-c", '"$@" <&-', "sh", *COMMAND, *command]
    ended = subprocess.run(closed, capture_output=True, text=True, check=False)
    said = f"ticdc-lake {command[0]}: standard input is closed; {instead}\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said)


def test_an_empty_standard_input_is_reported() -> None:
    ended = subprocess.run([*COMMAND, "inspect"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "there is no message to inspect\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("rows", ["1", "5000"])
def test_a_full_disk_is_one_line_and_code_1(rows: str) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run([*GENERATE, "--rows", rows], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "ticdc-lake generate: [Errno 28] No space left on device"
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr


def test_a_terminal_without_utf_8_shows_other_characters_escaped(tmp_path: Path) -> None:
    ddl = Ddl(database="d", table="t", commit_ts=1, commit_ms=0, query="DROP TABLE \u5546", type="4")
    [message] = PROTOCOLS["craft"].encode([ddl], sink_options("craft", {}))
    (tmp_path / "message").write_bytes(message.value or b"")
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(
        [*COMMAND, "inspect", str(tmp_path / "message")], env=ascii_only, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "DROP TABLE \\u5546\n" in ended.stdout
