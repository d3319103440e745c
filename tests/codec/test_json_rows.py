"""The engine for rows of JSON messages, with a protocol that is no more than its specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pytest

from ticdc_codec.batch import Events, in_order
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Failure, Layout, Op, Resolved, RowChange, columns_text, events_of
from ticdc_codec.json_images import Image, ImageTypes, check_names, handle_key_lines
from ticdc_codec.json_rows import JsonRows, RowSpec, RowTexts, SingleRow, contents_of
from ticdc_codec.json_text import Unreadable, quotes_of, unreadable
from ticdc_codec.options import Compression
from ticdc_codec.row_builder import RowColumns


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """``{"table": "t", "ts": 7, "row": {"id": "1"}}``, or a watermark without table and row."""

    ts: int
    table: str | None = None
    row: dict[str, msgspec.Raw] | None = None


class Table:
    """A table's rows, of which the first column is the key."""

    def __init__(self, name: str, columns: Sequence[str]) -> None:
        described = tuple(Column(name=each, type="varchar", key=each == columns[0]) for each in columns)
        self.layout = Layout("d", name, described, columns_text(described))
        self.images = ImageTypes(columns)
        row = msgspec.defstruct(
            "Row",
            [("ts", int), ("row", self.images.type_of([(str | None,)] * len(columns)))],
            forbid_unknown_fields=True,
        )
        self.read = self.images.reader(row, ("row",))


@dataclass(frozen=True)
class Group:
    table: Table
    prefix: bytes


class Inserts(RowSpec[int, Group, RowTexts]):
    """A protocol that has nothing but inserts and watermarks, and counts what it reads by itself."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self.out = Events()
        self.values = contents_of(values, Compression.NONE, self.out)
        self.read_alone: list[int] = []

    def prefixes(self, items: Sequence[int]) -> list[bytes]:
        return [prefix_of(self.values[item]) for item in items]

    def cut(self, group: Group, items: Sequence[int]) -> RowTexts:
        return RowTexts([b"{" + self.values[item].removeprefix(group.prefix) for item in items])

    def columns(self, group: Group, items: Sequence[int], texts: RowTexts, rows: list[Image]) -> list[RowColumns]:
        if any(row.row.c0 is None for row in rows):
            raise DecodeError("bad_value", "expected a key")
        lines = group.table.images.lines([row.row for row in rows])
        # Of the names ts and row, and of the image; no shortest length, as a ts has any number of digits.
        check_names(texts.texts, -1, lambda: (4 + quotes_of(line) for line in lines.splitlines()))
        columns = RowColumns(
            messages=items,
            op=Op.INSERT,
            layout=group.table.layout,
            commit_ts=[row.ts for row in rows],
            handle_keys=handle_key_lines([[row.row.c0 for row in rows]]),
            after=lines,
        )
        return [columns]

    def single(self, item: int) -> SingleRow[int, Group, RowTexts] | None:
        self.read_alone.append(item)
        self.out.message = item
        value = self.values[item]
        try:
            message = msgspec.json.decode(value, type=Message)
        except Unreadable as error:
            raise unreadable(error, value) from None
        if message.table is None or message.row is None:
            self.out.resolved(message.ts)
            return None
        prefix = prefix_of(value)
        text = msgspec.json.encode({"ts": message.ts, "row": message.row})
        group = Group(Table(message.table, [*message.row]), prefix)
        return SingleRow(item=item, group=group, texts=RowTexts([text]), prefix=prefix, value=value)

    def refuse(self, item: int, error: DecodeError) -> None:
        self.out.message = item
        self.out.error(error)


def prefix_of(value: bytes) -> bytes:
    return value[: value.find(b'"ts"')]


def decoded(values: Sequence[bytes]) -> tuple[list[object], Inserts]:
    """The events, one for each message."""
    protocol = Inserts(values)
    rows = JsonRows(protocol)
    rows.add([*protocol.values])
    batch = in_order(rows.finish(), protocol.out, [0] * len(protocol.out))
    return [event for _, event in events_of(batch)], protocol


def message(ts: int, row: str, table: str = "t") -> bytes:
    return f'{{"table":"{table}","ts":{ts},"row":{row}}}'.encode()


def many(count: int = 100) -> list[bytes]:
    return [message(ts, f'{{"id":"{ts}","c":null}}') for ts in range(1, count + 1)]


def test_first_row_of_a_prefix_is_read_alone_and_all_others_in_groups() -> None:
    other = [message(ts, f'{{"k":"{ts}"}}', "u") for ts in range(1, 101)]
    events, protocol = decoded([each for both in zip(many(), other, strict=True) for each in both])
    assert protocol.read_alone == [0, 1]
    assert [event.after for event in events[:3] if isinstance(event, RowChange)] == [
        {"id": "1", "c": None}, {"k": "1"}, {"id": "2", "c": None}
    ]  # fmt: skip
    assert [event.handle_key for event in events if isinstance(event, RowChange)][-1] == '["100"]'


@pytest.mark.parametrize(
    ("faulty", "reason"),
    [
        (message(7, '{"id":"7"}'), None),  # another layout is no fault
        (message(7, '{"id":7,"c":null}'), "wrong_type"),
        (message(7, '{"id":null,"c":null}'), "bad_value"),
        (message(7, '{"id":"7","c":null,"c":null}'), "duplicate_name"),
        (message(7, '{"id":"7","c":null}')[:-1], "truncated"),
        (b"", "empty"),
    ],
)
def test_fault_is_named_and_leaves_all_other_rows_as_they_are(faulty: bytes, reason: str | None) -> None:
    values = many()
    sound, _ = decoded(values)
    events, protocol = decoded([*values[:50], faulty, *values[51:]])
    assert events[:50] + events[51:] == sound[:50] + sound[51:]
    found = events[50]
    assert (found.reason if isinstance(found, Failure) else None) == reason
    assert events[50] == decoded([faulty])[0][0]
    # Halves are read until few rows are left.
    assert len(protocol.read_alone) < 20


def test_event_that_is_no_row_stays_between_the_rows() -> None:
    values = many(20)
    events, _ = decoded([*values[:10], b'{"ts":10}', *values[10:]])
    assert events[10] == Resolved(commit_ts=10)
    assert [type(event) for event in events].count(RowChange) == 20


def test_names_that_no_struct_can_have_are_read_and_written_as_they_are() -> None:
    rows = ['{"a\\"b":"1","c\\\\":"x"}', '{"a\\"b":"2","c\\\\":null}', '{"a\\"b":"3"}']
    events, protocol = decoded([message(ts, row) for ts, row in enumerate([*rows, rows[0]], 1)])
    images = [event.after for event in events if isinstance(event, RowChange)]
    assert images == [{'a"b': "1", "c\\": "x"}, {'a"b': "2", "c\\": None}, {'a"b': "3"}, {'a"b': "1", "c\\": "x"}]
    assert 0 in protocol.read_alone
