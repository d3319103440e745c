"""The script ``ticdc-lake``: answers SIGINT and SIGTERM before its imports, which take up to a second, then runs the
command line. Imports nothing of the project itself."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

INTERRUPTED = 130
"""As shells have it: ended by SIGINT."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
_UNTIL_A_SIGNAL = ("kafka",)
"""Commands that run until SIGINT or SIGTERM: nothing is left to repeat."""


def main() -> int:
    """Runs the command that the process was called with; returns its exit code."""
    for number in SIGNALS:
        signal.signal(number, _end)
    from ticdc_local.cli import main as run

    return run()


def say_interrupted(command: str, program: str = "ticdc-lake") -> None:
    """Prints the one line of a command that a signal ends; below the ``^C`` that a terminal shows."""
    ended = "ended" if command in _UNTIL_A_SIGNAL else "interrupted; run it again"
    line = f"{' '.join((program, command)).rstrip()}: {ended}\n".encode()
    with suppress(OSError):
        os.write(2, (b"\n" if os.isatty(2) else b"") + line)


def _end(*_: object) -> None:
    say_interrupted("".join(sys.argv[1:2]))
    os._exit(INTERRUPTED)
