"""Messages into events. Rows are read by the engine of ``json_rows``, any other event by itself.

The prefix of a row is the table that the key names, and the value's first bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ticdc_codec.batch import DecodeBatch, DecoderContext, Events, checked_tso, checked_watermark, in_order
from ticdc_codec.bounded_cache import cached
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout, Op
from ticdc_codec.json_images import handle_key_lines, old_handle_keys, without_null
from ticdc_codec.json_rows import JsonRows, RowSpec, RowTexts, SingleRow
from ticdc_codec.json_text import Unreadable, check_replaced_bytes, names_of, quotes_of_all, unreadable
from ticdc_codec.message import MAX_DECOMPRESSED, decompress, stored_message
from ticdc_codec.open_protocol.frame import DDL, RESOLVED, ROW, Key, key_texts, offset_of, read_key, texts_of
from ticdc_codec.open_protocol.table import OpenTableReader, RowMembers, SentLayout, op_of, read_images, sent_cells
from ticdc_codec.options import Compression, SinkOptions
from ticdc_codec.row_builder import RowColumns

_CHUNK = 512
"""Rows that are collected before they are read: they fit a processor's cache."""


class _Ddl(msgspec.Struct, forbid_unknown_fields=True):
    q: str
    t: int


_DDL = msgspec.json.Decoder(_Ddl).decode


def decoder(options: SinkOptions, context: DecoderContext) -> DecodeBatch:
    """Returns a decoder of batches of messages, which reads claim-check objects of ``context``."""
    protocol = OpenRows()
    rows = JsonRows(protocol)

    def decode(keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> pa.RecordBatch:
        messages = [*zip(keys, values, strict=True)]
        batch = _Batch(messages, options.large_message_handle_compression, context.objects, rows)
        protocol.begin(batch.refuse)
        events = batch.decode()
        protocol.begin(None)  # forget the messages
        return events

    return decode


class _Batch:
    """The messages of one batch."""

    __slots__ = ("_compression", "_faults", "_messages", "_objects", "_others", "_rows", "_waiting")

    def __init__(
        self,
        messages: list[tuple[bytes | None, bytes | None]],
        compression: Compression,
        objects: Mapping[str, bytes],
        rows: JsonRows[Any, Any, Any],
    ) -> None:
        self._messages = messages
        self._compression = compression
        self._objects = objects
        self._rows = rows
        self._waiting: list[RowEvent] = []
        self._others: list[tuple[int, int, partial[None]]] = []
        """DDLs and watermarks: numbers of message and in the message, and what adds them to ``Events``."""
        self._faults: dict[int, tuple[int, DecodeError]] = {}
        """By number of message, the fault and the number in the message of its first event that has one."""

    def decode(self) -> pa.RecordBatch:
        """Returns the events of the messages."""
        for number, (key, value) in enumerate(self._messages):
            try:
                self._message(number, key, value)
            except DecodeError as error:
                self._faults[number] = -1, error
            if len(self._waiting) >= _CHUNK:
                self._read_rows()
        self._read_rows()
        return in_order(self._rows.finish(self._faults.keys()), *self._add_others())

    def _read_rows(self) -> None:
        self._rows.add(self._waiting)
        self._waiting = []

    def _add_others(self) -> tuple[Events, list[int]]:
        """Returns all events that are no rows, and their numbers in the message."""
        out = Events()
        faults = [(number, 0, partial(Events.error, error=error)) for number, (_, error) in self._faults.items()]
        others = [other for other in self._others if other[0] not in self._faults]
        additions = sorted(others + faults, key=lambda other: other[:2])
        for out.message, _, add in additions:
            add(out)
        return out, [index for _, index, _ in additions]

    def _message(self, number: int, key: bytes | None, value: bytes | None) -> None:
        """Keeps the events of a message. Raises DecodeError."""
        keys = [*map(read_key, key_texts(key))]
        try:
            texts = texts_of(value or b"")
            _check_count(len(keys), len(texts))
            for index, (event_key, text) in enumerate(zip(keys, self._decompressed(texts), strict=True)):
                event = RowEvent(number, index, event_key, text)
                if event_key.t == ROW and event_key.ccl is UNSET:
                    self._add_row(event)
                else:
                    self._other(event)
        except DecodeError as error:
            raise _named(error, keys) from None

    def _add_row(self, event: RowEvent) -> None:
        if not event.key.scm or not event.key.tbl:
            raise DecodeError("missing_member", "expected scm and tbl in the key of a row")
        self._waiting.append(event)

    def _decompressed(self, texts: list[bytes]) -> Iterable[bytes]:
        """Returns the texts of a message, each compressed by itself (wire.md 1.2.6). A watermark has none."""
        if self._compression is Compression.NONE:
            return texts
        rest, decompressed = MAX_DECOMPRESSED, []
        for text in texts:
            try:
                decompressed.append(decompress(text, self._compression, rest) if text else text)
            except DecodeError as error:
                raise DecodeError(error.reason, error.detail, offset=offset_of(texts, len(decompressed))) from None
            rest -= len(decompressed[-1])
        return decompressed

    def _other(self, event: RowEvent) -> None:
        """Keeps a DDL, a watermark or a row that is in claim-check storage."""
        key, text = event.key, event.text
        try:
            if key.t == ROW and key.ccl is not UNSET:
                self._add_row(replace(event, text=self._claimed(key, key.ccl, text)))
            elif key.t == DDL:
                self._others.append((event.message, event.index, _ddl(key, text)))
            elif key.t == RESOLVED:
                self._others.append((event.message, event.index, _resolved(key, text)))
            else:
                self.refuse(event, DecodeError("unknown_type", f"expected t of 1, 2 or 3 in the key, found {key.t}"))
        except DecodeError as error:
            self.refuse(event, error)

    def refuse(self, event: RowEvent, error: DecodeError) -> None:
        """Remembers that a row has a fault, and with it its message."""
        key, value = self._messages[event.message]
        if self._faults.get(event.message, (event.index,))[0] < event.index:
            return
        texts = texts_of(value or b"")
        if event.text == texts[event.index]:
            error.offset = offset_of(texts, event.index) + (error.offset or 0)
        else:  # it came out of a compressed text or of an object
            error.offset = None
        self._faults[event.message] = event.index, _named(error, [*map(read_key, key_texts(key))])

    def _claimed(self, key: Key, location: str, text: bytes) -> bytes:
        """Returns the whole row in claim-check storage, in place of its handle key (wire.md 1.2.6). Raises
        DecodeError."""
        try:
            content = self._objects[location]
        except KeyError:
            raise DecodeError("claim_check_missing", f"expected an object at {location}, found none") from None
        try:
            stored = stored_message(content)
            keys = [*map(read_key, key_texts(stored.key))]
            texts = [decompress(each, self._compression) for each in texts_of(stored.value or b"")]
            same = len(keys) == len(texts) == 1 and _is_of(keys[0], key) and _is_of_kind(texts[0], text)
        except DecodeError as error:
            raise DecodeError(error.reason, f"in the object at {location}: {error.detail}") from None
        if not same:
            raise DecodeError("claim_check_mismatch", f"expected the row {key} at {location}, found {keys[:2]}")
        return texts[0]


def _check_count(keys: int, values: int) -> None:
    if keys != values:
        reason = "truncated" if keys > values else "trailing_bytes"
        raise DecodeError(reason, f"expected {keys} events, as in the key, found {values}")


def _named(error: DecodeError, keys: list[Key]) -> DecodeError:
    """Returns the error with its table if all events of its message are rows of this one table, else without one."""
    tables = {(key.t, key.scm or None, key.tbl or None) for key in keys}
    kind, database, table = tables.pop() if len(tables) == 1 else (None, None, None)
    is_named = kind == ROW and database is not None and table is not None
    error.database, error.table = (database, table) if is_named else (None, None)
    return error


def _is_of(stored: Key, key: Key) -> bool:
    """True if a stored message is the expected one: the whole row."""
    whole = stored.ccl is UNSET and stored.ohk is not True
    return whole and (stored.ts, stored.scm, stored.tbl, stored.t) == (key.ts, key.scm, key.tbl, key.t)


def _is_of_kind(stored: bytes, text: bytes) -> bool:
    """True if a stored row has the images that its handle key has. Raises DecodeError.

    It may have ``p`` besides: with only-output-updated-columns that of the handle key is empty, and tiflow drops it.
    """
    return _members(text) <= _members(stored)


def _members(text: bytes) -> set[str]:
    try:
        return {*read_images(text)}
    except Unreadable as error:
        raise unreadable(error, text) from None


def _ddl(key: Key, text: bytes) -> partial[None]:
    """Returns the function that adds a DDL. Raises DecodeError."""
    try:
        ddl = _DDL(text)
        names_of(text)
    except Unreadable as error:
        raise unreadable(error, text) from None
    # tiflow leaves empty names out, ticdc writes "" (wire.md 1.2.2).
    layout = Layout(key.scm or None, key.tbl or None, (), None)
    return partial(
        Events.ddl, commit_ts=checked_tso(key.ts), commit_ms=None, layout=layout, query=ddl.q, ddl_type=str(ddl.t)
    )


def _resolved(key: Key, text: bytes) -> partial[None]:
    """Returns the function that adds a watermark, whose text has length 0 (wire.md 1.2.1). Raises DecodeError."""
    if text:
        raise DecodeError("trailing_bytes", f"expected no value of a watermark, found {len(text)} bytes")
    return partial(Events.resolved, commit_ts=checked_watermark(key.ts))


class RowEvent(msgspec.Struct, frozen=True, gc=False):
    """A row that is to be read."""

    message: int
    """Number of its message in the batch."""
    index: int
    """Number of the event in its message."""
    key: Key
    text: bytes
    """Its JSON, decompressed."""


Refuse = Callable[[RowEvent, DecodeError], None]

_Prefix = tuple[str | UnsetType, str | UnsetType, bool, bytes]
"""Database, table, whether it is a whole table, first bytes: rows with equal ones mostly have the same columns."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows of one table, of all operations."""

    table: OpenTableReader


class OpenRows(RowSpec[RowEvent, _Group, RowTexts]):
    """Rows of messages that may have several."""

    def __init__(self) -> None:
        self._by_layout: dict[SentLayout, OpenTableReader] = {}
        self._refuse: Refuse | None = None

    def begin(self, refuse: Refuse | None) -> None:
        """Begins a batch, in which rows that have a fault are passed to ``refuse``; None when it is over."""
        self._refuse = refuse

    def prefixes(self, items: Sequence[RowEvent]) -> list[_Prefix]:
        """Returns what rows of one table and one kind have in common."""
        return [_prefix_of(event.key, event.text) for event in items]

    def cut(self, group: _Group, items: Sequence[RowEvent]) -> RowTexts | None:
        """Returns the whole rows, since what repeats is between the values. None if the columns are in another
        order."""
        texts = [event.text for event in items]
        return RowTexts(texts) if group.table.order.matches(texts, [event.key.ts for event in items]) else None

    def columns(
        self, group: _Group, items: Sequence[RowEvent], texts: RowTexts, rows: list[RowMembers]
    ) -> list[RowColumns]:
        """Returns the rows of each operation."""
        ops = [*map(op_of, rows)]
        return [
            _columns(op, group.table, items, texts.texts, rows, [at for at, each in enumerate(ops) if each is op])
            for op in dict.fromkeys(ops)
        ]

    def single(self, item: RowEvent) -> SingleRow[RowEvent, _Group, RowTexts]:
        """Returns the row of a table that need not be known. Raises DecodeError."""
        prefix = _prefix_of(item.key, item.text)
        partitioned = not prefix[2]
        text, cells, lost = sent_cells(item.text, partitioned=partitioned)
        sent = SentLayout(str(prefix[0]), str(prefix[1]), partitioned, cells, lost)
        table = cached(self._by_layout, sent, lambda: OpenTableReader(sent))
        return SingleRow(
            item=item,
            group=_Group(table),
            texts=RowTexts([text]),
            prefix=None if lost else prefix,
            value=text,
            names_checked=True,
        )

    def refuse(self, item: RowEvent, error: DecodeError) -> None:
        """Refuses the row, and with it its message."""
        assert self._refuse is not None, "a batch has begun"
        self._refuse(item, error)


def _prefix_of(key: Key, text: bytes) -> _Prefix:
    return key.scm, key.tbl, key.ptn is UNSET, text[:4]


def _columns(
    op: Op,
    table: OpenTableReader,
    items: Sequence[RowEvent],
    texts: Sequence[bytes],
    rows: list[RowMembers],
    chosen: list[int],
) -> RowColumns:
    """Returns the rows at the indices ``chosen``, which are of one operation. Raises DecodeError."""
    events = [items[at] for at in chosen]
    whole = [rows[at].d if op is Op.DELETE else rows[at].u for at in chosen]
    table.check_key(whole)
    new, quotes = table.texts(whole)
    old, old_quotes = table.texts([rows[at].p for at in chosen]) if op is Op.UPDATE else ([], 0)
    members = 2 if op is Op.UPDATE else 1
    chosen_texts = [texts[at] for at in chosen]
    _check_names(chosen_texts, quotes + old_quotes + 2 * len(chosen) * members)
    keys = [event.key for event in events]
    new_key, old_key = without_null(table.key_columns(new)), without_null(table.key_columns(old)) if old else None
    images, old_images = table.lines(new), table.lines(old) if old else b""
    check_replaced_bytes(chosen_texts, images, old_images)
    return RowColumns(
        messages=[event.message for event in events],
        index=[event.index for event in events],
        op=op,
        layout=table.layout,
        commit_ts=_checked_tsos([key.ts for key in keys]),
        handle_keys=handle_key_lines(new_key),
        old_handle_keys=None if old_key is None else old_handle_keys(old_key, new_key),
        before=images if op is Op.DELETE else old_images,
        after=b"" if op is Op.DELETE else images,
        # Only the handle key is in the value (wire.md 1.2.2); a row in claim-check storage is whole.
        handle_only=[key.ohk is True and key.ccl is UNSET for key in keys],
        table_ids=None if keys[0].ptn is UNSET else [None if key.ptn is UNSET else key.ptn for key in keys],
    )


def _checked_tsos(values: list[int]) -> list[int]:
    """Returns the values themselves. Raises DecodeError if one is no commit_ts."""
    checked_tso(min(values))
    checked_tso(max(values))
    return values


def _check_names(texts: Sequence[bytes], quotes: int) -> None:
    """Raises DecodeError ``duplicate_name`` if an object has a name twice: rows then have more quotes than these."""
    if quotes_of_all(texts) != quotes:
        raise DecodeError("duplicate_name", "expected each name once in the objects of a row")
