"""The package as pip installs it: what it says it needs, and what it does where a part of that is missing."""

from __future__ import annotations

import ast
import itertools
import re
import statistics
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import ticdc_lakehouse
from ticdc_local.cli import LOCAL

PROJECT = Path(__file__).parents[1]
OWN = {"ticdc_codec", "ticdc_lakehouse", "ticdc_local", "ticdc_testkit"}
CLUSTER = ("ticdc_codec", "ticdc_lakehouse", "ticdc_local/cli", "ticdc_testkit")
"""What runs without the extra ``local``: the codec, the lakehouse and the command line."""
OF_THE_CLUSTER = {"pyspark", "delta"}
"""What a Databricks runtime has, and the extra ``local`` brings elsewhere."""


def _imported(path: Path) -> set[str]:
    """The modules that a file imports from outside, but for those that only a type checker reads."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    nodes = set(ast.walk(tree)) - {inner for node in typing for inner in ast.walk(node)}
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - OWN


def test_what_is_imported_is_declared_and_no_more() -> None:
    declared = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    paths = [path for part in CLUSTER for path in (PROJECT / "src" / part).rglob("*.py")]
    imported = {module for path in paths for module in _imported(path)} - OF_THE_CLUSTER - LOCAL
    found = {name.lower() for module in imported for name in packages_distributions()[module]}
    assert found == {requirement.partition(">")[0] for requirement in declared}


@pytest.mark.parametrize("package", ["ticdc_codec", "ticdc_lakehouse", "ticdc_local", "ticdc_testkit"])
def test_every_module_is_on_a_floor(package: str) -> None:
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [layer for contract in contracts if contract["type"] == "layers" for layer in contract["layers"]]
    on_a_floor = {name for layer in layers for name in re.findall(r"[\w.]+", layer)}
    paths = [path for path in (PROJECT / "src" / package).iterdir() if path.suffix in ("", ".py")]
    modules = {path.stem for path in paths if not path.name.startswith("__")}
    assert {f"{package}.{module}" for module in modules} <= on_a_floor


def test_functions_and_files_stay_small() -> None:
    """docs/architecture.md, Floors."""
    texts = {path: path.read_text(encoding="utf-8") for path in (PROJECT / "src").rglob("*.py")}
    lines = {
        f"{path}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None
    }
    assert {name: count for name, count in lines.items() if count > 40} == {}
    assert statistics.median(lines.values()) <= 6
    assert {path.name: text.count("\n") for path, text in texts.items() if text.count("\n") > 420} == {}


def test_every_public_name_is_there() -> None:
    assert [getattr(ticdc_lakehouse, name).__name__ for name in ticdc_lakehouse.__all__] == ticdc_lakehouse.__all__
    with pytest.raises(AttributeError, match="no attribute 'decoded'"):
        ticdc_lakehouse.decoded  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("command", "missing"), [*itertools.product(["status", "doctor"], ["pyspark", "py4j"]), ("inspect", "rich")]
)
def test_a_command_that_needs_more_says_what_to_install(command: str, missing: str) -> None:
    script = f"import sys; sys.modules[{missing!r}] = None; from ticdc_local.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", script, command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"ticdc-lake {command}: {missing}" in done.stderr
    assert "pip install 'ticdc-lakehouse[local]'" in done.stderr


def test_the_command_line_starts_without_pandas() -> None:
    """pyarrow imports it with the first value that it makes of Python's, which no import may do."""
    code = "import sys, ticdc_local.cli; assert 'pandas' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
