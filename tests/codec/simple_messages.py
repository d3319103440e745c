"""Messages of Simple written by hand, and what tests ask of a decoder of them."""

from __future__ import annotations

import json
from typing import Any

from single import single

from ticdc_codec.batch import DecoderContext
from ticdc_codec.event import Column, Event, Failure, RowChange, events_of
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder
from ticdc_codec.simple import encode

COMMIT_TS, VERSION = 470613139966656514, 470613139952238593
DEEP = b"[" * 100_000 + b"]" * 100_000
AVRO = {"encoding-format": "avro"}
ZONE = {"time-zone": "Asia/Shanghai"}
COLUMNS = tuple(
    Column(name=name, type=kind, key=name == "id", by="index" if kind.startswith(("enum", "set")) else None)
    for name, kind in {
        "id": "int(11)", "b": "varbinary(8)", "f": "double", "y": "year(4)", "t": "timestamp", "e": "enum('a','b')",
        "u": "bigint(20) unsigned", "s": "varchar(9)",
    }.items()
)  # fmt: skip
KNOWN = {("d", "t", VERSION): COLUMNS}
DATA: dict[str, Any] = {
    "id": "1", "b": "/w==", "f": "0.5", "y": "0", "t": {"location": "Asia/Shanghai", "value": "2024-01-01 00:00:00"},
    "e": "2", "u": "18446744073709551615", "s": "é",
}  # fmt: skip
AFTER = {"id": "1", "b": "ff", "f": "0.5", "y": "0000", "t": "2024-01-01 00:00:00", "e": "2",
         "u": "18446744073709551615", "s": "é"}  # fmt: skip


def decode(*values: bytes | None, context: DecoderContext | None = None, **options: object) -> list[Event]:
    given_options = ZONE | {name.replace("_", "-"): value for name, value in options.items()}
    decoder = Decoder("simple", sink_options("simple", given_options), context or DecoderContext(schemas=KNOWN))
    batch = decoder.decode([None] * len(values), values)
    batch.validate(full=True)
    return [event for _, event in events_of(batch)]


def failure(value: bytes | None, **options: Any) -> Failure:
    return single(decode(value, **options), Failure)


def row(value: bytes, **options: Any) -> RowChange:
    return single(decode(value, **options), RowChange)


def message(**members: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "version": 1, "database": "d", "table": "t", "tableID": 7, "type": "UPDATE", "commitTs": COMMIT_TS,
        "buildTs": 1795246658001, "schemaVersion": VERSION, "data": DATA, "old": DATA,
    }  # fmt: skip
    return {name: value for name, value in (whole | members).items() if value is not ...}


def written(**members: Any) -> bytes:
    return json.dumps(message(**members), ensure_ascii=False, separators=(",", ":")).encode()


def with_data(**values: Any) -> bytes:
    return written(data=DATA | values)


UPDATE = written()
SCHEMA = {
    "schema": "d", "table": "n", "tableID": 7, "version": VERSION,
    "columns": [
        {"name": "id", "dataType": {"mysqlType": "int", "charset": "binary", "collate": "binary", "length": 11},
         "nullable": False, "default": None},
        {"name": "e", "dataType": {"mysqlType": "enum", "charset": "utf8mb4", "collate": "utf8mb4_bin",
                                   "elements": ["a'b", "c\\d"]}, "nullable": True, "default": "x"},
    ],
    "indexes": [{"name": "k", "unique": True, "primary": False, "nullable": False, "columns": ["id"]}],
}  # fmt: skip
BARE = dict.fromkeys(("database", "table", "tableID", "schemaVersion", "data", "old"), ...)
BOOTSTRAP = written(**BARE, type="BOOTSTRAP", commitTs=0, tableSchema=SCHEMA)
DDL = written(**BARE, type="ALTER", sql="ALTER TABLE n", tableSchema=SCHEMA, preTableSchema=SCHEMA)
WATERMARK = written(**BARE, type="WATERMARK", commitTs=5)
VALID = (UPDATE, BOOTSTRAP, DDL, WATERMARK)
AVRO_VALID = tuple(
    value.value or b"" for value in encode(decode(*VALID), sink_options("simple", AVRO | ZONE))
)  # fmt: skip
BOTH = [*[(value, "json") for value in VALID], *[(value, "avro") for value in AVRO_VALID]]
