"""The script ``ticdc-lake``: answers SIGINT and SIGTERM before its imports, which take up to a second, then runs the
command line. At its top it imports only `signals` of the project."""

from __future__ import annotations

import os
import signal
import sys

from ticdc_local.signals import INTERRUPTED, SIGNALS, say_interrupted


def main() -> int:
    """Runs the command that the process was called with; returns its exit code."""
    for number in SIGNALS:
        signal.signal(number, _end)
    from ticdc_local.cli import main as run

    return run()


def _end(*_: object) -> None:
    say_interrupted("".join(sys.argv[1:2]))
    os._exit(INTERRUPTED)
