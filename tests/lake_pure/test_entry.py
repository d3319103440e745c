"""What `Run` refuses before it touches the lake, and what it still does where a part is refused; without Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse import entry
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.gold.maintenance import Maintained
from ticdc_lakehouse.run_lock import exclusive_run
from ticdc_lakehouse.silver.decode_stream import Decoded
from ticdc_lakehouse.widgets import verify_from_widgets
from ticdc_local.runner.notebook import Surroundings, run_notebook

ALARM = Path(__file__).parents[2] / "notebooks" / "ops" / "alarm.py"


@pytest.mark.parametrize(
    ("task", "missing"),
    [
        (lambda run: run.replay([]), "messages"),
        (lambda run: run.dismiss([], ""), "messages"),
        (lambda run: run.override("", "", ""), "action"),
        (lambda run: run.load(""), "folder"),
    ],
    ids=["replay", "dismiss", "override", "load"],
)
def test_a_task_of_ticdc_ops_changes_nothing_by_the_jobs_defaults(task: Callable[[Run], object], missing: str) -> None:
    untouched = Run(lake=None, feed=None, secret=lambda *_: "")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"^{missing}"):
        task(untouched)


def test_a_comparison_without_threads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    untouched = Run(lake=None, feed=None, secret=lambda *_: "")  # type: ignore[arg-type]
    monkeypatch.setattr(Run, "from_widgets", lambda *_: untouched)
    dbutils = SimpleNamespace(widgets=SimpleNamespace(getAll=lambda: {"threads": "0"}))
    with pytest.raises(ConfigError, match="parameter threads: expected 1 or more, or nothing, found 0"):
        verify_from_widgets(None, dbutils)  # type: ignore[arg-type]


def test_maintenance_beside_another_process_puts_off_nothing_but_the_retention_of_its_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    maintained = Maintained(feed="crm", since=datetime(2026, 11, 1, tzinfo=UTC), compacted=3, dropped=())
    days = SimpleNamespace(retention_days=7)
    lake, feed = SimpleNamespace(locks=tmp_path), SimpleNamespace(name="crm", bronze=days, silver=days)
    monkeypatch.setattr(Run, "gold_config", None)
    monkeypatch.setattr(entry, "maintain", lambda *_: maintained)
    monkeypatch.setattr(entry.feed_views, "repair_views", lambda _: done.append("views"))
    monkeypatch.setattr(entry.retention, "retain_bronze", lambda *_: done.append("bronze"))
    monkeypatch.setattr(entry.retention, "retain_silver", lambda *_: done.append("silver"))
    run = Run(lake=lake, feed=feed, secret=lambda *_: "")  # type: ignore[arg-type]
    with exclusive_run(lake, "crm", Layer.BRONZE):  # type: ignore[arg-type]
        result = run.maintain()
    assert done == ["views", "silver"]
    assert str(result).startswith(f"{maintained}; retention put off: feed crm: bronze is at work in another process")
    assert run.maintain() == maintained


def test_a_run_of_silver_reads_the_schemas_that_it_decodes_with_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time is a query of Spark's, in each round of a loop."""
    read: list[str] = []
    monkeypatch.setattr(entry.external_schemas, "learned", lambda _, feed: read.append(feed))
    decoded = Decoded(feed="crm", batches=1, events=2, quarantined=0)
    monkeypatch.setattr(entry.external_schemas, "decode", lambda *_: decoded)
    for name in ("check_protocol", "note_protocol", "decoding_of"):
        monkeypatch.setattr(entry, name, lambda *_: None)
    monkeypatch.setattr(Run, "_check_zone", lambda _: None)
    feed = SimpleNamespace(name="crm", protocol="simple")
    run = Run(lake=None, feed=feed, secret=lambda *_: "")  # type: ignore[arg-type]
    assert run._decode() == decoded
    assert read == ["crm"]


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (
            {"bronze": "failed", "silver": "upstream_failed", "gold": "upstream_failed"},
            "feed shop: a task did not succeed: bronze: failed, silver: upstream_failed, gold: upstream_failed",
        ),
        ({"gold": "timedout"}, "feed shop: a task did not succeed: bronze: success, silver: success, gold: timedout"),
        ({}, "shop.yml: protocol: expected one of craft"),
    ],
    ids=["bronze", "gold", "none"],
)
def test_the_alarm_says_which_task_failed_before_it_reads_a_feed_file_that_may_be_why(
    tmp_path: Path, states: dict[str, str], said: str
) -> None:
    (tmp_path / "shop.yml").write_text("protocol: nonsense\n")
    with pytest.raises(ConfigError) as raised:
        run_notebook(ALARM, {"feed": "shop", "feeds_root": str(tmp_path), **states}, Surroundings(spark=None))
    assert said in str(raised.value)
    assert ("protocol" in str(raised.value)) == (not states)
