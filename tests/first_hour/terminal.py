"""Commands as a person types them: each in a process of its own."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ticdc_local.cli.demo import FEEDS

PROJECT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-u", "-c", "import sys; from ticdc_local.cli import main; sys.exit(main())")
OWN_MOUNTS = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
"""Runs a shell that may mount what no other process sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that ended."""

    code: int
    out: str
    err: str
    seconds: float
    cpu_seconds: float
    """Its own time, whatever else keeps the cores busy."""

    @property
    def last_line(self) -> str:
        """Of the result; empty if it has none."""
        return (self.out.splitlines() or [""])[-1]


def clone(folder: Path) -> Path:
    """A checkout without a lake and without feeds of its own, as somebody has it after ``git clone``."""
    for name in ("databricks.yml", "Makefile", "README.md"):
        shutil.copy(PROJECT / name, folder)
    for name in ("resources", "notebooks", "compute"):
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, folder / name, ignore=_own_feeds)
    return folder


def _own_feeds(folder: str, names: list[str]) -> set[str]:
    """What the project has in a folder of its own feeds: their files, or the template's list of them."""
    if Path(folder).name != "feeds":
        return {"feeds.targets.yml"}
    return {name for name in names if name.endswith(".yml") and name.removesuffix(".yml") not in FEEDS}


def type_in(folder: Path, line: str, environment: Mapping[str, str] | None = None, mount: str = "") -> Ended:
    """Run a line ``ticdc-lake …`` in a folder; ``mount`` is a command that mounts something for this process alone."""
    command = [*COMMAND, *shlex.split(line)[1:]]
    return end_of([*OWN_MOUNTS, f'{mount} && exec "$@"', "sh", *command] if mount else command, folder, environment)


def make(folder: Path, line: str) -> Ended:
    """Run a line ``make …`` in a checkout, with the virtual environment of these tests in place of one of its own."""
    return end_of(["make", f"BIN={Path(sys.executable).parent}", "-o", ".venv/ready", *shlex.split(line)[1:]], folder)


def end_of(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Ended:
    """Run a command to its end."""
    began, used = time.monotonic(), cpu_seconds_of_children()
    done = subprocess.run(
        command,
        cwd=folder,
        env={**_own_environment(), **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(
        code=done.returncode,
        out=done.stdout,
        err=done.stderr,
        seconds=time.monotonic() - began,
        cpu_seconds=cpu_seconds_of_children() - used,
    )


def _own_environment() -> dict[str, str]:
    """The environment of these tests, without what `make test-long` leaves for a make below it: its arguments."""
    of_make = {"ARGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    return {name: value for name, value in os.environ.items() if name not in of_make}


def cpu_seconds_of_children() -> float:
    """Time that the processes which this one started and waited for have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def kept_up(folder: Path, line: str) -> Iterator[str]:
    """Within it a command that does not end by itself runs; gives its first line."""
    with subprocess.Popen(
        [*COMMAND, *shlex.split(line)[1:]], cwd=folder, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline()
        finally:
            process.terminate()
            process.wait(30)
