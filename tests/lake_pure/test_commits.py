"""What a table's history says of a run's own and others' commits."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Lake


class GrowingTable(Lake):
    """Its history has these newest versions, one after the other, each time that it is read."""

    newest: Iterator[int]

    def history(self, table: str, limit: int | None = None) -> Any:  # noqa: ARG002 - there is one table
        last = next(type(self).newest)
        rows = [{"version": version} for version in range(last, -1, -1)]
        return SimpleNamespace(collect=lambda: rows[:limit])


def versions(after: int, *newest: int) -> list[int]:
    GrowingTable.newest = iter(newest)
    lake = GrowingTable(spark=None, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]
    return [row["version"] for row in lake.commits("t", after)]


def test_no_commit_is_missed_that_another_run_adds_between_two_readings() -> None:
    assert versions(8, 8) == []
    assert versions(8, 9) == [9]
    assert versions(8, 10, 10) == [10, 9]
    assert versions(8, 10, 11, 12, 12) == [12, 11, 10, 9]


def test_a_table_that_was_restored_from_an_older_copy_is_named() -> None:
    with pytest.raises(ConfigError, match="t is at version 7, and has been at 8"):
        versions(8, 7)
