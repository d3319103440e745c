"""How tasks and runs end, and what that means for the tasks after them.

Source: https://docs.databricks.com/jobs/run-if
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ticdc_codec.errors import AttentionError
from ticdc_local.runner.graph import Job, RunIf, Task


class TaskState(StrEnum):
    """How a task ended, in the words of ``{{tasks.<key>.result_state}}``."""

    SUCCESS = "success"
    FAILED = "failed"
    UPSTREAM_FAILED = "upstream_failed"
    """Not started: a task that it depends on failed."""
    EXCLUDED = "excluded"
    """Not started, and that is well: nothing failed."""

    @property
    def failed(self) -> bool:
        """True if a task after it sees a failure."""
        return self in (TaskState.FAILED, TaskState.UPSTREAM_FAILED)


class JobState(StrEnum):
    """How a run ended: by its leaf tasks, those that no task depends on."""

    SUCCESS = "success"
    SUCCESS_WITH_FAILURES = "success_with_failures"
    FAILED = "failed"


class TaskEvent(StrEnum):
    """What progress reports."""

    STARTED = "started"
    RETRYING = "retrying"
    FINISHED = "finished"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One thing that happened to one task that runs a notebook."""

    task: str
    """The task's key, for an iteration with its input: ``bronze[shop]``."""
    event: TaskEvent
    state: TaskState | None = None
    """None while it runs."""
    seconds: float = 0.0
    error: BaseException | None = None
    attempt: int = 1


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """How one task ended."""

    task: str
    state: TaskState
    seconds: float = 0.0
    attempts: int = 0
    error: BaseException | None = None
    """What the last attempt raised."""
    value: str | None = None
    """A notebook's exit value."""
    iterations: tuple[TaskResult, ...] = ()
    """The iterations of a for-each task."""
    tasks: tuple[TaskResult, ...] = ()
    """The tasks of the job that the task ran."""

    @property
    def trace(self) -> str:
        """The error with its traceback, from the notebook's own frame on; empty where nothing was raised."""
        if self.error is None:
            return ""
        frames = self.error.__traceback__
        while frames is not None and Path(frames.tb_frame.f_code.co_filename).parent == Path(__file__).parent:
            frames = frames.tb_next
        return "".join(traceback.format_exception(type(self.error), self.error, frames))


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedChain:
    """The first failure of a chain of tasks, and what was not run because of it."""

    task: str
    attempts: int
    error: BaseException
    trace: str
    not_run: tuple[str, ...]


def failures(tasks: tuple[TaskResult, ...]) -> Iterator[FailedChain]:
    """Yields each chain's first failure: of these tasks, of each iteration, of each job that one of them ran.

    What failed after it, such as an alarm, failed because of it.
    """
    first = next((task for task in tasks if task.error is not None), None)
    if first is not None and first.error is not None:
        not_run = tuple(task.task for task in tasks if task.state is TaskState.UPSTREAM_FAILED)
        yield FailedChain(
            task=first.task, attempts=first.attempts, error=first.error, trace=first.trace, not_run=not_run
        )
    for task in tasks:
        for iteration in task.iterations:
            yield from failures((iteration,))
        yield from failures(task.tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """How a run of a job ended."""

    job: str
    state: JobState
    seconds: float
    tasks: tuple[TaskResult, ...]

    @property
    def failures(self) -> tuple[FailedChain, ...]:
        """The first failure of each chain of tasks."""
        return tuple(failures(self.tasks))

    @property
    def needs_attention(self) -> bool:
        """True if all layers did their work, and the run failed because a feed passes a threshold of its alarm."""
        return bool(self.failures) and all(isinstance(each.error, AttentionError) for each in self.failures)


def job_state(job: Job, results: Mapping[str, TaskResult]) -> JobState:
    """Returns how a run ended whose tasks ended so."""
    inner = frozenset[str]().union(*(task.upstream for task in job.tasks))
    if any(result.state.failed for key, result in results.items() if key not in inner):
        return JobState.FAILED
    failed = any(result.state.failed for result in results.values())
    return JobState.SUCCESS_WITH_FAILURES if failed else JobState.SUCCESS


def skip_state(task: Task, results: Mapping[str, TaskResult]) -> TaskState | None:
    """Returns why a task does not run, None when it does, from how the tasks before it ended."""
    states = [results[key].state for key in task.upstream]
    failed = any(state.failed for state in states)
    if states and all(state is TaskState.EXCLUDED for state in states):
        return TaskState.EXCLUDED
    match task.run_if:
        case RunIf.ALL_SUCCESS:
            return TaskState.UPSTREAM_FAILED if failed else None
        case RunIf.ALL_DONE:
            return None
        case RunIf.AT_LEAST_ONE_FAILED:
            return None if failed else TaskState.EXCLUDED
