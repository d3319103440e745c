"""Python programs on a terminal of 24 lines and 80 columns."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress


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
