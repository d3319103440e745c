"""Messages in, Arrow columns out: what every protocol's decoder shares.

A decoder has row changes as columns (``RowBatch``) and all other events one by one (``Events``). ``in_order`` makes of
both one RecordBatch of ``event.EVENTS``. A message decodes whole or becomes one row of kind ``error``.
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
from ticdc_codec.event import EVENTS, Column, Kind, Layout
from ticdc_codec.tso import LOGICAL_BITS, MAX_TSO, MAX_WATERMARK

_FEW = 16
"""Row changes for each other event from which on the row changes are moved as runs."""
_NO_LAYOUT = Layout(None, None, (), None)


class Events:
    """The events of a batch that are no row changes, in any order."""

    __slots__ = ("_lines", "message")

    def __init__(self) -> None:
        self.message = 0
        """Index of the message that is being decoded, in its batch."""
        self._lines: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._lines)

    def ddl(
        self, commit_ts: int | None, commit_ms: int | None, layout: Layout, query: str, ddl_type: str | None
    ) -> None:
        """Adds a DDL; ``layout`` has its database and table, and the table's columns and version after it where the
        protocol sends them. ``commit_ms`` is used only where ``commit_ts`` is None."""
        self._add(Kind.DDL, layout, commit_ts, commit_ms, ddl=(query, ddl_type))

    def resolved(self, commit_ts: int) -> None:
        """Adds a watermark."""
        self._add(Kind.RESOLVED, _NO_LAYOUT, commit_ts)

    def bootstrap(self, layout: Layout) -> None:
        """Adds a table's schema: the layout's columns and version."""
        self._add(Kind.BOOTSTRAP, layout)

    def error(self, error: DecodeError) -> None:
        """Adds the failure of a message that did not decode."""
        layout = Layout(error.database, error.table, (), None)
        self._add(Kind.ERROR, layout, fault=(error.reason, error.detail, error.offset))

    def _add(
        self,
        kind: Kind,
        layout: Layout,
        commit_ts: int | None = None,
        commit_ms: int | None = None,
        ddl: tuple[str | None, str | None] = (None, None),
        fault: tuple[str | None, str | None, int | None] = (None, None, None),
    ) -> None:
        self._lines.append((self.message, kind, layout, commit_ts, commit_ms, *ddl, *fault))

    def finish(self) -> pa.RecordBatch:
        """Returns the events as columns of EVENTS, in the order of their messages."""
        if not self._lines:
            return pa.RecordBatch.from_pylist([], schema=EVENTS)
        self._lines.sort(key=itemgetter(0))
        # Lists with one item an event, a list for each field of ``_add``.
        # zip(*lines) would make one iterator for each event, which the garbage collector then visits: 2 us an event.
        fields = [[*map(itemgetter(number), self._lines)] for number in range(len(self._lines[0]))]
        messages, kinds, layouts, commit_ts, commit_ms, queries, ddl_types, reasons, details, offsets = fields
        message, tso = pa.array(messages, pa.int32()), pa.array(commit_ts, pa.uint64())
        columns = {
            "message": message,
            "index": _index_in_message(message),
            "kind": pa.array(kinds, pa.string()),
            "commit_ts": tso.view(pa.int64()),
            "commit_time": _times(tso, pa.array(commit_ms, pa.int64())),
            "query": pa.array(queries, pa.string()),
            "ddl_type": pa.array(ddl_types, pa.string()),
            "reason": pa.array(reasons, pa.string()),
            "detail": pa.array(details, pa.string()),
            "error_offset": pa.array(offsets, pa.int64()),
        }
        # numbers[e]: index of event e's layout among the different ones.
        different: dict[Layout, int] = {}
        numbers = pa.array([different.setdefault(layout, len(different)) for layout in layouts], pa.int32())
        return _batch(columns | _layout_columns([*different], numbers), len(message))


def _layout_columns(layouts: Sequence[Layout], numbers: pa.Array) -> dict[str, pa.Array]:
    """Returns database, table, columns and version of the events' layouts; ``numbers`` has each event's index in
    ``layouts``.

    Each layout's values are made once and taken by index.
    """
    values = {
        "database": pa.array([layout.database for layout in layouts], pa.string()),
        "table": pa.array([layout.table for layout in layouts], pa.string()),
        "columns": pa.array([layout.text for layout in layouts], pa.string()),
        "schema_version": pa.array([layout.version for layout in layouts], pa.int64()),
    }
    return {name: column.take(numbers) for name, column in values.items()}


def _batch(columns: Mapping[str, pa.Array], count: int) -> pa.RecordBatch:
    """Returns ``count`` rows of EVENTS; columns that are not given are null."""
    arrays = [columns.get(field.name, pa.nulls(count, field.type)) for field in EVENTS]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENTS)


def _times(tso: pa.Array, commit_ms: pa.Array) -> pa.Array:
    # A TSO is milliseconds and a logical counter of 18 bits; without one Canal-JSON's es has the milliseconds (1.4.1).
    milliseconds = pc.coalesce(pc.shift_right(tso, pa.scalar(LOGICAL_BITS, pa.uint64())).cast(pa.int64()), commit_ms)
    return pc.multiply(milliseconds, 1000).cast(EVENTS.field("commit_time").type)


def _index_in_message(message: pa.Array) -> pa.Array:
    """Returns 0, 1, 2 … within each run of equal message indices, which ascend."""
    # starts[e]: index of the first event of event e's message.
    number = message.to_numpy()
    starts = number.searchsorted(number, side="left")
    return pa.array(np.arange(len(number)) - starts, pa.int32())


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
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


def numbered_from(first: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns events whose messages are numbered from ``first`` instead of 0."""
    at = EVENTS.get_field_index("message")
    return batch.set_column(at, EVENTS.field(at), pc.add(batch["message"], pa.scalar(first, pa.int32())))


def in_order(rows: RowBatch | None, others: Events, index: Sequence[int]) -> pa.RecordBatch:
    """Merges row changes and other events, as EVENTS columns, in the order of message and index.

    ``index`` is that of ``others`` when they are in the order of their messages.
    """
    if rows is not None and not len(others):
        return _row_columns(rows)
    batch = others.finish()
    if rows is not None:
        if len(others) * _FEW <= len(rows.message) and not np.isin(batch["message"], rows.message).any():
            return _interleaved(_row_columns(rows), batch)
        batch = pa.RecordBatch.from_arrays(
            [pa.concat_arrays(arrays) for arrays in zip(batch, _row_columns(rows), strict=True)], schema=EVENTS
        )
    # numbers[e]: index of event e in its message. lexsort's last key is the first to sort by: the message.
    numbers = np.append(np.array(index, np.int64), () if rows is None else rows.index)
    batch = batch.take(pa.array(np.lexsort((numbers, batch["message"]))))
    position = EVENTS.get_field_index("index")
    return batch.set_column(position, EVENTS.field(position), _index_in_message(batch["message"]))


def _interleaved(rows: pa.RecordBatch, others: pa.RecordBatch) -> pa.RecordBatch:
    """Merges both in the order of their messages, of which none has events in both. Row changes are moved as runs."""
    # positions[o]: number of row changes before the other event o. cuts: where runs of equal positions begin.
    positions = np.searchsorted(rows["message"], others["message"])
    cuts = [0, *(np.flatnonzero(np.diff(positions)) + 1).tolist(), len(positions)]
    pieces, begin = [], 0
    for first, last in pairwise(cuts):
        end = int(positions[first])
        pieces += [rows.slice(begin, end - begin), others.slice(first, last - first)]
        begin = end
    return pa.concat_batches([*pieces, rows.slice(begin)])


def _row_columns(rows: RowBatch) -> pa.RecordBatch:
    count = len(rows.message)
    commit_ms = pa.nulls(count, pa.int64()) if rows.commit_ms is None else rows.commit_ms
    columns = {
        "message": pa.array(rows.message),
        "index": pa.array(rows.index, pa.int32()),
        "kind": pa.repeat(pa.scalar(Kind.ROW, pa.string()), count),
        "op": rows.op,
        "commit_ts": rows.commit_ts.view(pa.int64()),
        "commit_time": _times(rows.commit_ts, commit_ms),
        "table_id": rows.table_id,
        "handle_key": rows.handle_key,
        "old_handle_key": rows.old_handle_key,
        "before": rows.before,
        "after": rows.after,
        "handle_only": pa.repeat(pa.scalar(False), count) if rows.handle_only is None else rows.handle_only,
    }
    return _batch(columns | _layout_columns(rows.layouts, pa.array(rows.layout)), count)


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


DecodeBatch = Callable[[Iterable[bytes | None], Iterable[bytes | None]], pa.RecordBatch]
"""Decodes messages (keys, values) into EVENTS columns; a message that is not valid is one row of kind ``error``."""


def checked_tso(value: int) -> int:
    """Returns the commit_ts of a row change or DDL. Raises DecodeError ``out_of_range`` outside 0 to MAX_TSO."""
    return _checked(value, "commit_ts", MAX_TSO)


def checked_watermark(value: int) -> int:
    """Returns the commit_ts of a watermark. Raises DecodeError ``out_of_range`` outside 0 to MAX_WATERMARK."""
    return _checked(value, "watermark", MAX_WATERMARK)


def _checked(value: int, name: str, most: int) -> int:
    if not 0 <= value <= most:
        raise DecodeError("out_of_range", f"a {name} is 0 to {most}, found {value}")
    return value
