"""When a feed's first messages show that its file is wrong, and what is said then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ticdc_codec.event import Bootstrap, Column, Op, Resolved, RowChange
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import PROTOCOLS, Pair
from ticdc_lakehouse.silver.decode_stream import Decoding
from ticdc_lakehouse.silver.first_messages import MESSAGES, mistake

COLUMNS = (Column(name="id", type="bigint(20)", key=True),)
ROW = RowChange(
    op=Op.INSERT, database="d", table="t", commit_ts=9 << 18, commit_ms=9, before=None, after={"id": "1"},
    columns=COLUMNS, schema_version=7,
)  # fmt: skip
EXTENSION = {"enable-tidb-extension": "true"}
LZ4 = {"large-message-handle-compression": "lz4"}
AVRO = {"encoding-format": "avro"}


def decoding(protocol: str, options: dict[str, str] | None = None) -> Decoding:
    return Decoding(feed="shop", protocol=protocol, options=sink_options(protocol, options or {}))


def written(protocol: str, options: dict[str, str] | None = None, times: int = MESSAGES) -> list[Pair]:
    """Rows and watermarks in turn."""
    events = [ROW, Resolved(commit_ts=9 << 18)] if protocol != "canal_json" or options else [ROW]
    messages = [
        message
        for event in events
        for message in PROTOCOLS[protocol].encode([event], sink_options(protocol, options or {}))
    ]
    return [(message.key, message.value) for message in messages * times][:times]


@pytest.mark.parametrize(
    ("configured", "found", "expected"),
    [
        (("craft", {}), ("canal_json", EXTENSION), "protocol: canal-json and under options "
         "enable-tidb-extension: true"),
        (("craft", {}), ("canal_json", {}), "protocol: canal-json"),
        (("canal_json", EXTENSION), ("craft", {}), "protocol: craft"),
        (("canal_json", EXTENSION), ("open_protocol", {}), "protocol: open-protocol"),
        (("simple", {}), ("open_protocol", LZ4), "protocol: open-protocol and under options "
         "large-message-handle-compression: lz4"),
        (("open_protocol", {}), ("debezium", EXTENSION), "protocol: debezium"),
        (("debezium", {}), ("simple", AVRO), "protocol: simple and under options encoding-format: avro"),
        (("simple", {}), ("simple", AVRO), "under options encoding-format: avro"),
        (("simple", AVRO), ("simple", {}), "under options encoding-format: json"),
        (("simple", LZ4), ("simple", {}), "under options large-message-handle-compression: none"),
        (("simple", {}), ("simple", AVRO | LZ4), "under options encoding-format: avro, "
         "large-message-handle-compression: lz4"),
        (("canal_json", EXTENSION), ("canal_json", {}), "under options enable-tidb-extension: false"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(
    configured: tuple[str, dict[str, str]], found: tuple[str, dict[str, str]], expected: str
) -> None:
    said = mistake(decoding(*configured), written(*found))
    assert said is not None
    protocol = configured[0].replace("_", "-")
    assert said.startswith(f"feed shop: shop.yml: protocol: the first messages do not decode as {protocol} (")
    assert f"; found {MESSAGES} of {found[0].replace('_', '-')}: " in said
    assert said.endswith(f"; expected {expected}")


def test_mistake_names_file_key_expected_and_found() -> None:
    assert mistake(decoding("craft"), written("simple", AVRO)) == (
        "feed shop: shop.yml: protocol: the first messages do not decode as craft (unknown_version: expected version "
        "1, found 22); found 48 of simple: the value begins with 16 06 06 02, a message of Simple in Avro; expected "
        "protocol: simple and under options encoding-format: avro"
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_right_protocol_is_no_mistake(protocol: str) -> None:
    options = EXTENSION if protocol in ("canal_json", "debezium") else {}
    assert mistake(decoding(protocol, options), written(protocol, options)) is None


def test_rows_whose_schema_has_not_come_are_of_their_protocol() -> None:
    rows = written("simple")[::2]
    assert mistake(decoding("simple"), rows) is None
    bootstrap = Bootstrap(database="d", table="t", columns=COLUMNS, schema_version=7)
    assert mistake(replace(decoding("simple"), schemas={("d", "t", 7): bootstrap.columns}), rows) is None


def test_poison_messages_do_not_stop_silver() -> None:
    craft, strange = decoding("craft"), written("canal_json", EXTENSION)
    assert mistake(craft, []) is None
    assert mistake(craft, strange[:1]) is None, "one message may be poison"
    assert mistake(craft, strange[:2]) is not None
    assert mistake(craft, [*written("craft", times=5), *strange[:43]]) is None, "a part of them decodes"
    assert mistake(craft, [*written("craft", times=4), *strange[:44]]) is not None, "nearly none does"
    assert mistake(craft, [(None, b"poison")] * MESSAGES) is None, "no protocol fits"
    assert mistake(craft, strange[:20] + written("open_protocol", times=20)) is None, "two protocols"
    assert mistake(craft, [(None, value[:-1]) for _, value in written("craft") if value]) is None, "damaged Craft"
