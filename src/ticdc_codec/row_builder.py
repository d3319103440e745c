"""The row changes of a batch, gathered by table and type: texts as JSON lines, which are cut only once, at the end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_codec.batch import Rows
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


class Sparse:
    """A column in which groups of rows mostly have nothing: ``absent``."""

    __slots__ = ("_absent", "_given", "_kind", "_values")

    def __init__(self, kind: pa.DataType, absent: Any = None) -> None:
        self._kind, self._absent = kind, absent
        self._values: list[Any] = []
        self._given = False

    def add(self, values: Sequence[Any] | None, count: int) -> None:
        """Add the values of ``count`` rows; None if all of them are absent."""
        self._given = self._given or values is not None
        self._values += [self._absent] * count if values is None else values

    def take(self, at: pa.Array) -> pa.Array:
        """The values of these rows."""
        if self._given:
            return pa.array(self._values, self._kind).take(at)
        return pa.repeat(pa.scalar(self._absent, self._kind), len(at))


class Gathered:
    """Row changes in any order."""

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
        """Of each: rows, number of op, number of layout, and numbers of the first key, before and after."""

    def add(
        self,
        places: Places,
        op: Op,
        commits: tuple[Sequence[int | None], Sequence[int | None] | None],
        layout: Layout,
        keys: tuple[bytes, Sequence[bytes | None] | None],
        images: tuple[bytes, bytes],
        handle_only: Sequence[bool] | None = None,
        table_ids: Sequence[int | None] | None = None,
    ) -> None:
        """Add rows as columns: places, commit_ts and commit_ms, keys (lines, or none) and old keys, before and after
        (both lines, or none). None for a column is none in all rows.
        """
        count = len(places[0])
        self._messages += places[0]
        self._index += places[1]
        self._commit_ts.add(commits[0], count)
        self._commit_ms.add(commits[1], count)
        self._old_keys.add(keys[1], count)
        self._handle_only.add(handle_only, count)
        self._table_ids.add(table_ids, count)
        number = self._layouts.setdefault(layout, len(self._layouts))
        firsts = (self._keys.add(keys[0], count), *(self._images.add(lines, count) for lines in images))
        self._groups.append((count, _OPS.index(op), number, *firsts))

    def rows(self, without: Collection[int] = ()) -> Rows | None:
        """The rows in order but for those of some messages, None if there are none."""
        # Arrow reads a list three times as fast as numpy.
        message, index = (pa.array(each, pa.int64()).to_numpy() for each in (self._messages, self._index))
        order = np.argsort(message << _INDEX_BITS | index, kind="stable")
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


def _places(first: Numbers, counts: Numbers, group: Numbers, order: Numbers) -> pa.Array:
    """The item of each row's text in ``Lines.array``, null for none; ``first`` and ``counts`` are those of groups."""
    start = np.cumsum(counts) - counts
    return pa.array(2 * ((first - start)[group] + order), mask=(first == _NONE)[group])
