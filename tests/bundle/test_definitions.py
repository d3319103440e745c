"""What ``databricks bundle validate`` would check of the project's bundle, and more, without a workspace."""

import ast
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from databricks.sdk.service.catalog import Privilege, PrivilegeAssignment, SchemaInfo, VolumeInfo
from databricks.sdk.service.dashboards import Dashboard as PlatformDashboard
from databricks.sdk.service.jobs import JobSettings
from databricks.sdk.service.sql import AlertV2

from ticdc_local.runner.bundle import Bundle, Resource, load_bundle
from ticdc_local.runner.graph import ForEachTask, Job, NotebookTask, RunJobTask, read_job
from ticdc_local.runner.job import local_parameters
from ticdc_local.runner.notebook import HEADER, CellKind, read_notebook
from ticdc_local.runner.reference import DYNAMIC, STATIC, names_in
from ticdc_local.runner.yaml_file import read_yaml

ROOT = Path(__file__).parents[2]
RESOURCES = sorted((ROOT / "resources").glob("*.yml"))
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
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.py"))
LAYERS = {"bronze", "silver", "gold"}
TASKS = {
    "ticdc_lake": ["feeds"],
    "ticdc_feed": ["bronze", "silver", "gold", "alarm"],
    "ticdc_loop": ["loop"],
    "ticdc_maintenance": ["maintain"],
    "ticdc_selftest": ["checks"],
    "ticdc_ops": ["replay", "dismiss", "decide", "load", "verify"],
}
OBSERVING = {
    "dashboards": ["ticdc_lake"],
    "alerts": ["ticdc_behind", "ticdc_blocked", "ticdc_quarantine", "ticdc_no_watermark"],
}
STARTED_BY_A_JOB = {"ticdc_feed"}
STARTED_BY_PEOPLE = {"ticdc_ops", "ticdc_selftest"}
TRIGGERED = TASKS.keys() - STARTED_BY_A_JOB - STARTED_BY_PEOPLE
FEEDS = ["shop_craft", "shop_canal", "shop_open", "shop_simple", "shop_debezium"]


@pytest.fixture(scope="module", params=MAIN["targets"])
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return load_bundle(ROOT, request.param, GIVEN)


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


def scalars(value: Any) -> Iterator[tuple[str, Any]]:
    """Every value with the key it stands under."""
    match value:
        case dict():
            for key, item in value.items():
                yield from ((key, found) if inner == "" else (inner, found) for inner, found in scalars(item))
        case list():
            for item in value:
                yield from scalars(item)
        case _:
            yield "", value


# The bundle.


def test_the_bundle_is_what_was_agreed(bundle: Bundle) -> None:
    assert bundle.name == "ticdc_lakehouse"
    assert sorted(MAIN["targets"]) == ["dev", "dev_serverless", "prod", "prod_serverless"]
    assert {(r.kind, r.key) for r in bundle.resources} == {
        *(("jobs", name) for name in TASKS),
        ("volumes", "checkpoints"),
        *((kind, name) for kind, names in OBSERVING.items() for name in names if bundle.target.startswith("prod")),
        *(("schemas", name) for name in ("bronze", "silver", "live", "gold", "ops")),
    }


@pytest.mark.parametrize("file", RESOURCES, ids=lambda file: file.name)
def test_one_resource_a_file_named_after_it(file: Path) -> None:
    values = read_yaml(file)
    if "targets" in values:
        prod, serverless = (values["targets"].pop(name) for name in ("prod", "prod_serverless"))
        assert values == {"targets": {}}
        assert prod == serverless
        values = prod
    ((kind, resources),) = values["resources"].items()
    assert file.name in {f"{key}.{kind.removesuffix('s')}.yml" for key in resources}
    assert len(resources) == 1


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_decisions_cite_the_documentation(file: Path) -> None:
    comments = [line.strip() for line in file.read_text().splitlines() if line.lstrip().startswith("#")]
    assert any("https://docs.databricks.com/" in line for line in comments)


def test_the_bundles_name_holds_no_reference() -> None:
    assert not STATIC.search(MAIN["bundle"]["name"])


def test_every_variable_is_described_and_used() -> None:
    text = "".join(file.read_text() for file in FILES)
    for name, definition in MAIN["variables"].items():
        assert definition["description"].endswith("."), name
        assert f"${{var.{name}}}" in text, name


def test_targets() -> None:
    dev, prod = MAIN["targets"]["dev"], MAIN["targets"]["prod"]
    assert dev["mode"] == "development"
    assert [name for name, target in MAIN["targets"].items() if target.get("default")] == ["dev"]
    assert prod["mode"] == "production"
    assert prod["workspace"]["root_path"].startswith("/Workspace/")
    assert prod["run_as"]["service_principal_name"]
    assert prod["permissions"] == [
        {"service_principal_name": "${var.service_principal}", "level": "CAN_MANAGE"},
        {"group_name": "${var.operators}", "level": "CAN_RUN"},
        {"group_name": "${var.operators}", "level": "CAN_VIEW"},
    ]
    for name in ("service_principal", "analysts", "operators", "warehouse_id"):
        assert "default" not in MAIN["variables"][name], "forgetting it must stop a deployment to prod"


def test_targets_differ_in_their_compute_alone() -> None:
    targets = MAIN["targets"]
    assert targets["dev"] == targets["dev_serverless"] | {"default": True}
    assert targets["prod"] == targets["prod_serverless"]
    for target in targets.values():
        assert "${bundle.target}" not in target["workspace"]["root_path"], "another target would be another deployment"


THE_JOB = {"principal": "app-id", "privileges": ["USE_SCHEMA", "CREATE_TABLE", "SELECT", "MODIFY"]}
ANALYSTS = {"principal": "analysts", "privileges": ["USE_SCHEMA", "SELECT"]}
GRANTS = {
    "bronze": [THE_JOB],
    "ops": [THE_JOB, {"principal": "operators", "privileges": ["USE_SCHEMA", "SELECT"]}],
    "silver": [THE_JOB, ANALYSTS],
    "live": [THE_JOB, ANALYSTS],
    "gold": [THE_JOB, ANALYSTS],
    "checkpoints": [{"principal": "app-id", "privileges": ["READ_VOLUME", "WRITE_VOLUME"]}],
}


def test_prod_grants_the_job_what_it_needs_and_analysts_nothing_of_bronze_and_ops() -> None:
    resources = {r.key: r for r in load_bundle(ROOT, "prod", GIVEN).resources if r.kind in ("schemas", "volumes")}
    assert {key: each.definition["grants"] for key, each in resources.items()} == GRANTS
    names = {privilege for grants in GRANTS.values() for grant in grants for privilege in grant["privileges"]}
    assert names <= {privilege.value for privilege in Privilege}


def test_prod_never_drops_a_schema_or_the_volume() -> None:
    for resource in load_bundle(ROOT, "prod", GIVEN).resources:
        kept = resource.kind in ("schemas", "volumes")
        assert resource.definition.get("lifecycle") == ({"prevent_destroy": True} if kept else None)


def test_dev_grants_nothing_and_can_be_destroyed() -> None:
    for resource in load_bundle(ROOT, "dev", GIVEN).resources:
        assert not {"grants", "lifecycle"} & resource.definition.keys()


def test_no_principal_is_empty(bundle: Bundle) -> None:
    for resource in bundle.resources:
        for grant in resource.definition.get("grants", []):
            assert grant["principal"]
            assert grant["privileges"]


def test_the_platform_gets_the_notebooks_and_feeds_alone() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    excluded = {path for pattern in MAIN["sync"]["exclude"] for path in ROOT.glob(pattern.replace("**", "**/*"))}
    synced = {path for path in tracked if ROOT / path not in excluded}
    assert {path.partition("/")[0] for path in synced} == {
        ".gitignore",
        "LICENSE",
        "databricks.yml",
        "notebooks",
        "resources",
    }


def test_sync_and_include_patterns_match_something() -> None:
    for pattern in (*MAIN["include"], *MAIN["sync"]["exclude"]):
        assert any(path.is_file() for path in ROOT.glob(pattern.replace("**", "**/*"))), pattern


def test_the_feeds_are_synced() -> None:
    assert not any(pattern.startswith(("resources", "notebooks")) for pattern in MAIN["sync"]["exclude"])


def test_no_secret_and_no_machine_stands_in_the_bundle() -> None:
    secret = re.compile(r"(?i)password|secret|token|api_?key")
    for file in FILES:
        for key, value in scalars(read_yaml(file)):
            assert not secret.search(key), f"{file.name}: {key}"
            assert not re.search(r"dapi[0-9a-f]{8}|AKIA[0-9A-Z]{8}|https?://|/home/|/Users/[a-z]", str(value)), value


# What the platform's own types say.


def test_jobs_are_what_the_sdk_knows(bundle: Bundle) -> None:
    for job in jobs(bundle):
        assert JobSettings.from_dict(deployed(job.definition)).as_dict() == deployed(job.definition)


def test_schemas_and_volumes_are_what_the_sdk_knows(bundle: Bundle) -> None:
    kinds = {"schemas": SchemaInfo, "volumes": VolumeInfo}
    for resource in bundle.resources:
        if resource.kind in kinds:
            # The bundle's own keys: the CLI sets grants by a request of its own, and keeps lifecycle to itself.
            own = {key: value for key, value in resource.definition.items() if key not in ("grants", "lifecycle")}
            assert kinds[resource.kind].from_dict(own).as_dict() == own
            for grant in resource.definition.get("grants", []):
                assert PrivilegeAssignment.from_dict(grant).as_dict() == grant


def test_alerts_and_dashboards_are_what_the_sdk_knows() -> None:
    # file_path, dataset_catalog and the like are the bundle's own.
    own = {"file_path", "dataset_catalog", "dataset_schema", "embed_credentials"}
    for resource in load_bundle(ROOT, "prod", GIVEN).resources:
        definition = {key: value for key, value in resource.definition.items() if key not in own}
        if resource.kind == "alerts":
            assert AlertV2.from_dict(definition).as_dict() == definition
        if resource.kind == "dashboards":
            assert PlatformDashboard.from_dict(definition).as_dict() == definition


def test_the_sdk_drops_what_it_does_not_know(bundle: Bundle) -> None:
    for job in jobs(bundle):
        wrong = deployed(job.definition)
        *_, task = all_tasks(wrong)
        task["max_retires"] = 1
        assert JobSettings.from_dict(wrong).as_dict() != wrong


def test_the_clis_schema_takes_the_bundle(bundle: Bundle) -> None:
    file = os.environ.get("DATABRICKS_BUNDLE_SCHEMA")
    if file is None:
        pytest.skip("set DATABRICKS_BUNDLE_SCHEMA to a file written by `databricks bundle schema`")
    jsonschema = pytest.importorskip("jsonschema")
    text = Path(file).read_text()
    text = text.replace(r"\\p{L}\\p{N}", "A-Za-z0-9").replace(r"\\p{L}", "[A-Za-z]")  # Python's re has no \p
    validator = jsonschema.Draft202012Validator(json.loads(text))
    # What targets add is looked at where it was added: alone it lacks the keys that a resource must have.
    targets = {
        name: {key: value for key, value in target.items() if key != "resources"}
        for name, target in MAIN["targets"].items()
    }
    whole = {**MAIN, "targets": targets, "resources": {}}
    for resource in bundle.resources:
        definition = deployed(resource.definition) if resource.kind == "jobs" else resource.definition
        whole["resources"].setdefault(resource.kind, {})[resource.key] = definition
    assert [error.message for error in validator.iter_errors(whole)] == []


# Jobs.


def test_jobs_hold_together(bundle: Bundle) -> None:
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
    assert bundle.resource("jobs", "ticdc_loop").definition["continuous"] == {"pause_status": "PAUSED"}
    wanted = load_bundle(ROOT, bundle.target, {**GIVEN, "loop_pause_status": "UNPAUSED"})
    assert wanted.resource("jobs", "ticdc_loop").definition["continuous"] == {"pause_status": "UNPAUSED"}


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


def test_the_laptop_sets_only_parameters_that_there_are(bundle: Bundle, tmp_path: Path) -> None:
    for resource in jobs(bundle):
        own = local_parameters(ROOT, tmp_path).keys() - {"feeds_root"}
        assert own <= read_job(bundle, resource.key).parameters.keys()


def test_the_default_feeds_are_a_list_of_names(bundle: Bundle) -> None:
    for key in TRIGGERED:
        assert json.loads(read_job(bundle, key).parameters["feeds"]) == FEEDS


# Jobs and notebooks.


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
        assert not any(alias.name == "*" for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names)
    imports = re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
    assert imports == ["ticdc_lakehouse"]


def test_no_two_notebooks_get_one_name() -> None:
    notebooks = [path for path in (ROOT / "notebooks").rglob("*") if path.suffix in (".py", ".ipynb")]
    names = [path.with_suffix("") for path in notebooks]
    assert len(set(names)) == len(names), "the import to the workspace drops the ending"


def test_notebooks_of_the_layers_lie_in_their_folders(bundle: Bundle) -> None:
    for task in read_job(bundle, "ticdc_feed").tasks:
        assert isinstance(task.work, NotebookTask)
        layer = "ops" if task.task_key == "alarm" else task.task_key
        assert Path(task.work.notebook_path).parent.name == layer


def test_yaml_lines_are_readable() -> None:
    for file in FILES:
        text = file.read_text()
        assert "\t" not in text
        assert yaml.safe_load(text)
        assert max(map(len, text.splitlines())) <= 130, file.name
