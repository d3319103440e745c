"""A job as values: its parameters and its tasks in an order in which they can run. Everything about it is checked here.

A key of the YAML is honoured, or matters on the platform only (clusters, notifications, schedules), or is an error.
Source: https://docs.databricks.com/api/workspace/jobs/create
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from ticdc_codec.errors import ConfigError
from ticdc_local.bundle import Bundle, Resource
from ticdc_local.field import Fields
from ticdc_local.notebook import read_notebook
from ticdc_local.reference import DYNAMIC, JOB_FACTS, TASK_FACTS, Scope, names_in

_PLATFORM_JOB_KEYS = {
    "budget_policy_id",
    "continuous",
    "description",
    "email_notifications",
    "environments",
    "health",
    "job_clusters",
    "max_concurrent_runs",
    "notification_settings",
    "performance_target",
    "permissions",
    "queue",
    "run_as",
    "schedule",
    "tags",
    "trigger",
    "webhook_notifications",
}
_JOB_KEYS = {"name", "parameters", "tasks", "timeout_seconds", *_PLATFORM_JOB_KEYS}
_PLATFORM_TASK_KEYS = {
    "description",
    "disable_auto_optimization",
    "email_notifications",
    "environment_key",
    "existing_cluster_id",
    "health",
    "job_cluster_key",
    "libraries",
    "new_cluster",
    "notification_settings",
    "webhook_notifications",
}
_TASK_KEYS = {
    "task_key",
    "depends_on",
    "run_if",
    "disabled",
    "max_retries",
    "min_retry_interval_millis",
    "retry_on_timeout",
    "timeout_seconds",
    *_PLATFORM_TASK_KEYS,
}
_WORK_KEYS = ("notebook_task", "condition_task", "for_each_task")


class RunIf(StrEnum):
    """When a task starts, given how those it depends on ended."""

    ALL_SUCCESS = "ALL_SUCCESS"
    AT_LEAST_ONE_SUCCESS = "AT_LEAST_ONE_SUCCESS"
    NONE_FAILED = "NONE_FAILED"
    ALL_DONE = "ALL_DONE"
    AT_LEAST_ONE_FAILED = "AT_LEAST_ONE_FAILED"
    ALL_FAILED = "ALL_FAILED"


class Operator(StrEnum):
    """How a condition task compares: the first two as texts, the others as numbers."""

    EQUAL_TO = "EQUAL_TO"
    NOT_EQUAL = "NOT_EQUAL"
    GREATER_THAN = "GREATER_THAN"
    GREATER_THAN_OR_EQUAL = "GREATER_THAN_OR_EQUAL"
    LESS_THAN = "LESS_THAN"
    LESS_THAN_OR_EQUAL = "LESS_THAN_OR_EQUAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookTask:
    """Run a notebook."""

    path: Path
    parameters: Mapping[str, str]
    """``base_parameters``; a job parameter of the same name goes before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionTask:
    """Compare two texts; the outcome is ``true`` or ``false``."""

    operator: Operator
    left: str
    right: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForEachTask:
    """Run a task once for each member of a JSON list, one after the other, whatever ``concurrency`` says."""

    inputs: str
    task: Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A task that must be done first."""

    task_key: str
    outcome: str | None
    """What the condition task must have given; None where it may be any task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of a job."""

    key: str
    where: str
    """File and key, for messages."""
    work: NotebookTask | ConditionTask | ForEachTask
    depends_on: tuple[Dependency, ...]
    run_if: RunIf
    disabled: bool
    max_retries: int
    min_retry_interval_millis: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job whose definition holds together."""

    key: str
    name: str
    parameters: Mapping[str, str]
    """Defaults; may hold ``{{job.…}}``."""
    tasks: tuple[Task, ...]
    """Every task after those it depends on, otherwise as in the YAML."""


def read_job(bundle: Bundle, key: str) -> Job:
    """The bundle's job ``key``. Raises: ConfigError naming file and key of what is wrong or not supported."""
    resource = bundle.resource("jobs", key)
    where = f"{resource.file.relative_to(bundle.root)}: resources.jobs.{key}"
    job = Fields(values=resource.definition, where=where)
    job.only(_JOB_KEYS)
    _no_time_limit(job)
    tasks = _in_order(tuple(_task(fields, resource) for fields in job.items("tasks")), where)
    read = Job(key=key, name=job.text("name", key), parameters=_parameters(job), tasks=tasks)
    _check_references(read, where)
    return read


def _parameters(job: Fields) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for fields in job.items("parameters"):
        fields.only({"name", "default"})
        name = fields.text("name")
        if name in parameters:
            raise ConfigError(f"{fields.where}: parameter {name!r} stands twice")
        parameters[name] = fields.text("default")
    return parameters


def _task(fields: Fields, resource: Resource, *, nested: bool = False) -> Task:
    kinds = [key for key in fields.values if key.endswith("_task")]
    if len(kinds) != 1 or kinds[0] not in _WORK_KEYS[: 2 if nested else 3]:
        wanted = ", ".join(_WORK_KEYS[: 2 if nested else 3])
        raise ConfigError(f"{fields.where}: expected one of {wanted}, found {', '.join(kinds) or 'none'}")
    fields.only(_TASK_KEYS | set(kinds))
    _no_time_limit(fields)
    if nested and ("depends_on" in fields.values or "run_if" in fields.values):
        raise ConfigError(f"{fields.where}: depends_on and run_if belong to the for-each task")
    return Task(
        key=fields.text("task_key"),
        where=fields.where,
        work=_work(kinds[0], fields.inner(kinds[0]), resource),
        depends_on=tuple(_dependency(item) for item in fields.items("depends_on")),
        run_if=fields.word("run_if", RunIf, RunIf.ALL_SUCCESS),
        disabled=fields.boolean("disabled"),
        max_retries=fields.integer("max_retries"),
        min_retry_interval_millis=fields.integer("min_retry_interval_millis"),
    )


def _no_time_limit(fields: Fields) -> None:
    """A notebook waiting for the JVM cannot be interrupted: the connection would be out of step for all that follow."""
    if fields.integer("timeout_seconds") != 0:
        raise ConfigError(f"{fields.where}.timeout_seconds: the local runner keeps no time limit; expected 0")


def _work(kind: str, fields: Fields, resource: Resource) -> NotebookTask | ConditionTask | ForEachTask:
    match kind:
        case "notebook_task":
            return _notebook_task(fields, resource)
        case "condition_task":
            fields.only({"op", "left", "right"})
            operator = fields.word("op", Operator)
            return ConditionTask(operator=operator, left=fields.text("left"), right=fields.text("right"))
        case _:
            fields.only({"inputs", "concurrency", "task"})
            fields.integer("concurrency", 1)
            task = _task(fields.inner("task"), resource, nested=True)
            return ForEachTask(inputs=fields.text("inputs"), task=task)


def _notebook_task(fields: Fields, resource: Resource) -> NotebookTask:
    fields.only({"notebook_path", "base_parameters", "source"})
    if fields.text("source", "WORKSPACE") != "WORKSPACE":
        raise ConfigError(f"{fields.where}.source: locally notebooks come from the project's folder (WORKSPACE)")
    path = (resource.file.parent / fields.text("notebook_path")).resolve()
    try:
        read_notebook(path)
    except ConfigError as error:
        raise ConfigError(f"{fields.where}.notebook_path: {error}") from error
    parameters = fields.inner("base_parameters")
    return NotebookTask(path=path, parameters={name: parameters.text(name) for name in parameters.values})


def _dependency(fields: Fields) -> Dependency:
    fields.only({"task_key", "outcome"})
    outcome = fields.text("outcome") if "outcome" in fields.values else None
    if outcome not in (None, "true", "false"):
        raise ConfigError(f'{fields.where}.outcome: expected "true" or "false", found {outcome!r}')
    return Dependency(task_key=fields.text("task_key"), outcome=outcome)


def _in_order(tasks: tuple[Task, ...], where: str) -> tuple[Task, ...]:
    by_key = {task.key: task for task in tasks}
    if not tasks:
        raise ConfigError(f"{where}.tasks: expected one task or more")
    if len(by_key) < len(tasks):
        raise ConfigError(f"{where}.tasks: a task_key stands twice among {', '.join(task.key for task in tasks)}")
    for task in tasks:
        _check_dependencies(task, by_key)
    ordered: dict[str, Task] = {}
    while len(ordered) < len(tasks):
        ready = [t for t in tasks if t.key not in ordered and all(d.task_key in ordered for d in t.depends_on)]
        if not ready:
            circle = ", ".join(task.key for task in tasks if task.key not in ordered)
            raise ConfigError(f"{where}.tasks: depends_on goes in a circle among {circle}")
        ordered[ready[0].key] = ready[0]
    return tuple(ordered.values())


def _check_dependencies(task: Task, by_key: Mapping[str, Task]) -> None:
    for dependency in task.depends_on:
        before = by_key.get(dependency.task_key)
        if before is None:
            raise ConfigError(
                f"{task.where}.depends_on: no task {dependency.task_key!r}; there are: {', '.join(by_key)}"
            )
        if dependency.outcome is not None and not isinstance(before.work, ConditionTask):
            raise ConfigError(f"{task.where}.depends_on: {before.key!r} is no condition task and has no outcome")


def _check_references(job: Job, where: str) -> None:
    start = Scope(facts=JOB_FACTS, upstream=frozenset())
    for name, default in job.parameters.items():
        _check_texts(start, (default,), f"{where}.parameters.{name}")
    facts = JOB_FACTS | TASK_FACTS | {f"job.parameters.{name}" for name in job.parameters}
    upstream: dict[str, frozenset[str]] = {}
    for task in job.tasks:
        direct = frozenset(dependency.task_key for dependency in task.depends_on)
        upstream[task.key] = direct.union(*(upstream[key] for key in direct))
        _check_task(Scope(facts=facts, upstream=upstream[task.key]), task)


def _check_task(scope: Scope, task: Task) -> None:
    match task.work:
        case NotebookTask(parameters=parameters):
            _check_texts(scope, parameters.values(), task.where)
        case ConditionTask(left=left, right=right):
            _check_texts(scope, (left, right), task.where)
        case ForEachTask(inputs=inputs, task=nested):
            _check_texts(scope, (inputs,), task.where)
            _check_task(replace(scope, loop=True), nested)


def _check_texts(scope: Scope, texts: Any, where: str) -> None:
    for name in names_in(list(texts), DYNAMIC):
        scope.check(name, where)
