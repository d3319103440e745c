"""A workload's transactions as the messages of a changefeed: schema, rows by partition, watermarks everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from random import Random
from zlib import crc32

from ticdc_codec.event import Bootstrap, Column, Ddl, Event, Resolved, RowChange
from ticdc_codec.message import Message
from ticdc_codec.mysql_type import Family, parse_type
from ticdc_codec.options import SinkOptions, has_watermarks
from ticdc_codec.protocols import protocol_named
from ticdc_codec.tso import Tso, first_of, milliseconds
from ticdc_lakehouse.schema.definition import Table
from ticdc_testkit.workload import workload_named
from ticdc_testkit.workload.database import Change, Database

START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z: the streams' own time, so that the same seed gives the same bytes on any day."""
SCHEMA_VERSION = int(first_of(START_MS))
"""The schema version of all tables: they never change."""
WATERMARK_MS = 1000
"""A watermark comes about once a second (wire.md 2.1)."""
_LONGEST_PAUSE_MS = 100
_CREATE_DATABASE, _CREATE_TABLE = "1", "3"
"""TiDB's numbers of DDL types (wire.md 3.1)."""


class Dispatch(StrEnum):
    """A dispatch rule's ``partition`` (wire.md 2.2)."""

    INDEX_VALUE = "index-value"
    """By the values of the handle key."""
    TABLE = "table"


def partition_of(row: RowChange, rule: Dispatch, partitions: int) -> int:
    """Returns the row's partition. Key values that are texts or whole numbers are hashed as TiCDC does, NULL as the new
    one."""
    image = row.before if row.after is None else row.after
    checksum = crc32(f"{row.database}{row.table}".encode())
    if rule is Dispatch.INDEX_VALUE and image is not None:
        for column in row.columns:
            if column.key and (text := image[column.name]) is not None:
                checksum ^= crc32(f"{column.name}{text}".encode())
    return checksum % partitions


_Sent = tuple[int, Event]
"""An event with its partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changefeed:
    """What to make of which workload."""

    workload: str
    protocol: str
    """As ``protocols.PROTOCOLS`` names it."""
    options: SinkOptions
    partitions: int = 1
    dispatch: Dispatch = Dispatch.INDEX_VALUE
    creates: bool = True
    """True if the stream begins with CREATE DATABASE and CREATE TABLE; else the tables existed before it."""
    seed: int = 0

    @property
    def has_watermarks(self) -> bool:
        """True if the options let the protocol send watermarks."""
        return has_watermarks(self.protocol, self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """What is sent up to a watermark, which ends it in each partition."""

    events: Mapping[int, Sequence[Event]]
    """By partition, in their order."""
    messages: Mapping[int, Sequence[Message]]
    """``events`` as encoded messages, by partition."""
    transactions: int

    @property
    def rows(self) -> int:
        """How many row changes there are."""
        return sum(isinstance(event, RowChange) for events in self.events.values() for event in events)


def intervals(feed: Changefeed, rows: int, database: Database | None = None) -> Iterator[Interval]:
    """Yields the stream up to the transaction with which it has ``rows`` row changes, and a watermark behind it.

    ``database`` may be an empty one of the workload's schema; it then holds the tables as of the last watermark given.
    Raises ConfigError for an unknown workload, and for what the protocol cannot carry.
    """
    schema, transactions = workload_named(feed.workload)
    database = Database(schema) if database is None else database
    clock = _Clock(seed=feed.seed)
    yield _interval(feed, _opening(feed, schema, database, clock), clock.next_second(), transactions=0)
    changed = 0
    waiting: list[_Sent] = []
    count = 0
    for _ in transactions(database, Random(feed.seed)):
        commit_ts = clock.next()
        changes = (_row(change, commit_ts) for change in database.commit())
        waiting += ((partition_of(row, feed.dispatch, feed.partitions), row) for row in changes)
        count += 1
        if clock.second_is_over or changed + len(waiting) >= rows:
            yield _interval(feed, waiting, clock.next_second(), transactions=count)
            changed += len(waiting)
            waiting, count = [], 0
        if changed >= rows:
            return


class _Clock:
    """The stream's own time."""

    def __init__(self, *, seed: int) -> None:
        self._now = START_MS
        self._second = START_MS
        self._random = Random(seed)

    def next(self) -> Tso:
        """Returns a later time, for a commit."""
        self._now += self._random.randint(1, _LONGEST_PAUSE_MS)
        return first_of(self._now)

    @property
    def second_is_over(self) -> bool:
        """True if a watermark is due."""
        return self._now >= self._second + WATERMARK_MS

    def next_second(self) -> Tso:
        """Returns the time of a watermark: after all commits so far."""
        self._now += 1
        self._second = self._now
        return first_of(self._now)


def _opening(feed: Changefeed, schema: str, database: Database, clock: _Clock) -> list[_Sent]:
    """Returns what comes before the first row: DDLs, and for Simple the schemas of the tables."""
    everywhere = range(feed.partitions)
    ddls = [*_ddls(schema, database, clock)] if feed.creates else []
    told_ddl = [0] if feed.protocol == "canal_json" else everywhere  # wire.md 2.4
    apart = protocol_named(feed.protocol).traits.external_schemas
    schemas = [_bootstrap(rows.table) for rows in database.tables.values()] if apart else []
    told_schema = everywhere if feed.options.send_bootstrap_to_all_partition else [0]
    sent: list[_Sent] = [(partition, ddl) for ddl in ddls for partition in told_ddl]
    return sent + [(partition, each) for each in schemas for partition in told_schema]


def _ddls(schema: str, database: Database, clock: _Clock) -> Iterator[Ddl]:
    name = next(iter(database.tables.values())).table.database
    yield _ddl(clock.next(), name, None, f"CREATE DATABASE `{name}`", _CREATE_DATABASE)
    statements = (text.strip() for text in schema.split(";") if "CREATE TABLE" in text)
    for rows, statement in zip(database.tables.values(), statements, strict=True):
        created = _ddl(clock.next(), name, rows.table.table, statement, _CREATE_TABLE)
        yield replace(created, columns=columns_of(rows.table), schema_version=SCHEMA_VERSION)


def _ddl(commit_ts: Tso, database: str, table: str | None, query: str, kind: str) -> Ddl:
    return Ddl(
        database=database,
        table=table,
        commit_ts=commit_ts,
        commit_ms=milliseconds(commit_ts),
        query=query,
        type=kind,
    )


def _bootstrap(table: Table) -> Bootstrap:
    return Bootstrap(
        database=table.database, table=table.table, columns=columns_of(table), schema_version=SCHEMA_VERSION
    )


@cache
def columns_of(table: Table) -> tuple[Column, ...]:
    """Returns the table's columns as its rows describe them: ENUM and SET by number."""
    numbered = (Family.ENUM, Family.SET)
    return tuple(replace(c, by="index") if parse_type(c.type).family in numbered else c for c in table.described)


def _row(change: Change, commit_ts: Tso) -> RowChange:
    return RowChange(
        op=change.op,
        database=change.table.database,
        table=change.table.table,
        commit_ts=commit_ts,
        commit_ms=milliseconds(commit_ts),
        before=change.before,
        after=change.after,
        columns=columns_of(change.table),
        schema_version=SCHEMA_VERSION,
    )


def _interval(feed: Changefeed, events: Sequence[_Sent], watermark: Tso, *, transactions: int) -> Interval:
    sent: dict[int, list[Event]] = {partition: [] for partition in range(feed.partitions)}
    for partition, event in events:
        sent[partition].append(event)
    for own in sent.values():
        own.append(Resolved(commit_ts=watermark))
    encode = protocol_named(feed.protocol).encode
    messages = {partition: encode(own, feed.options) for partition, own in sent.items()}
    return Interval(events=sent, messages=messages, transactions=transactions)
