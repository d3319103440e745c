"""The row changes of a batch, collected as columns; their texts are JSON lines, which are cut once, at the end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_codec.batch import RowBatch
from ticdc_codec.event import Layout, Op

Numbers = npt.NDArray[np.int64]

_NONE = -1
_INDEX_BITS = 32
_NEWLINE = ord("\n")
_OPS = (Op.INSERT, Op.UPDATE, Op.DELETE)


class Lines:
    """JSON texts: each ends in a line feed, which JSON has escaped in its strings."""

    __slots__ = ("_count", "_ends", "_size", "_texts")

    def __init__(self) -> None:
        self._texts: list[bytes] = []
        self._ends: list[Numbers] = []
        self._size = 0
        self._count = 0

    def add(self, lines: bytes, count: int) -> int:
        """Adds ``count`` lines; returns the number of the first one, -1 for no lines."""
        if not lines:
            return _NONE
        self._texts.append(lines)
        # The offsets of line feeds are looked for now, while the text is in the processor's cache.
        self._ends.append(np.flatnonzero(np.frombuffer(lines, np.uint8) == _NEWLINE) + self._size)
        self._size += len(lines)
        self._count += count
        return self._count - count

    def array(self) -> pa.Array:
        """Returns the texts and the line feeds between them, in turn, as large strings: text n is item 2 n."""
        if not self._texts:
            return pa.nulls(0, pa.large_string())
        # ends[n]: offset of the line feed behind text n; offsets: begin and end of text 0, of text 1, …
        ends = np.concatenate(self._ends)
        offsets = np.stack((np.append(0, ends + 1)[:-1], ends), axis=1).ravel()
        buffers = (pa.py_buffer(offsets), pa.py_buffer(b"".join(self._texts)))
        return pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumns:
    """Row changes of one operation and one layout, as columns. None for a column is None for each row."""

    messages: Sequence[int]
    """Number of each row's message in the batch."""
    index: Sequence[int] | None = None
    """Number of the event in its message; None: every message has one event."""
    op: Op
    layout: Layout
    commit_ts: Sequence[int | None]
    commit_ms: Sequence[int | None] | None = None
    """Milliseconds since the Unix epoch, where there is no commit_ts."""
    handle_keys: bytes
    """Lines of JSON arrays, one for each row; none if the table has no handle key."""
    old_handle_keys: Sequence[bytes | None] | None = None
    before: bytes = b""
    """Lines of JSON objects, one for each row; none if no row has this image."""
    after: bytes = b""
    handle_only: Sequence[bool] | None = None
    table_ids: Sequence[int | None] | None = None


class Sparse:
    """A column in which most groups of rows only have the value ``absent``."""

    __slots__ = ("_absent", "_given", "_kind", "_values")

    def __init__(self, kind: pa.DataType, absent: Any = None) -> None:
        self._kind, self._absent = kind, absent
        self._values: list[Any] = []
        self._given = False

    def add(self, values: Sequence[Any] | None, count: int) -> None:
        """Adds the values of ``count`` rows; None if all of them are absent."""
        self._given = self._given or values is not None
        self._values += [self._absent] * count if values is None else values

    def take(self, at: pa.Array) -> pa.Array:
        """Returns the values of these rows."""
        if self._given:
            return pa.array(self._values, self._kind).take(at)
        return pa.repeat(pa.scalar(self._absent, self._kind), len(at))


class RowBuilder:
    """Collects row changes in any order, and returns them in the order of their messages."""

    __slots__ = ("_commit_ms", "_commit_ts", "_groups", "_handle_only", "_images", "_index", "_keys", "_layouts",
                 "_messages", "_old_keys", "_table_ids")  # fmt: skip

    def __init__(self) -> None:
        self._messages: list[int] = []
        self._index: list[int] = []
        self._commit_ts, self._commit_ms = Sparse(pa.uint64()), Sparse(pa.int64())
        self._old_keys = Sparse(pa.string())
        self._handle_only = Sparse(pa.bool_(), absent=False)
        self._table_ids = Sparse(pa.int64())
        self._images, self._keys = Lines(), Lines()
        self._layouts: dict[Layout, int] = {}
        self._groups: list[tuple[int, ...]] = []
        """For each element added: (row_count, op_code, layout_index, first_key, first_before, first_after). The last
        three are line numbers in ``_keys`` and ``_images``, -1 for no lines."""

    def add(self, added: Iterable[RowColumns]) -> None:
        """Adds groups of rows."""
        for columns in added:
            self._add(columns)

    def _add(self, columns: RowColumns) -> None:
        count = len(columns.messages)
        self._messages += columns.messages
        self._index += [0] * count if columns.index is None else columns.index
        self._commit_ts.add(columns.commit_ts, count)
        self._commit_ms.add(columns.commit_ms, count)
        self._old_keys.add(columns.old_handle_keys, count)
        self._handle_only.add(columns.handle_only, count)
        self._table_ids.add(columns.table_ids, count)
        layout_index = self._layouts.setdefault(columns.layout, len(self._layouts))
        firsts = (
            self._keys.add(columns.handle_keys, count),
            self._images.add(columns.before, count),
            self._images.add(columns.after, count),
        )
        self._groups.append((count, _OPS.index(columns.op), layout_index, *firsts))

    def rows(self, without: Collection[int] = ()) -> RowBatch | None:
        """Returns the rows in the order of message and index, except those of the messages ``without``; None if no row
        is left."""
        # message[i], index[i]: number of row i's message and its number there, in the order of adding. Arrow reads a
        # list three times as fast as numpy.
        message, index = (pa.array(numbers, pa.int64()).to_numpy() for numbers in (self._messages, self._index))
        order = _order(message, index, without)
        if not len(order):
            return None
        at = pa.array(order)
        # counts[g], op[g], layout[g], firsts[..][g]: of group g, as added. group[k]: the group of the k-th row.
        counts, op, layout, *firsts = np.array(self._groups, np.int64).T
        group = np.repeat(np.arange(len(counts)), counts)[order]
        key, before, after = (_line_items(first, counts, group, order) for first in firsts)
        images = self._images.array()
        return RowBatch(
            message=message[order].astype(np.int32),
            index=index[order],
            op=pa.array(_OPS, pa.string()).take(pa.array(op[group])),
            commit_ts=self._commit_ts.take(at),
            commit_ms=self._commit_ms.take(at),
            layouts=[*self._layouts],
            layout=layout[group],
            table_id=self._table_ids.take(at),
            handle_key=self._keys.array().take(key).cast(pa.string()),
            old_handle_key=self._old_keys.take(at),
            before=images.take(before).cast(pa.string()),
            after=images.take(after).cast(pa.string()),
            handle_only=self._handle_only.take(at),
        )


def _order(message: Numbers, index: Numbers, without: Collection[int]) -> Numbers:
    """Returns the indices of the rows in the order of message and index, except rows of the messages ``without``."""
    order = np.argsort(message << _INDEX_BITS | index, kind="stable")
    return order[~np.isin(message[order], [*without])] if without else order


def _line_items(first: Numbers, counts: Numbers, group: Numbers, order: Numbers) -> pa.Array:
    """Returns the item of ``Lines.array`` that has the text of each row, null for none.

    ``first`` (line number of the first row, -1 for no lines) and ``counts`` have an item for each group, ``group`` and
    ``order`` one for each row.
    """
    # start[g]: number of group g's first row, in the order of adding. Text n is item 2 n of the lines' array.
    start = np.cumsum(counts) - counts
    return pa.array(2 * ((first - start)[group] + order), mask=(first == _NONE)[group])
