"""Maps of bytes: every byte is in one span, whatever the message, and the spans say what the decoder reads."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
from vectors import Case, cases, header

from ticdc_codec.byte_map import NOT_READ, ByteMap, Span, Walk, filled, mapped
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Failure, events_of
from ticdc_codec.options import SinkOptions, sink_options
from ticdc_codec.protocols import PROTOCOLS, Decoder
from ticdc_codec.recognition import recognise_one

FILES = (
    "tiflow-craft", "tiflow-craft-delete-handle-key-only", "tiflow-open_protocol", "ticdc-open_protocol-lz4",
    "tiflow-open_protocol-snappy", "tiflow-simple-avro", "ticdc-simple-avro-checksum", "tiflow-simple-avro-lz4",
    "tiflow-simple-json", "tiflow-canal_json-ext-snappy", "ticdc-debezium-snappy", "ticdc-canal_json",
)  # fmt: skip
DAMAGED = (("tiflow-craft", 60), ("tiflow-open_protocol", 40), ("tiflow-simple-avro", 40), ("ticdc-canal_json-lz4", 5))
ROW = bytes.fromhex("01a091d8e18ebba7c51601010000010102060001020404746573746e756c6c021a03010c010c07")
RESOLVED = bytes.fromhex("019091d8e18ebba7c51603010101021a19010005")


def options(file: str) -> SinkOptions:
    given = header(file)["options"]
    names = ("encoding-format", "large-message-handle-compression", "enable-tidb-extension")
    return sink_options(header(file)["protocol"], {name: given[name] for name in names if name in given})


def maps(file: str, key: bytes | None, value: bytes | None) -> tuple[ByteMap, ...]:
    return PROTOCOLS[header(file)["protocol"]].byte_maps(key, value, options(file))


def check_filled(spans: Iterable[Span], start: int, end: int) -> None:
    """Each byte of them is in one leaf."""
    for span in spans:
        assert span.start == start < span.end, span
        if span.parts:
            assert span.value == ""
            check_filled(span.parts, span.start, span.end)
        start = span.end
    assert start == end


def leaves(spans: Iterable[Span]) -> Iterator[Span]:
    for span in spans:
        yield from leaves(span.parts) if span.parts else (span,)


@pytest.mark.parametrize("file", FILES)
def test_every_byte_of_every_message_is_read_once(file: str) -> None:
    for case in cases(file):
        for key, value in zip(case.keys, case.values, strict=True):
            found = maps(file, key, value)
            assert {each.of: each.data for each in found if each.data} == {
                of: data for of, data in (("key", key), ("value", value)) if data
            }, case.id
            for each in found:
                check_filled(each.spans, 0, len(each.data))
                assert each.error is None, case.id
                assert NOT_READ not in {span.name for span in leaves(each.spans)}, case.id


def damaged(data: bytes, randomly: random.Random) -> bytes:
    at = randomly.randrange(len(data))
    match randomly.randrange(4):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + bytes([randomly.randrange(256)]) + data[at + 1 :]
        case 2:
            return data[:at] + b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + data[at + 1 :]
        case _:
            return data + data[:at]


@pytest.mark.parametrize(("file", "each"), DAMAGED)
def test_a_damaged_message_is_shown_as_far_as_it_can_be_read(file: str, each: int) -> None:
    randomly = random.Random(file)
    refused = 0
    for case in cases(file)[:: len(cases(file)) // 30]:
        key, value = case.keys[-1], case.values[-1] or b"\0"
        for _ in range(each):
            for found in maps(file, key and damaged(key, randomly), damaged(value, randomly)):
                check_filled(found.spans, 0, len(found.data))
                unread = [span for span in leaves(found.spans) if span.name == NOT_READ]
                assert found.error is not None or not unread
                refused += found.error is not None
    assert refused >= each * 10


def test_what_the_map_of_craft_reads_the_decoder_reads() -> None:
    """A map without an error is of a message that decodes, but for what a map does not look at."""
    randomly = random.Random(7)
    values = [damaged(case.values[0] or b"\0", randomly) for case in cases("tiflow-craft") if case.values for _ in "ab"]
    batch = Decoder("craft", SinkOptions()).decode([None] * len(values), values)
    failed = {number for number, event in events_of(batch) if isinstance(event, Failure)}
    refused = {n for n, value in enumerate(values) if PROTOCOLS["craft"].byte_maps(None, value, SinkOptions())[0].error}
    assert refused <= failed
    assert len(refused) > 0.5 * len(failed)


def lines(found: ByteMap) -> list[str]:
    return [f"{found.data[s.start : s.end].hex()} {s.name}: {s.value}" for s in leaves(found.spans)]


def test_the_row_that_wire_md_dissects() -> None:
    """wire.md 1.1.6."""
    [found] = PROTOCOLS["craft"].byte_maps(None, ROW, SinkOptions())
    assert lines(found) == [
        "01 version: 1",
        "a091d8e18ebba7c516 commit_ts 0: 1624284170621946016, 2166-05-07 17:26:24.269000 UTC",
        "01 event type 0: 1 ROW",
        "01 partition 0: -1, none",
        "00 database 0: 0 test",
        "00 table 0: 0 test",
        "01 group type: 1 NEW",
        "01 number of columns: 1",
        "02 name of column 0: 1 null",
        "06 type of null: 6 null",
        "00 flags of null: 0",
        "01 length of null: -1, NULL",
        "02 number of names: 2",
        "04 length of name 0: 4",
        "04 length of name 1: 4",
        "74657374 name 0: test",
        "6e756c6c name 1: null",
        "02 number of sizes: 2",
        "1a size of the header: 13",
        "03 size of the term dictionary: 11",
        "01 number of sizes: 1",
        "0c size of body: 6",
        "01 number of sizes: 1",
        "0c size of group: 6",
        "07 length of the size tables: 7",
    ]


def test_a_watermark_of_craft_has_no_body() -> None:
    [found] = PROTOCOLS["craft"].byte_maps(None, RESOLVED, SinkOptions())
    assert [span.name for span in found.spans] == ["version", "header", "size tables", "length of the size tables"]


def test_values_of_craft_are_those_that_are_decoded() -> None:
    (case,) = (case for case in cases("tiflow-craft") if case.name == "seed.benchmark.case0")
    [found] = maps("tiflow-craft", None, case.values[0])
    values = {s.name: s.value for s in leaves(found.spans) if s.name.startswith("value of ")}
    assert values == {
        "value of varchar": "varchar0", "value of string": "string0", "value of date": "2021/01/01",
        "value of timestamp": "2021/01/01 00:00:00", "value of datetime": "2021/01/01 00:00:00",
        "value of float": "1.0", "value of long": "1000",
    }  # fmt: skip


def test_open_protocol_by_its_lengths() -> None:
    case: Case = cases("tiflow-open_protocol")[0]
    key, value = maps("tiflow-open_protocol", case.keys[0], case.values[0])
    assert [(span.name, span.value) for span in leaves(key.spans)][:2] == [
        ("version", "1"),
        ("length of the key", str(len(key.data) - 16)),
    ]
    assert [span.value for span in leaves(value.spans)][1] == value.data[8:].decode()


def test_a_compressed_text_is_shown_as_what_it_holds() -> None:
    [found] = maps("ticdc-canal_json-lz4", None, cases("ticdc-canal_json-lz4")[0].values[0])
    assert found.spans[0].value.startswith('{"id":0')
    assert found.spans[0].meaning == "text, compressed with lz4"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_message_without_bytes_has_an_empty_map(protocol: str) -> None:
    for found in PROTOCOLS[protocol].byte_maps(None, None, SinkOptions()):
        assert (found.data, found.spans) == (b"", ())
    assert recognise_one(None, None).protocol is None


def test_a_section_must_be_filled() -> None:
    def read(walk: Walk) -> None:
        with walk.section("both", 2) as part:
            part.octets("one", 1, "", bytes.hex)

    found = mapped("value", b"abc", read)
    assert str(found.error) == "trailing_bytes at byte 1: expected the end of both, 1 bytes are left"
    assert [(s.name, s.start, s.end) for s in leaves(found.spans)] == [
        ("one", 0, 1),
        (NOT_READ, 1, 2),
        (NOT_READ, 2, 3),
    ]


def test_a_section_beyond_the_end_is_truncated() -> None:
    def read(walk: Walk) -> None:
        with walk.section("both", 4):
            raise AssertionError

    assert str(mapped("value", b"abc", read).error) == "truncated at byte 0: expected 4 bytes of both, 3 are left"


def test_fields_fill_their_bytes_in_any_order() -> None:
    spans = [Span(name=name, start=start, end=end) for name, start, end in (("b", 3, 4), ("none", 2, 2), ("a", 1, 2))]
    assert [span.name for span in filled(spans, 0, 5)] == [NOT_READ, "a", NOT_READ, "b", NOT_READ]


def test_an_error_is_kept() -> None:
    def read(walk: Walk) -> None:
        raise DecodeError("bad_size", "nothing", offset=walk.at)

    assert str(mapped("key", b"a", read).error) == "bad_size at byte 0: nothing"
