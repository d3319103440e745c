"""Messages into events. Options say what the bytes do not (wire.md 1.6): compression, and the zone of TIMESTAMPs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import compress

import msgspec
import pyarrow as pa
from msgspec import UNSET, Raw, UnsetType

from ticdc_codec.batch import DecodeBatch, Events, checked_tso, checked_watermark, collect_one, in_order
from ticdc_codec.bisect_failures import add_by_halves
from ticdc_codec.compression import decompress
from ticdc_codec.debezium.ddl import layout_of
from ticdc_codec.debezium.duplicated_default import without_twins
from ticdc_codec.debezium.envelope import (
    DdlPayload,
    RowPayload,
    Source,
    WatermarkPayload,
    Whole,
    read_payload,
    read_whole,
)
from ticdc_codec.debezium.part import part_of
from ticdc_codec.debezium.row import Row, members_of
from ticdc_codec.debezium.table import Description, Table, Tables, begin_of, letter_of
from ticdc_codec.decoder_context import DecoderContext
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Op
from ticdc_codec.json_text import Unreadable, names_of, unreadable
from ticdc_codec.message_prefix import Head
from ticdc_codec.options import Compression, SinkOptions
from ticdc_codec.row_builder import Gathered, alone

_IN_IMAGE = re.compile(r"`\$\.(?:before|after)\b")

_OPS = {"c": Op.INSERT, "u": Op.UPDATE, "d": Op.DELETE}

_TOGETHER = 1024
"""Messages that are read before their rows are added: so many stay in a processor's cache."""

_ENCODE = msgspec.json.Encoder().encode
_ENCODE_LINES = msgspec.json.Encoder().encode_lines


def decoder(options: SinkOptions, known: DecoderContext) -> DecodeBatch:
    """A decoder of batches of messages; the definitions in ``known`` are asked for with schema version 0."""
    return _Decoder(options, known).decode


class _Decoder:
    __slots__ = ("_alike", "_compressed", "_keys", "_rows", "_tables", "_values")

    def __init__(self, options: SinkOptions, known: DecoderContext) -> None:
        self._tables = Tables(known, options.time_zone)
        self._compressed = options.large_message_handle_compression
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        """Of the messages by number; without compression once they were looked at."""
        self._alike: dict[bytes, tuple[Table, Head, list[int]]] = {}
        """Rows to be added, by their begin: table and head that are known by it, and the messages."""
        self._rows = Gathered()

    def decode(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> pa.RecordBatch:
        """The messages' events."""
        out, self._rows = Events(), Gathered()
        both = [*zip(keys, values, strict=True)]
        self._keys, self._values = [key for key, _ in both], [value for _, value in both]
        for start in range(0, len(both), _TOGETHER):
            self._read(start, self._values[start : start + _TOGETHER], out)
            for table, head, rows in self._alike.values():
                self._together(table, head, rows, out)
            self._alike.clear()
        gathered = self._rows.rows()
        self._keys, self._values, self._rows = [], [], Gathered()
        return in_order(gathered, out, [0] * len(out))

    def _read(self, start: int, values: list[bytes | None], out: Events) -> None:
        """Keep or add messages from number ``start`` on."""
        bare = self._compressed is Compression.NONE
        for number, value in enumerate(values, start):
            if bare and value and (alike := self._alike.get(begin_of(value))) is not None:
                alike[2].append(number)
            else:
                collect_one(self._message, number, self._keys[number], value, out)

    def _message(self, key: bytes | None, value: bytes | None, out: Events) -> None:
        """Keep a row that begins as one before, and add any other event. Raises DecodeError."""
        number = out.message
        if value and self._compressed is not Compression.NONE:
            self._values[number] = value = decompress(value, self._compressed)
            self._keys[number] = key = key and decompress(key, self._compressed)
        known = self._tables.known(begin_of(value)) if value else None
        if known is None or not value:
            return self._alone(key, value, out)
        self._alike.setdefault(begin_of(value), (*known, []))[2].append(number)
        return None

    def _together(self, table: Table, head: Head, numbers: list[int], out: Events) -> None:
        """Add rows. One that has any fault, or is not like the others, is read alone."""

        def add_all(numbers: Sequence[int]) -> bool:
            values = [self._values[number] or b"" for number in numbers]
            commits, images = head.numbers(values), table.images_of(values, head)
            if commits is None or len(images) < len(values):
                return False
            at = letter_of(head)
            letters = [chr(value[at]) for value in values]
            self._add(table, letters, numbers, commits, [self._keys[number] for number in numbers], images)
            return True

        def add_one(number: int) -> None:
            collect_one(self._alone, number, self._keys[number], self._values[number], out)

        add_by_halves(numbers, add_all, add_one)

    def _add(
        self,
        table: Table,
        letters: list[str],
        numbers: Sequence[int],
        commits: list[int],
        keys: list[bytes | None],
        images: list[bytes],
    ) -> None:
        """Add rows of one table, or none of them. Raises DecodeError, or one of ``Unreadable``, if one has a fault."""
        if not _OPS.keys() >= {*letters}:
            raise DecodeError("unknown_type", f"expected op c, u or d, found {sorted({*letters})}")
        rows = [*map(table.read, images)]
        _check_names(images, rows)
        parts = [
            part_of(
                table,
                op,
                [*compress(numbers, chosen)],
                [*compress(commits, chosen)],
                [*compress(keys, chosen)],
                [*compress(rows, chosen)],
            )
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
                self._tables.learn(value, table)
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
        commits = [checked_tso(row.source.commit_ts)]
        images = _ENCODE(Row(row.before, row.after))
        self._add(table, [row.op], [number], commits, [plain_key], [images])
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
    in_image = fault.reason in ("missing_member", "unknown_member") and _IN_IMAGE.search(fault.detail) is not None
    reason = "wrong_columns" if in_image else fault.reason
    return DecodeError(reason, fault.detail, offset=fault.offset, database=source.db, table=source.table)


def _check_names(images: list[bytes], rows: list[Row]) -> None:
    """Raise DecodeError ``duplicate_name`` if an object in a row's images has a name twice.

    A second name would make a text longer than the shortest that reads so, and all of them together.
    """
    shortest = _ENCODE_LINES(rows)
    if sum(map(len, images)) + len(images) == len(shortest):
        return
    for text, line in zip(images, shortest.splitlines(), strict=True):
        if len(text) != len(line):
            names_of(text)
