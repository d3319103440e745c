"""Craft messages to events: a batch is decoded as a whole, one part of all its messages after the other.

A check that fails refuses all messages for which it fails (RefusedError); the batch is then decoded again without them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ticdc_codec.batch import DecodeBatch, DecoderContext, Events, RowBatch, in_order
from ticdc_codec.bounded_cache import cached
from ticdc_codec.craft.frame import (
    NO_TERM,
    EventType,
    GroupType,
    Header,
    MessageBatch,
    RefusedError,
    Sizes,
    read_groups,
    read_header,
    read_sizes,
)
from ticdc_codec.craft.group import ColumnGroups, LayoutCache, Terms, read_terms, text_of
from ticdc_codec.craft.value import ValueReader
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, Op
from ticdc_codec.number import Int64s, read_uvarint
from ticdc_codec.options import SinkOptions

_NONE = -1
_OPS = (Op.INSERT, Op.DELETE, Op.UPDATE)


def decoder(options: SinkOptions, context: DecoderContext) -> DecodeBatch:
    """Returns a decoder of batches of Craft messages. ``context`` is not used: rows describe all their columns."""
    del context
    return _Decoder(options).decode


class _Decoder:
    """Caches dictionaries and layouts, which repeat from message to message."""

    def __init__(self, options: SinkOptions) -> None:
        self._layouts = LayoutCache(options.craft_float)
        self._terms: dict[bytes, Terms] = {}

    def decode(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> pa.RecordBatch:
        """Returns the messages' events as EVENTS columns; a message that is not valid is one row of kind ``error``.

        The batch is decoded once for each check that refuses messages, and once more.
        """
        values = [value for _, value in zip(keys, values, strict=True)]
        refused = {
            number: DecodeError("truncated", "a message without bytes", offset=0)
            for number, value in enumerate(values)
            if not value
        }
        while True:
            try:
                return self._decode(MessageBatch(values, refused), refused)
            except RefusedError as fault:
                refused |= fault.errors

    def _decode(self, messages: MessageBatch, refused: Mapping[int, DecodeError]) -> pa.RecordBatch:
        others = Events()
        for number, error in refused.items():
            others.message = number
            others.error(error)
        if not len(messages):
            return in_order(None, others, [0] * len(refused))
        sizes = read_sizes(messages)
        terms = self._all_terms(messages, sizes)
        header = read_header(messages, sizes, [len(each.names) for each in terms])
        try:
            positions = _add_others(messages, sizes, header, terms, others) + [(number, 0) for number in refused]
            index = [number for _, number in sorted(positions)]
            return in_order(self._rows(messages, sizes, header, terms), others, index)
        except RefusedError as fault:
            _name_tables(fault.errors, messages, sizes, header, terms)
            raise

    def _all_terms(self, messages: MessageBatch, sizes: Sizes) -> list[Terms]:
        """Returns each message's dictionary."""
        terms, errors = [], {}
        positions = zip(messages.numbers, messages.data, sizes.dictionary.tolist(), sizes.tables.tolist(), strict=True)
        for number, data, start, end in positions:
            try:
                terms.append(self._terms_of(data[start:end], start))
            except DecodeError as error:
                errors[number] = error
        if errors:
            raise RefusedError(errors)
        return terms

    def _terms_of(self, digits: bytes, start: int) -> Terms:
        return cached(self._terms, digits, lambda: Terms(read_terms(digits, start) if digits else ()))

    def _rows(self, messages: MessageBatch, sizes: Sizes, header: Header, terms: list[Terms]) -> RowBatch | None:
        """Returns the row changes; None without any."""
        rows = np.flatnonzero(header.types == EventType.ROW)
        # rows[r]: event of row r. counts[r], first_size[r]: its number of column groups, bytes of the first of them.
        counts, first_size = read_groups(messages, sizes, rows)
        if not len(rows):
            return None
        groups = self._groups(messages, sizes, header, terms, event=rows, counts=counts, first_size=first_size)
        # after[r], before[r]: column group of row r's image, -1 for none.
        after, before = _images(groups, np.cumsum(counts) - counts, counts == 2)
        images, keys = ValueReader(messages, groups).objects()
        at_after, at_before = _indices(after), _indices(before)
        key, old_key = keys.take(pa.array(np.where(after == _NONE, before, after))), keys.take(at_before)
        partition = header.partitions[rows]
        return RowBatch(
            # sizes.message numbers the messages that are left; messages.numbers has their indices in the batch.
            message=np.array(messages.numbers, np.int32)[sizes.message[rows]],
            index=sizes.index[rows],
            op=pa.array(_OPS, pa.string()).take(
                pa.array((before != _NONE) * 1 + ((before != _NONE) & (after != _NONE)))
            ),
            commit_ts=pa.array(header.commit_ts[rows]),
            layouts=[layout.event_layout for layout in groups.layouts],
            layout=groups.layout_index[np.maximum(after, before * (after == _NONE))],
            table_id=pa.array(partition, mask=partition == NO_TERM),
            handle_key=key,
            old_handle_key=pc.if_else(pc.not_equal(key, old_key), old_key, None),
            before=images.take(at_before),
            after=images.take(at_after),
        )

    def _groups(
        self,
        messages: MessageBatch,
        sizes: Sizes,
        header: Header,
        terms: list[Terms],
        *,
        event: Int64s,
        counts: Int64s,
        first_size: Int64s,
    ) -> ColumnGroups:
        """Returns the column groups of rows, New before Old: of each row its ``event``, how many groups it has, and the
        bytes of the first one."""
        # owner[g], start[g], end[g]: event of group g, and its bytes in the message. A row's first group ends after
        # first_size bytes, where the second begins.
        # second: the groups that are their row's second one.
        owner = np.repeat(event, counts)
        end = sizes.end[owner]
        start = sizes.start[owner]
        second = np.cumsum(counts)[counts == 2] - 1
        start[second] += first_size[counts == 2]
        end[second - 1] = start[second]
        return ColumnGroups(
            messages,
            terms,
            self._layouts,
            sizes.message[owner],
            header.databases[owner],
            header.tables[owner],
            start,
            end,
        )


def _images(groups: ColumnGroups, first: Int64s, double: np.ndarray) -> tuple[Int64s, Int64s]:
    """Returns the column group of each row's image after and before the change, -1 for none.

    A row has a New group, an Old group, or both in this order; the Old one may lack columns (wire.md 1.1.2).
    """
    # kind[r]: type of row r's first group. double: the rows that have two.
    kind = groups.kinds[first]
    bad = (kind < GroupType.NEW) | (kind > GroupType.OLD)
    bad[double] = (kind[double] != GroupType.NEW) | (groups.kinds[first[double] + 1] != GroupType.OLD)
    groups.refuse(bad, "group type 1, 2 or both in this order", first, kind)
    # differs: rows whose two groups have different layouts.
    differs = np.flatnonzero(double)
    differs = differs[groups.layout_index[first[differs]] != groups.layout_index[first[differs] + 1]]
    new, old = (
        [set(groups.layouts[n].event_layout.columns) for n in groups.layout_index[first[differs] + k]] for k in (0, 1)
    )
    bad = np.array([not b <= a or _key(b) not in (_key(a), set()) for a, b in zip(new, old, strict=True)], bool)
    wanted = "an Old group with no more columns than the New one, and with all of its handle key or none"
    groups.refuse(bad, wanted, first[differs] + 1)
    after = np.where(kind == GroupType.NEW, first, _NONE)
    return after, np.where(double, first + 1, np.where(kind == GroupType.OLD, first, _NONE))


def _key(columns: set[Column]) -> set[Column]:
    """Returns the handle key's columns of an image."""
    return {column for column in columns if column.key}


def _indices(groups: Int64s) -> pa.Array:
    return pa.array(groups, mask=groups == _NONE)


def _add_others(
    messages: MessageBatch, sizes: Sizes, header: Header, terms: list[Terms], out: Events
) -> list[tuple[int, int]]:
    """Adds DDLs and watermarks (wire.md 1.1.2). Returns the message of each, and its index in the message."""
    errors: dict[int, DecodeError] = {}
    events = np.flatnonzero(header.types != EventType.ROW)
    for event in events.tolist():
        message = int(sizes.message[event])
        out.message = messages.numbers[message]
        data, start, end = messages.data[message], int(sizes.start[event]), int(sizes.end[event])
        commit_ts = int(header.commit_ts[event])
        try:
            if header.types[event] == EventType.RESOLVED:
                _add_resolved(commit_ts, start, end, out)
            else:
                table = _named(terms[message], header, event)
                _add_ddl(data, start, end, commit_ts, table, out)
        except DecodeError as error:
            errors.setdefault(out.message, error)
    if errors:
        raise RefusedError(errors)
    numbers = np.array(messages.numbers)[sizes.message[events]]
    return [*zip(numbers.tolist(), sizes.index[events].tolist(), strict=True)]


def _add_ddl(
    data: bytes, start: int, end: int, commit_ts: int, table: tuple[str | None, str | None], out: Events
) -> None:
    kind, at = read_uvarint(data, start, end)
    size, at = read_uvarint(data, at, end)
    if at + size != end:
        reason = "truncated" if at + size > end else "trailing_bytes"
        raise DecodeError(reason, f"a query of {size} bytes, its body has {end - at} left", offset=at)
    out.ddl(commit_ts, None, Layout(*table, (), None), text_of(data[at:end], at), str(kind))


def _add_resolved(commit_ts: int, start: int, end: int, out: Events) -> None:
    if start != end:
        raise DecodeError("trailing_bytes", f"a watermark has no body, found {end - start} bytes", offset=start)
    out.resolved(commit_ts)


def _named(terms: Terms, header: Header, event: int) -> tuple[str | None, str | None]:
    """Returns the event's database and table."""
    database, table = int(header.databases[event]), int(header.tables[event])
    return terms.names[database] if database >= 0 else None, terms.names[table] if table >= 0 else None


def _name_tables(
    errors: dict[int, DecodeError], messages: MessageBatch, sizes: Sizes, header: Header, terms: list[Terms]
) -> None:
    """Adds the table to the errors of messages that hold only rows of one table."""
    for number, error in errors.items():
        message = bisect_left(messages.numbers, number)
        first = int(sizes.first[message])
        events = slice(first, first + int(sizes.events[message]))
        kinds = (header.types[events], header.databases[events], header.tables[events])
        named = _named(terms[message], header, first)
        if (
            header.types[first] == EventType.ROW
            and None not in named
            and all(len(set(kind.tolist())) == 1 for kind in kinds)
        ):
            error.database, error.table = named
