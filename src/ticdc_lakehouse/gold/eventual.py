"""Gold of a feed without watermarks (Canal-JSON, Debezium without the TiDB extension): the newest commit of each key.

There is no point in time at which all tables, or even the rows of one transaction, are known to be applied: a change
may arrive late. But an older change never replaces a newer one. A deleted row stays as a tombstone, so that a change
from before its deletion does not bring it back: until a window has only changes that were committed the configured days
later. No clock counts, or a feed that was paused would lose the tombstones of its backlog while it reads the rest. A
replay from quarantine needs none: its tables read all their changes again.

The order is commit_ts. Canal-JSON without the extension has only the commit's millisecond: changes of one millisecond
are applied in the order in which they arrived in their partition, and before or after a DDL of that millisecond as they
arrived (`events_table.ordered_sql`).
"""

from __future__ import annotations

from datetime import timedelta

from ticdc_codec.tso import first_of
from ticdc_lakehouse.catalog import Lake, Layer, Reader
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, DELETED
from ticdc_lakehouse.gold.watermark import Completeness, decoded_batches
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.planning.window import BatchRange
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.sql.text import quoted


def arrived(lake: Reader, feed: str, before: Published) -> Completeness:
    """Returns what has arrived: up to the newest commit, and the last bronze batch that silver has decoded whole."""
    batch, gap = decoded_batches(lake, feed, before)
    # Before the newest commit, which none of these replays may be above.
    is_replay = events_table.replayed_since_sql(before.replays_seen)
    [replays] = lake.rows(f"""
        SELECT max(replayed_at) AS through FROM {events_table.full_name(lake, feed)} WHERE {is_replay}""")
    arrivals = f"batch <= {batch} AND (batch > {before.batch} OR ({is_replay}))"
    newest = events_table.newest_commit(lake, feed, arrivals)
    return Completeness(
        tso=max(before.tso, newest),
        batch=batch,
        waiting_on=gap,
        is_undecoded=gap is not None,
        replays_through=replays["through"],
    )


def purge(lake: Lake, name: str, days: int, feed: str, batches: BatchRange) -> None:
    """Deletes the tombstones of rows that were deleted more than ``days`` days before the oldest change in these bronze
    batches of the feed; none if they are all batches, since no window came before."""
    if batches.rereads_all:
        return
    arrived = f"batch > {batches.after} AND batch <= {batches.through} AND replayed_at IS NULL"
    oldest = events_table.oldest_change(lake, feed, arrived)
    limit = oldest - first_of(timedelta(days=days) // timedelta(milliseconds=1))
    table = lake.table(Layer.LIVE, name)
    lake.spark.sql(f"DELETE FROM {table} WHERE {quoted(DELETED)} AND {COMMIT_TS} < {limit}")
