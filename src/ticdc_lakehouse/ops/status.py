"""How the feeds stand: views over what was published, and the status of one feed as ``ticdc-lake status`` prints it.

    ops.feeds    view: each feed's newest published watermark; *unapplied*, the time between it and the newest change
                 that arrived; *age of data*, the time between it and now
    ops.tables   view: each table's state at that watermark

Runs of gold make the views; whoever reads them creates nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.event import Kind
from ticdc_codec.tso import time_of
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.eventual import arrived
from ticdc_lakehouse.gold.state import published, published_feeds
from ticdc_lakehouse.gold.state_tables import WINDOWS, newest_states_sql
from ticdc_lakehouse.gold.watermark import Completeness, completeness
from ticdc_lakehouse.ops import accounting
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.silver import decode_stream, quarantine
from ticdc_lakehouse.sql.text import literal

_CHANGES = f"kind IN ('{Kind.ROW}', '{Kind.DDL}')"
_NO_SILVER = Completeness(tso=0, batch=-1, waits="silver: it has not run for this feed")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedStatus:
    """Where a feed stands."""

    feed: str
    landed: int
    """Kafka messages in bronze."""
    waiting: int
    """Messages that silver has not decoded yet."""
    quarantined: int
    """Messages in quarantine that nothing was done about."""
    tso: int
    """Published watermark, 0 before the first."""
    time: datetime | None
    newest_change: datetime | None
    """Commit time of the newest row change or DDL above the watermark that silver has, None if there is none."""
    asked_at: datetime
    waits: str | None
    """What the watermark is waiting on; None if nothing, or if there is nothing to apply."""
    tables: dict[TableName, TableState]
    mode: Mode = Mode.WATERMARKS

    @property
    def unapplied_seconds(self) -> float | None:
        """Time between the published watermark and the newest change that arrived; None before the first watermark."""
        if self.time is None:
            return None
        return 0.0 if self.newest_change is None else max(0.0, (self.newest_change - self.time).total_seconds())

    @property
    def age_seconds(self) -> float | None:
        """Time between the published watermark and now; None before the first watermark."""
        return None if self.time is None else (self.asked_at - self.time).total_seconds()

    @property
    def caught_up(self) -> bool:
        """Whether all that arrived is published."""
        return self.tso > 0 and self.newest_change is None and not self.waiting and not self.quarantined


def create_views(lake: Lake, feed: str) -> None:
    """Create the views of ops that show ``feed`` where they are missing; its tables must be there."""
    if accounting.exists(lake, feed):  # made last
        return
    feeds = sorted({feed, *published_feeds(lake)})
    lake.view(
        Layer.OPS,
        "feeds",
        _feeds_sql(lake, [each for each in feeds if lake.exists(Layer.SILVER, decode_stream.events_table(each))]),
        comment="Each feed's newest published watermark; seconds_to_publish: its age when it was published; "
        "unapplied_seconds: from it to the newest change that arrived; age_seconds: from it to now",
    )
    lake.view(
        Layer.OPS,
        "tables",
        "SELECT feed, database, table, name, data, version, applied_tso, ddls, blocked_at, block_reason "
        f"FROM ({newest_states_sql(lake)})",
        comment="Each table at its feed's newest published watermark: applied_tso, and why it is blocked",
    )
    accounting.create_view(lake, feed)


def _feeds_sql(lake: Lake, feeds: Sequence[str]) -> str:
    arrivals = " UNION ALL ".join(_newest_change_sql(lake, feed) for feed in feeds)
    return f"""
        SELECT feed, w.number, w.tso, w.time, w.published_at,
               timestampdiff(SECOND, w.time, w.published_at) AS seconds_to_publish,
               greatest(0, timestampdiff(SECOND, w.time, newest_change)) AS unapplied_seconds,
               timestampdiff(SECOND, w.time, current_timestamp()) AS age_seconds,
               coalesce(tables, 0) AS tables, coalesce(blocked, 0) AS blocked
        FROM (SELECT feed, max_by(struct(*), number) AS w FROM {lake.table(Layer.OPS, WINDOWS)} GROUP BY feed)
        LEFT JOIN (SELECT feed, count(*) AS tables, count(blocked_at) AS blocked
                   FROM ({newest_states_sql(lake)}) GROUP BY feed) USING (feed)
        LEFT JOIN ({arrivals}) USING (feed)"""


def _newest_change_sql(lake: Lake, feed: str) -> str:
    events = lake.table(Layer.SILVER, decode_stream.events_table(feed))
    newest = f"timestamp_millis(shiftright(max({decode_stream.COMMIT_ORDER}), 18))"
    return f"SELECT {literal(feed)} AS feed, {newest} AS newest_change FROM {events} WHERE {_CHANGES}"


def create_feed(lake: Lake, feed: str) -> None:
    """Create a feed's tables that do not depend on its data, for what a person does before the first run."""
    landing.create_tables(lake, feed)
    decode_stream.create_tables(lake, feed)
    quarantine.create_tables(lake)


def feed_status(lake: Lake, feed: str) -> FeedStatus:
    """Where ``feed`` stands now. Creates nothing."""
    now = published(lake, feed)
    in_silver = lake.exists(Layer.SILVER, decode_stream.events_table(feed))
    complete = _completeness(lake, feed, now) if in_silver else _NO_SILVER
    landed, waiting = _messages(lake, feed, complete.batch)
    status = FeedStatus(
        feed=feed,
        landed=landed,
        waiting=waiting,
        quarantined=quarantine.open_messages(lake, feed).count() if in_silver else 0,
        tso=now.tso,
        time=time_of(now.tso) if now.tso else None,
        newest_change=_newest_change(lake, feed, now.tso) if in_silver else None,
        asked_at=datetime.now(UTC),
        waits=complete.waits,
        tables=now.tables,
        mode=now.mode,
    )
    return replace(status, waits=None) if status.caught_up else status


def _completeness(lake: Lake, feed: str, now: Published) -> Completeness:
    return arrived(lake, feed, now) if now.mode is Mode.EVENTUAL else completeness(lake, feed, now)


def _messages(lake: Lake, feed: str, batch: int) -> tuple[int, int]:
    """Messages landed, and those of them in bronze batches that silver has not decoded whole."""
    offsets = lake.spark.table(lake.table(Layer.BRONZE, landing.offsets_table(feed)))
    row = offsets.agg(F.sum("messages"), F.sum(F.when(F.col("batch") > batch, F.col("messages")))).first()
    assert row is not None
    return int(row[0] or 0), int(row[1] or 0)


def _newest_change(lake: Lake, feed: str, tso: int) -> datetime | None:
    events = lake.spark.table(lake.table(Layer.SILVER, decode_stream.events_table(feed)))
    commit_ts = F.expr(decode_stream.COMMIT_ORDER)
    row = events.where(F.expr(_CHANGES) & (commit_ts > tso)).agg(F.max(commit_ts)).first()
    return None if row is None or row[0] is None else time_of(row[0])


def status_frame(lake: Lake, feed: str) -> DataFrame:
    """The feed's tables at the published watermark, for a notebook: database, table, applied_tso, version, blocked_at,
    block_reason. Creates nothing."""
    columns = (
        "database STRING, table STRING, applied_tso BIGINT, version BIGINT, blocked_at BIGINT, block_reason STRING"
    )
    if not lake.exists(Layer.OPS, WINDOWS):
        return lake.spark.createDataFrame([], columns)
    tables = lake.spark.sql(newest_states_sql(lake)).where(F.col("feed") == feed)
    names = [column.split()[0] for column in columns.split(", ")]
    return tables.select(*names).orderBy("database", "table")
