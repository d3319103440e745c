"""The messages of a batch, and their frames: where their parts are, and what their headers contain for each event.

A message is read from its end (``craft`` docstring): the size tables, then everything else by these sizes. Size tables
and header consist of uvarints only, and those of all messages are read in one pass. Positions count from the begin of
the message.
Source: wire.md 1.1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_codec.errors import DecodeError
from ticdc_codec.number import (
    PAD,
    Bools,
    Int64s,
    UInt64s,
    read_reversed_uvarint,
    read_uvarint,
    running,
    uvarints_of,
    words_of,
    zigzags,
)
from ticdc_codec.tso import MAX_TSO


class RefusedError(Exception):
    """Messages that do not decode: their errors, by number in the batch."""

    def __init__(self, errors: dict[int, DecodeError]) -> None:
        super().__init__(errors)
        self.errors = errors


class MessageBatch:
    """The messages of a batch without those already ``refused``, numbered from 0."""

    __slots__ = ("begins", "buffer", "data", "numbers", "octets", "sizes", "words")

    def __init__(self, values: Sequence[bytes | None], refused: Mapping[int, DecodeError]) -> None:
        self.numbers = [number for number in range(len(values)) if number not in refused]
        """Index of each in the batch."""
        self.data = [values[number] or b"" for number in self.numbers]
        self.sizes: Int64s = np.array([*map(len, self.data)], np.int64)
        self.begins: Int64s = np.cumsum(self.sizes) - self.sizes
        """Where each begins in ``octets``."""
        self.buffer = pa.py_buffer(b"".join([*self.data, bytes(PAD)]))
        self.octets: npt.NDArray[np.uint8] = np.frombuffer(self.buffer, np.uint8)
        self.words = words_of(self.buffer)
        """words[p]: the eight bytes from position p of octets on, as a little-endian number."""

    def __len__(self) -> int:
        return len(self.numbers)

    def refuse(
        self,
        bad: Bools,
        reason: str,
        message: Int64s,
        at: Int64s,
        wanted: str | Callable[[int], str],
        found: Int64s | UInt64s | None = None,
    ) -> None:
        """Raises RefusedError with the messages of the items that are ``bad``, if there are any.

        ``message``, ``at`` and ``found`` have one item for each of ``bad``: its message, the offset to report, what was
        found. ``wanted`` says what was expected, or makes the whole detail from an item's index.
        """
        if not bad.any():
            return
        errors: dict[int, DecodeError] = {}
        for item in np.flatnonzero(bad).tolist():
            number = self.numbers[message[item]]
            if number not in errors:
                what_was_found = "" if found is None else f", found {found[item]}"
                detail = f"expected {wanted}{what_was_found}" if isinstance(wanted, str) else wanted(item)
                errors[number] = DecodeError(reason, detail, offset=int(at[item]))
        raise RefusedError(errors)


VERSION = 1


class EventType(IntEnum):
    """The type of an event, in the header."""

    ROW = 1
    DDL = 2
    RESOLVED = 3


NO_TERM = -1
"""Term id of a name that is missing; also the partition id of a table without partitions."""


class GroupType(IntEnum):
    """A column group's first byte."""

    NEW = 1
    OLD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The size tables as positions. ``message``, ``index``, ``start`` and ``end`` have one item for each event."""

    header: Int64s
    """Begin of each message's header."""
    bodies: Int64s
    """Begin of each message's bodies."""
    dictionary: Int64s
    """Begin of each message's dictionary."""
    tables: Int64s
    """Begin of each message's size tables, end of the dictionary."""
    events: Int64s
    """Number of each message's events."""
    first: Int64s
    """Number of each message's first event."""
    message: Int64s
    index: Int64s
    """Number of the event in its message."""
    start: Int64s
    """Begin and end of the event's body."""
    end: Int64s
    rest: UvarintRegion
    """The size tables."""
    groups: Int64s
    """In ``rest``, for each message: where the tables of its rows' column groups begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The header's five columns, one item for each event of the batch."""

    commit_ts: UInt64s
    types: Int64s
    partitions: Int64s
    databases: Int64s
    tables: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class UvarintRegion:
    """One run of uvarints from each message, all of them in one array."""

    numbers: UInt64s
    signed: Int64s
    """``numbers`` decoded as zigzag."""
    first: Int64s
    """Where each message's numbers begin, and the end of the last ones."""


def read_sizes(messages: MessageBatch) -> Sizes:
    """Returns the size tables of the messages. Raises RefusedError unless the parts fill each message without a gap."""
    header_at, tables, ends = _read_ends(messages)
    rest = _read_region(messages, tables, ends)
    header, dictionary, events, after = _read_meta(messages, rest, tables)
    # first[m]: index of message m's first event. message[e], index[e]: message of event e, its number in the message.
    # sizes[e]: bytes of its body; size tables hold a first number and differences (wire.md 1.1.1).
    first = np.cumsum(events) - events
    message = np.repeat(np.arange(len(messages)), events)
    index = np.arange(len(message)) - first[message]
    sizes = running(_bounded(rest.signed[after[message] + index]), first, message)
    messages.refuse(
        (sizes < 0) | (sizes > messages.sizes[message]), "bad_size", message, tables[message], "a body size"
    )
    bodies = header_at + header
    end = bodies[message] + running(sizes, first, message)
    body_ends = end[first + events - 1] + dictionary
    expected = "parts that end where the size tables begin"
    messages.refuse(body_ends != tables, "bad_size", np.arange(len(messages)), tables, expected, body_ends)
    return Sizes(
        header=header_at, bodies=bodies, dictionary=tables - dictionary, tables=tables, events=events, first=first,
        message=message, index=index, start=end - sizes, end=end, rest=rest, groups=after + events,
    )  # fmt: skip


def _read_ends(messages: MessageBatch) -> tuple[Int64s, Int64s, Int64s]:
    """Returns where each message's header begins, and where its size tables begin and end."""
    bounds, errors = [], {}
    for number, data in zip(messages.numbers, messages.data, strict=True):
        try:
            bounds.append(_read_end(data))
        except DecodeError as error:
            errors[number] = error
    if errors:
        raise RefusedError(errors)
    header, tables, ends = np.array(bounds, np.int64).reshape(-1, 3).T
    return header, tables, ends


def _read_end(data: bytes) -> tuple[int, int, int]:
    version, header_at = read_uvarint(data, 0, len(data))
    if version != VERSION:
        # TiCDC's decoder reads later versions as the first (wire.md 1.1.2); here they are refused.
        raise DecodeError("unknown_version", f"expected version {VERSION}, found {version}", offset=0)
    length, end = read_reversed_uvarint(data)
    if end - length < header_at:
        raise DecodeError("out_of_range", f"size tables of {length} bytes in a message of {len(data)}", offset=end)
    return header_at, end - length, end


def _read_region(messages: MessageBatch, starts: Int64s, ends: Int64s) -> UvarintRegion:
    """Returns all uvarints between ``starts`` and ``ends`` of each message; the last one must end at ``ends``."""
    regions = zip(messages.data, starts.tolist(), ends.tolist(), strict=True)
    digits = b"".join([data[start:end] for data, start, end in regions])
    sizes = ends - starts
    # begins[m]: where message m's part begins in digits. full: messages whose part is not empty.
    begins = np.append(0, np.cumsum(sizes))
    full = np.flatnonzero(sizes)
    cut = np.frombuffer(digits, np.uint8)[begins[full + 1] - 1] >= 0x80
    messages.refuse(cut, "truncated", full, ends[full] - 1, "a number that ends with its part")
    numbers, positions, too_large = uvarints_of(digits)
    first = np.searchsorted(positions, begins)
    large = np.flatnonzero(too_large)
    message = np.searchsorted(first, large, side="right") - 1
    expected = "numbers of at most 64 bits in 10 bytes"
    messages.refuse(np.ones(len(large), bool), "out_of_range", message, starts[message], expected)
    return UvarintRegion(numbers=numbers, signed=zigzags(numbers), first=first)


def _read_meta(messages: MessageBatch, rest: UvarintRegion, tables: Int64s) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Returns the bytes of header and dictionary, the number of events, and where in ``rest`` the body sizes begin, for
    each message."""
    # first[m], last[m]: message m's numbers in rest. They begin with 2, header, dictionary - header, count of events.
    each = np.arange(len(messages))
    first, last = rest.first[:-1], rest.first[1:]
    messages.refuse(last - first < 5, "bad_size", each, tables, "two tables of sizes")
    header, difference = rest.signed[first + 1], rest.signed[first + 2]
    dictionary = header + difference
    bad = (rest.numbers[first] != 2) | _outside(header, messages.sizes) | _outside(dictionary, messages.sizes)
    messages.refuse(bad, "bad_size", each, tables, "a table of the sizes of header and dictionary")
    most = np.minimum(header // 5, last - first - 4)
    events = _bounded(rest.numbers[first + 3])
    messages.refuse((events < 1) | (events > most), "bad_size", each, tables, "a table of the body sizes", events)
    return header, dictionary, events, first + 4


def _outside(positions: Int64s, sizes: Int64s) -> Bools:
    return (positions < 0) | (positions > sizes)


def _bounded(numbers: Int64s | UInt64s) -> Int64s:
    """Returns sizes clipped to 32 bits: an oversized value stays invalid, and a cumulative sum cannot overflow
    int64."""
    if numbers.dtype == np.uint64:
        return np.minimum(numbers, np.uint64(1 << 32)).astype(np.int64)
    return np.clip(numbers, -1 << 32, 1 << 32).astype(np.int64)


def read_header(messages: MessageBatch, sizes: Sizes, terms: Sequence[int]) -> Header:
    """Returns the header's columns, with ids and commit timestamps checked to be in range; ``terms`` is of each
    message."""
    # region: for each message five columns one after another, each with a number for each event (wire.md 1.1.2).
    region = _read_region(messages, sizes.header, sizes.bodies)
    counts = np.diff(region.first)
    every_message = np.arange(len(messages))
    messages.refuse(
        counts != 5 * sizes.events, "bad_size", every_message, sizes.header, "five numbers an event", counts
    )
    # positions[e]: event e's number in the first column; columns[c][e]: that in column c.
    message = sizes.message
    positions = region.first[message] + sizes.index
    columns = [positions + sizes.events[message] * number for number in range(5)]
    # commit_ts may descend in a batch; its differences wrap modulo 2^64 (wire.md 1.1.1).
    partitions, databases, tables = (running(region.signed[at], sizes.first, message) for at in columns[2:])
    header = Header(
        commit_ts=running(region.numbers[columns[0]], sizes.first, message),
        types=_bounded(region.numbers[columns[1]]),
        partitions=partitions,
        databases=databases,
        tables=tables,
    )
    _check(messages, sizes, header, np.array(terms)[message])
    return header


def _check(messages: MessageBatch, sizes: Sizes, header: Header, terms: Int64s) -> None:
    at = sizes.header[sizes.message]

    def refuse(bad: Bools, wanted: str, found: Int64s | UInt64s) -> None:
        messages.refuse(bad, "out_of_range", sizes.message, at, wanted, found)

    refuse((header.types < 1) | (header.types > 3), "an event type of 1 to 3", header.types)
    # A watermark has all 64 bits, a change has fewer than 63 (event.EVENTS).
    late = (header.commit_ts > MAX_TSO) & (header.types != EventType.RESOLVED)
    refuse(late, f"a commit_ts of 0 to {MAX_TSO}", header.commit_ts)
    refuse(header.partitions < NO_TERM, "a partition of at least -1", header.partitions)
    for name, ids in (("database", header.databases), ("table", header.tables)):
        refuse((ids < NO_TERM) | (ids >= terms), f"a {name} that the dictionary has", ids)


def _size_tables(sizes: Sizes, counts: Int64s) -> tuple[Int64s, Int64s]:
    """Returns where each row's size table begins in ``sizes.rest.numbers``, and where each message's tables end;
    ``counts`` are the row changes of each message."""
    # A walk may read past the last message's own numbers.
    numbers = sizes.rest.numbers.tolist() + [1] * (2 + 3 * int(counts.max(initial=0)))
    begins, ends = [], []
    for start, count in zip(sizes.groups.tolist(), counts.tolist(), strict=True):
        at = start
        for _ in range(count):
            begins.append(at)
            at += 2 if numbers[at] == 1 else 3
        ends.append(at)
    return np.array(begins, np.int64), np.array(ends, np.int64)


def read_groups(messages: MessageBatch, sizes: Sizes, rows: Int64s) -> tuple[Int64s, Int64s]:
    """Returns the number of column groups of each row change (``rows`` are their events), and the bytes of the first
    one."""
    message, rest = sizes.message[rows], sizes.rest
    at, ends = _size_tables(sizes, np.bincount(message, minlength=len(messages)))
    groups = _bounded(rest.numbers[np.minimum(at, len(rest.numbers) - 1)])
    unread = rest.first[1:] - ends
    every_message = np.arange(len(messages))
    expected = "1 or 2 column groups for each row"
    # First, as the counts beyond a message's own numbers belong to another message.
    messages.refuse(unread < 0, "bad_size", every_message, sizes.tables, expected)
    messages.refuse((groups < 1) | (groups > 2), "bad_size", message, sizes.tables[message], expected, groups)
    expected = "no numbers after the last size table"
    messages.refuse(unread > 0, "trailing_bytes", every_message, sizes.tables, expected, unread)
    # first[r], second[r]: bytes of row r's column groups, 0 where there is no second; it is written as a difference.
    first = _bounded(rest.signed[at + 1])
    second = np.zeros_like(first)
    double = np.flatnonzero(groups == 2)
    second[double] = first[double] + _bounded(rest.signed[at[double] + 2])
    bad = (first < 1) | (second < groups - 1) | (first + second != sizes.end[rows] - sizes.start[rows])
    messages.refuse(
        bad, "bad_size", message, sizes.tables[message], "1 or 2 column groups that fill the body", first + second
    )
    return groups, first
