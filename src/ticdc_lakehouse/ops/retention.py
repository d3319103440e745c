"""Retention of bronze and silver: deletes the batches that nothing needs any more, and says what needs the others.

Nothing is deleted that gold has not published, that a message in quarantine or a blocked table needs, or that is
younger than the feed's ``bronze.retention_days`` and ``silver.retention_days``, counted back from the watermark. DDLs
stay, and so do the offsets of all batches.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import functions as F

from ticdc_codec.event import Kind
from ticdc_codec.tso import with_time
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer, Reader
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.planning.retention_needs import NeededBatch, horizon, oldest_batch, oldest_commit, within_days
from ticdc_lakehouse.silver import events_table, quarantine
from ticdc_lakehouse.silver.retention_floor import RetentionFloor, record, retention_floor

_NOT_DDL = f"kind <> '{Kind.DDL}'"


def retain_bronze(lake: Lake, feed: str, days: int) -> RetentionFloor:
    """Deletes the messages of batches that nothing needs; returns what is kept."""
    current = published(lake, feed)
    needed = oldest_batch(_needs(lake, feed, current, days))
    messages = lake.table(Layer.BRONZE, landing.messages_table(feed))
    floor = RetentionFloor(first_batch=needed.batch, held_by=needed.what)
    return _delete(lake, feed, Layer.BRONZE, messages, floor, "true")


def retain_silver(lake: Lake, feed: str, days: int) -> RetentionFloor:
    """Deletes the events, except DDLs, of batches that nothing needs; returns what is kept."""
    if not events_table.exists(lake, feed):
        return RetentionFloor()
    current = published(lake, feed)
    needed = oldest_batch([*_needs(lake, feed, current, days), *_needs_of_commits(lake, feed, current, days)])
    gone = events_table.events(lake, feed).where((F.col("kind") == Kind.ROW.value) & (F.col("batch") < needed.batch))
    row = gone.agg(F.max(F.expr(events_table.COMMIT_ORDER))).first()
    tso = 0 if row is None or row[0] is None else int(row[0])
    floor = RetentionFloor(first_batch=needed.batch, tso=tso, held_by=needed.what)
    table = events_table.full_name(lake, feed)
    done = _delete(lake, feed, Layer.SILVER, table, floor, _NOT_DDL)
    events_table.renew_accounting(lake, feed, done.first_batch)
    return done


def _needs(lake: Lake, feed: str, current: Published, days: int) -> Iterator[NeededBatch]:
    """Yields what needs batches of either layer."""
    if current.number == 0:
        yield NeededBatch(batch=0, what="gold has published nothing yet")
        return
    yield NeededBatch(batch=current.batch + 1, what="gold has not published what came since")
    offsets = lake.spark.table(lake.table(Layer.BRONZE, landing.offsets_table(feed)))
    recent = offsets.where(F.col("ingest_time") >= F.lit(horizon(current, days))).agg(F.min("batch")).first()
    if recent is not None and recent[0] is not None:
        yield NeededBatch(batch=recent[0], what=within_days(days))
    first = quarantine.open_messages(lake, feed).orderBy("batch", "topic", "partition", "offset").first()
    if first is not None:
        position = quarantine.position_text(first.asDict())
        yield NeededBatch(batch=first["batch"], what=f"the message {position} in quarantine ({first['reason']})")
    row = (
        events_table.events(lake, feed)
        .where(events_table.replayed_since_sql(current.replays_seen))
        .agg(F.min("batch"))
        .first()
    )
    if row is not None and row[0] is not None:  # replayed rows keep the batch of their message
        yield NeededBatch(batch=row[0], what="gold has not published what was replayed from quarantine")


def _needs_of_commits(lake: Lake, feed: str, current: Published, days: int) -> Iterator[NeededBatch]:
    """Yields the first batch with an event that a promise about changes needs."""
    needed = oldest_commit(current, days)
    above = F.expr(_NOT_DDL) & (F.expr(events_table.COMMIT_ORDER) > needed.tso)
    row = events_table.events(lake, feed).where(above).agg(F.min("batch")).first()
    if row is not None and row[0] is not None:
        yield NeededBatch(batch=row[0], what=needed.what)


def _delete(lake: Lake, feed: str, layer: Layer, table: str, floor: RetentionFloor, what: str) -> RetentionFloor:
    """Deletes rows of earlier batches. Files hold whole batches, so Delta reads their batch numbers and drops them."""
    before = retention_floor(lake, feed, layer)
    first = max(before.first_batch, floor.first_batch)
    done = RetentionFloor(first_batch=first, tso=max(before.tso, floor.tso), held_by=floor.held_by)
    record(lake, feed, layer, done)
    if first:
        lake.spark.sql(f"DELETE FROM {table} WHERE batch < {first} AND {what}")
        lake.spark.sql(f"VACUUM {table}")
    return done


def lines(lake: Reader, feed: str) -> list[str]:
    """Returns, for people, how far back each layer goes, and why no further. Empty if maintenance never looked."""
    return [
        f"{layer} keeps batches from {floor.first_batch} on{_changes_after(floor.tso)}, for {floor.held_by}"
        for layer, floor in floors(lake, feed).items()
    ]


def _changes_after(tso: int) -> str:
    return f" (every change after {with_time(tso)})" if tso else ""


def floors(lake: Reader, feed: str) -> dict[Layer, RetentionFloor]:
    """Returns what each layer keeps, of those at which maintenance has looked. Creates nothing."""
    layers = {layer: retention_floor(lake, feed, layer) for layer in (Layer.BRONZE, Layer.SILVER)}
    return {layer: floor for layer, floor in layers.items() if floor.kept_at is not None}
