"""Dates that Spark's types do not have: what the feed file says becomes of them. And values that are newer than their
table's definition, and do not fit it."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from changefeed import ID, Changefeed, Source, at, ddl

from ticdc_codec.event import Column
from ticdc_codec.mysql_type import parse_type
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.ops.verify.value_text import ComparedColumn
from ticdc_lakehouse.schema.definition import ColumnDefinition
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.sql.typed_columns import typed_column
from ticdc_lakehouse.tidb.columns import SourceColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

DATES = (Column(name="d", type="date"), Column(name="m", type="datetime(3)"), Column(name="z", type="timestamp"))
NOTED, TEXTS, BLOCKED = (Source(table=name, columns=(ID, *DATES)) for name in ("noted", "texts", "blocked"))
SCHEMA = "".join(
    f"CREATE TABLE shop.{name} (id BIGINT PRIMARY KEY, d DATE, m DATETIME(3), z TIMESTAMP);"
    for name in ("noted", "texts", "blocked")
)
OUTDATED = Source(
    table="outdated", columns=(ID, Column(name="total", type="decimal"), Column(name="kind", type="enum", by="index"))
)
SCHEMA += "CREATE TABLE shop.outdated (id BIGINT PRIMARY KEY, total DECIMAL(10,2), kind ENUM('a'));"
POLICIES = {"shop.texts": {"on_irregular": "text"}, "shop.blocked": {"on_irregular": "block"}}
RIGHT = ("2024-02-29", "2024-02-29 01:02:03.500", "2024-02-29 09:00:00")
ZERO = ("0000-00-00", "2024-05-00 00:00:00.000", "0000-00-00 00:00:00")


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    described = {"time_zone": "Asia/Shanghai", "gold": {"tables": POLICIES}}
    folder = tmp_path_factory.mktemp("irregular")
    feed = Changefeed(spark, broker, folder, schema=SCHEMA, described=described)
    for table in (NOTED, TEXTS, BLOCKED):
        feed.send(0, table.insert(at(1), 1, *RIGHT))
        # What a later change overtakes was a value of the table all the same.
        feed.send(0, table.insert(at(3), 2, *ZERO), table.update(at(4), (2, *ZERO), (2, *RIGHT)))
        feed.send(0, table.insert(at(5), 3, *ZERO), table.insert(at(5), 4, None, None, None))
    feed.send(0, OUTDATED.insert(at(6), 1, "12.50", "1"), OUTDATED.insert(at(7), 2, "12.5000", "2"))
    feed.send(0, ddl(at(6), "ALTER TABLE blocked ADD INDEX (d)", "shop", "blocked", "CINDEX"))
    feed.resolve(at(10))
    feed.go()
    return feed


def counts(feed: Changefeed) -> list[tuple[object, ...]]:
    view = feed.spark.table(feed.lake.table(Layer.OPS, f"{feed.name}_irregular"))
    return sorted(map(tuple, view.collect()))


def test_irregular_values_are_null_and_counted(feed: Changefeed) -> None:
    counted = [("noted", name) for name in "dmz"] + [("outdated", "kind"), ("outdated", "total")]
    assert counts(feed) == [("shop", *column, 1) for column in counted]
    changes = feed.spark.table(feed.lake.table(Layer.SILVER, feed.state.tables["shop", "noted"].lake_name))
    lost = changes.where("_ticdc_irregular IS NOT NULL").select("id", "op", "_ticdc_irregular").collect()
    assert sorted(map(tuple, lost)) == [(2, "insert", dict(zip("dmz", ZERO, strict=True))), (3, "insert", lost[0][2])]


def test_a_value_that_its_column_cannot_hold_is_not_equal_to_tidbs(feed: Changefeed) -> None:
    """Its exact text is beside it, but a view shows NULL, and a sum leaves it out."""
    column = typed_column(ColumnDefinition(name="total", type=parse_type("decimal(10,2)")))
    compared = ComparedColumn(typed=column, source=SourceColumn(name="total", type=parse_type("decimal(10,4)")))
    rows = feed.spark.table(feed.live("outdated")).selectExpr("id", f"{compared.lake_text} AS text", "_ticdc_irregular")
    assert {row["id"]: (row["text"], row["_ticdc_irregular"]) for row in rows.collect()} == {
        1: ("12.50", None),
        2: (None, {"total": "12.5000", "kind": "2"}),
    }


@pytest.mark.parametrize("layer", [Layer.GOLD, Layer.SILVER])
def test_text_shows_what_mysql_shows(feed: Changefeed, layer: Layer) -> None:
    view = feed.spark.table(feed.lake.table(layer, feed.state.tables["shop", "texts"].lake_name))
    assert [view.schema[name].dataType.simpleString() for name in "dmz"] == ["string"] * 3
    assert "_ticdc_irregular" not in view.columns
    rows = {row["id"]: tuple(row[name] for name in "dmz") for row in view.collect()}
    assert rows == {1: RIGHT, 2: rows[2], 3: ZERO, 4: (None, None, None)}
    if layer is Layer.GOLD:
        assert rows[2] == RIGHT
        assert view.schema["m"].metadata["comment"] == "DATETIME(3) (MySQL's text: on_irregular)"


def keys_of_blocked(feed: Changefeed) -> list[str]:
    definition = feed.state.definition_of(TableName("shop", "blocked"))
    assert definition is not None
    assert definition.table.keys is not None
    return [key.name for key in definition.table.keys]


def test_table_that_is_blocked_before_an_index_does_not_have_it_yet(feed: Changefeed) -> None:
    """Each later window reads the DDL again, and would add the index under another name."""
    assert keys_of_blocked(feed) == ["PRIMARY"]


@pytest.mark.long
def test_block_blocks_the_table_before_the_first_one_until_the_policy_changes(feed: Changefeed) -> None:
    """Last: it changes the feed."""
    state = feed.state.tables["shop", "blocked"]
    assert (state.applied_tso, state.needs_override) == (at(3) - 1, False)
    assert str(state.stop) == f"column d has 0000-00-00 at {at(3)}, which is no date (on_irregular: block)"
    assert feed.rows("blocked")[1][0] == dt.date(2024, 2, 29)
    assert [*feed.rows("blocked")] == [1]
    feed.described = {"time_zone": "Asia/Shanghai"}
    feed.resolve(at(11))
    feed.go()
    assert feed.state.tables["shop", "blocked"].stop is None
    assert {key: row[0] for key, row in feed.rows("blocked").items()} == {
        1: dt.date(2024, 2, 29),
        2: dt.date(2024, 2, 29),
        3: None,
        4: None,
    }
    assert ("shop", "blocked", "d", 1) in counts(feed)
    assert keys_of_blocked(feed) == ["PRIMARY", "d"]
