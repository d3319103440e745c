"""The bundle's jobs: compute, triggers, order of tasks, parameters; and the notebooks that they run."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bundle_files import (
    GIVEN,
    MAIN,
    ROOT,
    STARTED_BY_A_JOB,
    STARTED_BY_PEOPLE,
    TASKS,
    TRIGGERED,
    all_tasks,
    jobs,
    notebook_tasks,
)

from ticdc_lakehouse.entry import Run
from ticdc_local.runner.bundle import Bundle, Resource, load_bundle
from ticdc_local.runner.graph import ForEachTask, NotebookTask, RunJobTask, read_job
from ticdc_local.runner.job import local_parameters
from ticdc_local.runner.notebook import HEADER, CellKind, read_notebook
from ticdc_local.runner.reference import DYNAMIC, names_in
from ticdc_local.runner.yaml_file import read_yaml

NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.py"))
LAYERS = {"bronze", "silver", "gold"}


def test_jobs_have_no_circle_and_name_notebooks_that_exist(bundle: Bundle) -> None:
    for resource in jobs(bundle):
        job = read_job(bundle, resource.key)  # acyclic, notebooks exist, references known
        assert [task.task_key for task in job.tasks] == TASKS[resource.key]


def notebooks_of(job: Resource) -> Iterator[tuple[dict[str, Any], bool]]:
    """The tasks of a job that run notebooks, each with whether its notebook imports the package."""
    for task in all_tasks(job.definition):
        if "notebook_task" in task:
            path = job.file.parent / task["notebook_task"]["notebook_path"]
            yield task, "ticdc_lakehouse" in path.read_text()


@pytest.mark.parametrize("target", ["dev", "prod"])
def test_classic_every_task_has_its_jobs_cluster_and_the_wheel_where_it_imports_it(target: str) -> None:
    bundle = load_bundle(ROOT, target, GIVEN)
    for job in jobs(bundle):
        tasks = list(notebooks_of(job))
        assert [c["job_cluster_key"] for c in job.definition.get("job_clusters", [])] == ["main"] * bool(tasks)
        for task, imports in tasks:
            assert task["job_cluster_key"] == "main"
            assert task.get("libraries", []) == ([{"whl": "../../dist/*.whl"}] if imports else [])
            assert "environment_key" not in task


@pytest.mark.parametrize("target", ["dev_serverless", "prod_serverless"])
def test_serverless_tasks_have_no_cluster_and_the_environment_with_the_wheel_where_they_import_it(target: str) -> None:
    for job in jobs(load_bundle(ROOT, target, GIVEN)):
        tasks = list(notebooks_of(job))
        assert "job_clusters" not in job.definition
        specs = [(each["environment_key"], each["spec"]) for each in job.definition.get("environments", [])]
        assert specs == [("main", {"environment_version": "5", "dependencies": ["../../dist/*.whl"]})] * bool(tasks)
        for task, imports in tasks:
            assert not {"job_cluster_key", "libraries"} & task.keys()
            assert task.get("environment_key") == ("main" if imports else None)


def test_a_cluster_is_one_variable_with_engine_access_mode_and_workers(bundle: Bundle) -> None:
    assert [a["type"] for a in MAIN["artifacts"].values()] == ["whl"]
    for job in jobs(bundle):
        for cluster in job.definition.get("job_clusters", []):
            assert cluster["new_cluster"] == bundle.variables["cluster"]
    cluster = bundle.variables["cluster"]
    assert "num_workers" not in cluster, "without workers it would need single-node settings"
    assert cluster["autoscale"] == {"min_workers": 1, "max_workers": 4}
    assert cluster["runtime_engine"] == "STANDARD"
    assert cluster["spark_conf"]["spark.sql.session.timeZone"] == "UTC"
    assert "" not in cluster.values(), "the platform is sent it as it stands"


def test_policy_pool_and_tags_come_by_variable() -> None:
    cluster = {"spark_version": "18.x-scala2.13", "policy_id": "p", "instance_pool_id": "i", "num_workers": 1}
    bundle = load_bundle(ROOT, "prod", {**GIVEN, "cluster": cluster, "tags": {"team": "data"}})
    for job in jobs(bundle):
        assert job.definition["tags"] == {"team": "data"}
        for each in job.definition.get("job_clusters", []):
            assert each["new_cluster"] == cluster


def test_every_notebook_task_has_a_timeout_but_the_loop(bundle: Bundle) -> None:
    for job in jobs(bundle):
        for task in all_tasks(job.definition):
            if "notebook_task" in task:
                assert task["timeout_seconds"] == (0 if task["task_key"] == "loop" else 14400)
                assert "retry_on_timeout" not in task
            else:
                assert "timeout_seconds" not in task, "it ends with what it starts"


def test_runs_do_not_overlap_and_wait_for_each_other(bundle: Bundle) -> None:
    for job in jobs(bundle):
        assert job.definition["queue"] == {"enabled": True}
        if job.key not in STARTED_BY_A_JOB:
            assert job.definition["max_concurrent_runs"] == 1, "not said, development mode allows 4"


def test_as_many_chains_may_run_as_are_started_at_once(bundle: Bundle) -> None:
    (feeds,) = bundle.resource("jobs", "ticdc_lake").definition["tasks"]
    chain = bundle.resource("jobs", "ticdc_feed").definition
    assert feeds["for_each_task"]["concurrency"] == chain["max_concurrent_runs"] == 4


def test_exactly_one_trigger_that_development_mode_can_pause(bundle: Bundle) -> None:
    for job in jobs(bundle):
        triggers = {"schedule", "trigger", "continuous"} & job.definition.keys()
        assert len(triggers) == (1 if job.key in TRIGGERED else 0)
        for trigger in triggers:
            if trigger != "continuous":
                assert "pause_status" not in job.definition[trigger], "said here, development mode would not pause it"


def test_the_loop_is_paused_until_somebody_wants_it(bundle: Bundle) -> None:
    assert MAIN["variables"]["loop_pause_status"]["default"] == "PAUSED"
    wanted = load_bundle(ROOT, bundle.target, {**GIVEN, "loop_pause_status": "UNPAUSED"})
    assert wanted.resource("jobs", "ticdc_loop").definition["continuous"] == {"pause_status": "UNPAUSED"}


def test_a_feed_of_the_loop_can_be_taken_from_the_schedule_and_is_maintained_only_by_the_loop() -> None:
    given = {**GIVEN, "feeds": '["crm","hr"]', "scheduled_feeds": '["hr"]', "loop_feeds": '["crm"]'}
    bundle = load_bundle(ROOT, "prod", given)
    feeds = {key: json.loads(read_job(bundle, key).parameters["feeds"]) for key in TRIGGERED}
    assert feeds == {"ticdc_lake": ["hr"], "ticdc_loop": ["crm"], "ticdc_maintenance": ["hr"]}
    assert read_job(bundle, "ticdc_loop").parameters["maintain_every_hours"] == "24"


def test_a_layer_waits_for_the_one_before_it_and_the_alarm_is_the_only_leaf(bundle: Bundle) -> None:
    tasks = {task.task_key: task for task in read_job(bundle, "ticdc_feed").tasks}
    assert (tasks["silver"].upstream, tasks["gold"].upstream) == ({"bronze"}, {"silver"})
    assert tasks["silver"].run_if == tasks["gold"].run_if == "ALL_SUCCESS"
    depended_on = {key for task in tasks.values() for key in task.upstream}
    assert set(tasks) - depended_on == {"alarm"}, "the leaf decides how the run ends"
    assert tasks["alarm"].upstream == LAYERS
    assert tasks["alarm"].run_if == "ALL_DONE", "a feed may need attention although nothing failed"


def test_each_feed_has_a_chain_of_its_own_and_a_failed_one_fails_the_run_that_notifies(bundle: Bundle) -> None:
    (feeds,) = read_job(bundle, "ticdc_lake").tasks
    assert isinstance(feeds.work, ForEachTask)
    assert feeds.work.inputs == "{{job.parameters.feeds}}"
    assert isinstance(feeds.work.task.work, RunJobTask)
    assert feeds.work.task.work.job_id == "ticdc_feed"
    assert feeds.work.task.max_retries == 0, "the chain's own tasks are retried"
    mails = {job.key: job.definition.get("email_notifications", {}).get("on_failure") for job in jobs(bundle)}
    assert mails == {key: GIVEN["alert_emails"] if key in TRIGGERED else None for key in TASKS}


def test_the_chain_is_given_every_parameter_that_it_has(bundle: Bundle) -> None:
    lake, chain = read_job(bundle, "ticdc_lake"), read_job(bundle, "ticdc_feed")
    (feeds,) = lake.tasks
    assert isinstance(feeds.work, ForEachTask)
    assert isinstance(feeds.work.task.work, RunJobTask)
    shared = {name: f"{{{{job.parameters.{name}}}}}" for name in chain.parameters if name != "feed"}
    assert feeds.work.task.work.job_parameters == {"feed": "{{input}}", **shared}
    assert {name: lake.parameters[name] for name in shared} == {name: chain.parameters[name] for name in shared}


def test_work_is_retried_but_for_the_alarm_and_tasks_of_continuous_jobs(bundle: Bundle) -> None:
    for job in jobs(bundle):
        for task in all_tasks(job.definition):
            if "notebook_task" in task:
                once = task["task_key"] in ("alarm", "loop") or job.key in STARTED_BY_PEOPLE
                assert task.get("max_retries", 0) == (0 if once else 2)


def test_serverless_compute_retries_no_task_that_has_no_retries() -> None:
    """Its auto-optimization would, whatever ``max_retries`` says."""
    for target in ("dev_serverless", "prod_serverless"):
        for job in jobs(load_bundle(ROOT, target, GIVEN)):
            for task in all_tasks(job.definition):
                if "notebook_task" in task:
                    is_disabled = task.get("disable_auto_optimization", False)
                    assert is_disabled == (task.get("max_retries", 0) == 0), (job.key, task["task_key"])


def test_what_people_do_is_one_task_each_that_does_nothing_by_default(bundle: Bundle) -> None:
    job = read_job(bundle, "ticdc_ops")
    notebooks = {path.stem for path in (ROOT / "notebooks" / "ops").glob("*.py")}
    assert {task.task_key for task in job.tasks} == notebooks - {"alarm", "loop", "selftest"}
    assert not any(task.upstream for task in job.tasks)
    assert {job.parameters[name] for name in ("feed", "messages", "table", "action", "reason", "folder")} == {""}


def test_names_of_schemas_come_by_reference() -> None:
    for key in TASKS:
        job = read_yaml(ROOT / "resources" / f"{key}.job.yml")["resources"]["jobs"][key]
        defaults = {parameter["name"]: parameter["default"] for parameter in job["parameters"]}
        for name in ("bronze", "silver", "live", "gold", "ops"):
            assert defaults[f"{name}_schema"] == f"${{resources.schemas.{name}.name}}", (
                "dev mode puts a prefix before it"
            )
        assert "${resources.volumes.checkpoints" in defaults["checkpoint_root"]


def test_the_laptop_sets_only_declared_parameters(bundle: Bundle, tmp_path: Path) -> None:
    for resource in jobs(bundle):
        own = local_parameters(ROOT, tmp_path).keys() - {"feeds_root"}
        assert own <= read_job(bundle, resource.key).parameters.keys()


def test_the_feeds_of_a_deployment_are_a_list_of_names_that_have_files(bundle: Bundle) -> None:
    for key in TRIGGERED:
        feeds = json.loads(read_job(bundle, key).parameters["feeds"])
        assert isinstance(feeds, list)
        assert [name for name in feeds if not (ROOT / "resources" / "feeds" / f"{name}.yml").is_file()] == []


def widgets(path: Path) -> dict[str, str]:
    """The widgets that a notebook declares, with their defaults."""
    found = re.findall(r'dbutils\.widgets\.\w+\("(\w+)", "([^"]*)"', path.read_text())
    return dict(found)


def test_widgets_are_the_parameters(bundle: Bundle) -> None:
    for resource in jobs(bundle):
        job = read_job(bundle, resource.key)
        used = set(names_in(json.loads(json.dumps(resource.definition)), DYNAMIC))
        known = {name.removeprefix("job.parameters.") for name in used}
        for work in notebook_tasks(job):
            declared = widgets(Path(work.notebook_path)).keys()
            assert declared <= job.parameters.keys() | work.base_parameters.keys(), work.notebook_path
            assert work.base_parameters.keys() <= declared, work.notebook_path
            known |= declared
        assert job.parameters.keys() <= known, "a parameter that nothing reads"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_thin(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith(f"{HEADER}\n")
    first, *cells = read_notebook(path).cells
    assert first.kind is CellKind.MARKDOWN
    for word in ("# ", "**In**", "**Out**", "**Contract**"):
        assert word in first.source
    assert len(cells) <= 5
    for cell in cells:
        assert len(cell.source.splitlines()) <= 12, cell.where
        assert cell.kind is CellKind.PYTHON, cell.where
        nodes = list(ast.walk(ast.parse(cell.source)))
        assert not any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda) for node in nodes), cell.where
        assert not any(isinstance(node, ast.If | ast.IfExp | ast.Raise | ast.Try | ast.comprehension) for node in nodes)
        assert not any(alias.name == "*" for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names)
    imports = re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
    assert imports == ["ticdc_lakehouse"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_display_only_data_frames(path: Path) -> None:
    """On Databricks `display` raises an exception for a value that is none and has no HTML of its own."""
    for method in re.findall(r"display\(run\.(\w+)\(\)\)", path.read_text()):
        assert getattr(Run, method).__annotations__["return"] == "DataFrame", method


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_by_hand_a_notebook_finds_the_feed_files(path: Path) -> None:
    """A notebook's working directory is its own folder, and a deployment keeps the folders beside each other."""
    for default in re.findall(r'widgets\.text\("feeds_root", "([^"]+)"', path.read_text()):
        assert (path.parent / default).resolve() == ROOT / "resources" / "feeds"


def test_no_two_notebooks_get_one_name() -> None:
    notebooks = [path for path in (ROOT / "notebooks").rglob("*") if path.suffix in (".py", ".ipynb")]
    names = [path.with_suffix("") for path in notebooks]
    assert len(set(names)) == len(names), "the import to the workspace drops the ending"


def test_notebooks_of_the_layers_lie_in_their_folders(bundle: Bundle) -> None:
    for task in read_job(bundle, "ticdc_feed").tasks:
        assert isinstance(task.work, NotebookTask)
        layer = "ops" if task.task_key == "alarm" else task.task_key
        assert Path(task.work.notebook_path).parent.name == layer
