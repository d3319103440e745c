"""SIGINT and SIGTERM end a command: one line, exit code 130, Java and broker gone, nothing begun after it. At the
prompt of ``sql`` SIGINT drops the text that is typed, and the first one during a statement cancels it.

The signal wakes a thread of its own, because the main thread may be waiting for Java or in a library of C, where Python
handles no signal. Layers that are at work may finish what they commit; the next run repairs what is cut off.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ticdc_lakehouse.run_lock import RUNS
from ticdc_local.signals import INTERRUPTED, SIGNALS, say_interrupted
from ticdc_local.temporary import remove_temporary_folders

COMMIT_SECONDS = 3.5
"""How long a layer may continue; with the time that Java needs to end it is less than five."""
JAVA_SECONDS = 0.9
_ENDING = threading.Event()
_CANCELS: list[Callable[[], object]] = []
"""What the next SIGINT calls, instead of ending the process."""


@dataclass(slots=True)
class _Prompt:
    """A prompt for statements. Flags without a lock: the handler would wait for ever for one of the main thread's."""

    is_idle: bool = False
    """True if a prompt is open and runs no statement: SIGINT ends nothing."""
    is_reading: bool = False
    """True if the next SIGINT raises KeyboardInterrupt in the main thread, which reads a line."""


_PROMPT = _Prompt()


def end_on_signals(command: str) -> None:
    """Lets SIGINT and SIGTERM end the process from now on; ``command`` is what the line names. For the main thread."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in SIGNALS:
        signal.signal(number, _handle)
    waiting = threading.Thread(target=_wait, args=(read, command, _terminal()), name="interrupt", daemon=True)
    waiting.start()


@contextmanager
def cancelled_by_interrupt(cancel: Callable[[], object]) -> Iterator[None]:
    """Lets the first SIGINT within it call ``cancel``; another one ends the process, and so does SIGTERM."""
    _CANCELS.append(cancel)
    was_idle, _PROMPT.is_idle = _PROMPT.is_idle, False
    try:
        yield
    finally:
        _PROMPT.is_idle = was_idle
        _CANCELS.clear()


@contextmanager
def open_prompt() -> Iterator[None]:
    """Lets SIGINT within it end nothing but a statement (`cancelled_by_interrupt`) or a line
    (`read_until_interrupt`)."""
    _PROMPT.is_idle = True
    try:
        yield
    finally:
        _PROMPT.is_idle = False


def read_until_interrupt(read_line: Callable[[], str]) -> str:
    """Returns what ``read_line`` returns. Raises KeyboardInterrupt if SIGINT comes first; for the main thread."""
    _PROMPT.is_reading = True
    try:
        return read_line()
    finally:
        _PROMPT.is_reading = False


def wait_if_ending() -> None:
    """Does not return once a signal has come: the process is about to end, with the code that shows it."""
    if _ENDING.is_set():
        threading.Event().wait()


def _handle(number: int, _frame: object) -> None:
    """Leaves the signal to the thread, through the pipe into which Python writes it where there is a handler; a line
    that is being read ends here, in the main thread."""
    if number == signal.SIGINT and _PROMPT.is_reading:
        _PROMPT.is_reading = False  # raised once a line, also where it comes as the line ends
        raise KeyboardInterrupt


def _terminal() -> Callable[[], None]:
    """Returns a function that puts the terminal back to what it is now: a prompt that is cut off leaves it without
    echo."""
    if not sys.stdin or not sys.stdin.isatty():
        return lambda: None
    settings = termios.tcgetattr(0)
    return lambda: termios.tcsetattr(0, termios.TCSANOW, settings)


def _wait(pipe: int, command: str, restore_terminal: Callable[[], None]) -> None:
    while (number := os.read(pipe, 1)[0]) not in SIGNALS or (number == signal.SIGINT and _continues()):
        pass
    _ENDING.set()
    say_interrupted(command)
    # What the main thread and Java (`session.local_session`) still have to say is about being ended.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    RUNS.close(COMMIT_SECONDS)
    _end(_children())
    remove_temporary_folders()
    restore_terminal()
    os._exit(INTERRUPTED)


def _continues() -> bool:
    """True if SIGINT ends no process: a prompt is idle, or it cancels a statement."""
    return _has_cancelled() or _PROMPT.is_idle


def _has_cancelled() -> bool:
    """Cancels what SIGINT cancels; true if there is anything."""
    try:
        cancel = _CANCELS.pop()
    except IndexError:
        return False
    cancel()
    return True


def _children() -> list[int]:
    """Returns the processes that this one started and that still run."""
    if Path("/proc/self/stat").exists():
        stats = (_stat(path) for path in Path("/proc").glob("[0-9]*/stat"))
        pairs = [(int(path.parent.name), parent) for path, parent in stats]
    else:
        listed = subprocess.run(["/bin/ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False)
        pairs = [(int(pid), int(parent)) for pid, parent in map(str.split, listed.stdout.splitlines())]
    return [pid for pid, parent in pairs if parent == os.getpid()]


def _stat(path: Path) -> tuple[Path, int]:
    """Returns the path and the parent of a process, 0 where it is gone. The second field, a name in brackets, may hold
    anything."""
    try:
        return path, int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
    except OSError:
        return path, 0


def _end(children: list[int]) -> None:
    """Sends SIGTERM, which lets Java remove its scratch files, and SIGKILL to a process that needs longer."""
    deadline, number = time.monotonic() + JAVA_SECONDS, signal.SIGTERM
    for pid in children:
        _send(pid, number)
    while children and time.monotonic() < deadline:
        children = [pid for pid in children if not _is_gone(pid)]
        time.sleep(0.02)
    for pid in children:
        _send(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _is_gone(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # another thread of this process has waited for it
        return True
