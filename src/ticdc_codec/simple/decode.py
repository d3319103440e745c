"""Messages to events. Rows are decoded last, as a schema may be sent after the first rows that need it.

Rows in Avro are read by ``avro_rows``. Rows in JSON are read by the engine of ``json_rows``: their prefix is all before
``commitTs``, and the schema's version; all that stands before their images is compared with that of the row that has
shown the prefix (``json_text.PrefixPattern``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from ticdc_codec.batch import DecodeBatch, DecoderContext, Events, RowBatch, checked_tso, in_order, numbered_from
from ticdc_codec.bounded_cache import cached
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout, Op
from ticdc_codec.json_images import handle_key_lines, old_handle_keys
from ticdc_codec.json_rows import JsonRows, MessageRowSpec, RowTexts, SingleRow, contents_of
from ticdc_codec.json_text import PrefixPattern, Unreadable, check_replaced_bytes, names_of, unreadable
from ticdc_codec.message import stored_value
from ticdc_codec.options import Corruption, EncodingFormat, SinkOptions
from ticdc_codec.row_builder import RowColumns
from ticdc_codec.simple.avro_rows import AvroMessages
from ticdc_codec.simple.json_table import RowMembers, SimpleTableReader, check_row_names
from ticdc_codec.simple.message import IMAGES, Envelope, add_control, read_envelope
from ticdc_codec.simple.schema import LayoutReplacedError, Schemas, layout_with


def decoder(options: SinkOptions, context: DecoderContext) -> DecodeBatch:
    """Returns a decoder of batches of messages, which looks up schemas and claim-check objects in ``context``.

    It keeps the schemas of its messages. A row whose schema has not come is an error ``schema_missing``; decode it
    again once it has.
    """
    return _Decoder(options, context).decode


class _Decoder:
    __slots__ = ("_compression", "_messages", "_schemas")

    def __init__(self, options: SinkOptions, context: DecoderContext) -> None:
        self._compression = options.large_message_handle_compression
        self._schemas = Schemas(context.schemas)
        read = AvroMessages if options.encoding_format is EncodingFormat.AVRO else JsonMessages
        self._messages = read(options, self._schemas, context.objects)

    def decode(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> pa.RecordBatch:
        """Returns the messages' events. The key is null and is not read."""
        messages = [value for _, value in zip(keys, values, strict=True)]
        self._schemas.begin_batch()
        batch, count = self._decode(messages)
        while count < len(messages):
            rest, more = self._decode(messages[count:])
            batch = pa.concat_batches([batch, numbered_from(count, rest)])
            count += more
        return batch

    def _decode(self, messages: Sequence[bytes | None]) -> tuple[pa.RecordBatch, int]:
        """Returns the events of the messages before one that replaces the layout of a name, or of all of them, and the
        number of these messages: rows are decoded last, with the layout that their name has then."""
        out = Events()
        try:
            contents = contents_of(messages, self._compression, out, "a message")
            rows = self._messages.read(contents, out)
            return in_order(rows, out, [0] * len(out)), len(messages)
        except LayoutReplacedError as replaced:
            if out.message == 0:
                self._schemas.replace(replaced.layout)
            return self._decode(messages[: out.message] or messages)


_ROW_BEGIN = b'{"version":1,"database":'
"""The beginning of a row in both writers, and of no other message; only a hint."""
_COMMIT_TS = b',"commitTs":'
_START_TS = b',"startTs":'
_TSO_DIGITS = 18
"""Digits of a TSO since 2014; a time in milliseconds has 13 since 2001."""
_AFTER_COMMIT_TS = len(_COMMIT_TS) + _TSO_DIGITS
_TO_VERSION = _AFTER_COMMIT_TS + len(',"buildTs":,"schemaVersion":') + 13
"""Bytes from ``commitTs`` to the schema's version, without ``startTs``."""
_START_TS_LENGTH = len(_START_TS) + _TSO_DIGITS
_IN_HEAD = ["version", "database", "table", "tableID", "type", "commitTs", "buildTs", "schemaVersion"]
_NAMES = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENCODE = msgspec.json.Encoder().encode


class JsonMessages:
    """Reads the messages of one batch after the other."""

    def __init__(self, options: SinkOptions, schemas: Schemas, objects: Mapping[str, bytes]) -> None:
        self._protocol = _SimpleRows(options, schemas, objects)
        self._rows = JsonRows(self._protocol)

    def read(self, values: Mapping[int, bytes], out: Events) -> RowBatch | None:
        """Returns the row changes of messages (by number); other events and errors are added to ``out``."""
        self._protocol.begin(values, out)
        try:
            self._rows.add(
                [
                    number
                    for number, value in values.items()
                    if value.startswith(_ROW_BEGIN) or self._protocol.is_row(number)
                ]
            )
        finally:
            self._protocol.begin({}, Events())  # forget the messages
            rows = self._rows.finish()
        return rows


def _version_begin(value: bytes, commit_ts: int) -> int:
    """Returns where the schema's version begins, in a value with ``commitTs`` at this offset."""
    has_start_ts = value.startswith(_START_TS, commit_ts + _AFTER_COMMIT_TS)
    return commit_ts + _TO_VERSION + _START_TS_LENGTH * has_start_ts


def pattern_of(value: bytes) -> PrefixPattern | None:
    """Returns the pattern of what both writers begin a row with, for a value that has been read (wire.md 1.3.1). None
    if another one has."""
    at = value.find(_COMMIT_TS)
    text = value[: _version_begin(value, at) + _TSO_DIGITS + 1]
    try:
        if text.endswith(b",") and [name for name in names_of(text[:-1] + b"}") if name != "startTs"] == _IN_HEAD:
            return PrefixPattern(text, b"commitTs", (b"startTs", b"buildTs"))
    except (DecodeError, ValueError):
        pass
    return None


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows of one physical table, one schema version and one operation."""

    schema: Layout
    table: SimpleTableReader
    op: Op
    table_id: int
    pattern: PrefixPattern | None
    """None for a row that is no example for others."""


@dataclass(frozen=True, slots=True)
class _Texts(RowTexts):
    """The members after the head."""

    commits: Sequence[int]


class _SimpleRows(MessageRowSpec[_Group, _Texts]):
    """Rows by the numbers of their messages."""

    image_fault = "in a row image: "
    columns_are_checked = True

    def __init__(self, options: SinkOptions, schemas: Schemas, objects: Mapping[str, bytes]) -> None:
        self._options = options
        self._schemas = schemas
        self._objects = objects
        self._tables: dict[Layout, SimpleTableReader] = {}
        super().__init__()

    def is_row(self, item: int) -> bool:
        """True if a message is a row; otherwise its event or its failure has been added."""
        try:
            self.out.message = item
            envelope = read_envelope(self.values[item])
            if not envelope.is_row:
                self._control(item, envelope)
        except DecodeError as error:
            self.refuse(item, error)
            return False
        return envelope.is_row

    def prefixes_of(self, values: Iterable[bytes]) -> list[bytes]:
        """Returns all bytes before ``commitTs``, and the schema's version."""
        return [
            value[: (at := value.find(_COMMIT_TS))] + value[(begin := _version_begin(value, at)) : begin + _TSO_DIGITS]
            for value in values
        ]

    def cut(self, group: _Group, items: Sequence[int]) -> _Texts | None:
        """Returns the members after the head; None if one has another head."""
        values = [*map(self.values.__getitem__, items)]
        # The newest schema of a version holds: names may change their tables, RENAME keeps the version (wire.md 1.3.1).
        if not self._schemas.is_newest(group.schema):
            return None
        if group.pattern is None or (commits := group.pattern.numbers(values)) is None:
            return None
        begin = len(group.pattern.text)
        return _Texts([b"{" + value[begin:] for value in values], commits)

    def columns(self, group: _Group, items: Sequence[int], texts: _Texts, rows: list[RowMembers]) -> list[RowColumns]:
        """Returns one element: the rows of a group are of one operation."""
        table, images, op, count = group.table, group.table.images, group.op, len(rows)
        data = [row.data for row in rows if row.data is not None]
        old = [row.old for row in rows if row.old is not None]
        if (len(data), len(old)) != tuple(count * given for given in IMAGES[op]):
            raise DecodeError("missing_member", f"expected the images of an {op} in each row")
        wire, after = images.lines(data)
        wire_old, before = images.lines(old)
        check_row_names(texts.texts, rows, wire, wire_old)
        check_replaced_bytes(texts.texts, wire, wire_old)
        if self._options.corruption_handle_level is Corruption.ERROR:
            table.check_sums(rows)
        old_keys = old_handle_keys(images.key_columns(old), images.key_columns(data)) if op is Op.UPDATE else None
        columns = RowColumns(
            messages=items,
            op=op,
            layout=table.layout,
            commit_ts=texts.commits,
            handle_keys=handle_key_lines(images.key_columns(data or old)),
            old_handle_keys=old_keys,
            before=before,
            after=after,
            handle_only=[row.handle_key_only for row in rows],
            table_ids=[group.table_id] * count,
        )
        return [columns]

    def single(self, item: int) -> SingleRow[int, _Group, _Texts] | None:
        """Returns the row; None for another message that begins as rows do. Raises DecodeError."""
        self.out.message = item
        value = self.values[item]
        envelope = read_envelope(value)
        if not envelope.is_row:
            self._control(item, envelope)
            return None
        # Before handleKeyOnly, which is true beside it (wire.md 1.3.6).
        if envelope.claim_check_location is not None:
            value, envelope = self._stored(envelope, envelope.claim_check_location)
        schema, table, table_id = self._table_of(value, envelope)
        pattern = pattern_of(value)
        try:
            commits = [checked_tso(envelope.commit_ts)]
        except DecodeError as error:
            raise envelope.fault(error.reason, error.detail) from None
        return SingleRow(
            item=item,
            group=_Group(schema, table, Op[envelope.type], table_id, pattern),
            texts=_Texts([_after_head(envelope)], commits),
            prefix=None if pattern is None else self.prefixes_of([value])[0],
            value=value,
        )

    def _control(self, item: int, envelope: Envelope) -> None:
        names_of(self.values[item])
        add_control(envelope, self._schemas, self.out)

    def _stored(self, envelope: Envelope, location: str) -> tuple[bytes, Envelope]:
        """Returns the whole message that is in claim-check storage, in place of the one that names it (wire.md
        1.3.6)."""
        try:
            value = stored_value(self._objects, location, self._options)
            stored = read_envelope(value)
        except DecodeError as error:
            raise envelope.fault(error.reason, f"at {location}: {error.detail}") from None
        expected, found = (
            (each.database, each.table, each.type, each.commit_ts, each.schema_version) for each in (envelope, stored)
        )
        if expected != found or stored.claim_check_location is not None or stored.handle_key_only:
            raise envelope.fault("claim_check_mismatch", f"expected the row {expected} at {location}, found {found}")
        return value, stored

    def _table_of(self, value: bytes, envelope: Envelope) -> tuple[Layout, SimpleTableReader, int]:
        """Returns a row's schema, its table as the schema and the columns of its images describe it, and its id. Raises
        DecodeError."""
        database, table, version = envelope.database, envelope.table, envelope.schema_version
        if database is None or table is None or version is None or envelope.table_id is None:
            detail = "expected database, table, tableID and schemaVersion in a row"
            raise DecodeError("missing_member", detail)
        _check_members(envelope)
        schema = self._schemas.find(database, table, version)
        try:
            data, old = (_columns_of(image) for image in (envelope.data, envelope.old))
            layout = layout_with(schema, _same_columns(data, old))
        except DecodeError as error:
            raise envelope.fault(error.reason, error.detail) from None
        except Unreadable as error:
            fault = unreadable(error, value)
            raise envelope.fault(fault.reason, f"in a row image: {fault.detail}") from None
        reader = cached(self._tables, layout, lambda: SimpleTableReader(layout, self._options.time_zone))
        return schema, reader, envelope.table_id


def _columns_of(image: Any) -> frozenset[str]:
    return frozenset(_NAMES.decode(image)) if bytes(image) else frozenset()


def _same_columns(data: frozenset[str], old: frozenset[str]) -> frozenset[str]:
    if data and old and data != old:
        raise DecodeError("wrong_columns", f"expected one choice of columns, found {sorted(data)} and {sorted(old)}")
    return data or old


def _check_members(envelope: Envelope) -> None:
    """Raises DecodeError unless a row has the members of its type and no others (wire.md 1.3.1)."""
    expected = IMAGES[Op[envelope.type]]
    found = (bytes(envelope.data) != b"", bytes(envelope.old) != b"")
    if found != expected:
        detail = f"expected data and old of an {envelope.type} to be there as {expected}, found {found}"
        raise envelope.fault("missing_member" if found < expected else "wrong_type", detail)
    others = ("sql", "table_schema", "pre_table_schema")
    if any(getattr(envelope, name) is not None for name in others):
        raise envelope.fault("unknown_member", f"expected none of {others} in a row")
    if envelope.table_id is not None and not -(1 << 63) <= envelope.table_id < 1 << 63:
        raise envelope.fault("out_of_range", f"expected a tableID of 64 bits, found {envelope.table_id}")


def _after_head(envelope: Envelope) -> bytes:
    """Returns the members of a row after its head, as a JSON object."""
    data, old = (image if bytes(image) else None for image in (envelope.data, envelope.old))
    return _ENCODE(RowMembers(envelope.handle_key_only, envelope.checksum, data, old))
