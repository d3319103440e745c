"""What gold has published of a feed, read once and kept as a value (`Published`), and how the next window is published.

Publication is a compare-and-swap that Delta checks: the window's row has the number after the one that was read, and is
appended as the transaction (feed, number), which Delta takes once. Of two runs that began from the same state one
publishes; the other's append is refused or ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from ticdc_codec.errors import PublishedMeanwhileError
from ticdc_codec.tso import time_of, with_time
from ticdc_lakehouse.bronze.landing import offsets_table
from ticdc_lakehouse.catalog import Lake, Layer, Reader, Values
from ticdc_lakehouse.commit_conflict import Conflict, conflict_of
from ticdc_lakehouse.commit_sessions import committed
from ticdc_lakehouse.gold.state_tables import (
    DEFINITIONS,
    FORMAT,
    IS_LEFT_OUT,
    TABLE_STATES,
    TOPICS,
    WINDOWS,
    Identity,
    append,
    check_format,
    check_not_newer,
    definition_from,
    definition_row,
    definitions_sql,
    left_out_row,
    published_states,
    recoverable_from,
    recoverable_row,
    removed_row,
    rows_of,
    state_from,
    state_row,
    topic_rows,
    topics_from,
    values_of,
)
from ticdc_lakehouse.planning.published_state import Definition, Published
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.sql.text import literal

COMPLETE_EVERY = 50
"""Windows after which the states of all tables are written again: the newest states are in at most the last 50."""

_NOTHING = "this one publishes nothing: run it again"
_Key = tuple[TableName, int | None]
"""A row of ``ops.table_states``: the table's name, and the commit_ts of its end if it was dropped."""


def published(lake: Reader, feed: str, at: int | None = None) -> Published:
    """Returns the newest window that ``feed`` has published, or the newest with a watermark at or below the TSO ``at``.

    Creates nothing. Raises ConfigError for a lake of the first version.
    """
    if not lake.exists(Layer.OPS, WINDOWS):
        return Published()
    check_format(lake)
    number = _largest_number(lake, feed, "true" if at is None else f"tso <= {at}")
    return Published() if number is None else published_in(lake, feed, number)


def published_batch(lake: Reader, feed: str, after: int) -> int:
    """Returns the newest bronze batch that gold of a feed has looked at; ``after`` if that is not above it."""
    if not lake.exists(Layer.OPS, WINDOWS):
        return after
    check_format(lake)
    [row] = values_of(lake, WINDOWS, feed, f"batch > {after}", "max(batch) AS batch")
    return after if row["batch"] is None else int(row["batch"])


def published_zone(lake: Reader, feed: str) -> str | None:
    """Returns the ``time_zone`` with which a feed was published; None if it was not, or the lake does not say."""
    if not lake.exists(Layer.OPS, WINDOWS) or "time_zone" not in lake.columns(Layer.OPS, WINDOWS):
        return None
    [row] = values_of(lake, WINDOWS, feed, "true", "max_by(time_zone, number) AS time_zone")
    zone: str | None = row["time_zone"]
    return zone


def newest(lake: Reader, feed: str, known: Published) -> Published:
    """Returns the newest window; ``known``, which was the newest once, without reading the tables again if it still
    is."""
    if known.number == 0:
        return published(lake, feed)
    number = _largest_number(lake, feed, f"number >= {known.number}")
    return known if number in (None, known.number) else published(lake, feed)


def check_is_newest(lake: Reader, feed: str, number: int) -> None:
    """Raises PublishedMeanwhileError if another window than ``number`` is the newest."""
    check_same(feed, _largest_number(lake, feed, "true") or 0, number)


def check_same(feed: str, newest_number: int, number: int) -> None:
    """Raises PublishedMeanwhileError if the newest window is another one than ``number``, from which a run began."""
    if newest_number != number:
        raise PublishedMeanwhileError(
            f"feed {feed}: another run published window {newest_number} meanwhile; {_NOTHING}"
        )


def _largest_number(lake: Reader, feed: str, where: str) -> int | None:
    [row] = values_of(lake, WINDOWS, feed, where, "max(number) AS number")
    return None if row["number"] is None else int(row["number"])


def published_in(lake: Reader, feed: str, number: int) -> Published:
    """Returns the state that the window of this number published."""
    since = f"number BETWEEN {number - COMPLETE_EVERY} AND {number}"
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(values_of, lake, TABLE_STATES, feed, since)
        of_topics = pool.submit(values_of, lake, TOPICS, feed, f"number <= {number}")
        windows = values_of(lake, WINDOWS, feed, since)
        rows, topics = asked.result(), topics_from(of_topics.result())
    window = next(row for row in windows if row["number"] == number)
    check_not_newer(window)
    runs = {(row["number"], row["run"]) for row in windows if row["number"] >= window["base"]}
    states = _folded(row for row in rows if (row["number"], row["run"]) in runs)
    return Published(
        tso=window["tso"],
        mode=Mode(window["mode"]),
        time_zone=window.get("time_zone"),
        batch=window["batch"],
        replays_seen=window["replays_seen"],
        tables={
            name: state_from(row, window["tso"]) for (name, dropped_at), row in states.items() if dropped_at is None
        },
        recoverable=tuple(recoverable_from(row) for (_, dropped_at), row in states.items() if dropped_at is not None),
        number=number,
        base=window["base"],
        definitions=_definitions(lake, feed, states.values()),
        topics=topics,
    )


def _folded(rows: Iterable[Values]) -> dict[_Key, Values]:
    """Returns the newest row of each existing table, by the name as that row spells it."""
    by_key = {_key(row): row for row in sorted(rows, key=lambda row: int(row["number"]))}
    return {_key(row): row for row in by_key.values() if not row["removed"]}


def _key(row: Values) -> _Key:
    return TableName(row["database"], row["table"]), row["dropped_at"]


def _definitions(lake: Reader, feed: str, states: Iterable[Values]) -> dict[str, Definition]:
    """Returns the definitions that these states refer to, by the Delta table of the rows."""
    wanted = {(row["data"], row["defined_in"], row["defined_by"]) for row in states if row["defined_in"] is not None}
    if not wanted:
        return {}
    numbers = ", ".join(str(number) for number in sorted({number for _, number, _ in wanted}))
    rows = values_of(lake, DEFINITIONS, feed, f"number IN ({numbers})")
    there = [row for row in rows if (row["data"], row["number"], row["run"]) in wanted]
    return _newest_by_id(definition_from(row) for row in sorted(there, key=lambda row: int(row["place"])))


def _newest_by_id(definitions: Iterable[Definition]) -> dict[str, Definition]:
    """Returns the newest definition of each table, by stable id. Several DDLs may share a commit_ts: the last one of
    them holds."""
    return {definition.stable_id: definition for definition in sorted(definitions, key=lambda each: each.commit_ts)}


def commit_window(
    lake: Lake,
    feed: str,
    before: Published,
    planned: Published,
    new_definitions: Iterable[Definition],
    row_changes: int,
    left_out: Collection[TableName] = (),
    *,
    run: str | None = None,
) -> Published:
    """Publishes ``planned``, the state after ``before``, with ``new_definitions``. Returns it as it is read from then
    on.

    ``left_out`` are the tables that it lacks because the feed's filter leaves them out. ``run`` is the identity of what
    this run wrote beforehand. Raises PublishedMeanwhileError if another run published since ``before`` was read.
    """
    identity = Identity(feed, before.number + 1, run or str(uuid4()))
    after, rows = rows_to_publish(identity, before, planned, new_definitions, row_changes, left_out)
    (window,) = rows.pop(WINDOWS)
    for name, some in rows.items():
        if some:
            append(lake, name, some)
    _commit(lake, identity, window)
    return after


def rows_to_publish(
    identity: Identity,
    before: Published,
    planned: Published,
    new_definitions: Iterable[Definition],
    row_changes: int,
    left_out: Collection[TableName] = (),
) -> tuple[Published, dict[str, list[dict[str, object]]]]:
    """Returns the state as it is read once it is published, and the rows of each table that say so."""
    new = [replace(definition, number=identity.number, run=identity.run) for definition in new_definitions]
    after = replace(planned, number=identity.number, definitions=_current_definitions(before, planned, new))
    states, ended = _rows_of_states(identity, after), [left_out_row(identity, e, before.tables[e]) for e in left_out]
    changed = [*_changed_rows(identity, before, after, left_out), *ended]
    recent = before.base > 0 and identity.number - before.base < COMPLETE_EVERY
    is_complete = not recent or 2 * len(changed) >= len(states)
    after = replace(after, base=identity.number if is_complete else before.base)
    topics = {topic: names - before.topics.get(topic, frozenset()) for topic, names in planned.topics.items()}
    return after, {
        TABLE_STATES: [*states.values(), *ended] if is_complete else changed,
        DEFINITIONS: [definition_row(identity, place, each) for place, each in enumerate(new)],
        TOPICS: topic_rows(identity, topics),
        WINDOWS: [_window_row(identity, before.tso, after, row_changes)],
    }


def _current_definitions(before: Published, planned: Published, new: Iterable[Definition]) -> dict[str, Definition]:
    """Returns the definitions of the existing tables."""
    ids = {state.stable_id for state in planned.tables.values()} | {gone.stable_id for gone in planned.recoverable}
    newest_definitions = _newest_by_id([*before.definitions.values(), *new])
    return {each: definition for each, definition in newest_definitions.items() if each in ids}


def _changed_rows(
    identity: Identity, before: Published, after: Published, left_out: Collection[TableName]
) -> list[dict[str, object]]:
    """Returns the rows of the tables that changed, were added or were removed, but for those of ``left_out``."""
    rows, earlier = _rows_of_states(identity, after), _rows_of_states(identity, before)
    changed = [row for key, row in rows.items() if row != earlier.get(key)]
    removed = earlier.keys() - rows.keys() - {(name, None) for name in left_out}
    return [*changed, *(removed_row(identity, *key) for key in removed)]


def _rows_of_states(identity: Identity, state: Published) -> dict[_Key, dict[str, object]]:
    rows: dict[_Key, dict[str, object]] = {
        (name, None): state_row(identity, name, table, state.definitions.get(table.stable_id), state.tso)
        for name, table in state.tables.items()
    }
    for gone in state.recoverable:
        rows[gone.name, gone.dropped_at] = recoverable_row(identity, gone, state.definitions.get(gone.stable_id))
    return rows


def _window_row(identity: Identity, from_tso: int, after: Published, row_changes: int) -> dict[str, object]:
    return identity.row(
        base=after.base,
        tso=after.tso,
        time=time_of(after.tso),
        mode=after.mode.value,
        time_zone=after.time_zone,
        from_tso=from_tso,
        batch=after.batch,
        published_at=datetime.now(UTC),
        row_changes=row_changes,
        replays_seen=None if after.replays_seen is None else after.replays_seen.astimezone(UTC),
        format=FORMAT,
    )


def _commit(lake: Lake, identity: Identity, row: Mapping[str, object]) -> None:
    transaction = f"ticdc-lake windows {identity.feed}", identity.number
    try:
        if committed(lake.spark, lambda: append(lake, WINDOWS, [row], transaction=transaction)) is not None:
            return
    except PySparkException as error:
        if conflict_of(error) is not Conflict.TRANSACTION:
            raise
    there = rows_of(lake, WINDOWS, identity.feed).where(F.col("number") == identity.number).collect()
    if [row["run"] for row in there] != [identity.run]:
        by = f" {with_time(there[0]['tso'])}" if there else ""
        raise PublishedMeanwhileError(f"feed {identity.feed}: another run published{by} meanwhile; {_NOTHING}")


def published_feeds(lake: Reader) -> list[str]:
    """Returns the feeds of which gold has published a watermark, without those that were removed (docs/databricks.md),
    of which only rows in ``ops`` are left. Raises ConfigError for a lake of the first version."""
    if not lake.exists(Layer.OPS, WINDOWS):
        return []
    check_format(lake)
    feeds = sorted(row["feed"] for row in lake.rows(f"SELECT DISTINCT feed FROM {lake.table(Layer.OPS, WINDOWS)}"))
    return [feed for feed in feeds if lake.exists(Layer.BRONZE, offsets_table(feed))]


def published_ids(lake: Lake, feed: str) -> set[str]:
    """Returns the Delta tables, by stable id, that ever held rows of a feed."""
    return {row["data"] for row in lake.spark.sql(definitions_sql(lake, feed)).select("data").distinct().collect()}


def names_ever(lake: Lake, feed: str) -> set[str]:
    """Returns the names that live tables and views of a feed ever had while they were published. A name that a table
    got by a RENAME while it was blocked is among them only as long as maintenance keeps that state."""
    defined = lake.spark.sql(definitions_sql(lake, feed)).select("name")
    rows = defined.union(published_states(lake, feed).select("name")).distinct().collect()
    return {row["name"] for row in rows if row["name"]}


def forget_states(lake: Lake, feed: str, first: int) -> None:
    """Deletes the table states that only windows before the number ``first`` need. Watermarks and definitions stay, and
    which tables were left out: they are the feed's history."""
    for row in values_of(lake, WINDOWS, feed, f"number = {first}", "base"):
        where = f"feed = {literal(feed)} AND number < {row['base']} AND NOT coalesce({IS_LEFT_OUT}, false)"
        lake.spark.sql(f"DELETE FROM {lake.table(Layer.OPS, TABLE_STATES)} WHERE {where}")
