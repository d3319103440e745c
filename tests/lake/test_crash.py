"""A run that dies between any two writes: the next one repairs it, and readers never see half a window."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import kill
import pytest
from changefeed import ID, Changefeed, Source, V, at, ddl, lake_in
from dumpling_export import write_metadata, write_table
from pyspark.errors import StreamingQueryException

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column
from ticdc_codec.name_case import fold
from ticdc_lakehouse.bronze import micro_batch
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold import irregular, maintenance, state, table_execution, table_views, view_marker
from ticdc_lakehouse.gold.maintenance import maintain
from ticdc_lakehouse.gold.state_tables import DEFINITIONS
from ticdc_lakehouse.gold.time_travel import as_of
from ticdc_local.delta_reader import DeltaReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

A, B = Source(table="a"), Source(table="b")
W = Column(name="w", type="int")


class PowerCutError(Exception):
    """The run dies here."""


def dies(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, *, after: int) -> None:
    """Let a function of a module work so often, then raise."""
    original: Callable[..., Any] = getattr(module, name)
    calls = 0

    def function(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > after:
            raise PowerCutError
        return original(*args, **named)

    monkeypatch.setattr(module, name, function)


def apply_and_die(feed: Changefeed, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, *, after: int) -> None:
    """A run of gold that dies in a function of a module, after so many of its calls."""
    with monkeypatch.context() as patch:
        dies(patch, module, name, after=after)
        with pytest.raises(PowerCutError):
            feed.apply()


def write(feed: Changefeed, second: int) -> None:
    """A transaction over both tables, and its watermark."""
    if second == 1:
        feed.send(0, A.insert(at(1), 1, "1"), B.insert(at(1), 1, "1"))
    else:
        old, new = (1, second - 1), (1, second)
        feed.send(0, A.update(at(second), old, new), B.update(at(second), old, new))
    feed.send(0, A.insert(at(second), 10 + second, "x"), B.insert(at(second), 10 + second, "x"))
    feed.resolve(at(second))


def with_second_window(spark: SparkSession, broker: Broker, folder: Path) -> Changefeed:
    """The first window published, the second in silver."""
    feed = Changefeed(spark, broker, folder)
    write(feed, 1)
    feed.go()
    write(feed, 2)
    feed.load()
    return feed


def expected(second: int) -> dict[int, tuple[str]]:
    return {1: (str(second),)} | {10 + s: ("x",) for s in range(1, second + 1)}


def forget_views(feed: Changefeed) -> None:
    """As a new session of a laptop begins."""
    view_marker.mark_stale(feed.lake, feed.name)
    table_views.drop(feed.lake, {state.lake_name for state in feed.state.tables.values()})


def check(feed: Changefeed, second: int) -> None:
    """Both tables show this second, in the views and as of the published watermark."""
    assert feed.state.tso == at(second)
    assert feed.rows("a") == expected(second)
    assert feed.rows("b") == expected(second)


def test_gold_continues_where_it_died_between_two_tables_and_before_publishing(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = with_second_window(spark, broker, tmp_path)
    for module, name, after in ((table_execution, "merge", 1), (state, "commit_window", 0)):
        apply_and_die(feed, monkeypatch, module, name, after=after)
        check(feed, 1)
    feed.apply()
    check(feed, 2)


@pytest.mark.long
def test_gold_continues_wherever_it_died(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Changefeed(spark, broker, tmp_path)
    write(feed, 1)
    feed.load()

    # In the very first window: a table is made with its rows, and nobody knows.
    apply_and_die(feed, monkeypatch, table_execution, "first_rows", after=1)
    assert feed.state.tso == 0
    feed.apply()
    check(feed, 1)

    # Between two tables' merges. The next run goes less far than the dead one meant to.
    write(feed, 2)
    write(feed, 3)
    feed.load()
    apply_and_die(feed, monkeypatch, table_execution, "merge", after=1)
    check(feed, 1)
    feed.apply(until_tso=at(2))
    check(feed, 2)

    # Before publishing.
    apply_and_die(feed, monkeypatch, state, "commit_window", after=0)
    check(feed, 2)
    feed.apply()
    check(feed, 3)

    # After publishing, between the views; a table that is new has none yet.
    write(feed, 4)
    feed.send(0, Source(table="new").insert(at(4), 1, "n"))
    feed.resolve(at(5))
    feed.load()
    apply_and_die(feed, monkeypatch, table_views, "gold_view", after=1)
    assert feed.state.tso == at(5)
    feed.apply()
    assert feed.rows("a") == feed.rows("b") == expected(4)
    assert feed.rows("new") == {1: ("n",)}
    assert spark.table(feed.lake.table(Layer.SILVER, f"{feed.name}_shop_new")).count() == 1
    definitions = spark.table(feed.lake.table(Layer.OPS, DEFINITIONS))
    assert definitions.count() == 3


@pytest.mark.long
def test_a_run_that_finds_the_writes_of_another_publishes_nothing(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Databricks no lock keeps the second one out."""
    feed = with_second_window(spark, broker, tmp_path)
    merge = table_execution.merge

    def merge_beside_another(lake: Lake, name: str, *others: Any) -> None:
        spark.newSession().sql(f"DELETE FROM {lake.table(Layer.LIVE, name)}")
        merge(lake, name, *others)

    with monkeypatch.context() as patch:
        patch.setattr(table_execution, "merge", merge_beside_another)
        with pytest.raises(ConfigError, match=r"another run wrote version \d+ \(DELETE"):
            feed.apply()
    check(feed, 1)
    maintain(feed.lake, feed.run.gold_config)  # else VACUUM would some day delete what the views show
    check(feed, 1)
    assert {state.stable_id: state.version for state in feed.state.tables.values()} == feed.data_versions()
    feed.apply()
    check(feed, 2)


@pytest.mark.long
def test_maintenance_takes_back_what_a_dead_run_wrote_before_it_deletes_files(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads no states of a run that died before its window. And a run of it that dies on the views leaves them to
    the next run of gold."""
    feed = Changefeed(spark, broker, tmp_path)
    write(feed, 1)
    feed.go()
    feed.send(0, Source(table="c").insert(at(2), 1, "c"))
    write(feed, 2)
    feed.load()
    apply_and_die(feed, monkeypatch, state, "_commit", after=0)
    view_marker.mark_current(
        feed.lake, feed.run.gold_config, feed.state.tables
    )  # as behind a run that died while it merged
    compact, compacted = maintenance._compact, []

    def compact_and_tell(lake: Lake, name: str, *others: Any) -> None:
        compacted.append(name)
        compact(lake, name, *others)

    monkeypatch.setattr(maintenance, "_compact", compact_and_tell)
    monkeypatch.setattr(maintenance, "kept_days", lambda _: 0)  # what was replaced is as old as a blocked table's rows
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        with monkeypatch.context() as patch:
            dies(patch, maintenance.views, "refresh", after=0)
            with pytest.raises(PowerCutError):
                maintain(feed.lake, feed.run.gold_config)
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert {state.stable_id: state.version for state in feed.state.tables.values()} == feed.data_versions()
    assert sorted(compacted) == [f"{feed.name}_shop_a", f"{feed.name}_shop_b"], "nothing of c is published"
    for table in as_of(spark, feed.name, at(1), lake=feed.lake).tables.values():
        assert {row["id"]: (row["v"],) for row in table.collect()} == expected(1)
    assert not view_marker.are_current(feed.lake, feed.run.gold_config, feed.state.tables)
    assert feed.apply().tso == at(2)
    check(feed, 2)
    assert feed.rows("c") == {1: ("c",)}


@pytest.mark.long
def test_a_run_that_died_beside_a_loop_is_seen_at_the_next_commit(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """A loop keeps its state, and does not look at live tables that only it writes."""
    feed = Changefeed(spark, broker, tmp_path)
    write(feed, 1)
    known = feed.go().state
    write(feed, 2)
    feed.load()
    feed.die_before_publishing()
    write(feed, 3)
    feed.load()
    with pytest.raises(ConfigError, match=r"another run wrote version \d+ \(MERGE"):
        feed.run.gold(known)
    check(feed, 1)
    known = feed.apply().state  # after a failure the loop reads the state anew
    check(feed, 3)
    write(feed, 4)
    feed.load()
    feed.run.gold(known)
    check(feed, 4)


def test_folders_of_tables_that_a_killed_run_was_creating_are_no_tables(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Delta makes a table's log, without a commit, before it writes the rows of a CREATE TABLE AS SELECT."""
    feed = Changefeed(spark, broker, tmp_path)
    name = f"{feed.name}_shop_a"
    tables = (Layer.LIVE, name), (Layer.BRONZE, f"{feed.name}_messages")
    for layer, table in tables:
        folder = feed.lake.root / layer / table
        (folder / "_delta_log" / "_staged_commits").mkdir(parents=True)
        (folder / "part-00000.parquet").touch()
        for path in (folder, *folder.rglob("*")):
            os.utime(path, (0, 0))
    feed.lake.register()
    assert not any(feed.lake.exists(*table) for table in tables)
    assert not any(DeltaReader(feed.lake.root).exists(*table) for table in tables)
    write(feed, 1)
    feed.go()
    check(feed, 1)
    assert not (feed.lake.root / Layer.LIVE / name / "part-00000.parquet").exists()


def test_a_table_that_another_run_is_creating_is_left_alone(spark: SparkSession, lake_root: Path) -> None:
    lake = lake_in(spark, lake_root, "being_created")
    log = lake_root / Layer.OPS / "being_created" / "_delta_log"
    log.mkdir(parents=True)
    lake.register()
    lake.remove_abandoned(Layer.OPS)
    assert log.exists()


def test_bronze_dies_between_its_two_appends(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Changefeed(spark, broker, tmp_path)
    for second in (1, 2):
        write(feed, second)
        with monkeypatch.context() as patch:
            dies(patch, micro_batch, "_append", after=1)
            with pytest.raises(StreamingQueryException):
                feed.run.bronze()
        if second == 2:  # it lands the batch a second time
            shutil.rmtree(feed.lake.checkpoint(f"bronze_{feed.name}"))
        feed.run.silver()  # decodes what bronze has, although bronze does not yet say how far that is
        feed.apply()
        assert feed.state.tso == (0 if second == 1 else at(second - 1))
        feed.go()
        check(feed, second)
        if second == 1:
            feed.check_nothing_lost_or_doubled()


@pytest.mark.long
def test_a_drop_and_a_rename_that_were_published_are_finished_by_the_next_command(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake")
    write(feed, 1)
    feed.send(0, Source(table="c").insert(at(1), 1, "c"))
    feed.resolve(at(2))
    feed.go()

    def dies_before_renaming(second: int, text: str, table: str) -> None:
        feed.send(0, ddl(at(second), text, "shop", table, ""))
        feed.resolve(at(second + 1))
        feed.load()
        apply_and_die(feed, monkeypatch, Lake, "begin_renames", after=0)

    dies_before_renaming(3, "DROP TABLE `a`", "a")
    feed.resolve(at(5))
    feed.go()
    assert f"{feed.name}_shop_a" not in feed.lake.tables(Layer.LIVE)
    assert len(as_of(spark, feed.name, at(2), lake=feed.lake).tables["shop.a"].collect()) == 2

    dies_before_renaming(6, "RENAME TABLE `b` TO `d`", "b")
    write_metadata(tmp_path / "export", at(7))
    create = "CREATE TABLE `c` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))"
    write_table(tmp_path / "export", "shop.c", create, ("id", "v"), [(7, "of the export")])
    feed.run.load(str(tmp_path / "export"))
    feed.resolve(at(8))
    feed.go()
    assert (feed.rows("c"), feed.rows("d")) == ({7: ("of the export",)}, {1: ("1",), 11: ("x",)})


@pytest.mark.long
def test_rows_of_a_dead_run_do_not_stay_behind_a_row_that_blocks(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    dates = Source(table="t", columns=(ID, Column(name="v", type="date")))
    feed = Changefeed(spark, broker, tmp_path)
    feed.send(0, dates.insert(at(1), 1, "2024-01-01"))
    feed.resolve(at(2))
    feed.go()
    feed.send(0, dates.insert(at(3), 2, "0000-00-00"), dates.insert(at(4), 3, "2024-01-03"))
    feed.resolve(at(5))
    feed.load()
    feed.die_before_publishing()
    feed.described = {"gold": {"on_irregular": "block"}}
    assert feed.apply().blocked.keys() == {("shop", "t")}
    assert list(feed.rows("t")) == [1]


@pytest.mark.long
def test_a_feed_file_that_is_edited_after_a_run_died_decides_what_old_rows_get(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """The dead run gave them an estimate. The next one leaves them NULL until a change shows the value."""
    estimate = {"gold": {"on_computed_default": "estimate"}}
    feed = Changefeed(spark, broker, tmp_path, schema="CREATE TABLE shop.a (id BIGINT PRIMARY KEY, v VARCHAR(9));")
    write(feed, 1)
    feed.go()
    made = Column(name="made", type="datetime")
    query = "ALTER TABLE `shop`.`a` ADD COLUMN `made` DATETIME DEFAULT CURRENT_TIMESTAMP"
    feed.send(0, ddl(at(2), query, "shop", "a", "ALTER"))
    feed.send(0, replace(A, columns=(ID, V, made)).insert(at(3), 2, "new", "2024-01-01 00:00:00"))
    feed.resolve(at(4))
    feed.load()
    feed.described = estimate
    feed.die_before_publishing()
    feed.described = {}
    feed.apply()
    shown = {key: row[1] and str(row[1]) for key, row in feed.rows("a").items()}
    assert shown == {1: None, 11: None, 2: "2024-01-01 00:00:00"}


@pytest.mark.long
def test_next_run_completes_a_killed_one(broker: Broker, tmp_path: Path) -> None:
    result = kill.run(tmp_path, broker, kills=1, seed=1)
    assert result.mistakes == ()
    assert len(result.killed_in) == 1


@pytest.mark.long
def test_a_table_that_a_dead_run_made_is_made_anew(
    spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It was never published, and may have other columns by now. Silver, meanwhile, loses its checkpoint."""
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("made"), name="made_anew")
    feed.send(0, ddl(at(1), "CREATE TABLE `shop`.`t` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))", "shop", "t", "CREATE"))
    feed.resolve(at(2))
    feed.load()
    feed.die_before_publishing()
    feed.send(0, ddl(at(3), "ALTER TABLE `shop`.`t` ADD COLUMN `w` INT", "shop", "t", "ALTER"))
    feed.send(0, Source(table="t", columns=(*A.columns, W)).insert(at(4), 1, "a", 7))
    feed.resolve(at(5))
    shutil.rmtree(feed.lake.checkpoint(f"silver_{feed.name}"))
    assert feed.go().tso == at(5)
    assert feed.rows("t") == {1: ("a", 7)}
    accounting = feed.spark.table(feed.lake.table(Layer.SILVER, f"{feed.name}_accounting")).collect()
    assert {row["waiting"] for row in accounting} == {0}


@pytest.mark.long
def test_an_older_copy_of_silvers_checkpoint_is_refused(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """It would plan batch 1 anew, with all that came since, and Delta would ignore it: gold would wait for ever."""
    feed = Changefeed(spark, broker, tmp_path, schema="CREATE TABLE shop.t (id BIGINT PRIMARY KEY, v VARCHAR(9));")
    checkpoint, older = feed.lake.checkpoint(f"silver_{feed.name}"), tmp_path / "older copy of the checkpoint"
    for second in (1, 2):
        feed.send(0, Source(table="t").insert(at(second), second, "a"))
        feed.resolve(at(second))
        assert feed.go().tso == at(second)
        if second == 1:
            shutil.copytree(checkpoint, older)
    shutil.rmtree(checkpoint)
    shutil.copytree(older, checkpoint)
    feed.send(0, Source(table="t").insert(at(3), 3, "a"))
    feed.resolve(at(3))
    feed.run.bronze()
    for _ in range(2):
        with pytest.raises(ConfigError, match=f"silver has batch 1, its checkpoint {checkpoint} ends with batch 0: "):
            feed.run.silver()
    shutil.rmtree(checkpoint)
    assert feed.go().tso == at(3)
    assert feed.rows("t") == {1: ("a",), 2: ("a",), 3: ("a",)}
    accounting = spark.table(feed.lake.table(Layer.SILVER, f"{feed.name}_accounting")).collect()
    assert {row["waiting"] for row in accounting} == {0}


@pytest.mark.long
def test_an_older_copy_of_a_live_table_is_refused(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lacks the changes of its published version, and later ones would be merged into it all the same. A new session
    of a laptop, which has no views yet, says so, too, and loads the table, though an export spells it otherwise."""
    feed = with_second_window(spark, broker, tmp_path / "lake")
    folder, older = feed.folder / Layer.LIVE / feed.shown_name("a"), tmp_path / "older copy of the table"
    shutil.copytree(folder, older)
    feed.apply()
    shutil.rmtree(folder)
    shutil.copytree(older, folder)
    feed.lake.refresh()
    write(feed, 3)
    feed.load()
    for begin in (lambda: None, lambda: forget_views(feed), lambda: None):
        begin()
        with pytest.raises(ConfigError, match=r"_shop_a` is at version \d+, and has been at \d+: it was restored"):
            feed.apply()
    write_metadata(tmp_path / "export", at(2))
    create = "CREATE TABLE `A` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))"
    rows = [(key, text) for key, (text,) in expected(2).items()]
    write_table(tmp_path / "export", "shop.a", create, ("id", "v"), rows)
    forget_views(feed)
    counted: list[set[str]] = []
    monkeypatch.setattr(
        irregular, "create_view", lambda *given: counted.append({fold(each.table) for each, _ in given[2]})
    )
    feed.run.load(str(tmp_path / "export"))
    assert counted == [{"b"}, {"a", "b"}], "the loaded table is not left out of the view of irregular values"
    assert view_marker.are_current(feed.lake, feed.run.gold_config, feed.state.tables)
    check(feed, 3)
