"""Messages into events. Options provide what the bytes do not show (wire.md 1.6): compression, and the zone of
TIMESTAMPs.

Rows are read by the engine of ``json_rows``. Their prefix is database and table; all that stands before their images
is compared with that of the row that has shown the prefix (``json_text.PrefixPattern``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from msgspec import UNSET, Raw, UnsetType

from ticdc_codec.batch import DecodeBatch, DecoderContext, Events, checked_tso, checked_watermark, in_order
from ticdc_codec.debezium.envelope import (
    DdlPayload,
    RowPayload,
    WatermarkPayload,
    Whole,
    layout_of,
    read_payload,
    read_whole,
    with_names_once,
)
from ticdc_codec.debezium.table import DebeziumTableReader, RowMembers, SentLayout, TableReaders, members_of
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Op
from ticdc_codec.json_images import Image, handle_key_lines, old_handle_keys
from ticdc_codec.json_rows import JsonRows, MessageRowSpec, RowTexts, SingleRow, contents_of
from ticdc_codec.json_text import PrefixPattern, Unreadable, names_of, unreadable
from ticdc_codec.message import decompress
from ticdc_codec.options import Compression, SinkOptions
from ticdc_codec.row_builder import RowColumns

_OPS = {"c": Op.INSERT, "u": Op.UPDATE, "d": Op.DELETE}
_OPS_BY_CODE = {ord(letter): op for letter, op in _OPS.items()}
_ENCODE = msgspec.json.Encoder().encode


def decoder(options: SinkOptions, context: DecoderContext) -> DecodeBatch:
    """Returns a decoder of batches of messages; definitions are looked up in ``context`` with schema version 0."""
    compression = options.large_message_handle_compression
    protocol = _DebeziumRows(TableReaders(context, options.time_zone))
    rows = JsonRows(protocol)

    def decode(keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> pa.RecordBatch:
        out = Events()
        messages = [*zip(keys, values, strict=True)]
        contents = contents_of([value for _, value in messages], compression, out)
        protocol.begin(contents, out, _decompressed([key for key, _ in messages], contents, compression, out))
        rows.add([*contents])
        protocol.begin({}, Events())  # forget the messages
        return in_order(rows.finish(), out, [0] * len(out))

    return decode


def _decompressed(
    keys: list[bytes | None], values: dict[int, bytes], compression: Compression, out: Events
) -> list[bytes | None]:
    """Returns the keys; removes a message whose key does not decompress from ``values``, and adds its failure."""
    if compression is Compression.NONE:
        return keys
    for number in [*values]:
        try:
            keys[number] = (key := keys[number]) and decompress(key, compression)
        except DecodeError as error:
            del values[number]
            out.message = number
            out.error(error)
    return keys


_OP = b',"op":"'
_AFTER_OP = len('",')
_BEFORE_IMAGES = ["source", "ts_ms", "transaction", "op"]


def pattern_of(value: bytes) -> PrefixPattern | None:
    """Returns the pattern of what either writer puts before the images of a row, for a value that has been read: all
    other members of its payload, each once (wire.md 1.5.1). None for other messages."""
    letter = value.find(_OP) + len(_OP)
    text = value[: letter + 1 + _AFTER_OP]
    try:
        members = names_of(text[:-1] + b"}}")
        if text.endswith(b",") and [*members] == ["payload"] and [*members["payload"]] == _BEFORE_IMAGES:
            return PrefixPattern(text, b"commit_ts", (b"start_ts", b"ts_ms"), letter)
    except (DecodeError, ValueError):
        pass
    return None


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows of one table and all operations."""

    table: DebeziumTableReader
    pattern: PrefixPattern | None
    """None for a row that is no example for others."""


@dataclass(frozen=True, slots=True)
class _Texts(RowTexts):
    """The rows' images, ``before`` and ``after``, as one object each."""

    ops: Sequence[Op]
    commits: Sequence[int]
    keys: Sequence[bytes | None]
    """The Kafka keys."""


class _DebeziumRows(MessageRowSpec[_Group, _Texts]):
    """Rows by the numbers of their messages."""

    def __init__(self, tables: TableReaders) -> None:
        self._tables = tables
        super().__init__()

    def prefixes_of(self, values: Iterable[bytes]) -> list[bytes]:
        """Returns database and table: ``source.db`` and what follows it."""
        return [value[(at := value.find(b',"db":')) : value.find(b',"server_id":', at)] for value in values]

    def cut(self, group: _Group, items: Sequence[int]) -> _Texts | None:
        """Returns what is between the head and the schema; None if one of the schemas differs from the table's."""
        values = [*map(self.values.__getitem__, items)]
        if group.pattern is None or (commits := group.pattern.numbers(values)) is None:
            return None
        # The letter of op may be any byte in the pattern: it is read here.
        op_at = len(group.pattern.text) - _AFTER_OP - 1
        ops = [op for value in values if (op := _OPS_BY_CODE.get(value[op_at])) is not None]
        end = group.table.end
        images = slice(len(group.pattern.text), -len(end))
        texts = [b"{" + value[images] for value in values if value.endswith(end)]
        if len(ops) < len(values) or len(texts) < len(values) or not group.table.order.matches(texts, commits):
            return None
        return _Texts(texts, ops, commits, [*map(self.keys.__getitem__, items)])

    def columns(self, group: _Group, items: Sequence[int], texts: _Texts, rows: list[RowMembers]) -> list[RowColumns]:
        """Returns the rows of each operation."""
        group.table.check_names(texts.texts, rows)
        return [
            _columns(group.table, op, [*items], texts, rows, [at for at, each in enumerate(texts.ops) if each is op])
            for op in dict.fromkeys(texts.ops)
        ]

    def single(self, item: int) -> SingleRow[int, _Group, _Texts] | None:
        """Returns the row, or None for a DDL or a watermark. Raises DecodeError."""
        self.out.message = item
        value = self.values[item]
        plain = with_names_once(value)
        whole = read_whole(plain)
        match read_payload(plain, whole.payload):
            case RowPayload() as row:
                return self._single_row(item, plain, whole, row)
            case WatermarkPayload(source=source):
                self.out.resolved(checked_watermark(source.commit_ts))
            case DdlPayload(source=source, ddl=query, changes=changes) as ddl:
                change = changes[-1].type if changes else None
                self.out.ddl(checked_tso(source.commit_ts), None, layout_of(ddl), query, change)
        return None

    def _single_row(self, item: int, plain: bytes, whole: Whole, row: RowPayload) -> SingleRow[int, _Group, _Texts]:
        value, key = self.values[item], self.keys[item]
        try:
            named = read_whole(key) if key else None
            if key:
                names_of(key)
            table = self._tables.reader(_sent_layout(row, whole, named))
            plain_key = None if named is None else table.plain_key(named.payload)
            commits = [checked_tso(row.source.commit_ts)]
        except (DecodeError, *Unreadable) as error:
            fault = error if isinstance(error, DecodeError) else unreadable(error, plain)
            fault.database, fault.table = row.source.db, row.source.table
            raise fault from None
        pattern = pattern_of(value)
        return SingleRow(
            item=item,
            group=_Group(table, pattern),
            texts=_Texts([_ENCODE(RowMembers(row.before, row.after))], [_OPS[row.op]], commits, [plain_key]),
            prefix=None if pattern is None else self.prefixes_of([value])[0],
            value=plain,
            names_checked=True,
        )


def _columns(
    table: DebeziumTableReader, op: Op, items: list[int], texts: _Texts, rows: list[RowMembers], chosen: list[int]
) -> RowColumns:
    """Returns the rows at the indices ``chosen``, which are of one operation. Raises DecodeError, or one of
    ``Unreadable``."""
    old, new = _images(op, [rows[at] for at in chosen])
    named = old if op is Op.DELETE else new
    # The Kafka key has the values of the row's key columns (wire.md 1.5.1).
    if table.keys(named) != [texts.keys[at] for at in chosen]:
        raise DecodeError("key_mismatch", "expected the key to have the values of the row's key columns")
    before, after = table.texts(old), table.texts(new)
    old_key, key = table.key_columns(before), table.key_columns(after)
    return RowColumns(
        messages=[items[at] for at in chosen],
        op=op,
        layout=table.layout,
        commit_ts=[texts.commits[at] for at in chosen],
        handle_keys=handle_key_lines(old_key if op is Op.DELETE else key),
        old_handle_keys=old_handle_keys(old_key, key) if op is Op.UPDATE and old else None,
        before=table.lines(before, len(old)),
        after=table.lines(after, len(new)),
    )


def _images(op: Op, rows: list[RowMembers]) -> tuple[list[Image], list[Image]]:
    """Returns the images before and after: all rows have them, or none. Raises DecodeError where the op forbids it."""
    old = [row.before for row in rows if row.before is not None and row.before is not UNSET]
    new = [row.after for row in rows if row.after is not None and row.after is not UNSET]
    allowed = {
        Op.INSERT: ((0,), (len(rows),)),
        Op.UPDATE: ((0, len(rows)), (len(rows),)),
        Op.DELETE: ((len(rows),), (0,)),
    }[op]
    if len(old) not in allowed[0] or len(new) not in allowed[1]:
        raise DecodeError("wrong_type", f"expected other rows in before and after of an {op}")
    return old, new


def _sent_layout(row: RowPayload, whole: Whole, key: Whole | None) -> SentLayout:
    image = row.before if row.op == "d" else row.after
    return SentLayout(
        database=row.source.db,
        table=row.source.table,
        names=tuple(members_of(image or b"null")),
        keys=None if key is None else tuple(members_of(key.payload)),
        schema=_bytes(whole.schema),
        key_schema=b"" if key is None else _bytes(key.schema),
    )


def _bytes(schema: Raw | UnsetType) -> bytes:
    return b"" if schema is UNSET else bytes(schema)
