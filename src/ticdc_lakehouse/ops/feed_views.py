"""Views of ops over all feeds, for people, and for the bundle's dashboard and alerts.

    ops.feeds        each feed's newest published watermark; *unapplied*, the time between it and the newest change that
                     arrived; *age of data*, the time between it and now; NULL for one that has landed and published
                     nothing yet
    ops.tables       each table's state at that watermark
    ops.quarantine   every message in quarantine that nothing was done about
    ops.changes      row changes by table and minute of their commit
    ops.accounting   the counts of ``ops.<feed>_accounting`` by feed

A query of the last two reads the events of silver that it selects.

The first run of bronze of a feed creates ops.feeds, before it reads Kafka, the first of gold all views; maintenance
creates them again, without feeds whose tables were dropped. Reading them creates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.errors import AnalysisException

from ticdc_codec.event import Kind
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.state_tables import WINDOWS, create_tables, definitions_sql, newest_states_sql
from ticdc_lakehouse.ops import accounting
from ticdc_lakehouse.silver import events_table, quarantine
from ticdc_lakehouse.sql.text import literal

_OVER_ALL_FEEDS = ("feeds", "quarantine", "changes", "accounting")
_FEED = "feed COMMENT 'changefeed, as its file is named'"
_FEED_COLUMNS = f"""{_FEED},
    number COMMENT 'number of the newest published window',
    tso COMMENT 'published watermark: every change with commit_ts at or below it is applied',
    time COMMENT 'physical part of tso',
    mode COMMENT 'watermarks; or eventual: time is that of the newest commit that was seen',
    published_at COMMENT 'when the window was published',
    seconds_to_publish COMMENT 'age of the watermark when it was published, in seconds',
    unapplied_seconds COMMENT 'time from the watermark to the newest change that arrived, in seconds',
    age_seconds COMMENT 'time from the watermark to now, in seconds',
    tables COMMENT 'number of tables that gold has of the feed',
    blocked COMMENT 'number of blocked tables: ops.tables says why',
    landed_at COMMENT 'when the first message of the feed was landed'
"""
_TABLE_COLUMNS = """
    feed, database, table, name, data, version,
    applied_tso COMMENT 'TSO up to which every change is applied',
    ddls, blocked_at, block_reason,
    pending_columns COMMENT 'columns whose value in rows from before their ADD COLUMN is not known yet'
"""
_CHANGES = """
    database COMMENT 'database in TiDB',
    table COMMENT 'table in TiDB',
    minute COMMENT 'minute of the commits',
    changes COMMENT 'row changes, duplicates included'
"""


def create_views(lake: Lake, *feeds: str) -> None:
    """Creates the views of ops that show ``feeds`` where they are missing or of another version; the feeds' tables must
    exist."""
    missing = [feed for feed in feeds if not accounting.is_current(lake, feed)]  # created last
    if not missing:
        return
    _renew_views(lake)
    for feed in missing:
        accounting.create_view(lake, feed)


def repair_views(lake: Lake) -> None:
    """Renews the views over all feeds if one reads a table that was dropped. Replaced views lose their privileges."""
    try:
        for name in _OVER_ALL_FEEDS:
            if lake.exists(Layer.OPS, name):
                lake.columns(Layer.OPS, name)
    except AnalysisException:
        _renew_views(lake)


def _renew_views(lake: Lake) -> None:
    """Makes the views that show all feeds show those whose tables exist, after a feed came or its tables were dropped;
    makes none without such a feed."""
    landed = landing.landed_feeds(lake)
    if not landed:
        return
    _show_feeds(lake, landed)
    _show_tables(lake)
    if decoded := [feed for feed in landed if events_table.exists(lake, feed)]:
        _show_events(lake, decoded)


def show_landed_feeds(lake: Lake) -> None:
    """Makes ops.feeds show every feed that bronze has begun with, also where gold has never run."""
    create_tables(lake)
    _show_feeds(lake, landing.landed_feeds(lake))


def _show_feeds(lake: Lake, landed: Sequence[str]) -> None:
    """Creates ops.feeds over the feeds that have landed."""
    lake.replace_view(
        Layer.OPS,
        "feeds",
        _FEED_COLUMNS,
        _feeds_sql(lake, landed),
        comment="Each feed's newest published watermark, NULL if nothing is",
    )


def _feeds_sql(lake: Lake, landed: Sequence[str]) -> str:
    arrivals = " UNION ALL ".join(_arrivals_sql(lake, feed) for feed in landed)
    return f"""
        SELECT feed, w.number, w.tso, w.time, w.mode, w.published_at,
               timestampdiff(SECOND, w.time, w.published_at) AS seconds_to_publish,
               if(w IS NULL, NULL, greatest(0, timestampdiff(SECOND, w.time, newest_change))) AS unapplied_seconds,
               timestampdiff(SECOND, w.time, current_timestamp()) AS age_seconds,
               coalesce(tables, 0) AS tables, coalesce(blocked, 0) AS blocked, landed_at
        FROM ({arrivals})
        FULL JOIN (SELECT feed, max_by(struct(*), number) AS w FROM {lake.table(Layer.OPS, WINDOWS)} GROUP BY feed)
        USING (feed)
        LEFT JOIN (SELECT feed, count(*) AS tables, count(blocked_at) AS blocked
                   FROM ({newest_states_sql(lake)}) GROUP BY feed) USING (feed)"""


def _arrivals_sql(lake: Lake, feed: str) -> str:
    offsets = lake.table(Layer.BRONZE, landing.offsets_table(feed))
    landed_at = f"(SELECT min(ingest_time) FROM {offsets} WHERE messages > 0)"
    return (
        f"SELECT {literal(feed)} AS feed, {landed_at} AS landed_at, {_newest_change_sql(lake, feed)} AS newest_change"
    )


def _newest_change_sql(lake: Lake, feed: str) -> str:
    """Returns SQL of the time of the newest change above the watermark that silver has, as an expression; NULL if there
    is none."""
    if not events_table.exists(lake, feed):
        return "CAST(NULL AS TIMESTAMP)"
    newest = f"timestamp_millis(shiftright(max({events_table.COMMIT_ORDER}), 18))"
    windows = lake.table(Layer.OPS, WINDOWS)
    tso = f"coalesce((SELECT max_by(tso, number) FROM {windows} WHERE feed = {literal(feed)}), 0)"
    above = events_table.changes_above_sql(tso)
    return f"(SELECT {newest} FROM {events_table.full_name(lake, feed)} WHERE {above})"


def _show_tables(lake: Lake) -> None:
    """Creates ops.tables."""
    lake.replace_view(
        Layer.OPS,
        "tables",
        _TABLE_COLUMNS,
        "SELECT feed, database, table, name, data, version, applied_tso, ddls, blocked_at, block_reason, "
        f"pending_columns FROM ({newest_states_sql(lake)}) LEFT JOIN ({_pending_sql(lake)}) "
        "USING (feed, data, defined_in, defined_by)",
        comment="Each table at its feed's newest published watermark",
    )


def _pending_sql(lake: Lake) -> str:
    """Returns SQL of the pending columns of each definition that has any."""
    newest = "max_by(definition, struct(commit_ts, place))"
    columns = f"from_json({newest}, 'columns ARRAY<STRUCT<name STRING, pending STRUCT<since BIGINT>>>').columns"
    names = f"transform(filter({columns}, c -> c.pending IS NOT NULL), c -> c.name)"
    return f"""
        SELECT * FROM (
            SELECT feed, data, number AS defined_in, run AS defined_by, {names} AS pending_columns
            FROM ({definitions_sql(lake)}) GROUP BY feed, data, number, run
        ) WHERE size(pending_columns) > 0"""


def _show_events(lake: Lake, feeds: Sequence[str]) -> None:
    """Creates the views over the events of these feeds, or updates them; the feeds' tables must exist."""
    quarantine.create_tables(lake)
    views = (
        (
            "quarantine",
            quarantine.open_messages_sql,
            events_table.QUARANTINE_COLUMNS,
            "Messages in quarantine that nothing was done about",
        ),
        ("changes", _changes_sql, _CHANGES, "Row changes by table and minute of their commit"),
        ("accounting", accounting.totals_sql, accounting.COUNTS, "What became of every event of each feed"),
    )
    for name, query, columns, comment in views:
        lake.replace_view(Layer.OPS, name, f"{_FEED}, {columns}", _of_all(lake, feeds, query), comment=comment)


def _of_all(lake: Lake, feeds: Sequence[str], query: Callable[[Lake, str], str]) -> str:
    return " UNION ALL ".join(f"SELECT {literal(feed)} AS feed, * FROM ({query(lake, feed)})" for feed in feeds)


def _changes_sql(lake: Lake, feed: str) -> str:
    minute = f"date_trunc('MINUTE', timestamp_millis(shiftright({events_table.COMMIT_ORDER}, 18)))"
    return f"""
        SELECT database, table, {minute} AS minute, count(*) AS changes
        FROM {events_table.full_name(lake, feed)} WHERE kind = '{Kind.ROW}' GROUP BY ALL"""
