"""Views of ops over all feeds, which the bundle's dashboard and alerts read.

    ops.quarantine   every message in quarantine that nothing was done about
    ops.changes      row changes by table and minute of their commit
    ops.accounting   the counts of ``ops.<feed>_accounting`` by feed

A query of the last two reads the events of silver that it selects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ticdc_codec.event import Kind
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.ops import accounting
from ticdc_lakehouse.silver import events_table, quarantine
from ticdc_lakehouse.sql.text import literal

_FEED = "feed COMMENT 'changefeed, as its file is named'"
_CHANGES = """
    database COMMENT 'database in TiDB',
    table COMMENT 'table in TiDB',
    minute COMMENT 'minute of the commits',
    changes COMMENT 'row changes, duplicates included'
"""


def create_views(lake: Lake, feeds: Sequence[str]) -> None:
    """Creates the views over these feeds, or updates them; the feeds' tables must exist."""
    quarantine.create_tables(lake)
    views = (
        (
            "quarantine",
            _quarantine_sql,
            events_table.QUARANTINE_COLUMNS,
            "Messages in quarantine that nothing was done about",
        ),
        ("changes", _changes_sql, _CHANGES, "Row changes by table and minute of their commit"),
        ("accounting", accounting.totals_sql, accounting.COUNTS, "What became of every event of each feed"),
    )
    for name, query, columns, comment in views:
        lake.view(Layer.OPS, name, f"{_FEED}, {columns}", _of_all(lake, feeds, query), comment=comment)


def _of_all(lake: Lake, feeds: Sequence[str], query: Callable[[Lake, str], str]) -> str:
    return " UNION ALL ".join(f"SELECT {literal(feed)} AS feed, * FROM ({query(lake, feed)})" for feed in feeds)


def _quarantine_sql(lake: Lake, feed: str) -> str:
    # Only errors have a `reason`: its null count lets Delta skip every file without one.
    return f"""
        SELECT {events_table.QUARANTINE_COLUMNS} FROM {events_table.full_name(lake, feed)}
        LEFT ANTI JOIN (SELECT topic, partition, offset FROM {lake.table(Layer.OPS, quarantine.ACTIONS)}
                        WHERE feed = {literal(feed)}) USING (topic, partition, offset)
        WHERE reason IS NOT NULL AND kind = '{Kind.ERROR}' AND replayed_at IS NULL"""


def _changes_sql(lake: Lake, feed: str) -> str:
    minute = f"date_trunc('MINUTE', timestamp_millis(shiftright({events_table.COMMIT_ORDER}, 18)))"
    return f"""
        SELECT database, table, {minute} AS minute, count(*) AS changes
        FROM {events_table.full_name(lake, feed)} WHERE kind = '{Kind.ROW}' GROUP BY ALL"""
