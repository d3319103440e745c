"""The feeds' status: views over what was published, and the status of one feed as ``ticdc-lake status`` prints it.

    ops.feeds    view: each feed's newest published watermark; *unapplied*, the time between it and the newest change
                 that arrived; *age of data*, the time between it and now; NULL for one that has landed and published
                 nothing yet
    ops.tables   view: each table's state at that watermark

The first run of bronze of a feed creates ops.feeds, before it reads Kafka, the first of gold all views; maintenance
creates them again, without feeds whose tables were dropped. Reading them creates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.event import Kind
from ticdc_codec.tso import time_of
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer, Reader
from ticdc_lakehouse.gold.feed_completeness import feed_completeness
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.gold.state_tables import WINDOWS, create_tables, definitions_sql, newest_states_sql
from ticdc_lakehouse.gold.watermark import Completeness
from ticdc_lakehouse.ops import accounting, feed_views
from ticdc_lakehouse.ops.alarm import Thresholds, problems_of
from ticdc_lakehouse.planning.planning_input import GoldConfig, left_out
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.computed_default import pending_columns
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.silver import events_table, quarantine
from ticdc_lakehouse.sql.text import literal

_OVER_ALL_FEEDS = ("feeds", "quarantine", "changes", "accounting")
_CHANGES = f"kind IN ('{Kind.ROW}', '{Kind.DDL}')"
_FEED_COLUMNS = """
    feed COMMENT 'changefeed, as its file is named',
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
    landed_at COMMENT 'when the oldest message that bronze keeps was landed'
"""
_TABLE_COLUMNS = """
    feed, database, table, name, data, version,
    applied_tso COMMENT 'TSO up to which every change is applied',
    ddls, blocked_at, block_reason,
    pending_columns COMMENT 'columns whose value in rows from before their ADD COLUMN is not known yet'
"""
NOTHING_LEFT = Thresholds()
_NO_BRONZE = Completeness(tso=0, batch=-1, waiting_on="bronze: it has not run for this feed")
_NO_SILVER = Completeness(tso=0, batch=-1, waiting_on="silver: it has not run for this feed")


class Health(IntEnum):
    """A feed's health for monitors; the number is the exit code of `status --check`."""

    FINE = 0
    ATTENTION = 1
    """Something is left behind: a message in quarantine, a blocked table, a feed that never ran."""
    BROKEN = 2
    """The whole feed is stopped until an operator acts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedStatus:
    """A feed's status."""

    feed: str
    landed: int
    """Kafka messages in bronze."""
    waiting: int
    """Messages that silver has not decoded yet."""
    reasons: Mapping[str, int]
    """Messages in quarantine that nothing was done about, by reason."""
    dismissed: int
    """Messages that an operator dismissed."""
    tso: int
    """Published watermark, 0 before the first."""
    time: datetime | None
    newest_change: datetime | None
    """Commit time of the newest row change or DDL in silver above the watermark; None without one."""
    asked_at: datetime
    waiting_on: str | None
    """What the watermark is waiting on; None if nothing, or if there is nothing to apply."""
    tables: dict[TableName, TableState]
    mode: Mode = Mode.WATERMARKS
    pending: Mapping[TableName, tuple[str, ...]] = field(default_factory=dict)
    """Columns whose value in rows from before their ADD COLUMN is not known yet, of the tables that have any."""
    is_landed: bool = True
    """True if bronze has run for the feed."""
    blocked_by: quarantine.BlockingMessage | None = None
    """The quarantined message that the watermark cannot pass."""
    left_out: Collection[TableName] = ()
    """Tables that the feed's file leaves out: the next run takes them out of gold, or refuses the file if it leaves out
    all."""

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
        """True if all that arrived is published."""
        return self.tso > 0 and self.newest_change is None and not self.waiting and not self.quarantined

    @property
    def decoded(self) -> int:
        """Messages that silver has decoded."""
        return self.landed - self.waiting - self.quarantined - self.dismissed

    @property
    def blocked(self) -> dict[TableName, TableState]:
        """The blocked tables, without those that TiDB dropped."""
        return {name: state for name, state in self.tables.items() if state.blocked}

    @property
    def quarantined(self) -> int:
        """Messages in quarantine that nothing was done about."""
        return sum(self.reasons.values())

    def health(self, tolerated: Thresholds = NOTHING_LEFT) -> Health:
        """Returns the feed's health, given what its file tolerates."""
        if self.blocked_by is not None:
            return Health.BROKEN
        return Health.ATTENTION if self.concerns(tolerated) else Health.FINE

    def concerns(self, tolerated: Thresholds = NOTHING_LEFT) -> list[str]:
        """Returns what needs an operator's attention, a phrase each; empty if the feed is fine."""
        if not self.is_landed:
            return ["bronze has not run for this feed"]
        waiting_on = (
            [] if self.blocked_by is None else [f"waiting on the quarantined message {self.blocked_by.position}"]
        )
        current = Published(tso=self.tso, tables=self.tables)
        return [*waiting_on, *problems_of(current, self.landed, self.reasons, tolerated, self.asked_at)]


Check = Callable[[FeedStatus], tuple[Health, str]]
"""Returns a feed's health, and a line that says it and why, as `ticdc-lake status --check` prints it."""


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
    decoded = [feed for feed in landed if events_table.exists(lake, feed)]
    lake.view(
        Layer.OPS,
        "tables",
        _TABLE_COLUMNS,
        "SELECT feed, database, table, name, data, version, applied_tso, ddls, blocked_at, block_reason, "
        f"pending_columns FROM ({newest_states_sql(lake)}) LEFT JOIN ({_pending_sql(lake)}) "
        "USING (feed, data, defined_in, defined_by)",
        comment="Each table at its feed's newest published watermark",
    )
    if decoded:
        feed_views.create_views(lake, decoded)


def show_landed_feeds(lake: Lake) -> None:
    """Makes ops.feeds show every feed that bronze has begun with, also where gold has never run."""
    create_tables(lake)
    _show_feeds(lake, landing.landed_feeds(lake))


def _show_feeds(lake: Lake, landed: Sequence[str]) -> None:
    """Creates ops.feeds over the feeds that have landed."""
    lake.view(
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
    above = f"(commit_ts > {tso} OR commit_ts IS NULL)"
    return f"(SELECT {newest} FROM {events_table.full_name(lake, feed)} WHERE {_CHANGES} AND {above})"


def create_feed(lake: Lake, feed: str) -> None:
    """Creates a feed's tables that do not depend on its data, for commands that are used before the first run."""
    landing.create_tables(lake, feed)
    events_table.create_tables(lake, feed)
    quarantine.create_tables(lake)


def feed_status(lake: Reader, feed: str, config: GoldConfig | None = None) -> FeedStatus:
    """Returns the status of ``feed`` now. Creates nothing. Without ``config``, what its file says of tables and topics
    that gold leaves out is not known: the watermark may come out too high or too low."""
    current = published(lake, feed)
    is_landed = lake.exists(Layer.BRONZE, landing.offsets_table(feed))
    in_silver = events_table.exists(lake, feed)
    missing = _NO_SILVER if is_landed else _NO_BRONZE
    settings = config or GoldConfig(feed=feed, time_zone="UTC")
    mode = current.mode if current.number else settings.mode
    complete = feed_completeness(lake, settings, current, mode) if is_landed and in_silver else missing
    status = FeedStatus(
        feed=feed,
        landed=landing.landed_messages(lake, feed),
        waiting=landing.landed_messages(lake, feed, f"batch > {complete.batch}"),
        reasons=quarantine.reasons(lake, feed) if in_silver else {},
        dismissed=quarantine.dismissed_count(lake, feed),
        tso=current.tso,
        time=time_of(current.tso) if current.tso else None,
        newest_change=_newest_change(lake, feed, current.tso) if in_silver else None,
        asked_at=datetime.now(UTC),
        waiting_on=complete.waiting_on,
        tables=current.tables,
        mode=mode,
        pending=_pending(current),
        is_landed=is_landed,
        blocked_by=complete.blocked_by,
        left_out=left_out(settings, current),
    )
    return replace(status, waiting_on=None) if status.caught_up else status


def _pending(current: Published) -> dict[TableName, tuple[str, ...]]:
    definitions = {
        name: current.definitions[t.stable_id]
        for name, t in current.tables.items()
        if t.stable_id in current.definitions
    }
    names = {name: tuple(c.name for c in pending_columns(d.table)) for name, d in definitions.items()}
    return {name: columns for name, columns in names.items() if columns}


def _newest_change(lake: Reader, feed: str, tso: int) -> datetime | None:
    newest = events_table.newest_commit(lake, feed, f"{_CHANGES} AND (commit_ts > {tso} OR commit_ts IS NULL)")
    return time_of(newest) if newest > tso else None


def status_frame(lake: Lake, feed: str) -> DataFrame:
    """Returns the feed's tables at the published watermark, for a notebook: database, table, applied_tso, version,
    blocked_at, block_reason. Creates nothing."""
    columns = (
        "database STRING, table STRING, applied_tso BIGINT, version BIGINT, blocked_at BIGINT, block_reason STRING"
    )
    if not lake.exists(Layer.OPS, WINDOWS):
        return lake.spark.createDataFrame([], columns)
    tables = lake.spark.sql(newest_states_sql(lake)).where(F.col("feed") == feed)
    names = [column.split()[0] for column in columns.split(", ")]
    return tables.select(*names).orderBy("database", "table")
