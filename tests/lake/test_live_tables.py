"""Live tables: each Delta version is the table as TiDB held it at its commit's TSO; views over them keep what they are
given."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from changefeed import ID, Changefeed, Source, V, alter, at, ddl
from published_lake import published_lake

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column, Ddl
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold import live_table, maintenance, state, table_execution, views
from ticdc_lakehouse.gold.live_commits import UPKEEP, version_of
from ticdc_lakehouse.gold.live_table import has_published_names, live_name, live_names
from ticdc_lakehouse.gold.maintenance import maintain
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.gold.time_travel import as_of
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.schema.script import tables_from_sql

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

OWN = ["_ticdc_commit_ts", "_ticdc_irregular", "_ticdc_key"]
SCHEMA = "\n".join(
    f"CREATE TABLE shop.{name} (id BIGINT PRIMARY KEY, v VARCHAR(9)){parts};"
    for name, parts in {
        "altered": "",
        "a": "",
        "b": "",
        "dropped": "",
        "parted": " PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (9), PARTITION high VALUES LESS THAN (99))",
        "plain": "",
    }.items()
)
ALTERED, A, B, DROPPED, PARTED, PLAIN = (
    Source(table=name) for name in ("altered", "a", "b", "dropped", "parted", "plain")
)
W, Y, Z = Column(name="w", type="int"), Column(name="y", type="date"), Column(name="z", type="varchar")
U = replace(V, name="u", type="int")


def commented(feed: Changefeed, name: str) -> str:
    """What the comment of a live table says that it is."""
    (detail,) = feed.spark.sql(f"DESCRIBE DETAIL {feed.live(name)}").collect()
    return str(detail["description"]).partition(";")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A Delta version of a live table."""

    operation: str
    tso: int
    columns: list[str]
    rows: dict[Any, tuple[Any, ...]]


def versions(feed: Changefeed, name: str) -> list[Version]:
    """The versions of a live table that are not upkeep: ``rows`` by the first column that is called id."""
    table, found = feed.lake.table(Layer.LIVE, name), []
    for commit in sorted(feed.lake.history(table).collect(), key=lambda row: row["version"]):
        if commit["operation"] in UPKEEP:
            continue
        metadata = json.loads(commit["userMetadata"])
        assert metadata.keys() == {"feed", "tso", "run"}
        assert metadata["feed"] == feed.name
        rows = feed.spark.sql(f"SELECT * FROM {table} VERSION AS OF {commit['version']}")
        columns = [column for column in rows.columns if column not in OWN]
        assert rows.columns == [*columns, *OWN]
        held = {row["id"]: tuple(row[c] for c in columns if c != "id") for row in rows.collect()}
        found.append(Version(operation=commit["operation"], tso=metadata["tso"], columns=columns, rows=held))
    return found


def rename(second: int, *pairs: tuple[str, str]) -> Ddl:
    text = ", ".join(f"`shop`.`{old}` TO `shop`.`{new}`" for old, new in pairs)
    return ddl(at(second), f"RENAME TABLE {text}", "shop", pairs[0][0], "RENAME")


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("live"), schema=SCHEMA)
    feed.send(0, ALTERED.insert(at(1), 1, "7"), ALTERED.insert(at(1), 2, None))
    feed.send(0, A.insert(at(1), 1, "a"), B.insert(at(1), 1, "b"), DROPPED.insert(at(1), 1, "d"))
    feed.send(0, PARTED.insert(at(1), 1, "low"), PARTED.insert(at(1), 11, "high"), PLAIN.insert(at(1), 2, "plain"))
    feed.resolve(at(2))
    feed.go()
    feed.send(0, ALTERED.insert(at(3), 3, "8"))
    feed.send(0, alter(4, "altered", "ADD COLUMN `w` INT DEFAULT 5, ADD COLUMN `x` INT"))
    feed.send(0, alter(5, "altered", "RENAME COLUMN `v` TO `u`"))
    feed.send(0, alter(6, "altered", "DROP COLUMN `x`, ADD COLUMN `y` DATE FIRST"))
    feed.send(0, alter(7, "altered", "MODIFY COLUMN `u` INT, DROP COLUMN `w`, ADD COLUMN `z` VARCHAR(9) DEFAULT 'z'"))
    columns = (Y, ID, U, Z)
    feed.send(0, Source(table="altered", columns=columns).insert(at(8), "2024-02-29", 4, 9, "new"))
    feed.send(0, alter(9, "parted", "EXCHANGE PARTITION `low` WITH TABLE `shop`.`plain`"))
    feed.resolve(at(10))
    feed.go()
    return feed


def test_a_ddl_is_one_commit_and_each_version_is_a_state_of_tidb(feed: Changefeed) -> None:
    old, new = {1: ("7",), 2: (None,)}, {1: ("7",), 2: (None,), 3: ("8",)}
    widened = {key: (*values, 5, None) for key, values in new.items()}
    narrowed = {key: (None, *values, 5) for key, values in new.items()}
    converted = {1: (None, 7, "z"), 2: (None, None, "z"), 3: (None, 8, "z")}
    found = versions(feed, f"{feed.name}_shop_altered")
    assert [(v.tso, v.columns, v.rows) for v in found[:-1]] == [
        (at(2), ["id", "v"], old),
        (at(4), ["id", "v"], new),
        (at(4), ["id", "v", "w", "x"], widened),
        (at(5), ["id", "u", "w", "x"], widened),
        (at(6), ["y", "id", "u", "w"], narrowed),
        (at(7), ["y", "id", "u", "z"], converted),
    ]
    assert [v.operation for v in found[:6]] == [
        "CREATE TABLE AS SELECT",
        "MERGE",
        "REPLACE TABLE AS SELECT",
        "RENAME COLUMN",
        "REPLACE TABLE AS SELECT",
        "REPLACE TABLE AS SELECT",
    ]
    assert (found[-1].tso, found[-1].columns, found[-1].rows.keys()) == (at(10), ["y", "id", "u", "z"], {1, 2, 3, 4})
    assert found[-1].rows[4][1:] == (9, "new")


def test_an_exchange_is_one_commit_of_each_table(feed: Changefeed) -> None:
    parted, plain = (versions(feed, f"{feed.name}_shop_{name}") for name in ("parted", "plain"))
    assert [(v.tso, v.rows) for v in parted[-2:]] == [
        (at(2), {1: ("low",), 11: ("high",)}),
        (at(9), {2: ("plain",), 11: ("high",)}),
    ]
    assert [(v.tso, v.rows) for v in plain[-2:]] == [(at(2), {2: ("plain",)}), (at(9), {1: ("low",)})]


def test_it_is_clustered_by_its_key_and_says_what_it_is(feed: Changefeed) -> None:
    detail = feed.spark.sql(f"DESCRIBE DETAIL {feed.live('altered')}").collect()[0]
    assert detail["clusteringColumns"] == ["id"]
    assert detail["description"] == "TiDB table shop.altered; each version is the table at its commit's TSO"
    assert detail["properties"]["delta.enableDeletionVectors"] == "true"
    assert detail["properties"]["delta.logRetentionDuration"] == "interval 38 days"
    comments = {field.name: field.metadata.get("comment") for field in feed.spark.table(feed.live("altered")).schema}
    assert comments["u"] == "INT"
    assert comments["y"].startswith("DATE")
    assert all(comments.values())


def test_a_view_keeps_what_it_was_given(feed: Changefeed) -> None:
    """Privileges are kept with a view, as properties are: it is altered, never made again."""
    changed, resting = feed.view("a"), feed.view("plain")
    for view in (changed, resting):
        feed.spark.sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('given' = 'yes')")
    asked = feed.spark.sql(f"DESCRIBE EXTENDED {resting}").collect()
    feed.send(0, A.insert(at(11), 2, "more"))
    feed.resolve(at(12))
    feed.go()
    assert feed.rows("a") == {1: ("a",), 2: ("more",)}
    assert [feed.lake.property(Layer.GOLD, feed.shown_name(each), "given") for each in ("a", "plain")] == ["yes", "yes"]
    assert feed.spark.sql(f"DESCRIBE EXTENDED {resting}").collect() == asked
    described = {row["col_name"]: row["comment"] for row in feed.spark.sql(f"DESCRIBE {changed}").collect()}
    assert described == {"id": "BIGINT, key", "v": "VARCHAR(9)"}


@pytest.mark.long
def test_live_tables_are_renamed_with_their_tables_and_stay_when_they_are_dropped(
    feed: Changefeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a run dies after it published, while tables change places: no view shows another table's rows."""
    feed.send(0, rename(13, ("a", "tmp")), rename(14, ("b", "a")), rename(15, ("tmp", "b")))
    feed.send(0, ddl(at(16), "DROP TABLE `shop`.`dropped`", "shop", "dropped", "ERASE"))
    create = "CREATE TABLE `shop`.`dropped` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))"
    feed.send(0, ddl(at(17), create, "shop", "dropped", "CREATE"), DROPPED.insert(at(18), 9, "anew"))
    feed.resolve(at(20))
    feed.load()

    seen: list[dict[Any, tuple[Any, ...]]] = []

    def look_and_die(*_: object) -> None:
        seen.extend(feed.rows(name) for name in ("a", "b"))
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "finish_renames", look_and_die)
        with pytest.raises(InterruptedError):
            feed.apply()
    swapped = [{1: ("b",)}, {1: ("a",), 2: ("more",)}]
    assert seen == swapped
    assert feed.state.tso == at(20)
    assert not has_published_names(feed.lake, live_names(feed.state.tables.values()))
    with pytest.raises(ConfigError, match=r"live table \S+ has not got its published name yet: run gold"):
        as_of(feed.spark, feed.name, lake=feed.lake)
    shown: list[list[dict[Any, tuple[Any, ...]]]] = []
    update_comment = live_table.update_comment

    def look_first(*given: Any) -> None:
        shown.append([feed.rows(name) for name in ("a", "b")])
        update_comment(*given)

    with monkeypatch.context() as patch:
        patch.setattr(live_table, "update_comment", look_first)
        feed.apply()
    assert shown, "comments follow a RENAME"
    assert all(each == swapped for each in shown), "views go first: until then they fail"
    assert [feed.rows("a"), feed.rows("b")] == swapped
    live = {name: {row["id"] for row in feed.spark.table(feed.live(name)).collect()} for name in ("a", "b", "dropped")}
    assert live == {"a": {1}, "b": {1, 2}, "dropped": {9}}
    assert [commented(feed, name) for name in ("a", "b")] == ["TiDB table shop.a", "TiDB table shop.b"]
    names = [name.removeprefix(f"{feed.name}_shop_") for name in feed.lake.tables(Layer.LIVE)]
    assert names == ["a", "altered", "b", "dropped", "dropped__dropped", "parted", "plain"]
    before = as_of(feed.spark, feed.name, at(12), lake=feed.lake)
    assert [row["v"] for row in before["shop.dropped"].collect()] == ["d"]
    assert [row["v"] for row in before["shop.a"].orderBy("id").collect()] == ["a", "more"]


@pytest.mark.long
def test_maintenance_after_a_run_that_died_before_it_renamed(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Changefeed(spark, broker, tmp_path, schema=SCHEMA)
    feed.send(0, A.insert(at(1), 1, "a"), B.insert(at(1), 1, "b"))
    feed.resolve(at(2))
    feed.go()
    feed.send(0, B.insert(at(3), 2, "b"))
    feed.resolve(at(4))
    feed.go()
    feed.send(0, rename(5, ("a", "tmp")), rename(6, ("b", "a")), rename(7, ("tmp", "b")))
    feed.resolve(at(8))
    feed.load()
    feed.die_before_renaming()
    compact, seen = maintenance._compact, []

    def look_and_compact(*given: Any) -> None:
        seen.append({name: feed.rows(name) for name in ("a", "b")})
        compact(*given)

    with monkeypatch.context() as patch:
        patch.setattr(maintenance, "_compact", look_and_compact)
        feed.run.maintain()
    shown = {"a": {1: ("b",), 2: ("b",)}, "b": {1: ("a",)}}
    assert seen
    assert all(each == shown for each in seen)
    assert [commented(feed, name) for name in ("a", "b")] == ["TiDB table shop.a", "TiDB table shop.b"]
    feed.send(0, A.insert(at(9), 3, "of a"), B.insert(at(9), 3, "of b"))
    feed.resolve(at(10))
    feed.go()
    assert feed.rows("a") == {1: ("b",), 2: ("b",), 3: ("of a",)}
    assert feed.rows("b") == {1: ("a",), 3: ("of b",)}


def test_views_are_pinned_to_what_maintenance_wrote(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = GoldConfig(feed="pinned", time_zone="UTC")
    (table,) = tables_from_sql("CREATE TABLE shop.a (id BIGINT PRIMARY KEY, v VARCHAR(9));")
    lake = published_lake(spark, tmp_path, config, {table: [("1", "a"), ("2", "b")]}, at(1))
    before = published(lake, "pinned").tables["shop", "a"]
    monkeypatch.setattr(maintenance, "_compact_shared", lambda *_: None)  # of tables without views
    maintain(lake, config)
    after = published(lake, "pinned").tables["shop", "a"]
    assert before.version < after.version == version_of(lake, after.lake_name)
    view = lake.table(Layer.GOLD, after.lake_name)
    assert f"VERSION AS OF {after.version}" in spark.sql(f"SHOW CREATE TABLE {view}").collect()[0][0]
    assert {row["id"]: row["v"] for row in spark.table(view).collect()} == {1: "a", 2: "b"}


def test_maintenance_leaves_former_tables_as_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A staging table that is truncated every hour leaves 720 of them in a month."""
    config = GoldConfig(feed="former", time_zone="UTC")
    tables = tables_from_sql("".join(f"CREATE TABLE shop.{each} (id BIGINT PRIMARY KEY);" for each in "ab"))
    lake = published_lake(spark, tmp_path, config, {table: [("1",)] for table in tables}, at(1))
    before = published(lake, "former")
    former = before.tables["shop", "b"]
    name = live_name({}, former.stable_id)
    left = {key: table for key, table in before.tables.items() if table != former}
    long_gone = replace(before.definitions[former.stable_id], stable_id="long_gone")
    state.commit_window(lake, "former", before, replace(before, tables=left), (long_gone,), 0)
    compacted, asked, exists = list[str](), list[tuple[Layer, str]](), Lake.exists

    def ask(lake: Lake, layer: Layer, name: str) -> bool:
        asked.append((layer, name))
        return exists(lake, layer, name)

    monkeypatch.setattr(maintenance, "_compact_shared", lambda *_: None)
    monkeypatch.setattr(maintenance, "_compact", lambda _, name, *_others: compacted.append(name))
    maintain(lake, config)
    assert (compacted, version_of(lake, name)) == ([left["shop", "a"].lake_name], former.version)
    maintain(lake, replace(config, retention_days=60))
    assert lake.property(Layer.LIVE, name, "delta.deletedFileRetentionDuration") == "interval 68 days"
    monkeypatch.setattr(Lake, "exists", ask)
    assert maintain(lake, config, now=datetime.now(UTC) + timedelta(days=100)).dropped == (name,)
    assert (Layer.LIVE, "long_gone") not in asked, "all that a feed ever had are looked for in one list"


@pytest.mark.long
def test_a_copy_of_a_live_table_keeps_neither_gold_nor_maintenance_from_their_work(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    feed = Changefeed(spark, broker, tmp_path, schema=SCHEMA)
    feed.send(0, A.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    feed.go()
    name, stable_id = feed.shown_name("a"), feed.state.tables["shop", "a"].stable_id
    copied = feed.lake.table(Layer.LIVE, f"{name}_backup")
    properties = f"TBLPROPERTIES ('ticdc.id' = '{stable_id}', 'ticdc.feed' = '{feed.name}')"
    folder = feed.lake.location(Layer.LIVE, f"{name}_backup")
    spark.sql(f"CREATE TABLE {copied} USING delta {properties} {folder} AS SELECT * FROM {feed.live('a')}")
    views.refresh(feed.lake, feed.run.gold_config)  # as after an upgrade
    feed.run.maintain()
    assert feed.rows("a") == {1: ("a",)}
    assert [tuple(row) for row in spark.sql(f"SELECT id, v FROM {copied}").collect()] == [(1, "a")]


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "function"),
    [
        pytest.param(table_execution, "merge", id="after a DDL"),
        pytest.param(state, "commit_window", id="before publishing"),
    ],
)
def test_a_ddl_of_a_run_that_died_is_not_done_again(
    spark: SparkSession,
    broker: Broker,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    module: object,
    function: str,
) -> None:
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("died"), schema=SCHEMA)
    feed.send(0, ALTERED.insert(at(1), 1, "7"))
    feed.resolve(at(2))
    feed.go()
    feed.send(0, alter(3, "altered", "ADD COLUMN `w` INT DEFAULT 5"))
    feed.send(0, Source(table="altered", columns=(ID, V, W)).insert(at(4), 2, "8", 6))
    feed.resolve(at(5))
    feed.load()

    def die(*_: object) -> None:
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(module, function, die)
        with pytest.raises(InterruptedError):
            feed.apply()
    name = f"{feed.name}_shop_altered"
    dead = [v.operation for v in versions(feed, name)]
    assert dead[:2] == ["CREATE TABLE AS SELECT", "REPLACE TABLE AS SELECT"]
    feed.apply()
    found = versions(feed, name)
    assert [v.operation for v in found] == [*dead, "MERGE"]
    assert [v.tso for v in found] == sorted(v.tso for v in found)
    assert feed.rows("altered") == {1: ("7", 5), 2: ("8", 6)}
    maintain(feed.lake, feed.run.gold_config)
    assert feed.rows("altered") == {1: ("7", 5), 2: ("8", 6)}


@pytest.mark.long
def test_a_run_that_died_beyond_the_next_window_is_undone(
    spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("beyond"), schema=SCHEMA)
    feed.send(0, A.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    feed.go()
    feed.send(0, A.update(at(3), (1, "a"), (1, "b")))
    feed.resolve(at(4))
    feed.send(0, alter(5, "a", "DROP COLUMN `v`"))
    feed.resolve(at(6))
    feed.load()
    feed.die_before_publishing()
    feed.apply(until_tso=at(4))
    assert feed.rows("a") == {1: ("b",)}
    feed.apply()
    assert feed.spark.table(feed.view("a")).columns == ["id"]
    assert [v.operation for v in versions(feed, f"{feed.name}_shop_a")] == [
        "CREATE TABLE AS SELECT",
        "MERGE",
        "REPLACE COLUMNS",
        "RESTORE",
        "MERGE",
        "REPLACE COLUMNS",
    ]
