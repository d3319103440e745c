"""What a command prints beside its result: notes and progress, on standard error; nothing with ``--quiet``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import TextIO

DELAY_SECONDS = 2.0
"""What takes no longer needs no progress."""


@dataclass(slots=True)
class _Settings:
    quiet: bool = False


_SETTINGS = _Settings()


def configure(*, quiet: bool) -> None:
    """Sets whether notes and progress are wanted."""
    _SETTINGS.quiet = quiet


def note(text: str, file: TextIO | None = None) -> None:
    """Prints a line that is no part of the result, such as the next command."""
    if not _SETTINGS.quiet:
        print(text, file=file or sys.stderr, flush=True)


def can_erase(file: TextIO | None) -> bool:
    """True if it is a terminal on which a line can be erased."""
    return file is not None and file.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Shows on a terminal that can erase a line what is running and for how long, from two seconds on. Nothing is
    printed meanwhile."""
    if _SETTINGS.quiet or not can_erase(sys.stderr):
        yield
        return
    done = Event()
    clock = Thread(target=_show_clock, args=(doing, done), name="progress", daemon=True)
    clock.start()
    try:
        yield
    finally:
        done.set()
        clock.join()


def _show_clock(doing: str, done: Event) -> None:
    began, wait = time.monotonic(), DELAY_SECONDS
    while not done.wait(wait):
        print(f"\r{doing}: {time.monotonic() - began:.0f} s\x1b[K", end="", file=sys.stderr, flush=True)
        wait = 1.0
    if wait != DELAY_SECONDS:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
