"""Two runs on one feed, which no lock keeps apart on Databricks: the one that publishes first is not harmed."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from changefeed import Changefeed, Source, as_on_databricks, at, ddl
from pyspark.errors import AnalysisException

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.commit_sessions import USER_METADATA
from ticdc_lakehouse.gold import (
    irregular,
    live_table,
    maintenance,
    table_execution,
    table_views,
    temporary_files,
    view_marker,
    views,
    windows,
)
from ticdc_lakehouse.gold.live_commits import Commits, commits_since, restore
from ticdc_lakehouse.gold.publication import publish_versions
from ticdc_lakehouse.gold.run import GoldRun
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.loop import FailedRound, Round, rounds
from ticdc_lakehouse.planning.naming import is_internal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_codec.event import Ddl
    from ticdc_lakehouse.planning.planning_input import GoldConfig
    from ticdc_lakehouse.schema.definition import Table
    from ticdc_local.broker import Broker

pytestmark = pytest.mark.long

A = Source(table="a")
B = Source(table="b")


@pytest.fixture
def feed(spark: SparkSession, broker: Broker, tmp_path: Path) -> Changefeed:
    """One row has landed, and its watermark."""
    feed = Changefeed(spark, broker, tmp_path / "lake")
    feed.send(0, A.insert(at(1), 1, "first"))
    feed.resolve(at(2))
    feed.load()
    return feed


def test_a_table_that_was_published_meanwhile_is_not_made_anew(
    feed: Changefeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply_plans = windows._apply_plans

    def beside_another(*arguments: Any) -> Any:
        monkeypatch.setattr(windows, "_apply_plans", apply_plans)
        windows.apply(feed.lake, feed.run.gold_config)
        return apply_plans(*arguments)

    monkeypatch.setattr(windows, "_apply_plans", beside_another)
    with pytest.raises(ConfigError, match="another run published window 1 meanwhile; this one publishes nothing"):
        windows.apply(feed.lake, feed.run.gold_config, until_tso=at(2))
    assert feed.rows("a") == {1: ("first",)}
    feed.send(0, A.insert(at(3), 2, "second"))
    feed.resolve(at(4))
    feed.go()
    assert feed.rows("a") == {1: ("first",), 2: ("second",)}


@pytest.mark.parametrize("at_work", [False, True])
def test_a_new_table_that_another_run_made_anew_is_not_published(
    feed: Changefeed, monkeypatch: pytest.MonkeyPatch, at_work: bool
) -> None:
    """As soon as this run had made it, or later, while this run was at work on other tables."""
    create, gold_run = table_execution.create_live_table, windows._gold_run
    made: list[Callable[[], None]] = []

    def create_and_lose(lake: Lake, name: str, *others: Any, **named: Any) -> None:
        create(lake, name, *others, **named)
        made.append(lambda: lose(lake, name, *others, **named | {"rows": None}))
        if not at_work:
            made.pop()()

    def lose(lake: Lake, name: str, *others: Any, **named: Any) -> None:
        feed.lake.drop(Layer.LIVE, name)
        lake.spark.conf.set(USER_METADATA, '{"run": "another"}')
        create(lake, name, *others, **named)

    def run_without_lock(*arguments: Any, **named: Any) -> GoldRun:
        return replace(gold_run(*arguments, **named), lake=as_on_databricks(feed.lake))

    with monkeypatch.context() as patch:
        patch.setattr(table_execution, "create_live_table", create_and_lose)
        patch.setattr(windows, "_gold_run", run_without_lock)
        patch.setattr(windows, "_check_retention", lambda *_: [each() for each in made])
        with pytest.raises(ConfigError, match="another run wrote version 0 "):
            feed.apply()
    assert feed.state.number == 0
    feed.apply()
    assert feed.rows("a") == {1: ("first",)}


def test_views_that_another_run_moved_on_are_not_put_back(feed: Changefeed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.apply()
    feed.send(0, A.update(at(3), (1, "first"), (1, "second")))
    feed.resolve(at(4))
    feed.load()
    show = views.show

    def beside_another(*arguments: Any, **named: Any) -> None:
        monkeypatch.setattr(views, "show", show)
        windows.apply(feed.lake, feed.run.gold_config)
        show(*arguments, **named)

    view_marker.mark_stale(feed.lake, feed.name)
    monkeypatch.setattr(views, "show", beside_another)
    views.refresh(feed.lake, feed.run.gold_config)
    assert feed.state.tso == at(4)
    assert feed.rows("a") == {1: ("second",)}


def test_a_restore_to_an_older_version_than_the_published_one_is_undone(feed: Changefeed) -> None:
    """As maintenance does that began before the window, and publishes nothing then."""
    feed.apply()
    feed.send(0, A.update(at(3), (1, "first"), (1, "second")))
    feed.resolve(at(4))
    feed.go()
    state = feed.state.tables["shop", "a"]
    maintenance = Commits(lake=feed.lake, feed=feed.name, run="maintenance")
    restore(maintenance.at(state.applied_tso), state.lake_name, state.version - 1)
    feed.send(0, A.insert(at(5), 2, "third"))
    feed.resolve(at(6))
    feed.go()
    assert feed.rows("a") == {1: ("second",), 2: ("third",)}


@pytest.fixture
def maintained(feed: Changefeed) -> Changefeed:
    """Two tables are published; a change of one of them has landed."""
    feed.send(0, B.insert(at(3), 1, "quiet"))
    feed.resolve(at(4))
    feed.go()
    feed.send(0, A.update(at(5), (1, "first"), (1, "second")))
    feed.resolve(at(6))
    feed.load()
    return feed


def test_maintenance_pins_views_on_top_of_what_gold_publishes_meanwhile(
    maintained: Changefeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else that of a feed with many tables, which takes longer than the pause between two runs, would never end."""
    feed, config = maintained, maintained.run.gold_config
    compact, publish_versions = maintenance._compact, maintenance.publish_versions

    def compact_beside_gold(*arguments: Any) -> None:
        monkeypatch.setattr(maintenance, "_compact", compact)
        windows.apply(feed.lake, config)
        compact(*arguments)

    def publish_after_gold(*arguments: Any) -> Any:
        monkeypatch.setattr(maintenance, "publish_versions", publish_versions)
        feed.resolve(at(7))
        feed.load()
        windows.apply(feed.lake, config)
        return publish_versions(*arguments)

    monkeypatch.setattr(maintenance, "_compact", compact_beside_gold)
    monkeypatch.setattr(maintenance, "publish_versions", publish_after_gold)
    before = feed.state
    maintenance.maintain(as_on_databricks(feed.lake), config)
    assert feed.state.tso == at(7)
    assert (feed.rows("a"), feed.rows("b")) == ({1: ("second",)}, {1: ("quiet",)})
    assert {state.stable_id: state.version for state in feed.state.tables.values()} == feed.data_versions()
    assert feed.state.tables["shop", "b"].version > before.tables["shop", "b"].version


def test_maintenance_does_not_put_back_what_gold_is_about_to_publish(
    maintained: Changefeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, config = maintained, maintained.run.gold_config
    apply_plans, before = windows._apply_plans, maintained.state

    def beside_maintenance(*arguments: Any) -> Any:
        monkeypatch.setattr(windows, "_apply_plans", apply_plans)
        outcomes = apply_plans(*arguments)
        maintenance.maintain(as_on_databricks(feed.lake), config)
        return outcomes

    monkeypatch.setattr(windows, "_apply_plans", beside_maintenance)
    with pytest.raises(ConfigError, match="another run published"):
        windows.apply(feed.lake, config)
    state = feed.state.tables["shop", "a"]
    assert state.version == before.tables["shop", "a"].version
    _, commits = commits_since(feed.lake, state.lake_name, state.version)
    assert [commit.operation for commit in commits] == ["MERGE"]
    assert feed.rows("a") == {1: ("first",)}
    feed.apply()
    assert (feed.rows("a"), feed.rows("b")) == ({1: ("second",)}, {1: ("quiet",)})


TRUNCATE = ddl(at(3), "TRUNCATE TABLE `shop`.`a`", "shop", "a", "TRUNCATE")
RENAME = ddl(at(3), "RENAME TABLE `shop`.`a` TO `shop`.`b`", "shop", "a", "RENAME")


def check_names(feed: Changefeed, table: str, rows: dict[int, tuple[str, ...]]) -> None:
    """The one table that is published has these rows, its name and its view, and takes more rows."""
    state = feed.state.tables["shop", table]
    assert feed.rows(table) == rows
    assert [name for name in feed.lake.tables(Layer.GOLD) if name.startswith(feed.name)] == [state.lake_name]
    live = [name for name in feed.lake.tables(Layer.LIVE) if not is_internal(name)]
    assert (live, live_table.id_of(feed.lake, state.lake_name)) == ([state.lake_name], state.stable_id)
    feed.send(0, replace(A, table=table).insert(at(9), 9, "later"))
    feed.resolve(at(10))
    feed.go()
    assert feed.rows(table) == {**rows, 9: ("later",)}


def publish_nothing_new(lake: Lake, config: GoldConfig) -> None:
    publish_versions(lake, config, published(lake, config.feed), {})


@pytest.mark.parametrize("action", [maintenance.maintain, publish_nothing_new])
@pytest.mark.parametrize(
    ("change", "table", "rows"), [(TRUNCATE, "a", {2: ("second",)}), (RENAME, "b", {1: ("first",), 2: ("second",)})]
)
def test_tables_that_gold_renames_during_a_search_for_wrong_names_keep_their_new_ones(
    feed: Changefeed,
    monkeypatch: pytest.MonkeyPatch,
    action: Callable[[Lake, GoldConfig], object],
    change: Ddl,
    table: str,
    rows: dict[int, tuple[str, ...]],
) -> None:
    """The search takes minutes where a feed has hundreds of tables."""
    feed.apply()
    feed.send(0, change, replace(A, table=table).insert(at(4), 2, "second"))
    feed.resolve(at(5))
    feed.load()
    tables = Lake.tables

    def beside_gold(*arguments: Any) -> list[str]:
        monkeypatch.setattr(Lake, "tables", tables)
        windows.apply(feed.lake, feed.run.gold_config)
        return tables(*arguments)

    monkeypatch.setattr(Lake, "tables", beside_gold)
    action(as_on_databricks(feed.lake), feed.run.gold_config)
    assert feed.state.tso == at(5)
    check_names(feed, table, rows)


@pytest.mark.parametrize(
    ("change", "table", "rows"), [(TRUNCATE, "a", {2: ("second",)}), (RENAME, "b", {1: ("first",), 2: ("second",)})]
)
def test_tables_that_got_their_published_names_during_a_search_are_not_renamed(
    feed: Changefeed, monkeypatch: pytest.MonkeyPatch, change: Ddl, table: str, rows: dict[int, tuple[str, ...]]
) -> None:
    """The search began between a window and its renames."""
    feed.apply()
    feed.send(0, change, replace(A, table=table).insert(at(4), 2, "second"))
    feed.resolve(at(5))
    feed.load()
    feed.die_before_renaming()
    newest = views.newest

    def beside_gold(*arguments: Any) -> Any:
        monkeypatch.setattr(views, "newest", newest)
        views.refresh(feed.lake, feed.run.gold_config)
        return newest(*arguments)

    monkeypatch.setattr(views, "newest", beside_gold)
    maintenance.maintain(as_on_databricks(feed.lake), feed.run.gold_config)
    check_names(feed, table, rows)


def test_a_table_that_gold_makes_during_a_search_keeps_its_name(
    feed: Changefeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the name that the search found to be another table's."""
    feed.apply()
    [state] = feed.state.tables.values()
    feed.send(0, RENAME)
    feed.resolve(at(5))
    feed.load()
    feed.die_before_renaming()
    newest, config = views.newest, feed.run.gold_config

    def beside_gold(*arguments: Any) -> Any:
        monkeypatch.setattr(views, "newest", newest)
        views.refresh(feed.lake, config)
        table = feed.state.definitions[state.stable_id].table
        live_table.create_live_table(feed.lake, state.lake_name, table, stable_id="unpublished", config=config)
        return newest(*arguments)

    monkeypatch.setattr(views, "newest", beside_gold)
    views.restore_names(as_on_databricks(feed.lake), config)
    assert live_table.id_of(feed.lake, state.lake_name) == "unpublished"


@pytest.mark.parametrize("is_truncated", [True, False])
def test_a_search_for_wrong_names_ends_though_gold_publishes_during_each(
    feed: Changefeed, monkeypatch: pytest.MonkeyPatch, is_truncated: bool
) -> None:
    """A staging table is truncated in each interval; or a dead `load` left a table, which goes after a day."""
    feed.apply()
    lake, config = as_on_databricks(feed.lake), feed.run.gold_config
    tables, seconds = Lake.tables, count(3, 2)
    left = f"{feed.name}_shop_left__data_5"
    live_table.create_live_table(
        feed.lake,
        left,
        feed.state.definitions[feed.state.tables["shop", "a"].stable_id].table,
        stable_id=left,
        config=config,
    )
    monkeypatch.setattr(live_table, "_ABANDONED_AFTER", timedelta())
    searches = 0

    def beside_gold(*arguments: Any) -> list[str]:
        nonlocal searches
        searches += 1
        assert searches < 5, "it searches for ever"
        second = next(seconds)
        if is_truncated:
            feed.send(0, ddl(at(second), "TRUNCATE TABLE `shop`.`a`", "shop", "a", "TRUNCATE"))
        feed.send(0, A.insert(at(second + 1), second, "new"))
        feed.resolve(at(second + 1))
        feed.load()
        with monkeypatch.context() as patch:
            patch.setattr(Lake, "tables", tables)
            windows.apply(feed.lake, config)
        return tables(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "tables", beside_gold)
        views.restore_names(lake, config)
    assert searches == 1
    assert not feed.lake.exists(Layer.LIVE, left)
    check_names(feed, "a", {3: ("new",)} if is_truncated else {1: ("first",), 3: ("new",)})


def test_views_are_made_once_though_gold_publishes_meanwhile(
    maintained: Changefeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of hundreds of tables take longer than gold's interval: only those that gold changed are made again."""
    feed, config, made = maintained, maintained.run.gold_config, list[str]()
    gold_view, seconds = table_views.gold_view, iter((7, 9))

    def beside_gold(lake: Lake, config: GoldConfig, table: Table, *others: Any, **named: Any) -> None:
        made.append(table.table)
        if (second := next(seconds, None)) is not None:
            feed.send(0, A.update(at(second), (1, ""), (1, f"at {second}")))
            feed.resolve(at(second))
            feed.load()
            with monkeypatch.context() as patch:
                patch.setattr(table_views, "gold_view", gold_view)
                windows.apply(feed.lake, config)
        gold_view(lake, config, table, *others, **named)

    monkeypatch.setattr(table_views, "gold_view", beside_gold)
    publish_nothing_new(as_on_databricks(feed.lake), config)
    assert (sorted(made[:2]), made[2:]) == (["a", "b"], ["a"])
    assert (feed.state.tso, feed.rows("a"), feed.rows("b")) == (at(9), {1: ("at 9",)}, {1: ("quiet",)})


def test_what_gold_changes_meanwhile_is_shown_as_gold_shows_it(
    maintained: Changefeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass that did more than gold's own publication would never end beside a busy feed."""
    feed, config, made = maintained, maintained.run.gold_config, list[str]()
    alter_view, create_view, show = Lake.alter_view, irregular.create_view, views.show

    def noted(lake: Lake, layer: Layer, name: str, query: str, **named: Any) -> None:
        made.append(f"{layer} {name.rpartition('_')[2]} {named.get('same_comment', False)}")
        alter_view(lake, layer, name, query, **named)

    def note_irregular(*arguments: Any) -> None:
        made.append("irregular")
        create_view(*arguments)

    def show_before_gold(*arguments: Any, **named: Any) -> None:
        monkeypatch.setattr(views, "show", show)
        show(*arguments, **named)
        windows.apply(feed.lake, config)
        monkeypatch.setattr(Lake, "alter_view", noted)
        monkeypatch.setattr(irregular, "create_view", note_irregular)

    monkeypatch.setattr(views, "show", show_before_gold)
    publish_nothing_new(as_on_databricks(feed.lake), config)
    assert made == ["gold a True"]
    assert (feed.state.tso, feed.rows("a"), feed.rows("b")) == (at(6), {1: ("second",)}, {1: ("quiet",)})


def test_a_table_that_gold_truncates_while_views_are_made_was_not_restored(
    maintained: Changefeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version to show is one of a table that has another name by then."""
    feed, config, gold_view = maintained, maintained.run.gold_config, table_views.gold_view
    for second in (7, 8, 9):
        feed.send(0, B.update(at(second), (1, ""), (1, f"at {second}")))
        feed.resolve(at(second))
        feed.go()
    before = feed.state
    feed.send(0, A.update(at(10), (1, "second"), (1, "third")))
    feed.send(0, ddl(at(10), "TRUNCATE TABLE `shop`.`b`", "shop", "b", "TRUNCATE"))
    feed.resolve(at(10))
    feed.load()

    def beside_gold(*arguments: Any, **named: Any) -> None:
        monkeypatch.setattr(table_views, "gold_view", gold_view)
        windows.apply(feed.lake, config)
        gold_view(*arguments, **named)

    monkeypatch.setattr(table_views, "gold_view", beside_gold)
    publish_nothing_new(as_on_databricks(feed.lake), config)
    assert (feed.state.tso, feed.rows("a"), feed.rows("b")) == (at(10), {1: ("third",)}, {})
    assert feed.state.tables["shop", "b"].version < before.tables["shop", "b"].version
    with pytest.raises(AnalysisException):
        views.show(feed.lake, config, before)
    feed.go()
    assert (feed.rows("a"), feed.rows("b")) == ({1: ("third",)}, {})


def test_names_that_nobody_searched_are_not_shown(maintained: Changefeed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gold publishes a RENAME during a search, and dies when it has renamed one of two tables."""
    feed, config, tables = maintained, maintained.run.gold_config, Lake.tables
    feed.send(0, ddl(at(7), "RENAME TABLE `b` TO `c`, `a` TO `b`", "shop", "b", "RENAME"))
    feed.resolve(at(8))
    feed.load()

    def beside_gold(*arguments: Any) -> list[str]:
        monkeypatch.setattr(Lake, "tables", tables)
        feed.die_before_renaming()
        b, c = (feed.state.tables["shop", name].lake_name for name in "bc")
        feed.lake.finish_renames({b: c})
        return tables(*arguments)

    monkeypatch.setattr(Lake, "tables", beside_gold)
    publish_nothing_new(as_on_databricks(feed.lake), config)
    assert not view_marker.are_current(feed.lake, config, feed.state.tables)
    feed.go()
    assert (feed.rows("b"), feed.rows("c")) == ({1: ("second",)}, {1: ("quiet",)})


def test_temporary_files_of_another_run_stay_for_a_day(feed: Changefeed) -> None:
    names = {"dead": f"{int(time.time()) - 100_000}_x", "alive": f"{int(time.time())}_x", "of an earlier build": "x"}
    parents = [feed.folder / "checkpoints" / f"gold_{feed.name}" / purpose for purpose in ("stage", "source")]
    for parent in parents:
        for name in names.values():
            (parent / name).mkdir(parents=True)
    temporary_files.remove_abandoned(as_on_databricks(feed.lake), feed.name)
    assert [[folder.name for folder in parent.glob("*")] for parent in parents] == [[names["alive"]]] * 2
    feed.apply()
    assert [[*parent.glob("*")] for parent in parents] == [[], []]


def test_a_loop_decodes_what_a_failed_round_landed(feed: Changefeed, monkeypatch: pytest.MonkeyPatch) -> None:
    landed, failed = landing._landed, []

    def fail_once(*arguments: Any) -> Any:
        if feed.state.number and not failed:
            failed.append(True)
            raise OSError("the disk is away")
        return landed(*arguments)

    monkeypatch.setattr(landing, "_landed", fail_once)
    steps = rounds([feed.run], every_seconds=0, count=3)
    assert isinstance(next(steps), Round)
    feed.send(0, A.insert(at(3), 2, "second"))
    feed.resolve(at(4))
    assert isinstance(next(steps), FailedRound)
    last = next(steps)
    assert isinstance(last, Round)
    assert (last.messages, last.tso) == (0, at(4))
    assert feed.rows("a") == {1: ("first",), 2: ("second",)}
