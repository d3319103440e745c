"""WATERMARK, BOOTSTRAP and DDL in Avro, field by field."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ticdc_codec.errors import DecodeError
from ticdc_codec.simple.message import BOOTSTRAP, VERSION, WATERMARK, Envelope
from ticdc_codec.simple.schema import ColumnSchema, DataType, IndexSchema, TableSchema

MESSAGE = b"\x16"
"""Every message's first byte."""
ROW = b"\x16\x06\x06"
"""How a row begins."""
DDL_TYPES = ("CREATE", "ALTER", "ERASE", "RENAME", "TRUNCATE", "CINDEX", "DINDEX", "QUERY")
"""In the order of the schema's enum."""

T = TypeVar("T")


class Reader:
    """Reads one field after the other. Each method raises DecodeError."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def long(self) -> int:
        """A number of 64 bits with its sign."""
        value, at = 0, self._at
        for shift in range(0, 70, 7):
            if at >= len(self._data):
                raise DecodeError("truncated", f"expected a number, the message ends at byte {at}", offset=self._at)
            value |= (self._data[at] & 0x7F) << shift
            at += 1
            if self._data[at - 1] < 0x80 and not value >> 64:
                self._at = at
                return (value >> 1) ^ -(value & 1)
        raise DecodeError("out_of_range", "expected a number of at most 64 bits in 10 bytes", offset=self._at)

    def number_to(self, most: int, what: str) -> int:
        """An enum's or a union's number."""
        start = self._at
        number = self.long()
        if not 0 <= number <= most:
            raise DecodeError("wrong_type", f"expected {what} 0 to {most}, found {number}", offset=start)
        return number

    def octets(self) -> bytes:
        """A string's bytes."""
        size = self.long()
        start, end = self._at, self._at + size
        if not start <= end <= len(self._data):
            left = len(self._data) - start
            raise DecodeError("truncated", f"expected a text of {size} bytes, {left} are left", offset=start)
        self._at = end
        return self._data[start:end]

    def text(self) -> str:
        """A string."""
        octets = self.octets()
        try:
            return octets.decode()
        except UnicodeDecodeError as fault:
            offset = self._at - len(octets) + fault.start
            raise DecodeError("bad_utf8", f"expected UTF-8, found {fault.reason}", offset=offset) from None

    def boolean(self) -> bool:
        """One byte, 0 or 1."""
        start, self._at = self._at, self._at + 1
        octet = self._data[start : self._at]
        if octet not in (b"\0", b"\1"):
            reason = "wrong_type" if octet else "truncated"
            raise DecodeError(reason, f"expected 0 or 1, found {octet.hex() or 'the end'}", offset=start)
        return octet == b"\1"

    def optional(self, read: Callable[[], T]) -> T | None:
        """A union of null and another type."""
        return read() if self.number_to(1, "a type of a union") else None

    def array(self, read: Callable[[], T]) -> tuple[T, ...]:
        """All blocks; a negative count is followed by the block's size."""
        items: list[T] = []
        while count := self.long():
            size = self.long() if count < 0 else None
            start = self._at
            items += [read() for _ in range(abs(count))]
            if size not in (None, self._at - start):
                detail = f"expected a block of {size} bytes, found {self._at - start}"
                raise DecodeError("wrong_type", detail, offset=start)
        return tuple(items)

    def finish(self) -> None:
        """Refuse bytes that are left."""
        if self._at != len(self._data):
            left = len(self._data) - self._at
            raise DecodeError("trailing_bytes", f"expected the end, {left} bytes are left", offset=self._at)


def read_control(value: bytes) -> Envelope:
    """A message that does not begin as a row does. Raises DecodeError."""
    if value[:1] != MESSAGE:
        raise DecodeError("wrong_type", f"expected byte 16 of an Avro message, found {value[:1].hex()}", offset=0)
    reader = Reader(value, 1)
    kind, payload = (reader.number_to(3, "a message of type") for _ in range(2))
    if kind != payload:
        raise DecodeError(
            "wrong_type", f"expected payload {kind} in a message of type {kind}, found {payload}", offset=2
        )
    version = reader.long()
    if version != VERSION:
        raise DecodeError("unknown_version", f"expected version {VERSION}, found {version}", offset=3)
    if kind == len(_PAYLOADS):
        raise DecodeError("wrong_type", f"expected {ROW.hex(' ')} before a row, found longer forms of these numbers")
    envelope = _PAYLOADS[kind](reader)
    reader.finish()
    return envelope


def _watermark(reader: Reader) -> Envelope:
    # A long: a watermark of 2^63 and more has its 64 bits.
    commit_ts = reader.long() & (1 << 64) - 1
    return Envelope(version=VERSION, type=WATERMARK, commit_ts=commit_ts, build_ts=reader.long())


def _bootstrap(reader: Reader) -> Envelope:
    build_ts = reader.long()
    return Envelope(version=VERSION, type=BOOTSTRAP, commit_ts=0, build_ts=build_ts, table_schema=_table_schema(reader))


def _ddl(reader: Reader) -> Envelope:
    return Envelope(
        version=VERSION,
        type=DDL_TYPES[reader.number_to(len(DDL_TYPES) - 1, "a type of DDL")],
        sql=reader.text(),
        commit_ts=reader.long(),
        build_ts=reader.long(),
        table_schema=reader.optional(lambda: _table_schema(reader)),
        pre_table_schema=reader.optional(lambda: _table_schema(reader)),
    )


_PAYLOADS = (_watermark, _bootstrap, _ddl)


def _table_schema(reader: Reader) -> TableSchema:
    return TableSchema(
        database=reader.text(),
        table=reader.text(),
        table_id=reader.long(),
        version=reader.long(),
        columns=reader.array(lambda: _column(reader)),
        indexes=reader.array(lambda: _index(reader)),
    )


def _column(reader: Reader) -> ColumnSchema:
    column = ColumnSchema(name=reader.text(), data_type=_data_type(reader), nullable=reader.boolean(), default=None)
    # The default is left out, as nothing asks for it: that of a BIT is its bytes in a string, which no UTF-8 need be.
    reader.optional(reader.octets)
    return column


def _data_type(reader: Reader) -> DataType:
    return DataType(
        mysql_type=reader.text(),
        charset=reader.text(),
        collate=reader.text(),
        length=reader.long(),
        decimal=reader.optional(reader.long) or 0,
        elements=reader.optional(lambda: reader.array(reader.text)),
        unsigned=bool(reader.optional(reader.boolean)),
        zerofill=bool(reader.optional(reader.boolean)),
    )


def _index(reader: Reader) -> IndexSchema:
    return IndexSchema(
        name=reader.text(),
        unique=reader.boolean(),
        primary=reader.boolean(),
        nullable=reader.boolean(),
        columns=reader.array(reader.text),
    )
