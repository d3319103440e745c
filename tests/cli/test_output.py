"""Standard output that takes no more, or not every character; each command in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Ddl
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import PROTOCOLS
from ticdc_local.cli import main, maintain
from ticdc_local.cli.open_lake import open_lake
from ticdc_local.java import OPTION_VARIABLES

PROJECT = Path(__file__).parents[2]
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
    expected = f"ticdc-lake {command[0]}: standard input is closed; {instead}\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", expected)


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


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            PySparkException(
                "[TASK_WRITE_FAILED] Task failed.\njava.io.IOException: No space left on device\n\tat x.Y"
            ),
            "No space left on device; make room there and run it again",
        ),
        (
            Py4JError("An error occurred while calling o1.commit.\n: org.apache.spark.SparkException: Job aborted.\n"),
            "Py4JError: org.apache.spark.SparkException: Job aborted. (--log-level debug prints more)",
        ),
    ],
)
def test_what_spark_refuses_is_one_line_and_code_1(
    error: Exception, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_lake(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(maintain, "open_lake", open_lake)
    assert main(["maintain", "--lake", str(tmp_path)]) == 1
    assert capsys.readouterr() == ("", f"ticdc-lake maintain: {text}\n")
    assert main(["maintain", "--lake", str(tmp_path), "--log-level", "debug"]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_java_that_does_not_start_is_reported_with_where_its_options_come_from(tmp_path: Path) -> None:
    (tmp_path / "bronze").mkdir()
    command = [*COMMAND, "sql", "-e", "SELECT 1", "--project", str(PROJECT), "--lake", str(tmp_path)]
    others = {name: value for name, value in os.environ.items() if name not in OPTION_VARIABLES}
    environment = {**others, "_JAVA_OPTIONS": "-Xmx512m"}  # less than the heap that a session begins with
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Traceback" not in ended.stderr
    assert "Initial heap size set to a larger value than the maximum heap size" in ended.stderr
    assert (
        "ticdc-lake sql: Java ended before Spark had started; what it printed says why; look at _JAVA_OPTIONS, from "
        "which it takes options\n"
    ) in ended.stderr


def test_a_lake_on_a_full_disk_is_refused_before_spark_starts_except_to_free_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bronze").mkdir()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000_000))
    monkeypatch.setattr("ticdc_local.cli.open_lake.local_session", lambda *_, **__: "Spark has started")
    monkeypatch.setattr("ticdc_local.cli.open_lake.lake_from", lambda spark, _: spark)
    options = Namespace(project=PROJECT, lake=tmp_path)
    with pytest.raises(ConfigError, match="the disk has 1 MB left; make room for 268 MB at least"):
        open_lake(options)
    assert open_lake(options, frees_space=True) == "Spark has started"
