"""The job's graph is refused or run by Databricks' rules, without Spark."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from ticdc_codec.errors import ConfigError
from ticdc_local.bundle import load_bundle
from ticdc_local.graph import Operator, read_job
from ticdc_local.job import condition, feed_parameters, local_parameters, run_job
from ticdc_local.outcome import Event, JobResult, JobState, Progress, TaskState

NOTEBOOKS = {
    "good": "dbutils.notebook.exit(dbutils.widgets.getAll())",
    "bad": "def f():\n    raise ValueError('no')\nf()",
    "leave": "import sys\nsys.exit()",
    "count": "import pathlib\np = pathlib.Path(dbutils.widgets.get('log'))\np.write_text(p.read_text() + 'x')\n"
    "assert len(p.read_text()) > int(dbutils.widgets.get('fails'))",
    "set": "dbutils.jobs.taskValues.set('n', [1, 2])\ndbutils.jobs.taskValues.set('word', 'w')",
    "feed": "assert dbutils.widgets.get('feed') != 'broken'\ndbutils.notebook.exit(dbutils.widgets.get('feed'))",
    "interrupt": "raise KeyboardInterrupt",
}


class Session:
    """Stands for a Spark session."""


def task(key: str, notebook: str = "good", after: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    depends = {"depends_on": [{"task_key": name} for name in after]} if after else {}
    work = (
        {} if any(name.endswith("_task") for name in more) else {"notebook_task": {"notebook_path": f"{notebook}.py"}}
    )
    return {"task_key": key, **depends, **work, **more}


def notebook_task(notebook: str, **base_parameters: str) -> dict[str, Any]:
    return {"notebook_path": f"{notebook}.py", "base_parameters": base_parameters}


def compare(left: str, op: str, right: str) -> dict[str, Any]:
    return {"left": left, "op": op, "right": right}


def project(folder: Path, *tasks: dict[str, Any], **job: Any) -> Path:
    for name, text in NOTEBOOKS.items():
        (folder / f"{name}.py").write_text(f"# Databricks notebook source\n{text}\n")
    main = {"bundle": {"name": "b"}, "targets": {"dev": {"default": True}}, "include": ["j.yml"]}
    (folder / "databricks.yml").write_text(yaml.safe_dump(main))
    definition = {"name": "job", "tasks": list(tasks), **job}
    (folder / "j.yml").write_text(yaml.safe_dump({"resources": {"jobs": {"j": definition}}}))
    return folder


def run(folder: Path, *tasks: dict[str, Any], given: dict[str, str] | None = None, **job: Any) -> JobResult:
    bundle = load_bundle(project(folder, *tasks, **job))
    return run_job(bundle, "j", given or {}, Session, lambda _: None, retry_wait_seconds=0)  # type: ignore[arg-type]


def states(result: JobResult) -> dict[str, str]:
    return {each.task: each.state.value for each in result.tasks}


def widgets(result: JobResult, key: str) -> str:
    return next(each.value or "" for each in result.tasks if each.task == key)


def test_tasks_run_after_those_they_depend_on(tmp_path: Path) -> None:
    result = run(tmp_path, task("c", after=("b", "a")), task("b", after=("a",)), task("a"))
    assert [each.task for each in result.tasks] == ["a", "b", "c"]
    assert result.state is JobState.SUCCESS


RUN_IF = {
    #                        both good  one bad            both bad           one disabled
    "ALL_SUCCESS": ("success", "upstream_failed", "upstream_failed", "disabled"),
    "AT_LEAST_ONE_SUCCESS": ("success", "success", "upstream_failed", "success"),
    "NONE_FAILED": ("success", "upstream_failed", "upstream_failed", "success"),
    "ALL_DONE": ("success", "success", "success", "success"),
    "AT_LEAST_ONE_FAILED": ("excluded", "success", "success", "excluded"),
    "ALL_FAILED": ("excluded", "excluded", "success", "excluded"),
}


@pytest.mark.parametrize("run_if", RUN_IF)
def test_run_if(tmp_path: Path, run_if: str) -> None:
    cases = [
        (task("a"), task("b")),
        (task("a"), task("b", "bad")),
        (task("a", "bad"), task("b", "bad")),
        (task("a"), task("b", disabled=True)),
    ]
    found = [states(run(tmp_path, *before, task("c", after=("a", "b"), run_if=run_if)))["c"] for before in cases]
    assert tuple(found) == RUN_IF[run_if]


def test_excluded_counts_as_success_unless_all_are(tmp_path: Path) -> None:
    excluded = task("x", after=("a",), run_if="ALL_FAILED")
    result = run(
        tmp_path, task("a"), excluded, task("only", after=("x",), run_if="ALL_DONE"), task("y", after=("x", "a"))
    )
    assert states(result) == {"a": "success", "x": "excluded", "only": "excluded", "y": "success"}
    assert result.state is JobState.SUCCESS


def test_the_leaves_decide_how_the_job_ends(tmp_path: Path) -> None:
    done = task("b", after=("a",), run_if="ALL_DONE")
    assert run(tmp_path, task("a", "bad"), done).state is JobState.SUCCESS_WITH_FAILURES
    alarm = task("alarm", "bad", after=("a", "b"), run_if="AT_LEAST_ONE_FAILED")
    assert run(tmp_path, task("a", "bad"), done, alarm).state is JobState.FAILED
    result = run(tmp_path, task("a"), done, alarm)
    assert (result.state, states(result)["alarm"]) == (JobState.SUCCESS, "excluded")
    assert run(tmp_path, task("a", "bad"), task("b", after=("a",))).state is JobState.FAILED


@pytest.mark.parametrize(("right", "yes", "no"), [("main", "success", "excluded"), ("other", "excluded", "success")])
def test_condition_outcomes(tmp_path: Path, right: str, yes: str, no: str) -> None:
    result = run(
        tmp_path,
        task("if", condition_task=compare("{{job.parameters.catalog}}", "EQUAL_TO", right)),
        task("yes", depends_on=[{"task_key": "if", "outcome": "true"}]),
        task("no", depends_on=[{"task_key": "if", "outcome": "false"}]),
        task("end", after=("yes", "no")),
        parameters=[{"name": "catalog", "default": "main"}],
    )
    assert (states(result)["yes"], states(result)["no"], states(result)["end"]) == (yes, no, "success")


@pytest.mark.parametrize(
    ("operator", "holds"),
    [
        ("EQUAL_TO", [False, True, False]),
        ("NOT_EQUAL", [True, False, True]),
        ("GREATER_THAN", [False, False, True]),
        ("GREATER_THAN_OR_EQUAL", [False, True, True]),
        ("LESS_THAN", [True, False, False]),
        ("LESS_THAN_OR_EQUAL", [True, True, False]),
    ],
)
def test_operators(operator: str, holds: list[bool]) -> None:
    assert [condition(Operator(operator), left, "10") for left in ("9", "10", "11")] == holds


def test_texts_and_numbers_compare_differently() -> None:
    assert not condition(Operator.EQUAL_TO, "12.0", "12")
    assert condition(Operator.GREATER_THAN_OR_EQUAL, "12.0", "12")
    with pytest.raises(ConfigError, match="expected two numbers, found 'a' and '12'"):
        condition(Operator.LESS_THAN, "a", "12")


def each(inputs: str, **nested: Any) -> dict[str, Any]:
    inner = {"task_key": "inner", "notebook_task": notebook_task("feed", feed="{{input}}"), **nested}
    return {"inputs": inputs, "concurrency": 4, "task": inner}


def test_for_each_goes_on_after_a_failure(tmp_path: Path) -> None:
    result = run(tmp_path, task("t", for_each_task=each('["broken", "good"]')))
    (loop,) = result.tasks
    assert loop.state is TaskState.FAILED
    assert [(i.task, i.state.value, i.value) for i in loop.iterations] == [
        ("t[broken]", "failed", None),
        ("t[good]", "success", "good"),
    ]
    assert [failure.task for failure in result.failures] == ["t[broken]"]


def test_for_each_over_parameters_values_and_members(tmp_path: Path) -> None:
    member = each('[{"name": "a", "n": 1}]', notebook_task=notebook_task("feed", feed="{{input.name}}{{input.n}}"))
    result = run(
        tmp_path,
        task("set", "set"),
        task("p", for_each_task=each("{{job.parameters.feeds}}")),
        task("v", for_each_task=each("{{tasks.set.values.n}}"), after=("set",)),
        task("m", for_each_task=member),
        task("none", for_each_task=each("[]")),
        given=feed_parameters("x"),
        parameters=[{"name": "feeds", "default": "[]"}],
    )
    assert result.state is JobState.SUCCESS
    assert [[i.value for i in t.iterations] for t in result.tasks] == [[], ["x"], ["1", "2"], ["a1"], []]


@pytest.mark.parametrize("inputs", ["no json", '{"a": 1}', "7"])
def test_for_each_needs_a_list(tmp_path: Path, inputs: str) -> None:
    (result,) = run(tmp_path, task("t", for_each_task=each(inputs))).tasks
    assert result.state is TaskState.FAILED
    assert "expected a JSON list" in str(result.error)


def test_job_parameters_go_before_base_parameters(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        task(
            "t", notebook_task=notebook_task("good", a="base", b="{{job.name}}/{{task.name}}/{{task.execution_count}}")
        ),
        parameters=[{"name": "a", "default": "job"}, {"name": "c", "default": "{{job.id}}"}],
        given={"c": "given"},
    )
    assert widgets(result, "t") == str({"a": "job", "b": "job/t/1", "c": "given"})


def test_numbers_and_booleans_become_texts_and_no_time_limit_may_be_said(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        task("t", notebook_task={**NOTEBOOK, "base_parameters": {"a": True, "b": 1.5}}, timeout_seconds=0),
        parameters=[{"name": "c", "default": 5}],
        timeout_seconds=0,
    )
    assert widgets(result, "t") == str({"a": "true", "b": "1.5", "c": "5"})


def test_references_to_tasks(tmp_path: Path) -> None:
    work = notebook_task("good", word="{{tasks.set.values.word}}!", state="{{tasks.set.result_state}}")
    result = run(tmp_path, task("set", "set"), task("t", notebook_task=work, after=("set",)))
    assert widgets(result, "t") == str({"state": "success", "word": "w!"})


def test_a_value_that_was_not_set_fails_the_task(tmp_path: Path) -> None:
    work = notebook_task("good", word="{{tasks.set.values.other}}")
    result = run(tmp_path, task("set", "set"), task("t", notebook_task=work, after=("set",)))
    assert "task 'set' set no value 'other'" in str(result.tasks[1].error)


def test_retries(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    work = {"notebook_task": notebook_task("count", log=str(log), fails="2"), "max_retries": 2}
    seen: list[Progress] = []
    bundle = load_bundle(project(tmp_path, task("t", **work)))
    result = run_job(bundle, "j", {}, Session, seen.append, retry_wait_seconds=0)  # type: ignore[arg-type]
    assert (result.tasks[0].state, result.tasks[0].attempts) == (TaskState.SUCCESS, 3)
    assert [p.event for p in seen] == [Event.STARTED, Event.RETRYING, Event.RETRYING, Event.FINISHED]
    log.write_text("")
    assert run(tmp_path, task("t", **work | {"max_retries": 1})).state is JobState.FAILED


def test_the_wait_before_a_retry_is_the_tasks_own(tmp_path: Path) -> None:
    bundle = load_bundle(project(tmp_path, task("t", "bad", max_retries=1, min_retry_interval_millis=300)))
    started = time.monotonic()
    run_job(bundle, "j", {}, Session, lambda _: None)  # type: ignore[arg-type]
    assert time.monotonic() - started >= 0.3


def test_a_failure_is_told_from_the_notebooks_own_line_on(tmp_path: Path) -> None:
    (failure,) = run(tmp_path, task("t", "bad")).failures
    lines = failure.trace.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{tmp_path / "bad.py"}", line 4, in <module>'
    assert lines[-1] == "ValueError: no"


def test_exit_fails_and_an_interrupt_ends_the_run(tmp_path: Path) -> None:
    assert run(tmp_path, task("t", "leave"), task("u")).failures[0].task == "t"
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, task("t", "interrupt"), task("u"))


def test_the_session_starts_once_and_only_for_notebooks(tmp_path: Path) -> None:
    started: list[Session] = []

    def factory() -> Any:
        started.append(Session())
        return started[-1]

    for tasks, expected in [
        ((task("c", condition_task=compare("a", "EQUAL_TO", "a")),), 0),
        ((task("a"), task("b")), 1),
    ]:
        run_job(load_bundle(project(tmp_path, *tasks)), "j", {}, factory, lambda _: None)
        assert len(started) == expected


def test_a_session_that_does_not_start_ends_the_run(tmp_path: Path) -> None:
    def factory() -> Any:
        raise ConfigError("no Java")

    with pytest.raises(ConfigError, match="no Java"):
        run_job(load_bundle(project(tmp_path, task("a"), task("b"))), "j", {}, factory, lambda _: None)


def test_progress(tmp_path: Path) -> None:
    seen: list[Progress] = []
    bundle = load_bundle(project(tmp_path, task("a", "bad"), task("b", after=("a",)), task("c", disabled=True)))
    run_job(bundle, "j", {}, Session, seen.append)  # type: ignore[arg-type]
    assert [(p.task, p.event.value, p.state and p.state.value) for p in seen] == [
        ("a", "started", None),
        ("a", "failed", "failed"),
        ("b", "skipped", "upstream_failed"),
        ("c", "skipped", "disabled"),
    ]


def test_local_parameters(tmp_path: Path) -> None:
    parameters = local_parameters(tmp_path, tmp_path / "lake")
    assert parameters["catalog"] == "spark_catalog"
    assert parameters["feeds_root"] == str(tmp_path / "resources" / "feeds")
    assert local_parameters(tmp_path, tmp_path, tmp_path / "f")["feeds_root"] == str(tmp_path / "f")
    assert json.loads(feed_parameters("a", "b")["feeds"]) == ["a", "b"]


NOTEBOOK = {"notebook_path": "good.py"}


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (
            [task("t", sql_task={})],
            r"j.yml: resources.jobs.j.tasks\[t\]: expected one of notebook_task, .* found sql_task",
        ),
        ([task("t", run_job_task={"job_id": 1})], "found run_job_task"),
        ([{"task_key": "t"}], "found none"),
        ([task("t", new_key=1)], r"tasks\[t\].new_key: the local runner does not support this"),
        ([task("t", max_retries=-1)], r"max_retries: expected a whole number, 0 or more, found -1"),
        ([task("t", max_retries="2")], r"max_retries: expected a whole number, found '2'"),
        ([task("t", run_if="SOMETIMES")], "run_if: expected one of ALL_SUCCESS, .* found 'SOMETIMES'"),
        ([task("t", "none")], r"notebook_path: .*none.py: there is no such notebook"),
        ([task("t", notebook_task={**NOTEBOOK, "warehouse_id": "x"})], "notebook_task.warehouse_id"),
        ([task("t", notebook_task={**NOTEBOOK, "source": "GIT"})], "notebook_task.source"),
        ([task("t", notebook_task={**NOTEBOOK, "base_parameters": {"a": [1]}})], "base_parameters.a: expected a text"),
        ([task("t"), task("t")], "a task_key stands twice"),
        ([task("a", after=("b",)), task("b", after=("a",))], "depends_on goes in a circle among a, b"),
        ([task("a", after=("z",))], "no task 'z'; there are: a"),
        ([task("a"), task("b", depends_on=[{"task_key": "a", "outcome": "true"}])], "'a' is no condition task"),
        ([task("a"), task("b", depends_on=[{"task_key": "a", "outcome": "maybe"}])], 'expected "true" or "false"'),
        ([task("t", condition_task=compare("1", "LIKE", "2"))], "op: expected one of EQUAL_TO"),
        ([task("t", for_each_task=each("[]", depends_on=[]))], "belong to the for-each task"),
        (
            [task("t", for_each_task={"inputs": "[]", "task": task("u", for_each_task=each("[]"))})],
            "found for_each_task",
        ),
        ([task("t", timeout_seconds=5)], r"tasks\[t\].timeout_seconds: the local runner keeps no time limit"),
        ([], "tasks: expected one task or more"),
        (["text"], "expected a mapping, found 'text'"),
    ],
)
def test_a_task_that_is_not_understood_is_refused(tmp_path: Path, tasks: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_job(load_bundle(project(tmp_path, *tasks)), "j")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{job.parameters.none}}", "job.parameters.none}} is not a reference the local runner knows"),
        ("{{job.nothing}}", "is not a reference"),
        ("{{nothing}}", "is not a reference"),
        ("{{tasks.a.values.n}}", "does not depend on a task 'a'"),
        ("{{tasks.b.run_page}}", "does not depend on a task 'b'"),
        ("{{input}}", "is not a reference"),
    ],
)
def test_a_reference_that_is_not_known_is_refused(tmp_path: Path, text: str, message: str) -> None:
    tasks = (task("a"), task("t", notebook_task=notebook_task("good", p=text)))
    with pytest.raises(ConfigError, match=message):
        read_job(load_bundle(project(tmp_path, *tasks)), "j")


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"git_source": {}}, "resources.jobs.j.git_source: the local runner does not support this"),
        ({"timeout_seconds": 5}, "resources.jobs.j.timeout_seconds"),
        ({"parameters": [{"name": "a", "default": "1"}] * 2}, "parameter 'a' stands twice"),
        ({"parameters": [{"name": "a", "default": None}]}, r"parameters\[a\].default: expected a text"),
        ({"parameters": [{"name": "a", "default": "{{job.parameters.b}}"}]}, "parameters.a: .*is not a reference"),
        ({"parameters": [{"name": "a", "default": "", "type": "x"}]}, r"parameters\[a\].type"),
    ],
)
def test_a_job_that_is_not_understood_is_refused(tmp_path: Path, job: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_job(load_bundle(project(tmp_path, task("t"), **job)), "j")


def test_a_parameter_that_the_job_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no parameter 'x'; it has a"):
        run(tmp_path, task("t"), given={"x": "1"}, parameters=[{"name": "a", "default": "1"}])
