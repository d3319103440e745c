"""Schemas that a protocol sends apart from its rows (Simple): learned from silver, given to the decoders.

    silver.<feed>_schemas   database, table, schema_version, columns, batch

A row may arrive before the schema that it names: on another partition, or in another micro-batch. It waits in
quarantine (``schema_missing``), which blocks its table and nothing else, and the run that brings the schema decodes it.
Nothing is dropped, and nothing is guessed. TiCDC repeats each schema every two minutes: a schema that is known already,
or that replaces one of its name and version, decodes no waiting row again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.batch import SchemaName
from ticdc_codec.errors import SCHEMA_MISSING
from ticdc_codec.event import Column, Kind, columns_from
from ticdc_lakehouse.catalog import Lake, Layer, Reader
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.silver import decode_stream, events_table, quarantine, schema_position
from ticdc_lakehouse.silver.schema_position import SchemaPosition

_IS_CARRIER = f"""
    (kind IN ('{Kind.BOOTSTRAP}', '{Kind.DDL}') AND schema_version IS NOT NULL AND table IS NOT NULL)"""
"""SQL: true if an event brings a schema."""
_DEFAULT = ',"default":"[^"]*"'
"""What columns have only in DDL events."""
_NAME = ["database", "table", "schema_version"]
_COLUMNS = """
    database STRING NOT NULL COMMENT 'database in TiDB',
    table STRING NOT NULL COMMENT 'table in TiDB',
    schema_version BIGINT NOT NULL COMMENT 'TSO of the last schema change; rows name their schema by it',
    columns STRING NOT NULL COMMENT 'JSON array of the columns: name, MySQL type, key',
    batch BIGINT NOT NULL COMMENT 'bronze batch of the message that carried it'
"""


def schemas_table(feed: str) -> str:
    """Returns the name of a feed's table of schemas."""
    return f"{feed}_schemas"


def decode(lake: Lake, decoding: decode_stream.Decoding) -> decode_stream.Decoded:
    """Does what ``decode_stream.decode`` does, and then decodes the rows that waited for schemas, if it brought any
    that was not known."""
    feed, checkpoint = decoding.feed, decode_stream.stream(lake, decoding.feed)
    done = decode_stream.decode(lake, decoding)
    since = schema_position.read(checkpoint, len(decoding.schemas))
    position = _learn(lake, feed, since)
    schemas = learned(lake, feed)
    quarantine.create_tables(lake)
    # Rows may wait for a schema that never comes: they are not read again in each run. Names are added and never taken
    # away, so as many as at `since` are the same ones: what waited then was decoded again with all of them, and what
    # silver decoded since had them.
    if len(schemas) > since.schemas:
        quarantine.replay(lake, replace(decoding, schemas=schemas), reason=SCHEMA_MISSING)
    # Last: a run that dies before leaves the replay to the next one.
    schema_position.write(checkpoint, replace(position, schemas=len(schemas)))
    return done


class SchemasByName(Mapping[SchemaName, tuple[Column, ...]]):
    """Schemas, found by the names of their tables as TiDB compares them: after a RENAME tiflow writes a database in
    lower case, until another DDL of the table (wire.md 8.14). Of several with one name and version the last holds, as
    in the decoder: names may change their tables, and RENAME keeps the version."""

    def __init__(self, schemas: Iterable[tuple[SchemaName, tuple[Column, ...]]]) -> None:
        self._by_name = {(TableName(database, table), version): c for (database, table, version), c in schemas}

    def __getitem__(self, name: SchemaName) -> tuple[Column, ...]:
        """Returns the columns of the schema. Raises KeyError for an unknown one."""
        database, table, version = name
        return self._by_name[TableName(database, table), version]

    def __iter__(self) -> Iterator[SchemaName]:
        """Yields the names, as their schemas spell them."""
        return ((*name, version) for name, version in self._by_name)

    def __len__(self) -> int:
        """Returns the number of schemas."""
        return len(self._by_name)


def learned(lake: Reader, feed: str) -> SchemasByName:
    """Returns the schemas learned so far: a few per table. Creates nothing."""
    if not lake.exists(Layer.SILVER, schemas_table(feed)):
        return SchemasByName([])
    table = lake.table(Layer.SILVER, schemas_table(feed))
    rows = lake.rows(f"SELECT database, table, schema_version, columns FROM {table} ORDER BY batch")
    names = ((row["database"], row["table"], row["schema_version"]) for row in rows)
    return SchemasByName(zip(names, (columns_from(row["columns"]) for row in rows), strict=True))


def _create(lake: Lake, feed: str) -> str:
    comment = f"Schemas that changefeed {feed} sent apart from its rows"
    return lake.create(Layer.SILVER, schemas_table(feed), _COLUMNS, comment=comment)


def _learn(lake: Lake, feed: str, since: SchemaPosition) -> SchemaPosition:
    """Stores the schemas that came to silver after a position and are not stored yet, the newest for each name and
    version. Returns the position up to which it looked."""
    # First: what silver appends meanwhile is looked at again.
    found = lake.rows(f"""
        SELECT max(batch) AS batch, max(replayed_at) AS replayed_at, count_if({_IS_CARRIER}) AS carriers
        FROM {events_table.full_name(lake, feed)} WHERE {since.later_sql}""")[0]
    if found["carriers"]:
        _store(lake, feed, events_table.events(lake, feed).where(f"{since.later_sql} AND {_IS_CARRIER}"))
    replays = [at for at in (since.replayed_at, found["replayed_at"]) if at is not None]
    batch = since.batch if found["batch"] is None else max(since.batch, found["batch"])
    return SchemaPosition(batch=batch, replayed_at=max(replays, default=None))


def _store(lake: Lake, feed: str, carriers: DataFrame) -> None:
    table = _create(lake, feed)
    columns = F.regexp_replace("columns", _DEFAULT, "")
    newest_of_name = F.max_by(columns, F.struct("batch", "offset")).alias("columns"), F.max("batch").alias("batch")
    candidates = carriers.groupBy(*_NAME).agg(*newest_of_name)
    of_name = F.max_by("columns", "batch").alias("known"), F.max("batch").alias("known_in")
    known = lake.spark.table(table).groupBy(*_NAME).agg(*of_name)
    missing = candidates.join(known, _NAME, "left").where("known IS NULL OR (columns <> known AND batch > known_in)")
    missing.select(*_NAME, "columns", "batch").write.format("delta").mode("append").saveAsTable(table)
