"""Messages of Simple in Avro by fastavro: WATERMARK, BOOTSTRAP and DDL read and written, rows written.

Rows are read by ``avro_rows``, a batch at a time. The bytes are those that TiCDC writes for the same datum, but for the
order of map entries, which is random there and that of the columns here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from io import BytesIO
from typing import Any
from zoneinfo import ZoneInfo

import fastavro
import msgspec

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Image, RowChange
from ticdc_codec.mysql_type import parse_type
from ticdc_codec.number_text import number_of_names
from ticdc_codec.options import SinkOptions
from ticdc_codec.simple.avro_schema import PARSED, PARSED_ROW, ROW, check
from ticdc_codec.simple.avro_values import ValueEncoding, encoding_of
from ticdc_codec.simple.message import BOOTSTRAP, VERSION, WATERMARK, Checksum, Envelope, row_members

_PAYLOADS = {WATERMARK: "Watermark", BOOTSTRAP: "Bootstrap"}
"""Record of a message's payload by its type; all other types are those of a DDL."""
_Record = dict[str, Any]


def read_control(value: bytes) -> Envelope:
    """Reads a message that does not begin as a row does. Raises DecodeError."""
    check(value)
    # Text is checked already, except a BIT's default, which ``layout_of`` does not use.
    message: Any = fastavro.schemaless_reader(
        BytesIO(value),
        PARSED,
        None,
        return_record_name=True,
        return_record_name_override=True,
        handle_unicode_errors="replace",
    )
    kind, (record, payload) = message[1]["type"], message[1]["payload"]
    if record.upper() != kind:
        raise DecodeError("wrong_type", f"expected payload {kind} in a message of this type, found {record}", offset=2)
    if payload["version"] != VERSION:
        raise DecodeError("unknown_version", f"expected version {VERSION}, found {payload['version']}", offset=3)
    if record == "DML":
        raise DecodeError(
            "wrong_type", f"expected {ROW.hex(' ')} before a row, found longer encodings of these numbers"
        )
    schemas = {name: _table_members(payload[name]) for name in ("tableSchema", "preTableSchema") if payload.get(name)}
    if record == "Watermark":
        payload["commitTs"] %= 1 << 64  # a long: a watermark of 2^63 and more has its 64 bits
    return msgspec.convert({"type": kind, "commitTs": 0} | payload | schemas, Envelope)


def _table_members(schema: _Record) -> _Record:
    """Returns a TableSchema with the member names of JSON, without what ``Envelope`` leaves out."""
    columns = [
        {**column, "dataType": {k: v for k, v in column["dataType"].items() if v is not None}}
        for column in schema.pop("columns")
    ]
    return {"schema": schema.pop("database"), "columns": columns, **schema}


def _table_record(schema: _Record) -> _Record:
    """Returns a TableSchema with the field names of Avro."""
    columns = [
        {**column, "dataType": {"length": 0, **column["dataType"]}, "default": _default_text(column["default"])}
        for column in schema.pop("columns") or ()
    ]
    return {"database": schema.pop("schema"), **schema, "columns": columns, "indexes": schema["indexes"] or ()}


def _default_text(default: str | int | None) -> str | None:
    return None if default is None else str(default)


def _written(schema: Any, datum: Any) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, schema, datum)
    return out.getvalue()


def _signed(number: int) -> int:
    """Returns the signed number with the same 64 bits."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


_WriteValue = Callable[[str], tuple[str, Any]]
"""A value's branch of the union, and its datum."""


class AvroWriter:
    """Writes messages of one run of events."""

    def __init__(self, options: SinkOptions) -> None:
        self._zone = options.time_zone
        self._writers: dict[int, tuple[tuple[Column, ...], dict[str, _WriteValue]]] = {}

    def control(self, message: Envelope) -> bytes:
        """Returns a message that is not a row."""
        payload: _Record = msgspec.json.decode(msgspec.json.encode(message))
        for name in payload.keys() & {"tableSchema", "preTableSchema"}:
            payload[name] = _table_record(payload[name])
        record = _PAYLOADS.get(message.type, "DDL")
        payload["commitTs"] = _signed(payload["commitTs"])
        datum = {"type": record.upper(), "payload": (record, payload)}
        return _written(PARSED, ("Message", datum))

    def row(
        self, row: RowChange, commit_ts: int, version: int, checksum: Checksum | None, location: str | None
    ) -> bytes:
        """Returns a row's message; ``location`` is that of its claim-check object."""
        datum = row_members(row, commit_ts, version) | {
            "claimCheckLocation": location,
            "handleKeyOnly": row.handle_only or None,
            "checksum": None if checksum is None else msgspec.structs.asdict(checksum),
            "data": self._image(row.after, row.columns),
            "old": self._image(row.before, row.columns),
        }
        return ROW + _written(PARSED_ROW, datum)

    def _image(self, image: Image | None, columns: tuple[Column, ...]) -> _Record | None:
        """Returns an image as the datum of a map, in the order of the columns."""
        if image is None:
            return None
        # By identity: hashing the columns of every row would cost more than writing it. The entry keeps them alive.
        entry = self._writers.get(id(columns))
        if entry is None:
            entry = self._writers[id(columns)] = columns, dict(_value_writers(columns, self._zone))
        return {
            name: None if (text := image[name]) is None else write(text)
            for name, write in entry[1].items()
            if name in image
        }


def _value_writers(columns: tuple[Column, ...], zone: ZoneInfo) -> Iterable[tuple[str, _WriteValue]]:
    for column in columns:
        write = _WRITERS[encoding_of(column.type)]
        if column.by == "name":
            yield column.name, partial(_write_names, number_of_names(parse_type(column.type)), write)
        elif write is _write_timestamp:
            yield column.name, partial(_write_timestamp, location=zone.key)
        else:
            yield column.name, write


def _write_names(number: Callable[[str], str], write: _WriteValue, names: str) -> tuple[str, Any]:
    return write(number(names))


def _write_long(text: str) -> tuple[str, Any]:
    return "long", int(text)


def _write_bits(text: str) -> tuple[str, Any]:
    return "long", _signed(int(text))


def _write_bigint(text: str) -> tuple[str, Any]:
    return "UnsignedBigint", {"value": _signed(int(text))}


def _write_timestamp(text: str, location: str = "") -> tuple[str, Any]:
    return "Timestamp", {"location": location, "value": text}


_WRITERS: dict[ValueEncoding, _WriteValue] = {
    ValueEncoding.SIGNED: _write_long,
    ValueEncoding.UNSIGNED: _write_long,
    ValueEncoding.ENUM: _write_long,
    ValueEncoding.YEAR: _write_long,
    ValueEncoding.BITS: _write_bits,
    ValueEncoding.BIGINT: _write_bigint,
    ValueEncoding.FLOAT: lambda text: ("float", float(text)),
    ValueEncoding.DOUBLE: lambda text: ("double", float(text)),
    ValueEncoding.TEXT: lambda text: ("string", text),
    ValueEncoding.BINARY: lambda text: ("bytes", bytes.fromhex(text)),
    ValueEncoding.TIMESTAMP: _write_timestamp,
}
