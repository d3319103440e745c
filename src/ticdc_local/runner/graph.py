"""A job as values: its parameters and its tasks in an order in which they can run. Everything about it is checked here.

A key of the YAML is honoured, or matters on the platform only (clusters, notifications, schedules, timeouts), or is an
error.
Source: https://docs.databricks.com/api/workspace/jobs/create
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeAlias, TypeVar

from msgspec import Meta, field
from msgspec.structs import replace

from ticdc_codec.errors import ConfigError
from ticdc_local.runner.bundle import Bundle, Resource
from ticdc_local.runner.notebook import read_notebook
from ticdc_local.runner.reference import INPUT, check_references, parameter, result_state
from ticdc_local.runner.yaml_file import Definition, read_as

_Work = TypeVar("_Work")
_Count = Annotated[int, Meta(ge=0)]


class RunIf(StrEnum):
    """When a task starts, given how those it depends on ended."""

    ALL_SUCCESS = "ALL_SUCCESS"
    ALL_DONE = "ALL_DONE"
    AT_LEAST_ONE_FAILED = "AT_LEAST_ONE_FAILED"


class NotebookTask(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs a notebook."""

    notebook_path: str
    """From the folder of the YAML file; absolute in a `Job`."""
    base_parameters: dict[str, str] = field(default_factory=dict)
    """A job parameter of the same name goes before."""


class RunJobTask(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs another job of the bundle."""

    job_id: str
    """Its key: ``${resources.jobs.KEY.id}``."""
    job_parameters: dict[str, str] = field(default_factory=dict)


class ForEachTask(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs a task once for each text of a JSON list, one after the other, whatever ``concurrency`` says."""

    inputs: str
    task: NestedTask
    concurrency: _Count = 1


class _Attempts(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task_key: str
    max_retries: _Count = 0
    min_retry_interval_millis: _Count = 0
    notebook_task: NotebookTask | None = None
    run_job_task: RunJobTask | None = None
    environment_key: Any = None
    disable_auto_optimization: Any = None
    job_cluster_key: Any = None
    libraries: Any = None
    timeout_seconds: Any = None


class NestedTask(_Attempts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The task of a for-each task."""

    @property
    def work(self) -> NotebookTask | RunJobTask:
        """The one kind of task that it is. Raises ConfigError for none or several."""
        return _one(self.task_key, [work for work in (self.notebook_task, self.run_job_task) if work])


class Dependency(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task that must have ended first."""

    task_key: str


class Task(_Attempts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task of a job."""

    depends_on: tuple[Dependency, ...] = ()
    run_if: RunIf = RunIf.ALL_SUCCESS
    for_each_task: ForEachTask | None = None

    @property
    def work(self) -> NotebookTask | RunJobTask | ForEachTask:
        """The one kind of task that it is. Raises ConfigError for none or several."""
        works = (self.notebook_task, self.run_job_task, self.for_each_task)
        return _one(self.task_key, [work for work in works if work])

    @property
    def upstream(self) -> frozenset[str]:
        """The keys of the tasks that it depends on."""
        return frozenset(each.task_key for each in self.depends_on)


AnyTask: TypeAlias = Task | NestedTask


class _Parameter(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    default: str


class _Job(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    tasks: list[Any]
    parameters: list[_Parameter] = field(default_factory=list)
    continuous: Any = None
    description: Any = None
    email_notifications: Any = None
    environments: Any = None
    health: Any = None
    job_clusters: Any = None
    max_concurrent_runs: Any = None
    queue: Any = None
    schedule: Any = None
    tags: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job whose definition holds together."""

    key: str
    parameters: Mapping[str, str]
    """Each parameter's default."""
    tasks: tuple[Task, ...]
    """Every task after those it depends on, otherwise as in the YAML."""


def read_job(bundle: Bundle, key: str) -> Job:
    """Reads the bundle's job ``key``. Raises: ConfigError naming file and key of what is wrong or not supported."""
    return _read(bundle, key, ())


def _read(bundle: Bundle, key: str, trail: tuple[str, ...]) -> Job:
    """Reads the bundle's job ``key``. ``trail`` is the jobs that run this one."""
    if key in trail:
        raise ConfigError(f"jobs run each other in a circle: {' -> '.join((*trail, key))}")
    resource = bundle.resource("jobs", key)
    where = f"{resource.file.relative_to(bundle.root)}: resources.jobs.{key}"
    definition = read_as(_Job, resource.definition, where)
    parameters = {each.name: each.default for each in definition.parameters}
    if len(parameters) < len(definition.parameters):
        raise ConfigError(f"{where}.parameters: a name is listed twice among {', '.join(parameters)}")
    tasks = _in_order(
        [_task(values, resource, f"{where}.tasks[{i}]") for i, values in enumerate(definition.tasks)], where
    )
    job = Job(key=key, parameters=parameters, tasks=tasks)
    _check_references(job, where)
    for work in _works(tasks):
        if isinstance(work, RunJobTask):
            _check_parameters(work, _read(bundle, work.job_id, (*trail, key)), where)
    return job


def _task(values: object, resource: Resource, where: str) -> Task:
    """Returns one task, with its notebook's path made absolute."""
    key = values.get("task_key") if isinstance(values, dict) else None
    where = f"{where.rpartition('[')[0]}[{key}]" if isinstance(key, str) else where
    task = read_as(Task, values, where)
    inner: AnyTask = task.for_each_task.task if task.for_each_task else task
    for each in (task, inner):
        try:
            _ = each.work
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
    if isinstance(inner.work, NotebookTask):
        path = (resource.file.parent / inner.work.notebook_path).resolve()
        try:
            read_notebook(path)
        except ConfigError as error:
            raise ConfigError(f"{where}.notebook_path: {error}") from error
        inner = replace(inner, notebook_task=replace(inner.work, notebook_path=str(path)))
    if task.for_each_task:
        return replace(task, for_each_task=replace(task.for_each_task, task=inner))
    return inner if isinstance(inner, Task) else task


def _one(key: str, works: list[_Work]) -> _Work:
    if len(works) != 1:
        raise ConfigError(f"task {key}: expected one of notebook_task, run_job_task, for_each_task, found {len(works)}")
    return works[0]


def _works(tasks: tuple[Task, ...]) -> Iterator[NotebookTask | RunJobTask]:
    for task in tasks:
        yield task.work.task.work if isinstance(task.work, ForEachTask) else task.work


def _check_parameters(work: RunJobTask, job: Job, where: str) -> None:
    for name in work.job_parameters:
        if name not in job.parameters:
            raise ConfigError(f"{where}: job_parameters: job {job.key} has no parameter {name!r}")


def _in_order(tasks: list[Task], where: str) -> tuple[Task, ...]:
    keys = [task.task_key for task in tasks]
    if not tasks:
        raise ConfigError(f"{where}.tasks: expected one task or more")
    if len(set(keys)) < len(keys):
        raise ConfigError(f"{where}.tasks: a task_key is listed twice among {', '.join(keys)}")
    for task in tasks:
        for absent in sorted(task.upstream - set(keys)):
            raise ConfigError(
                f"{where}.tasks[{task.task_key}].depends_on: no task {absent!r}; there are: {', '.join(keys)}"
            )
    ordered: dict[str, Task] = {}
    while len(ordered) < len(tasks):
        ready = [task for task in tasks if task.task_key not in ordered and task.upstream <= ordered.keys()]
        if not ready:
            circle = ", ".join(key for key in keys if key not in ordered)
            raise ConfigError(f"{where}.tasks: depends_on goes in a circle among {circle}")
        ordered[ready[0].task_key] = ready[0]
    return tuple(ordered.values())


def _check_references(job: Job, where: str) -> None:
    """Raises ConfigError for a text with a reference that has no value when the task runs."""
    for name, default in job.parameters.items():
        check_references([default], (), f"{where}.parameters.{name}")
    for task in job.tasks:
        known = {*map(parameter, job.parameters), *map(result_state, task.upstream)}
        place = f"{where}.tasks[{task.task_key}]"
        match task.work:
            case ForEachTask(inputs=inputs, task=nested):
                check_references([inputs], known, place)
                check_references(_texts(nested.work), {*known, INPUT}, place)
            case work:
                check_references(_texts(work), known, place)


def _texts(work: NotebookTask | RunJobTask) -> list[str]:
    return list((work.base_parameters if isinstance(work, NotebookTask) else work.job_parameters).values())
