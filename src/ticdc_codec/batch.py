"""Messages in, Arrow columns out: what every protocol's decoder shares.

A decoder adds events to ``Events``, message by message (``collect``) or as columns of row changes (``Rows``), and
``in_order`` gives one RecordBatch of ``event.EVENTS``. A message decodes whole or becomes one row of kind ``error``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import EVENTS, Column, Kind, Layout, Op
from ticdc_codec.tso import LOGICAL_BITS, MAX_TSO, MAX_WATERMARK

Text = str | bytes
"""UTF-8: codecs hand over slices of the wire as bytes where they can."""

_LOGICAL_BITS = pa.scalar(LOGICAL_BITS, pa.uint64())
_FEW = 16
"""Row changes for each other event from which on the row changes are moved as runs."""
_NO_LAYOUT = Layout(None, None, (), None)
_NO_IMAGE = (None,) * 7
_NO_DDL = (None, None)
_NO_ERROR = (None, None, None)


class Events:
    """The events of a batch of messages, in wire order."""

    __slots__ = ("_lines", "message")

    def __init__(self) -> None:
        self.message = 0
        """Index of the message that is being decoded, in its batch."""
        self._lines: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._lines)

    def row(  # noqa: PLR0913, PLR0917
        self,
        op: Op,
        commit_ts: int | None,
        commit_ms: int | None,
        layout: Layout,
        table_id: int | None,
        handle_key: Text | None,
        old_handle_key: Text | None,
        before: Text | None,
        after: Text | None,
        handle_only: bool,
    ) -> None:
        """Add a row change, its texts as in ``event``. ``commit_ms`` is used only where ``commit_ts`` is None."""
        self._lines.append(
            (self.message, Kind.ROW, commit_ts, commit_ms, layout, op, table_id, handle_key, old_handle_key, before,
             after, handle_only, _NO_DDL, _NO_ERROR)
        )  # fmt: skip

    def ddl(
        self, commit_ts: int | None, commit_ms: int | None, layout: Layout, query: str, ddl_type: str | None
    ) -> None:
        """Add a DDL; ``layout`` has its database and table, and the table's columns and version after it where the
        protocol sends them."""
        self._lines.append(
            (self.message, Kind.DDL, commit_ts, commit_ms, layout, *_NO_IMAGE, (query, ddl_type), _NO_ERROR)
        )

    def resolved(self, commit_ts: int) -> None:
        """Add a watermark."""
        self._lines.append((self.message, Kind.RESOLVED, commit_ts, None, _NO_LAYOUT, *_NO_IMAGE, _NO_DDL, _NO_ERROR))

    def bootstrap(self, layout: Layout) -> None:
        """Add a table's schema: the layout's columns and version."""
        self._lines.append((self.message, Kind.BOOTSTRAP, None, None, layout, *_NO_IMAGE, _NO_DDL, _NO_ERROR))

    def error(self, error: DecodeError) -> None:
        """Add the failure of a message that did not decode."""
        layout = Layout(error.database, error.table, (), None)
        fault = (error.reason, error.detail, error.offset)
        self._lines.append((self.message, Kind.ERROR, None, None, layout, *_NO_IMAGE, _NO_DDL, fault))

    def drop_from(self, length: int) -> None:
        """Remove all events but the first ``length``: those of a message that failed half-way."""
        del self._lines[length:]

    def finish(self) -> pa.RecordBatch:
        """The events as columns of EVENTS, in the order of their messages."""
        if not self._lines:
            return pa.RecordBatch.from_pylist([], schema=EVENTS)
        self._lines.sort(key=itemgetter(0))
        # zip(*lines) would make one iterator for each event, which the garbage collector then visits: 2 us an event.
        return _columns([[*map(itemgetter(place), self._lines)] for place in range(len(self._lines[0]))])


def _columns(lists: list[list[Any]]) -> pa.RecordBatch:
    message, kind, commit_ts, commit_ms, layouts, op, table_id, key, old_key, before, after, handle_only, ddl, error = (
        lists
    )
    databases, tables, columns, versions = _layout_columns(layouts)
    message_array = pa.array(message, pa.int32())
    tso = pa.array(commit_ts, pa.uint64())
    query, ddl_type = ([*map(itemgetter(place), ddl)] for place in range(len(_NO_DDL)))
    reason, detail, offset = ([*map(itemgetter(place), error)] for place in range(len(_NO_ERROR)))
    return pa.RecordBatch.from_arrays(
        [
            message_array,
            _index_in_message(message_array),
            pa.array(kind, pa.string()),
            pa.array(op, pa.string()),
            tso.view(pa.int64()),
            _times(tso, pa.array(commit_ms, pa.int64())),
            databases,
            tables,
            pa.array(table_id, pa.int64()),
            pa.array(key, pa.string()),
            pa.array(old_key, pa.string()),
            pa.array(before, pa.string()),
            pa.array(after, pa.string()),
            columns,
            versions,
            pa.array(handle_only, pa.bool_()),
            pa.array(query, pa.string()),
            pa.array(ddl_type, pa.string()),
            pa.array(reason, pa.string()),
            pa.array(detail, pa.string()),
            pa.array(offset, pa.int64()),
        ],
        schema=EVENTS,
    )


def _times(tso: pa.Array, commit_ms: pa.Array) -> pa.Array:
    milliseconds = pc.coalesce(pc.shift_right(tso, _LOGICAL_BITS).cast(pa.int64()), commit_ms)
    return pc.multiply(milliseconds, 1000).cast(EVENTS.field("commit_time").type)


def _layout_columns(layouts: list[Layout]) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """database, table, columns and version of each event: each layout's values are made once and taken by index."""
    number: dict[Layout, int] = {}
    numbers = pa.array([number.setdefault(layout, len(number)) for layout in layouts], pa.int32())
    texts = ([x.database for x in number], [x.table for x in number], [x.text for x in number])
    database, table, text = (pa.array(column, pa.string()).take(numbers) for column in texts)
    return database, table, text, pa.array([x.version for x in number], pa.int64()).take(numbers)


def _index_in_message(message: pa.Array) -> pa.Array:
    """0, 1, 2 … within each run of equal message indices, which ascend."""
    number = message.to_numpy()
    starts = number.searchsorted(number, side="left")
    return pa.array(np.arange(len(number)) - starts, pa.int32())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Row changes as columns, one item a row, from a decoder that reads all messages of a batch at once."""

    message: npt.NDArray[np.int32]
    index: npt.NDArray[np.int64]
    """Index of the event in its message."""
    op: pa.Array
    commit_ts: pa.Array
    commit_ms: pa.Array | None = None
    """Used only where commit_ts is null."""
    layouts: list[Layout]
    layout: npt.NDArray[np.int64]
    """Index of each row's layout in ``layouts``."""
    table_id: pa.Array
    handle_key: pa.Array
    old_handle_key: pa.Array
    before: pa.Array
    after: pa.Array
    handle_only: pa.Array | None = None
    """None means False in all rows."""


def in_order(rows: Rows | None, others: Events, index: Sequence[int]) -> pa.RecordBatch:
    """Row changes and other events as EVENTS columns, in the order of message and index.

    ``index`` is that of ``others`` when they are in the order of their messages.
    """
    if rows is not None and not len(others):
        return _row_columns(rows)
    batch = others.finish()
    if rows is not None:
        if len(others) * _FEW <= len(rows.message) and not np.isin(batch["message"], rows.message).any():
            return _interleaved(_row_columns(rows), batch)
        batch = pa.RecordBatch.from_arrays(
            [pa.concat_arrays(both) for both in zip(batch, _row_columns(rows), strict=True)], schema=EVENTS
        )
    numbers = np.append(np.array(index, np.int64), () if rows is None else rows.index)
    batch = batch.take(pa.array(np.lexsort((numbers, batch["message"]))))
    place = EVENTS.get_field_index("index")
    return batch.set_column(place, EVENTS.field(place), _index_in_message(batch["message"]))


def _interleaved(rows: pa.RecordBatch, others: pa.RecordBatch) -> pa.RecordBatch:
    """Both merged in the order of their messages, of which none has events in both. Row changes are moved as runs."""
    # positions[o]: number of row changes before the other event o. cuts: where runs of equal positions begin.
    positions = np.searchsorted(rows["message"], others["message"])
    cuts = [0, *(np.flatnonzero(np.diff(positions)) + 1).tolist(), len(positions)]
    pieces, begin = [], 0
    for first, last in pairwise(cuts):
        end = int(positions[first])
        pieces += [rows.slice(begin, end - begin), others.slice(first, last - first)]
        begin = end
    return pa.concat_batches([*pieces, rows.slice(begin)])


def _row_columns(rows: Rows) -> pa.RecordBatch:
    layout = pa.array(rows.layout)
    commit_ms = pa.nulls(len(layout), pa.int64()) if rows.commit_ms is None else rows.commit_ms
    handle_only = pa.repeat(pa.scalar(False), len(layout)) if rows.handle_only is None else rows.handle_only
    names = ("database", "table", "text")
    texts = (pa.array([getattr(each, name) for each in rows.layouts], pa.string()).take(layout) for name in names)
    versions = pa.array([each.version for each in rows.layouts], pa.int64()).take(layout)
    columns = dict(zip(("database", "table", "columns"), texts, strict=True)) | {
        "schema_version": versions,
        "message": pa.array(rows.message),
        "index": pa.array(rows.index, pa.int32()),
        "kind": pa.repeat(pa.scalar(Kind.ROW, pa.string()), len(layout)),
        "op": rows.op,
        "commit_ts": rows.commit_ts.view(pa.int64()),
        "commit_time": _times(rows.commit_ts, commit_ms),
        "table_id": rows.table_id,
        "handle_key": rows.handle_key,
        "old_handle_key": rows.old_handle_key,
        "before": rows.before,
        "after": rows.after,
        "handle_only": handle_only,
    }
    arrays = [columns.get(field.name, pa.nulls(len(layout), field.type)) for field in EVENTS]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENTS)


SchemaName = tuple[str, str, int]
"""Database, table and schema version: RENAME TABLE does not change the version (wire.md 1.3.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderContext:
    """What a decoder looks up beside the messages. The mappings may read from a store when they are asked."""

    objects: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))
    """Claim-check objects: content by location as the message names it."""
    schemas: Mapping[SchemaName, tuple[Column, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Columns by schema name, for rows that do not describe them (Simple) or not all of them (Debezium, version 0)."""


NO_CONTEXT = DecoderContext()


DecodeMessage = Callable[[bytes | None, bytes | None, Events], None]
"""Adds the events of one message (key, value), or raises DecodeError."""


DecodeBatch = Callable[[Iterable[bytes | None], Iterable[bytes | None]], pa.RecordBatch]
"""Decodes messages (keys, values) into EVENTS columns; a message that is not valid is one row of kind ``error``."""


def collect(decode: DecodeMessage, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> Events:
    """The events of messages; a message that raises DecodeError becomes one event of kind ``error``."""
    out = Events()
    for number, (key, value) in enumerate(zip(keys, values, strict=True)):
        collect_one(decode, number, key, value, out)
    return out


def collect_one(decode: DecodeMessage, number: int, key: bytes | None, value: bytes | None, out: Events) -> None:
    """Add the events of one message, or one event of kind ``error`` if it raises DecodeError."""
    out.message = number
    length = len(out)
    try:
        decode(key, value, out)
    except DecodeError as error:
        out.drop_from(length)
        out.error(error)


def checked_tso(value: int) -> int:
    """The commit_ts of a row change or DDL. Raises DecodeError ``out_of_range`` outside 0 to MAX_TSO."""
    return _checked(value, "commit_ts", MAX_TSO)


def checked_watermark(value: int) -> int:
    """The commit_ts of a watermark. Raises DecodeError ``out_of_range`` outside 0 to MAX_WATERMARK."""
    return _checked(value, "watermark", MAX_WATERMARK)


def _checked(value: int, name: str, most: int) -> int:
    if not 0 <= value <= most:
        raise DecodeError("out_of_range", f"a {name} is 0 to {most}, found {value}")
    return value
