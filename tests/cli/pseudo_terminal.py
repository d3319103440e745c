"""Python programs on a terminal of 24 lines and 80 columns."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

TAKES_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
"""What a program begins with for Ctrl-C to be a signal to it: the terminal is its own, in a session of its own."""


def on_a_terminal(program: str, typed: str = "", **environment: str) -> str:
    """What a program shows, with what the terminal echoes of the keys that are typed."""
    ours, its = pty.openpty()
    size = {"LINES": "24", "COLUMNS": "80", "TERM": "dumb", **environment}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env={**os.environ, **size}):
        os.close(its)
        os.write(ours, typed.encode())
        shown = b""
        with suppress(OSError):  # of Linux, where nobody has the other end any more
            while part := os.read(ours, 4096):
                shown += part
    os.close(ours)
    return shown.decode()


def conversation(program: str, turns: Iterable[tuple[str, str]], **environment: str) -> tuple[str, int]:
    """What a program shows whose terminal types each second text once the first one has been shown; and its exit
    code."""
    ours, its = pty.openpty()
    command = [sys.executable, "-c", TAKES_TERMINAL + program]
    settings = {**os.environ, "TERM": "xterm", **environment}
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=settings, start_new_session=True) as process:
        os.close(its)
        shown, read_to, left = "", 0, iter(turns)
        awaited, typed = next(left)
        with suppress(OSError):
            while part := os.read(ours, 4096):
                shown += part.decode()
                if (at := shown.find(awaited, read_to)) >= 0:
                    read_to = at + len(awaited)
                    wait_until_asleep(process.pid)
                    os.write(ours, typed.encode())
                    awaited, typed = next(left, ("nothing more", ""))
    os.close(ours)
    return shown, process.returncode


def wait_until_asleep(pid: int) -> None:
    """Return once the main thread of a process waits. Between the prompt that it shows and its waiting for keys a
    signal has no effect before the next key, as in every program that uses readline."""
    looks = 0
    while looks < 5:
        time.sleep(0.02)
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        looks = looks + 1 if state == "S" else 0
