"""The bundle's jobs as dbx's ``conf/deployment.yml``, for teams that still deploy with dbx 0.8 (docs/dbx.md).

dbx knows only jobs, in the form of the Jobs API 2.1 and without for-each and run-job tasks. So a job that runs another
one, or a notebook, for each feed becomes a job, or a task, for each feed. dbx itself builds the wheel and adds it to
every task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.job_parameters import texts_in
from ticdc_local.runner.bundle import Bundle, load_bundle
from ticdc_local.runner.reference import filled

FILE = "conf/deployment.yml"
TARGET = "prod"
_HEAD = """\
# Made by `ticdc-lake dbx` from databricks.yml and resources/: change those. docs/dbx.md says how it is deployed.
"""
MOUNT = "/Workspace"
"""Where compute mounts the workspace's files; a notebook's path has it or has it not."""
_KEPT = ("description", "schedule", "continuous", "health", "email_notifications", "tags", "queue")
"""Keys of a job that starts others which the jobs that take its place have too."""


class _Plain(yaml.SafeDumper):
    """Writes a value out wherever it stands, not as a reference to where it stood first."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature is PyYAML's
        return True


def deployment_text(root: Path, workspace: str, variables: Mapping[str, Any]) -> str:
    """Returns the file, for a project in the folder ``workspace`` of a Databricks workspace.

    ``variables`` go before the bundle's defaults. Raises ConfigError for a bundle that is wrong, and for a path that is
    not absolute.
    """
    if not workspace.startswith("/"):
        expected = "an absolute path such as /Repos/data/ticdc-lakehouse"
        raise ConfigError(f"--workspace: expected {expected}, found {workspace!r}")
    needed = ("service_principal", "analysts", "operators", "warehouse_id")  # of what dbx does not deploy
    bundle = load_bundle(root, TARGET, {**dict.fromkeys(needed, "unused"), **variables})
    environment = {"workflows": _placed(list(_workflows(bundle)), root, workspace.rstrip("/"))}
    document = {"build": {"python": "pip"}, "environments": {"default": environment}}
    return _HEAD + yaml.dump(document, Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)


def _workflows(bundle: Bundle) -> Iterator[dict[str, Any]]:
    jobs = {each.key: each.definition for each in bundle.resources if each.kind == "jobs"}
    starting = {key: list(_starting_tasks(job)) for key, job in jobs.items()}
    started = {work["job_id"] for tasks in starting.values() for _, work in tasks}
    for key, job in jobs.items():
        if starting[key]:
            for task, work in starting[key]:
                yield from (_chain(job, jobs[work["job_id"]], feed, work) for feed in _inputs(task, job))
        elif key not in started and (tasks := [flat for task in job["tasks"] for flat in _tasks(task, job)]):
            yield {**job, "tasks": tasks}  # without any feed for its tasks there is nothing to do


def _starting_tasks(job: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yields the tasks that start another job for each feed, with what they pass to it."""
    for task in job["tasks"]:
        work = task.get("for_each_task", {}).get("task", {}).get("run_job_task")
        if work is not None:
            yield task, work


def _chain(starts: Mapping[str, Any], job: Mapping[str, Any], feed: str, work: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the job that another one starts for a feed, as a job with a schedule of its own."""
    values = {"input": feed} | {f"job.parameters.{name}": text for name, text in _parameters(starts).items()}
    given = {name: filled(text, values) for name, text in work["job_parameters"].items()}
    own = {name: starts[name] for name in _KEPT if name in starts and name not in job}
    parameters = [{"name": name, "default": given.get(name, text)} for name, text in _parameters(job).items()]
    return {**job, **own, "name": f"{job['name']}_{feed}", "max_concurrent_runs": 1, "parameters": parameters}


def _tasks(task: Mapping[str, Any], job: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields a task; a for-each task as one task for each feed."""
    each = task.get("for_each_task")
    if each is None:
        yield task
        return
    for feed in _inputs(task, job):
        notebook = each["task"]["notebook_task"]
        given = {name: filled(text, {"input": feed}) for name, text in notebook["base_parameters"].items()}
        yield {
            **each["task"],
            "task_key": f"{each['task']['task_key']}_{feed}",
            "notebook_task": {**notebook, "base_parameters": given},
        }


def _inputs(task: Mapping[str, Any], job: Mapping[str, Any]) -> list[str]:
    values = {f"job.parameters.{name}": text for name, text in _parameters(job).items()}
    return texts_in(filled(task["for_each_task"]["inputs"], values), f"{job['name']}: {task['task_key']}: inputs")


def _parameters(job: Mapping[str, Any]) -> dict[str, str]:
    return {each["name"]: each["default"] for each in job.get("parameters", ())}


def _placed(value: Any, root: Path, workspace: str) -> Any:
    """Returns the value with the workspace's paths in place of this machine's, and without libraries."""
    match value:
        case dict():
            return {
                key: _notebook(item, workspace) if key == "notebook_path" else _placed(item, root, workspace)
                for key, item in value.items()
                if key != "libraries"
            }
        case list() | tuple():
            return [_placed(item, root, workspace) for item in value]
        case str():
            return value.replace(str(root), _opened(workspace))
        case _:
            return value


def _opened(workspace: str) -> str:
    """The folder by which Python opens what is in it: the workspace's files are mounted there."""
    return workspace if f"{workspace}/".startswith(f"{MOUNT}/") else f"{MOUNT}{workspace}"


def _notebook(path: str, workspace: str) -> str:
    """Returns a notebook's path in the workspace, where it has no ending; ``path`` is from a file in ``resources``."""
    return f"{workspace}/{path.removeprefix('../').removesuffix('.py')}"
