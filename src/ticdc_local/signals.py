"""The signals that end a command, the exit code and the line of a command that they end. Imports only the standard
library: `script` needs it before everything else."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

INTERRUPTED = 130
"""As shells have it: ended by SIGINT."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
_UNTIL_A_SIGNAL = ("kafka",)
"""Commands that run until SIGINT or SIGTERM: nothing is left to repeat."""


def say_interrupted(command: str, program: str = "ticdc-lake") -> None:
    """Prints the one line of a command that a signal ends; below the ``^C`` that a terminal shows."""
    ended = "ended" if command in _UNTIL_A_SIGNAL else "interrupted; run it again"
    line = f"{' '.join((program, command)).rstrip()}: {ended}\n".encode()
    with suppress(OSError):
        os.write(2, (b"\n" if os.isatty(2) else b"") + line)
