"""The protocol of messages told from their bytes: of every recorded file, message by message and together."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from vectors import FOLDER, cases, header

from ticdc_codec.message import compress
from ticdc_codec.open_protocol.frame import framed
from ticdc_codec.options import Compression
from ticdc_codec.protocols import PROTOCOLS
from ticdc_codec.recognition import Recognised, recognise, recognise_one

FILES = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.jsonl.gz"))
STREAMS = sorted(path for path in FOLDER.parent.glob("streams/*/*.jsonl.gz") if not path.name.startswith("answers"))
SHOWN = ("encoding-format", "large-message-handle-compression", "debezium-disable-schema")
CLAIMS = "large-message-handle-option"

Pair = tuple[bytes | None, bytes | None]


def messages(file: str) -> list[Pair]:
    return [pair for case in cases(file) for pair in zip(case.keys, case.values, strict=True)]


def first(file: str) -> Pair:
    return messages(file)[0]


@pytest.mark.parametrize("file", FILES)
def test_each_message_of_every_vector_file_is_recognised(file: str) -> None:
    """Also a DDL or a watermark by itself."""
    protocol, options = header(file)["protocol"], header(file)["options"]
    looks = [recognise_one(*message) for message in messages(file)]
    assert recognise(messages(file)[:1]) == looks[0]
    assert {(look.protocol, look.damaged) for look in looks} == {(protocol, False)}
    for name in SHOWN:
        wanted = str(options.get(name, "none" if "compression" in name else "")).lower()
        shown = {look.options[name] for look in looks if name in look.options}
        assert shown <= {wanted or "json", wanted or "false"}, name
    claims = any(CLAIMS in look.options for look in looks)
    assert claims == (options.get(CLAIMS) == "claim-check")


@pytest.mark.parametrize("file", FILES)
def test_messages_of_a_vector_file_are_recognised_together(file: str) -> None:
    found, options = recognise(messages(file)), header(file)["options"]
    assert found.protocol == header(file)["protocol"]
    assert found.options.get("encoding-format", "") == options.get("encoding-format", "json") * (
        found.protocol == "simple"
    )
    if found.protocol != "craft":
        wanted = options.get("large-message-handle-compression", "none")
        assert found.options["large-message-handle-compression"] == wanted
    if found.protocol == "canal_json":
        assert found.options["enable-tidb-extension"] == str(options.get("enable-tidb-extension", False)).lower()


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_protocol_of_every_recorded_stream_is_recognised(path: Path) -> None:
    with gzip.open(path) as lines:
        records = [json.loads(line) for line in lines]
    pairs = [tuple(record[part] and base64.b64decode(record[part]) for part in ("key", "value")) for record in records]
    found = recognise(pairs)  # type: ignore[arg-type]
    assert found.protocol == path.name.partition(".")[0].partition("-")[0]


def test_every_protocol_is_among_them() -> None:
    assert {header(file)["protocol"] for file in FILES} == set(PROTOCOLS)


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("tiflow-craft", "the value begins with version 1 and ends with size tables that fill it: 1 event of Craft"),
        (
            "tiflow-open_protocol",
            "the key begins with 00 00 00 00 00 00 00 01 and the length and JSON of 1 events, as Open Protocol's",
        ),
        ("tiflow-canal_json", "the value is JSON with members id, database, table, pkNames, isDdl, type, …"),
        ("tiflow-simple-avro", "the value begins with 16 02 02 02, a message of Simple in Avro"),
        ("tiflow-simple-avro-lz4", "lz4: the value begins with 16 02 02 02, a message of Simple in Avro"),
        (
            "ticdc-debezium",
            "the value is JSON with members payload, schema, and its payload.source is of connector TiCDC",
        ),
    ],
)
def test_the_reason_says_what_was_recognised(file: str, reason: str) -> None:
    assert recognise_one(*first(file)).reason == reason


NOTHING: list[tuple[bytes | None, str]] = [
    (None, "the value has no bytes, and the key is not Open Protocol's"),
    (b"", "the value has no bytes, and the key is not Open Protocol's"),
    (b"{}", "the value is JSON with no members, which no protocol of TiCDC has"),
    (b'{"before":1,"op":"c"}', "the value is JSON with members before, op, which no protocol of TiCDC has"),
    (b'{"a\\u001b[31m":1}', r"the value is JSON with members a\x1b[31m, which no protocol of TiCDC has"),
    (b'{"key":null,"value":"AA=="}', "the value is a claim-check object (JSON with key and value), not a message"),
    (
        b'{"payload":{"source":{"connector":"mysql"}}}',
        'the value is JSON with payload, as Debezium\'s, but of connector "mysql", not TiCDC',
    ),
    (b'{"payload":3}', "the value is JSON with payload, as Debezium's, but of connector null, not TiCDC"),
    (
        b"\x00\x01\x02",
        "the value's 3 bytes begin with 00 01 02: no JSON object, no Craft, no Simple in Avro, not compressed",
    ),
    (
        framed([b'{"x":1}']),
        "the value's 15 bytes begin with 00 00 00 00 00 00 00 07: no JSON object, no Craft, no Simple in Avro, not "
        "compressed",
    ),  # lengths as Open Protocol's, but of another JSON
    (
        bytes.fromhex("00 00000007 02 0a"),
        "the value's 7 bytes begin with 00 00 00 00 07 02 0a: no JSON object, no Craft, no Simple in Avro, not "
        "compressed",
    ),  # debezium-avro: Avro of a schema in a registry (wire.md 1.5.4)
    (
        b"[" * 100_000,
        "the value's 100000 bytes begin with 5b 5b 5b 5b 5b 5b 5b 5b: no JSON object, no Craft, no Simple in Avro, "
        "not compressed",
    ),
]


@pytest.mark.parametrize(("value", "reason"), NOTHING)
def test_what_no_protocol_fits(value: bytes | None, reason: str) -> None:
    assert recognise_one(None, value) == Recognised(reason=reason)


@pytest.mark.parametrize(
    ("key", "value", "protocol"),
    [
        (None, b"\x01\x02", "craft"),
        (None, b"\x16\x06", "simple"),
        (None, b"\x16", "simple"),
        (None, b'{"id":0,"isDdl":fal', "canal_json"),
        (None, b'{"version":1,"commitTs":1,"buildTs":', "simple"),
        (None, b'{"payload":{"source":{"connector":"TiCDC"', "debezium"),
        ((1).to_bytes(8) + b"\0", b"", "open_protocol"),
        ((1).to_bytes(8) + (1).to_bytes(8) + b"1", b"", "open_protocol"),
    ],
)
def test_a_damaged_message_is_recognised_as_damaged(key: bytes | None, value: bytes, protocol: str) -> None:
    found = recognise_one(key, value)
    assert (found.protocol, found.damaged) == (protocol, True)
    assert "but" in found.reason
    assert recognise([(key, value)] * 3).protocol is None


def test_open_protocol_without_its_key() -> None:
    found = recognise_one(None, first("tiflow-open_protocol-lz4")[1])
    assert (found.protocol, found.damaged) == ("open_protocol", True)
    assert found.options == {"large-message-handle-compression": "lz4"}
    assert found.reason.endswith("its key is missing")


def test_a_snappy_block_that_begins_like_another() -> None:
    """Its first byte is its content's length: 123 is an opening brace, 22 begins Avro."""
    bare = first("tiflow-canal_json")[1]
    assert bare is not None
    grown = bare.replace(b'"database":"', b'"database":"' + b"x" * (-len(bare) % 128 + 123 - 128 + 256))
    value = compress(grown, Compression.SNAPPY)
    assert value[0] & 0x7F == 123
    assert recognise_one(None, value).options["large-message-handle-compression"] == "snappy"


def test_a_decompression_bomb_is_not_opened() -> None:
    bomb = compress(bytes(65 << 20), Compression.LZ4)
    assert recognise_one(None, bomb).protocol is None
    assert pa.total_allocated_bytes() < 1 << 30


def test_several_protocols_are_not_one() -> None:
    found = recognise([first("tiflow-craft"), first("tiflow-canal_json")])
    assert (found.protocol, found.options) == (None, {})
    assert found.reason.startswith("1 of craft: the value begins with version 1")
    assert "; 1 of canal-json: the value is JSON" in found.reason


def test_nearly_all_are_enough_and_the_others_are_named() -> None:
    craft, poison = first("tiflow-craft"), (None, b"poison")
    found = recognise([*[craft] * 9, poison])
    assert found.protocol == "craft"
    assert "; 1 of no protocol: the value's 6 bytes begin with 70 6f" in found.reason
    assert recognise([*[craft] * 8, poison]).protocol is None


def test_an_option_that_differs_is_named() -> None:
    both = [first("tiflow-simple-json"), first("tiflow-simple-avro")]
    found = recognise(both)
    assert (found.protocol, found.options) == ("simple", {"large-message-handle-compression": "none"})
    assert found.reason.endswith("; they differ in encoding-format")


def test_no_messages_show_no_protocol() -> None:
    assert recognise([]) == Recognised(reason="no messages")
