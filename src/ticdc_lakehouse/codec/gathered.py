"""The row changes of a batch, gathered by table and type: texts as JSON lines, which are cut only once, at the end."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_lakehouse.codec.batch import Rows
from ticdc_lakehouse.event import Layout, Op

Numbers = npt.NDArray[np.int64]

_NONE = -1
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
        """Number of the first of them; -1 if there are none."""
        if not lines:
            return _NONE
        self._texts.append(lines)
        # Now, while they are in the processor's cache.
        self._ends.append(np.flatnonzero(np.frombuffer(lines, np.uint8) == _NEWLINE) + self._size)
        self._size += len(lines)
        self._count += count
        return self._count - count

    def array(self) -> pa.Array:
        """The texts and the line feeds between them, in turn, as large strings: text n is item 2 n."""
        if not self._texts:
            return pa.nulls(0, pa.large_string())
        ends = np.concatenate(self._ends)
        offsets = np.stack((np.append(0, ends + 1)[:-1], ends), axis=1).ravel()
        buffers = (pa.py_buffer(offsets), pa.py_buffer(b"".join(self._texts)))
        return pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers)


Places = tuple[Sequence[int], Sequence[int]]
"""Of each event the number of its message, and its number in that message."""


def alone(messages: Sequence[int]) -> Places:
    """The places of events of which a message has one."""
    return messages, [0] * len(messages)


class Gathered:
    """Row changes in any order."""

    __slots__ = ("_commit_ms", "_commit_ts", "_groups", "_handle_only", "_images", "_index", "_keys", "_layouts",
                 "_messages", "_old_keys", "_table_ids")  # fmt: skip

    def __init__(self) -> None:
        self._messages: list[int] = []
        self._index: list[int] = []
        self._commit_ts: list[int | None] = []
        self._commit_ms: list[int | None] = []
        self._old_keys: list[bytes | None] = []
        self._handle_only: list[bool] = []
        self._table_ids: list[int | None] = []
        self._images, self._keys = Lines(), Lines()
        self._layouts: dict[Layout, int] = {}
        self._groups: list[tuple[int, ...]] = []
        """Of each: rows, number of op, number of layout, and numbers of the first key, before and after."""

    def add(
        self,
        places: Places,
        op: Op,
        commits: tuple[Sequence[int | None], Sequence[int | None]],
        layout: Layout,
        keys: tuple[bytes, Sequence[bytes | None]],
        images: tuple[bytes, bytes],
        handle_only: Sequence[bool],
        table_ids: Sequence[int | None] | None = None,
    ) -> None:
        """Add rows as columns: places, commit_ts and commit_ms, keys (lines, or
        none) and old keys, before and after (both lines, or none); without ``table_ids`` where the wire has none.
        """
        count = len(places[0])
        self._messages += places[0]
        self._index += places[1]
        self._commit_ts += commits[0]
        self._commit_ms += commits[1]
        self._old_keys += keys[1]
        self._handle_only += handle_only
        self._table_ids += [None] * count if table_ids is None else table_ids
        number = self._layouts.setdefault(layout, len(self._layouts))
        firsts = (self._keys.add(keys[0], count), *(self._images.add(lines, count) for lines in images))
        self._groups.append((count, _OPS.index(op), number, *firsts))

    def rows(self, without: Collection[int] = ()) -> Rows | None:
        """The rows in order but for those of some messages, None if there are none."""
        message, index = np.array(self._messages, np.int32), np.array(self._index, np.int64)
        order = np.lexsort((index, message))
        if without:
            order = order[~np.isin(message[order], [*without])]
        if not len(order):
            return None
        at = pa.array(order)
        counts, op, layout, *firsts = np.array(self._groups, np.int64).T
        group = np.repeat(np.arange(len(counts)), counts)[order]
        key, before, after = (_places(first, counts, group, order) for first in firsts)
        images = self._images.array()
        return Rows(
            message=message[order],
            index=index[order],
            op=pa.array(_OPS, pa.string()).take(pa.array(op[group])),
            commit_ts=pa.array(self._commit_ts, pa.uint64()).take(at),
            commit_ms=pa.array(self._commit_ms, pa.int64()).take(at),
            layouts=[*self._layouts],
            layout=layout[group],
            table_id=pa.array(self._table_ids, pa.int64()).take(at),
            handle_key=self._keys.array().take(key).cast(pa.string()),
            old_handle_key=pa.array(self._old_keys, pa.string()).take(at),
            before=images.take(before).cast(pa.string()),
            after=images.take(after).cast(pa.string()),
            handle_only=pa.array(self._handle_only, pa.bool_()).take(at),
        )


def _places(first: Numbers, counts: Numbers, group: Numbers, order: Numbers) -> pa.Array:
    """The item of each row's text in ``Lines.array``, null for none; ``first`` and ``counts`` are those of groups."""
    start = np.cumsum(counts) - counts
    return pa.array(2 * ((first - start)[group] + order), mask=(first == _NONE)[group])
