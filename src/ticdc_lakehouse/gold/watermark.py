"""Up to which TSO a feed is complete: W = the minimum, over all its partitions, of the highest watermark sent there.

A watermark counts only where everything before it in its partition is decoded: in bronze batches that silver has
decoded completely, and before the first quarantined message that may have been anything (a watermark, a DDL, a row of
any table). A quarantined message that is known to hold rows of one table blocks only that table.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime

from ticdc_codec.errors import SCHEMA_MISSING
from ticdc_codec.event import Kind
from ticdc_codec.tso import with_time
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.bronze.micro_batch import TopicPartition
from ticdc_lakehouse.catalog import Layer, Reader
from ticdc_lakehouse.gold.retired_topics import (
    UNSEEN,
    Matches,
    Watermarks,
    lowest_by_topic,
    retired_topics,
)
from ticdc_lakehouse.gold.window_reader import first_unapplied
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, WayOut
from ticdc_lakehouse.planning.window import BlockingPoint, keep_earliest
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.silver import events_table, quarantine
from ticdc_lakehouse.sql.text import literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """How far a feed's changes are known to be complete."""

    tso: int
    """W; not above the published watermark if nothing new is complete."""
    batch: int
    """Last bronze batch that silver has decoded whole."""
    waiting_on: str | None
    """What keeps W where it is, None if nothing but the source does, as where it is idle."""
    is_undecoded: bool = False
    """True if bronze has messages that silver has not decoded."""
    blocked_by: quarantine.BlockingMessage | None = None
    """The quarantined message that keeps W where it is, None if it is something else."""
    quarantine_points: dict[TableName, BlockingPoint] = field(default_factory=dict)
    """Tables that must stop below W."""
    late_rows: int = 0
    """Row changes that arrived when their commit_ts was published already: duplicates, if TiCDC keeps its promise."""
    late_ddls: int = 0
    """DDLs that arrived when a watermark above their commit_ts was published already."""
    has_ddls: bool = True
    """True if there may be any DDL that is not applied yet."""
    may_advance: bool = False
    """True if W may be higher once this window is published: other topics are ahead, and a DDL that is not applied yet
    may retire the one that W is waiting on."""
    replays_through: datetime | None = None
    """Time of the newest replay from quarantine since the published state; None if there was none. A later one, which
    may end while gold reads, is left to the next run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """What silver has of one bronze batch and partition."""

    batch: int
    partition: TopicPartition
    decoded: int
    resolved: int
    """Highest watermark above the published one; UNSEEN without one."""
    late_rows: int
    """As in `Completeness`."""
    late_ddls: int
    """As in `Completeness`."""
    ddls: int
    has_changes: bool
    """True if there are row changes or DDLs above the published watermark, also some that gold has read already."""
    newest_replay: datetime | None
    errors: int
    """Messages that were quarantined, of any batch."""


def decoded_batches(lake: Reader, feed: str, before: Published) -> tuple[int, str | None]:
    """Returns the last bronze batch up to which silver has every message, and what is missing in the next one."""
    return _decoded_through(before.batch, _landed(lake, feed, before.batch), _progress(lake, feed, before, []))


def completeness(
    lake: Reader, feed: str, before: Published, matches: Matches, retired: Collection[str] = ()
) -> Completeness:
    """Returns how far the feed is complete, looking only at what arrived after the published state ``before``.
    ``matches`` says which tables the feed includes, ``retired`` which topics and partitions (``topic/3``) are not
    waited for."""
    with ThreadPoolExecutor() as pool:  # a question of a few rows waits more than it works
        asked = pool.submit(_landed, lake, feed, before.batch)
        progress, blocking = _progress_and_blocking(lake, feed, before)
        landed = asked.result()
    of_tables = [message for message in blocking if message.table is not None]
    batch, gap = _decoded_through(before.batch, landed, progress)
    watermarks = Watermarks(
        batch=batch,
        highest=_highest_watermarks(landed, progress, batch, retired),
        confirmed=_confirmed(landed, progress, batch),
    )
    highest = _without_retired(lake, feed, before, watermarks, blocking, matches)
    tso = max(before.tso, min(highest.values(), default=UNSEEN))
    has_ddls = any(entry.ddls for entry in progress)
    is_unchanged = gap is None and tso == before.tso
    blocked_by = _blocking_watermark(highest, blocking) if is_unchanged else None
    has_changes = any(entry.has_changes for entry in progress)
    return Completeness(
        tso=tso,
        batch=batch,
        waiting_on=_waiting_on(highest, before.tso, has_changes, blocked_by, retired) if is_unchanged else gap,
        is_undecoded=gap is not None,
        blocked_by=blocked_by,
        quarantine_points=_quarantine_points(lake, feed, before, of_tables),
        late_rows=sum(entry.late_rows for entry in progress if entry.batch <= batch),
        late_ddls=sum(entry.late_ddls for entry in progress if entry.batch <= batch),
        has_ddls=has_ddls,
        may_advance=has_ddls and any(tso < ahead for ahead in lowest_by_topic(highest).values()),
        replays_through=max((e.newest_replay for e in progress if e.newest_replay is not None), default=None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """A batch that bronze landed."""

    listings: dict[TopicPartition, int] = field(default_factory=dict)
    """By partition: its end offset was asked of Kafka when all batches before this one had been read."""
    messages: dict[TopicPartition, int] = field(default_factory=dict)
    """Number of messages by partition, including partitions with no messages."""


def _landed(lake: Reader, feed: str, first: int) -> dict[int, _Batch]:
    """Returns the bronze batches from ``first`` on."""
    offsets = lake.table(Layer.BRONZE, landing.offsets_table(feed))
    found: dict[int, _Batch] = {}
    for row in lake.rows(f"SELECT batch, listing, topic, partition, messages FROM {offsets} WHERE batch >= {first}"):
        batch, partition = found.setdefault(row["batch"], _Batch()), (row["topic"], row["partition"])
        batch.listings[partition], batch.messages[partition] = row["listing"], row["messages"]
    return found


def _progress_and_blocking(
    lake: Reader, feed: str, before: Published
) -> tuple[list[_Progress], list[quarantine.BlockingMessage]]:
    """Returns what is new, and the messages in quarantine that the watermark is waiting on.

    Meanwhile a replay may close a message, and silver may append. What the replay decoded, a DDL perhaps, is seen,
    since events are read after the open messages; a message that was quarantined in between is looked up, too.
    """
    progress = _progress(lake, feed, before, [])
    blocking: list[quarantine.BlockingMessage] = []
    asked = 0
    while (errors := sum(entry.errors for entry in progress)) != asked:
        asked, blocking = errors, quarantine.blocking_messages(lake, feed)
        progress = _progress(lake, feed, before, [message for message in blocking if message.table is None])
    return progress, blocking


def _progress(
    lake: Reader, feed: str, before: Published, blocking: list[quarantine.BlockingMessage]
) -> list[_Progress]:
    """Reads what is new in one scan: decoded messages, and watermarks, but none that follow a blocking message; the
    number of DDLs, and the newest replay. Of all batches, with file skipping, it counts errors."""
    rows = lake.rows(_progress_sql(events_table.full_name(lake, feed), before, blocking))
    return [
        _Progress(
            batch=row["batch"],
            partition=(row["topic"], row["partition"]),
            decoded=row["decoded"],
            resolved=row["resolved"] or UNSEEN,
            late_rows=row["late_rows"],
            late_ddls=row["late_ddls"],
            ddls=row["ddls"],
            has_changes=row["changes"] > 0,
            newest_replay=row["newest_replay"],
            errors=row["errors"],
        )
        for row in rows
    ]


def _progress_sql(events: str, before: Published, blocking: list[quarantine.BlockingMessage]) -> str:
    resolved = f"(kind = '{Kind.RESOLVED}' AND commit_ts > {before.tso})"
    arrived = f"(batch > {before.batch} AND replayed_at IS NULL)"
    old = f"({arrived} AND kind = '{Kind.ROW}' AND commit_ts <= {before.tso})"
    old_ddl = f"({arrived} AND kind = '{Kind.DDL}' AND commit_ts < {before.tso})"
    replay = f"({events_table.replayed_since_sql(before.replays_seen)})"
    ddl = f"(kind = '{Kind.DDL}' AND (commit_ts >= {first_unapplied(before)} OR {replay}))"
    change = f"(kind IN ('{Kind.ROW}', '{Kind.DDL}') AND commit_ts > {before.tso})"
    error = f"(reason IS NOT NULL AND kind = '{Kind.ERROR}')"
    counts = " AND NOT ".join([resolved, *map(_behind, blocking)])
    # A message is decoded twice if silver's checkpoint was lost.
    return f"""
        SELECT batch, topic, partition,
               count(DISTINCT CASE WHEN {arrived} AND index = 0 THEN offset END) AS decoded,
               max(CASE WHEN {counts} THEN commit_ts END) AS resolved,
               count(CASE WHEN {old} THEN 1 END) AS late_rows,
               count(CASE WHEN {old_ddl} THEN 1 END) AS late_ddls,
               count(CASE WHEN {ddl} THEN 1 END) AS ddls,
               count(CASE WHEN {change} THEN 1 END) AS changes,
               max(CASE WHEN {replay} THEN replayed_at END) AS newest_replay,
               count(CASE WHEN {error} THEN 1 END) AS errors
        FROM {events}
        WHERE {arrived} OR {resolved} OR {ddl} OR {change} OR {replay} OR {error}
        GROUP BY batch, topic, partition"""


def _behind(message: quarantine.BlockingMessage) -> str:
    """Returns SQL: true if an event is a blocking message of its partition or follows it."""
    return f"(topic = {literal(message.topic)} AND partition = {message.partition} AND offset >= {message.offset})"


def _decoded_through(after: int, landed: dict[int, _Batch], progress: list[_Progress]) -> tuple[int, str | None]:
    """Returns the last batch up to which silver has every message, and what is missing in the next one."""
    last = after
    for batch in sorted(batch for batch in landed if batch > after):
        expected = sum(landed[batch].messages.values())
        decoded = sum(entry.decoded for entry in progress if entry.batch == batch)
        if decoded != expected:
            return last, f"silver has {decoded} of the {expected} messages of bronze batch {batch}: run silver"
        last = batch
    return last, None


def _highest_watermarks(
    landed: dict[int, _Batch], progress: list[_Progress], batch: int, retired: Collection[str]
) -> dict[TopicPartition, int]:
    """Returns the highest watermark of each partition that the newest decoded batch knows, except the retired ones."""
    known = landed[batch].messages if batch in landed else ()
    highest = {partition: UNSEEN for partition in known if is_waited_for(partition, retired)}
    for entry in progress:
        if entry.partition in highest and entry.batch <= batch:
            highest[entry.partition] = max(highest[entry.partition], entry.resolved)
    return highest


def is_waited_for(partition: TopicPartition, retired: Collection[str]) -> bool:
    """True unless ``kafka.retired`` names the partition (``topic/3``) or its topic."""
    topic, number = partition
    return topic not in retired and f"{topic}/{number}" not in retired


def _confirmed(landed: dict[int, _Batch], progress: list[_Progress], batch: int) -> dict[TopicPartition, int]:
    """Returns for each partition the highest watermark that was read before Kafka was asked for its end offset of
    ``batch``.

    A watermark means that the rows of its partition up to it are in Kafka (wire.md 2.1). More is assumed: that it is
    the changefeed's one checkpoint, so that this holds for all topics. Then none of them lies above those end offsets.
    """
    listings = landed[batch].listings if batch in landed else {}
    read = {
        listing: max((entry.resolved for entry in progress if entry.batch < listing), default=UNSEEN)
        for listing in {*listings.values()}
    }
    return {partition: read[listing] for partition, listing in listings.items()}


def _without_retired(
    lake: Reader,
    feed: str,
    before: Published,
    watermarks: Watermarks,
    blocking: list[quarantine.BlockingMessage],
    matches: Matches,
) -> dict[TopicPartition, int]:
    """Returns the partitions without those of retired topics, looked up only if some topics have a new watermark and
    others have none. A topic that never had a row nor a DDL of a table of the feed, nor a message that may have been
    one, counts with the watermark that is confirmed by the others: it may never get its own. A retired topic with a
    message that may have been anything is waited for: it may have been a row from before the RENAME."""
    highest, confirmed = watermarks.highest, watermarks.confirmed
    behind = {topic for (topic, _), tso in highest.items() if tso <= before.tso}
    ahead = {topic for topic, _ in highest} - behind
    if not (behind and ahead):
        return highest
    partitions = [partition for partition in highest if partition[0] in behind]
    topics = retired_topics(lake, feed, before, partitions, watermarks, matches)
    empty = topics.empty - {message.topic for message in blocking}
    unclear = {message.topic for message in blocking if message.table is None}
    retired = {topic: end for topic, end in topics.retired.items() if topic not in unclear}
    raised = {each: max(tso, confirmed[each]) if each[0] in empty else tso for each, tso in highest.items()}
    left = {partition: tso for partition, tso in raised.items() if partition[0] not in retired}
    # The rows before a DROP that the others have not passed are shown: they are waited for.
    lowest = min(left.values())
    passed = {topic for topic, end in retired.items() if end <= lowest}
    return {partition: tso for partition, tso in raised.items() if partition[0] not in passed}


def _blocking_watermark(
    highest: dict[TopicPartition, int], blocking: list[quarantine.BlockingMessage]
) -> quarantine.BlockingMessage | None:
    """Returns the message in quarantine that may have been a watermark of a partition which no other is behind; None if
    there is none."""
    lowest = min(highest.values(), default=UNSEEN)
    behind = {partition for partition, tso in highest.items() if tso == lowest}
    of_partition = (each for each in blocking if each.table is None and (each.topic, each.partition) in behind)
    return next(of_partition, None)


def _waiting_on(
    highest: dict[TopicPartition, int],
    published_tso: int,
    has_changes: bool,
    blocked_by: quarantine.BlockingMessage | None,
    retired: Collection[str],
) -> str | None:
    """Returns what the watermark is waiting on; None if it is the newest one and nothing above it has arrived: the
    source is idle, or writes nothing."""
    if not highest:
        named = f", or kafka.retired ({', '.join(sorted(retired))}) names all that it has" if retired else ""
        return f"silver has decoded no message yet{named}"
    if blocked_by is not None:
        return (
            f"the message at {blocked_by.position} is in quarantine ({blocked_by.reason}) and may have "
            "been a watermark or DDL: `ticdc-lake quarantine list` shows it, `replay` and `dismiss` are the ways out"
        )
    another_is_ahead = any(tso > published_tso for tso in highest.values())
    if published_tso and not (another_is_ahead or has_changes):
        return None
    topic, number = min(highest, key=lambda partition: highest[partition])
    way_out = "check that the changefeed is running"
    if another_is_ahead:
        way_out += ". If it sends nothing there any more, name the partition or its topic in kafka.retired"
    if published_tso == 0:
        return f"partition {topic}/{number} has sent no watermark yet; {way_out}"
    published = with_time(published_tso)
    return f"partition {topic}/{number} has sent no watermark newer than the published {published}; {way_out}"


def _quarantine_points(
    lake: Reader, feed: str, before: Published, blocking: Sequence[quarantine.BlockingMessage]
) -> dict[TableName, BlockingPoint]:
    """Returns for each table with a quarantined message the highest watermark before that message in its partition."""
    watermarks = _watermarks_before(lake, feed, before, blocking)
    found: dict[TableName, BlockingPoint] = {}
    for message in blocking:
        point = BlockingPoint(tso=watermarks[message.position], stop=quarantined(message))
        name = TableName(str(message.database), str(message.table))
        keep_earliest(found, name, point)
    return found


def _watermarks_before(
    lake: Reader, feed: str, before: Published, messages: Sequence[quarantine.BlockingMessage]
) -> dict[str, int]:
    """Returns by position the highest watermark that its partition has before a message: the published one, which the
    published state has read there, or a higher one; UNSEEN without one. One query whatever their number: of a new feed
    of Simple each table may have one."""
    if not messages:
        return {}
    places = ", ".join(f"({literal(each.topic)}, {each.partition}, {each.offset})" for each in messages)
    partitions = sorted({f"(topic = {literal(each.topic)} AND partition = {each.partition})" for each in messages})
    published = f"(commit_ts = {before.tso} AND batch <= {before.batch})"
    # A running maximum by offset over watermarks and messages, which have no commit_ts; it excludes a watermark at the
    # message's own offset.
    rows = lake.rows(f"""
        SELECT topic, partition, offset, tso FROM (
            SELECT topic, partition, offset, commit_ts,
                   max(commit_ts) OVER (PARTITION BY topic, partition ORDER BY offset, commit_ts NULLS FIRST) AS tso
            FROM (
                SELECT topic, partition, offset, commit_ts FROM {events_table.full_name(lake, feed)}
                WHERE kind = '{Kind.RESOLVED}' AND (commit_ts > {before.tso} OR {published})
                  AND ({" OR ".join(partitions)})
                UNION ALL
                SELECT topic, partition, offset, CAST(NULL AS BIGINT) AS commit_ts
                FROM (VALUES {places}) AS messages (topic, partition, offset)) AS placed) AS running
        WHERE commit_ts IS NULL""")
    return {quarantine.position_text(row): row["tso"] or UNSEEN for row in rows}


def quarantined(message: quarantine.BlockingMessage) -> StopReason:
    """Returns the reason of a table that a message in quarantine blocks."""
    schema_missing = message.reason == SCHEMA_MISSING
    return StopReason(
        kind=StopKind.QUARANTINED,
        detail=f"a message of this table at {message.position} is in quarantine ({message.reason})",
        ways_out=(WayOut.AWAIT_SCHEMA, WayOut.LOAD_AND_DISMISS) if schema_missing else (WayOut.REPLAY_OR_DISMISS,),
    )
