"""What the page says of a feed, read from the lake's tables: figures by window, rows by table, DDLs, the catalogue."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ticdc_codec.event import Kind
from ticdc_codec.tso import first_of
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Layer, Values
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.gold.state_tables import WINDOWS, values_of
from ticdc_lakehouse.ops.status import FeedStatus
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.sql.text import literal
from ticdc_lakehouse.sql.typed_columns import typed_columns
from ticdc_local.delta_reader import DeltaReader

NEWEST_WINDOWS = 100
"""Windows that are plotted."""
NEWEST_DDLS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFacts:
    """One published window."""

    number: int
    tso: int
    time: datetime
    """The time of the watermark."""
    published_at: datetime
    row_changes: int
    landed_at: datetime | None
    """When the last of its bronze batches was landed."""
    decoded_at: datetime | None
    """When silver had committed last before it was published."""

    @property
    def age_seconds(self) -> float:
        """Age of the newest data when it was published."""
        return (self.published_at - self.time).total_seconds()

    @property
    def silver_seconds(self) -> float | None:
        """From landed to decoded; None if a batch was landed meanwhile, or the times are unknown."""
        return _seconds(self.landed_at, self.decoded_at)

    @property
    def gold_seconds(self) -> float | None:
        """From decoded to published."""
        return _seconds(self.decoded_at, self.published_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlFacts:
    """One DDL of the feed."""

    tso: int
    """Its commit_ts, or the first TSO of its millisecond where the wire has only that."""
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """One column of a table in gold."""

    name: str
    type: str
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """One table, and where its rows come from and go to."""

    name: TableName
    view: str
    topics: tuple[str, ...]
    source: str
    """Where its definition comes from: ``file``, ``ddl``, ``export`` or ``wire``."""
    columns: tuple[ColumnFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedFacts:
    """All that the page shows of a feed."""

    status: FeedStatus
    windows: tuple[WindowFacts, ...]
    """The newest ones, by number."""
    rows: dict[tuple[int, TableName], int]
    """Row changes by window and table, duplicates included."""
    ddls: tuple[DdlFacts, ...]
    """The newest ones, the newest first."""
    tables: tuple[TableFacts, ...]


def feed_facts(lake: DeltaReader, status: FeedStatus) -> FeedFacts:
    """Reads the facts of the feed with this status; one that never ran has no others."""
    feed = status.feed
    in_silver = events_table.exists(lake, feed)
    windows = _windows(lake, feed) if status.tso else ()
    return FeedFacts(
        status=status,
        windows=windows,
        rows=_rows(lake, feed, windows) if windows and in_silver else {},
        ddls=_ddls(lake, feed) if in_silver else (),
        tables=_tables(lake, feed) if windows and in_silver else (),
    )


def _windows(lake: DeltaReader, feed: str) -> tuple[WindowFacts, ...]:
    columns = "number, tso, time, published_at, row_changes, batch"
    newest = values_of(lake, WINDOWS, feed, f"true ORDER BY number DESC LIMIT {NEWEST_WINDOWS}", columns)
    batches = ", ".join(str(row["batch"]) for row in newest)
    landed = {
        row["batch"]: row["at"]
        for row in lake.rows(f"""
            SELECT batch, max(ingest_time) AS at FROM {lake.table(Layer.BRONZE, landing.offsets_table(feed))}
            WHERE batch IN ({batches}) GROUP BY batch""")
    }
    decoded = sorted(lake.commit_times(Layer.SILVER, events_table.table_name(feed)))
    return tuple(_window(row, landed.get(row["batch"]), decoded) for row in reversed(newest))


def _window(row: Values, landed_at: datetime | None, decoded: Sequence[datetime]) -> WindowFacts:
    before = bisect_right(decoded, row["published_at"])
    return WindowFacts(
        number=row["number"],
        tso=row["tso"],
        time=row["time"],
        published_at=row["published_at"],
        row_changes=row["row_changes"],
        landed_at=landed_at,
        decoded_at=decoded[before - 1] if before else None,
    )


def _seconds(since: datetime | None, until: datetime | None) -> float | None:
    if since is None or until is None or until < since:
        return None
    return (until - since).total_seconds()


def _rows(lake: DeltaReader, feed: str, windows: Sequence[WindowFacts]) -> Counter[tuple[int, TableName]]:
    """Counts the rows of each window: of its commits, or in mode eventual of its bronze batches, whose commits may be
    of any time. A row that was replayed from quarantine counts where its message arrived."""
    counts = lake.rows(f"""
        SELECT w.number, e.database, e.table, count(*) AS changes
        FROM {events_table.full_name(lake, feed)} AS e JOIN (
            SELECT number, mode, from_tso, tso, batch, lag(batch, 1, -1) OVER (ORDER BY number) AS from_batch
            FROM {lake.table(Layer.OPS, WINDOWS)} WHERE feed = {literal(feed)}
        ) AS w ON CASE WHEN w.mode = '{Mode.EVENTUAL}' THEN e.batch > w.from_batch AND e.batch <= w.batch
                       ELSE e.commit_ts > w.from_tso AND e.commit_ts <= w.tso END
        WHERE e.kind = '{Kind.ROW}' AND w.number >= {windows[0].number}
        GROUP BY w.number, e.database, e.table""")
    total = Counter[tuple[int, TableName]]()
    for row in counts:
        total[row["number"], TableName(row["database"], row["table"])] += row["changes"]  # of each spelling of the name
    return total


def _ddls(lake: DeltaReader, feed: str) -> tuple[DdlFacts, ...]:
    ddls = lake.rows(f"""
        SELECT DISTINCT commit_time, commit_ts, query
        FROM {events_table.full_name(lake, feed)}
        WHERE kind = '{Kind.DDL}' AND (commit_ts IS NOT NULL OR commit_time IS NOT NULL)
        ORDER BY commit_time DESC, commit_ts DESC, query LIMIT {NEWEST_DDLS}""")
    return tuple(DdlFacts(tso=_commit_order(row["commit_ts"], row["commit_time"]), query=row["query"]) for row in ddls)


def _commit_order(commit_ts: int | None, time: datetime) -> int:
    """Returns the same as `events_table.COMMIT_ORDER`, for which the reader has no functions."""
    return first_of(round(time.timestamp() * 1000)) if commit_ts is None else commit_ts


def _tables(lake: DeltaReader, feed: str) -> tuple[TableFacts, ...]:
    topics: dict[TableName, set[str]] = {}
    for row in lake.rows(f"""
        SELECT DISTINCT topic, database, table FROM {events_table.full_name(lake, feed)} WHERE kind = '{Kind.ROW}'"""):
        topics.setdefault(TableName(row["database"], row["table"]), set()).add(row["topic"])
    current = published(lake, feed)
    definitions = {name: current.definitions.get(state.stable_id) for name, state in current.tables.items()}
    return tuple(
        TableFacts(
            name=name,
            view=current.tables[name].lake_name,
            topics=tuple(sorted(topics.get(name, ()))),
            source=definition.origin,
            columns=tuple(
                ColumnFacts(name=column.name, type=column.spark_type, comment=column.comment)
                for column in typed_columns(definition.table)
            ),
        )
        for name, definition in sorted(definitions.items())
        if definition is not None
    )
