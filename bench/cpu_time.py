"""CPU time of a session's processes, as ``/proc`` has it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

_PROCESSES = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process as ``/proc`` describes it."""

    pid: int
    parent: int
    command: str
    cpu_seconds: float
    """Its own and those of its children that have ended."""


def processes_below(pid: int) -> list[Process]:
    """The process and all its descendants; none where there is no ``/proc``."""
    found = {process.pid: process for process in _processes()}
    below, tree = [found[pid]] if pid in found else [], {pid}
    # Numbers may wrap around, so parents are not always lower.
    while more := [p for p in found.values() if p.parent in tree and p.pid not in tree]:
        below += more
        tree |= {process.pid for process in more}
    return below


def _processes() -> Iterator[Process]:
    for folder in _PROCESSES.glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text()
            command = (folder / "cmdline").read_text().replace("\0", " ").strip()
        except OSError:
            continue  # it ended meanwhile
        fields = text.rpartition(")")[2].split()
        ticks = sum(int(field) for field in fields[11:15])
        seconds = ticks / os.sysconf("SC_CLK_TCK")
        yield Process(pid=int(folder.name), parent=int(fields[1]), command=command, cpu_seconds=seconds)


def java_pid(spark: SparkSession) -> int:
    """The process of the session's JVM."""
    return int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def cpu_seconds(spark: SparkSession) -> float:
    """CPU time that the JVM and its Python workers have taken so far; 0 where there is no ``/proc``."""
    return sum(process.cpu_seconds for process in processes_below(java_pid(spark)))
