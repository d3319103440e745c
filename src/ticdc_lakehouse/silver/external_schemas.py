"""Schemas that a protocol sends apart from its rows (Simple): learned from silver, given to the decoders.

    silver.<feed>_schemas   database, table, schema_version, columns, batch

A row may arrive before the schema that it names: on another partition, or in another micro-batch. It waits in
quarantine (``schema_missing``), which holds its table and nothing else, and the run that brings the schema decodes it.
Nothing is dropped, and nothing is guessed.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import functions as F

from ticdc_codec.batch import SchemaName
from ticdc_codec.event import Column, Kind, columns_from
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.silver import decode_stream, quarantine

MISSING = "schema_missing"
"""The reason that a decoder gives for a row whose schema it does not know."""

_NAME = ["database", "table", "schema_version"]
_COLUMNS = """
    database STRING NOT NULL,
    table STRING NOT NULL,
    schema_version BIGINT NOT NULL COMMENT 'TSO of the last schema change; rows name their schema by it',
    columns STRING NOT NULL COMMENT 'JSON array of the columns: name, MySQL type, key',
    batch BIGINT NOT NULL COMMENT 'bronze batch of the message that carried it'
"""


def schemas_table(feed: str) -> str:
    """Name of a feed's table of schemas."""
    return f"{feed}_schemas"


def decode(lake: Lake, decoding: decode_stream.Decoding) -> decode_stream.Decoded:
    """``silver.decode``, and then the rows that waited for the schemas which it brought."""
    done = decode_stream.decode(lake, decoding)
    _learn(lake, decoding.feed)
    quarantine.create_tables(lake)
    quarantine.replay(lake, replace(decoding, schemas=known(lake, decoding.feed)), reason=MISSING)
    return done


def known(lake: Lake, feed: str) -> dict[SchemaName, tuple[Column, ...]]:
    """The schemas learned so far: a few a table."""
    lines = lake.spark.table(_create(lake, feed)).select(*_NAME, "columns").collect()
    return {(database, table, version): columns_from(columns) for database, table, version, columns in lines}


def _create(lake: Lake, feed: str) -> str:
    comment = f"Schemas that changefeed {feed} sent apart from its rows"
    return lake.create(Layer.SILVER, schemas_table(feed), _COLUMNS, comment=comment)


def _learn(lake: Lake, feed: str) -> None:
    """Keep the schemas that silver has and nobody learned yet."""
    schemas = lake.spark.table(_create(lake, feed))
    newest = schemas.agg(F.coalesce(F.max("batch"), F.lit(-1)).alias("newest"))
    events = lake.spark.table(lake.table(Layer.SILVER, decode_stream.events_table(feed)))
    carriers = events.where(
        F.col("kind").isin(Kind.BOOTSTRAP.value, Kind.DDL.value)
        & F.col("schema_version").isNotNull()
        & F.col("table").isNotNull()
    )
    # Schemas of earlier batches were learned with those batches, except where a replay from quarantine decoded them
    # since.
    new = carriers.join(F.broadcast(newest)).where(
        (F.col("batch") >= F.col("newest")) | F.col("replayed_at").isNotNull()
    )
    found = new.groupBy(*_NAME).agg(F.min_by("columns", "batch").alias("columns"), F.min("batch").alias("batch"))
    missing = found.join(schemas, _NAME, "left_anti").select(*_NAME, "columns", "batch")
    missing.write.format("delta").mode("append").saveAsTable(lake.table(Layer.SILVER, schemas_table(feed)))
