"""Maintenance of a feed's gold: deletes what can no longer be read, and compacts the tables that exist.

OPTIMIZE, ours or the platform's, rewrites files, and VACUUM would eventually delete those that a view is pinned to. So
maintenance publishes the newest version that has the same rows, and pins the views to it. On Databricks gold may run
beside it: what that has merged and not yet published is left to it, and what it publishes is where maintenance starts
from.

A state stays readable for the feed's ``gold.retention_days`` after another one took its place, also that of tables that
were dropped, truncated or altered since. `time_travel.as_of` refuses what is older.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from ticdc_codec.errors import PublishedMeanwhileError, listed
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer, Reader
from ticdc_lakehouse.commit_conflict import conflict_of
from ticdc_lakehouse.counted import counted
from ticdc_lakehouse.error_text import first_line
from ticdc_lakehouse.gold import views
from ticdc_lakehouse.gold.live_commits import Commits, commits_since, restore
from ticdc_lakehouse.gold.live_table import (
    id_of,
    is_abandoned,
    kept_days,
    live_name,
    live_names,
    properties_sql,
    retention_properties,
)
from ticdc_lakehouse.gold.naming import existing_names
from ticdc_lakehouse.gold.publication import publish_versions
from ticdc_lakehouse.gold.state import forget_states, published, published_ids, published_in
from ticdc_lakehouse.gold.state_tables import (
    TABLE_STATES,
    WINDOWS,
    create_tables,
    published_states,
    rows_of,
    values_of,
)
from ticdc_lakehouse.log import warn
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.recovery import still_recoverable
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.sql.text import literal

READABLE_SINCE = "readable_since"
_TRIES = 5
"""Attempts to publish beside runs of gold: each takes seconds to minutes, a run of gold comes every few minutes."""
_COLUMNS = """
    feed STRING NOT NULL COMMENT 'changefeed, as its file is named',
    since TIMESTAMP NOT NULL COMMENT 'states that were replaced before this time cannot be read',
    kept_at TIMESTAMP NOT NULL COMMENT 'when maintenance ran'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """What one run of maintenance did."""

    feed: str
    since: datetime
    """States that another one replaced before this are gone."""
    compacted: int
    """Delta tables that were compacted and vacuumed: those of existing tables."""
    dropped: tuple[str, ...]
    """Delta tables that no readable state has any more."""
    put_off: tuple[str, ...] = ()
    """Why the retention of bronze or silver is left to the next run."""

    def __str__(self) -> str:
        dropped = f", dropped {listed(self.dropped)}" if self.dropped else ""
        compacted = f"{counted(self.compacted, 'table')} compacted"
        put_off = f"; retention put off: {'; '.join(self.put_off)}" if self.put_off else ""
        return f"{self.feed}: readable since {self.since:%Y-%m-%d %H:%M} UTC; {compacted}{dropped}{put_off}"


def maintain(lake: Lake, config: GoldConfig, now: datetime | None = None) -> Maintained:
    """Keeps what was the state within the retention time (before ``now``), compacts it, and deletes the rest. What is
    gone stays gone where the retention has been raised since."""
    create_tables(lake)  # of a feed that never ran they may be missing
    feed, days = config.feed, config.retention_days
    since = (now or datetime.now(UTC)) - timedelta(days=days)
    since = max(since, readable_since(lake, feed) or since)
    first = _first_shown(lake, feed, since)
    known = published_ids(lake, feed)  # first: what gold publishes meanwhile is none of it
    needed = _needed(lake, feed, first, days)
    unneeded = known - needed
    # Else, after a run that died before it renamed, one table would be put back to a version of another.
    before = views.restore_names(lake, config)
    names = live_names(before.tables.values())
    given = {state.stable_id: config.table_properties(*name) for name, state in before.tables.items()}
    unreadable = sorted(existing_names(lake, Layer.LIVE, {live_name(names, each) for each in unneeded}))
    _record(lake, feed, since)  # before anything goes: what is half gone must not be read
    commits = Commits(lake=lake, feed=feed, run=str(uuid4()))
    with closing(commits):
        for state in before.tables.values():
            _restore(commits, state)
    for name in unreadable:
        lake.drop(Layer.LIVE, name)
    lake.remove_abandoned(Layer.LIVE)
    compacted = 0
    for each in sorted(needed):
        if not lake.exists(Layer.LIVE, name := live_name(names, each)):
            continue
        if each in names:
            _compact(lake, name, given[each], days)
            compacted += 1
        else:
            _keep(lake, name, days)
    _pin(lake, config, commits.run)
    forget_states(lake, feed, first)
    _compact_shared(lake, feed)
    return Maintained(feed=feed, since=since, compacted=compacted, dropped=tuple(unreadable))


def _restore(commits: Commits, state: TableState) -> None:
    """Puts a live table back to its published version. What a dead run wrote since goes first: VACUUM may delete the
    files that it replaced, which a blocked table shows for long."""
    if not _has_its_name(commits.lake, state):
        return
    _, unpublished = commits_since(commits.lake, state.lake_name, state.version)
    if unpublished and is_abandoned(commits.lake, unpublished[-1].timestamp):
        restore(commits.at(state.applied_tso), state.lake_name, state.version)


def _has_its_name(lake: Lake, state: TableState) -> bool:
    """True if a table is in place under its published name: gold may be renaming it, or have renamed it since."""
    return state.has_live_table and id_of(lake, state.lake_name) == state.stable_id


def _compact(lake: Lake, name: str, properties: Mapping[str, str], days: int) -> None:
    """Compacts a live table, and deletes the files that only unreadable versions have."""
    table = lake.table(Layer.LIVE, name)
    # The feed file may say something else than when the table was made. And this makes a new version: Delta refuses to
    # read one that is older than the retention, even if it is the newest.
    given = properties_sql({**properties, **retention_properties(days)})
    lake.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({given})")
    lake.spark.sql(f"OPTIMIZE {table}")
    lake.spark.sql(f"VACUUM {table} RETAIN {kept_days(days) * 24} HOURS")


def _keep(lake: Lake, name: str, days: int) -> None:
    """Lets Delta keep the versions of a former live table, to which nothing writes any more, as long as the feed file
    says now. Files that only unreadable versions have go with the table: it is dropped within the retention time."""
    given = retention_properties(days)
    if any(lake.property(Layer.LIVE, name, key) != value for key, value in given.items()):
        lake.spark.sql(f"ALTER TABLE {lake.table(Layer.LIVE, name)} SET TBLPROPERTIES ({properties_sql(given)})")


def _compact_shared(lake: Lake, feed: str) -> None:
    """Compacts the feed's rows in tables to which each run adds a small file, and deletes the files that were compacted
    as long ago as Delta keeps them for readers (``delta.deletedFileRetentionDuration``, else a week). Bronze's messages
    stay as they are: OPTIMIZE reads thousands of rows at once, and one may have 16 MB."""
    for table in (lake.table(Layer.OPS, name) for name in (WINDOWS, TABLE_STATES)):
        _optimize(lake, feed, table, f"WHERE feed = {literal(feed)}")
        lake.spark.sql(f"VACUUM {table}")
    of_feed = ((Layer.BRONZE, landing.offsets_table(feed)), (Layer.SILVER, events_table.table_name(feed)))
    for layer, name in of_feed:
        if lake.exists(layer, name):
            _optimize(lake, feed, lake.table(layer, name))
            lake.spark.sql(f"VACUUM {lake.table(layer, name)}")


def _optimize(lake: Lake, feed: str, table: str, rows: str = "") -> None:
    """Compacts a table, or its ``rows`` (a WHERE). Warns if another writer was faster, as bronze may be, which notes
    empty topics: the next maintenance compacts it."""
    try:
        lake.spark.sql(f"OPTIMIZE {table} {rows}")
    except PySparkException as error:
        if conflict_of(error) is None:
            raise
        warn("ops", "compaction put off", feed=feed, table=table, reason=first_line(error))


def _pin(lake: Lake, config: GoldConfig, run: str) -> None:
    """Publishes the newest versions that have the rows of the published ones, again if another run publishes meanwhile.

    Raises PublishedMeanwhileError if that happens each time.
    """
    for tries_left in reversed(range(_TRIES)):
        before = published(lake, config.feed)
        newest = {
            state.stable_id: version
            for state in before.tables.values()
            if (version := _newest_with_its_rows(lake, state, run)) != state.version
        }
        if not newest:
            return
        try:
            publish_versions(lake, config, before, newest)
        except PublishedMeanwhileError:
            if not tries_left:
                raise
        else:
            return


def _newest_with_its_rows(lake: Lake, state: TableState, run: str) -> int:
    """Returns the newest version of a live table if it has the rows of the published one, else the published one: a run
    of gold is at work, or a dead one was. ``run`` is that of maintenance, which may have put the table back."""
    if not _has_its_name(lake, state):
        return state.version
    newest, commits = commits_since(lake, state.lake_name, state.version)
    same = not commits or (commits[-1].run, commits[-1].restored_to) == (run, state.version)
    return newest if same else state.version


def _first_shown(lake: Lake, feed: str, since: datetime) -> int:
    """Returns the number of the oldest window that was shown after ``since``: the newest one before it; 1 if there is
    none."""
    before = rows_of(lake, WINDOWS, feed).where(F.col("published_at") < F.lit(since))
    newest = before.agg(F.max("number")).first()
    return 1 if newest is None or newest[0] is None else int(newest[0])


def _needed(lake: Lake, feed: str, first: int, days: int) -> set[str]:
    """Returns the Delta tables of the states published from window ``first`` on, and of dropped tables that may come
    back."""
    states = published_states(lake, feed)
    later = states.where((F.col("number") > first) & F.col("dropped_at").isNull())
    found = {row["data"] for row in later.select("data").distinct().collect()}
    now = published(lake, feed)
    shown = published_in(lake, feed, first).tables if now.number else {}
    recoverable = {gone.stable_id for gone in still_recoverable(now, now.tso, days)}
    current = {state.stable_id for state in (*shown.values(), *now.tables.values())}
    return (found | recoverable | current) - {"", None}


def _record(lake: Lake, feed: str, since: datetime) -> None:
    table = lake.create(Layer.OPS, READABLE_SINCE, _COLUMNS, comment="How far back each feed's gold can be read")
    row = lake.spark.createDataFrame([(feed, since, datetime.now(UTC))], lake.spark.table(table).schema)
    row.write.format("delta").mode("append").saveAsTable(table)


def readable_since(lake: Lake, feed: str) -> datetime | None:
    """Returns the time before which replaced states are gone; None if maintenance never ran."""
    if not lake.exists(Layer.OPS, READABLE_SINCE):
        return None
    row = (
        lake.spark.table(lake.table(Layer.OPS, READABLE_SINCE)).where(F.col("feed") == feed).agg(F.max("since")).first()
    )
    return None if row is None or row[0] is None else row[0].astimezone(UTC)


def last_maintained(lake: Reader, feed: str) -> datetime | None:
    """Returns when maintenance ran last; if it never did, when the feed first published; None before that."""
    for name, of_all in ((READABLE_SINCE, "max(kept_at)"), (WINDOWS, "min(published_at)")):
        if lake.exists(Layer.OPS, name):
            [row] = values_of(lake, name, feed, "true", f"{of_all} AS time")
            if row["time"] is not None:
                time: datetime = row["time"]
                return time.astimezone(UTC)
    return None
