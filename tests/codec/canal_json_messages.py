"""Messages of Canal-JSON as TiCDC writes them, and what they decode to."""

from __future__ import annotations

import json
from typing import Any

from single import single

from ticdc_codec.batch import DecoderContext
from ticdc_codec.event import Event, Failure, RowChange, events_of
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder

EXTENSION = {"enable-tidb-extension": True}
COMMIT_TS = 470613139966656514
DEEP = b"[" * 100_000 + b"]" * 100_000


def decode(*values: bytes | None, stored: dict[str, bytes] | None = None, **options: object) -> list[Event]:
    given_options = EXTENSION | {name.replace("_", "-"): value for name, value in options.items()}
    batch = Decoder(
        "canal_json", sink_options("canal_json", given_options), DecoderContext(objects=stored or {})
    ).decode([None] * len(values), values)
    batch.validate(full=True)
    return [event for _, event in events_of(batch)]


def failure(value: bytes | None, **options: Any) -> Failure:
    return single(decode(value, **options), Failure)


def row(value: bytes, **options: Any) -> RowChange:
    return single(decode(value, **options), RowChange)


def message(**members: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "id": 0, "database": "d", "table": "t", "pkNames": ["id"], "isDdl": False, "type": "UPDATE",
        "es": 1795246658000, "ts": 1795246658001, "sql": "",
        "sqlType": {"id": 4, "b": 2004, "f": 8, "y": 12},
        "mysqlType": {"y": "year", "id": "int", "b": "varbinary", "f": "double"},
        "old": [{"id": "1", "b": "ÿ", "f": "0.5", "y": "0"}], "data": [{"id": "1", "b": "\0", "f": None, "y": "1999"}],
        "_tidb": {"commitTs": COMMIT_TS},
    }  # fmt: skip
    return whole | members


def written(**members: Any) -> bytes:
    return json.dumps(message(**members), ensure_ascii=False, separators=(",", ":")).encode()


def without(*names: str) -> bytes:
    return json.dumps({name: value for name, value in message().items() if name not in names}).encode()


UPDATE = written()
DDL = written(
    isDdl=True, type="CREATE", sql="CREATE TABLE t (id INT)", pkNames=None, sqlType=None, mysqlType=None,
    old=None, data=None
)  # fmt: skip
WATERMARK = written(
    database="", table="", type="TIDB_WATERMARK", pkNames=None, sqlType=None, mysqlType=None, old=None, data=None,
    _tidb={"watermarkTs": 5},
)  # fmt: skip
VALID = (UPDATE, DDL, WATERMARK)

DOUBLED = {
    "top": (b'"ts":', b'"ts":1,"ts":'),
    "top, spaces": (b'"ts":', b'"ts" : 1 ,"ts":'),
    "data": (b'"data":[{', b'"data":[{"id":"2",'),
    "data, spaces": (b'"data":[{', b'"data":[{"id" :"2",'),
    "data, null": (b'"data":[{', b'"data":[{"f":null,'),
    "data, escaped": (b'"data":[{', b'"data":[{"\\u0069d":"2",'),
    "data, quotes in a text": (b'"data":[{', b'"data":[{"id":"\\":\\\\",'),
    "old": (b'"old":[{', b'"old":[{"f":"2",'),
    "types": (b'"mysqlType":{', b'"mysqlType":{"id":"int",'),
    "sql types": (b'"sqlType":{', b'"sqlType":{"id":4,'),
    "extension": (b'"_tidb":{', b'"_tidb":{"commitTs":7,'),
}
