"""The names that are taken in the lake."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.bronze.landing import messages_table
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.state import DEFINITIONS, WINDOWS
from ticdc_lakehouse.planning.naming import OWN, Naming, Taken
from ticdc_lakehouse.schema.names import TableName


def naming(lake: Lake, feed: str) -> Naming:
    """The names for new tables of a feed."""

    def history() -> Iterable[Taken]:
        lines = lake.spark.table(lake.table(Layer.OPS, DEFINITIONS)).select("feed", "database", "table", "name", "data")
        for line in lines.distinct().collect():
            yield Taken(feed=line[0], table=TableName(line[1], line[2]), name=line[3], data=line[4])

    def is_feed(name: str) -> bool:
        return lake.exists(Layer.BRONZE, messages_table(name))

    return Naming(feed=feed, history=history, is_feed=is_feed)


def check_feed_name(lake: Lake, feed: str) -> None:
    """Raise ConfigError for a new feed whose own tables and views would stand where views of another feed's tables
    do."""
    if not lake.exists(Layer.OPS, WINDOWS) or lake.exists(Layer.BRONZE, messages_table(feed)):
        return
    windows = lake.spark.table(lake.table(Layer.OPS, WINDOWS)).select("feed", F.explode("definitions").alias("d"))
    own = [f"{feed}_{name}" for name in OWN]
    for other, d in windows.where(F.col("d.name").isin(own)).take(1):
        raise ConfigError(
            f"feed {feed}: {d['name']} in silver is the view of table {d['database']}.{d['table']} of feed {other}: "
            "give the feed another name"
        )
