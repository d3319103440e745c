"""``ticdc-lake maintain`` of a lake with a feed that was given up; without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.gold.maintenance import Maintained
from ticdc_local.cli import main, maintain


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_feed_without_a_file_keeps_no_other_from_being_maintained(
    more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def done(feed: str) -> Maintained:
        return Maintained(feed=feed, since=datetime(2026, 11, 1, tzinfo=UTC), compacted=3, dropped=())

    for name, found in {
        "open_lake": lambda *_, **__: None,
        "published_feeds": lambda _: ["crm", "given_up", "hr"],
        "feed_files": lambda _: {"crm": Path(), "hr": Path()},
        "feed_run": lambda _, feed, __: SimpleNamespace(maintain=lambda: done(feed)),
        "retention": SimpleNamespace(lines=lambda *_: []),
    }.items():
        monkeypatch.setattr(maintain, name, found)
    assert main(["maintain", *more]) == 0
    out, notes = capsys.readouterr()
    lines = [each["feed"] for each in json.loads(out)] if more else out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["crm", "hr"]
    assert notes == "given_up: no file in resources/feeds, so its tables stay as they are\n"


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_feed_that_is_refused_or_fails_keeps_no_other_from_being_maintained(
    more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refusals = {
        "erp": ConfigError("feed erp: gold is at work in another process"),
        "full": PySparkException("[TASK_WRITE_FAILED]\njava.io.IOException: No space left on device\n\tat x.Y"),
        "gone": Py4JError("An error occurred while calling o1.sql.\n: java.lang.OutOfMemoryError\n"),
        "locked": PermissionError(13, "not yours"),
    }

    def run(_options: object, feed: str, _lake: object) -> SimpleNamespace:
        if feed == "crm":
            raise ConfigError("crm.yml: protocol: missing")
        return SimpleNamespace(maintain=lambda: maintained(feed))

    def maintained(feed: str) -> Maintained:
        if feed in refusals:
            raise refusals[feed]
        return Maintained(feed=feed, since=datetime(2026, 11, 1, tzinfo=UTC), compacted=3, dropped=())

    for name, found in {
        "open_lake": lambda *_, **__: None,
        "published_feeds": lambda _: ["crm", *refusals, "hr"],
        "feed_files": lambda _: dict.fromkeys(["crm", *refusals, "hr"], Path()),
        "feed_run": run,
        "retention": SimpleNamespace(lines=lambda *_: []),
    }.items():
        monkeypatch.setattr(maintain, name, found)
    assert main(["maintain", *more]) == 1
    out, errors = capsys.readouterr()
    refused = {
        "crm": "crm.yml: protocol: missing",
        "erp": "feed erp: gold is at work in another process",
        "full": "No space left on device; make room there and run it again",
        "gone": "Py4JError: java.lang.OutOfMemoryError (--log-level debug prints more)",
        "locked": "PermissionError: [Errno 13] not yours (--log-level debug prints more)",
    }
    assert errors.splitlines() == [f"{feed}: not maintained: {why}" for feed, why in refused.items()]
    if more:
        *failed, done = json.loads(out)
        assert failed == [{"feed": feed, "error": why} for feed, why in refused.items()]
        assert (done["feed"], done["tables_compacted"]) == ("hr", 3)
    else:
        assert [line.partition(":")[0] for line in out.splitlines()] == ["hr"]


def test_retention_that_was_put_off_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "feed crm: bronze is at work in another process"
    done = Maintained(
        feed="crm", since=datetime(2026, 11, 1, tzinfo=UTC), compacted=3, dropped=("old",), put_off=(why,)
    )
    for name, found in {
        "open_lake": lambda *_, **__: None,
        "published_feeds": lambda _: ["crm"],
        "feed_files": lambda _: {"crm": Path()},
        "feed_run": lambda *_: SimpleNamespace(maintain=lambda: done),
        "retention": SimpleNamespace(lines=lambda *_: []),
    }.items():
        monkeypatch.setattr(maintain, name, found)
    assert main(["maintain"]) == 1
    line = "crm: readable since 2026-11-01 00:00 UTC; 3 tables compacted, dropped old; retention put off: "
    assert capsys.readouterr().out == f"{line}{why}\n"
    assert main(["maintain", "--json"]) == 1
    [printed] = json.loads(capsys.readouterr().out)
    assert (printed["tables_compacted"], printed["retention_put_off"]) == (3, [why])


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_lake_in_which_no_feed_has_published_is_an_error(
    more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("open_lake", "published_feeds"):
        monkeypatch.setattr(maintain, name, lambda *_, **__: [])
    monkeypatch.setattr(maintain, "feed_files", lambda _: {"crm": Path()})
    assert main(["maintain", "--lake", str(tmp_path), *more]) == 2
    out, said = capsys.readouterr()
    assert (out, said) == (
        "",
        f"ticdc-lake maintain: {tmp_path}: expected a feed that has published, found none; name another lake with "
        f"--lake, or publish first: ticdc-lake run --lake {tmp_path}\n",
    )
    monkeypatch.setattr(maintain, "feed_files", lambda _: {})
    assert main(["maintain", "--lake", str(tmp_path), *more]) == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert said.startswith("ticdc-lake maintain: expected a feed, found none: no feed file in ")
    assert f" or {tmp_path}/feeds, and {tmp_path} has published none; name another project" in said
