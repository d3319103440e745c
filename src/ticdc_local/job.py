"""Runs a job of the bundle on a laptop, as Databricks would: task by task in one process and one Spark session.

Tasks and for-each iterations run one after the other.
"""

from __future__ import annotations

import json
import operator
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ticdc_codec.errors import ConfigError
from ticdc_local.bundle import Bundle
from ticdc_local.graph import ConditionTask, ForEachTask, Job, NotebookTask, Operator, Task, read_job
from ticdc_local.notebook import Surroundings, run_notebook
from ticdc_local.outcome import Event, JobResult, OnProgress, Progress, TaskResult, TaskState, job_state, skip_state
from ticdc_local.reference import DYNAMIC, Values, as_text, substitute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMPARE: Mapping[Operator, Callable[[float, float], bool]] = {
    Operator.GREATER_THAN: operator.gt,
    Operator.GREATER_THAN_OR_EQUAL: operator.ge,
    Operator.LESS_THAN: operator.lt,
    Operator.LESS_THAN_OR_EQUAL: operator.le,
}


def local_parameters(project_root: Path, lake_root: Path, feeds_root: Path | None = None) -> dict[str, str]:
    """The job parameters that a laptop needs other values for than the bundle's."""
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
    """The job parameter that limits a run to these feeds."""
    return {"feeds": json.dumps(feeds)}


def run_job(
    bundle: Bundle,
    job_key: str,
    parameters: Mapping[str, str],
    session_factory: Callable[[], SparkSession],
    on_progress: OnProgress,
    *,
    files_root: Path | None = None,
    retry_wait_seconds: float | None = None,
) -> JobResult:
    """Run a job; gives how it ended. What a notebook raises is in the result and does not come out of here.

    ``parameters`` go before the job's defaults. ``session_factory`` is called once, by the first notebook that runs,
    and the session is left running. ``files_root`` is the folder that ``dbutils.fs`` works in, by default ``.lake`` in
    the project. ``retry_wait_seconds`` replaces the tasks' own ``min_retry_interval_millis``.
    Raises: ConfigError when the bundle or a parameter is wrong, before anything runs; what ``session_factory`` raises.
    """
    job = read_job(bundle, job_key)
    facts = _job_facts(job)
    parameters = _parameters(job, parameters, facts)
    run = _Run(
        facts={**facts, **{f"job.parameters.{name}": text for name, text in parameters.items()}},
        parameters=parameters,
        session=cache(session_factory),
        on_progress=on_progress,
        files_root=files_root or bundle.root / ".lake",
        retry_wait_seconds=retry_wait_seconds,
    )
    started = time.monotonic()
    for task in job.tasks:
        run.results[task.key] = run.task(task)
    return JobResult(
        job=job.key,
        run_id=facts["job.run_id"],
        state=job_state(job, run.results),
        seconds=time.monotonic() - started,
        tasks=tuple(run.results.values()),
    )


def _job_facts(job: Job) -> dict[str, str]:
    now = datetime.now(UTC)
    milliseconds = str(int(now.timestamp() * 1000))
    return {
        "job.id": job.key,
        "job.name": job.name,
        "job.run_id": milliseconds,
        "job.repair_count": "0",
        "job.start_time.iso_date": now.date().isoformat(),
        "job.start_time.iso_datetime": now.isoformat(timespec="seconds"),
        "job.start_time.timestamp_ms": milliseconds,
        "job.trigger.type": "one_time",
    }


def _parameters(job: Job, given: Mapping[str, str], facts: Mapping[str, str]) -> dict[str, str]:
    for name in given:
        if name not in job.parameters:
            raise ConfigError(f"job {job.key}: no parameter {name!r}; it has {', '.join(job.parameters) or 'none'}")
    defaults = {
        name: substitute(text, DYNAMIC, lambda fact, _: facts[fact], f"parameters.{name}")
        for name, text in job.parameters.items()
    }
    return {**defaults, **given}


class _Failure:
    """The one place where what a notebook raises becomes a failed task.

    A notebook may raise anything, and the tasks after it must still get their turn, so all of it ends here: errors,
    and ``exit()``, which on Databricks fails the task too. Ctrl-C passes.
    """

    error: BaseException | None = None

    def __enter__(self) -> _Failure:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Exception | SystemExit):
            self.error = error
        return self.error is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    value: str | None = None
    iterations: tuple[TaskResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run of one job."""

    facts: Mapping[str, str]
    parameters: Mapping[str, str]
    session: Callable[[], SparkSession]
    on_progress: OnProgress
    files_root: Path
    retry_wait_seconds: float | None
    results: dict[str, TaskResult] = field(default_factory=dict)
    task_values: dict[tuple[str, str], Any] = field(default_factory=dict)

    def task(self, task: Task) -> TaskResult:
        """Run a task, or say why it does not run."""
        state = skip_state(task, self.results)
        if state is None:
            return self.attempts(task, task.key)
        self.on_progress(Progress(task=task.key, event=Event.SKIPPED, state=state))
        return TaskResult(task=task.key, state=state)

    def attempts(self, task: Task, label: str, item: Any = None) -> TaskResult:
        """Run a task until it succeeds or its retries are used up."""
        started, attempt = time.monotonic(), 1
        self.on_progress(Progress(task=label, event=Event.STARTED))
        result = self.attempt(task, label, attempt, item)
        while result.state.failed and result.attempts <= task.max_retries:
            self.on_progress(Progress(task=label, event=Event.RETRYING, error=result.error, attempt=attempt))
            time.sleep(self.retry_wait(task))
            attempt += 1
            result = self.attempt(task, label, attempt, item)
        event = Event.FAILED if result.state.failed else Event.FINISHED
        seconds = time.monotonic() - started
        self.on_progress(
            Progress(
                task=label,
                event=event,
                state=result.state,
                seconds=seconds,
                error=result.error,
                attempt=attempt,
            )
        )
        return result

    def retry_wait(self, task: Task) -> float:
        """Seconds."""
        return task.min_retry_interval_millis / 1000 if self.retry_wait_seconds is None else self.retry_wait_seconds

    def attempt(self, task: Task, label: str, attempt: int, item: Any) -> TaskResult:
        """Run a task once."""
        started, outcome = time.monotonic(), _Outcome()
        if isinstance(task.work, NotebookTask):
            self.session()  # outside what becomes the task's failure: without a session no task can run
        with _Failure() as failure:
            outcome = self.work(task, attempt, item)
        return TaskResult(
            task=label,
            state=_state(failure.error, outcome),
            seconds=time.monotonic() - started,
            attempts=attempt,
            error=failure.error,
            value=outcome.value,
            iterations=outcome.iterations,
        )

    def work(self, task: Task, attempt: int, item: Any) -> _Outcome:
        """Do what the task is for. Raises: whatever goes wrong."""
        values = self.values(task, attempt, item)
        match task.work:
            case NotebookTask():
                return _Outcome(value=self.notebook(task, task.work, values))
            case ConditionTask(operator=compare, left=left, right=right):
                holds = condition(compare, values.text(left, task.where), values.text(right, task.where))
                return _Outcome(value="true" if holds else "false")
            case ForEachTask(inputs=inputs, task=nested):
                items = _inputs(values.text(inputs, task.where), task.where)
                return _Outcome(iterations=tuple(self.iteration(task.key, nested, each) for each in items))

    def iteration(self, key: str, nested: Task, item: Any) -> TaskResult:
        """Run the nested task for one input; a failure does not keep the other inputs from running."""
        label = f"{key}[{as_text(item)}]"
        if nested.disabled:
            return TaskResult(task=label, state=TaskState.DISABLED)
        return self.attempts(nested, label, item)

    def notebook(self, task: Task, work: NotebookTask, values: Values) -> str | None:
        """Run a notebook. Job parameters go before base parameters of the same name, as on Databricks."""
        own = {name: values.text(text, f"{task.where}.{name}") for name, text in work.parameters.items()}
        surroundings = Surroundings(
            spark=self.session(), files_root=self.files_root, task_key=task.key, task_values=self.task_values
        )
        return run_notebook(work.path, {**own, **self.parameters}, surroundings)

    def values(self, task: Task, attempt: int, item: Any) -> Values:
        """What the task's references stand for."""
        own = {
            "task.name": task.key,
            "task.run_id": f"{self.facts['job.run_id']}-{task.key}",
            "task.execution_count": str(attempt),
        }
        states = {key: result.state.value for key, result in self.results.items()}
        return Values(facts={**self.facts, **own}, task_values=self.task_values, states=states, item=item)


def _state(error: BaseException | None, outcome: _Outcome) -> TaskState:
    failed = error is not None or any(iteration.state.failed for iteration in outcome.iterations)
    return TaskState.FAILED if failed else TaskState.SUCCESS


def condition(compare: Operator, left: str, right: str) -> bool:
    """Whether a condition holds. Raises: ConfigError when an operator of numbers is given something else."""
    match compare:
        case Operator.EQUAL_TO:
            return left == right
        case Operator.NOT_EQUAL:
            return left != right
    try:
        return _COMPARE[compare](float(left), float(right))
    except ValueError as error:
        raise ConfigError(f"condition {compare}: expected two numbers, found {left!r} and {right!r}") from error


def _inputs(text: str, where: str) -> list[Any]:
    try:
        items = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}.for_each_task.inputs: expected a JSON list, found {text!r}: {error}") from error
    if not isinstance(items, list):
        raise ConfigError(f"{where}.for_each_task.inputs: expected a JSON list, found {text!r}")
    return items
