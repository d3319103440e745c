"""Events to Craft messages, byte for byte as tiflow v5.2 to v8.1 writes them (wire.md 1.1.2 to 1.1.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ticdc_codec.craft.column_groups import ImagePlan, ImagePlans, group_bytes
from ticdc_codec.craft.frame import NO_TERM, VERSION, EventType, GroupType
from ticdc_codec.event import Bootstrap, Ddl, Event, Failure, Resolved, RowChange
from ticdc_codec.message import Message
from ticdc_codec.number import delta_uvarints, delta_varints, uvarint, varint
from ticdc_codec.options import SinkOptions

_NEW, _OLD = GroupType.NEW, GroupType.OLD


def encode(events: Sequence[Event], options: SinkOptions) -> list[Message]:
    """The events as messages, without bootstraps: Craft has none. Raises ValueError for what Craft cannot write."""
    rows = [event for event in events if isinstance(event, RowChange)]
    writer = _Writer(options, _groups(rows, options))
    for event in events:
        writer.add(event)
    writer.flush()
    return writer.messages


def _groups(rows: Sequence[RowChange], options: SinkOptions) -> Iterator[EncodedGroups]:
    """The column groups of each row: the values of all are written together."""
    plans = ImagePlans(only_keys=options.delete_only_output_handle_key_columns)
    chosen: list[ImagePlan] = []
    texts: list[str | None] = []
    for row in rows:
        for kind, image in ((_NEW, row.after), (_OLD, row.before)):
            if image is not None:
                plan = plans.of(kind, row.columns, tuple(image), deleted=row.after is None)
                chosen.append(plan)
                texts += plan.values(image)
    encodings = [plan.encodings for plan in chosen]
    groups = zip(chosen, group_bytes(texts, b"".join(encodings), [*map(len, encodings)]), strict=True)
    for row in rows:
        yield tuple(islice(groups, (row.after is not None) + (row.before is not None)))


class _Writer:
    """Batches row changes; DDLs and watermarks are messages of their own."""

    def __init__(self, options: SinkOptions, groups: Iterator[EncodedGroups]) -> None:
        self.messages: list[Message] = []
        self._options = options
        self._composer = MessageComposer()
        self._following = groups
        """The row changes' column groups, in the order of the events."""
        self._rows: list[RowChange] = []
        self._groups: list[EncodedGroups] = []
        self._size = 0

    def add(self, event: Event) -> None:
        match event:
            case RowChange():
                self._add_row(event, next(self._following))
            case Ddl():
                query = event.query.encode()
                body = uvarint(_ddl_type(event)) + uvarint(len(query)) + query
                self._add_alone(EventType.DDL, _commit_ts(event), body, event.database, event.table)
            case Resolved(commit_ts=commit_ts):
                self._add_alone(EventType.RESOLVED, commit_ts)
            case Bootstrap():
                pass
            case Failure():
                raise ValueError(f"a message that did not decode has no events to encode: {event.detail}")

    def flush(self) -> None:
        """Finish the message that collects row changes."""
        if self._rows:
            self.messages.append(self._composer.rows(_header(self._rows), self._groups))
        self._rows, self._groups, self._size = [], [], 0

    def _add_alone(
        self, kind: EventType, commit_ts: int, body: bytes = b"", database: str | None = None, table: str | None = None
    ) -> None:
        self.flush()
        header = Header(kind=kind, commit_ts=[commit_ts], partitions=[NO_TERM], databases=[database], tables=[table])
        self.messages.append(self._composer.alone(header, body))

    def _add_row(self, row: RowChange, groups: EncodedGroups) -> None:
        self._rows.append(row)
        self._groups.append(groups)
        for plan, values in groups:
            self._size += len(values) + 4 * len(plan.names)
        # As in TiCDC, a message is finished once it is over the limit, so it may exceed it (wire.md 1.1.4).
        if len(self._rows) >= self._options.max_batch_size or self._size > self._options.max_message_bytes:
            self.flush()


def _header(rows: Sequence[RowChange]) -> Header:
    return Header(
        kind=EventType.ROW,
        commit_ts=[_commit_ts(row) for row in rows],
        partitions=[NO_TERM if row.table_id is None else row.table_id for row in rows],
        databases=[row.database for row in rows],
        tables=[row.table for row in rows],
    )


def _commit_ts(event: RowChange | Ddl) -> int:
    if event.commit_ts is None:
        raise ValueError(f"Craft needs a commit_ts, {event.database}.{event.table} has none")
    return event.commit_ts


def _ddl_type(ddl: Ddl) -> int:
    if ddl.type is None or not ddl.type.isdecimal():
        raise ValueError(f"Craft needs TiDB's number of a DDL's type, found {ddl.type}: {ddl.query}")
    return int(ddl.type)


EncodedGroups = Sequence[tuple[ImagePlan, bytes]]
"""A row's column groups: the plan of each, and its values' lengths and bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the header says of each event."""

    kind: EventType
    commit_ts: list[int]
    partitions: list[int]
    databases: list[str | None]
    tables: list[str | None]


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """The parts that messages of the same tables repeat."""

    terms: dict[str | None, int]
    """Ids in order of first use: databases, tables, then columns."""
    heads: dict[ImagePlan, bytes]
    """The bytes before the values of a column group."""
    dictionary: bytes


_MAX_VOCABULARIES = 4096


class MessageComposer:
    """Assembles messages; caches the parts that they repeat."""

    def __init__(self) -> None:
        self._vocabularies: dict[tuple[tuple[object, ...], ...], _Vocabulary] = {}

    def rows(self, header: Header, rows: Sequence[EncodedGroups]) -> Message:
        """A message of row changes."""
        plans = [plan for groups in rows for plan, _ in groups]
        vocabulary = self._vocabulary(header, plans)
        heads = vocabulary.heads
        sizes = [[len(heads[plan]) + len(values) for plan, values in groups] for groups in rows]
        body = b"".join([piece for groups in rows for plan, values in groups for piece in (heads[plan], values)])
        return _message(header, vocabulary, body, [*map(sum, sizes)], b"".join(map(_size_table, sizes)))

    def alone(self, header: Header, body: bytes) -> Message:
        """A message of one DDL or watermark."""
        return _message(header, self._vocabulary(header, ()), body, [len(body)], b"")

    def _vocabulary(self, header: Header, plans: Sequence[ImagePlan]) -> _Vocabulary:
        used = tuple(dict.fromkeys(header.databases)), tuple(dict.fromkeys(header.tables)), tuple(dict.fromkeys(plans))
        found = self._vocabularies.get(used)
        if found is None:
            if len(self._vocabularies) >= _MAX_VOCABULARIES:
                self._vocabularies.clear()
            found = self._vocabularies[used] = _vocabulary(*used)
        return found


def _vocabulary(
    databases: Iterable[str | None], tables: Iterable[str | None], plans: Iterable[ImagePlan]
) -> _Vocabulary:
    terms: dict[str | None, int] = {None: NO_TERM}
    for name in (*databases, *tables):
        terms.setdefault(name, len(terms) - 1)
    heads = {plan: _head(plan, terms) for plan in plans}
    return _Vocabulary(terms, heads, _dictionary([name.encode() for name in terms if name is not None]))


def _head(plan: ImagePlan, terms: dict[str | None, int]) -> bytes:
    names = [terms.setdefault(name, len(terms) - 1) for name in plan.names]
    return plan.kind + uvarint(len(names)) + delta_varints(names) + plan.described


def _dictionary(names: list[bytes]) -> bytes:
    return b"".join([uvarint(len(names)), *[uvarint(len(name)) for name in names], *names]) if names else b""


def _message(header: Header, vocabulary: _Vocabulary, bodies: bytes, sizes: list[int], group_tables: bytes) -> Message:
    """One message; ``sizes`` are those of the bodies, ``group_tables`` the size tables of the rows' column groups."""
    terms, dictionary = vocabulary.terms, vocabulary.dictionary
    head = b"".join(
        [
            delta_uvarints(header.commit_ts),
            bytes([header.kind]) * len(sizes),
            delta_varints(header.partitions),
            delta_varints([terms[name] for name in header.databases]),
            delta_varints([terms[name] for name in header.tables]),
        ]
    )
    tables = _size_table([len(head), len(dictionary)]) + _size_table(sizes) + group_tables
    value = b"".join([uvarint(VERSION), head, bodies, dictionary, tables, uvarint(len(tables))[::-1]])
    return Message(key=None, value=value)


def _size_table(sizes: list[int]) -> bytes:
    return b"\x01" + varint(sizes[0]) if len(sizes) == 1 else uvarint(len(sizes)) + delta_varints(sizes)
