"""The project's bundle: its files, what a deployment is given, and what its jobs hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ticdc_local.runner.bundle import Bundle, Resource
from ticdc_local.runner.graph import ForEachTask, Job, NotebookTask
from ticdc_local.runner.yaml_file import read_yaml

ROOT = Path(__file__).parents[2]
OF_A_DEPLOYMENT = "feeds.targets.yml"
"""The file of the template, in resources: a deployment's feeds and catalog."""
RESOURCES = sorted(path for path in (ROOT / "resources").glob("*.yml") if path.name != OF_A_DEPLOYMENT)
COMPUTE = sorted((ROOT / "resources" / "compute").glob("*.yml"))
FILES = [ROOT / "databricks.yml", *RESOURCES, *COMPUTE]
MAIN = read_yaml(ROOT / "databricks.yml")
GIVEN = {
    "service_principal": "app-id",
    "analysts": "analysts",
    "operators": "operators",
    "alert_emails": ["ops@example.com"],
    "warehouse_id": "475b94ddc7cd5211",
    "alert_subscriptions": [{"user_email": "ops@example.com"}],
}
TASKS = {
    "ticdc_lake": ["feeds"],
    "ticdc_feed": ["bronze", "silver", "gold", "alarm"],
    "ticdc_loop": ["loop"],
    "ticdc_maintenance": ["maintain"],
    "ticdc_selftest": ["checks"],
    "ticdc_ops": ["replay", "dismiss", "override", "load", "verify"],
}
OBSERVING = {
    "dashboards": ["ticdc_lake"],
    "alerts": ["ticdc_behind", "ticdc_blocked", "ticdc_quarantine", "ticdc_no_watermark"],
}
STARTED_BY_A_JOB = {"ticdc_feed"}
STARTED_BY_PEOPLE = {"ticdc_ops", "ticdc_selftest"}
TRIGGERED = TASKS.keys() - STARTED_BY_A_JOB - STARTED_BY_PEOPLE


def jobs(bundle: Bundle) -> list[Resource]:
    return [resource for resource in bundle.resources if resource.kind == "jobs"]


def all_tasks(definition: Any) -> Iterator[dict[str, Any]]:
    """The tasks of a job's definition and the tasks nested in them."""
    for task in definition["tasks"]:
        yield task
        if "for_each_task" in task:
            yield task["for_each_task"]["task"]


def deployed(definition: Any) -> Any:
    """A job's definition with numbers for the keys of jobs, as the platform gives them."""
    copy = json.loads(json.dumps(definition))
    for task in all_tasks(copy):
        if "run_job_task" in task:
            task["run_job_task"]["job_id"] = 1
    return copy


def notebook_tasks(job: Job) -> Iterator[NotebookTask]:
    for task in job.tasks:
        work = task.work.task.work if isinstance(task.work, ForEachTask) else task.work
        if isinstance(work, NotebookTask):
            yield work
