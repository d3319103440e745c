"""The rows of a batch: kept by what they have in common, read together, gathered as columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ticdc_codec import batch
from ticdc_codec.batch import checked_tso
from ticdc_codec.bisect_failures import add_by_halves
from ticdc_codec.bounded_cache import make_room
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Op
from ticdc_codec.json_text import Unreadable, names_of, quotes_of_all, unreadable
from ticdc_codec.open_protocol.key import Key
from ticdc_codec.open_protocol.row import Row, described, op_of
from ticdc_codec.open_protocol.table import Description, Table
from ticdc_codec.row_builder import Gathered


class RowEvent(msgspec.Struct, frozen=True, gc=False):
    """A row that is to be read."""

    message: int
    index: int
    key: Key
    text: bytes


_Like = tuple[str | UnsetType, str | UnsetType, bool, bytes]
"""Database, table, whether it is no partition, first bytes: rows with equal ones mostly have the same columns."""

Refuse = Callable[[RowEvent, DecodeError], None]


class Tables:
    """The tables of a feed that rows have described so far."""

    __slots__ = ("_by_description", "by_like")

    def __init__(self) -> None:
        self._by_description: dict[Description, Table] = {}
        self.by_like: dict[_Like, Table] = {}
        """The table of the last row that was so."""

    def described(self, description: Description) -> Table:
        """The table of this description. Raises DecodeError."""
        table = self._by_description.get(description)
        if table is None:
            make_room(self._by_description)
            make_room(self.by_like)
            table = self._by_description[description] = Table(description)
        return table


class Rows:
    """The rows of one batch. Those that have a fault are handed to ``refuse``."""

    __slots__ = ("_alike", "_gathered", "_refuse", "_tables")

    def __init__(self, tables: Tables, refuse: Refuse) -> None:
        self._tables = tables
        self._refuse = refuse
        self._gathered = Gathered()
        self._alike: dict[_Like, list[RowEvent]] = {}

    def keep(self, event: RowEvent) -> None:
        """Take a row. Raises DecodeError if its key names no table."""
        key = event.key
        like = (key.scm, key.tbl, key.ptn is UNSET, event.text[:4])
        alike = self._alike.get(like)
        if alike is not None:
            alike.append(event)
            return
        if not key.scm or not key.tbl:
            raise DecodeError("missing_member", "expected scm and tbl in the key of a row")
        self._alike[like] = [event]

    def read(self) -> None:
        """Read the rows that were kept."""
        for like, events in self._alike.items():
            first = 0
            while like not in self._tables.by_like and first < len(events):
                self._alone(like, events[first])
                first += 1
            if first < len(events):
                self._together(like, events[first:])
        self._alike.clear()

    def finish(self, without: Collection[int]) -> batch.Rows | None:
        """The rows as columns but for those of some messages."""
        return self._gathered.rows(without)

    def _together(self, like: _Like, events: list[RowEvent]) -> None:
        """Add rows. One that has any fault, or is not like the others, is read alone."""

        def add_all(events: Sequence[RowEvent]) -> bool:
            table = self._tables.by_like.get(like)
            if table is None:
                return False
            self._add(table, events, [table.read(event.text) for event in events])
            return True

        add_by_halves(events, add_all, lambda event: self._alone(like, event))

    def _alone(self, like: _Like, event: RowEvent) -> None:
        """Add a row of a table that need not be known."""
        try:
            text, cells, lost = described(event.text)
            table = self._tables.described(Description(str(like[0]), str(like[1]), not like[2], cells, lost))
            self._add(table, [replace(event, text=text)], [_read(table, text)])
        except DecodeError as error:
            self._refuse(event, error)
        else:
            if not lost:
                self._tables.by_like[like] = table

    def _add(self, table: Table, events: Sequence[RowEvent], rows: Sequence[Row]) -> None:
        """Add rows of one description: all of them, or none. Raises DecodeError if one has a fault."""
        ops = [*map(op_of, rows)]
        columns = []
        for op in dict.fromkeys(ops):
            chosen = [at for at, of_row in enumerate(ops) if of_row is op]
            columns.append(_columns(op, table, [events[at] for at in chosen], [rows[at] for at in chosen]))
        for each in columns:
            self._gathered.add_columns(*each)


def _read(table: Table, text: bytes) -> Row:
    """A row whose columns are known to be the table's. Raises DecodeError."""
    try:
        return table.read(text)
    except Unreadable as error:
        fault = unreadable(error, text)
        other = fault.reason in ("missing_member", "unknown_member") or "enum value" in fault.detail
        reason = "wrong_columns" if other else fault.reason
        raise DecodeError(reason, fault.detail, offset=fault.offset) from None


def _columns(op: Op, table: Table, events: Sequence[RowEvent], rows: Sequence[Row]) -> tuple[Any, ...]:
    """The arguments of ``Gathered.add`` for rows of one kind. Raises DecodeError."""
    new, quotes = table.texts([row.d if op is Op.DELETE else row.u for row in rows])
    old, old_quotes = table.texts([row.p for row in rows]) if op is Op.UPDATE else ([], 0)
    _check_names(events, quotes + old_quotes + 2 * len(rows) * (2 if op is Op.UPDATE else 1))
    images = table.images(new)
    keys = [event.key for event in events]
    commit_ts = [key.ts for key in keys]
    for extreme in (min(commit_ts), max(commit_ts)):
        checked_tso(extreme)
    return (
        ([event.message for event in events], [event.index for event in events]),
        op,
        (commit_ts, None),
        table.layout,
        (table.handle_keys(new), table.old_handle_keys(old, new) if old else None),
        (images, b"") if op is Op.DELETE else (table.images(old) if old else b"", images),
        [key.ohk is True and key.ccl is UNSET for key in keys],
        None if keys[0].ptn is UNSET else [key.ptn for key in keys],
    )


def _check_names(events: Sequence[RowEvent], quotes: int) -> None:
    """Raise DecodeError ``duplicate_name`` if an object has a name twice: rows then have more quotes than these."""
    if quotes_of_all([event.text for event in events]) != quotes:
        for event in events:
            names_of(event.text)
