"""What gold has published: small rows, one of two runs publishes, and what a dead run wrote is not seen."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from changefeed import lake_in

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold import state, state_tables
from ticdc_lakehouse.gold.naming import check_feed_name
from ticdc_lakehouse.gold.state import COMPLETE_EVERY, commit_window, published
from ticdc_lakehouse.gold.state_tables import DEFINITIONS, TABLE_STATES, TOPICS, WINDOWS, rows_of
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, Recoverable, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEED = "shop"


@pytest.fixture
def lake(spark: SparkSession, lake_root: Path) -> Lake:
    lake = lake_in(spark, lake_root, lake_root.parent.name.lower())
    lake.register()
    state_tables.create_tables(lake)
    return lake


def table_state(name: str, tso: int, version: int = 1) -> TableState:
    return TableState(lake_name=f"shop_d_{name}", stable_id=f"{name}__data", version=version, applied_tso=tso)


def definition(name: str, commit_ts: int, columns: str = "id BIGINT PRIMARY KEY") -> Definition:
    (table,) = tables_from_sql(f"CREATE TABLE d.{name} ({columns})")
    return Definition(
        table=table, commit_ts=commit_ts, origin=Origin.DDL, lake_name=f"shop_d_{name}", stable_id=f"{name}__data"
    )


def window(before: Published, tso: int, *changed: str) -> Published:
    """The state after a window in which these tables changed; the others are at the new watermark, too."""
    others = {name: replace(state, applied_tso=tso) for name, state in before.tables.items()}
    tables = {TableName("d", name): table_state(name, tso, before.number + 1) for name in changed}
    return replace(before, tso=tso, tables={**others, **tables})


def rows(lake: Lake, name: str, number: int) -> int:
    return rows_of(lake, name, FEED).where(f"number = {number}").count()


def test_state_of_a_window_is_read_back_as_published(lake: Lake) -> None:
    assert published(lake, FEED) == Published()
    names = [f"t{i}" for i in range(10)]
    now = replace(window(Published(), 10, *names), replays_seen=datetime(2026, 11, 1, 2, 3, 4, 567_891, UTC))
    now = replace(now, topics={"shop": frozenset(now.tables)})
    first = commit_window(lake, FEED, Published(), now, [definition(name, 9) for name in names], 7)
    assert published(lake, FEED) == first
    assert (first.number, first.base, len(first.definitions)) == (1, 1, 10)

    stop = StopReason(kind=StopKind.UNSUPPORTED_DDL, detail="a DDL\n${x}", commit_ts=15, query="'", needs_override=True)
    blocked = replace(table_state("t0", 15), ddls=("ALTER 'x' $ \\ \"ä\"",), stop=stop)
    gone = Recoverable(name=TableName("d", "t1"), stable_id="t1__data", version=3, dropped_at=18)
    at_20 = window(first, 20).tables
    tables = {TableName("d", "t0"): blocked, **{TableName("d", name): at_20["d", name] for name in names[2:]}}
    wide = definition("t0", 15, "id BIGINT PRIMARY KEY, v INT")
    second = commit_window(lake, FEED, first, replace(first, tso=20, tables=tables, recoverable=(gone,)), [wide], 1)
    assert published(lake, FEED) == second
    assert (second.number, second.base) == (2, 1)
    assert second.definitions["t0__data"].table == wide.table
    assert second.definitions["t1__data"] == first.definitions["t1__data"]
    assert rows(lake, TABLE_STATES, 2) == 3, "t0 changed, t1 ended, t1 can be recovered; the others as before"
    assert rows(lake, DEFINITIONS, 2) == 1

    advanced = {**window(second, 30).tables, TableName("d", "t0"): blocked}
    topics = {**second.topics, "own": frozenset({TableName("d", "t9")})}
    now = replace(second, tso=30, tables=advanced, recoverable=(), topics=topics)
    third = commit_window(lake, FEED, second, now, [], 0)
    assert published(lake, FEED) == third
    assert rows(lake, TABLE_STATES, 3) == 1
    assert [rows(lake, TOPICS, number) for number in (1, 2, 3)] == [10, 0, 1]
    assert published(lake, FEED, at=29) == second
    assert published(lake, FEED, at=9) == Published()
    assert published(lake, "other") == Published()


@pytest.mark.long
def test_all_states_are_written_again_every_so_many_windows(lake: Lake) -> None:
    names = [f"t{i}" for i in range(4)]
    now = commit_window(lake, FEED, Published(), window(Published(), 10, *names), [], 0)
    known = [now]
    for number in range(2, COMPLETE_EVERY + 3):
        now = commit_window(lake, FEED, now, window(now, 10 * number, "t0"), [], 0)
        known.append(now)
    assert [rows(lake, TABLE_STATES, number) for number in (1, 2, COMPLETE_EVERY, COMPLETE_EVERY + 1)] == [4, 1, 1, 4]
    assert [each.base for each in known[-3:]] == [1, COMPLETE_EVERY + 1, COMPLETE_EVERY + 1]
    assert published(lake, FEED) == now
    for name in (WINDOWS, TABLE_STATES):
        (detail,) = lake.spark.sql(f"DESCRIBE DETAIL {lake.table(Layer.OPS, name)}").collect()
        assert detail["numFiles"] < COMPLETE_EVERY / 2, "small files are compacted"
    for each in known[COMPLETE_EVERY - 2 :]:
        assert published(lake, FEED, at=each.tso) == each


def test_a_table_is_named_as_its_newest_state_spells_it(lake: Lake) -> None:
    tables = {TableName("Shop", "Orders"): table_state("orders", 10), **window(Published(), 10, "a", "b", "c").tables}
    first = commit_window(lake, FEED, Published(), Published(tso=10, tables=tables), [], 0)
    others = {name: state for name, state in window(first, 20).tables.items() if name.database == "d"}
    renamed = {TableName("shop", "orders"): table_state("orders", 20), **others}
    second = commit_window(lake, FEED, first, replace(first, tso=20, tables=renamed), [], 0)
    assert (second.base, rows(lake, TABLE_STATES, 2)) == (1, 1)
    assert [str(name) for name in published(lake, FEED).tables if name.database != "d"] == ["shop.orders"]


def test_known_state_is_not_read_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    first = commit_window(lake, FEED, Published(), window(Published(), 10, "t"), [], 0)
    with monkeypatch.context() as patch:
        patch.setattr(state, "published_in", pytest.fail)
        assert state.newest(lake, FEED, first) is first
    second = commit_window(lake, FEED, first, window(first, 20, "t"), [], 0)
    assert state.newest(lake, FEED, first) == second
    assert state.newest(lake, FEED, Published()) == second


@pytest.mark.long
def test_of_two_runs_one_after_the_other_the_first_publishes(lake: Lake) -> None:
    """Both began from the same state, in sessions of their own, and nothing locks the lake."""
    before = commit_window(lake, FEED, Published(), window(Published(), 10, "t"), [], 0)
    other = replace(lake, spark=lake.spark.newSession())
    published_by_other = commit_window(other, FEED, before, window(before, 30, "t"), [], 0)
    with pytest.raises(
        ConfigError, match=r"feed shop: another run published 30 .* meanwhile; this one publishes nothing"
    ):
        commit_window(lake, FEED, before, window(before, 20, "t"), [definition("t", 15)], 0)
    assert published(lake, FEED) == published_by_other
    assert published(lake, FEED).definitions == {}, "what the refused run wrote is not seen"
    check_feed_name(lake, "shop_d")
    commit_window(lake, "another", Published(), window(Published(), 20, "t"), [], 0)


def test_of_two_runs_at_once_exactly_one_publishes(lake: Lake) -> None:
    before = Published()
    for number in range(1, 4):
        barrier = threading.Barrier(2)

        def run(tso: int, before: Published = before, barrier: threading.Barrier = barrier) -> Published | ConfigError:
            session = replace(lake, spark=lake.spark.newSession())
            barrier.wait()
            try:
                return commit_window(session, FEED, before, window(before, tso, "t"), [definition("t", tso)], 0)
            except ConfigError as error:
                return error

        with ThreadPoolExecutor() as pool:
            ended = list(pool.map(run, (100 * number, 100 * number + 1)))
        (winner,) = (each for each in ended if isinstance(each, Published))
        (loser,) = (each for each in ended if isinstance(each, ConfigError))
        assert "another run published" in str(loser)
        assert published(lake, FEED) == winner
        assert rows(lake, WINDOWS, number) == 1
        before = winner


def test_a_lake_of_the_first_version_is_refused_with_the_way_out(spark: SparkSession, lake_root: Path) -> None:
    lake = lake_in(spark, lake_root, f"{lake_root.parent.name}_old".lower())
    lake.register()
    lake.create(Layer.OPS, WINDOWS, "feed STRING, tso BIGINT, tables ARRAY<STRING>", comment="of version 0.1")
    calls = (
        lambda: published(lake, FEED),
        lambda: state.published_feeds(lake),
        lambda: state_tables.create_tables(lake),
        lambda: check_feed_name(lake, FEED),
    )
    for call in calls:
        with pytest.raises(ConfigError, match=r"a version before 0\.2\.0.*new lake folder .* or new schemas"):
            call()


def test_what_a_newer_version_published_is_refused(lake: Lake) -> None:
    commit_window(lake, FEED, Published(), window(Published(), 10, "t"), [], 0)
    lake.spark.sql(f"UPDATE {lake.table(Layer.OPS, WINDOWS)} SET format = format + 1")
    with pytest.raises(ConfigError, match=f"feed {FEED}: window 1 was published by a newer version"):
        published(lake, FEED)


def test_row_of_a_window_says_when_and_how_far(lake: Lake) -> None:
    now = replace(window(Published(), 1 << 40, "t"), batch=7)
    commit_window(lake, FEED, Published(), now, [], 3)
    (row,) = rows_of(lake, WINDOWS, FEED).collect()
    values = [
        row[name] for name in ("number", "base", "tso", "from_tso", "batch", "row_changes", "replays_seen", "mode")
    ]
    assert values == [1, 1, 1 << 40, 0, 7, 3, None, "watermarks"]
    assert abs((row["published_at"].astimezone(UTC) - datetime.now(UTC)).total_seconds()) < 60
