"""What the commands take, and what they say to a wrong argument; without Spark."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from ticdc_lakehouse.cli import COMMANDS, main, place
from ticdc_lakehouse.cli.place import lake_root, named_values, project_root
from ticdc_lakehouse.errors import ConfigError

PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "bench"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main([command, "--help"])
    assert ending.value.code == 0
    assert f"usage: ticdc-lake {command}" in capsys.readouterr().out


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["decoed"])
    assert ending.value.code == 2
    assert "invalid choice: 'decoed'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "no_job"], "no jobs named 'no_job'; there are: ticdc_lake"),
        (["run", "--param", "until_tso"], "--param: expected name=value, found 'until_tso'"),
        (["run", "--feed", "nope"], "nope.yml"),
        (["run", "--param", "feeds=shop_craft"], "parameter feeds: expected a JSON list of names, found 'shop_craft'"),
        (["run", "a.py", "--feed", "a", "--feed", "b"], "--feed: a notebook takes one, found a, b"),
        (["status"], "expected a lake, found none"),
        (["sql"], "expected a lake, found none"),
        (["quarantine", "list"], "expected a lake, found none"),
        (
            ["quarantine", "list", "--feed", "nope"],
            "--feed: expected one of shop_canal, shop_craft, shop_debezium, shop_open, shop_simple, found 'nope'",
        ),
        (["quarantine", "list", "--at", "shop/1"], "--at: expected topic/partition/offset, found 'shop/1'"),
        (["quarantine", "dismiss", "--feed", "shop_craft"], "--reason: expected a text"),
        (["quarantine", "dismiss", "--feed", "shop_craft", "--reason", " "], "--reason: expected a text"),
        (["demo", "--steps", "0"], "--steps: expected 1 or more, found 0"),
    ],
)
def test_a_wrong_argument_is_one_line_and_code_2(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*arguments, "--project", str(PROJECT), "--lake", str(tmp_path / "none")])
    told = capsys.readouterr().err
    assert (code, told.count("\n")) == (2, 1)
    assert said in told
    assert told.startswith(f"ticdc-lake {arguments[0]}: ")
    assert list(tmp_path.iterdir()) == []


def test_every_mistake_of_every_feed_is_named_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.yml").write_text("protocol: crafty\ntime_zone: UTC\n")
    (tmp_path / "two.yml").write_text("protocol: craft\ntime_zone: Nowhere\n")
    given = ["--param", 'feeds=["one","two"]', "--param", f"feeds_root={tmp_path}"]
    assert main(["run", "--project", str(PROJECT), "--lake", str(tmp_path / "lake"), *given]) == 2
    told = capsys.readouterr().err
    assert "one.yml: protocol: expected one of" in told
    assert "two.yml: time_zone" in told
    assert not (tmp_path / "lake").exists()


def test_a_folder_without_databricks_yml_is_no_project(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected a folder with databricks\.yml"):
        project_root(argparse.Namespace(project=tmp_path))


def test_the_lake_is_in_the_project_if_no_other_is_named(tmp_path: Path) -> None:
    assert lake_root(argparse.Namespace(project=tmp_path, lake=None)) == tmp_path / place.LAKE
    assert lake_root(argparse.Namespace(project=tmp_path, lake=Path("/l"))) == Path("/l")


def test_a_value_may_hold_an_equals_sign() -> None:
    assert named_values(["a=b=c", "d="], "--param") == {"a": "b=c", "d": ""}
