"""The row changes of a batch, gathered by table and type: texts as JSON lines, which are cut only once, at the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_lakehouse.codec.batch import Rows
from ticdc_lakehouse.event import Layout, Op

_NONE = -1
_NEWLINE = ord("\n")
_OPS = (Op.INSERT, Op.UPDATE, Op.DELETE)


class Lines:
    """JSON texts: each ends in a line feed, which JSON has escaped in its strings."""

    __slots__ = ("_count", "_texts")

    def __init__(self) -> None:
        self._texts: list[bytes] = []
        self._count = 0

    def add(self, lines: bytes, count: int) -> int:
        """Number of the first of them; -1 if there are none."""
        if not lines:
            return _NONE
        self._texts.append(lines)
        self._count += count
        return self._count - count

    def array(self) -> pa.Array:
        """All of them, as large strings without their line feeds."""
        lines = b"".join(self._texts)
        offsets = np.zeros(self._count + 1, np.int64)
        offsets[1:] = np.flatnonzero(np.frombuffer(lines, np.uint8) == _NEWLINE) - np.arange(self._count)
        texts = lines.replace(b"\n", b"")
        return pa.LargeStringArray.from_buffers(self._count, pa.py_buffer(offsets), pa.py_buffer(texts))


class Gathered:
    """Row changes, one a message, in any order."""

    __slots__ = ("_commit_ms", "_commit_ts", "_groups", "_handle_only", "_images", "_keys", "_layouts", "_messages",
                 "_old_keys", "_table_ids")  # fmt: skip

    def __init__(self) -> None:
        self._messages: list[int] = []
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
        messages: Sequence[int],
        op: Op,
        commits: tuple[Sequence[int | None], Sequence[int | None]],
        layout: Layout,
        keys: tuple[bytes, Sequence[bytes | None]],
        images: tuple[bytes, bytes],
        handle_only: Sequence[bool],
        table_ids: Sequence[int | None] | None = None,
    ) -> None:
        """Add rows as columns: commit_ts and commit_ms, keys (lines, or none) and old keys, before and after (both
        lines, or none); without ``table_ids`` where the wire does not tell them.
        """
        self._messages += messages
        self._commit_ts += commits[0]
        self._commit_ms += commits[1]
        self._old_keys += keys[1]
        self._handle_only += handle_only
        self._table_ids += [None] * len(messages) if table_ids is None else table_ids
        count, number = len(messages), self._layouts.setdefault(layout, len(self._layouts))
        firsts = (self._keys.add(keys[0], count), *(self._images.add(lines, count) for lines in images))
        self._groups.append((count, _OPS.index(op), number, *firsts))

    def rows(self) -> Rows | None:
        """The rows in the order of their messages, None if there are none."""
        if not self._messages:
            return None
        message = np.array(self._messages, np.int32)
        order = np.argsort(message, kind="stable")
        at = pa.array(order)
        counts, op, layout, *firsts = np.array(self._groups, np.int64).T
        group = np.repeat(np.arange(len(counts)), counts)[order]
        key, before, after = (_places(first, counts, group, order) for first in firsts)
        images = self._images.array()
        return Rows(
            message=message[order],
            index=np.zeros(len(message), np.int64),
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


Numbers = npt.NDArray[np.int64]


def _places(first: Numbers, counts: Numbers, group: Numbers, order: Numbers) -> pa.Array:
    """The number of each row's text, null for none; ``first`` and ``counts`` are those of groups."""
    start = np.cumsum(counts) - counts
    return pa.array((first - start)[group] + order, mask=(first == _NONE)[group])
