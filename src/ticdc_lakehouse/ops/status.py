"""How the feeds stand: views over what was published, and the status of one feed as ``ticdc-lake status`` prints it.

ops.feeds    view: each feed's newest published watermark and how far it is behind
ops.tables   view: each table's state at that watermark
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.tso import time_of
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold import windows
from ticdc_lakehouse.gold.state import WINDOWS, published
from ticdc_lakehouse.gold.watermark import completeness
from ticdc_lakehouse.ops import accounting
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.silver import decode_stream, quarantine

_NEWEST = "SELECT feed, max_by(struct(*), struct(tso, published_at)) AS w FROM {windows} GROUP BY feed"


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
    newest_commit: datetime | None
    """Commit time of the newest event that silver knows, None if there is nothing above the watermark."""
    waits: str | None
    """What keeps the watermark where it is."""
    tables: dict[TableName, TableState]
    mode: Mode = Mode.WATERMARKS

    @property
    def behind_seconds(self) -> float | None:
        """How far the published watermark is behind the newest known event, in seconds of source time; None before the
        first one."""
        if self.time is None:
            return None
        if self.newest_commit is None:
            return 0.0
        return max(0.0, (self.newest_commit - self.time).total_seconds())


def create_views(lake: Lake) -> None:
    """Create the ops tables where they are missing, and the views over them."""
    windows.create_tables(lake)
    newest = _NEWEST.format(windows=lake.table(Layer.OPS, WINDOWS))
    lake.view(
        Layer.OPS,
        "feeds",
        "SELECT feed, w.tso, w.time, w.published_at, "
        "timestampdiff(SECOND, w.time, w.published_at) AS seconds_to_publish, "
        "timestampdiff(SECOND, w.time, current_timestamp()) AS seconds_behind, "
        "size(w.tables) AS tables, size(filter(w.tables, t -> t.reason IS NOT NULL)) AS standing_still "
        f"FROM ({newest})",
        comment="Each feed's newest published watermark; seconds_to_publish is its age when it was published, "
        "seconds_behind its age now",
    )
    lake.view(
        Layer.OPS,
        "tables",
        f"SELECT feed, inline(w.tables) FROM ({newest})",
        comment="Each table at its feed's newest published watermark: applied_tso, and why it stands still",
    )


def create_feed(lake: Lake, feed: str) -> None:
    """Create all of a feed's tables and views that do not depend on its data."""
    create_views(lake)
    landing.create_tables(lake, feed)
    decode_stream.create_tables(lake, feed)
    accounting.create_view(lake, feed)


def feed_status(lake: Lake, feed: str) -> FeedStatus:
    """Where ``feed`` stands now."""
    now = published(lake, feed)
    complete = completeness(lake, feed, now)
    landed, waiting = _messages(lake, feed, complete.batch)
    return FeedStatus(
        feed=feed,
        landed=landed,
        waiting=waiting,
        quarantined=quarantine.open_messages(lake, feed).count(),
        tso=now.tso,
        time=time_of(now.tso) if now.tso else None,
        newest_commit=_newest_commit(lake, feed, now.tso),
        waits=complete.waits,
        tables=now.tables,
        mode=now.mode,
    )


def _messages(lake: Lake, feed: str, batch: int) -> tuple[int, int]:
    """Messages landed, and those of them in bronze batches that silver has not decoded whole."""
    offsets = lake.spark.table(lake.table(Layer.BRONZE, landing.offsets_table(feed)))
    line = offsets.agg(F.sum("messages"), F.sum(F.when(F.col("batch") > batch, F.col("messages")))).first()
    assert line is not None
    return int(line[0] or 0), int(line[1] or 0)


def _newest_commit(lake: Lake, feed: str, tso: int) -> datetime | None:
    events = lake.spark.table(lake.table(Layer.SILVER, decode_stream.events_table(feed)))
    commit_ts = F.expr(decode_stream.COMMIT_ORDER)
    line = events.where(commit_ts > tso).agg(F.max(commit_ts)).first()
    return None if line is None or line[0] is None else time_of(line[0])


def status_frame(lake: Lake, feed: str) -> DataFrame:
    """The feed's tables at the published watermark, for a notebook: database, table, applied_tso, reason."""
    tables = lake.spark.table(lake.table(Layer.OPS, "tables")).where(F.col("feed") == feed)
    return tables.select("database", "table", "applied_tso", "version", "reason").orderBy("database", "table")
