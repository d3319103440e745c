"""conf/deployment.yml, which dbx deploys, is the bundle, flattened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ticdc_codec.errors import ConfigError
from ticdc_local.cli import main
from ticdc_local.cli.dbx import WORKSPACE
from ticdc_local.runner.bundle import load_bundle
from ticdc_local.runner.dbx import FILE, deployment_text
from ticdc_local.runner.graph import read_job

ROOT = Path(__file__).parents[2]
UNUSED = dict.fromkeys(("service_principal", "analysts", "operators", "warehouse_id"), "x")
FEEDS = ["crm", "hr"]
GIVEN = {"feeds": json.dumps(FEEDS), "scheduled_feeds": json.dumps(FEEDS)}


def workflows(**variables: Any) -> dict[str, Any]:
    document = yaml.safe_load(deployment_text(ROOT, "/Repos/me/lake", variables))
    return {each["name"]: each for each in document["environments"]["default"]["workflows"]}


def test_the_committed_file_is_the_bundle() -> None:
    assert (ROOT / FILE).read_text(encoding="utf-8") == deployment_text(ROOT, WORKSPACE, {}), "run `ticdc-lake dbx`"


def test_each_feed_has_a_job_with_the_schedule_and_mails_of_the_one_that_starts_it() -> None:
    found = workflows(alert_emails=["ops@example.com"], **GIVEN)
    others = ["ticdc_loop", "ticdc_maintenance", "ticdc_ops", "ticdc_selftest"]
    assert list(found) == [*(f"ticdc_feed_{feed}" for feed in FEEDS), *others]
    bundle = load_bundle(ROOT, "prod", UNUSED)
    chain = [task.task_key for task in read_job(bundle, "ticdc_feed").tasks]
    for feed in FEEDS:
        job = found[f"ticdc_feed_{feed}"]
        assert [task["task_key"] for task in job["tasks"]] == chain
        assert job["parameters"][0] == {"name": "feed", "default": feed}
        assert job["schedule"] == bundle.resource("jobs", "ticdc_lake").definition["schedule"]
        assert job["email_notifications"]["on_failure"] == ["ops@example.com"]
        assert job["max_concurrent_runs"] == 1
    maintained = found["ticdc_maintenance"]["tasks"]
    assert [task["notebook_task"]["base_parameters"]["feed"] for task in maintained] == FEEDS
    assert len({task["task_key"] for task in maintained}) == len(FEEDS)


def test_jobs_without_a_feed_are_left_out() -> None:
    """Where all feeds are in the loop."""
    found = workflows(feeds='["crm"]', scheduled_feeds="[]", loop_feeds='["crm"]')
    assert list(found) == ["ticdc_loop", "ticdc_ops", "ticdc_selftest"]


def test_feeds_and_clusters_follow_the_variables() -> None:
    found = workflows(feeds='["crm"]', scheduled_feeds='["crm"]', node_type_id="Standard_D4ds_v5")
    assert next(iter(found)) == "ticdc_feed_crm"
    assert found["ticdc_loop"]["job_clusters"][0]["new_cluster"]["node_type_id"] == "Standard_D4ds_v5"


def test_paths_are_those_of_the_workspace_and_every_key_is_known_to_dbx() -> None:
    text = deployment_text(ROOT, "/Repos/me/lake/", {})
    assert str(ROOT) not in text
    for word in ("for_each_task", "run_job_task", "libraries", "{{input}}", "${", "*id0", ".py"):
        assert word not in text
    for job in workflows().values():
        for task in job["tasks"]:
            path = task["notebook_task"]["notebook_path"]
            assert path.startswith("/Repos/me/lake/notebooks/")
            assert (ROOT / f"{path.removeprefix('/Repos/me/lake/')}.py").is_file()


@pytest.mark.parametrize("workspace", ["/Repos/me/lake", "/Workspace/Repos/me/lake", "/Workspace/Repos/me/lake/"])
def test_feed_files_are_where_python_opens_the_workspace(workspace: str) -> None:
    document = yaml.safe_load(deployment_text(ROOT, workspace, {}))
    for job in document["environments"]["default"]["workflows"]:
        defaults = {each["name"]: each["default"] for each in job["parameters"]}
        if "feed" in defaults or "feeds" in defaults:
            assert defaults["feeds_root"] == "/Workspace/Repos/me/lake/resources/feeds"
        for task in job["tasks"]:
            assert task["notebook_task"]["notebook_path"].startswith(f"{workspace.rstrip('/')}/notebooks/")


def test_a_relative_folder_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--workspace: expected an absolute path such as /Repos/.*, found 'Repos'"):
        deployment_text(ROOT, "Repos", {})


@pytest.mark.parametrize("feeds", ["crm", "[1]", '{"crm": 1}'])
def test_feeds_that_are_no_list_are_refused(feeds: str) -> None:
    with pytest.raises(ConfigError, match=r"ticdc_lake: feeds: inputs: expected a JSON list of texts, found"):
        deployment_text(ROOT, "/Repos", {"feeds": feeds, "scheduled_feeds": feeds})


def test_the_command_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("databricks.yml", "resources", "notebooks"):
        (tmp_path / name).symlink_to(ROOT / name)
    assert main(["dbx", "--project", str(tmp_path)]) == 0
    assert (tmp_path / FILE).read_text(encoding="utf-8") == deployment_text(tmp_path, WORKSPACE, {})
    assert capsys.readouterr().out.startswith(f"{FILE}: written")


def test_the_wheel_does_not_depend_on_dbx() -> None:
    assert "dbx" not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
