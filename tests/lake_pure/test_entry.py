"""What `Run` refuses before it touches the lake; without Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.entry import Run


@pytest.mark.parametrize(
    ("task", "missing"),
    [
        (lambda run: run.replay([]), "messages"),
        (lambda run: run.dismiss([], ""), "messages"),
        (lambda run: run.decide("", "", ""), "action"),
        (lambda run: run.load(""), "folder"),
    ],
    ids=["replay", "dismiss", "decide", "load"],
)
def test_a_task_of_ticdc_ops_changes_nothing_by_the_jobs_defaults(task: Callable[[Run], object], missing: str) -> None:
    untouched = Run(lake=None, feed=None, secret=lambda *_: "")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"^{missing}"):
        task(untouched)


def test_a_comparison_without_threads_is_refused() -> None:
    untouched = Run(lake=None, feed=None, secret=lambda *_: "")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="parameter threads: expected 1 or more, or nothing, found 0"):
        untouched.verify_from_parameters({"threads": "0"})
