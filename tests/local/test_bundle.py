"""The bundle is read whole or refused with file and key."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from ticdc_codec.errors import ConfigError
from ticdc_local.runner.bundle import Bundle, load_bundle

MAIN: dict[str, Any] = {
    "bundle": {"name": "b"},
    "include": ["resources/*.yml"],
    "variables": {
        "catalog": {"default": "main"},
        "mails": {"type": "complex", "default": ["a@b"]},
        "whole": {"default": "${var.catalog}.x"},
        "count": {"default": 3},
    },
    "targets": {
        "dev": {"mode": "development", "default": True, "variables": {"catalog": "dev_catalog"}},
        "prod": {"mode": "production", "workspace": {"root_path": "/W/${bundle.name}/${bundle.target}"}},
    },
}


def bundle_of(folder: Path, main: dict[str, Any], resources: dict[str, Any], target: str | None = None) -> Bundle:
    (folder / "resources").mkdir(exist_ok=True)
    (folder / "databricks.yml").write_text(yaml.safe_dump(main))
    (folder / "resources" / "r.yml").write_text(yaml.safe_dump({"resources": resources}))
    return load_bundle(folder, target)


def schema(name: object) -> dict[str, Any]:
    return {"schemas": {"s": {"name": name, "catalog_name": "c"}}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${var.catalog}", "dev_catalog"),
        ("a_${var.catalog}_z", "a_dev_catalog_z"),
        ("${var.whole}", "dev_catalog.x"),
        ("${var.mails}", ["a@b"]),
        ("${var.count}", 3),
        ("n${var.count}", "n3"),
        ("${bundle.name}-${bundle.target}", "b-dev"),
        ("${resources.schemas.s.catalog_name}", "c"),
        ("${resources.schemas.s.id}", "s"),
        ("{{job.parameters.x}}", "{{job.parameters.x}}"),
    ],
)
def test_references_are_resolved(tmp_path: Path, text: str, expected: object) -> None:
    bundle = bundle_of(tmp_path, MAIN, schema(text))
    assert bundle.resource("schemas", "s").definition["name"] == expected


def test_the_project_folder_is_the_workspace(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, MAIN, schema("${workspace.file_path}/feeds"))
    assert bundle.resource("schemas", "s").definition["name"] == f"{tmp_path}/feeds"


def test_given_variables_go_before_those_of_the_target(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, MAIN, schema("${var.catalog}"), "prod")
    assert bundle.resource("schemas", "s").definition["name"] == "main"
    assert bundle.target == "prod"
    assert load_bundle(tmp_path, None, {"catalog": "given"}).variables["whole"] == "given.x"


def test_a_bundle_may_include_nothing(tmp_path: Path) -> None:
    assert bundle_of(tmp_path, MAIN | {"include": []}, {}).resources == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${var.nothing}", r"resources/r.yml: resources.schemas.s.name: \$\{var.nothing\} is not known"),
        ("${resources.schemas.other.name}", "no 'other' among s"),
        ("${workspace.host}", "no 'host'"),
        ("${nothing.at.all}", "no 'nothing'"),
        ("a ${var.mails}", "is a list and cannot stand inside a text"),
        ("${resources.schemas.s.name}", "in a circle: resources.schemas.s.name -> resources.schemas.s.name"),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        bundle_of(tmp_path, MAIN, schema(text))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scripts": {}}, "databricks.yml.scripts: the local runner does not support this"),
        ({"resources": {}}, "databricks.yml.resources: the local runner does not support this"),
        ({"include": ["nothing/*.yml"]}, "include: 'nothing/.*' matches no file"),
        ({"include": "resources/*.yml"}, "databricks.yml.include: Expected `array`, got `str`"),
        ({"include": [1]}, r"databricks.yml.include\[0\]: Expected `str`, got `int`"),
        ({"include": ["a**"]}, "include: expected patterns of files in this folder: Invalid pattern"),
        ({"include": [""]}, "include: expected patterns of files in this folder: Unacceptable pattern"),
        ({"include": ["/etc/*.yml"]}, "include: expected patterns of files in this folder: Non-relative patterns"),
        ({"bundle": {"name": 7}}, "databricks.yml.bundle.name: Expected `str`, got `int`"),
        ({"bundle": {"name": "b", "deployment": {}}}, "databricks.yml.bundle.deployment: the local runner does not"),
        ({"targets": {"a": {}, "b": {}}}, "expected one with default: true"),
        ({"targets": {"a": {"default": True, "sync": {}}}}, "targets.a.sync: the local runner does not"),
        ({"targets": []}, "databricks.yml.targets: Expected `object`, got `array`"),
        ({"targets": {"dev": "abc"}}, "targets.dev: Expected `object`, got `str`"),
        ({"variables": {"catalog": {"default": "c"}, "v": "abc"}}, "variables.v: Expected `object`, got `str`"),
        ({"variables": {"catalog": {}, "v": {"lookup": {"cluster": "c"}}}}, "variables.v.lookup: the local runner"),
        ({"variables": {"catalog": {}, "v": {}}}, "variables.v: has no value"),
        ({"variables": {"catalog": {}, "v": {"default": []}}}, "variables.v: lists and mappings"),
        ({"variables": {"catalog": {}, "v": {"type": "complex", "default": "a"}}}, "variables.v: lists and mappings"),
        ({"variables": {"catalog": {}, "v": {"type": "text", "default": "a"}}}, "variables.v.type: Invalid enum value"),
        ({"variables": {}}, "variable 'catalog', which is not declared"),
    ],
)
def test_what_the_runner_does_not_support_is_refused_by_name(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        bundle_of(tmp_path, MAIN | change, schema("s"))


def test_target_adds_keys_to_resources(tmp_path: Path) -> None:
    grants = [{"principal": "${var.catalog}", "privileges": ["SELECT"]}]
    targets = {"dev": {"default": True}, "prod": {"resources": {"schemas": {"s": {"grants": grants}}}}}
    bundle = bundle_of(tmp_path, MAIN | {"targets": targets}, schema("s"), "prod")
    assert bundle.resource("schemas", "s").definition["grants"] == [{"principal": "main", "privileges": ["SELECT"]}]
    assert "grants" not in load_bundle(tmp_path, "dev").resource("schemas", "s").definition


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ({"schemas": {"s": {"name": "t"}}}, "targets.dev.resources.schemas.s: expected new keys, found name"),
        ({"schemas": {"other": {}}}, "targets.dev.resources.schemas.other: no such resource"),
    ],
)
def test_target_that_replaces_a_key_or_names_no_resource_is_refused(
    tmp_path: Path, added: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        bundle_of(tmp_path, MAIN | {"targets": {"dev": {"default": True, "resources": added}}}, schema("s"))


def test_an_included_file_adds_to_a_targets_tasks(tmp_path: Path) -> None:
    nested = {"task_key": "each", "for_each_task": {"inputs": "[]", "task": {"task_key": "inner"}}}
    jobs = {"jobs": {"j": {"name": "j", "tasks": [{"task_key": "a"}, nested]}}}
    added = [
        {"task_key": "each", "for_each_task": {"task": {"job_cluster_key": "main"}}},
        {"task_key": "a", "libraries": [{"whl": "x.whl"}]},
    ]
    compute = {"targets": {"prod": {"resources": {"jobs": {"j": {"job_clusters": [], "tasks": added}}}}}}
    (tmp_path / "compute.yml").write_text(yaml.safe_dump(compute))
    main = MAIN | {"include": ["resources/*.yml", "compute.yml"]}
    prod = bundle_of(tmp_path, main, jobs, "prod").resource("jobs", "j")
    assert prod.file.name == "r.yml"
    assert prod.definition == {
        "name": "j",
        "job_clusters": [],
        "tasks": [
            {"task_key": "a", "libraries": [{"whl": "x.whl"}]},
            {
                "task_key": "each",
                "for_each_task": {"inputs": "[]", "task": {"task_key": "inner", "job_cluster_key": "main"}},
            },
        ],
    }
    assert load_bundle(tmp_path, "dev").resource("jobs", "j").definition == jobs["jobs"]["j"]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"task_key": "b"}, r"tasks\[b\]: no such task"),
        ({"job_cluster_key": "main"}, "tasks: Object missing required field `task_key`"),
        ({"task_key": "a", "max_retries": 2}, r"tasks\[a\]: expected new keys, found max_retries"),
    ],
)
def test_a_task_that_cannot_be_added_to_is_refused(tmp_path: Path, task: dict[str, Any], message: str) -> None:
    jobs = {"jobs": {"j": {"name": "j", "tasks": [{"task_key": "a", "max_retries": 1}]}}}
    added = {"dev": {"default": True, "resources": {"jobs": {"j": {"tasks": [task]}}}}}
    with pytest.raises(ConfigError, match=message):
        bundle_of(tmp_path, MAIN | {"targets": added}, jobs)


def test_unknown_kinds_targets_and_resources_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="resources: Invalid enum value 'pipelines'"):
        bundle_of(tmp_path, MAIN, {"pipelines": {}})
    with pytest.raises(ConfigError, match="no target 'x'; there are: dev, prod"):
        bundle_of(tmp_path, MAIN, schema("s"), "x")
    with pytest.raises(ConfigError, match="no schemas named 'x'; expected one of s"):
        bundle_of(tmp_path, MAIN, schema("s")).resource("schemas", "x")


def test_a_key_may_stand_once(tmp_path: Path) -> None:
    bundle_of(tmp_path, MAIN, schema("s"))
    (tmp_path / "resources" / "q.yml").write_text(yaml.safe_dump({"resources": {"volumes": {"s": {}}}}))
    with pytest.raises(ConfigError, match="has a resource of this key too"):
        load_bundle(tmp_path)
    (tmp_path / "resources" / "q.yml").write_text("resources:\n  schemas: {}\n  schemas: {}\n")
    with pytest.raises(ConfigError, match=r"q.yml: resources.schemas: repeated key \(line 3\)"):
        load_bundle(tmp_path)


def test_folder_without_a_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_bundle(tmp_path)
