"""The names that are taken in the lake."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.bronze.landing import messages_table
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.live_table import FEED
from ticdc_lakehouse.gold.state_tables import WINDOWS, check_format, definitions_sql
from ticdc_lakehouse.planning.naming import OWN, NameInUse, Naming, schema_part, templated_part
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.policy import Views
from ticdc_lakehouse.schema.names import TableName


def naming(lake: Lake, config: GoldConfig) -> Naming:
    """Returns the `Naming` of new tables of a feed."""

    def history() -> Iterable[NameInUse]:
        rows = lake.spark.sql(definitions_sql(lake)).select("feed", "database", "table", "name", "data", "named_at")
        for row in rows.distinct().collect():
            yield NameInUse(
                feed=row[0], table=TableName(row[1], row[2]), lake_name=row[3], stable_id=row[4], named_at=row[5]
            )

    def is_feed(name: str) -> bool:
        return lake.exists(Layer.BRONZE, messages_table(name))

    def is_there(name: str) -> bool:
        if lake.exists(Layer.LIVE, name):
            return lake.property(Layer.LIVE, name, FEED) != config.feed
        return lake.exists(Layer.SILVER, name) or lake.exists(Layer.GOLD, name)

    return Naming(
        feed=config.feed,
        history=history,
        template=config.name_template,
        schema_template=config.schema_template,
        is_feed=is_feed,
        is_there=is_there,
    )


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
    tables."""
    if not lake.exists(Layer.OPS, WINDOWS) or lake.exists(Layer.BRONZE, messages_table(feed)):
        return
    check_format(lake)
    own = [f"{feed}_{name}" for name in OWN]
    for row in lake.spark.sql(definitions_sql(lake)).where(F.col("name").isin(own)).take(1):
        raise ConfigError(
            f"feed {feed}: {row['name']} in silver is the view of table {row['database']}.{row['table']} of feed "
            f"{row['feed']}: give the feed another name"
        )
