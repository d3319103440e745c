"""SIGINT and SIGTERM end every command alike: one line, code 130, within seconds, and nothing of it runs on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from ticdc_lakehouse.run_lock import Runs
from ticdc_local.signals import say_interrupted

PROJECT = Path(__file__).parents[2]
PROC = Path("/proc")
AT_REST, IN_COMMIT = 1.0, 5.0
"""Seconds that are promised."""
BUSY_MACHINE = 3.0
"""So many times longer it may take here, where other tests keep the cores busy."""
LONG_COMMIT = """
import sys
from pathlib import Path
from ticdc_lakehouse.run_lock import RUNS
from ticdc_local.cli import interrupt
from ticdc_local.session import local_session

interrupt.end_on_signals("maintain")
lake = sys.argv[1]
try:
    with RUNS.at_work():
        rows = local_session(Path(lake)).range(2)
        rows.count()
        print("begun")
        slow = rows.selectExpr("java_method('java.lang.Thread', 'sleep', id + 60000) AS slept")
        slow.write.format("delta").save(lake + "/slow")
finally:
    interrupt.wait_if_ending()
"""
"""A layer at work that commits for longer than an interrupt waits."""

CANCELLED = """
import threading
from ticdc_local.cli import interrupt

interrupt.end_on_signals("sql")
cancelled = threading.Event()
with interrupt.cancelled_by_interrupt(cancelled.set):
    print("begun")
    cancelled.wait()
print("cancelled")
threading.Event().wait()
"""
"""A statement that takes long, then a process that runs none and reads no line."""

pytestmark = pytest.mark.skipif(not (PROC / "self").exists(), reason="looks at processes through /proc")


def start(*arguments: str, module: str = "ticdc_local.cli", temporary: Path | None = None) -> subprocess.Popen[str]:
    """``ticdc-lake`` as a process of its own; its standard input stays open. ``temporary``: its TMPDIR."""
    environment = {} if temporary is None else {"TMPDIR": str(temporary)}
    return started(f"import sys; from {module} import main; sys.exit(main())", *arguments, **environment)


def started(program: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """A Python program as a process of its own; its standard input stays open."""
    command, pipe = [sys.executable, "-u", "-c", program, *arguments], subprocess.PIPE
    return subprocess.Popen(
        command, cwd=PROJECT, env={**os.environ, **environment}, stdin=pipe, stdout=pipe, stderr=pipe, text=True,
        start_new_session=True,
    )  # fmt: skip


def wait_for_handler(process: subprocess.Popen[str]) -> None:
    """Return once the process handles SIGTERM."""
    caught = 0
    while not caught & 1 << signal.SIGTERM - 1:
        time.sleep(0.02)
        status = (PROC / str(process.pid) / "status").read_text()
        caught = int(next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1], 16)


def descendants(pid: int) -> set[int]:
    """The processes below one."""
    found = set()
    for path in PROC.glob(f"{pid}/task/*/children"):
        with suppress(OSError):
            for child in map(int, path.read_text().split()):
                found |= {child, *descendants(child)}
    return found


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    return False


def interrupted(process: subprocess.Popen[str], number: signal.Signals) -> tuple[float, str]:
    """Send a signal; gives the seconds until the process ended and what it said on stderr. Nothing below it is left."""
    below, began = descendants(process.pid), time.monotonic()
    os.kill(process.pid, number)
    process.wait(30)  # with its standard input open: at its end a command may finish by itself
    seconds = time.monotonic() - began
    _, output = process.communicate()
    assert process.returncode == 130
    while left := {pid for pid in below if is_running(pid)}:
        assert time.monotonic() - began < 10, f"left behind: {left}"
        time.sleep(0.05)
    return seconds, output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_still_importing_ends_with_one_line(number: signal.Signals) -> None:
    [script] = entry_points(group="console_scripts", name="ticdc-lake")
    process = start("decode", "--protocol", "craft", module=script.module)
    wait_for_handler(process)
    assert "libarrow" not in (PROC / str(process.pid) / "maps").read_text(), "handled before the long imports"
    seconds, output = interrupted(process, number)
    assert output == "ticdc-lake decode: interrupted; run it again\n"
    assert seconds < AT_REST * BUSY_MACHINE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", [("decode", "--protocol", "craft"), ("inspect", "-")])
def test_a_command_that_waits_for_input_ends_with_one_line(command: tuple[str, ...], number: signal.Signals) -> None:
    process = start(*command)
    wait_for_handler(process)
    seconds, output = interrupted(process, number)
    assert output == f"ticdc-lake {command[0]}: interrupted; run it again\n"
    assert seconds < AT_REST * BUSY_MACHINE


def test_a_command_that_runs_until_a_signal_has_nothing_to_repeat(capfd: pytest.CaptureFixture[str]) -> None:
    say_interrupted("kafka")
    assert capfd.readouterr().err == "ticdc-lake kafka: ended\n"


def test_a_statement_that_runs_in_spark_ends_with_java(tmp_path: Path) -> None:
    lake, temporary = tmp_path / "lake", tmp_path / "temporary"
    (lake / "bronze").mkdir(parents=True)
    temporary.mkdir()
    sleep = "SELECT java_method('java.lang.Thread', 'sleep', 60000L)"
    process = start("sql", "--lake", str(lake), "-e", "SELECT 'begun'", "-e", sleep, temporary=temporary)
    assert process.stdout is not None
    next(line for line in process.stdout if "begun" in line)
    assert len(descendants(process.pid)) > 0
    seconds, output = interrupted(process, signal.SIGINT)
    assert output.splitlines()[-1] == "ticdc-lake sql: interrupted; run it again"
    assert "Traceback" not in output
    assert seconds < AT_REST * BUSY_MACHINE
    assert [path.name for path in lake.iterdir()] == ["bronze"], "a command that reads leaves nothing in the lake"
    assert [*temporary.glob("ticdc-lake-*")] == []


def test_an_interrupt_cancels_a_statement_and_ends_a_process_that_runs_none() -> None:
    process = started(CANCELLED)
    assert process.stdout is not None
    assert next(process.stdout) == "begun\n"
    process.send_signal(signal.SIGINT)
    assert next(process.stdout) == "cancelled\n"
    _, output = interrupted(process, signal.SIGINT)
    assert output == "ticdc-lake sql: interrupted; run it again\n"


@pytest.mark.long
def test_a_commit_that_takes_too_long_ends_without_what_java_says_about_it(tmp_path: Path) -> None:
    process = started(LONG_COMMIT, str(tmp_path))
    assert process.stdout is not None
    assert next(process.stdout) == "begun\n"
    seconds, output = interrupted(process, signal.SIGTERM)
    assert output == "ticdc-lake maintain: interrupted; run it again\n"
    assert seconds < IN_COMMIT * BUSY_MACHINE


def test_the_demo_ends_with_its_broker(tmp_path: Path) -> None:
    process = start("demo", "--lake", str(tmp_path / "lake"))
    assert process.stdout is not None
    next(line for line in process.stdout if "Kafka runs" in line)
    assert len(descendants(process.pid)) > 1
    seconds, output = interrupted(process, signal.SIGTERM)
    assert output == "ticdc-lake demo: interrupted; run it again\n"
    assert seconds < AT_REST * BUSY_MACHINE


@pytest.fixture
def runs() -> Runs:
    return Runs()


def test_a_run_at_work_may_finish_and_none_begins_after_it(runs: Runs) -> None:
    order, begun = [], threading.Event()

    def work() -> None:
        with runs.at_work():
            begun.set()
            time.sleep(0.2)
            order.append("finished")
        with runs.at_work():
            order.append("begun after the end")

    threading.Thread(target=work, daemon=True).start()
    begun.wait()
    assert runs.close(5)
    time.sleep(0.1)
    assert order == ["finished"]


def test_a_run_that_takes_too_long_is_not_waited_for(runs: Runs) -> None:
    with runs.at_work():
        assert not runs.close(0.1)
