"""The engine that reads rows of JSON messages; a protocol is a specification of it (``RowSpec``).

Rows of a table repeat nearly everything except their values. The engine uses that:

    group     Rows with one prefix, a few bytes that are found without parsing, form a group: rows of one table.
    read      Each row of a group is cut to what differs from row to row, and read by a Struct type that is compiled for
              the table. That type refuses every member, column and type that the table does not have.
    bisect    Where a row is faulty, or differs from its group, the group is read in halves, until few rows are left.
    single    Those few, and the first row of each prefix, are read as whole messages. That reading adds the event,
              whatever it is, or names the fault; and the engine learns the prefix.

Reading by groups is fast and refuses everything unusual: reading single messages decides what is correct and what is
wrong with a message. So a message has the same events by itself and among others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from ticdc_codec.batch import Events, RowBatch
from ticdc_codec.bounded_cache import make_room
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout
from ticdc_codec.json_text import Unreadable, names_of, unreadable
from ticdc_codec.message import decompress
from ticdc_codec.options import Compression
from ticdc_codec.row_builder import RowBuilder, RowColumns

_CHUNK = 1024
"""Rows that are grouped and read at a time: they fit a processor's cache."""
_FEW = 8
"""Rows that are read one by one instead of in halves."""


class TableReader(Protocol):
    """Reads the rows of a table as its messages describe it, compiled."""

    @property
    def layout(self) -> Layout:
        """Its database, name and columns."""

    @property
    def read(self) -> Callable[[bytes], Any]:
        """Reads a row's text as an object of the table's Struct type. Raises DecodeError or one of ``Unreadable``."""


class PrefixGroup(Protocol):
    """What rows with one prefix have in common."""

    @property
    def table(self) -> TableReader:
        """The table of the rows."""


@dataclass(frozen=True, slots=True)
class RowTexts:
    """Rows of one group before they are read; protocols add to it what they know of the rows besides."""

    texts: Sequence[bytes]
    """A JSON object for each row, which ``TableReader.read`` reads."""


Item = TypeVar("Item")
"""Where a row is in the batch: for protocols with one event a message the message's number."""
Group = TypeVar("Group", bound=PrefixGroup)
Texts = TypeVar("Texts", bound=RowTexts)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleRow(Generic[Item, Group, Texts]):
    """A row that its own message describes."""

    item: Item
    group: Group
    texts: Texts
    """The texts of this one row."""
    prefix: Hashable
    """Rows with it belong to the group; None if this message is no example for others."""
    value: bytes
    """The message's JSON, which a fault's offset counts in."""
    names_checked: bool = False
    """True if no object in ``value`` has a name twice."""


class RowSpec(ABC, Generic[Item, Group, Texts]):
    """What a protocol specifies of its rows. One object serves all batches of a feed."""

    image_fault = ""
    """What the detail of a fault in a row's image begins with."""
    columns_are_checked = False
    """True if ``single`` has compared the columns of the images with the table's, so that no column can be missing."""

    @abstractmethod
    def prefixes(self, items: Sequence[Item]) -> Sequence[Hashable]:
        """Returns a hint for each row: rows with equal ones mostly belong to one group."""

    @abstractmethod
    def cut(self, group: Group, items: Sequence[Item]) -> Texts | None:
        """Returns the rows' texts without what the prefix has shown; None if one row differs from the group in that."""

    @abstractmethod
    def columns(self, group: Group, items: Sequence[Item], texts: Texts, rows: list[Any]) -> list[RowColumns]:
        """Returns the rows as columns, one element for each operation among them.

        ``rows`` has what ``TableReader.read`` makes of ``texts``. Raises DecodeError, or one of ``Unreadable``, if a
        row has a fault or is not like the group; nothing is added then.
        """

    @abstractmethod
    def single(self, item: Item) -> SingleRow[Item, Group, Texts] | None:
        """Returns the row in a message; None if it is no row, then its event has been added. Raises DecodeError."""

    @abstractmethod
    def refuse(self, item: Item, error: DecodeError) -> None:
        """Adds the failure of the message that this row is in."""


class MessageRowSpec(RowSpec[int, Group, Texts]):
    """What a protocol with one event a message specifies: an item is the message's number in the batch."""

    def __init__(self) -> None:
        self.begin({}, Events())

    def begin(self, values: Mapping[int, bytes], out: Events, keys: Sequence[bytes | None] = ()) -> None:
        """Begins a batch: values and Kafka keys by number, and where events go that are no rows."""
        self.values = values
        self.keys = keys
        self.out = out

    def prefixes(self, items: Sequence[int]) -> Sequence[Hashable]:
        """Returns the prefixes of the messages' values."""
        return self.prefixes_of(map(self.values.__getitem__, items))

    @abstractmethod
    def prefixes_of(self, values: Iterable[bytes]) -> list[bytes]:
        """Returns the prefix of each value as both writers write rows; any bytes of another message."""

    def refuse(self, item: int, error: DecodeError) -> None:
        """Adds the message's failure."""
        self.out.message = item
        self.out.error(error)


class JsonRows(Generic[Item, Group, Texts]):
    """Reads the rows of one feed's messages, a batch after the other; keeps what it learns of their prefixes."""

    __slots__ = ("_builder", "_groups", "_protocol")

    def __init__(self, protocol: RowSpec[Item, Group, Texts]) -> None:
        self._protocol = protocol
        self._groups: dict[Hashable, Group] = {}
        self._builder = RowBuilder()

    def add(self, items: Sequence[Item]) -> None:
        """Reads rows of a batch, and messages that may be rows."""
        for start in range(0, len(items), _CHUNK):
            self._add_chunk(items[start : start + _CHUNK])

    def finish(self, without: Collection[int] = ()) -> RowBatch | None:
        """Returns the batch's rows in order, except those of the messages ``without``; None if no row is left."""
        builder, self._builder = self._builder, RowBuilder()
        return builder.rows(without)

    def _add_chunk(self, items: Sequence[Item]) -> None:
        # waiting: rows by prefix. The first row of a prefix that is not known yet is read by itself, at once: the
        # others of the chunk find its group.
        waiting: dict[Hashable, list[Item]] = {}
        for item, prefix in zip(items, self._protocol.prefixes(items), strict=True):
            group = waiting.get(prefix)
            if group is not None:
                group.append(item)
            elif prefix in self._groups:
                waiting[prefix] = [item]
            else:
                self._add_single(item)
        for prefix, members in waiting.items():
            self._add_by_halves(prefix, members)

    def _add_by_halves(self, prefix: Hashable, items: Sequence[Item]) -> None:
        """Adds rows together; where that fails, halves of them, and few of them one by one."""
        if self._add_group(prefix, items):
            return
        if len(items) > _FEW:
            half = len(items) // 2
            self._add_by_halves(prefix, items[:half])
            self._add_by_halves(prefix, items[half:])
        else:
            for item in items:
                self._add_single(item)

    def _add_group(self, prefix: Hashable, items: Sequence[Item]) -> bool:
        """Adds all rows and returns True, or adds none."""
        group = self._groups.get(prefix)
        texts = None if group is None else self._protocol.cut(group, items)
        if group is None or texts is None:
            return False
        # Whatever the fault: the halves, and in the end single messages, find which row has it.
        try:
            columns = self._protocol.columns(group, items, texts, [*map(group.table.read, texts.texts)])
        except (DecodeError, *Unreadable):
            return False
        self._builder.add(columns)
        return True

    def _add_single(self, item: Item) -> None:
        """Adds the event of one message, or its failure."""
        try:
            single = self._protocol.single(item)
            if single is not None:
                self._builder.add(self._columns_of(single))
                self._learn(single)
        except DecodeError as error:
            self._protocol.refuse(item, error)

    def _columns_of(self, single: SingleRow[Item, Group, Texts]) -> list[RowColumns]:
        """Reads a single row as columns. Raises DecodeError, which names the row's table."""
        try:
            rows = [*map(single.group.table.read, single.texts.texts)]
            if not single.names_checked:
                names_of(single.value)
            return self._protocol.columns(single.group, [single.item], single.texts, rows)
        except DecodeError as error:
            raise _named(error, single.group.table.layout) from None
        except Unreadable as error:
            raise _named(self._image_fault(error, single.value), single.group.table.layout) from None

    def _image_fault(self, error: BaseException, value: bytes) -> DecodeError:
        """Returns the fault of a row's images: all else in its message has been read."""
        fault = unreadable(error, value)
        other_columns = fault.reason in ("missing_member", "unknown_member") or "enum value" in fault.detail
        reason = "wrong_columns" if other_columns and not self._protocol.columns_are_checked else fault.reason
        return DecodeError(reason, self._protocol.image_fault + fault.detail, offset=fault.offset)

    def _learn(self, single: SingleRow[Item, Group, Texts]) -> None:
        if single.prefix is not None:
            make_room(self._groups)
            self._groups[single.prefix] = single.group


def _named(error: DecodeError, layout: Layout) -> DecodeError:
    if layout.table:
        error.database, error.table = layout.database, layout.table
    return error


def contents_of(
    values: Sequence[bytes | None], compression: Compression, out: Events, expected: str = "a JSON object"
) -> dict[int, bytes]:
    """Returns the messages' values by number, decompressed; a failure is added to ``out`` for one without content."""
    if compression is Compression.NONE and all(values):
        return dict(enumerate(values))  # type: ignore[arg-type]  # none is None
    contents = {}
    for number, value in enumerate(values):
        try:
            contents[number] = _content_of(value, compression, expected)
        except DecodeError as error:
            out.message = number
            out.error(error)
    return contents


def _content_of(value: bytes | None, compression: Compression, expected: str) -> bytes:
    if not value:
        raise DecodeError("empty", f"expected {expected}, found no bytes")
    return decompress(value, compression)
