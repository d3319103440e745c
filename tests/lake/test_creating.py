"""Runs that create a table of the same name at the same time, and folders that a killed one left, on a laptop."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from changefeed import Changefeed, Source, at, ddl

from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_lakehouse.gold.live_table import create_live_table
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.schema.script import tables_from_sql

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker


def create_live(lake: Lake, name: str) -> None:
    (table,) = tables_from_sql("CREATE TABLE shop.t (id BIGINT PRIMARY KEY)")
    create_live_table(lake, name, table, stable_id=name, config=GoldConfig(feed="f", time_zone="UTC"))


def lake_of(spark: SparkSession, layer: Layer, root: Path) -> Lake:
    schemas = {layer: f"creating_{layer}"}
    lake = FolderLake(spark=spark, catalog="spark_catalog", schemas=schemas, checkpoints="", root=root)
    lake.register()
    return lake


def create_bronze(lake: Lake, name: str) -> None:
    """As a replay does, and a load, without the lock of bronze."""
    lake.create(Layer.BRONZE, name, "a INT", comment="of another run")


@pytest.mark.parametrize(("layer", "create"), [(Layer.LIVE, create_live), (Layer.BRONZE, create_bronze)])
def test_a_run_waits_while_another_one_creates_a_table_of_the_same_name(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    layer: Layer,
    create: Callable[[Lake, str], None],
) -> None:
    """No lock of its feed keeps the other run away."""
    lake = lake_of(spark, layer, tmp_path)
    written, lock, waits = tmp_path / layer / "taken" / "part-00000.parquet", fcntl.flock, Event()

    def flock(*arguments: Any) -> None:
        waits.set()
        lock(*arguments)

    (tmp_path / layer).mkdir()
    with ThreadPoolExecutor(1) as pool:
        with lake.creating(layer, "taken"):
            written.parent.mkdir()
            written.touch()
            monkeypatch.setattr(fcntl, "flock", flock)
            created = pool.submit(create, lake, "taken")
            created.add_done_callback(lambda _: waits.set())
            assert waits.wait(300)
            assert written.exists()
        created.result()
    assert lake.exists(layer, "taken")
    assert not written.exists()


def leave_folder(folder: Path, *, age: float) -> None:
    """What a run leaves that was killed while it created a table with rows."""
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "part-00000.parquet").touch()
    for path in (folder, *folder.iterdir()):
        os.utime(path, (time.time() - age,) * 2)


@pytest.mark.long
def test_a_folder_that_a_killed_run_left_keeps_no_table_from_its_name(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake")
    feed.send(0, Source(table="a").insert(at(1), 1, "a"))
    feed.resolve(at(1))
    feed.go()
    leave_folder(feed.folder / Layer.LIVE / f"{feed.name}_shop_b", age=0)
    feed.send(0, ddl(at(2), "RENAME TABLE `shop`.`a` TO `shop`.`b`", "shop", "b", "RENAME"))
    feed.resolve(at(3))
    feed.go()
    assert feed.rows("b") == {1: ("a",)}


def test_maintenance_removes_folders_that_killed_runs_left(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Not those that a run is creating, or may be, nor what somebody else put there."""
    feed = Changefeed(spark, broker, tmp_path / "lake")
    names = ("left", "new", "being_created", "copy_of_a_user")
    folders = {name: feed.folder / Layer.LIVE / name for name in names}
    for name in ("left", "new"):
        with feed.lake.creating(Layer.LIVE, name):
            pass
    with feed.lake.creating(Layer.LIVE, "being_created"):
        for name, folder in folders.items():
            leave_folder(folder, age=0 if name == "new" else 3600)
        feed.run.maintain()
    assert [name for name, folder in folders.items() if folder.exists()] == ["new", "being_created", "copy_of_a_user"]


def test_a_lake_whose_table_was_half_dropped_can_be_opened(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a run that was killed: files of a folder go in any order, the first commit may be the first."""
    lake = lake_of(spark, Layer.LIVE, tmp_path)
    create_live(lake, "items")
    spark.sql(f"ALTER TABLE {lake.table(Layer.LIVE, 'items')} SET TBLPROPERTIES ('a' = 'b')")

    def die_after_the_first_commit(folder: Path, **_: object) -> None:
        (first,) = folder.rglob("00000000000000000000.json")
        first.unlink()
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", die_after_the_first_commit)
        with pytest.raises(InterruptedError):
            lake.drop(Layer.LIVE, "items")
    lake.refresh()
    assert lake.tables(Layer.LIVE) == []
    create_live(lake, "items")
    assert lake.version(lake.table(Layer.LIVE, "items")) == 0


def test_a_folder_that_another_run_renames_meanwhile_gets_no_other_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without columns, in whose place that run could rename no table any more. Earlier versions left such ones."""
    lake = lake_of(spark, Layer.LIVE, tmp_path)
    create_live(lake, "orders")
    orders, sales, empty = (tmp_path / Layer.LIVE / name for name in ("orders", "sales", "empty"))
    with monkeypatch.context() as patch:
        patch.setattr(FolderLake, "_make_schema", lambda *_: orders.rename(sales))
        spark.sql(f"DROP TABLE {lake.table(Layer.LIVE, 'orders')}")  # another session's
        lake.refresh()
    assert not orders.exists()
    spark.conf.set("spark.databricks.delta.createEmptySchemaTable.enabled", "true")
    spark.sql(f"CREATE TABLE {lake.table(Layer.LIVE, 'empty')} USING delta LOCATION '{empty}'")
    spark.conf.set("spark.databricks.delta.createEmptySchemaTable.enabled", "false")
    spark.sql(f"DROP TABLE {lake.table(Layer.LIVE, 'empty')}")
    lake.refresh()
    assert sorted(lake.tables(Layer.LIVE)) == ["sales"]
    lake.finish_renames({"sales": "empty"})
    assert lake.columns(Layer.LIVE, "empty")
