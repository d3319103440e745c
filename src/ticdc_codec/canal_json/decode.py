"""Messages into events. Options say what the bytes do not (wire.md 1.6): compression, and the TiDB extension."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import pyarrow as pa

from ticdc_codec.batch import DecodeBatch, Events, checked_tso, checked_watermark, collect_one, in_order
from ticdc_codec.bisect_failures import add_by_halves
from ticdc_codec.canal_json.envelope import NULL, Envelope, Extension, read_envelope
from ticdc_codec.canal_json.row import Row
from ticdc_codec.canal_json.table import Table, Tables, head_of
from ticdc_codec.claim_check import stored_value
from ticdc_codec.compression import decompress
from ticdc_codec.decoder_context import DecoderContext
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout, Op
from ticdc_codec.json_text import Unreadable, names_of, unreadable
from ticdc_codec.options import Compression, SinkOptions
from ticdc_codec.row_builder import Gathered, alone
from ticdc_codec.tso import MAX_TSO, milliseconds

_OPS = {"INSERT": Op.INSERT, "UPDATE": Op.UPDATE, "DELETE": Op.DELETE}
_WATERMARK = "TIDB_WATERMARK"
_DDL_TYPES = frozenset({"CREATE", "RENAME", "CINDEX", "DINDEX", "ALTER", "ERASE", "TRUNCATE", "QUERY"})
"""All that the writers' convertDdlEventType gives (wire.md 1.4.4)."""

_NO_EXTENSION = Extension()
_ENCODE = msgspec.json.Encoder().encode


_TOGETHER = 1024
"""Messages that are read before their rows are added: so many stay in a processor's cache."""


def decoder(options: SinkOptions, known: DecoderContext) -> DecodeBatch:
    """A decoder of batches of messages, which reads claim-check objects of ``known``."""
    return _Decoder(options, known.objects).decode


class _Decoder:
    __slots__ = ("_alike", "_compressed", "_options", "_rows", "_stored", "_tables", "_values")

    def __init__(self, options: SinkOptions, stored: Mapping[str, bytes]) -> None:
        self._options = options
        self._stored = stored
        self._tables = Tables()
        self._values: list[bytes | None] = []
        """Of the messages by number; without compression once they were looked at."""
        self._alike: dict[bytes, tuple[Table, Op, list[int]]] = {}
        """Rows to be added, by their head: its table and op, and the messages."""
        self._rows = Gathered()
        self._compressed = options.large_message_handle_compression

    def decode(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> pa.RecordBatch:
        """The messages' events. The key is null in every dialect, and nothing is read from it."""
        out, self._rows = Events(), Gathered()
        self._values = [value for _, value in zip(keys, values, strict=True)]
        for start in range(0, len(self._values), _TOGETHER):
            self._read(start, self._values[start : start + _TOGETHER], out)
            for head, (table, op, numbers) in self._alike.items():
                self._together(head, table, op, numbers, out)
            self._alike.clear()
        gathered = self._rows.rows()
        self._values, self._rows = [], Gathered()
        return in_order(gathered, out, [0] * len(out))

    def _read(self, start: int, values: list[bytes | None], out: Events) -> None:
        """Keep or add messages from number ``start`` on."""
        bare = self._compressed is Compression.NONE
        for number, value in enumerate(values, start):
            # head_of, not called
            if bare and value and (alike := self._alike.get(value[: value.find(b',"es":')])) is not None:
                alike[2].append(number)
            else:
                collect_one(self._message, number, None, value, out)

    def _message(self, _: bytes | None, value: bytes | None, out: Events) -> None:
        """Keep a row with the head of one before, and add any other event. Raises DecodeError."""
        if not value:
            return self._by_envelope(None, value, out)
        if self._compressed is not Compression.NONE:
            self._values[out.message] = value = decompress(value, self._compressed)
        head = head_of(value)
        alike = self._alike.get(head)
        if alike is None:
            known = self._tables.known(head)
            if known is None:
                return self._by_envelope(None, value, out)
            alike = self._alike[head] = (known[0], _OPS[known[1]], [])
        alike[2].append(out.message)
        return None

    def _together(self, head: bytes, table: Table, op: Op, numbers: Sequence[int], out: Events) -> None:
        """Add rows of one head. One that has any fault, or is not like the others, is left to its envelope."""
        begin = len(head) + len(",")

        def add_all(numbers: Sequence[int]) -> bool:
            texts = [b"{" + value[begin:] for number in numbers if (value := self._values[number])]
            rows = [*map(table.read, texts)]
            if not table.are_like(rows):
                return False
            self._add(table, op, numbers, texts, rows)
            return True

        def add_one(number: int) -> None:
            collect_one(self._by_envelope, number, None, self._values[number], out)

        add_by_halves(numbers, add_all, add_one)

    def _by_envelope(self, _: bytes | None, value: bytes | None, out: Events) -> None:
        """Add the message's event, whatever it is. Raises DecodeError."""
        if not value:
            raise DecodeError("empty", "expected a JSON object, found no bytes")
        envelope = read_envelope(value)
        if envelope.type in _OPS and not envelope.is_ddl:
            self._row(value, envelope, out)
        elif envelope.type == _WATERMARK and not envelope.is_ddl:
            out.resolved(_watermark(value, envelope))
        elif envelope.type in _DDL_TYPES and envelope.is_ddl:
            self._ddl(value, envelope, out)
        else:
            raise envelope.fault("unknown_type", f"type {envelope.type!r} with isDdl {envelope.is_ddl}")

    def _row(self, value: bytes, envelope: Envelope, out: Events) -> None:
        location = _claim(envelope.tidb)
        if location is not None:
            value, envelope = self._claimed(envelope, location)
        table = self._tables.described(envelope)
        try:
            text = _ENCODE(Row(*(getattr(envelope, name) for name in Row.__struct_fields__)))
            rows = [table.read(text)]
            names_of(value)
            self._add(table, _OPS[envelope.type], [out.message], [text], rows)
        except DecodeError as error:
            raise envelope.fault(error.reason, error.detail, offset=error.offset) from None
        except Unreadable as error:
            raise _image_fault(value, envelope, error) from None
        self._tables.learn(value, envelope, table)

    def _add(self, table: Table, op: Op, numbers: Sequence[int], texts: list[bytes], rows: list[Row]) -> None:
        """Add rows, read from these texts, all with or all without ``old``. Raises DecodeError, or one of
        ``Unreadable``, if one has a fault."""
        data = [row.data[0] for row in rows]
        old = [row.old[0] for row in rows if row.old is not None]
        wire, after = table.texts(data)
        wire_old, before = table.texts(old)
        _check_old(op, wire_old, wire)
        commits = [row.tidb.commit_ts for row in rows if row.tidb is not None and row.tidb.commit_ts is not None]
        table.shortest.check(texts, rows, commits, wire, wire_old)
        self._rows.add(
            alone(numbers),
            op,
            self._commits(rows, commits),
            table.layout,
            (table.handle_keys(data), table.old_handle_keys(old, data) if op is Op.UPDATE else None),
            (after, b"") if op is Op.DELETE else (before, after),
            handle_only=[row.tidb is not None and row.tidb.only_handle_key for row in rows],
        )

    def _commits(self, rows: list[Row], given: list[int]) -> tuple[Sequence[int | None], Sequence[int | None] | None]:
        """``_commit`` of many; ``given`` are the commit_ts that there are."""
        if len(given) == len(rows) and min(given) >= 0 and max(given) <= MAX_TSO:
            return given, None
        found = [*map(self._commit, rows)]
        return [commit_ts for commit_ts, _ in found], [commit_ms for _, commit_ms in found]

    def _commit(self, message: Envelope | Row) -> tuple[int | None, int | None]:
        """commit_ts, else the milliseconds of ``es``. A commit_ts is used whatever the option says."""
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

    def _ddl(self, value: bytes, envelope: Envelope, out: Events) -> None:
        _check_bare(value, envelope)
        commit_ts, commit_ms = self._commit(envelope)
        layout = Layout(envelope.database, envelope.table, (), None)
        out.ddl(commit_ts, commit_ms, layout, envelope.sql, envelope.type)

    def _claimed(self, envelope: Envelope, location: str) -> tuple[bytes, Envelope]:
        """The whole message that lies in claim-check storage, in place of the one that names it."""
        try:
            value = stored_value(self._stored, location, self._options)
            claimed = read_envelope(value)
        except DecodeError as error:
            raise envelope.fault(error.reason, f"at {location}: {error.detail}") from None
        _check_claimed(envelope, claimed, location)
        return value, claimed


def _claim(tidb: Extension | None) -> str | None:
    return None if tidb is None else tidb.claim_check_location


def _image_fault(value: bytes, envelope: Envelope, error: BaseException) -> DecodeError:
    """What is wrong with ``data`` or ``old``: all other members have been read."""
    fault = unreadable(error, value)
    reason = "wrong_columns" if fault.reason in ("missing_member", "unknown_member") else fault.reason
    return envelope.fault(reason, f"in a row image: {fault.detail}", offset=fault.offset)


def _watermark(value: bytes, envelope: Envelope) -> int:
    _check_bare(value, envelope)
    if envelope.tidb is None or envelope.tidb.watermark_ts is None:
        raise DecodeError("no_extension", "expected watermarkTs in _tidb, as every TIDB_WATERMARK has it")
    return checked_watermark(envelope.tidb.watermark_ts)


def _check_bare(value: bytes, envelope: Envelope) -> None:
    """A DDL or a watermark has no row and no columns (wire.md 1.4.1)."""
    names_of(value)
    if envelope.data is not None or envelope.old is not None or envelope.pk_names is not None:
        raise DecodeError("wrong_type", f"expected null for data, old and pkNames of a {envelope.type}")
    if bytes(envelope.sql_type) != NULL or bytes(envelope.mysql_type) != NULL:
        raise DecodeError("wrong_type", f"expected null for sqlType and mysqlType of a {envelope.type}")


def _check_claimed(envelope: Envelope, claimed: Envelope, location: str) -> None:
    tidb, stored = envelope.tidb or _NO_EXTENSION, claimed.tidb or _NO_EXTENSION
    one = (envelope.database, envelope.table, envelope.type, tidb.commit_ts, None)
    other = (claimed.database, claimed.table, claimed.type, stored.commit_ts, stored.claim_check_location)
    if one != other or claimed.is_ddl:
        raise envelope.fault("claim_check_mismatch", f"expected the row {one[:4]} at {location}, found {other}")


def _check_old(op: Op, old: bytes, data: bytes) -> None:
    """An UPDATE has ``old``, an INSERT and a DELETE have null; before v5.4 a DELETE repeated ``data`` there."""
    if op is Op.UPDATE:
        if not old:
            raise DecodeError("wrong_type", "expected a row in old of an UPDATE, found null")
    elif old and (op is Op.INSERT or old != data):
        raise DecodeError("wrong_type", f"expected null in old of an {op.upper()}, found a row")
