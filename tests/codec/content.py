"""What a message says: all that does not differ by the writer's clock, by chance or by an id that no event has."""

from __future__ import annotations

import io
import json
from functools import cache
from typing import Any

import fastavro
from vectors import FOLDER

from ticdc_codec.message import Message, decompress
from ticdc_codec.open_protocol.frame import key_texts, texts_of
from ticdc_codec.options import EncodingFormat, SinkOptions


def content_of(protocol: str, message: Message, options: SinkOptions) -> Any:
    """Of a claim check's location, the folder."""
    if protocol == "open_protocol":
        return _open_protocol(message, options)
    data = decompress(message.value or b"", options.large_message_handle_compression)
    return _canal_json(data) if protocol == "canal_json" else _simple(data, options.encoding_format)


def _open_protocol(message: Message, options: SinkOptions) -> list[tuple[Any, Any]]:
    """``rid`` is tiflow's alone, and an ``ohk`` of false beside ``ccl`` ticdc's."""
    keys = [json.loads(text) for text in key_texts(message.key)]
    compression = options.large_message_handle_compression
    texts = [decompress(text, compression) if text else b"null" for text in texts_of(message.value or b"")]
    for key in keys:
        key.pop("rid", None)
        if "ccl" in key:
            key["ccl"] = folder(key["ccl"])
            key["ohk"] = key.get("ohk") or ""
    named = [{name: member for name, member in key.items() if member != ""} for key in keys]
    return [*zip(named, map(json.loads, texts), strict=True)]


def _canal_json(data: bytes) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(data)
    del message["ts"]
    if message["type"] == "TIDB_WATERMARK":
        del message["es"]  # the vectors' watermarks are older than their clock
    if message["data"] == [{}]:
        message["mysqlType"] = None  # {} in tiflow, null in ticdc
    if "claimCheckLocation" in message.get("_tidb", {}):
        message["_tidb"]["claimCheckLocation"] = folder(message["_tidb"]["claimCheckLocation"])
    return message


def _simple(data: bytes, encoding: EncodingFormat) -> dict[str, Any]:
    if encoding is EncodingFormat.JSON:
        message: dict[str, Any] = json.loads(data)
    else:
        datum: Any = fastavro.schemaless_reader(io.BytesIO(data), avro_schema())
        message = datum["payload"]
    if message.get("claimCheckLocation"):
        message["claimCheckLocation"] = folder(message["claimCheckLocation"])
    return message | {"buildTs": 0}


def folder(location: str) -> str:
    """Where an object lies."""
    return location.rpartition("/")[0]


@cache
def avro_schema() -> Any:
    """Of a message of Simple, for a reader that is not ours (wire.md 1.3.2)."""
    return fastavro.parse_schema(json.loads((FOLDER.parent / "simple.avsc").read_text(encoding="utf-8")))
