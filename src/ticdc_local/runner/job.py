"""Runs a job of the bundle on a laptop, as Databricks would: task by task in one process and one Spark session.

Tasks, for-each iterations and jobs that a task runs come one after the other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ticdc_codec.errors import ConfigError, suggestion
from ticdc_lakehouse.job_parameters import texts_in
from ticdc_local.runner.bundle import Bundle
from ticdc_local.runner.graph import AnyTask, ForEachTask, Job, NotebookTask, RunJobTask, Task, read_job
from ticdc_local.runner.notebook import Surroundings, run_notebook
from ticdc_local.runner.outcome import (
    JobResult,
    JobState,
    OnProgress,
    Progress,
    TaskEvent,
    TaskResult,
    TaskState,
    job_state,
    skip_state,
)
from ticdc_local.runner.reference import INPUT, filled, parameter, result_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def local_parameters(project_root: Path, lake_root: Path, feeds_root: Path | None = None) -> dict[str, str]:
    """Returns the job parameters that a laptop needs other values for than the bundle's."""
    return {
        "catalog": "spark_catalog",
        "bronze_schema": "bronze",
        "silver_schema": "silver",
        "live_schema": "live",
        "gold_schema": "gold",
        "ops_schema": "ops",
        "checkpoint_root": str(lake_root / "checkpoints"),
        "feeds_root": str(feeds_root or project_root / "resources" / "feeds"),
    }


def feed_parameters(*feeds: str) -> dict[str, str]:
    """Returns the job parameter that limits a run to these feeds."""
    return {"feeds": json.dumps(feeds)}


def run_job(
    bundle: Bundle,
    job_key: str,
    parameters: Mapping[str, str],
    session_factory: Callable[[], SparkSession],
    on_progress: OnProgress,
    *,
    retry_wait_seconds: float | None = None,
) -> JobResult:
    """Runs a job; returns how it ended. What a notebook raises is in the result and does not come out of here.

    ``parameters`` go before the job's defaults. ``session_factory`` is called once, by the first notebook that runs,
    and the session is left running. ``retry_wait_seconds`` replaces the tasks' own ``min_retry_interval_millis``. A
    ConfigError is not retried: the same run would meet it again.
    Raises: ConfigError when the bundle or a parameter is wrong, before anything runs; what ``session_factory`` raises.
    """
    job = read_job(bundle, job_key)
    check_job_parameters(job, parameters)
    runner = _Runner(
        bundle=bundle,
        session=cache(session_factory),
        on_progress=on_progress,
        retry_wait_seconds=retry_wait_seconds,
    )
    return _Run(runner=runner, job=job, parameters={**job.parameters, **parameters}).result()


def check_job_parameters(job: Job, parameters: Iterable[str]) -> None:
    """Raises ConfigError for a parameter that the job does not have."""
    for name in parameters:
        if name not in job.parameters:
            raise ConfigError(f"job {job.key}: no parameter {name!r}; {suggestion(name, job.parameters)}")


class _Failure:
    """The one place where what a notebook raises becomes a failed task.

    A notebook may raise anything, and the tasks after it must still get their turn, so all of it ends here: errors,
    and ``exit()``, which on Databricks fails the task too.
    """

    error: BaseException | None = None

    def __enter__(self) -> _Failure:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Exception | SystemExit):
            self.error = error
        return self.error is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runner:
    """What a run's jobs have in common."""

    bundle: Bundle
    session: Callable[[], SparkSession]
    on_progress: OnProgress
    retry_wait_seconds: float | None

    def wait(self, task: AnyTask) -> None:
        """Sleeps until a task's next attempt."""
        own = task.min_retry_interval_millis / 1000
        time.sleep(own if self.retry_wait_seconds is None else self.retry_wait_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run of one job."""

    runner: _Runner
    job: Job
    parameters: Mapping[str, str]
    iteration: str = ""
    """What the labels of its tasks end with: the for-each input in brackets that the job was started for."""
    results: dict[str, TaskResult] = field(default_factory=dict)

    def result(self) -> JobResult:
        """Runs the job's tasks."""
        started = time.monotonic()
        for task in self.job.tasks:
            self.results[task.task_key] = self.task(task)
        return JobResult(
            job=self.job.key,
            state=job_state(self.job, self.results),
            seconds=time.monotonic() - started,
            tasks=tuple(self.results.values()),
        )

    def task(self, task: Task) -> TaskResult:
        """Runs a task, or says why it does not run."""
        label = f"{task.task_key}{self.iteration}"
        state = skip_state(task, self.results)
        if state is not None:
            self.runner.on_progress(Progress(task=label, event=TaskEvent.SKIPPED, state=state))
            return TaskResult(task=label, state=state)
        values = {parameter(name): text for name, text in self.parameters.items()}
        values |= {result_state(key): self.results[key].state.value for key in task.upstream}
        if isinstance(task.work, ForEachTask):
            return self.for_each(task.work, label, values)
        return self.work(task, label, self.iteration, values)

    def for_each(self, work: ForEachTask, label: str, values: Mapping[str, str]) -> TaskResult:
        """Runs the nested task for each input; a failure does not keep the other inputs from running."""
        try:
            inputs = texts_in(filled(work.inputs, values), f"{label}: inputs")
        except ConfigError as error:
            return TaskResult(task=label, state=TaskState.FAILED, error=error)
        iterations = tuple(
            self.work(work.task, f"{label}[{each}]", f"{self.iteration}[{each}]", {**values, INPUT: each})
            for each in inputs
        )
        failed = any(iteration.state.failed for iteration in iterations)
        return _ended(label, failed=failed, iterations=iterations)

    def work(self, task: AnyTask, label: str, iteration: str, values: Mapping[str, str]) -> TaskResult:
        """Runs a task that is no for-each task."""
        match task.work:
            case NotebookTask() as notebook:
                return self.attempts(task, notebook, label, values)
            case RunJobTask(job_id=key, job_parameters=given):
                job = read_job(self.runner.bundle, key)
                own = {name: filled(text, values) for name, text in given.items()}
                run = _Run(runner=self.runner, job=job, parameters={**job.parameters, **own}, iteration=iteration)
                result = run.result()
                return _ended(label, failed=result.state is JobState.FAILED, tasks=result.tasks)
            case _:
                raise AssertionError(task.work)

    def attempts(self, task: AnyTask, work: NotebookTask, label: str, values: Mapping[str, str]) -> TaskResult:
        """Runs a notebook until it succeeds, its retries are used up, or a retry would be of no use."""
        started, number, report = time.monotonic(), 1, self.runner.on_progress
        report(Progress(task=label, event=TaskEvent.STARTED))
        value, error = self.attempt(work, values)
        while error is not None and number <= task.max_retries and not isinstance(error, ConfigError):
            report(Progress(task=label, event=TaskEvent.RETRYING, error=error, attempt=number))
            self.runner.wait(task)
            number += 1
            value, error = self.attempt(work, values)
        event, state = (TaskEvent.FAILED, TaskState.FAILED) if error else (TaskEvent.FINISHED, TaskState.SUCCESS)
        seconds = time.monotonic() - started
        report(Progress(task=label, event=event, state=state, seconds=seconds, error=error, attempt=number))
        return TaskResult(task=label, state=state, seconds=seconds, attempts=number, error=error, value=value)

    def attempt(self, work: NotebookTask, values: Mapping[str, str]) -> tuple[str | None, BaseException | None]:
        """Runs a notebook once: returns its exit value, and what it raised. Job parameters go before base parameters of
        the same name, as on Databricks."""
        session = self.runner.session()  # outside what becomes the task's failure: without a session no task can run
        own = {name: filled(text, values) for name, text in work.base_parameters.items()}
        value = None
        with _Failure() as failure:
            value = run_notebook(Path(work.notebook_path), {**own, **self.parameters}, Surroundings(spark=session))
        return value, failure.error


def _ended(
    label: str, *, failed: bool, iterations: tuple[TaskResult, ...] = (), tasks: tuple[TaskResult, ...] = ()
) -> TaskResult:
    """Returns the result of a task that consists of other tasks or iterations."""
    state = TaskState.FAILED if failed else TaskState.SUCCESS
    seconds = sum(part.seconds for part in (*iterations, *tasks))
    return TaskResult(task=label, state=state, seconds=seconds, attempts=1, iterations=iterations, tasks=tasks)
