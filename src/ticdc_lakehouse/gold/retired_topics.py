"""Topics that get no more watermarks: their tables were dropped or renamed, or they never had a table.

TiCDC sends watermarks only to the topics of current tables. With one topic per table, the topic of a dropped or renamed
table is **retired**. Before the DDL TiCDC sent every row of the table, and a watermark up to just below the DDL. Gold
does not wait for the rows of a dropped table once the other topics have passed the DROP; the rows of a renamed one are
complete once that watermark has arrived. A topic's tables are those of its rows and of the DDLs that make, rename or
drop one, since a table may be dropped before its first row (`tables_of`). They are part of the state
(`Published.topics`), so that no history is read.

A topic without such a row or DDL is **empty**. It may belong to a table that is about to get its first row, or to no
table: a stray topic that the pattern matches, or the topic of a name that one RENAME TABLE both gives and takes. A
topic that had only tables which the feed leaves out counts as empty too, since gold does not know whether they still
exist. An empty topic counts with the watermark that the other topics confirm (``watermark``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter

from ticdc_codec.event import Kind
from ticdc_codec.name_case import fold
from ticdc_lakehouse.bronze.micro_batch import TopicPartition
from ticdc_lakehouse.catalog import Reader, Values
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import (
    DropDatabase,
    DropTables,
    RenameTables,
    Statement,
    given_names,
    unqualified_name,
)
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.sql.text import literal

UNSEEN = 0
"""In place of a watermark where a partition has sent none, and of a commit_ts up to the published watermark."""

LastChanges = Mapping[str, Mapping[TableName, int]]
"""By topic: each of its tables and the commit_ts of its last row change or DDL."""
MinWatermarkByTopic = Mapping[str, int]
"""By topic: the lowest of its partitions' highest watermarks."""
Matches = Callable[[str, str], bool]
"""True if the feed includes a table, by database and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermarks:
    """The watermarks up to the bronze batch ``batch``."""

    batch: int
    highest: dict[TopicPartition, int]
    """The highest watermark of each partition; UNSEEN without one."""
    confirmed: dict[TopicPartition, int]
    """By partition: the watermark up to which all its rows are read, as watermarks of others show (``watermark``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Topics that sent no new watermark and are not waited for."""

    retired: dict[str, int]
    """Topics whose tables were all dropped or renamed, each with the watermark from which on it is not waited for: the
    commit_ts of the last DROP that has just come, before which rows may be unread; UNSEEN for any watermark."""
    empty: set[str]
    """Topics that never had a row or DDL of one of their tables (`tables_of`), or only of tables that the feed leaves
    out."""


def retired_topics(
    lake: Reader,
    feed: str,
    before: Published,
    partitions: Collection[TopicPartition],
    watermarks: Watermarks,
    matches: Matches,
) -> Topics:
    """Returns the retired and the empty topics of the partitions, as bronze shows them up to the batch of
    ``watermarks``.

    What arrived up to the published watermark is state (`Published.topics`); only what is new is read, and DDLs since a
    table of these topics was blocked.
    """
    topics = {topic for topic, _ in partitions}
    blocked = _blocked_at(before, topics)
    new = _by_kind(_new_events(lake, feed, before, topics, watermarks.batch, min(blocked.values(), default=before.tso)))
    ddls = sorted(((tso, statement) for _, tso, statement in new.ddls), key=itemgetter(0))
    lowest = lowest_by_topic(dict.fromkeys(partitions, UNSEEN) | new.watermarks)
    confirmed = lowest_by_topic(watermarks.confirmed)
    return topics_among(
        _last_changes(new, topics, before),
        {topic: max(confirmed[topic], tso) for topic, tso in lowest.items()},
        before,
        [(tso, statement) for tso, statement in ddls if tso >= before.tso],
        matches,
        _dropped_while_blocked(ddls, blocked),
    )


def _blocked_at(before: Published, topics: Collection[str]) -> dict[TableName, int]:
    """Returns the blocked tables of these topics, and the TSO at which each is blocked."""
    names = {name for topic in topics for name in before.topics.get(topic, ())}
    return {name: t.applied_tso for name, t in before.tables.items() if name in names and t.blocked}


def _dropped_while_blocked(ddls: Iterable[tuple[int, Statement]], blocked: Mapping[TableName, int]) -> set[TableName]:
    """Returns the blocked tables that TiDB dropped since: under ``on_drop: keep`` their state still has the reason for
    which they were blocked."""
    removals, _ = _removals(ddls, blocked.keys())
    drops = {name: tso for name, (tso, each) in removals.items() if not isinstance(each, RenameTables)}
    return {name for name, tso in drops.items() if name in blocked and tso > blocked[name]}


def lowest_by_topic(watermarks: Mapping[TopicPartition, int]) -> dict[str, int]:
    """Returns the lowest watermark of each topic's partitions."""
    lowest: dict[str, int] = {}
    for (topic, _), tso in watermarks.items():
        lowest[topic] = min(tso, lowest.get(topic, tso))
    return lowest


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewEvents:
    """What arrived since the published state."""

    rows: list[tuple[str, TableName, int]]
    """Topic, table, and the commit_ts of the table's last row change there."""
    ddls: list[tuple[str, int, Statement]]
    """Topic, commit_ts and statement."""
    watermarks: dict[TopicPartition, int]
    """The highest of each partition that sent one."""


def _by_kind(events: Iterable[Values]) -> _NewEvents:
    new = _NewEvents(rows=[], ddls=[], watermarks={})
    for event in events:
        topic, tso, database, table = event["topic"], event["last"], event["database"], event["table"]
        match Kind(event["kind"]):
            case Kind.ROW:
                new.rows.append((topic, TableName(database, table), tso))
            case Kind.DDL:
                new.ddls.extend((topic, tso, statement) for statement in read_ddl(event["query"], database, table))
            case _:
                new.watermarks[topic, event["partition"]] = tso
    return new


def _last_changes(new: _NewEvents, topics: Collection[str], before: Published) -> dict[str, dict[TableName, int]]:
    """Returns the `LastChanges` of the topics."""
    last = {topic: dict.fromkeys(before.topics.get(topic, ()), UNSEEN) for topic in topics}
    # `tmp` of RENAME TABLE a TO tmp, b TO a, tmp TO b is the name of no table before or after: only the DDL names it.
    given = {(tso, new) for _, tso, each in new.ddls if isinstance(each, RenameTables) for _, new in each.pairs}
    of_ddls = (
        (topic, name, tso)
        for topic, tso, statement in new.ddls
        for name in (tables_of(statement) if topic in topics else ())
        if (tso, name) not in given or name in before.tables
    )
    for topic, name, tso in chain(new.rows, of_ddls):
        last[topic][name] = max(tso, last[topic].get(name, UNSEEN))
    return last


def _new_events(
    lake: Reader, feed: str, before: Published, topics: Collection[str], batch: int, ddls_since: int
) -> list[Values]:
    """Returns one row per table of the topics, with the commit_ts of its last row change; per partition, with its
    highest watermark; and per DDL of any topic, also those from ``ddls_since`` on. A watermark just below the published
    one still counts: a DDL may be the next commit."""
    resolved, ddl = f"kind = '{Kind.RESOLVED}'", f"kind = '{Kind.DDL}'"
    of_topics = f"topic IN ({', '.join(map(literal, sorted(topics)))}) AND kind IN ('{Kind.RESOLVED}', '{Kind.ROW}')"
    return lake.rows(f"""
        SELECT kind, topic, partition, database, table, query, max(commit_ts) AS last FROM (
            SELECT kind, topic, commit_ts, CASE WHEN {resolved} THEN partition END AS partition,
                   CASE WHEN NOT ({resolved}) THEN database END AS database,
                   CASE WHEN NOT ({resolved}) THEN table END AS table,
                   CASE WHEN {ddl} THEN query END AS query, CASE WHEN {ddl} THEN commit_ts END AS ddl_at
            FROM {events_table.full_name(lake, feed)}
            WHERE batch <= {batch} AND (({of_topics}) OR {ddl}) AND
              (commit_ts >= {before.tso - 1} OR batch > {before.batch} OR ({ddl} AND commit_ts >= {ddls_since}))
        ) AS found GROUP BY kind, topic, partition, database, table, query, ddl_at""")


def tables_of(statement: Statement) -> list[TableName]:
    """Returns the tables that a DDL adds to its topic or takes from it, as far as its text shows: a RENAME goes to that
    of the old name (wire.md 2.4). None of any other DDL, such as ALTER or TRUNCATE: gold may not have the table as long
    as it has no row, and would take it for one that is gone. (An EXCHANGE PARTITION goes to the topic of one table or
    the other: ticdc takes the partitioned one, tiflow not.)"""
    if unqualified_name(statement) is not None:
        return []
    match statement:
        case RenameTables(pairs=pairs):
            return [old for old, _ in pairs]
        case DropTables(names=names):
            return list(names)
        case _:
            return list(given_names(statement))


def topics_among(
    last: LastChanges,
    watermarks: MinWatermarkByTopic,
    before: Published,
    ddls: Iterable[tuple[int, Statement]],
    matches: Matches,
    dropped: Collection[TableName] = (),
) -> Topics:
    """Returns the retired topics, all of whose tables were removed, and the empty ones: the feed takes none of the
    tables that are left in them.

    ``last``: by topic, its tables and the commit_ts of the last change that it delivered of each. ``ddls`` are in the
    order of their commit_ts. ``dropped``: published tables that TiDB dropped although their state does not say so.
    """
    removals, created = _removals(ddls, {name for tables in last.values() for name in tables})

    def gone_from(topic: str, name: TableName, tso: int) -> int | None:
        """Returns the watermark from which on the table is gone: it was removed after its last change, or gold no
        longer has it. None if it may still change."""
        match removals.get(name):
            case (at, RenameTables()):
                return UNSEEN if tso <= at <= watermarks.get(topic, 0) + 1 else None
            case (at, _):
                return at if tso <= at else None
        known = before.tables.get(name)
        is_absent = matches(*name) if known is None else known.dropped or name in dropped
        return UNSEEN if before.tso > 0 and is_absent and tso <= before.tso and name not in created else None

    gone = {topic: {name: gone_from(topic, name, tso) for name, tso in names.items()} for topic, names in last.items()}
    retired, empty = {}, set()
    for topic, tables in gone.items():
        ends = [end for end in tables.values() if end is not None]
        if tables and len(ends) == len(tables):
            retired[topic] = max(ends)
        elif not any(matches(*name) for name, end in tables.items() if end is None):
            empty.add(topic)
    return Topics(retired=retired, empty=empty)


def _removals(
    ddls: Iterable[tuple[int, Statement]], names: Collection[TableName]
) -> tuple[dict[TableName, tuple[int, Statement]], set[TableName]]:
    """Returns the tables that the DDLs remove in the end, with commit_ts and statement, and those that they create."""
    removals: dict[TableName, tuple[int, Statement]] = {}
    created: set[TableName] = set()
    for tso, statement in _with_one_rename(ddls):
        for name in given_names(statement):
            removals.pop(name, None)
            created.add(name)
        for name in _removed(statement, names):
            removals[name] = tso, statement
            created.discard(name)
    return removals, created


def _with_one_rename(ddls: Iterable[tuple[int, Statement]]) -> Iterator[tuple[int, Statement]]:
    """Yields the DDLs, with the renames of one commit_ts as one: TiCDC sends those of one statement one by one, and
    through several topics they arrive in no fixed order."""
    for tso, some in groupby(ddls, key=itemgetter(0)):
        statements = [statement for _, statement in some]
        renames = [s for s in statements if isinstance(s, RenameTables) and not s.unqualified]
        yield from ((tso, statement) for statement in statements if statement not in renames)
        if pairs := tuple(pair for rename in renames for pair in rename.pairs):
            yield tso, RenameTables(pairs=pairs)


def _removed(statement: Statement, names: Collection[TableName]) -> list[TableName]:
    match statement:
        case DropTables(names=dropped):
            return list(dropped)
        case DropDatabase(database=database):
            return [name for name in names if fold(name.database) == fold(database)]
        case RenameTables(pairs=[(old, new)], unqualified=True):
            return [name for name in names if fold(name.table) == fold(old.table) and name != new]
        case RenameTables(pairs=pairs):
            return [old for old, _ in pairs if old not in {new for _, new in pairs}]
        case _:
            return []
