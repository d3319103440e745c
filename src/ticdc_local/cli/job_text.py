"""What the command line prints of a job: its progress, and how it ended."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

from ticdc_codec.errors import AttentionError, ConfigError, LakehouseError
from ticdc_lakehouse import log
from ticdc_lakehouse.error_text import first_line, reported_cause
from ticdc_local.runner.display import without_controls
from ticdc_local.runner.outcome import FailedChain, JobResult, Progress, TaskEvent

_PLANS = ("=== Streaming Query ===", "== SQL", "== Parsed Logical Plan")
_OF_THE_MACHINE = {
    "No space left on device": "make room there and run it again",
    "Disk quota exceeded": "make room there and run it again",
    "Read-only file system": "mount it so that it can be written",
    "Permission denied": "let the user of this process read and write there",
}
_NOT_WRITTEN = ("Read-only file system", "Permission denied")
"""What another lake helps against, if it is in the lake."""
_ANOTHER_LAKE = "give a lake that can be written: --lake FOLDER"
_MISTAKES = {"ConfigError", *(error.__name__ for error in ConfigError.__subclasses__())}
"""Names of errors that explain themselves, in Spark's report of a Python worker."""


def progress_text(progress: Progress) -> str:
    """Returns one line for one thing that happened."""
    match progress.event:
        case TaskEvent.STARTED:
            return f"{progress.task}: started"
        case TaskEvent.RETRYING:
            return f"{progress.task}: attempt {progress.attempt} failed, trying again: {cause_line(progress.error)}"
        case TaskEvent.FAILED:
            return f"{progress.task}: FAILED after {progress.seconds:.1f} s"
        case TaskEvent.SKIPPED:
            return f"{progress.task}: not run ({progress.state})"
        case TaskEvent.FINISHED:
            return f"{progress.task}: finished in {progress.seconds:.1f} s"


def cause_line(error: BaseException | None) -> str:
    """Returns name and text of what caused an error, on one line."""
    if error is None:
        return ""
    if cause := reported_cause(error):
        return cause
    name, text = type(error).__name__, first_line(error)
    return name if text == name else f"{name}: {text}"


def spark_text(error: BaseException, lake: Path | None = None) -> str:
    """Returns what the machine refused, or what Spark says, on one line. At level debug the log has the traceback.
    ``lake`` as in `machine_cause`."""
    logging.getLogger(f"{log.ROOT}.cli").debug("".join(traceback.format_exception(error)))
    return machine_cause(error, lake) or f"{cause_line(error)} (--log-level debug prints more)"


def result_text(result: JobResult, lake: Path | None = None) -> str:
    """Returns the traceback of each failure that its error does not explain, a list of the failures, and how the job
    ended. ``lake`` as in `machine_cause`."""
    traces = [_trace_text(failure) for failure in result.failures if not _is_explained(failure.error)]
    state = "ran, but a feed needs attention," if result.needs_attention else result.state
    ended = f"job {result.job}: {state} in {result.seconds:.1f} s"
    return "\n".join([*traces, *(failure_text(each, lake) for each in result.failures), ended])


def failure_text(failure: FailedChain, lake: Path | None = None) -> str:
    """Returns a failure on a line or two: the feed, the task, the cause; and what was not run because of it. ``lake``
    as in `machine_cause`."""
    if isinstance(failure.error, AttentionError):
        return without_controls(str(failure.error))
    task, feed = _parts(failure.task)
    own = str(failure.error) if isinstance(failure.error, LakehouseError) else cause_line(failure.error)
    text = f"{f'{feed}: ' if feed else ''}{task} FAILED: {machine_cause(failure.error, lake) or own}"
    not_run = ", ".join(_parts(each)[0] for each in failure.not_run)
    return f"{text}\n  not run because of it: {not_run}" if not_run else text


def _parts(label: str) -> tuple[str, str]:
    """Returns ``bronze[shop]`` as the task and the for-each input."""
    task, _, item = label.partition("[")
    return task, item.removesuffix("]")


def _is_explained(error: BaseException) -> bool:
    return isinstance(error, LakehouseError) or machine_cause(error) is not None


def machine_cause(error: BaseException, lake: Path | None = None) -> str | None:
    """Returns what this machine refused (a full disk, a folder that cannot be written), however deep in Spark's report
    it is; None if that is not why something failed, or if an error of this package says more about it.

    ``lake``: only for what lies in this folder another lake is advised; None: the folder is not known.
    """
    errors = [*_chain(error)]
    if any(map(_explains_itself, errors)):
        return None
    for line in (line for each in errors for line in str(each).splitlines()):
        for cause in _OF_THE_MACHINE:
            if cause in line:
                place = line[: line.index(cause)].rpartition("Exception: ")[2].strip(" :(")
                return f"{f'{place}: ' if place else ''}{cause}; {_advice(cause, line, lake)}"
    return None


def _explains_itself(error: BaseException) -> bool:
    """True for an error of this package, and for Spark's report of a ConfigError that a Python worker raised."""
    return isinstance(error, LakehouseError) or (reported_cause(error) or "").partition(":")[0] in _MISTAKES


def _advice(cause: str, line: str, lake: Path | None) -> str:
    is_of_lake = lake is None or re.search(rf"(?<!\w){re.escape(str(lake))}(?![\w.-])", line) is not None
    return _ANOTHER_LAKE if cause in _NOT_WRITTEN and is_of_lake else _OF_THE_MACHINE[cause]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an error, what Spark names as its cause or it was raised from, and the cause of that."""
    while error is not None:
        yield error
        error = getattr(error, "_cause", None) or error.__cause__


def _trace_text(failure: FailedChain) -> str:
    """Returns a failed task's traceback from the notebook's own frame on, without the JVM's frames."""
    attempts = f"{failure.attempts} attempt{'s' if failure.attempts > 1 else ''}"
    return "\n".join(
        [f"\n{failure.task} failed ({attempts}):", *_without_java(failure.trace.splitlines()), *_causes(failure.error)]
    )


def _without_java(lines: Iterable[str]) -> list[str]:
    """Removes Java's stack and Spark's plans from a message: hundreds of lines that say nothing about the notebook."""
    own = takewhile(lambda line: not line.startswith(_PLANS), lines)
    return [line for line in own if not line.lstrip().startswith(("at ", "... ")) and line.strip()]


def _causes(error: BaseException | None) -> list[str]:
    """Returns what Spark names as the cause of an error, and the cause of that: what an executor's Python raised is
    last."""
    lines = []
    while (error := getattr(error, "_cause", None)) is not None:
        lines += ["caused by:", *_without_java(str(error).splitlines())]
    return lines
