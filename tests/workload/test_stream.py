"""Made-up change streams: what was encoded decodes to the same changes, in every protocol, and they add up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest

from ticdc_codec.batch import DecoderContext
from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column, Ddl, Event, Failure, Image, Op, Resolved, RowChange, events_of
from ticdc_codec.number_text import number_of_names
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_testkit.workload import WORKLOADS
from ticdc_testkit.workload.database import Database
from ticdc_testkit.workload.stream import Changefeed, Dispatch, Interval, intervals

EXTENSION = {"enable-tidb-extension": "true"}
PROTOCOLS: list[tuple[str, dict[str, str]]] = [
    ("craft", {}),
    ("craft", {"max-batch-size": "4"}),
    ("open_protocol", {"large-message-handle-compression": "lz4"}),
    ("simple", {"encoding-format": "json", "integrity-check-level": "correctness"}),
    ("simple", {"encoding-format": "avro", "send-bootstrap-to-all-partition": "false"}),
    ("canal_json", EXTENSION | {"content-compatible": "true"}),
    ("debezium", EXTENSION),
    ("debezium", EXTENSION | {"debezium-disable-schema": "true", "time-zone": "Asia/Shanghai"}),
]


def made(workload: str, protocol: str, options: dict[str, str], rows: int = 400, **more: object) -> list[Interval]:
    feed = Changefeed(
        workload=workload, protocol=protocol, options=sink_options(protocol, options), partitions=3, **more
    )
    return list(intervals(feed, rows))


def tables(workload: str) -> dict[tuple[str, str], Table]:
    return {(table.database, table.table): table for table in tables_from_sql(WORKLOADS[workload][0])}


def changes(events: Iterable[Event], known: dict[tuple[str, str], Table]) -> list[tuple[object, ...]]:
    """What protocols agree on: values with ENUM and SET by number, watermarks, statements."""
    return [change for event in events for change in _change(event, known)]


def _change(event: Event, known: dict[tuple[str, str], Table]) -> list[tuple[object, ...]]:
    match event:
        case RowChange(database=database, table=table):
            definition = known[database, table]
            before = event.before
            if event.op is Op.UPDATE:  # with content-compatible, only what it changed
                before = {**(event.after or {}), **(before or {})}
            images = [numbered(image, event.columns, definition) for image in (before, event.after)]
            return [(event.op, database, table, event.commit_ts, *images)]
        case Ddl(query=query, commit_ts=commit_ts):
            return [(query, commit_ts)]
        case Resolved(commit_ts=commit_ts):
            return [(commit_ts,)]
        case Failure():
            pytest.fail(str(event))
    return []


def numbered(image: Image | None, columns: Sequence[Column], table: Table) -> dict[str, str | None] | None:
    if image is None:
        return None
    named = {column.name for column in columns if column.by == "name"}
    kinds = {column.name: column.type for column in table.columns if column.name in named}
    return {
        name: number_of_names(kinds[name])(text) if name in kinds and text is not None else text
        for name, text in image.items()
    }


@pytest.mark.parametrize(("protocol", "options"), PROTOCOLS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_what_was_encoded_decodes_to_the_same_changes(workload: str, protocol: str, options: dict[str, str]) -> None:
    known = tables(workload)
    definitions = DecoderContext(schemas={(*name, 0): table.described for name, table in known.items()})
    decoder = Decoder(protocol, sink_options(protocol, options), definitions)
    stream = made(workload, protocol, options)
    for partition in range(3):  # in this order: Simple's schemas may stand in partition 0 alone
        messages = [message for each in stream for message in each.messages[partition]]
        decoded = decoder.decode([m.key for m in messages], [m.value for m in messages])
        events = [event for each in stream for event in each.events[partition]]
        assert changes((event for _, event in events_of(decoded)), known) == changes(events, known)


def rows_of(stream: Iterable[Interval]) -> list[RowChange]:
    return [e for each in stream for events in each.events.values() for e in events if isinstance(e, RowChange)]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_changes_add_up_to_the_tables(workload: str) -> None:
    """Each update and delete begins with what was there; in the end the rows are the database's."""
    database = Database(WORKLOADS[workload][0])
    feed = Changefeed(workload=workload, protocol="craft", options=sink_options("craft", {}), partitions=3)
    stream = rows_of(intervals(feed, 5000, database))
    order = [Op.DELETE, Op.UPDATE, Op.INSERT]
    held: dict[str, dict[tuple[str | None, ...], Image]] = {name: {} for name in database.tables}
    for row in sorted(stream, key=lambda row: (row.commit_ts, order.index(row.op))):
        image = row.before if row.after is None else row.after
        key = tuple(image[column.name] for column in row.columns if column.key)
        assert held[row.table].pop(key, None) == row.before
        if row.after is not None:
            held[row.table][key] = row.after
    assert {name: list(map(dict, rows.values())) for name, rows in held.items()} != {name: [] for name in held}
    for name, rows in database.tables.items():
        assert sorted(map(repr, held[name].values())) == sorted(map(repr, rows))
    assert {row.op for row in stream} >= {Op.UPDATE, Op.INSERT}


def test_a_key_that_changes_is_a_delete_and_an_insert_at_one_commit() -> None:
    stock = [row for row in rows_of(made("shop", "craft", {}, rows=3000)) if row.table == "stock"]
    moved = {row.commit_ts for row in stock if row.op is Op.DELETE}
    assert moved
    assert moved <= {row.commit_ts for row in stock if row.op is Op.INSERT}


def test_watermarks_are_in_every_partition_behind_what_they_cover() -> None:
    stream = made("shop", "craft", {})
    marks = [{events[-1].commit_ts for events in each.events.values()} for each in stream]
    assert all(len(each) == 1 for each in marks)
    assert all(low < high for (low,), (high,) in pairwise(marks))
    for each, (mark,), (before,) in zip(stream[1:], marks[1:], marks, strict=False):
        assert all(before < row.commit_ts < mark for row in rows_of([each]))


def test_the_seed_decides_every_byte() -> None:
    def values(seed: int) -> list[object]:
        return [each.messages for each in made("shop", "open_protocol", {}, seed=seed)]

    assert values(1) == values(1)
    assert values(1) != values(2)


def test_a_table_stays_in_one_partition_if_dispatched_so() -> None:
    places: dict[str, set[int]] = {}
    for each in made("shop", "craft", {}, dispatch=Dispatch.TABLE):
        for partition, events in each.events.items():
            for event in events:
                if isinstance(event, RowChange):
                    places.setdefault(event.table, set()).add(partition)
    assert len(places) == 4
    assert all(len(found) == 1 for found in places.values())


@pytest.mark.parametrize(("protocol", "partitions"), [("craft", {0, 1, 2}), ("canal_json", {0})])
def test_tables_are_created_first_where_ticdc_tells(protocol: str, partitions: set[int]) -> None:
    first = made("shop", protocol, EXTENSION if protocol == "canal_json" else {})[0]
    queries_by_partition = {
        number: [e.query.split("(")[0] for e in events if isinstance(e, Ddl)] for number, events in first.events.items()
    }
    assert {number for number, queries in queries_by_partition.items() if queries} == partitions
    assert queries_by_partition[0][:2] == ["CREATE DATABASE `shop`", "CREATE TABLE `customers` "]
    assert len(queries_by_partition[0]) == 5


def test_tables_that_existed_are_not_created() -> None:
    events = [e for each in made("shop", "craft", {}, creates=False) for own in each.events.values() for e in own]
    assert not any(isinstance(event, Ddl) for event in events)


def test_as_many_rows_as_asked_for_to_the_end_of_a_transaction() -> None:
    assert 400 <= sum(each.rows for each in made("sysbench", "craft", {})) < 400 + 100


def test_there_is_no_other_workload() -> None:
    with pytest.raises(ConfigError, match="expected one of shop, sysbench, found 'bank'"):
        made("bank", "craft", {})
