"""Messages into events. Options provide what the bytes do not show (wire.md 1.6): compression, and the TiDB extension.

Rows are read by the engine of ``json_rows``. Their prefix is all that the writers put before ``es``: it names the
table, its key columns and the operation, and is the same byte for byte in all such rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import pyarrow as pa

from ticdc_codec.batch import DecodeBatch, DecoderContext, Events, checked_tso, checked_watermark, in_order
from ticdc_codec.canal_json.envelope import Envelope, Extension, check_no_row, read_envelope
from ticdc_codec.canal_json.table import CanalTableReader, RowMembers, TableReaders
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout, Op
from ticdc_codec.json_images import handle_key_lines, old_handle_keys, without_null
from ticdc_codec.json_rows import JsonRows, MessageRowSpec, RowTexts, SingleRow, contents_of
from ticdc_codec.json_text import Unreadable, check_replaced_bytes, names_of
from ticdc_codec.message import stored_value
from ticdc_codec.options import SinkOptions
from ticdc_codec.row_builder import RowColumns
from ticdc_codec.tso import MAX_TSO, milliseconds

_WATERMARK = "TIDB_WATERMARK"
_DDL_TYPES = frozenset({"CREATE", "RENAME", "CINDEX", "DINDEX", "ALTER", "ERASE", "TRUNCATE", "QUERY"})
"""All results of the writers' convertDdlEventType (wire.md 1.4.4)."""

_NO_EXTENSION = Extension()
_ENCODE = msgspec.json.Encoder().encode


def decoder(options: SinkOptions, context: DecoderContext) -> DecodeBatch:
    """Returns a decoder of batches of messages, which reads claim-check objects of ``context``."""
    protocol = _CanalRows(options, context.objects)
    rows = JsonRows(protocol)

    def decode(_: Iterable[bytes | None], values: Iterable[bytes | None]) -> pa.RecordBatch:
        # The key is null in every dialect and is not read.
        out = Events()
        protocol.begin(contents_of([*values], options.large_message_handle_compression, out), out)
        rows.add([*protocol.values])
        protocol.begin({}, Events())  # forget the messages
        return in_order(rows.finish(), out, [0] * len(out))

    return decode


class _Head(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The members before ``es`` in both writers (wire.md 1.4.1): they repeat from row to row, byte for byte."""

    id: int
    database: str
    table: str
    pk_names: tuple[str, ...] | None = msgspec.field(name="pkNames")
    is_ddl: bool = msgspec.field(name="isDdl")
    type: Literal["INSERT", "UPDATE", "DELETE"]


_HEAD = msgspec.json.Decoder(_Head)


def _is_head(head: bytes) -> bool:
    """True if the members before ``es`` are those of a ``_Head``, each once: then rows may be read without them."""
    try:
        names_of(head + b"}")
        return not _HEAD.decode(head + b"}").is_ddl
    except (DecodeError, *Unreadable, ValueError):
        return False


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows with one head."""

    table: CanalTableReader
    op: Op
    head_length: int


class _CanalRows(MessageRowSpec[_Group, RowTexts]):
    """Rows by the numbers of their messages."""

    image_fault = "in a row image: "

    def __init__(self, options: SinkOptions, objects: Mapping[str, bytes]) -> None:
        self._options = options
        self._objects = objects
        self._tables = TableReaders()
        super().__init__()

    def prefixes_of(self, values: Iterable[bytes]) -> list[bytes]:
        """Returns the heads: what a message has before ``es``, without a bracket at its end."""
        return [value[: value.find(b',"es":')] for value in values]

    def cut(self, group: _Group, items: Sequence[int]) -> RowTexts:
        """Returns the members from ``es`` on."""
        begin = group.head_length + len(",")
        return RowTexts([b"{" + value[begin:] for value in map(self.values.__getitem__, items)])

    def columns(self, group: _Group, items: Sequence[int], texts: RowTexts, rows: list[RowMembers]) -> list[RowColumns]:
        """Returns one element: the rows of a group are of one operation."""
        table, images, op = group.table, group.table.images, group.op
        table.check_same_layout(rows)
        data = [row.data[0] for row in rows]
        old = [row.old[0] for row in rows if row.old is not None]
        wire, after = images.lines(data)
        wire_old, before = images.lines(old)
        _check_old(op, wire_old, wire)
        commits = [row.tidb.commit_ts for row in rows if row.tidb is not None and row.tidb.commit_ts is not None]
        table.check_names(texts.texts, rows, commits, wire, wire_old)
        check_replaced_bytes(texts.texts, wire, wire_old)
        commit_ts, commit_ms = self._commits(rows, commits)
        is_delete = op is Op.DELETE  # its data is the row before it (wire.md 1.4.1)
        key = without_null(images.key_columns(data))
        old_keys = old_handle_keys(without_null(images.key_columns(old)), key) if op is Op.UPDATE else None
        columns = RowColumns(
            messages=items,
            op=op,
            layout=table.layout,
            commit_ts=commit_ts,
            commit_ms=commit_ms,
            handle_keys=handle_key_lines(key),
            old_handle_keys=old_keys,
            before=after if is_delete else before,
            after=b"" if is_delete else after,
            handle_only=[row.tidb is not None and row.tidb.only_handle_key for row in rows],
        )
        return [columns]

    def single(self, item: int) -> SingleRow[int, _Group, RowTexts] | None:
        """Returns the row, or None for a DDL or a watermark. Raises DecodeError."""
        value = self.values[item]
        self.out.message = item
        envelope = read_envelope(value)
        if envelope.type in Op.__members__ and not envelope.is_ddl:
            return self._single_row(item, value, envelope)
        if envelope.type == _WATERMARK and not envelope.is_ddl:
            self.out.resolved(_watermark(value, envelope))
        elif envelope.type in _DDL_TYPES and envelope.is_ddl:
            self._ddl(value, envelope)
        else:
            raise envelope.fault("unknown_type", f"type {envelope.type!r} with isDdl {envelope.is_ddl}")
        return None

    def _single_row(self, item: int, value: bytes, envelope: Envelope) -> SingleRow[int, _Group, RowTexts]:
        location = None if envelope.tidb is None else envelope.tidb.claim_check_location
        if location is not None:
            value, envelope = self._stored(envelope, location)
        _check_row(envelope)
        if has_null_row := _has_null_row(envelope):
            envelope = msgspec.structs.replace(envelope, old=None)
        table = self._tables.reader(envelope)
        head = self.prefixes_of([value])[0]
        return SingleRow(
            item=item,
            group=_Group(table, Op[envelope.type], len(head)),
            texts=RowTexts([_ENCODE(RowMembers(*(getattr(envelope, name) for name in RowMembers.__struct_fields__)))]),
            prefix=None if has_null_row or not _is_head(head) else head,
            value=value,
        )

    def _stored(self, envelope: Envelope, location: str) -> tuple[bytes, Envelope]:
        """Returns the whole message that is in claim-check storage, in place of the one that names it (wire.md
        1.4.3)."""
        try:
            value = stored_value(self._objects, location, self._options)
            stored = read_envelope(value)
        except DecodeError as error:
            raise envelope.fault(error.reason, f"at {location}: {error.detail}") from None
        _check_stored(envelope, stored, location)
        return value, stored

    def _ddl(self, value: bytes, envelope: Envelope) -> None:
        check_no_row(value, envelope)
        commit_ts, commit_ms = self._commit(envelope)
        # A DDL comes without columns; the table of a database's DDL is "" (wire.md 1.4.4).
        layout = Layout(envelope.database or None, envelope.table or None, (), None)
        self.out.ddl(commit_ts, commit_ms, layout, envelope.sql, envelope.type)

    def _commits(
        self, rows: list[RowMembers], given: list[int]
    ) -> tuple[Sequence[int | None], Sequence[int | None] | None]:
        """Returns the results of ``_commit`` for many rows; ``given`` are the commit_ts that there are."""
        if len(given) == len(rows) and min(given) >= 0 and max(given) <= MAX_TSO:
            return given, None
        commits = [*map(self._commit, rows)]
        return [commit_ts for commit_ts, _ in commits], [commit_ms for _, commit_ms in commits]

    def _commit(self, message: Envelope | RowMembers) -> tuple[int | None, int | None]:
        """Returns the commit_ts, else the milliseconds of ``es``. A commit_ts is used whatever the option says."""
        tidb = message.tidb
        if tidb is not None:
            if tidb.commit_ts is None:
                raise DecodeError("missing_member", "expected commitTs in _tidb")
            return checked_tso(tidb.commit_ts), None
        if self._options.enable_tidb_extension:
            raise DecodeError("no_extension", "expected _tidb, as the feed's option enable-tidb-extension says")
        if not 0 <= message.es <= milliseconds(MAX_TSO):
            raise DecodeError("out_of_range", f"expected milliseconds of a TSO in es, found {message.es}")
        return None, message.es


def _check_row(envelope: Envelope) -> None:
    """Raises DecodeError if a row has what only other messages have (wire.md 1.4.1, 1.4.3)."""
    if not envelope.table:
        raise DecodeError("wrong_type", f"expected the table of an {envelope.type}, found an empty name")
    if envelope.sql:
        raise envelope.fault("wrong_type", f"expected no sql in an {envelope.type}, found {envelope.sql[:80]!r}")
    if envelope.tidb is not None and envelope.tidb.watermark_ts is not None:
        raise envelope.fault("unknown_member", f"watermarkTs in _tidb of an {envelope.type}")


def _has_null_row(envelope: Envelope) -> bool:
    """True if an INSERT has ``[null]`` for null in ``old``, as before v5.4 (wire.md 1.4.1)."""
    return envelope.type == Op.INSERT.name and envelope.old is not None and bytes(envelope.old[0]) == b"null"


def _watermark(value: bytes, envelope: Envelope) -> int:
    """Returns the ``watermarkTs`` of a message (wire.md 1.4.3). Raises DecodeError."""
    check_no_row(value, envelope)
    if envelope.tidb is None or envelope.tidb.watermark_ts is None:
        raise DecodeError("no_extension", "expected watermarkTs in _tidb, as every TIDB_WATERMARK has it")
    return checked_watermark(envelope.tidb.watermark_ts)


def _check_stored(envelope: Envelope, stored: Envelope, location: str) -> None:
    tidb, stored_tidb = envelope.tidb or _NO_EXTENSION, stored.tidb or _NO_EXTENSION
    expected = (envelope.database, envelope.table, envelope.type, tidb.commit_ts, None)
    found = (stored.database, stored.table, stored.type, stored_tidb.commit_ts, stored_tidb.claim_check_location)
    if expected != found or stored.is_ddl or stored_tidb.only_handle_key:
        raise envelope.fault("claim_check_mismatch", f"expected the row {expected[:4]} at {location}, found {found}")


def _check_old(op: Op, old: bytes, data: bytes) -> None:
    """Raises DecodeError unless an UPDATE has ``old``, and an INSERT and a DELETE have null; before v5.4 a DELETE
    repeated ``data`` there (wire.md 1.4.1)."""
    if op is Op.UPDATE:
        if not old:
            raise DecodeError("wrong_type", "expected a row in old of an UPDATE, found null")
    elif old and (op is Op.INSERT or old != data):
        raise DecodeError("wrong_type", f"expected null in old of an {op.upper()}, found a row")
