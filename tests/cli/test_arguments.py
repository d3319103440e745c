"""What the commands take, and what they say to a wrong argument; without Spark."""

from __future__ import annotations

import argparse
import re
import shlex
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
from delta_lake import write

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Layer
from ticdc_local.broker import free_ports
from ticdc_local.cli import COMMANDS, arguments, full_parser, main, parsed
from ticdc_local.cli.arguments import in_same_place, lake_root, named_values, project_root, seconds
from ticdc_local.cli.run import notebook_named
from ticdc_local.delta_reader import DeltaReader
from ticdc_local.session import local_session, own_folder

PROJECT = Path(__file__).parents[2]
TABLES = ("status", "quarantine", "sql", "doctor", "verify-source", "verify-stream", "load", "maintain")
"""Commands whose result is a table."""
FEEDS = ", ".join(sorted(path.stem for path in (PROJECT / "resources" / "feeds").glob("*.yml")))
BUNDLE = "bundle: {name: b}\ntargets: {dev: {default: true}}\ninclude: [j.yml]\n"
JOB_WITHOUT_PARAMETERS = """
resources:
  jobs:
    j: {name: j, tasks: [{task_key: t, for_each_task: {inputs: "[]", task: {task_key: n, run_job_task: {job_id: k}}}}]}
    k: {name: k, tasks: [{task_key: t, notebook_task: {notebook_path: n.py}}]}
"""


@pytest.mark.parametrize("command", [*COMMANDS])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main([command, "--help"])
    assert ending.value.code == 0
    shown = capsys.readouterr().out
    assert f"usage: ticdc-lake {command}" in shown
    assert shown.index("examples:\n  ") < shown.index("exit codes:\n  0 ")
    for flag in ("--quiet", "--verbose", "--log-level"):
        assert flag in shown


@pytest.mark.parametrize("command", [*COMMANDS])
def test_the_examples_of_a_command_are_understood(command: str) -> None:
    examples: str = import_module(f"ticdc_local.cli.{command.replace('-', '_')}").EXAMPLES
    lines = [part.strip() for line in examples.splitlines() for part in re.split(r"[|&;]|<\(|\)|\s{4,}", line)]
    found = [re.sub(r" [<>] .*", "", line) for line in lines if line.startswith("ticdc-lake ")]
    assert any(line.startswith(f"ticdc-lake {command}") for line in found)
    for line in found:
        assert parsed(shlex.split(line)[1:]).command == line.split()[1]


@pytest.mark.parametrize("place", [[], ["--lake", "a lake"], ["--project", "p", "--lake", "l"]])
def test_the_next_command_is_for_the_same_project_and_lake(place: list[str]) -> None:
    command = in_same_place(parsed(["status", *place]), "ticdc-lake report")
    assert shlex.split(command) == ["ticdc-lake", "report", *place]


@pytest.mark.parametrize("command", [(), *((command,) for command in COMMANDS)])
def test_the_version_is_that_of_the_package(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main([*command, "--version"])
    assert (ending.value.code, capsys.readouterr().out) == (0, f"ticdc-lake {version('ticdc-lakehouse')}\n")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ("table", "pause", "a.b", "--feed", "f", "--reason", "r"),
            "action: expected one of skip-ddl, resume, found 'pause'",
        ),
        (("sql", "--format", "xml"), "--format: expected one of table, csv, json, markdown, found 'xml'"),
        (("doctor", "--log-format", "xml"), "--log-format: expected one of text, json, found 'xml'"),
        (
            ("generate", "--workload", "shop", "--protocol", "craft", "--file", "-", "--dispatch", "rows"),
            "--dispatch: expected one of index-value, table, found 'rows'",
        ),
    ],
)
def test_a_word_that_is_none_of_those_expected(
    given: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(given)
    assert f": argument {said}\n" in capsys.readouterr().err


@pytest.mark.parametrize("command", TABLES)
def test_what_prints_a_table_prints_json_too(command: str) -> None:
    [action] = [each for each in command_parser(command)._actions if "--json" in each.option_strings]
    assert action.help


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_has_a_help(command: str) -> None:
    assert [action.dest for action in command_parser(command)._actions if not action.help] == []


def command_parser(command: str) -> argparse.ArgumentParser:
    [choices] = [each for each in full_parser([command])._actions if isinstance(each, argparse._SubParsersAction)]
    parser: argparse.ArgumentParser = choices.choices[command]
    return parser


@pytest.mark.parametrize(
    ("given", "command", "said"),
    [
        (["decoed"], "", "no such command: decoed; did you mean decode?"),
        (["xyzzy"], "", "no such command: xyzzy; expected one of completion, dbx, decode, "),
        (["--lake", "x", "status"], "", "expected COMMAND first, found --lake: a command's arguments come after it"),
        (["--quiet", "status"], "", "expected COMMAND first, found --quiet: a command's arguments come after it"),
        (["status", "--fed", "x"], " status", "no such argument: --fed x; did you mean --feed?"),
        (["status", "--chek=1"], " status", "no such argument: --chek=1; did you mean --check?"),
        (["status", "crm"], " status", "no such argument: crm; expected one of --check, --feed, "),
        (["quarantine", "lst"], " quarantine", "argument action: invalid choice: 'lst' (choose from "),
        (["run", "--every", "soon"], " run", "argument --every: expected a time such as 10s, 5m or 1h, "),
        (["demo", "--steps", "0"], " demo", "argument --steps: expected a whole number, 1 or more, found '0'"),
        (["load", "", "--feed", "x"], " load", "argument folder: expected a path, found none"),
        (["status", "--lake", ""], " status", "argument --lake: expected a path, found none"),
        (["verify-source", "--dsn", ""], " verify-source", "argument --dsn: expected a value, found none"),
        (["generate", "--topic", " "], " generate", "argument --topic: expected a value, found none"),
        (
            ["verify-stream", "x", "--ddl-time-zone", "Shanghai"],
            " verify-stream",
            "argument --ddl-time-zone: expected ",
        ),
        (["verify-stream", "x", "--every", "-1"], " verify-stream", "argument --every: expected "),
        ([], "", "the following arguments are required: COMMAND"),
    ],
)
def test_a_wrong_command_line_is_reported_in_two_lines(
    given: list[str], command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        main(given)
    assert ending.value.code == 2
    first, hint = capsys.readouterr().err.splitlines()
    assert first.startswith(f"ticdc-lake{command}: {said}")
    assert hint == f"ticdc-lake{command} --help lists its arguments"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "no_job"], "no jobs named 'no_job'; expected one of ticdc_feed, ticdc_lake, ticdc_loop, "),
        (["run", "ticdc_lak"], "no jobs named 'ticdc_lak'; did you mean ticdc_lake?"),
        (["feed", "new", "Bad-Name"], "NAME: expected at most 40 letters a-z, digits and _, beginning with a letter, "),
        (
            ["run", "ticdc_lake", "--every", "5s"],
            "--every runs the job ticdc_loop; expected no other, found ticdc_lake",
        ),
        (["run", "--param", "until_tso"], "--param: expected name=value, found 'until_tso'"),
        (["run", "--feed", "nope"], f"nope.yml: no such feed; expected one of {FEEDS}"),
        (["run", "--feed", "shop_craf"], "shop_craf.yml: no such feed; did you mean shop_craft?"),
        (["run", "--feed", "shop_open", "--feed", "shop_open"], "parameter feeds: shop_open is listed 2 times"),
        (["run", "ticdc_feed"], "--feed: this job takes one, found none"),
        (["run", "ticdc_selftest", "--feed", "a"], "--feed: this job takes none, found a"),
        (["run", ""], "no jobs named ''; expected one of ticdc_feed, ticdc_lake, "),
        (["run", "ticdc_feed", "--feed", "nope"], f"nope.yml: no such feed; expected one of {FEEDS}"),
        (["run", "ticdc_feed", "--feed", "a", "--feed", "b"], "--feed: this job takes one, found a, b"),
        (["run", "nope.py"], "nope.py: there is no such notebook"),
        (["run", "--param", "feeds=shop_craft"], "parameter feeds: expected a JSON list of names, found 'shop_craft'"),
        (["run", "a.py", "--feed", "a", "--feed", "b"], "--feed: a notebook takes one, found a, b"),
        (["status"], "expected a lake, found none"),
        (["sql"], "expected a lake, found none"),
        (["quarantine", "list"], "expected a lake, found none"),
        (["quarantine", "list", "--feed", "nope"], f"nope.yml: no such feed; expected one of {FEEDS}"),
        (["quarantine", "list", "--at", "shop/1"], "expected topic/partition/offset, or all alone, found 'shop/1'"),
        (
            ["quarantine", "dismiss", "--feed", "shop_craft", "--reason", "no"],
            "expected topic/partition/offset of each",
        ),
        (["quarantine", "dismiss", "--feed", "shop_craft", "--at", "all"], "--reason: expected a text"),
        (
            ["quarantine", "dismiss", "--feed", "shop_craft", "--at", "all", "--reason", " "],
            "--reason: expected a text",
        ),
        (
            ["quarantine", "dismiss", "--dry-run", "--feed", "shop_craft", "--at", "all", "--reason", "no"],
            "--dry-run: `quarantine dismiss` does not take it",
        ),
        (["quarantine", "list", "--explain"], "--explain: `quarantine list` does not take it"),
        (["quarantine", "show", "--at", "all", "--json"], "--json: `quarantine show` does not take it"),
        (["quarantine", "replay", "--json"], "--json: `quarantine replay` takes it beside --dry-run"),
        (["feed", "check", "shop_craft", "--topic", "t"], "--topic: `feed check` does not take it: the"),
        (["feed", "check", "shop_craft", "--force"], "--force: `feed check` does not take it: the feed's file says it"),
        (["status", "--max-age", "0s"], "--max-age: expected beside --check, --json or --watch"),
        (["status", "--watch", "--json"], "--json: expected without --watch, which is for people"),
        (["status", "--check", "--watch", "5s"], "--check: expected without --watch, which is for people"),
        (
            ["run", "notebooks/gold/as_of.py", "--param", "tos=1"],
            "notebooks/gold/as_of.py: no parameter 'tos'; did you mean tso?",
        ),
        (
            ["run", "notebooks/ops/selftest.py", "--feed", "shop_craft"],
            "notebooks/ops/selftest.py: no parameter 'feed'; expected one of bronze_schema, catalog, ",
        ),
        (
            ["run", "notebooks/gold/as_of.py", "--every", "5s"],
            "--every runs the job ticdc_loop; expected no other, found notebooks/gold/as_of.py",
        ),
        (["table", "resume", "shop.t", "--feed", "nope", "--reason", "no"], "nope.yml: no such feed"),
    ],
)
def test_a_wrong_argument_is_one_line_and_code_2(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*arguments, "--project", str(PROJECT), "--lake", str(tmp_path / "none")])
    stderr = capsys.readouterr().err
    assert (code, stderr.count("\n")) == (2, 1)
    assert said in stderr
    assert stderr.startswith(f"ticdc-lake {arguments[0]}: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["status", "report", "sql"])
def test_a_command_in_a_folder_that_is_no_project_says_so(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command]) == 2
    expected = f"ticdc-lake {command}: {tmp_path}: expected a folder with databricks.yml; name it with --project\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("given", ["-1", "nan", "inf", "soon", "1 d", "25h"])
def test_a_wait_is_a_number_of_seconds_minutes_or_hours(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", f"--retry-wait={given}"])
    assert f"argument --retry-wait: expected a time such as 10s, 5m or 1h, of a day at most, found '{given}'" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(("given", "expected"), [("30m", 1800), ("2d", 172_800), ("40d", 3_456_000)])
def test_an_age_may_be_of_days_as_in_a_feed_file(given: str, expected: float) -> None:
    assert parsed(["status", "--check", "--max-age", given]).max_age == expected


@pytest.mark.parametrize(("given", "expected"), [("10", 10), ("0.5s", 0.5), ("2m", 120), ("24h", 86400)])
def test_a_time_has_a_unit_or_is_in_seconds(given: str, expected: float) -> None:
    assert seconds(given) == expected


def test_a_lake_that_is_a_file_is_reported_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("")
    with pytest.raises(ConfigError, match="lake: expected a folder that can be written: Not a directory"):
        local_session(tmp_path / "lake")


def test_spark_works_elsewhere_where_the_lake_can_only_be_read(tmp_path: Path) -> None:
    assert own_folder(tmp_path / "lake") == tmp_path / "lake"
    assert own_folder(Path("/proc")) not in (Path("/proc"), tmp_path / "lake")


def test_every_mistake_of_every_feed_is_named_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.yml").write_text("protocol: crafty\ntime_zone: UTC\n")
    (tmp_path / "two.yml").write_text("protocol: craft\ntime_zone: Nowhere\n")
    given = ["--param", 'feeds=["one","two"]', "--param", f"feeds_root={tmp_path}"]
    assert main(["run", "--project", str(PROJECT), "--lake", str(tmp_path / "lake"), *given]) == 2
    stderr = capsys.readouterr().err
    assert "one.yml: protocol: expected one of" in stderr
    assert "two.yml: time_zone" in stderr
    assert not (tmp_path / "lake").exists()


def test_a_parameter_that_the_job_lacks_is_named_before_brokers_are_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--project", str(PROJECT), "--lake", str(tmp_path / "lake")]
    assert main(["run", *place, "--feed", "shop_craft", "--param", "untl_tso=1"]) == 2
    assert "no parameter 'untl_tso'" in capsys.readouterr().err
    assert not (tmp_path / "lake").exists()


def test_a_feed_file_needs_the_right_ending(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.yaml").write_text("")
    given = ["--feed", "one", "--param", f"feeds_root={tmp_path}"]
    assert main(["run", "--project", str(PROJECT), *given]) == 2
    assert f"{tmp_path}/one.yaml: expected the ending .yml; rename it to one.yml\n" in capsys.readouterr().err


def test_a_job_needs_no_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "databricks.yml").write_text(BUNDLE)
    (tmp_path / "j.yml").write_text(JOB_WITHOUT_PARAMETERS)
    (tmp_path / "n.py").write_text("# Databricks notebook source\n")
    given = ["--project", str(tmp_path), "--lake", str(tmp_path / "lake")]
    assert main(["run", "j", *given]) == 0
    assert "job j: success" in capsys.readouterr().out
    assert main(["run", "j", *given, "--param", "catalog=main"]) == 2
    assert "no parameter 'catalog'; there is none" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_for_kafka(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kafka", "--port", str(free_ports(1)[0]), "--folder", "/proc/topics"]) == 2
    assert capsys.readouterr().err.startswith("ticdc-lake kafka: --folder: /proc/topics: cannot be written: ")


def test_a_notebook_is_looked_for_here_then_in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n.py").write_text("# Databricks notebook source\n")
    assert notebook_named("n.py", PROJECT).path == Path("n.py")
    assert notebook_named("notebooks/gold/apply.py", PROJECT).path == PROJECT / "notebooks/gold/apply.py"


def test_a_notebook_that_only_reads_makes_no_lake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--project", str(PROJECT), "--lake", str(tmp_path / "wrong")]
    assert main(["run", "notebooks/gold/as_of.py", "--feed", "shop_craft", *place]) == 2
    assert f"{tmp_path / 'wrong'}: expected a lake, found none" in capsys.readouterr().err
    assert not (tmp_path / "wrong").exists()


def test_a_folder_without_databricks_yml_is_no_project(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected a folder with databricks\.yml"):
        project_root(argparse.Namespace(project=tmp_path))


def test_the_lake_is_in_the_project_if_no_other_is_named(tmp_path: Path) -> None:
    assert lake_root(argparse.Namespace(project=tmp_path, lake=None)) == tmp_path / arguments.LAKE
    assert lake_root(argparse.Namespace(project=tmp_path, lake=Path("/l"))) == Path("/l")


@pytest.mark.parametrize("name", ["a%20b", "feature%2Fx", "a%25b"])
def test_a_lake_that_delta_rs_reads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"{name}: a lake cannot have %2[05F] in its path"):
        lake_root(argparse.Namespace(project=Path(), lake=tmp_path / name))
    write(tmp_path / "lake" / "bronze" / "feed_offsets", "offsets", [{"batch": 1}])
    (tmp_path / "lake").rename(tmp_path / name)
    (tmp_path / "link").symlink_to(name)
    with pytest.raises(ConfigError, match="link: a lake cannot have %2"):
        lake_root(argparse.Namespace(project=Path(), lake=tmp_path / "link"))
    with pytest.raises(ConfigError, match="feed_offsets"):  # else it need not be refused any more
        DeltaReader(tmp_path / name).table(Layer.BRONZE, "feed_offsets")


def test_a_lake_whose_path_spark_takes_for_two_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a,b/lake: a lake cannot have , in its path; name another"):
        lake_root(argparse.Namespace(project=Path(), lake=tmp_path / "a,b" / "lake"))
    (tmp_path / "a,b").mkdir()
    (tmp_path / "link").symlink_to("a,b")
    assert lake_root(argparse.Namespace(project=Path(), lake=tmp_path / "link")) == tmp_path / "link"


@pytest.mark.parametrize("character", "[]{}\\")
def test_a_lake_whose_path_spark_takes_for_a_pattern_is_refused(character: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"a lake cannot have {re.escape(character)} in its path; name another"):
        lake_root(argparse.Namespace(project=Path(), lake=tmp_path / f"a{character}b"))


@pytest.mark.parametrize("name", ["a b", "100%", "a%zz", "a#b?c&d+e", "ä"])
def test_a_lake_may_have_other_characters_in_its_path(name: str, tmp_path: Path) -> None:
    assert lake_root(argparse.Namespace(project=Path(), lake=tmp_path / name)) == tmp_path / name
    write(tmp_path / name / "bronze" / "feed_offsets", "offsets", [{"batch": 1}])
    reader = DeltaReader(tmp_path / name)
    assert reader.rows(f"SELECT batch FROM {reader.table(Layer.BRONZE, 'feed_offsets')}") == [{"batch": 1}]


def test_a_value_may_hold_an_equals_sign() -> None:
    assert named_values(["a=b=c", "d="], "--param") == {"a": "b=c", "d": ""}
