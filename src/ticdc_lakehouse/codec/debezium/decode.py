"""Messages into events. Options say what the bytes do not (wire.md 1.6): compression, and the zone of TIMESTAMPs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

import msgspec
import pyarrow as pa
from msgspec import UNSET, Raw, UnsetType

from ticdc_lakehouse.codec.batch import DecodeBatch, Events, checked_tso, checked_watermark, collect_one, in_order
from ticdc_lakehouse.codec.compression import decompress
from ticdc_lakehouse.codec.debezium.ddl import layout_of
from ticdc_lakehouse.codec.debezium.envelope import (
    DdlPayload,
    RowPayload,
    Source,
    WatermarkPayload,
    Whole,
    read_payload,
    read_whole,
)
from ticdc_lakehouse.codec.debezium.row import Image, Row, members_of
from ticdc_lakehouse.codec.debezium.table import BEGIN, Description, Table, Tables, begin_of
from ticdc_lakehouse.codec.debezium.twin import without_twins
from ticdc_lakehouse.codec.gathered import Gathered, alone
from ticdc_lakehouse.codec.halving import add_by_halves
from ticdc_lakehouse.codec.json_text import Unreadable, names_of, unreadable
from ticdc_lakehouse.codec.known import Known
from ticdc_lakehouse.codec.options import Compression, SinkOptions
from ticdc_lakehouse.errors import DecodeError
from ticdc_lakehouse.event import Op

_OPS = {"c": Op.INSERT, "u": Op.UPDATE, "d": Op.DELETE}

_TOGETHER = 1024
"""Messages that are read before their rows are added: so many stay in a processor's cache."""

_ENCODE_LINES = msgspec.json.Encoder().encode_lines


def decoder(options: SinkOptions, known: Known) -> DecodeBatch:
    """A decoder of batches of messages; the definitions in ``known`` are asked for with schema version 0."""
    return _Decoder(options, known).decode


class _Decoder:
    __slots__ = ("_alike", "_compressed", "_keys", "_rows", "_tables", "_values")

    def __init__(self, options: SinkOptions, known: Known) -> None:
        self._tables = Tables(known, options.time_zone)
        self._compressed = options.large_message_handle_compression
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        """Of the messages by number; without compression once they were looked at."""
        self._alike: dict[bytes, tuple[Table, list[int]]] = {}
        """Rows to be added, by their begin: the table it is known by, and the messages."""
        self._rows = Gathered()

    def decode(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> pa.RecordBatch:
        """The messages' events."""
        out, self._rows = Events(), Gathered()
        self._keys, self._values = [*keys], [*values]
        numbers = [number for number, _ in enumerate(zip(self._keys, self._values, strict=True))]
        for start in range(0, len(numbers), _TOGETHER):
            self._read(numbers[start : start + _TOGETHER], out)
            for table, rows in self._alike.values():
                self._together(table, rows, out)
            self._alike.clear()
        gathered = self._rows.rows()
        self._keys, self._values, self._rows = [], [], Gathered()
        return in_order(gathered, out, [0] * len(out))

    def _read(self, numbers: list[int], out: Events) -> None:
        """Keep or add messages."""
        bare = self._compressed is Compression.NONE
        for number in numbers:
            value = self._values[number]
            if bare and value and (alike := self._alike.get(begin_of(value))) is not None:
                alike[1].append(number)
            else:
                collect_one(self._message, number, self._keys[number], value, out)

    def _message(self, key: bytes | None, value: bytes | None, out: Events) -> None:
        """Keep a row that begins as one before, and add any other event. Raises DecodeError."""
        number = out.message
        if value and self._compressed is not Compression.NONE:
            self._values[number] = value = decompress(value, self._compressed)
            self._keys[number] = key = key and decompress(key, self._compressed)
        table = self._tables.known(begin_of(value)) if value else None
        if table is None or not value:
            return self._alone(key, value, out)
        self._alike.setdefault(begin_of(value), (table, []))[1].append(number)
        return None

    def _together(self, table: Table, numbers: list[int], out: Events) -> None:
        """Add rows. One that has any fault, or is not like the others, is read alone."""

        def add_all(numbers: Sequence[int]) -> bool:
            keys, values = ([of[number] for number in numbers] for of in (self._keys, self._values))
            self._add(table, numbers, keys, [table.bare(value or b"") for value in values])
            return True

        def add_one(number: int) -> None:
            collect_one(self._alone, number, self._keys[number], self._values[number], out)

        add_by_halves(numbers, add_all, add_one)

    def _add(self, table: Table, numbers: Sequence[int], keys: list[bytes | None], bare: list[bytes]) -> None:
        """Add rows of one table, or none of them. Raises DecodeError, or one of ``Unreadable``, if one has a fault."""
        read = [*map(table.read, bare)]
        _check_names(bare, read)
        rows = [message.payload for message in read]
        letters = [row.op for row in rows]
        parts = [
            _part(table, op, [*compress(numbers, chosen)], [*compress(keys, chosen)], [*compress(rows, chosen)])
            for letter, op in _OPS.items()
            if any(chosen := [each == letter for each in letters])
        ]
        for part in parts:
            self._rows.add(alone(part.numbers), part.op, (part.commits, None), table.layout, part.keys, part.images)

    def _alone(self, key: bytes | None, value: bytes | None, out: Events) -> None:
        """Add the message's event, whatever it is. Raises DecodeError."""
        if not value:
            raise DecodeError("empty", "expected a JSON object, found no bytes")
        plain = _named_once(value)
        whole = read_whole(plain)
        match read_payload(plain, whole.payload):
            case RowPayload(source=source) as row:
                try:
                    table = self._row(key, whole, row, out.message)
                except (DecodeError, *Unreadable) as error:
                    raise _row_fault(error, plain, source) from None
                self._tables.learn(begin_of(value), table)
            case WatermarkPayload(source=source):
                out.resolved(checked_watermark(source.commit_ts))
            case DdlPayload(source=source, ddl=query, changes=changes) as ddl:
                change = changes[-1].type if changes else None
                out.ddl(checked_tso(source.commit_ts), None, layout_of(ddl), query, change)

    def _row(self, key: bytes | None, whole: Whole, row: RowPayload, number: int) -> Table:
        """Add a row as it describes itself, and give its table. Raises DecodeError, or one of ``Unreadable``."""
        named = read_whole(key) if key else None
        if key and named:
            names_of(key)
        table = self._tables.described(_description(row, whole, named))
        plain_key = None if named is None else table.plain_key(named.payload)
        self._add(table, [number], [plain_key], [BEGIN + whole.payload + b"}"])
        return table


def _named_once(value: bytes) -> bytes:
    """The value with each name once in an object. Raises DecodeError."""
    read_whole(value)  # it is JSON
    try:
        names_of(value)
    except DecodeError as error:
        if error.reason != "duplicate_name":
            raise
        return without_twins(value)
    return value


def _description(row: RowPayload, whole: Whole, key: Whole | None) -> Description:
    image = row.before if row.op == "d" else row.after
    return Description(
        database=row.source.db,
        table=row.source.table,
        names=tuple(members_of(image or b"null")),
        keys=None if key is None else tuple(members_of(key.payload)),
        schema=_bytes(whole.schema),
        key_schema=b"" if key is None else _bytes(key.schema),
    )


def _bytes(schema: Raw | UnsetType) -> bytes:
    return b"" if schema is UNSET else bytes(schema)


def _row_fault(error: BaseException, value: bytes, source: Source) -> DecodeError:
    """What is wrong with a row, naming its table."""
    fault = error if isinstance(error, DecodeError) else unreadable(error, value)
    in_image = fault.reason in ("missing_member", "unknown_member") and "`$.payload." in fault.detail
    reason = "wrong_columns" if in_image else fault.reason
    return DecodeError(reason, fault.detail, offset=fault.offset, database=source.db, table=source.table)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Rows of one kind, as columns."""

    numbers: list[int]
    op: Op
    commits: list[int]
    keys: tuple[bytes, list[bytes | None] | None]
    images: tuple[bytes, bytes]
    """Before and after."""


def _part(table: Table, op: Op, numbers: list[int], keys: list[bytes | None], rows: list[Row]) -> _Part:
    """Raises DecodeError, or one of ``Unreadable``."""
    old, new = _images(op, rows)
    named = old if op is Op.DELETE else new
    if table.keys(named) != keys:
        raise DecodeError("key_mismatch", "expected the key to have the values of the row's key columns")
    before, after = table.texts(old), table.texts(new)
    changed = table.old_handle_keys(before, after) if op is Op.UPDATE and old else None
    return _Part(
        numbers=numbers,
        op=op,
        commits=[checked_tso(row.source.commit_ts) for row in rows],
        keys=(table.handle_keys(before if op is Op.DELETE else after), changed),
        images=(table.lines(before, len(old)), table.lines(after, len(new))),
    )


def _check_names(values: list[bytes], messages: Sequence[msgspec.Struct]) -> None:
    """Raise DecodeError ``duplicate_name`` if an object in a value has a name twice.

    A second name would make a value longer than the shortest that reads so, and all of them together.
    """
    shortest = _ENCODE_LINES(messages)
    if sum(map(len, values)) + len(values) == len(shortest):
        return
    for value, line in zip(values, shortest.splitlines(), strict=True):
        if len(value) != len(line):
            names_of(value)


def _images(op: Op, rows: list[Row]) -> tuple[list[Image], list[Image]]:
    """The images before and after: all rows have them, or none. Raises DecodeError where the op forbids it."""
    old = _given(row.before for row in rows)
    new = _given(row.after for row in rows)
    allowed = {
        Op.INSERT: ((0,), (len(rows),)),
        Op.UPDATE: ((0, len(rows)), (len(rows),)),
        Op.DELETE: ((len(rows),), (0,)),
    }[op]
    if len(old) not in allowed[0] or len(new) not in allowed[1]:
        raise DecodeError("wrong_type", f"expected other rows in before and after of an {op}")
    return old, new


def _given(images: Iterable[Image]) -> list[Image]:
    return [image for image in images if image is not None and image is not UNSET]
