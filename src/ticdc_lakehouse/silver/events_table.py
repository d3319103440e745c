"""The events table of a feed in silver, and the views of it.

    silver.<feed>_events       where an event came from (topic, partition, offset, index), and event.EVENTS
    silver.<feed>_quarantine   view: the undecodable messages, with reason and position
    silver.<feed>_accounting   view: per batch and partition, messages = decoded + quarantined + waiting

Row changes, DDL, watermarks and quarantined messages are rows of one table, distinguished by ``kind``: one append is
one Delta commit, so that after any failure a message is neither duplicated nor lost, without a second stream over
bronze.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame

from ticdc_codec.event import Kind
from ticdc_codec.tso import first_of
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer, Reader
from ticdc_lakehouse.silver.retention_floor import retention_floor
from ticdc_lakehouse.sql.text import commented_sql, time_literal

COMMIT_ORDER = "coalesce(commit_ts, shiftleft(unix_millis(commit_time), 18))"
"""SQL: commit_ts, or the first TSO of the commit's millisecond where the wire has only that."""
_STATISTICS = "topic,partition,offset,index,batch,replayed_at,kind,commit_ts,database,table,reason"
"""Columns by which readers skip files; the images would cost a write more than they could ever save."""

EVENT_COLUMNS = """
    topic STRING NOT NULL COMMENT 'Kafka topic of the message',
    partition INT NOT NULL COMMENT 'Kafka partition',
    offset BIGINT NOT NULL COMMENT 'Kafka offset',
    index INT NOT NULL COMMENT 'number of the event in its message, from 0',
    timestamp TIMESTAMP COMMENT 'Kafka record timestamp',
    batch BIGINT NOT NULL COMMENT 'bronze batch of the message',
    replayed_at TIMESTAMP COMMENT 'when the message was decoded again from quarantine; NULL for a first decoding',
    kind STRING NOT NULL COMMENT 'row, ddl, resolved (a watermark), bootstrap, error (a quarantined message), or empty',
    op STRING COMMENT 'insert, update or delete, as far as the wire tells',
    commit_ts BIGINT COMMENT 'TSO of the commit, or the watermark',
    commit_time TIMESTAMP COMMENT 'physical part of commit_ts',
    database STRING COMMENT 'database in TiDB',
    table STRING COMMENT 'table in TiDB',
    table_id BIGINT COMMENT 'physical table (partition) id, where the protocol sends it',
    handle_key STRING COMMENT 'JSON array of the handle key values; NULL if the protocol names no key',
    old_handle_key STRING COMMENT 'handle key before an update that changed it',
    before STRING COMMENT 'row before the change, a JSON object: column to MySQL text (binary as hex)',
    after STRING COMMENT 'row after the change, a JSON object: column to MySQL text (binary as hex)',
    columns STRING COMMENT 'JSON array of the columns: name, MySQL type, key, flags, as the wire gives them',
    schema_version BIGINT COMMENT 'TSO of the last schema change, where the protocol sends it',
    handle_only BOOLEAN COMMENT 'the images hold only the handle key: the row was too large for a message',
    query STRING COMMENT 'text of a DDL',
    ddl_type STRING COMMENT 'type of a DDL as the wire writes it',
    reason STRING COMMENT 'why a message is quarantined: one word to group by',
    detail STRING COMMENT 'what was wanted and what was found',
    error_offset BIGINT COMMENT 'byte position of the fault in the value'
"""
QUARANTINE_COLUMNS = "topic, partition, offset, timestamp, batch, reason, detail, error_offset, database, table"
"""What views of quarantined messages show; the columns bring their comments along."""
_ACCOUNTING = {
    "decoded": "messages that were decoded",
    "quarantined": "messages that could not be decoded, also those replayed or dismissed since",
    "waiting": "messages that silver has not read yet",
}


def table_name(feed: str) -> str:
    """Returns the name of a feed's events table in the schema of silver."""
    return f"{feed}_events"


def full_name(lake: Reader, feed: str) -> str:
    """Returns the quoted three-part name of a feed's events table."""
    return lake.table(Layer.SILVER, table_name(feed))


def exists(lake: Reader, feed: str) -> bool:
    """True if silver has ever run for the feed."""
    return lake.exists(Layer.SILVER, table_name(feed))


def last_batch(lake: Lake, feed: str, after: int) -> int:
    """Returns the newest bronze batch of which silver has an event; ``after`` if that is not above it."""
    if not exists(lake, feed):
        return after
    [row] = lake.rows(f"SELECT max(batch) AS batch FROM {full_name(lake, feed)} WHERE batch > {after}")
    return after if row["batch"] is None else int(row["batch"])


def events(lake: Lake, feed: str) -> DataFrame:
    """Returns all events of a feed: the columns ``EVENT_COLUMNS``."""
    return lake.spark.table(full_name(lake, feed))


def ordered_sql(lake: Reader, feed: str) -> str:
    """Returns a query of all events of a feed, with the column ``commit_order``: `COMMIT_ORDER`, and one more for rows
    of a DDL's millisecond that follow the DDL.

    TiCDC sends a DDL after all rows from before it and before all from after it: those arrived later, in its partition
    by offset, in others by Kafka's time. A changefeed that starts again sends the rows again with the DDL, so its last
    copy counts.
    """
    events = full_name(lake, feed)
    later = "IF(d.topic = topic AND d.partition = partition, offset > d.offset, timestamp > d.timestamp)"
    return f"""
        SELECT e.*, {COMMIT_ORDER} + CASE WHEN exists(ddls, d -> {later}) THEN 1 ELSE 0 END AS commit_order
        FROM {events} e LEFT JOIN (
            SELECT commit_time AS ddl_time, collect_list(last) AS ddls
            FROM (SELECT commit_time, max_by(struct(topic, partition, offset, timestamp), offset) AS last FROM {events}
                  WHERE kind = '{Kind.DDL}' AND commit_ts IS NULL GROUP BY commit_time, topic, partition)
            GROUP BY commit_time
        ) ON kind = '{Kind.ROW}' AND commit_ts IS NULL AND commit_time = ddl_time"""


def newest_commit(lake: Reader, feed: str, where: str) -> int:
    """Returns the highest commit_ts, or ``commit_order`` that rows may have (`ordered_sql`), of the events that meet an
    SQL condition; 0 without one."""
    [row] = lake.rows(f"""
        SELECT max(commit_ts) AS tso, max(CASE WHEN commit_ts IS NULL THEN commit_time END) AS time
        FROM {full_name(lake, feed)} WHERE {where}""")
    return max(row["tso"] or 0, 0 if row["time"] is None else first_of(round(row["time"].timestamp() * 1000)) + 1)


def oldest_change(lake: Lake, feed: str, where: str) -> int:
    """Returns the lowest `COMMIT_ORDER` of the row changes and DDLs that meet an SQL condition; 0 without one."""
    changes = f"kind IN ('{Kind.ROW}', '{Kind.DDL}') AND {where}"
    [row] = lake.rows(f"SELECT min({COMMIT_ORDER}) AS oldest FROM {full_name(lake, feed)} WHERE {changes}")
    return row["oldest"] or 0


def changes_above_sql(tso: int | str) -> str:
    """Returns the SQL condition of row changes and DDLs with a commit_ts above ``tso``, an SQL expression, and of all
    that have none: those of a wire that has only the commit's millisecond."""
    return f"kind IN ('{Kind.ROW}', '{Kind.DDL}') AND (commit_ts > {tso} OR commit_ts IS NULL)"


def known_sql(replays_seen: datetime | None) -> str:
    """Returns the SQL condition of the events of one window: those that were replayed from quarantine later than
    ``replays_seen`` (None: all replays) are left to the next one, whichever of the window's queries meets them."""
    seen = "" if replays_seen is None else f" OR replayed_at <= {time_literal(replays_seen)}"
    return f"(replayed_at IS NULL{seen})"


def replayed_since_sql(replays_seen: datetime | None) -> str:
    """Returns the SQL condition of the events that were replayed from quarantine since a state: later than its
    ``replays_seen`` (None: it knows none)."""
    return "replayed_at IS NOT NULL" if replays_seen is None else f"replayed_at > {time_literal(replays_seen)}"


def create_tables(lake: Lake, feed: str) -> None:
    """Creates a feed's events table and views where they are missing."""
    lake.create(
        Layer.SILVER,
        table_name(feed),
        EVENT_COLUMNS,
        comment=f"Every event of changefeed {feed}, decoded",
        properties=f"TBLPROPERTIES ('delta.dataSkippingStatsColumns' = '{_STATISTICS}')",
    )
    create_views(lake, feed)


def create_views(lake: Lake, feed: str) -> None:
    """Creates a feed's views where they are missing or of another version; on a laptop views belong to one session."""
    if lake.exists(Layer.SILVER, f"{feed}_accounting") and lake.has_current_view(Layer.SILVER, f"{feed}_quarantine"):
        return
    events = full_name(lake, feed)
    lake.replace_view(
        Layer.SILVER,
        f"{feed}_quarantine",
        QUARANTINE_COLUMNS,
        f"SELECT {QUARANTINE_COLUMNS} FROM {events} WHERE kind = '{Kind.ERROR}'",
        comment=f"Messages of changefeed {feed} that could not be decoded; their bytes are in bronze",
    )
    renew_accounting(lake, feed, retention_floor(lake, feed, Layer.SILVER).first_batch)


def renew_accounting(lake: Lake, feed: str, first_batch: int) -> None:
    """Makes the view of accounting show the batches from ``first_batch`` on: silver has deleted the earlier ones."""
    sql = _accounting_sql(lake.table(Layer.BRONZE, landing.offsets_table(feed)), full_name(lake, feed), first_batch)
    comment = "Per batch and partition that silver keeps: messages = decoded + quarantined + waiting"
    lake.alter_view(Layer.SILVER, f"{feed}_accounting", sql, comment=comment)


def _accounting_sql(offsets: str, events: str, first_batch: int) -> str:
    """Returns the query of the view of accounting. A message has at least one row, so its row with index 0 counts it:
    once, also if it was decoded again because a checkpoint was lost."""
    decoded, quarantined = "coalesce(e.decoded, 0)", "coalesce(e.quarantined, 0)"
    counts = zip((decoded, quarantined, f"o.messages - {decoded} - {quarantined}"), _ACCOUNTING.items(), strict=True)
    columns = (f"{commented_sql(sql, name, 'BIGINT', comment)} AS {name}" for sql, (name, comment) in counts)
    return f"""
        SELECT o.batch, o.topic, o.partition, o.messages, {", ".join(columns)}
        FROM {offsets} o LEFT JOIN (
            SELECT batch, topic, partition, count(DISTINCT CASE WHEN kind <> '{Kind.ERROR}' THEN offset END) AS decoded,
                   count(DISTINCT CASE WHEN kind = '{Kind.ERROR}' THEN offset END) AS quarantined
            FROM {events} WHERE index = 0 AND replayed_at IS NULL GROUP BY batch, topic, partition
        ) e ON e.batch = o.batch AND e.topic = o.topic AND e.partition = o.partition
        WHERE o.batch >= {first_batch}"""
