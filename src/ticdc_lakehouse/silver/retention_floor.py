"""How far back a feed's bronze and silver go: rows of ``ops.retention``, one a layer and run of maintenance.

Whatever reads changes from before the newest window (an export, a replay, a table that is resumed) checks here that
they are not deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer, Reader
from ticdc_lakehouse.sql.text import literal

RETENTION = "retention"
_COLUMNS = """
    feed STRING NOT NULL COMMENT 'changefeed, as its file is named',
    layer STRING NOT NULL COMMENT 'bronze: messages; silver: all events but DDLs',
    first_batch BIGINT NOT NULL COMMENT 'first bronze batch that is kept',
    tso BIGINT NOT NULL COMMENT 'highest commit_ts of a deleted row change; 0 if none is deleted, and in bronze',
    held_by STRING NOT NULL COMMENT 'what needs the batch first_batch',
    kept_at TIMESTAMP NOT NULL COMMENT 'when maintenance ran'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionFloor:
    """What a layer keeps of a feed."""

    first_batch: int = 0
    """What came with earlier bronze batches is gone."""
    tso: int = 0
    """Every row change that is gone has a commit_ts up to this."""
    held_by: str = ""
    """What needs the batch ``first_batch``."""
    kept_at: datetime | None = None
    """When maintenance last looked; None if it never did."""


def retention_floor(lake: Reader, feed: str, layer: Layer) -> RetentionFloor:
    """Returns what the layer keeps of the feed: everything until maintenance deletes something. Creates nothing."""
    if not lake.exists(Layer.OPS, RETENTION):
        return RetentionFloor()
    rows = lake.rows(f"""
        SELECT first_batch, tso, held_by, kept_at FROM {lake.table(Layer.OPS, RETENTION)}
        WHERE feed = {literal(feed)} AND layer = {literal(layer)} ORDER BY kept_at""")
    if not rows:
        return RetentionFloor()
    first_batch, tso = max(row["first_batch"] for row in rows), max(row["tso"] for row in rows)
    return RetentionFloor(first_batch=first_batch, tso=tso, held_by=rows[-1]["held_by"], kept_at=rows[-1]["kept_at"])


def record(lake: Lake, feed: str, layer: Layer, floor: RetentionFloor) -> None:
    """Records what is kept, before anything is deleted: partly deleted batches must not be read."""
    table = lake.create(Layer.OPS, RETENTION, _COLUMNS, comment="How far back bronze and silver of each feed go")
    row = (feed, layer.value, floor.first_batch, floor.tso, floor.held_by, datetime.now(UTC))
    rows = lake.spark.createDataFrame([row], lake.spark.table(table).schema)
    rows.write.format("delta").mode("append").saveAsTable(table)


def first_offsets(lake: Reader, feed: str) -> dict[tuple[str, int], int]:
    """Returns by topic and partition the first offset whose message can be replayed: bronze has its bytes, and silver
    the changes that came after it."""
    first = max(retention_floor(lake, feed, layer).first_batch for layer in (Layer.BRONZE, Layer.SILVER))
    if first == 0:
        return {}
    ends = lake.rows(f"""
        SELECT topic, partition, max(end_offset) AS end_offset
        FROM {lake.table(Layer.BRONZE, landing.offsets_table(feed))} WHERE batch < {first} GROUP BY topic, partition""")
    return {(row["topic"], row["partition"]): row["end_offset"] for row in ends}
