"""The job's graph is refused or run by Databricks' rules, without Spark."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from ticdc_codec.errors import ConfigError
from ticdc_local.runner.bundle import load_bundle
from ticdc_local.runner.graph import read_job
from ticdc_local.runner.job import feed_parameters, local_parameters, run_job
from ticdc_local.runner.outcome import JobResult, JobState, Progress, TaskEvent, TaskResult, TaskState

NOTEBOOKS = {
    "good": "dbutils.notebook.exit(dbutils.widgets.getAll())",
    "bad": "def f():\n    raise ValueError('no')\nf()",
    "leave": "import sys\nsys.exit()",
    "count": "import pathlib\np = pathlib.Path(dbutils.widgets.get('log'))\np.write_text(p.read_text() + 'x')\n"
    "assert len(p.read_text()) > int(dbutils.widgets.get('fails'))",
    "misconfigured": "from ticdc_codec.errors import ConfigError\nraise ConfigError('no topic')",
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


def project(folder: Path, *tasks: dict[str, Any], jobs: dict[str, Any] | None = None, **job: Any) -> Path:
    """A bundle with the job ``j`` of these tasks, and more jobs."""
    for name, text in NOTEBOOKS.items():
        (folder / f"{name}.py").write_text(f"# Databricks notebook source\n{text}\n")
    main = {"bundle": {"name": "b"}, "targets": {"dev": {"default": True}}, "include": ["j.yml"]}
    (folder / "databricks.yml").write_text(yaml.safe_dump(main))
    definition = {"name": "job", "tasks": list(tasks), **job}
    (folder / "j.yml").write_text(yaml.safe_dump({"resources": {"jobs": {"j": definition, **(jobs or {})}}}))
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
    #                        both good  one bad            both bad
    "ALL_SUCCESS": ("success", "upstream_failed", "upstream_failed"),
    "AT_LEAST_ONE_FAILED": ("excluded", "success", "success"),
    "ALL_DONE": ("success", "success", "success"),
}


@pytest.mark.parametrize("run_if", RUN_IF)
def test_run_if_decides_whether_a_task_runs(tmp_path: Path, run_if: str) -> None:
    cases = [
        (task("a"), task("b")),
        (task("a"), task("b", "bad")),
        (task("a", "bad"), task("b", "bad")),
    ]
    found = [states(run(tmp_path, *before, task("c", after=("a", "b"), run_if=run_if)))["c"] for before in cases]
    assert tuple(found) == RUN_IF[run_if]


def test_an_excluded_task_counts_as_success_unless_all_are(tmp_path: Path) -> None:
    excluded = task("x", after=("a",), run_if="AT_LEAST_ONE_FAILED")
    result = run(tmp_path, task("a"), excluded, task("only", after=("x",)), task("y", after=("x", "a")))
    assert states(result) == {"a": "success", "x": "excluded", "only": "excluded", "y": "success"}
    assert result.state is JobState.SUCCESS


def test_the_leaves_decide_how_the_job_ends(tmp_path: Path) -> None:
    report = task("report", after=("a",), run_if="AT_LEAST_ONE_FAILED")
    assert run(tmp_path, task("a", "bad"), report).state is JobState.SUCCESS_WITH_FAILURES
    alarm = task("alarm", "bad", after=("a", "b"), run_if="AT_LEAST_ONE_FAILED")
    chain = task("b", after=("a",))
    assert run(tmp_path, task("a", "bad"), chain, alarm).state is JobState.FAILED
    result = run(tmp_path, task("a"), chain, alarm)
    assert (result.state, states(result)["alarm"]) == (JobState.SUCCESS, "excluded")
    assert run(tmp_path, task("a", "bad"), chain).state is JobState.FAILED


def each(inputs: str, **nested: Any) -> dict[str, Any]:
    inner = {"task_key": "inner", "notebook_task": notebook_task("feed", feed="{{input}}"), **nested}
    return {"inputs": inputs, "concurrency": 4, "task": inner}


def test_for_each_continues_after_a_failure(tmp_path: Path) -> None:
    result = run(tmp_path, task("t", for_each_task=each('["broken", "good"]')))
    (loop,) = result.tasks
    assert loop.state is TaskState.FAILED
    assert [(i.task, i.state.value, i.value) for i in loop.iterations] == [
        ("t[broken]", "failed", None),
        ("t[good]", "success", "good"),
    ]
    assert [failure.task for failure in result.failures] == ["t[broken]"]


def test_for_each_task_takes_its_inputs_from_a_parameter(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        task("p", for_each_task=each("{{job.parameters.feeds}}")),
        task("none", for_each_task=each("[]")),
        given=feed_parameters("x"),
        parameters=[{"name": "feeds", "default": "[]"}],
    )
    assert result.state is JobState.SUCCESS
    assert [[i.value for i in t.iterations] for t in result.tasks] == [["x"], []]


def chain(**job: Any) -> dict[str, Any]:
    """A job of two tasks and an alarm for one feed."""
    tasks = [
        task("first", "feed"),
        task("second", notebook_task=notebook_task("good", how="{{tasks.first.result_state}}"), after=("first",)),
        task("alarm", "bad", after=("first", "second"), run_if="AT_LEAST_ONE_FAILED"),
    ]
    return {"name": "chain", "parameters": [{"name": "feed", "default": ""}], "tasks": tasks, **job}


def each_chain(inputs: str = '["broken", "good"]', **job_parameters: str) -> dict[str, Any]:
    given = {"feed": "{{input}}", **job_parameters}
    work = {"job_id": "${resources.jobs.chain.id}", "job_parameters": given}
    return {"inputs": inputs, "task": {"task_key": "feed", "run_job_task": work}}


def parts(result: TaskResult) -> list[tuple[str, str]]:
    return [(part.task, part.state.value) for part in result.tasks]


def test_job_is_run_for_each_input_and_a_failure_stops_no_other(tmp_path: Path) -> None:
    result = run(tmp_path, task("feeds", for_each_task=each_chain()), jobs={"chain": chain()})
    broken, good = result.tasks[0].iterations
    assert result.state is JobState.FAILED
    assert parts(broken) == [
        ("first[broken]", "failed"),
        ("second[broken]", "upstream_failed"),
        ("alarm[broken]", "failed"),
    ]
    assert parts(good) == [("first[good]", "success"), ("second[good]", "success"), ("alarm[good]", "excluded")]
    assert good.tasks[1].value == str({"how": "success", "feed": "good"})


def test_a_chains_first_failure_is_the_cause_of_the_others(tmp_path: Path) -> None:
    result = run(tmp_path, task("feeds", for_each_task=each_chain('["broken"]')), jobs={"chain": chain()})
    (failure,) = result.failures
    assert (failure.task, failure.not_run) == ("first[broken]", ("second[broken]",))
    assert isinstance(failure.error, AssertionError)


def test_a_started_job_must_exist_take_the_parameters_and_not_start_its_caller(tmp_path: Path) -> None:
    def refused(message: str, jobs: dict[str, Any], **job_parameters: str) -> None:
        with pytest.raises(ConfigError, match=message):
            run(tmp_path, task("feeds", for_each_task=each_chain(**job_parameters)), jobs=jobs)

    refused(r"\$\{resources.jobs.chain.id\} is not known", {})
    refused("job chain has no parameter 'other'", {"chain": chain()}, other="x")
    calls_back = chain(tasks=[task("back", run_job_task={"job_id": "j"})])
    refused("in a circle: j -> chain -> j", {"chain": calls_back})


@pytest.mark.parametrize("inputs", ["no json", '{"a": 1}', "7", "[1]"])
def test_for_each_needs_a_list(tmp_path: Path, inputs: str) -> None:
    (result,) = run(tmp_path, task("t", for_each_task=each(inputs))).tasks
    assert result.state is TaskState.FAILED
    assert "expected a JSON list of texts" in str(result.error)


def test_job_parameters_go_before_base_parameters(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        task("t", notebook_task=notebook_task("good", a="base", b="{{job.parameters.a}}/{{job.parameters.c}}")),
        parameters=[{"name": "a", "default": "job"}, {"name": "c", "default": "own"}],
        given={"c": "given"},
    )
    assert widgets(result, "t") == str({"a": "job", "b": "job/given", "c": "given"})


def test_task_is_given_how_another_one_ended(tmp_path: Path) -> None:
    work = notebook_task("good", state="{{tasks.a.result_state}}!")
    result = run(tmp_path, task("a"), task("t", notebook_task=work, after=("a",)))
    assert widgets(result, "t") == str({"state": "success!"})


def test_failed_task_is_tried_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    work = {"notebook_task": notebook_task("count", log=str(log), fails="2"), "max_retries": 2}
    seen: list[Progress] = []
    bundle = load_bundle(project(tmp_path, task("t", **work)))
    result = run_job(bundle, "j", {}, Session, seen.append, retry_wait_seconds=0)  # type: ignore[arg-type]
    assert (result.tasks[0].state, result.tasks[0].attempts) == (TaskState.SUCCESS, 3)
    assert [p.event for p in seen] == [TaskEvent.STARTED, TaskEvent.RETRYING, TaskEvent.RETRYING, TaskEvent.FINISHED]
    log.write_text("")
    assert run(tmp_path, task("t", **work | {"max_retries": 1})).state is JobState.FAILED


def test_what_the_operator_must_mend_is_not_retried(tmp_path: Path) -> None:
    seen: list[TaskEvent] = []
    bundle = load_bundle(project(tmp_path, task("t", "misconfigured", max_retries=2)))
    run_job(bundle, "j", {}, Session, lambda p: seen.append(p.event), retry_wait_seconds=0)  # type: ignore[arg-type]
    assert seen == [TaskEvent.STARTED, TaskEvent.FAILED]


def test_the_wait_before_a_retry_is_the_tasks_own(tmp_path: Path) -> None:
    bundle = load_bundle(project(tmp_path, task("t", "bad", max_retries=1, min_retry_interval_millis=300)))
    started = time.monotonic()
    run_job(bundle, "j", {}, Session, lambda _: None)  # type: ignore[arg-type]
    assert time.monotonic() - started >= 0.3


def test_a_traceback_begins_with_the_notebooks_own_line(tmp_path: Path) -> None:
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
        ((task("none", for_each_task=each("[]")),), 0),
        ((task("a"), task("b")), 1),
    ]:
        run_job(load_bundle(project(tmp_path, *tasks)), "j", {}, factory, lambda _: None)
        assert len(started) == expected


def test_a_session_that_does_not_start_ends_the_run(tmp_path: Path) -> None:
    def factory() -> Any:
        raise ConfigError("no Java")

    with pytest.raises(ConfigError, match="no Java"):
        run_job(load_bundle(project(tmp_path, task("a"), task("b"))), "j", {}, factory, lambda _: None)


def test_progress_names_each_task_and_how_it_ended(tmp_path: Path) -> None:
    seen: list[Progress] = []
    bundle = load_bundle(project(tmp_path, task("a", "bad"), task("b", after=("a",))))
    run_job(bundle, "j", {}, Session, seen.append)  # type: ignore[arg-type]
    assert [(p.task, p.event.value, p.state and p.state.value) for p in seen] == [
        ("a", "started", None),
        ("a", "failed", "failed"),
        ("b", "skipped", "upstream_failed"),
    ]


def test_job_has_the_parameters_of_a_laptop(tmp_path: Path) -> None:
    parameters = local_parameters(tmp_path, tmp_path / "lake")
    assert parameters["catalog"] == "spark_catalog"
    assert parameters["feeds_root"] == str(tmp_path / "resources" / "feeds")
    assert local_parameters(tmp_path, tmp_path, tmp_path / "f")["feeds_root"] == str(tmp_path / "f")
    assert json.loads(feed_parameters("a", "b")["feeds"]) == ["a", "b"]


NOTEBOOK = {"notebook_path": "good.py"}


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([task("t", sql_task={})], r"j.yml: resources.jobs.j.tasks\[t\].sql_task: the local runner does not support"),
        ([task("t", condition_task={})], r"tasks\[t\].condition_task: the local runner does not support this"),
        ([{"task_key": "t"}], r"tasks\[t\]: .*expected one of notebook_task, .* found 0"),
        ([task("t", run_job_task={"job_id": "j"}, notebook_task=NOTEBOOK)], "expected one of .* found 2"),
        ([task("t", new_key=1)], r"tasks\[t\].new_key: the local runner does not support this"),
        ([task("t", disabled=True)], r"tasks\[t\].disabled: the local runner does not support this"),
        ([task("t", retry_on_timeout=True)], r"tasks\[t\].retry_on_timeout: the local runner does not support this"),
        ([task("t", max_retries=-1)], r"max_retries: Expected `int` >= 0"),
        ([task("t", max_retries="2")], r"max_retries: Expected `int`, got `str`"),
        ([task("t", run_if="NONE_FAILED")], "run_if: Invalid enum value 'NONE_FAILED'"),
        ([task("t", "none")], r"notebook_path: .*none.py: there is no such notebook"),
        ([task("t", notebook_task={**NOTEBOOK, "warehouse_id": "x"})], "notebook_task.warehouse_id"),
        ([task("t", notebook_task={**NOTEBOOK, "source": "GIT"})], "notebook_task.source"),
        ([task("t", notebook_task={**NOTEBOOK, "base_parameters": {"a": 1}})], "base_parameters.*Expected `str`"),
        ([task("t"), task("t")], "a task_key is listed twice"),
        ([task("a", after=("b",)), task("b", after=("a",))], "depends_on goes in a circle among a, b"),
        ([task("a", after=("z",))], "no task 'z'; there are: a"),
        ([task("b", depends_on=[{"task_key": "a", "outcome": "true"}])], r"depends_on\[0\].outcome: the local runner"),
        ([task("t", for_each_task=each("[]", depends_on=[]))], "for_each_task.task.depends_on: the local runner"),
        ([task("t", for_each_task={"inputs": "[]", "task": task("u", for_each_task={})})], "task.for_each_task: the l"),
        ([], "tasks: expected one task or more"),
        (["text"], "Expected `object`, got `str`"),
    ],
)
def test_a_task_that_is_not_understood_is_refused(tmp_path: Path, tasks: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_job(load_bundle(project(tmp_path, *tasks)), "j")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{job.parameters.none}}", "job.parameters.none}} is not a reference the local runner knows here: none"),
        ("{{job.run_id}}", "is not a reference"),
        ("{{nothing}}", "is not a reference"),
        ("{{tasks.a.result_state}}", "is not a reference"),
        ("{{tasks.a.values.n}}", "is not a reference"),
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
        ({"parameters": [{"name": "a", "default": "1"}] * 2}, "a name is listed twice among a"),
        ({"parameters": [{"name": "a", "default": 5}]}, r"parameters\[0\].default: Expected `str`, got `int`"),
        ({"parameters": [{"name": "a", "default": "{{job.parameters.b}}"}]}, "parameters.a: .*is not a reference"),
        ({"parameters": [{"name": "a", "default": "", "type": "x"}]}, r"parameters\[0\].type"),
    ],
)
def test_a_job_that_is_not_understood_is_refused(tmp_path: Path, job: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_job(load_bundle(project(tmp_path, task("t"), **job)), "j")


def test_a_parameter_that_the_job_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no parameter 'x'; expected one of a"):
        run(tmp_path, task("t"), given={"x": "1"}, parameters=[{"name": "a", "default": "1"}])
