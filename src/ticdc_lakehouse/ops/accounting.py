"""What became of every event of a feed, as a view that always balances.

    ops.<feed>_accounting   per bronze batch and partition: events = applied + superseded + repeated + filtered +
                            waiting + quarantined + control

``messages`` counts the messages that the events came with; ``silver.<feed>_accounting`` holds these against bronze.
"""

from __future__ import annotations

from ticdc_codec.event import Kind
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.state_tables import WINDOWS, definitions_sql, newest_states_sql
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.sql.text import folded_sql, literal

_FATES = {
    "applied": "row changes that made a row what it was at some published watermark",
    "superseded": "row changes that a newer change of the same key overtook within their window",
    "repeated": "row changes that had come before",
    "filtered": "row changes of tables that gold does not carry",
    "waiting": "row changes above the watermark, or above the TSO at which their table is blocked",
    "quarantined": "messages that could not be decoded",
    "control": "DDL, watermarks, schemas, and messages without any event",
}
COUNTS = f"""
    messages COMMENT 'messages that the events came with',
    events COMMENT 'sum of the columns after it',
    {", ".join(f"{fate} COMMENT {literal(what)}" for fate, what in _FATES.items())}
"""
"""The columns that `totals_sql` gives, as a view takes them."""
_COUNTED = f"""
    count_if(index = 0 AND replayed_at IS NULL) AS messages, count(*) AS events,
    {", ".join(f"count_if(fate = '{fate}') AS {fate}" for fate in _FATES)}
"""
"""What these columns hold. A message that was replayed has the row with index 0 of each decoding: the first counts."""
_COLUMNS = f"""
    batch COMMENT 'bronze batch',
    topic COMMENT 'Kafka topic',
    partition COMMENT 'Kafka partition',
    {COUNTS}
"""

_NAME = f"{folded_sql('database')} AS database, {folded_sql('table')} AS table"
"""The columns of a table's name as TiDB compares it (wire.md 8.14)."""


def exists(lake: Lake, feed: str) -> bool:
    """Whether the feed's view exists; a new session on a laptop has no views."""
    return lake.exists(Layer.OPS, _view(feed))


def create_view(lake: Lake, feed: str) -> None:
    """Creates the feed's view; the tables that it reads must exist."""
    comment = "What became of every event of the feed"
    lake.view(Layer.OPS, _view(feed), _COLUMNS, _accounting_sql(lake, feed), comment=comment)


def _view(feed: str) -> str:
    return f"{feed}_accounting"


def _accounting_sql(lake: Lake, feed: str) -> str:
    return f"""
        SELECT batch, topic, partition, {_COUNTED}
        FROM ({_fates_sql(lake, feed)}) GROUP BY batch, topic, partition"""


def totals_sql(lake: Lake, feed: str) -> str:
    """The counts of all batches and partitions together."""
    return f"SELECT {_COUNTED} FROM ({_fates_sql(lake, feed)})"


def _fates_sql(lake: Lake, feed: str) -> str:
    """Each event with its fate. Of one key's changes in one window the last counts, at one commit_ts the upsert."""
    arrival = "batch, topic, partition, offset, index"
    return f"""
        SELECT batch, topic, partition, index, replayed_at,
               CASE WHEN kind = '{Kind.ERROR}' THEN 'quarantined' WHEN kind <> '{Kind.ROW}' THEN 'control'
                    WHEN delivery > 1 THEN 'repeated' WHEN closed IS NULL THEN 'waiting'
                    WHEN carried IS NULL THEN 'filtered' WHEN commit_order > applied_tso THEN 'waiting'
                    WHEN newer > 0 THEN 'superseded' ELSE 'applied' END AS fate
        FROM (SELECT *, count(*) OVER (PARTITION BY kind, closed, database, table, key, delivery
                                       ORDER BY commit_order DESC, op = 'delete', {arrival}
                                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newer
              FROM ({_deliveries_sql(lake, feed, arrival)})
              LEFT JOIN ({_windows_sql(lake, feed)}) ON commit_order > opened AND commit_order <= closed
              LEFT JOIN ({_tables_sql(lake, feed)}) USING (database, table)
              LEFT JOIN ({_carried_sql(lake, feed)}) USING (database, table))"""


def _deliveries_sql(lake: Lake, feed: str, arrival: str) -> str:
    """Each event with its number among those that say the same."""
    same = "kind, database, table, commit_ts, commit_time, op, handle_key, before, after"
    return f"""
        SELECT *, coalesce(handle_key, after, before) AS key, {events_table.COMMIT_ORDER} AS commit_order,
               row_number() OVER (PARTITION BY {same} ORDER BY {arrival}) AS delivery
        FROM (SELECT * EXCEPT (database, table), {_NAME}
              FROM {events_table.full_name(lake, feed)})"""


def _windows_sql(lake: Lake, feed: str) -> str:
    return f"""
        SELECT min(from_tso) AS opened, tso AS closed FROM {lake.table(Layer.OPS, WINDOWS)}
        WHERE feed = {literal(feed)} AND from_tso < tso GROUP BY tso"""


def _tables_sql(lake: Lake, feed: str) -> str:
    return f"SELECT {_NAME}, applied_tso FROM ({newest_states_sql(lake)}) WHERE feed = {literal(feed)}"


def _carried_sql(lake: Lake, feed: str) -> str:
    return f"SELECT DISTINCT {_NAME}, true AS carried FROM ({definitions_sql(lake, feed)})"
