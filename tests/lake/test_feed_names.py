"""Two feeds whose names go together: `shop_crm`, and `shop` with a database `crm`; and when gold reads such names."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, as_on_databricks, at, ddl, lake_in

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold import live_table, state, state_tables, views, window_input
from ticdc_lakehouse.gold.live_table import create_live_table, drop_unpublished, misnamed
from ticdc_lakehouse.gold.naming import check_feed_name, naming, taken_names
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Origin, TableState
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_lakehouse.planning.naming import TakenNames
    from ticdc_local.broker import Broker

EVENTS = TableName("crm", "events")
SHOP = GoldConfig(feed="shop", time_zone="UTC")


def lake_name(lake: Lake, config: GoldConfig, table: TableName) -> str:
    """The name that a feed's new table gets."""
    return naming(config, taken_names(lake, config)).lake_name(table)


@pytest.fixture
def lake(spark: SparkSession, lake_root: Path) -> Lake:
    lake = lake_in(spark, lake_root, lake_root.parent.name.lower())
    lake.register()
    state_tables.create_tables(lake)
    return lake


def test_a_table_gets_another_name_than_what_a_feed_has(lake: Lake) -> None:
    assert lake_name(lake, SHOP, EVENTS) == "shop_crm_events"
    landing.create_tables(lake, "shop_crm")
    assert lake_name(lake, SHOP, EVENTS).startswith("shop_crm_events_")


def test_a_name_of_a_removed_feed_is_free_once_nothing_of_it_has_it(lake: Lake) -> None:
    (table,) = tables_from_sql("CREATE TABLE crm.orders (id BIGINT PRIMARY KEY)")
    name, stable_id = "crm_orders", "crm_orders__data"
    found = state.Definition(table=table, commit_ts=1, origin=Origin.DDL, lake_name=name, stable_id=stable_id)
    state.commit_window(lake, "shop", state.Published(), state.Published(tso=1), [found], 0)
    landing.create_tables(lake, "shop")
    create_live_table(lake, name, table, stable_id=stable_id, config=SHOP)
    later = GoldConfig(feed="shop2", time_zone="UTC", name_template="{database}_{table}")

    def refused() -> bool:
        with pytest.raises(ConfigError, match=r"called crm_orders, which has table crm.orders of feed shop: .* remove"):
            lake_name(lake, later, table.name)
        return True

    assert refused()
    for part in (landing.messages_table("shop"), landing.offsets_table("shop")):
        lake.drop(Layer.BRONZE, part)
    assert refused(), "its live table would be in the way"
    lake.drop(Layer.LIVE, name)
    lake.spark.sql(f"CREATE VIEW {lake.table(Layer.GOLD, name)} AS SELECT 1")
    assert refused(), "its view has other grants"
    lake.spark.sql(f"DROP VIEW {lake.table(Layer.GOLD, name)}")
    assert lake_name(lake, later, table.name) == name
    create_live_table(lake, name, table, stable_id=stable_id, config=later)
    assert lake_name(lake, later, table.name) == name, "its own"


def test_no_feed_drops_a_live_table_of_another(lake: Lake) -> None:
    """Both chose the name before either had published it."""
    (table,) = tables_from_sql("CREATE TABLE crm.events (id BIGINT PRIMARY KEY)")
    create_live_table(lake, "shop_crm_events", table, stable_id="shop_crm_events__data", config=SHOP)
    with pytest.raises(ConfigError, match="live table shop_crm_events is of feed shop, which took the name meanwhile"):
        drop_unpublished(lake, "shop_crm_events", "shop_crm")
    assert lake.exists(Layer.LIVE, "shop_crm_events")
    drop_unpublished(lake, "shop_crm_events", "shop")
    assert not lake.exists(Layer.LIVE, "shop_crm_events")


def test_a_table_that_another_run_may_be_about_to_publish_stays(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Databricks no lock keeps maintenance from a `load` of hours; a dead run's table goes after a day."""
    (table,) = tables_from_sql("CREATE TABLE crm.events (id BIGINT PRIMARY KEY)")
    without_lock = as_on_databricks(lake)
    known = {"shop_crm_events__data"}
    for stable_id in ("shop_crm_events__data", "shop_crm_events__new"):
        create_live_table(lake, stable_id, table, stable_id=stable_id, config=SHOP)
    found = misnamed(without_lock, "shop", {"shop_crm_events__data": "shop_crm_events__data"}, known)
    assert found == ({}, ())
    found = misnamed(without_lock, "shop", {"shop_crm_events__data": "shop_crm_events__new"}, known)
    taken = ("shop_crm_events__new",)
    assert found == ({"shop_crm_events__data": "shop_crm_events__new"}, taken), "a published table is to have its name"
    monkeypatch.setattr(live_table, "_ABANDONED_AFTER", timedelta(0))
    found = misnamed(without_lock, "shop", {"shop_crm_events__data": "shop_crm_events__data"}, known)
    assert found == ({}, ("shop_crm_events__new",))
    stable_id = "shop_crm_events__data"
    shown = TableState(lake_name=stable_id, stable_id=stable_id, version=0, applied_tso=1)
    of_data = state.Definition(table=table, commit_ts=1, origin=Origin.DDL, lake_name=stable_id, stable_id=stable_id)
    planned = state.Published(tso=1, tables={table.name: shown})
    published = state.commit_window(lake, "shop", state.Published(), planned, [of_data], 0)
    assert views.restore_names(lake, SHOP).number == published.number
    assert [name for name in lake.tables(Layer.LIVE) if name.startswith("shop_crm_events")] == [stable_id]


def test_a_copy_of_a_live_table_stays_as_it_is(lake: Lake) -> None:
    """DEEP CLONE and CREATE TABLE … LIKE copy the properties by which gold knows its tables."""
    (table,) = tables_from_sql("CREATE TABLE crm.orders (id BIGINT PRIMARY KEY)")
    lake_name, stable_id = "shop_crm_orders", "shop_crm_orders__data"
    found = state.Definition(table=table, commit_ts=1, origin=Origin.DDL, lake_name=lake_name, stable_id=stable_id)
    state.commit_window(lake, "shop", state.Published(), state.Published(tso=1), [found], 0)
    for name in (lake_name, "shop_crm_orders_backup"):
        create_live_table(lake, name, table, stable_id=stable_id, config=SHOP)
    assert misnamed(lake, "shop", {stable_id: lake_name}, {stable_id}) == ({}, ())

    found_then = misnamed(lake, "shop", {stable_id: "shop_crm_sales"}, {stable_id})
    assert found_then == ({lake_name: "shop_crm_sales"}, ())
    lake.drop(Layer.LIVE, lake_name)
    assert misnamed(lake, "shop", {}, {stable_id}) == ({}, ()), "the table was dropped, and its retention has ended"
    assert lake.exists(Layer.LIVE, "shop_crm_orders_backup")


def test_a_new_feed_does_not_take_the_names_of_another_ones_views(lake: Lake) -> None:
    (table,) = tables_from_sql("CREATE TABLE crm.events (id BIGINT PRIMARY KEY)")
    view = lake_name(lake, SHOP, EVENTS)
    found = state.Definition(table=table, commit_ts=1, origin=Origin.DDL, lake_name=view, stable_id=f"{view}__data")
    state.commit_window(lake, "shop", state.Published(), state.Published(tso=1), [found], 0)
    with pytest.raises(ConfigError, match="shop_crm_events in silver is the view of table"):
        check_feed_name(lake, "shop_crm")
    check_feed_name(lake, "shop_crm2")
    landing.create_tables(lake, "shop_crm")
    check_feed_name(lake, "shop_crm")  # it is there already
    with pytest.raises(ConfigError, match="feed shop: gold has published it, and bronze has none of its tables"):
        check_feed_name(lake, "shop")
    assert state.published_feeds(lake) == []
    landing.create_tables(lake, "shop")
    check_feed_name(lake, "shop")
    assert state.published_feeds(lake) == ["shop"]


@pytest.mark.long
def test_only_a_window_that_gives_a_name_reads_the_names_that_are_taken(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row for each definition that any feed ever had, and most windows have nothing to do with them."""
    feed, orders = Changefeed(spark, broker, tmp_path), Source(table="orders")
    create, add = "CREATE TABLE `orders` (`id` BIGINT PRIMARY KEY, `v` CHAR(9))", "ALTER TABLE `orders` ADD `w` INT"
    feed.send(0, ddl(at(1), create, "shop", "orders", "CREATE"), orders.insert(at(3), 1, "a"))
    feed.send(0, ddl(at(3), add, "shop", "orders", "ALTER"))
    feed.resolve(at(4))
    feed.load()
    reading: list[int] = []

    def read(lake: Lake, config: GoldConfig) -> TakenNames:
        reading.append(end)
        return taken_names(lake, config)

    monkeypatch.setattr(window_input, "taken_names", read)
    for end in (at(2), at(4)):
        assert feed.apply(end).tso == end
    assert reading == [at(2)]
    assert feed.rows("orders") == {1: ("a", None)}
