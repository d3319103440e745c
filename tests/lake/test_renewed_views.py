"""Views after what they do not see: a RENAME of a blocked table, one by another process, another policy in the feed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from changefeed import ID, Changefeed, Source, V, at, ddl, lake_in

from ticdc_codec.event import Column
from ticdc_lakehouse import catalog
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold import views
from ticdc_lakehouse.planning.published_state import Published
from ticdc_local.cli import sql
from ticdc_local.delta_reader import DeltaReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from ticdc_lakehouse.folder_lake import FolderLake
    from ticdc_local.broker import Broker

T, U = Source(table="t"), Source(table="u")
DATED = Source(table="dated", columns=(ID, V, Column(name="d", type="date")))
NEW = Source(table="new", columns=DATED.columns)
SCHEMA = """
CREATE TABLE shop.t (id BIGINT PRIMARY KEY, v VARCHAR(9));
CREATE TABLE shop.dated (id BIGINT PRIMARY KEY, v VARCHAR(9), d DATE);
"""
BLOCKING = "ALTER TABLE t ADD w BIGINT AS (id + 1) STORED"


def silver(feed: Changefeed, table: str) -> list[tuple[object, ...]]:
    view = feed.lake.table(Layer.SILVER, feed.shown_name(table))
    return [*map(tuple, feed.spark.sql(f"SELECT id, v FROM {view} ORDER BY id").collect())]


def irregular(feed: Changefeed) -> list[tuple[object, ...]]:
    return [*map(tuple, feed.spark.table(feed.lake.table(Layer.OPS, f"{feed.name}_irregular")).collect())]


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """One window is published."""
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("renewed"), schema=SCHEMA)
    feed.send(0, T.insert(at(1), 1, "of t"), U.insert(at(1), 1, "of u"), DATED.insert(at(1), 1, "a", "0000-00-00"))
    feed.resolve(at(2))
    feed.go()
    return feed


@pytest.mark.long
def test_another_policy_of_irregular_dates_renews_the_views(feed: Changefeed) -> None:
    assert feed.rows("dated") == {1: ("a", None, {"d": "0000-00-00"})}
    assert irregular(feed) == [("shop", "dated", "d", 1)]
    feed.described = {"gold": {"on_irregular": "text"}}
    feed.apply()
    assert feed.rows("dated") == {1: ("a", "0000-00-00")}
    assert irregular(feed) == []


@pytest.mark.long
def test_views_of_a_table_renamed_while_blocked_show_its_own_rows(feed: Changefeed) -> None:
    """Also where a new session makes them again: another table has its earlier name. The policy changes back."""
    feed.described = {}
    feed.send(0, ddl(at(3), BLOCKING, "shop", "t", "ALTER"))
    feed.send(0, ddl(at(4), "RENAME TABLE shop.t TO shop.n", "shop", "t", "RENAME"))
    feed.send(0, ddl(at(5), "RENAME TABLE shop.u TO shop.t", "shop", "u", "RENAME"))
    feed.send(0, T.insert(at(6), 2, "was u"), NEW.insert(at(6), 1, "b", "2024-05-00"))
    feed.resolve(at(7))
    feed.go()
    for _ in range(2):
        assert (feed.rows("n"), silver(feed, "n")) == ({1: ("of t",)}, [])
        assert feed.rows("t") == {1: ("of u",), 2: ("was u",)}
        assert feed.rows("dated") == {1: ("a", None, {"d": "0000-00-00"})}
        assert sorted(irregular(feed)) == [("shop", "dated", "d", 1), ("shop", "new", "d", 1)]
        views.refresh(feed.lake, feed.run.gold_config)


@pytest.mark.long
def test_another_version_of_the_package_makes_all_views_anew(feed: Changefeed, monkeypatch: pytest.MonkeyPatch) -> None:
    def versions() -> set[str | None]:
        marker = feed.spark.table(feed.lake.table(Layer.OPS, f"{feed.name}_views_in_place")).first()
        assert marker is not None
        made = [
            (Layer.OPS, "tables"),
            (Layer.OPS, f"{feed.name}_accounting"),
            (Layer.SILVER, f"{feed.name}_quarantine"),
        ]
        return {marker[0].split()[0], *(feed.lake.property(*view, "ticdc_lake.version") for view in made)}

    assert versions() == {catalog.VERSION}
    for module in (catalog, views):
        monkeypatch.setattr(module, "VERSION", "99.1")
    feed.go()
    assert versions() == {"99.1"}


@pytest.mark.long
def test_a_prompt_follows_tables_that_another_process_renames(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view there reads a version of a folder, and the folders of two tables change places."""
    feed, options = Changefeed(spark, broker, tmp_path), argparse.Namespace(project=Path(), lake=None)
    prompt = lake_in(spark, tmp_path, f"prompt_of_{feed.name}")
    monkeypatch.setattr(sql, "feed_files", lambda _: {feed.name: feed.write_file()})
    monkeypatch.setattr(sql, "open_reader", lambda _: DeltaReader(tmp_path))
    monkeypatch.setattr(sql, "feed_run", lambda *_: feed.run)
    feed.send(0, T.insert(at(1), 1, "of t"), U.insert(at(1), 1, "of u"))
    feed.resolve(at(1))
    feed.go()
    feed.send(0, U.insert(at(2), 2, "of u"))
    feed.resolve(at(2))
    feed.go()
    prompt.register()
    view = prompt.table(Layer.GOLD, feed.shown_name("t"))
    with monkeypatch.context() as renaming:  # a run is about to give tables their names
        renaming.setattr(sql, "has_published_names", lambda *_: False)
        unsettled = sql.refresh_views(options, prompt)
        assert sql.follow_renames(options, prompt, unsettled) == unsettled == {feed.name: Published()}
    seen = sql.follow_renames(options, prompt, unsettled)
    assert seen is not None
    assert spark.table(view).count() == 1
    assert sql.follow_renames(options, prompt, seen) == seen
    feed.send(0, ddl(at(3), "RENAME TABLE `t` TO `w`, `u` TO `t`, `w` TO `u`", "shop", "t", "RENAME"))
    feed.resolve(at(3))
    feed.go()
    with monkeypatch.context() as renaming:
        renaming.setattr(sql, "has_published_names", lambda *_: False)
        hidden = sql.follow_renames(options, prompt, seen)
        assert hidden == unsettled
        assert not spark.catalog.tableExists(view)
    seen = sql.follow_renames(options, prompt, hidden)
    assert seen is not None
    assert seen[feed.name].tso == at(3)
    assert {(row["id"], row["v"]) for row in spark.table(view).collect()} == {(1, "of u"), (2, "of u")}


@pytest.fixture
def watched(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Changefeed, FolderLake]:
    """A feed whose table u has been changed in several windows, and the lake of a prompt."""
    feed, prompt = Changefeed(spark, broker, tmp_path), lake_in(spark, tmp_path, f"prompt_of_{tmp_path.name}")
    monkeypatch.setattr(sql, "feed_files", lambda _: {feed.name: feed.write_file()})
    monkeypatch.setattr(sql, "open_reader", lambda _: DeltaReader(tmp_path))
    monkeypatch.setattr(sql, "feed_run", lambda *_: feed.run)
    feed.send(0, T.insert(at(1), 1, "of t"), U.insert(at(1), 1, "of u"))
    for second in (2, 3, 4):
        feed.send(0, U.insert(at(second), second, "of u"))
        feed.resolve(at(second))
        feed.go()
    prompt.register()
    return feed, prompt


def refreshed_beside(
    monkeypatch: pytest.MonkeyPatch, watched: tuple[Changefeed, FolderLake], act: Callable[[Changefeed], object]
) -> tuple[int, dict[str, int]]:
    """The TSO whose views a prompt has made while another process acts, and how many rows each has."""
    (feed, prompt), show = watched, views.show
    made = {name: prompt.table(Layer.GOLD, feed.shown_name(name)) for name in ("t", "u")}

    def show_beside_gold(*arguments: Any) -> None:
        monkeypatch.setattr(views, "show", show)
        act(feed)
        show(*arguments)

    monkeypatch.setattr(views, "show", show_beside_gold)
    shown = sql.refresh_views(argparse.Namespace(project=Path(), lake=None), prompt)[feed.name]
    spark = feed.spark
    return shown.tso, {
        name: spark.table(view).count() for name, view in made.items() if spark.catalog.tableExists(view)
    }


@pytest.mark.long
def test_views_are_made_again_where_a_table_is_truncated_meanwhile(
    watched: tuple[Changefeed, FolderLake], monkeypatch: pytest.MonkeyPatch
) -> None:
    def truncate(feed: Changefeed) -> None:
        feed.send(0, ddl(at(5), "TRUNCATE TABLE shop.u", "shop", "u", "TRUNCATE"))
        feed.resolve(at(5))
        feed.go()

    assert refreshed_beside(monkeypatch, watched, truncate) == (at(5), {"t": 1, "u": 0})


@pytest.mark.long
def test_views_of_before_are_gone_where_tables_are_being_renamed_meanwhile(
    watched: tuple[Changefeed, FolderLake], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run has published a RENAME, and died when it had moved one table away."""

    def rename(feed: Changefeed) -> None:
        former = feed.shown_name("u")
        feed.send(0, ddl(at(5), "RENAME TABLE shop.u TO shop.w", "shop", "u", "RENAME"))
        feed.resolve(at(5))
        feed.load()
        feed.die_before_renaming()
        feed.lake.finish_renames({former: f"{former}_elsewhere"})

    assert refreshed_beside(monkeypatch, watched, rename) == (0, {})
