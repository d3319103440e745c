"""What ``ticdc-lake run`` prints of a job."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from ticdc_codec.errors import AttentionError, ConfigError
from ticdc_lakehouse.tidb.session import NoSuchTableError
from ticdc_local.cli import main, maintain, run
from ticdc_local.cli.job_text import cause_line, progress_text, result_text
from ticdc_local.runner.outcome import JobResult, JobState, Progress, TaskEvent, TaskResult, TaskState


class CausedError(Exception):
    """Names its cause as PySpark's captured exceptions do."""

    def __init__(self, text: str, cause: Exception | None = None) -> None:
        super().__init__(text)
        self._cause = cause


def progress(event: TaskEvent, **more: object) -> Progress:
    return Progress(task="gold[shop]", event=event, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("happened", "text"),
    [
        (progress(TaskEvent.STARTED), "gold[shop]: started"),
        (progress(TaskEvent.FINISHED, seconds=1.25), "gold[shop]: finished in 1.2 s"),
        (progress(TaskEvent.FAILED, seconds=3), "gold[shop]: FAILED after 3.0 s"),
        (progress(TaskEvent.SKIPPED, state=TaskState.UPSTREAM_FAILED), "gold[shop]: not run (upstream_failed)"),
        (
            progress(TaskEvent.RETRYING, attempt=1, error=ValueError("no\nmore")),
            "gold[shop]: attempt 1 failed, trying again: ValueError: no",
        ),
    ],
)
def test_progress_is_one_line(happened: Progress, text: str) -> None:
    assert progress_text(happened) == text


def test_an_error_without_a_text_is_its_name() -> None:
    assert cause_line(KeyError()) == "KeyError"
    assert cause_line(None) == ""


REPORTED = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: An error occurred. \
Return Message: Traceback (most recent call last):
  File "micro_batch.py", line 80, in _append
    rows.write.saveAsTable(table)
py4j.protocol.Py4JJavaError: An error occurred while calling o90.saveAsTable.
: org.apache.spark.SparkException: Job aborted.
	at org.apache.spark.A(A.scala:1)
Caused by: java.util.concurrent.TimeoutException: no answer in 60 s
	at org.apache.spark.B(B.scala:1)
	... 3 more

=== Streaming Query ===
Identifier: bronze shop"""


@pytest.mark.parametrize(
    ("report", "cause"),
    [
        (REPORTED, "TimeoutException: no answer in 60 s"),
        ("[X] Traceback (most recent call last):\nmine.errors.BadError\n", "BadError"),
        ("[X] Traceback (most recent call last):\nPy4JJavaError: on\n: a.AbortException: off", "AbortException: off"),
        ("no table\nTimeoutError: a line of its own", "CausedError: no table"),
        ("[X] Traceback (most recent call last):\n  nothing", "CausedError: [X] Traceback (most recent call last):"),
    ],
)
def test_cause_that_spark_reports_further_below_is_named(report: str, cause: str) -> None:
    assert cause_line(CausedError(report)) == cause


def test_a_failure_shows_its_traceback_and_causes_without_java() -> None:
    cause = CausedError("Traceback of a worker\nTypeError: odd\n\n\tat org.apache.spark.A\n\t... 3 more")
    error = CausedError("stream failed\n=== Streaming Query ===\nplan", cause)
    failed = TaskResult(task="silver[shop]", state=TaskState.FAILED, attempts=3, error=error)
    result = JobResult(job="j", state=JobState.FAILED, seconds=2.0, tasks=(failed,))
    assert result_text(result).splitlines() == [
        "",
        "silver[shop] failed (3 attempts):",
        f"{CausedError.__module__}.CausedError: stream failed",
        "caused by:",
        "Traceback of a worker",
        "TypeError: odd",
        "shop: silver FAILED: CausedError: stream failed",
        "job j: failed in 2.0 s",
    ]


def failed(task: str, error: BaseException) -> TaskResult:
    return TaskResult(task=task, state=TaskState.FAILED, attempts=1, error=error)


def test_a_run_ends_with_each_feeds_first_cause_and_what_was_not_run_because_of_it() -> None:
    skipped = TaskResult(task="silver[shop]", state=TaskState.UPSTREAM_FAILED)
    alarm = failed("alarm[shop]", ConfigError("feed shop: a task did not succeed: bronze: failed"))
    chain = (failed("bronze[shop]", ConfigError("no topic t")), skipped, alarm)
    feed = TaskResult(task="feeds[shop]", state=TaskState.FAILED, tasks=chain)
    good = TaskResult(task="feeds[other]", state=TaskState.SUCCESS, tasks=())
    feeds = TaskResult(task="feeds", state=TaskState.FAILED, iterations=(feed, good))
    result = JobResult(job="j", state=JobState.FAILED, seconds=2.0, tasks=(feeds,))
    assert result_text(result).splitlines() == [
        "shop: bronze FAILED: no topic t",
        "  not run because of it: silver",
        "job j: failed in 2.0 s",
    ]
    assert not result.needs_attention, "a layer failed"


def test_a_run_whose_alarms_alone_failed_ran_and_says_which_feed_needs_attention() -> None:
    alarm = failed("alarm[shop]", AttentionError("feed shop needs attention: 1 table is blocked: a.b (why)"))
    result = JobResult(job="j", state=JobState.FAILED, seconds=2.0, tasks=(alarm,))
    assert result.needs_attention
    assert result_text(result).splitlines() == [
        "feed shop needs attention: 1 table is blocked: a.b (why)",
        "job j: ran, but a feed needs attention, in 2.0 s",
    ]
    broken = TaskResult(task="feeds[x]", state=TaskState.FAILED, tasks=(failed("gold[x]", ConfigError("no")),))
    shop = TaskResult(task="feeds[shop]", state=TaskState.FAILED, tasks=(alarm,))
    feeds = TaskResult(task="feeds", state=TaskState.FAILED, iterations=(shop, broken))
    both = JobResult(job="j", state=JobState.FAILED, seconds=2.0, tasks=(feeds,))
    assert not both.needs_attention
    assert result_text(both).splitlines()[-1] == "job j: failed in 2.0 s"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            "java.nio.file.FileSystemException: /lake/bronze/x.parquet: No space left on device",
            "/lake/bronze/x.parquet: No space left on device; make room there and run it again",
        ),
        ("java.io.IOException: No space left on device", "No space left on device; make room there and run it again"),
        (
            "java.io.FileNotFoundException: /lake/x (Permission denied)",
            "/lake/x: Permission denied; give a lake that can be written: --lake FOLDER",
        ),
    ],
)
def test_what_the_machine_refused_is_one_line_however_deep_it_is(message: str, text: str) -> None:
    error = CausedError("[STREAM_FAILED] stopped\n\tat x", CausedError("task failed\n\tat y", CausedError(message)))
    result = JobResult(job="j", state=JobState.FAILED, seconds=2.0, tasks=(failed("bronze[shop]", error),))
    assert result_text(result).splitlines() == [f"shop: bronze FAILED: {text}", "job j: failed in 2.0 s"]


KEY_STORE = "feed crm: reading topics t stopped; check kafka.security: Failed to load /etc/crm/client.jks"


@pytest.mark.parametrize("lake", [None, Path("/lake")])
def test_an_error_of_the_package_is_not_replaced_by_what_the_machine_refused(lake: Path | None) -> None:
    error = ConfigError(f"{KEY_STORE} (Permission denied)")
    error.__cause__ = CausedError("java.io.FileNotFoundException: /etc/crm/client.jks (Permission denied)")
    result = JobResult(job="j", state=JobState.FAILED, seconds=2.0, tasks=(failed("bronze[crm]", error),))
    said = f"crm: bronze FAILED: {KEY_STORE} (Permission denied)"
    assert result_text(result, lake).splitlines() == [said, "job j: failed in 2.0 s"]


def test_a_mistake_that_a_worker_reports_is_not_replaced_by_what_the_machine_refused() -> None:
    mistake = "ConfigError: feed crm: claim check: /mnt/large: Permission denied"
    report = f"Traceback (most recent call last):\n  File x\nticdc_codec.errors.{mistake}\n\n\tat x"
    error = CausedError("[STREAM_FAILED] stopped", CausedError(f"[PYTHON] {report}"))
    result = JobResult(job="j", state=JobState.FAILED, seconds=2.0, tasks=(failed("silver[crm]", error),))
    assert "--lake" not in result_text(result)
    report = report.replace("ConfigError", "OSError")
    error = CausedError("[STREAM_FAILED] stopped", CausedError(f"[PYTHON] {report}"))
    result = JobResult(job="j", state=JobState.FAILED, seconds=2.0, tasks=(failed("silver[crm]", error),))
    assert (
        result_text(result)
        .splitlines()[0]
        .endswith("Permission denied; give a lake that can be written: --lake FOLDER")
    )


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("a.FileNotFoundException: /my/lake/x (Permission denied)", "give a lake that can be written: --lake FOLDER"),
        ("a.IOException: file:/my/lake: Read-only file system", "give a lake that can be written: --lake FOLDER"),
        (
            "a.FileNotFoundException: /my/lake2/x (Permission denied)",
            "let the user of this process read and write there",
        ),
        ("a.IOException: /a/my/lake/x: Read-only file system", "mount it so that it can be written"),
        ("a.IOException: Permission denied", "let the user of this process read and write there"),
        ("a.IOException: /my/lake/x: No space left on device", "make room there and run it again"),
        ("a.IOException: /tmp/x: No space left on device", "make room there and run it again"),
    ],
)
def test_another_lake_is_advised_only_for_what_lies_in_the_lake(message: str, advice: str) -> None:
    error = failed("bronze[shop]", CausedError(message))
    result = JobResult(job="j", state=JobState.FAILED, seconds=2.0, tasks=(error,))
    [line, _] = result_text(result, Path("/my/lake")).splitlines()
    assert line.endswith(f"; {advice}")


def test_another_command_knows_its_lake_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_lake(*_: object, **__: object) -> None:
        raise PySparkException("java.io.FileNotFoundException: /etc/crm/client.jks (Permission denied)")

    monkeypatch.setattr(maintain, "open_lake", open_lake)
    assert main(["maintain", "--lake", str(tmp_path)]) == 1
    advice = "let the user of this process read and write there"
    assert capsys.readouterr().err == f"ticdc-lake maintain: /etc/crm/client.jks: Permission denied; {advice}\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("AttentionError", 3),
        ("ApplyError", 1),
        ("PublishedMeanwhileError", 1),
        ("ConfigError", 2),
    ],
)
def test_a_notebook_that_fails_ends_with_the_code_of_its_error(
    error: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "databricks.yml").write_text("bundle: {name: b}\n")
    notebook = f"# Databricks notebook source\nfrom ticdc_codec import errors\nraise errors.{error}('feed crm: why')\n"
    (tmp_path / "n.py").write_text(notebook)
    monkeypatch.setattr(run, "quiet_session", lambda *_: None)
    monkeypatch.setattr(run, "job_parameters", SimpleNamespace(lake_from=lambda *_: None))
    assert main(["run", "n.py", "--project", str(tmp_path)]) == code
    assert capsys.readouterr().err == "ticdc-lake run: feed crm: why\n"


def test_an_error_of_a_table_is_no_wrong_argument(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_lake(*_: object, **__: object) -> None:
        raise NoSuchTableError("TiDB: 1146: no table crm.t")

    monkeypatch.setattr(maintain, "open_lake", open_lake)
    assert main(["maintain", "--lake", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "ticdc-lake maintain: TiDB: 1146: no table crm.t\n"


def test_a_good_run_is_one_line() -> None:
    result = JobResult(job="j", state=JobState.SUCCESS, seconds=2.0, tasks=())
    assert result_text(result) == "job j: success in 2.0 s"
