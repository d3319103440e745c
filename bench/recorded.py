"""The recorded benchmark rows (tests/data/vectors/bench-*): one sysbench table, 420 row changes, by protocol."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ticdc_codec.options import SinkOptions, sink_options
from ticdc_testkit.recorded_streams import base64_bytes

DATA = Path(__file__).parent.parent / "tests" / "data"
FOLDER = DATA / "vectors"
FILES = {
    "canal_json": "bench-canal_json-ext",
    "craft": "bench-craft",
    "open_protocol": "bench-open_protocol",
    "simple_json": "bench-simple-json",
    "simple_avro": "bench-simple-avro",
    "debezium": "bench-debezium-ext",
    "debezium_no_schema": "bench-debezium-no-schema",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The benchmark's messages in one protocol."""

    protocol: str
    options: SinkOptions
    create: str
    """The table's CREATE TABLE statement."""
    rows: int
    """Row changes in the messages."""
    keys: tuple[bytes | None, ...]
    values: tuple[bytes, ...]

    def repeated(self, rows: int) -> Recorded:
        """The same messages over and over, to about ``rows`` row changes and once at least."""
        times = max(1, rows // self.rows)
        return Recorded(
            protocol=self.protocol,
            options=self.options,
            create=self.create,
            rows=self.rows * times,
            keys=self.keys * times,
            values=self.values * times,
        )

    @property
    def bytes(self) -> int:
        """Bytes of the values."""
        return sum(len(value) for value in self.values)


@lru_cache
def recorded(name: str) -> Recorded:
    """The recorded messages of one of ``FILES``."""
    with gzip.open(FOLDER / f"{FILES[name]}.jsonl.gz", "rt", encoding="utf-8") as lines:
        head, case = (json.loads(next(lines)) for _ in range(2))
    return Recorded(
        protocol=head["protocol"],
        options=sink_options(head["protocol"], head["options"]),
        create=case["create"],
        rows=head["events"],
        keys=tuple(base64_bytes(message["key"]) for message in case["messages"]),
        values=tuple(base64.b64decode(message["value"]) for message in case["messages"]),
    )


def simple_schema() -> list[dict[str, Any]]:
    """The Avro schema of Simple's messages (wire.md 1.3.2): types, the last of which is a message."""
    schema: list[dict[str, Any]] = json.loads((DATA / "simple.avsc").read_text(encoding="utf-8"))
    return schema


def json_texts(messages: Recorded) -> list[bytes]:
    """The JSON texts of messages: their values; of Open those in its keys, behind a version, and in its values."""
    if messages.protocol != "open_protocol":
        return list(messages.values)
    texts: list[bytes] = []
    for key, value in zip(messages.keys, messages.values, strict=True):
        texts += _framed(key or b"", 8)
        texts += _framed(value, 0)
    return texts


def _framed(data: bytes, start: int) -> list[bytes]:
    texts = []
    while start < len(data):
        end = start + 8 + int.from_bytes(data[start : start + 8], "big")
        texts.append(data[start + 8 : end])
        start = end
    return texts
