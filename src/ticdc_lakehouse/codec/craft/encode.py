"""Events to Craft messages, byte for byte as tiflow v5.2 to v8.1 writes them (wire.md 1.1.2 to 1.1.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ticdc_lakehouse.codec.column_code import code_of, flags_of
from ticdc_lakehouse.codec.craft.frame import NO_TERM, VERSION, EventType, GroupType
from ticdc_lakehouse.codec.craft.group import form_of
from ticdc_lakehouse.codec.craft.text import group_bytes
from ticdc_lakehouse.codec.message import Message
from ticdc_lakehouse.codec.number import (
    delta_uvarints,
    delta_varints,
    uvarint,
    varint,
)
from ticdc_lakehouse.codec.options import SinkOptions
from ticdc_lakehouse.event import Bootstrap, Column, Ddl, Event, Failure, Image, Resolved, RowChange
from ticdc_lakehouse.mysql_type import Family, parse_type

_NEW, _OLD = (bytes([kind]) for kind in (GroupType.NEW, GroupType.OLD))


def encode(events: Sequence[Event], options: SinkOptions) -> list[Message]:
    """The events as messages, without bootstraps: Craft has none. Raises ValueError for what Craft cannot write."""
    rows = _Rows(only_keys=options.delete_only_output_handle_key_columns)
    for event in events:
        if isinstance(event, RowChange):
            rows.add(event)
    writer = _Writer(options, rows.bodies())
    for event in events:
        writer.add(event)
    writer.flush()
    return writer.messages


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """How the images of one set of columns are written."""

    columns: tuple[Column, ...]
    names: tuple[str, ...]
    in_order: bool
    """Whether the image has these names, no others, in this order."""
    described: bytes
    """The types and flags chunks, which follow the names."""
    forms: bytes
    """``Form`` of each column, a byte each."""
    indexed: tuple[tuple[int, Callable[[str], str]], ...]
    """Positions of ENUM and SET columns that have names, and what makes them numbers."""

    def values(self, image: Image) -> Iterable[str | None]:
        """The texts to write, in the order of the columns."""
        if self.in_order:
            return image.values()
        texts = [image[name] for name in self.names]
        for position, number in self.indexed:
            text = texts[position]
            texts[position] = None if text is None else number(text)
        return texts


class _Group(NamedTuple):
    """A column group but for its names, which are numbers that only the whole message gives."""

    kind: bytes
    plan: _Plan
    values: bytes


class _Body(NamedTuple):
    """An event on its way into a message."""

    kind: EventType
    commit_ts: int
    partition: int
    database: str | None
    table: str | None
    groups: tuple[_Group, ...] = ()
    rest: bytes = b""
    """The body of an event that is no row change."""


class _Rows:
    """The row changes of all messages: their values are written together."""

    def __init__(self, *, only_keys: bool) -> None:
        self._only_keys = only_keys
        self._rows: list[RowChange] = []
        # Kind and plan of each column group.
        self._kinds: list[bytes] = []
        self._group_plans: list[_Plan] = []
        self._texts: list[str | None] = []
        self._plans: dict[tuple[int, tuple[str, ...], bool], _Plan] = {}

    def add(self, row: RowChange) -> None:
        only_key = self._only_keys and row.after is None
        self._rows.append(row)
        for kind, image in ((_NEW, row.after), (_OLD, row.before)):
            if image is not None:
                plan = self._plan(row.columns, tuple(image), only_key)
                self._kinds.append(kind)
                self._group_plans.append(plan)
                self._texts += plan.values(image)

    def _plan(self, columns: tuple[Column, ...], names: tuple[str, ...], only_key: bool) -> _Plan:
        # By identity: hashing the columns of every row would cost more than writing it. The plan keeps them alive.
        plan = self._plans.get((id(columns), names, only_key))
        if plan is None:
            chosen = [column for column in columns if column.name in names and (column.key or not only_key)]
            plan = self._plans[id(columns), names, only_key] = _plan_of(columns, chosen, names)
        return plan

    def bodies(self) -> Iterator[_Body]:
        forms = [plan.forms for plan in self._group_plans]
        values = group_bytes(self._texts, b"".join(forms), [*map(len, forms)])
        groups = map(_Group, self._kinds, self._group_plans, values)
        for row in self._rows:
            count = (row.after is not None) + (row.before is not None)
            partition = NO_TERM if row.table_id is None else row.table_id
            commit_ts = _commit_ts(row)
            yield _Body(EventType.ROW, commit_ts, partition, row.database, row.table, tuple(islice(groups, count)))


class _Writer:
    """Batches row changes; DDLs and watermarks are messages of their own."""

    def __init__(self, options: SinkOptions, rows: Iterator[_Body]) -> None:
        self.messages: list[Message] = []
        self._options = options
        self._bodies = rows
        """The row changes' bodies, in the order of the events."""
        self._rows: list[_Body] = []
        self._size = 0

    def add(self, event: Event) -> None:
        match event:
            case RowChange():
                self._add_row(next(self._bodies))
            case Ddl():
                query = event.query.encode()
                rest = uvarint(_ddl_type(event)) + uvarint(len(query)) + query
                self._add_alone(
                    _Body(EventType.DDL, _commit_ts(event), NO_TERM, event.database, event.table, rest=rest)
                )
            case Resolved(commit_ts=commit_ts):
                self._add_alone(_Body(EventType.RESOLVED, commit_ts, NO_TERM, None, None))
            case Bootstrap():
                pass
            case Failure():
                raise ValueError(f"a message that did not decode has no events to encode: {event.detail}")

    def flush(self) -> None:
        """Close the message that collects row changes."""
        if self._rows:
            self.messages.append(_message(self._rows))
            self._rows = []
            self._size = 0

    def _add_alone(self, body: _Body) -> None:
        self.flush()
        self.messages.append(_message([body]))

    def _add_row(self, body: _Body) -> None:
        self._rows.append(body)
        self._size += sum([len(group.values) + 4 * len(group.plan.names) for group in body.groups])
        # As TiCDC does it: a message is closed once it is over the limit, so it may exceed it.
        if len(self._rows) >= self._options.max_batch_size or self._size > self._options.max_message_bytes:
            self.flush()


def _plan_of(columns: tuple[Column, ...], chosen: Sequence[Column], image: tuple[str, ...]) -> _Plan:
    codes = [code_of(column.type) for column in chosen]
    flags = [flags_of(column) for column in chosen]
    names = tuple(column.name for column in chosen)
    indexed = tuple((number, _indexed(column)) for number, column in enumerate(chosen) if column.by == "name")
    return _Plan(
        columns=columns,
        names=names,
        in_order=names == image and not indexed,
        described=b"".join(map(uvarint, codes + flags)),
        forms=bytes(form_of(*described)[1] for described in zip(codes, flags, strict=True)),
        indexed=indexed,
    )


def _indexed(column: Column) -> Callable[[str], str]:
    """The number of ENUM and SET values that came as names; their type text must list the names."""
    kind = parse_type(column.type)
    place = {name: number for number, name in enumerate(kind.elements)}
    if kind.family is Family.ENUM:
        return lambda text: str(place[text] + 1 if text else 0)
    return lambda text: str(sum(1 << place[name] for name in text.split(",") if name))


def _message(bodies: Sequence[_Body]) -> Message:
    """One message of these events. Term ids go in order of first use: databases, tables, then columns."""
    terms: dict[str | None, int] = {None: NO_TERM}
    databases = [terms.setdefault(body.database, len(terms) - 1) for body in bodies]
    tables = [terms.setdefault(body.table, len(terms) - 1) for body in bodies]
    heads = {plan: _head(plan, terms) for plan in dict.fromkeys([g.plan for body in bodies for g in body.groups])}
    groups = [[kind + heads[plan] + values for kind, plan, values in body.groups] for body in bodies]
    parts = [b"".join(of_body) + body.rest for of_body, body in zip(groups, bodies, strict=True)]
    header = b"".join(
        [
            delta_uvarints([body.commit_ts for body in bodies]),
            bytes([body.kind for body in bodies]),
            delta_varints([body.partition for body in bodies]),
            delta_varints(databases),
            delta_varints(tables),
        ]
    )
    dictionary = _dictionary(terms)
    tables_of_sizes = [_size_table([len(header), len(dictionary)]), _size_table([*map(len, parts)])]
    sizes = b"".join(tables_of_sizes + [_size_table([*map(len, of_row)]) for of_row in groups if of_row])
    value = b"".join([uvarint(VERSION), header, *parts, dictionary, sizes, uvarint(len(sizes))[::-1]])
    return Message(key=None, value=value)


def _size_table(sizes: list[int]) -> bytes:
    return b"\x01" + varint(sizes[0]) if len(sizes) == 1 else uvarint(len(sizes)) + delta_varints(sizes)


def _head(plan: _Plan, terms: dict[str | None, int]) -> bytes:
    names = [terms.setdefault(name, len(terms) - 1) for name in plan.names]
    return uvarint(len(names)) + delta_varints(names) + plan.described


def _dictionary(terms: Iterable[str | None]) -> bytes:
    names = [name.encode() for name in terms if name is not None]
    if not names:
        return b""
    return b"".join([uvarint(len(names)), *[uvarint(len(name)) for name in names], *names])


def _commit_ts(event: RowChange | Ddl) -> int:
    if event.commit_ts is None:
        raise ValueError(f"Craft needs a commit_ts, {event.database}.{event.table} has none")
    return event.commit_ts


def _ddl_type(ddl: Ddl) -> int:
    if ddl.type is None or not ddl.type.isdecimal():
        raise ValueError(f"Craft needs TiDB's number of a DDL's type, found {ddl.type}: {ddl.query}")
    return int(ddl.type)
