"""What ``databricks bundle init ./template`` writes: a feed file that is right, and the bundle that carries the feed.

The CLI renders Go templates; here the few forms that these templates have are rendered, and any other is refused.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bundle_files import OF_A_DEPLOYMENT, ROOT

from ticdc_lakehouse.config.feed import load_feed
from ticdc_local.cli import main
from ticdc_local.runner.bundle import load_bundle
from ticdc_local.runner.graph import read_job
from ticdc_local.runner.yaml_file import read_yaml

TEMPLATE = ROOT / "template"
PROPERTIES: dict[str, Any] = json.loads((TEMPLATE / "databricks_template_schema.json").read_text())["properties"]
_IF = re.compile(
    r'(?P<trim>\s*)\{\{(?P<dash>-?) ?if eq \.(?P<name>\w+) "(?P<value>[^"]*)"\}\}(?P<yes>.*?)'
    r"(?:\s*\{\{- else\}\}(?P<no>.*?))?\s*\{\{-? ?end\}\}",
    re.DOTALL,
)


def answers(**given: str) -> dict[str, str]:
    """A person's answers; where one gives none, the default."""
    found: dict[str, str] = {}
    for name, described in sorted(PROPERTIES.items(), key=lambda item: item[1]["order"]):
        found[name] = given.get(name, described["default"]).replace("{{.feed}}", found.get("feed", ""))
        assert re.fullmatch(described.get("pattern", ".*"), found[name]), name
        assert found[name] in described.get("enum", [found[name]]), name
    assert given.keys() <= found.keys()
    return found


def rendered(text: str, values: dict[str, str]) -> str:
    def branch(found: re.Match[str]) -> str:
        chosen = found["yes"] if values[found["name"]] == found["value"] else found["no"] or ""
        return chosen if found["dash"] else found["trim"] + chosen

    text = re.sub(r"\{\{\.(\w+)\}\}", lambda found: values[found[1]], _IF.sub(branch, text))
    assert "{{" not in text, text
    return text


def initialised(folder: Path, **given: str) -> None:
    """Writes the project, as it is without a feed of its own, and what the template adds."""
    values = answers(**given)
    written = shutil.ignore_patterns(f"{values['feed']}.yml", OF_A_DEPLOYMENT)
    shutil.copy(ROOT / "databricks.yml", folder)
    for name in ("resources", "notebooks"):
        shutil.copytree(ROOT / name, folder / name, ignore=written)
    add_template(folder, values)


def add_template(folder: Path, values: dict[str, str]) -> None:
    """Writes into a project what the template adds."""
    for file in (TEMPLATE / "template").rglob("*.yml.tmpl"):
        name = rendered(str(file.relative_to(TEMPLATE / "template")), values).removesuffix(".tmpl")
        assert not (folder / name).exists(), "the CLI would refuse to write it"
        (folder / name).write_text(rendered(file.read_text(), values))


@pytest.mark.parametrize(
    ("protocol", "security"),
    list(itertools.product(PROPERTIES["protocol"]["enum"], PROPERTIES["security"]["enum"])),
)
def test_the_feed_file_is_right(tmp_path: Path, protocol: str, security: str) -> None:
    initialised(tmp_path, feed="crm", protocol=protocol, security=security, brokers="a:9092,b:9093", topic="crm.x")
    feed = load_feed(tmp_path / "resources" / "feeds" / "crm.yml")
    assert feed.protocol == protocol.replace("-", "_")
    assert feed.bootstrap_servers == ("a:9092", "b:9093")
    assert feed.topics == ("crm.x",)
    assert bool(feed.security) == (security == "sasl-scram")


@pytest.mark.parametrize("topic", ["2026", "1e3", "on", "null"])
def test_a_topic_that_is_a_number_or_a_word_of_yaml(tmp_path: Path, topic: str) -> None:
    initialised(tmp_path, feed="crm", topic=topic)
    assert load_feed(tmp_path / "resources" / "feeds" / "crm.yml").topics == (topic,)


@pytest.mark.parametrize("catalog", ["lake", "2026", "no"])
def test_the_bundle_carries_the_feed_in_its_catalog(tmp_path: Path, catalog: str) -> None:
    initialised(tmp_path, feed="crm", catalog=catalog)
    for target in read_yaml(tmp_path / "databricks.yml")["targets"]:
        given = dict.fromkeys(("service_principal", "analysts", "operators", "warehouse_id"), "x")
        bundle = load_bundle(tmp_path, target, given)
        assert (bundle.variables["feeds"], read_job(bundle, "ticdc_lake").parameters["catalog"]) == ('["crm"]', catalog)


@pytest.mark.parametrize(
    "variables",
    [
        "{alert_emails: [data-oncall@example.com]}",
        "{scheduled_feeds: '[]', loop_feeds: '[\"crm\"]', loop_pause_status: UNPAUSED}",
    ],
    ids=["mails", "loop"],
)
@pytest.mark.long
def test_the_tests_hold_for_a_project_with_its_own_feed_catalog_and_machines(tmp_path: Path, variables: str) -> None:
    """The sample of a deployment from CI runs them first. Their other folders make projects of their own."""
    folder = tmp_path / "own"
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    add_template(folder, answers(feed="crm", catalog="acme"))
    file = folder / "databricks.yml"
    text = file.read_text().replace("default: i3.xlarge", "default: Standard_D4ds_v5")
    prod = "  prod: &prod\n"
    file.write_text(text.replace(prod, f"{prod}    variables: {variables}\n"))
    assert main(["dbx", "--project", str(folder)]) == 0
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/bundle",
        "tests/cli/test_arguments.py",
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_list_of_feeds_is_written_only_for_the_first_feed() -> None:
    preamble = (TEMPLATE / "template" / "__preamble.tmpl").read_text()
    assert preamble.startswith('{{skip "__preamble"}}'), "else the CLI writes it, empty"
    (skipped,) = re.findall(r'\{\{if eq \.only_feed "no"\}\}\{\{skip "([^"]+)"\}\}\{\{end\}\}', preamble)
    assert (TEMPLATE / "template" / f"{skipped}.tmpl").is_file()
    assert [name for name, each in PROPERTIES.items() if "skip_prompt_if" in each] == ["catalog"], "asked in vain"
    assert PROPERTIES["catalog"]["skip_prompt_if"] == {"properties": {"only_feed": {"const": "no"}}}
