"""Rows for the engine of ``json_rows``: their prefix is the table that the key names, and the value's first bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, UnsetType

from ticdc_codec.batch import checked_tso
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Op
from ticdc_codec.json_rows import RowSpec, RowTexts, SingleRow
from ticdc_codec.json_table import handle_key_lines, make_room, old_handle_keys
from ticdc_codec.json_text import names_of, quotes_of_all
from ticdc_codec.open_protocol.frame import Key
from ticdc_codec.open_protocol.table import Description, OpenTableReader, RowMembers, described, op_of
from ticdc_codec.row_builder import RowColumns


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
"""Database, table, whether it is no partition, first bytes: rows with equal ones mostly have the same columns."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows of one table, of all operations."""

    table: OpenTableReader


class OpenRows(RowSpec[RowEvent, _Group, RowTexts]):
    """Rows of messages that may have several."""

    def __init__(self) -> None:
        self._by_description: dict[Description, OpenTableReader] = {}
        self._refuse: Refuse | None = None

    def begin(self, refuse: Refuse | None) -> None:
        """Begin a batch, in which rows that have a fault are given to ``refuse``; None when it is over."""
        self._refuse = refuse

    def prefixes(self, items: Sequence[RowEvent]) -> list[_Prefix]:
        """What rows of one table and one kind have in common."""
        return [_prefix_of(event.key, event.text) for event in items]

    def cut(self, group: _Group, items: Sequence[RowEvent]) -> RowTexts | None:
        """The whole rows: all that repeats stands between the values. None if the columns are in another order."""
        texts = [event.text for event in items]
        return RowTexts(texts) if group.table.order.matches(texts) else None

    def columns(
        self, group: _Group, items: Sequence[RowEvent], texts: RowTexts, rows: list[RowMembers]
    ) -> list[RowColumns]:
        """The rows of each operation."""
        ops = [*map(op_of, rows)]
        return [
            _columns(op, group.table, items, texts.texts, rows, [at for at, each in enumerate(ops) if each is op])
            for op in dict.fromkeys(ops)
        ]

    def single(self, item: RowEvent) -> SingleRow[RowEvent, _Group, RowTexts]:
        """The row of a table that need not be known. Raises DecodeError."""
        prefix = _prefix_of(item.key, item.text)
        text, cells, lost = described(item.text)
        table = self._table(Description(str(prefix[0]), str(prefix[1]), not prefix[2], cells, lost))
        return SingleRow(
            item=item,
            group=_Group(table),
            texts=RowTexts([text]),
            prefix=None if lost else prefix,
            value=text,
            names_checked=True,
        )

    def refuse(self, item: RowEvent, error: DecodeError) -> None:
        """Refuse the row, and with it its message."""
        if self._refuse is not None:
            self._refuse(item, error)

    def _table(self, description: Description) -> OpenTableReader:
        table = self._by_description.get(description)
        if table is None:
            make_room(self._by_description)
            table = self._by_description[description] = OpenTableReader(description)
        return table


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
    """The rows at the indices ``chosen``, which are of one operation. Raises DecodeError."""
    events = [items[at] for at in chosen]
    new, quotes = table.texts([rows[at].d if op is Op.DELETE else rows[at].u for at in chosen])
    old, old_quotes = table.texts([rows[at].p for at in chosen]) if op is Op.UPDATE else ([], 0)
    members = 2 if op is Op.UPDATE else 1
    _check_names([texts[at] for at in chosen], quotes + old_quotes + 2 * len(chosen) * members)
    keys = [event.key for event in events]
    commit_ts = [key.ts for key in keys]
    for extreme in (min(commit_ts), max(commit_ts)):
        checked_tso(extreme)
    images = table.lines(new)
    return RowColumns(
        messages=[event.message for event in events],
        index=[event.index for event in events],
        op=op,
        layout=table.layout,
        commit_ts=commit_ts,
        handle_keys=handle_key_lines(table.key_columns(new)),
        old_handle_keys=old_handle_keys(table.key_columns(old), table.key_columns(new)) if old else None,
        before=images if op is Op.DELETE else table.lines(old) if old else b"",
        after=b"" if op is Op.DELETE else images,
        # Only the handle key is in the value (wire.md 1.2.2); a row in claim-check storage is whole.
        handle_only=[key.ohk is True and key.ccl is UNSET for key in keys],
        table_ids=None if keys[0].ptn is UNSET else [None if key.ptn is UNSET else key.ptn for key in keys],
    )


def _check_names(texts: Sequence[bytes], quotes: int) -> None:
    """Raise DecodeError ``duplicate_name`` if an object has a name twice: rows then have more quotes than these."""
    if quotes_of_all(texts) != quotes:
        for text in texts:
            names_of(text)
