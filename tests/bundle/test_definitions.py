"""What ``databricks bundle validate`` would check of the project's bundle, and more, without a workspace."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from bundle_files import (
    FILES,
    GIVEN,
    MAIN,
    OBSERVING,
    RESOURCES,
    ROOT,
    TASKS,
    all_tasks,
    deployed,
    jobs,
)
from databricks.sdk.service.catalog import Privilege, PrivilegeAssignment, SchemaInfo, VolumeInfo
from databricks.sdk.service.dashboards import Dashboard as PlatformDashboard
from databricks.sdk.service.jobs import JobSettings
from databricks.sdk.service.sql import AlertV2

from ticdc_local.runner.bundle import Bundle, load_bundle
from ticdc_local.runner.reference import STATIC
from ticdc_local.runner.yaml_file import read_yaml


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
def test_each_file_has_one_resource_and_its_name(file: Path) -> None:
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


def test_maintenance_does_not_begin_with_a_run_of_the_job() -> None:
    """Of the two, the one that publishes second publishes nothing."""
    job, maintenance = (MAIN["variables"][name]["default"].split()[1] for name in ("schedule", "maintenance_schedule"))
    first, every = map(int, job.split("/"))
    assert (int(maintenance) - first) % every != 0


def test_the_bundles_name_holds_no_reference() -> None:
    assert not STATIC.search(MAIN["bundle"]["name"])


def test_every_variable_is_described_and_used() -> None:
    text = "".join(file.read_text() for file in FILES)
    for name, definition in MAIN["variables"].items():
        assert definition["description"].endswith("."), name
        assert f"${{var.{name}}}" in text, name


def test_dev_is_the_default_target_and_prod_runs_as_a_service_principal() -> None:
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


def test_targets_differ_only_in_their_compute() -> None:
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


def test_a_deployment_uploads_the_notebooks_and_resources_only() -> None:
    assert MAIN["sync"] == {"paths": ["notebooks", "resources"]}


def test_the_feeds_are_below_a_folder_that_is_uploaded() -> None:
    roots = {path.name: re.findall(r"\$\{workspace.file_path\}/(\S+)", path.read_text("utf-8")) for path in RESOURCES}
    assert {root for found in roots.values() for root in found} == {"resources/feeds"}
    assert (ROOT / "resources" / "feeds").is_dir()


def test_sync_paths_are_folders_and_include_patterns_match_something() -> None:
    for path in MAIN["sync"]["paths"]:
        assert (ROOT / path).is_dir(), path
    for pattern in MAIN["include"]:
        assert any(path.is_file() for path in ROOT.glob(pattern.replace("**", "**/*"))), pattern


def test_git_ignores_an_export_and_the_result_of_a_query() -> None:
    paths = ["export/crm.orders.000000000.sql", "export-2025/metadata", "report.csv", "report.html"]
    command = ["git", "check-ignore", "--no-index", *paths]
    ignored = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    assert ignored == paths


def test_the_bundle_contains_no_secret_and_no_machine() -> None:
    secret = re.compile(r"(?i)password|secret|token|api_?key")
    for file in FILES:
        for key, value in scalars(read_yaml(file)):
            assert not secret.search(key), f"{file.name}: {key}"
            assert not re.search(r"dapi[0-9a-f]{8}|AKIA[0-9A-Z]{8}|https?://|/home/|/Users/[a-z]", str(value)), value


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


def test_yaml_lines_are_readable() -> None:
    for file in FILES:
        text = file.read_text()
        assert "\t" not in text
        assert yaml.safe_load(text)
        assert max(map(len, text.splitlines())) <= 130, file.name
