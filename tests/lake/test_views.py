"""What analysts read: pinned views of gold, or without them the live tables (``gold.views``), in which schemas
(``gold.schema``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import ID, Changefeed, Source, V, as_on_databricks, at, ddl
from test_fresh_process import run

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold.time_travel import as_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

pytestmark = pytest.mark.long

ORDERS = Source(table="orders", columns=(ID, V, Column(name="d", type="date")))
RENAMED = Source(table="renamed", columns=ORDERS.columns)
SCHEMA = "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, v VARCHAR(9), d DATE);"


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """Begun with views."""
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("views") / "lake", name="views", schema=SCHEMA)
    feed.send(0, ORDERS.insert(at(1), 1, "a", "0000-00-00"))
    feed.resolve(at(2))
    feed.go()
    assert feed.rows("orders") == {1: ("a", None, {"d": "0000-00-00"})}
    return feed


def live_rows(feed: Changefeed, table: str) -> dict[int, str]:
    return {row["id"]: row["v"] for row in feed.spark.table(feed.live(table)).collect()}


def irregular(feed: Changefeed) -> list[tuple[object, ...]]:
    return [*map(tuple, feed.spark.table(feed.lake.table(Layer.OPS, "views_irregular")).collect())]


def test_a_feed_without_views_is_read_in_its_live_tables(feed: Changefeed) -> None:
    feed.described = {"gold": {"views": "none"}}
    feed.apply()
    assert feed.lake.tables(Layer.GOLD) == []
    assert irregular(feed) == [("shop", "orders", "d", 1)]
    feed.send(0, ORDERS.insert(at(3), 2, "b", None))
    feed.send(0, ddl(at(4), "RENAME TABLE `shop`.`orders` TO `shop`.`renamed`", "shop", "orders", "RENAME"))
    feed.send(0, RENAMED.insert(at(5), 3, "c", None))
    feed.resolve(at(6))
    feed.go()
    assert feed.lake.tables(Layer.GOLD) == []
    assert live_rows(feed, "renamed") == {1: "a", 2: "b", 3: "c"}
    assert irregular(feed) == [("shop", "renamed", "d", 1)]
    assert feed.spark.table(feed.lake.table(Layer.SILVER, "views_shop_renamed")).count() == 1
    assert as_of(feed.spark, feed.name, at(2), lake=feed.lake)["shop.orders"].count() == 1


def test_a_process_of_its_own_reads_it(feed: Changefeed) -> None:
    (feed.folder / "feeds").mkdir()
    feed.write_file().rename(feed.folder / "feeds" / "views.yml")
    (feed.folder / "views.sql").rename(feed.folder / "feeds" / "views.sql")
    query = "SELECT max(v) AS newest, count(*) FROM live.views_shop_renamed"
    statements = (query, "SHOW TABLES IN gold", "SELECT * FROM ops.views_irregular", f"AS OF views {at(2)}")
    found = run(feed, "sql", *(part for statement in statements for part in ("-e", statement)))
    assert "|     c|       3|" in found
    assert "views_shop" not in found.partition("namespace")[2].partition("database")[0]
    assert "|    shop|renamed|     d|   1|" in found
    assert "read these without the gold. prefix: views_shop_orders" in found


def test_a_feed_gets_its_views_back(feed: Changefeed) -> None:
    feed.described = {}
    feed.apply()
    assert {key: values[0] for key, values in feed.rows("renamed").items()} == {1: "a", 2: "b", 3: "c"}
    assert feed.lake.tables(Layer.GOLD) == ["views_shop_renamed"]


@pytest.fixture(scope="module")
def parted(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """A feed with a schema a database; its tables are named as TiDB's."""
    folder, gold = tmp_path_factory.mktemp("parted") / "lake", {"schema": "{database}", "name": "{table}"}
    schema = "".join(f"CREATE TABLE {name}.orders (id BIGINT PRIMARY KEY, v VARCHAR(9));" for name in ("shop", "crm"))
    feed = Changefeed(spark, broker, folder, name="parted", schema=schema, described={"gold": gold})
    feed.send(0, SHOP.insert(at(1), 1, "a"), CRM.insert(at(1), 1, "z"))
    feed.resolve(at(2))
    feed.go()
    feed.send(0, ddl(at(3), "RENAME TABLE `shop`.`orders` TO `shop`.`sales`", "shop", "orders", "RENAME"))
    feed.send(0, SALES.insert(at(4), 2, "b"), ddl(at(5), "DROP TABLE `crm`.`orders`", "crm", "orders", "ERASE"))
    feed.resolve(at(6))
    feed.go()
    return feed


SHOP, SALES, CRM = Source(table="orders"), Source(table="sales"), Source(table="orders", database="crm")


def test_each_database_has_schemas_of_its_own(parted: Changefeed) -> None:
    lake = parted.lake
    assert lake.tables(Layer.GOLD, "shop") == lake.tables(Layer.LIVE, "shop") == ["shop.sales"]
    assert lake.tables(Layer.SILVER, "shop") == ["shop.sales"]
    assert (lake.tables(Layer.GOLD, "crm"), lake.tables(Layer.LIVE, "crm")) == ([], ["crm.orders__dropped"])
    assert lake.tables(Layer.GOLD) == lake.tables(Layer.LIVE) == []
    rows = parted.spark.sql("SELECT id, v FROM parted_gold_shop.sales ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(1, "a"), (2, "b")]
    then = as_of(parted.spark, parted.name, at(2), lake=lake)
    assert (then["shop.orders"].count(), then["crm.orders"].count()) == (1, 1)
    assert then.create_views() == ["crm_orders", "shop_orders"]


def test_schemas_that_are_missing_or_changed_are_refused(parted: Changefeed) -> None:
    with pytest.raises(ConfigError, match=r"schema `spark_catalog`.`parted_silver_new`: gold.schema .* add it to the"):
        as_on_databricks(parted.lake).make_schemas(["shop.sales", "new.orders"])
    parted.described = {"gold": {"schema": "{feed}"}}
    with pytest.raises(ConfigError, match=r"gold.schema: table shop.sales was published with 'shop'"):
        parted.apply()


def test_a_process_of_its_own_finds_the_schemas(parted: Changefeed) -> None:
    parted.described = {"gold": {"schema": "{database}", "name": "{table}"}}
    (parted.folder / "feeds").mkdir()
    parted.write_file().rename(parted.folder / "feeds" / "parted.yml")
    (parted.folder / "parted.sql").rename(parted.folder / "feeds" / "parted.sql")
    query = "SELECT max(g.v), max(s.v) FROM gold_shop.sales g JOIN silver_shop.sales s JOIN live_shop.sales l"
    assert "|     b|     b|" in run(parted, "sql", "-e", query)


def test_what_an_update_does_not_send_was_the_same_before(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Else a sum of `balance - _before.balance` would leave rows out."""
    accounts = Source(table="accounts", columns=(ID, V, Column(name="balance", type="int")))
    feed = Changefeed(spark, broker, tmp_path, options={"only-output-updated-columns": True})
    feed.send(0, accounts.insert(at(1), 1, "a", 5), accounts.update(at(2), (1, "a", 5), (1, "b", 5)))
    feed.send(
        0, accounts.update(at(3), (1, "b", 5), (1, "b", None)), accounts.update(at(4), (1, "b", None), (1, "b", 7))
    )
    feed.resolve(at(5))
    feed.go()
    view = feed.lake.table(Layer.SILVER, feed.state.tables["shop", "accounts"].lake_name)
    changes = spark.sql(f"SELECT v, balance, _before.v, _before.balance FROM {view} ORDER BY commit_ts").collect()
    assert [*map(tuple, changes)] == [("a", 5, None, None), ("b", 5, "a", 5), ("b", None, "b", 5), ("b", 7, "b", None)]


def test_a_name_without_the_database_goes_from_table_to_table(
    spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of the tables that TiDB has at one time each needs a name of its own."""
    schema, gold = "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, v VARCHAR(9));", {"name": "{table}"}
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("named"), schema=schema, described={"gold": gold})
    old, create = Source(table="orders", database="old"), "CREATE TABLE `orders` (`id` BIGINT PRIMARY KEY, `v` CHAR(9))"
    feed.send(0, SHOP.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    feed.go()
    feed.send(0, ddl(at(3), "RENAME TABLE `shop`.`orders` TO `crm`.`orders`", "shop", "orders", "RENAME"))
    feed.send(0, CRM.insert(at(4), 2, "b"))
    feed.resolve(at(5))
    feed.go()
    assert feed.lake.tables(Layer.LIVE) == feed.lake.tables(Layer.GOLD) == ["orders"]
    assert feed.rows("orders", "crm") == {1: ("a",), 2: ("b",)}
    (detail,) = feed.spark.sql(f"DESCRIBE DETAIL {feed.live('orders', 'crm')}").collect()
    assert detail["description"].startswith("TiDB table crm.orders;")
    feed.send(0, ddl(at(6), "DROP TABLE `crm`.`orders`", "crm", "orders", "ERASE"))
    feed.send(0, ddl(at(7), create, "old", "orders", "CREATE"), old.insert(at(8), 9, "c"))
    feed.resolve(at(9))
    feed.go()
    assert feed.lake.tables(Layer.LIVE) == ["orders", "orders__dropped"]
    assert feed.rows("orders", "old") == {9: ("c",)}
    changes = feed.spark.table(feed.lake.table(Layer.SILVER, "orders")).collect()
    assert [row["id"] for row in changes] == [9]
    then = as_of(feed.spark, feed.name, at(5), lake=feed.lake)
    assert sorted(row["id"] for row in then["crm.orders"].collect()) == [1, 2]
    feed.send(0, ddl(at(10), create, "shop", "orders", "CREATE"))
    feed.resolve(at(11))
    with pytest.raises(ConfigError, match=r"table shop.orders would be called orders, which has table old.orders"):
        feed.go()
    assert feed.state.tso == at(9)
