"""What `Run` refuses before it touches the lake; without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.entry import Run, verify_from_widgets
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
