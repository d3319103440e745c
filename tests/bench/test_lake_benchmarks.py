"""The benchmarks on Spark run, at a size that measures nothing: all contestants do the same work."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.temporary_lake import folder_lake
from pyspark.sql import SparkSession

from bench import fixed_cost, gold, history, large_table, loop, pipeline, silver, tables
from ticdc_lakehouse.catalog import Reader
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_lakehouse.gold import state
from ticdc_lakehouse.planning.published_state import Published

pytestmark = pytest.mark.long


@pytest.fixture
def lake(spark: SparkSession, lake_root: Path) -> FolderLake:
    made = folder_lake(spark, lake_root, "bench_")
    made.register()
    return made


def test_gold_does_what_bare_merges_do(lake: FolderLake) -> None:
    result = gold.measure(lake, gold.Case(feed="gold", changes=100, spread=2, windows=1), bare=True)
    assert "1 of 100 " in gold.report([result])
    assert "| 200 " in gold.report([result])


def test_every_contestant_of_silver_runs(lake: FolderLake) -> None:
    result = silver.measure(lake, "canal_json", 100, repetitions=1)
    assert [*result.wall] == ["copy", "mapInArrow", "from_json", "no decoding", "silver"]
    assert [target.bound for target in silver.targets(result)] == [0.6, 2.0]


def test_tables_are_scanned_and_typed_whatever_their_number(lake: FolderLake) -> None:
    result = tables.measure(lake, 60, cases=(1, 3), repetitions=1)
    assert [*result.cpu] == [1, 3]
    assert "| 3 " in tables.report(result)


def test_fixed_cost_counts_jobs(lake: FolderLake) -> None:
    (costs,) = fixed_cost.measure(lake, rounds=1, warm_up=0)
    assert [*costs] == ["bronze", "silver", "gold", "copy", "mapInArrow", "MERGEs"]
    assert all(cost.jobs > 0 for cost in costs.values())
    assert all(cost.executions > 0 for cost in costs.values())


def test_pipeline_does_what_its_bare_parts_do(lake: FolderLake) -> None:
    result = pipeline.measure(lake, 80, tables=2, columns=12)
    assert [*result.bare] == ["copy", "mapInArrow", "MERGE"]
    assert "| 12 " in pipeline.report([result])


def test_a_lake_with_a_history_takes_the_same_windows(lake: FolderLake, monkeypatch: pytest.MonkeyPatch) -> None:
    # As with a long history: windows in one commit before those one by one, and a checkpoint without its first batches.
    monkeypatch.setattr(history, "ONE_BY_ONE", 1)
    monkeypatch.setattr(history, "BATCHES_IN_CHECKPOINT", 2)
    result = history.measure(lake, history=3, rounds=3)
    assert {what: [len(taken) for taken in times.values()] for what, times in result.seconds.items()} == {
        "bronze": [3, 3],
        "silver": [3, 3],
        "state read": [3, 3],
        "gold": [1, 1],
        "gold in a loop": [1, 1],
        "gold in a loop, with DDLs": [1, 1],
    }
    assert {target.bound for target in history.targets(result)} == {1.1}
    assert "after 3 windows" in history.report(result)


def test_a_small_change_to_a_large_table_reads_the_files_of_its_keys(lake: FolderLake) -> None:
    result = large_table.measure(lake, 100_000)
    assert result.files == 100
    assert len(result.scans) >= 2, "one for the files with matches, one to rewrite them"
    assert result.ratio == 0.05, "the changed keys are among the newest five in a hundred"


def test_loop_publishes_all_that_is_written_and_measures_its_lag(lake: FolderLake) -> None:
    result = loop.measure(lake, rate=40, seconds=3)
    assert result.changes == 3 * 40
    assert len(result.before) == len(result.after) > 0
    assert all(before > after > 0 for before, after in zip(result.before, result.after, strict=True))


def test_heap_is_that_of_a_loop_which_keeps_its_state(lake: FolderLake, monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[int] = []
    newest = state.newest

    def noted(lake: Reader, feed: str, published: Published) -> Published:
        known.append(published.number)
        return newest(lake, feed, published)

    monkeypatch.setattr(state, "newest", noted)
    heap = loop.heap_by_round(lake, (1, 3))
    assert [*heap] == [1, 3]
    assert known == [0, 1, 2], "each round begins with what the one before published"
