"""The status of one feed, as ``ticdc-lake status`` prints it and as a notebook shows it. Creates nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.tso import time_of
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer, Reader
from ticdc_lakehouse.gold.feed_completeness import feed_completeness
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.gold.state_tables import WINDOWS, newest_states_sql
from ticdc_lakehouse.gold.watermark import Completeness
from ticdc_lakehouse.ops.alarm import Thresholds, problems_of, stopped_by
from ticdc_lakehouse.planning.planning_input import GoldConfig, left_out
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.computed_default import pending_columns
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.silver import events_table, quarantine

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
    """Messages of bronze batches that silver has not decoded whole."""
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
    """True if bronze has read the feed's topics, which may have been empty."""
    blocked_by: quarantine.BlockingMessage | None = None
    """The quarantined message that the watermark cannot pass."""
    unfinished: int = 0
    """Messages in quarantine, or dismissed, of a bronze batch that silver has not decoded whole."""
    is_behind_silver: bool = False
    """True if silver has a whole batch, or messages that were replayed from quarantine, that gold has not seen."""
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
        """True if all that arrived is published, except what a blocked table needs an override for: the next run has
        nothing to do."""
        tries_again = any(not state.needs_override for state in self.blocked.values())
        left = self.waiting or self.quarantined or self.is_behind_silver or tries_again or self.left_out
        return self.tso > 0 and self.newest_change is None and not left

    @property
    def decoded(self) -> int:
        """Messages that silver has decoded, of the bronze batches that it has decoded whole."""
        return self.landed - self.waiting - (self.quarantined + self.dismissed - self.unfinished)

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
        waiting_on = [] if self.blocked_by is None else [stopped_by(self.blocked_by)]
        current = Published(tso=self.tso, tables=self.tables)
        return [*waiting_on, *problems_of(current, self.landed, self.reasons, tolerated, self.asked_at)]


Check = Callable[[FeedStatus], tuple[Health, str]]
"""Returns a feed's health, and a line that says it and why, as `ticdc-lake status --check` prints it."""


def feed_status(lake: Reader, feed: str, config: GoldConfig | None = None) -> FeedStatus:
    """Returns the status of ``feed`` now. Creates nothing. Without ``config``, what its file says of tables and topics
    that gold leaves out is not known: the watermark may come out too high or too low."""
    current = published(lake, feed)
    is_landed = has_batch_offsets(lake, feed)
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
        unfinished=quarantine.undecoded_count(lake, feed, complete.batch) if in_silver else 0,
        is_behind_silver=complete.batch > current.batch or complete.replays_through is not None,
        left_out=left_out(settings, current),
    )
    return replace(status, waiting_on=None) if status.caught_up else status


def has_batch_offsets(lake: Reader, feed: str) -> bool:
    """True if bronze's table of offsets has a batch of the feed, as of an empty topic too. That the table exists says
    nothing: it is made before Kafka is asked, and by a load."""
    offsets = landing.offsets_table(feed)
    if not lake.exists(Layer.BRONZE, offsets):
        return False
    return bool(lake.rows(f"SELECT batch FROM {lake.table(Layer.BRONZE, offsets)} LIMIT 1"))


def _pending(current: Published) -> dict[TableName, tuple[str, ...]]:
    definitions = {
        name: current.definitions[t.stable_id]
        for name, t in current.tables.items()
        if t.stable_id in current.definitions
    }
    names = {name: tuple(c.name for c in pending_columns(d.table)) for name, d in definitions.items()}
    return {name: columns for name, columns in names.items() if columns}


def _newest_change(lake: Reader, feed: str, tso: int) -> datetime | None:
    newest = events_table.newest_commit(lake, feed, events_table.changes_above_sql(tso))
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
