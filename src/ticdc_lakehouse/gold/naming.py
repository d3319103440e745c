"""The names that are taken in the lake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.bronze.landing import landed_feeds, messages_table
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.live_table import FEED
from ticdc_lakehouse.gold.state_tables import WINDOWS, check_format, definitions_sql, values_of
from ticdc_lakehouse.planning.naming import OWN, NameInUse, Naming, TakenNames, schema_part, templated_part
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Definition, Published
from ticdc_lakehouse.policy import NAME_TEMPLATE, Views
from ticdc_lakehouse.schema.names import TableName


def naming(config: GoldConfig, taken: TakenNames | None, loaded: Mapping[str, Definition] | None = None) -> Naming:
    """Returns the `Naming` of new tables of a feed; ``loaded`` has the definitions of tables from an export, which are
    not published yet, by their stable ids."""
    definitions = loaded or {}
    return Naming(
        feed=config.feed,
        taken=taken,
        template=config.name_template,
        schema_template=config.schema_template,
        reserved=frozenset(definitions),
        loaded={each.lake_name: each.table.name for each in definitions.values()},
    )


def taken_names(lake: Lake, config: GoldConfig) -> TakenNames:
    """Reads the names that are taken: a row for each definition of every feed."""
    names_in_use = lake.spark.sql(definitions_sql(lake)).groupBy(
        "feed", "database", "table", "name", "data", "named_at"
    )
    rows = names_in_use.agg(F.min(F.struct("number", "place")).alias("published")).collect()
    names = tuple(
        NameInUse(feed=row[0], table=TableName(row[1], row[2]), lake_name=row[3], stable_id=row[4], named_at=row[5])
        for row in sorted(rows, key=lambda row: row["published"])
    )
    feeds = frozenset(landed_feeds(lake))
    return TakenNames(names=names, feeds=feeds, left_over=_left_over(lake, config, names, feeds))


def _left_over(lake: Lake, config: GoldConfig, names: Iterable[NameInUse], feeds: Set[str]) -> frozenset[str]:
    """Returns the names of removed feeds' tables that a table or view in the lake still has, and no table of this feed.
    None are looked for under the default template, which gives no name a second time."""
    if config.name_template == NAME_TEMPLATE:
        return frozenset()
    own = {name.lake_name for name in names if name.feed == config.feed}
    gone = {name.lake_name for name in names if name.feed not in feeds} - own
    live = existing_names(lake, Layer.LIVE, gone)
    views = existing_names(lake, Layer.SILVER, gone) | existing_names(lake, Layer.GOLD, gone)
    others = {name for name in live if lake.property(Layer.LIVE, name, FEED) != config.feed}
    return frozenset(others | (views - live))


def existing_names(lake: Lake, layer: Layer, names: Set[str]) -> set[str]:
    """Returns those of the names that tables and views of a layer have."""
    parts = {schema_part(name) for name in names}
    return {name for part in parts for name in lake.tables(layer, part) if name in names}


def check_schemas(config: GoldConfig, before: Published) -> None:
    """Raises ConfigError if the feed's tables were published in other schemas than ``gold.schema`` says now."""
    for table, state in before.tables.items():
        wanted = templated_part(config.schema_template, config.feed, table.database)
        if state.lake_name and (found := schema_part(state.lake_name)) != wanted:
            raise ConfigError(
                f"feed {config.feed}: gold.schema: table {table} was published with {found!r}, and no catalog moves "
                f"a table to another schema; use a new feed name for {config.schema_template!r}"
            )


def analysts_layer(config: GoldConfig) -> Layer:
    """Returns the layer where analysts read a feed's tables: views of gold, or without views the live tables."""
    return Layer.GOLD if config.views is Views.PINNED else Layer.LIVE


def check_feed_name(lake: Lake, feed: str) -> None:
    """Raises ConfigError for a new feed whose own tables and views would have the names of views of another feed's
    tables, and for one of which gold has published something: it would continue from there, without what bronze had."""
    if not lake.exists(Layer.OPS, WINDOWS) or lake.exists(Layer.BRONZE, messages_table(feed)):
        return
    check_format(lake)
    if values_of(lake, WINDOWS, feed, "number = 1", "number"):
        raise ConfigError(
            f"feed {feed}: gold has published it, and bronze has none of its tables: the feed was removed, or they "
            "were lost. Give the new feed another name, or restore them"
        )
    own = [f"{feed}_{name}" for name in OWN]
    for row in lake.spark.sql(definitions_sql(lake)).where(F.col("name").isin(own)).take(1):
        raise ConfigError(
            f"feed {feed}: {row['name']} in silver is the view of table {row['database']}.{row['table']} of feed "
            f"{row['feed']}: give the feed another name"
        )
