"""``ticdc-lake maintain`` of a lake with a feed that was given up; without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from ticdc_lakehouse.gold.maintenance import Maintained
from ticdc_local.cli import main, maintain


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_feed_without_a_file_keeps_no_other_from_being_maintained(
    more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def done(feed: str) -> Maintained:
        return Maintained(feed=feed, since=datetime(2026, 11, 1, tzinfo=UTC), compacted=3, dropped=())

    for name, found in {
        "open_lake": lambda _: None,
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
