"""What became of every event of a feed, as a view that always balances.

    ops.<feed>_accounting   per bronze batch and partition: events = applied + superseded + duplicates + filtered +
                            waiting + quarantined + control

``messages`` counts the messages that the events came with; ``silver.<feed>_accounting`` holds these against bronze.
"""

from __future__ import annotations

from ticdc_codec.event import Kind, Op
from ticdc_codec.tso import MAX_TSO
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.state_tables import (
    IS_LEFT_OUT,
    TABLE_STATES,
    WINDOWS,
    definitions_sql,
    newest_states_sql,
)
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.sql.text import folded_sql, literal

_FATES = {
    "applied": "row changes that made a row what it was at some published watermark",
    "superseded": "row changes that a newer change of the same key overtook within their window",
    "duplicates": "row changes that were delivered before",
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
"""The columns of `totals_sql`, as a view takes them."""
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

_ARRIVAL = "batch, topic, partition, offset, index"
_NAME = f"{folded_sql('database')} AS database, {folded_sql('table')} AS table"
"""The columns of a table's name as TiDB compares it (wire.md 8.14)."""


def is_current(lake: Lake, feed: str) -> bool:
    """True if the feed's view is there as this version makes it; a new session on a laptop has no views."""
    return lake.has_current_view(Layer.OPS, _view(feed))


def create_view(lake: Lake, feed: str) -> None:
    """Creates the feed's view; the tables that it reads must exist."""
    comment = "What became of every event of the feed"
    lake.replace_view(Layer.OPS, _view(feed), _COLUMNS, _accounting_sql(lake, feed), comment=comment)


def _view(feed: str) -> str:
    return f"{feed}_accounting"


def _accounting_sql(lake: Lake, feed: str) -> str:
    return f"""
        SELECT batch, topic, partition, {_COUNTED}
        FROM ({_fates_sql(lake, feed)}) GROUP BY batch, topic, partition"""


def totals_sql(lake: Lake, feed: str) -> str:
    """Returns SQL of the counts of all batches and partitions together."""
    return f"SELECT {_COUNTED} FROM ({_fates_sql(lake, feed)})"


def _fates_sql(lake: Lake, feed: str) -> str:
    """Returns SQL of each event with its fate. Of one key's changes in one window the last counts, at one commit_ts the
    upsert."""
    events = events_table.full_name(lake, feed)
    return f"""
        SELECT batch, topic, partition, index, replayed_at,
               CASE kind WHEN '{Kind.ERROR}' THEN 'quarantined' ELSE 'control' END AS fate
        FROM {events} WHERE kind <> '{Kind.ROW}'
        UNION ALL
        SELECT batch, topic, partition, index, replayed_at,
               CASE WHEN delivery > 1 THEN 'duplicates' WHEN closed IS NULL THEN 'waiting'
                    WHEN carried IS NULL THEN 'filtered' WHEN commit_order > applied_tso THEN 'waiting'
                    WHEN exists(absences, a -> commit_order > a.since AND commit_order < a.until) THEN 'filtered'
                    WHEN newer > 0 THEN 'superseded' ELSE 'applied' END AS fate
        FROM (SELECT *, count(*) OVER (PARTITION BY closed, database, table, key, delivery
                                       ORDER BY commit_order DESC, op = '{Op.DELETE}', {_ARRIVAL}
                                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newer
              FROM ({_closed_sql(lake, feed)})
              LEFT JOIN ({_tables_sql(lake, feed)}) USING (database, table)
              LEFT JOIN ({_carried_sql(lake, feed)}) USING (database, table)
              LEFT JOIN ({_left_out_sql(lake, feed)}) USING (database, table))"""


def _closed_sql(lake: Lake, feed: str) -> str:
    """Returns SQL of each row change with ``closed``, the TSO of the window that covers it: the lowest one from its
    commit on, NULL above the watermark. A join by ranges would compare every row with every window; this sorts both
    together, span by span, and takes the lowest TSO of the spans after it for a row that no window of its own span
    covers."""
    ends = f"SELECT DISTINCT tso FROM {lake.table(Layer.OPS, WINDOWS)} WHERE feed = {literal(feed)} AND from_tso < tso"
    events = events_table.full_name(lake, feed)
    return f"""
        SELECT change.*, closed FROM (
            SELECT change, coalesce(min(tso) OVER (PARTITION BY span ORDER BY at DESC, tso DESC NULLS LAST
                                                   ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), next) AS closed
            FROM (SELECT {_span("commit_order")} AS span, commit_order AS at, CAST(NULL AS BIGINT) AS tso,
                         struct(*) AS change FROM ({_deliveries_sql(lake, feed)})
                  UNION ALL SELECT {_span("tso")}, tso, tso, NULL FROM ({ends}))
            LEFT JOIN (
                SELECT span, min(min(tso)) OVER (ORDER BY span DESC
                                                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS next
                FROM (SELECT {_span(events_table.COMMIT_ORDER)} AS span, CAST(NULL AS BIGINT) AS tso
                      FROM {events} WHERE kind = '{Kind.ROW}'
                      UNION ALL SELECT {_span("tso")}, tso FROM ({ends}))
                GROUP BY span) USING (span)
        ) WHERE change IS NOT NULL"""


def _span(tso: str) -> str:
    """Returns SQL: the number of the span of 2^36 TSOs, a little over four minutes, that a TSO is in."""
    return f"shiftright({tso}, 36)"


def _deliveries_sql(lake: Lake, feed: str) -> str:
    """Returns SQL of each row change with its number among those that say the same. A hash stands for the images, which
    would be shuffled with every row."""
    same = "database, table, commit_ts, commit_time, op, handle_key, images"
    return f"""
        SELECT * EXCEPT (images), row_number() OVER (PARTITION BY {same} ORDER BY {_ARRIVAL}) AS delivery
        FROM (SELECT {_ARRIVAL}, replayed_at, op, commit_ts, commit_time, handle_key, {_NAME},
                     coalesce(handle_key, after, before) AS key, {events_table.COMMIT_ORDER} AS commit_order,
                     md5(concat_ws(' ', coalesce(before, '-'), coalesce(after, '-'))) AS images
              FROM {events_table.full_name(lake, feed)} WHERE kind = '{Kind.ROW}')"""


def _tables_sql(lake: Lake, feed: str) -> str:
    return f"SELECT {_NAME}, applied_tso FROM ({newest_states_sql(lake)}) WHERE feed = {literal(feed)}"


def _carried_sql(lake: Lake, feed: str) -> str:
    return f"SELECT DISTINCT {_NAME}, true AS carried FROM ({definitions_sql(lake, feed)})"


def _left_out_sql(lake: Lake, feed: str) -> str:
    """Returns SQL of the tables that the feed's filter left out after gold had carried them, each with the spans of
    TSOs in which gold did not apply its row changes: up to the next definition of that name, if there is one."""
    windows, states = lake.table(Layer.OPS, WINDOWS), lake.table(Layer.OPS, TABLE_STATES)
    return f"""
        SELECT database, table, collect_list(struct(since, until)) AS absences FROM (
            SELECT database, table, since,
                   coalesce(min(CASE WHEN defined > number THEN commit_ts END), {MAX_TSO}) AS until
            FROM (SELECT {_NAME}, number, applied_tso AS since FROM {states}
                  LEFT SEMI JOIN {windows} USING (feed, number, run)
                  WHERE feed = {literal(feed)} AND {IS_LEFT_OUT}) s
            LEFT JOIN (SELECT {_NAME}, number AS defined, commit_ts FROM ({definitions_sql(lake, feed)}))
                USING (database, table)
            GROUP BY database, table, number, since
        ) GROUP BY database, table"""
