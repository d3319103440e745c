"""How tasks and runs end, and what that means for the tasks after them.

Source: https://docs.databricks.com/jobs/run-if and https://docs.databricks.com/jobs/disabled-tasks
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ticdc_local.graph import Job, RunIf, Task


class TaskState(StrEnum):
    """How a task ended, in the words of ``{{tasks.<key>.result_state}}``."""

    SUCCESS = "success"
    FAILED = "failed"
    UPSTREAM_FAILED = "upstream_failed"
    """Not started: what it depends on did not end as ``run_if`` asks."""
    EXCLUDED = "excluded"
    """Not started, and that is well: nothing failed, or a condition went the other way."""
    DISABLED = "disabled"

    @property
    def failed(self) -> bool:
        """Whether a task after it sees a failure."""
        return self in (TaskState.FAILED, TaskState.UPSTREAM_FAILED)


class JobState(StrEnum):
    """How a run ended: by its leaf tasks, those that no task depends on."""

    SUCCESS = "success"
    SUCCESS_WITH_FAILURES = "success_with_failures"
    FAILED = "failed"


class Event(StrEnum):
    """What progress reports."""

    STARTED = "started"
    RETRYING = "retrying"
    FINISHED = "finished"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One thing that happened to one task."""

    task: str
    """The task's key; an iteration is called ``<for-each task>[<input>]``."""
    event: Event
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
    """A notebook's exit value, or a condition's ``true`` or ``false``."""
    iterations: tuple[TaskResult, ...] = ()

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
class JobResult:
    """How a run of a job ended."""

    job: str
    run_id: str
    state: JobState
    seconds: float
    tasks: tuple[TaskResult, ...]

    @property
    def failures(self) -> tuple[TaskResult, ...]:
        """The tasks and iterations that raised something."""
        flat = (part for task in self.tasks for part in (task, *task.iterations))
        return tuple(part for part in flat if part.error is not None)


def job_state(job: Job, results: Mapping[str, TaskResult]) -> JobState:
    """How a run ended whose tasks ended so."""
    inner = {dependency.task_key for task in job.tasks for dependency in task.depends_on}
    if any(result.state.failed for key, result in results.items() if key not in inner):
        return JobState.FAILED
    failed = any(result.state.failed for result in results.values())
    return JobState.SUCCESS_WITH_FAILURES if failed else JobState.SUCCESS


def skip_state(task: Task, results: Mapping[str, TaskResult]) -> TaskState | None:
    """Why a task does not run, None when it does, given how the tasks before it ended."""
    if task.disabled:
        return TaskState.DISABLED
    before = [results[dependency.task_key] for dependency in task.depends_on]
    if not before:
        return None
    unmet = any(
        d.outcome is not None and d.outcome != result.value for d, result in zip(task.depends_on, before, strict=True)
    )
    states = [result.state for result in before]
    if unmet and not any(state.failed for state in states):
        return TaskState.EXCLUDED
    if all(state is TaskState.EXCLUDED for state in states):
        return TaskState.EXCLUDED
    return None if not unmet and _runs(task.run_if, states) else _not_run(task.run_if, states)


def _runs(run_if: RunIf, states: list[TaskState]) -> bool:
    """Excluded tasks count as successful; disabled ones neither as successful nor as failed."""
    failed = [state.failed for state in states]
    succeeded = [state in (TaskState.SUCCESS, TaskState.EXCLUDED) for state in states]
    match run_if:
        case RunIf.ALL_SUCCESS:
            return all(succeeded)
        case RunIf.AT_LEAST_ONE_SUCCESS:
            return any(succeeded)
        case RunIf.NONE_FAILED:
            return any(succeeded) and not any(failed)
        case RunIf.ALL_DONE:
            return True
        case RunIf.AT_LEAST_ONE_FAILED:
            return any(failed)
        case RunIf.ALL_FAILED:
            return all(failed)


def _not_run(run_if: RunIf, states: list[TaskState]) -> TaskState:
    if run_if in (RunIf.AT_LEAST_ONE_FAILED, RunIf.ALL_FAILED):
        return TaskState.EXCLUDED
    return TaskState.UPSTREAM_FAILED if any(state.failed for state in states) else TaskState.DISABLED
