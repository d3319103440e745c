"""Events to Craft messages, byte for byte as tiflow v5.2 to v8.1 writes them (wire.md 1.1.2 to 1.1.4).

Row images become the bytes of column groups, the values of all together (``_group_bytes``); ``MessageComposer`` puts
messages together of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_codec.bounded_cache import make_room
from ticdc_codec.craft.frame import NO_TERM, VERSION, EventType, GroupType
from ticdc_codec.craft.group import ValueEncoding, encoding_of
from ticdc_codec.event import Bootstrap, Column, Ddl, Event, Failure, Image, Resolved, RowChange
from ticdc_codec.message import Message, commit_ts_of
from ticdc_codec.mysql_type import parse_type
from ticdc_codec.number import Int64s, delta_uvarints, delta_varints, octets_of, uvarint, varint, zigzagged
from ticdc_codec.number_text import number_of_names, shortest_texts
from ticdc_codec.options import SinkOptions
from ticdc_codec.tidb_codes import code_of, flags_of

_NEW, _OLD = GroupType.NEW, GroupType.OLD


def encode(events: Sequence[Event], options: SinkOptions) -> list[Message]:
    """Returns the events as messages, without bootstraps: Craft has none. Raises ValueError or ConfigError for what
    Craft cannot write."""
    rows = [event for event in events if isinstance(event, RowChange)]
    writer = _Writer(options, iter(_groups(rows, options)))
    for event in events:
        writer.add(event)
    writer.flush()
    return writer.messages


def _groups(rows: Sequence[RowChange], options: SinkOptions) -> list[EncodedGroups]:
    """Returns the column groups of each row: the values of all are written together."""
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
    groups = zip(chosen, _group_bytes(texts, b"".join(encodings), [*map(len, encodings)]), strict=True)
    return [tuple(islice(groups, (row.after is not None) + (row.before is not None))) for row in rows]


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
                self._add_single(EventType.DDL, commit_ts_of(event, "craft"), body, event.database, event.table)
            case Resolved(commit_ts=commit_ts):
                self._add_single(EventType.RESOLVED, commit_ts)
            case Bootstrap():
                pass
            case Failure():
                raise ValueError(f"a message that did not decode has no events to encode: {event.detail}")

    def flush(self) -> None:
        """Finishes the message that collects row changes."""
        if self._rows:
            self.messages.append(self._composer.rows(_header(self._rows), self._groups))
        self._rows, self._groups, self._size = [], [], 0

    def _add_single(
        self, kind: EventType, commit_ts: int, body: bytes = b"", database: str | None = None, table: str | None = None
    ) -> None:
        self.flush()
        header = _HeaderFields(
            kind=kind, commit_ts=[commit_ts], partitions=[NO_TERM], databases=[database], tables=[table]
        )
        self.messages.append(self._composer.single_event(header, body))

    def _add_row(self, row: RowChange, groups: EncodedGroups) -> None:
        self._rows.append(row)
        self._groups.append(groups)
        for plan, values in groups:
            self._size += len(values) + 4 * len(plan.names)
        # As in TiCDC, a message is finished once it is over the limit, so it may exceed it (wire.md 1.1.4).
        if len(self._rows) >= self._options.max_batch_size or self._size > self._options.max_message_bytes:
            self.flush()


def _header(rows: Sequence[RowChange]) -> _HeaderFields:
    return _HeaderFields(
        kind=EventType.ROW,
        commit_ts=[commit_ts_of(row, "craft") for row in rows],
        partitions=[NO_TERM if row.table_id is None else row.table_id for row in rows],
        databases=[row.database for row in rows],
        tables=[row.table for row in rows],
    )


def _ddl_type(ddl: Ddl) -> int:
    if ddl.type is None or not ddl.type.isdecimal():
        raise ValueError(f"Craft needs TiDB's number of a DDL's type, found {ddl.type}: {ddl.query}")
    return int(ddl.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeaderFields:
    """The header's fields for each event."""

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


class MessageComposer:
    """Assembles messages; caches the parts that they repeat."""

    def __init__(self) -> None:
        self._vocabularies: dict[tuple[tuple[object, ...], ...], _Vocabulary] = {}

    def rows(self, header: _HeaderFields, rows: Sequence[EncodedGroups]) -> Message:
        """Returns a message of row changes."""
        plans = [plan for groups in rows for plan, _ in groups]
        vocabulary = self._vocabulary(header, plans)
        heads = vocabulary.heads
        sizes = [[len(heads[plan]) + len(values) for plan, values in groups] for groups in rows]
        body = b"".join([piece for groups in rows for plan, values in groups for piece in (heads[plan], values)])
        return _message(header, vocabulary, body, [*map(sum, sizes)], b"".join(map(_size_table, sizes)))

    def single_event(self, header: _HeaderFields, body: bytes) -> Message:
        """Returns a message of one DDL or watermark."""
        return _message(header, self._vocabulary(header, ()), body, [len(body)], b"")

    def _vocabulary(self, header: _HeaderFields, plans: Sequence[ImagePlan]) -> _Vocabulary:
        used = tuple(dict.fromkeys(header.databases)), tuple(dict.fromkeys(header.tables)), tuple(dict.fromkeys(plans))
        vocabulary = self._vocabularies.get(used)
        if vocabulary is None:
            make_room(self._vocabularies)
            vocabulary = self._vocabularies[used] = _vocabulary(*used)
        return vocabulary


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


def _message(
    header: _HeaderFields, vocabulary: _Vocabulary, bodies: bytes, sizes: list[int], group_tables: bytes
) -> Message:
    """Returns one message; ``sizes`` are those of the bodies, ``group_tables`` the size tables of the rows' column
    groups."""
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


@dataclass(frozen=True, slots=True, eq=False)
class ImagePlan:
    """How images with the same columns are written as column groups of one type."""

    kind: bytes
    """``GroupType``, a byte."""
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    in_order: bool
    """True if the image has exactly these names in this order."""
    described: bytes
    """The types and flags chunks, which follow the names."""
    encodings: bytes
    """``ValueEncoding`` of each column, a byte each."""
    indexed: tuple[tuple[int, Callable[[str], str]], ...]
    """Positions of ENUM and SET columns whose values are names, and the functions to their numbers."""

    def values(self, image: Image) -> Iterable[str | None]:
        """Returns the texts to write, in the order of the columns."""
        if self.in_order:
            return image.values()
        texts = [image[name] for name in self.names]
        for position, number in self.indexed:
            text = texts[position]
            texts[position] = None if text is None else number(text)
        return texts


EncodedGroups = Sequence[tuple[ImagePlan, bytes]]
"""A row's column groups: the plan of each, and its values' lengths and bytes."""


class ImagePlans:
    """The plans of all columns seen so far."""

    def __init__(self, *, only_keys: bool) -> None:
        self._only_keys = only_keys
        self._plans: dict[tuple[GroupType, int, tuple[str, ...], bool], ImagePlan] = {}

    def of(self, kind: GroupType, columns: tuple[Column, ...], image: tuple[str, ...], *, deleted: bool) -> ImagePlan:
        """Returns the plan of an image with these names; of a deleted row perhaps only the handle key (wire.md
        1.6)."""
        # By identity: hashing the columns of every row would cost more than writing it. The plan keeps them alive.
        key = (kind, id(columns), image, deleted)
        plan = self._plans.get(key)
        if plan is None:
            # A row that names no key keeps its columns: tiflow's writer panics at a group without columns.
            only_key = self._only_keys and deleted and any(column.key for column in columns)
            chosen = [column for column in columns if column.name in image and (column.key or not only_key)]
            plan = self._plans[key] = _plan(kind, columns, chosen, image)
        return plan


def _plan(kind: GroupType, columns: tuple[Column, ...], chosen: list[Column], image: tuple[str, ...]) -> ImagePlan:
    codes = [code_of(column.type) for column in chosen]
    flags = [flags_of(column) for column in chosen]
    names = tuple(column.name for column in chosen)
    indexed = tuple(
        (number, number_of_names(parse_type(column.type)))
        for number, column in enumerate(chosen)
        if column.by == "name"
    )
    return ImagePlan(
        kind=bytes([kind]),
        columns=columns,
        names=names,
        in_order=names == image and not indexed,
        described=b"".join(map(uvarint, codes + flags)),
        encodings=bytes(encoding_of(*described)[1] for described in zip(codes, flags, strict=True)),
        indexed=indexed,
    )


def _group_bytes(texts: list[str | None], encodings: bytes, counts: list[int]) -> list[bytes]:
    """Returns the value chunk of each column group, lengths and bytes, from the values of all groups (``counts`` in
    each).

    Raises ValueError for a text that its encoding cannot have.
    """
    if not texts:
        return []
    # value_ends: Arrow's offsets. octets, sizes: all length prefixes as varints, -1 for NULL (wire.md 1.1.1), and the
    # bytes of each.
    values = _values(pa.array(texts, pa.large_string()), np.frombuffer(encodings, np.uint8))
    _, positions, content = values.buffers()
    value_ends = np.frombuffer(positions, np.int64)[: len(texts) + 1]
    data = b"" if content is None else content.to_pybytes()
    given = values.is_valid().to_numpy(zero_copy_only=False)
    octets, sizes = octets_of(zigzagged(np.where(given, np.diff(value_ends), -1)))
    lengths = octets.tobytes()
    # at[g], length_at[g]: where group g's values and lengths begin; the last items are the ends.
    group_ends = np.append(0, np.cumsum(counts))
    at = value_ends[group_ends].tolist()
    length_at = np.append(0, np.cumsum(sizes))[group_ends].tolist()
    parts = zip(length_at, length_at[1:], at, at[1:], strict=False)
    return [lengths[first:last] + data[start:end] for first, last, start, end in parts]


def _values(texts: pa.Array, encodings: npt.NDArray[np.uint8]) -> pa.Array:
    """Returns the values' bytes as one Arrow array in the order of ``texts``, null for NULL."""
    # position[v]: index of value v's bytes in the concatenated parts, one for each encoding; -1 for NULL.
    position = np.full(len(texts), -1, np.int64)
    given = texts.is_valid().to_numpy(zero_copy_only=False)
    parts: list[pa.Array] = []
    total = 0
    for encoding, write in _WRITERS.items():
        chosen = np.flatnonzero((encodings == encoding) & given)
        if len(chosen):
            parts.append(write(texts.take(pa.array(chosen))).cast(pa.large_binary()))
            position[chosen] = np.arange(total, total + len(chosen))
            total += len(chosen)
    everything = pa.concat_arrays(parts) if parts else pa.array([], pa.large_binary())
    return everything.take(pa.array(position, mask=position < 0))


def _nothing(texts: pa.Array) -> pa.Array:
    raise ValueError(f"a column of this type is always NULL in Craft, found {texts[0]}")


def _signed(texts: pa.Array) -> pa.Array:
    return _joined(*octets_of(zigzagged(texts.cast(pa.int64()).to_numpy())))


def _unsigned(texts: pa.Array) -> pa.Array:
    return _joined(*octets_of(texts.cast(pa.uint64()).to_numpy()))


def _doubles(texts: pa.Array) -> pa.Array:
    return _joined(texts.cast(pa.float64()).to_numpy().view(np.uint8), np.full(len(texts), 8))


def _floats(texts: pa.Array) -> pa.Array:
    """Returns float32s as float64s (wire.md 1.1.3); a text that is not a float32 (wire.md 8.1) is written with all
    digits."""
    # single: the texts that are the shortest of a float32. Those get the float32's value, widened.
    wide = texts.cast(pa.float64()).to_numpy().copy()
    with np.errstate(over="ignore"):
        narrow = wide.astype(np.float32)
    finite = np.flatnonzero(np.isfinite(narrow))
    single = finite[np.array(shortest_texts(narrow[finite]), np.float64) == wide[finite]]
    wide[single] = narrow[single]
    return _joined(wide.view(np.uint8), np.full(len(texts), 8))


def _texts(texts: pa.Array) -> pa.Array:
    return texts


def _binaries(texts: pa.Array) -> pa.Array:
    return pa.array([bytes.fromhex(text) for text in texts.to_pylist()], pa.large_binary())


def _joined(octets: npt.NDArray[np.uint8], sizes: Int64s) -> pa.Array:
    positions = np.append(0, np.cumsum(sizes))
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), [None, pa.py_buffer(positions), pa.py_buffer(octets)])


_WRITERS: dict[ValueEncoding, Callable[[pa.Array], pa.Array]] = {
    ValueEncoding.NULL: _nothing,
    ValueEncoding.SIGNED: _signed,
    ValueEncoding.UNSIGNED: _unsigned,
    ValueEncoding.YEAR: _signed,
    ValueEncoding.DOUBLE: _doubles,
    ValueEncoding.FLOAT: _floats,
    ValueEncoding.TEXT: _texts,
    ValueEncoding.BINARY: _binaries,
}
