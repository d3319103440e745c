"""Simple whose bytes are anything: an error or a well-typed event, in bounded time and memory."""

from __future__ import annotations

import pytest
from simple_messages import (
    AVRO_VALID,
    COLUMNS,
    COMMIT_TS,
    VERSION,
    decode,
    failure,
    row,
)
from vectors import cases

from ticdc_codec.batch import DecoderContext
from ticdc_codec.event import Column, Failure
from ticdc_codec.number import varint
from ticdc_codec.simple.avro_images import Entries

HOSTILE = {
    "name of 2^31": varint(2**31 - 1), "name of 2^63": varint(2**63 - 1), "negative size": varint(-1),
    "no end": b"\xff" * 9, "65 bits": b"\xff" * 9 + b"\x02", "endless": b"\xff" * 20,
}  # fmt: skip
PREFIX = bytes.fromhex("16060602") + b"\x02d\x02t\x0e\x00" + varint(COMMIT_TS) + b"\x02" + varint(VERSION) + b"\0\0\0"


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("place", [PREFIX[:4], PREFIX + b"\x02", PREFIX + b"\x02\x02", PREFIX + b"\x02\x02\x02s\x08",
                                   b"\x16\x04\x04\x02\x00", b"\x16\x02\x02\x02\x02\x02d\x02t\x02\x02"])  # fmt: skip
def test_sizes_that_no_message_has(name: str, place: bytes) -> None:
    assert failure(place + HOSTILE[name], encoding_format="avro").reason in ("truncated", "out_of_range")


BLOCK_TOO_LONG = PREFIX + b"\x02" + varint(-1) + varint(6) + b"\x04id\x02\x02" + b"\0\0"


@pytest.mark.parametrize(
    ("value", "reason", "offset"),
    [
        (b"\x16\x00\x00\x02\x02", "truncated", 5),
        (b"\x16\x00\x00\x02\x02\x02\x02", "trailing_bytes", 6),
        (b"\x16\x00\x02\x02\x02\x02", "truncated", 6),
        (b"\x16\x00\x00\x04\x02\x02", "unknown_version", 3),
        (b"\x16\x08", "wrong_type", 1),
        (b"\x14", "wrong_type", 0),
        (b"\x16\x06\x06\x02\x02\xff\x02t", "bad_utf8", 5),
        (PREFIX + b"\x04", "wrong_type", len(PREFIX)),
        (PREFIX + b"\x02\0\0\0", "trailing_bytes", len(PREFIX) + 3),
        (BLOCK_TOO_LONG, "wrong_type", len(PREFIX) + 3),
    ],
)
def test_a_fault_is_named_with_its_position(value: bytes, reason: str, offset: int) -> None:
    """fastavro accepts some of these messages, and its errors have no position."""
    found = failure(value, encoding_format="avro")
    assert (found.reason, found.offset) == (reason, offset)


def test_map_may_come_in_several_blocks() -> None:
    """Several blocks, and counts below zero with the size of the block."""
    rest = b"\0\0"
    one, two = b"\x04id\x02\x02", b"\x02s\x08\x02x"
    plain = PREFIX + b"\x02\x04" + one + two + rest
    expected = row(plain, encoding_format="avro")
    assert expected.after == {"id": "1", "s": "x"}
    sized = PREFIX + b"\x02" + varint(-1) + varint(len(one)) + one + varint(-1) + varint(len(two)) + two + rest
    assert row(PREFIX + b"\x02\x02" + two + b"\x02" + one + rest, encoding_format="avro") == expected
    assert row(sized, encoding_format="avro") == expected
    wrong = PREFIX + b"\x02" + varint(-1) + varint(len(one) + 1) + one + rest
    assert failure(wrong, encoding_format="avro").reason == "wrong_type"
    bad, good = decode(PREFIX + b"\x02\x04" + one + one + rest, plain, encoding_format="avro")
    assert isinstance(bad, Failure)
    assert (bad.reason, good) == ("duplicate_name", expected)


def test_map_of_one_column_many_times_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry takes 0.2 ms: a message of 16 MB took a quarter of an hour."""
    passes = []
    add = Entries.add
    monkeypatch.setattr(Entries, "add", lambda *given: (passes.append(1), add(*given)))
    count = 1000
    message = PREFIX + b"\x02" + varint(count) + b"\x02s\0" * count + b"\0\0"
    assert failure(message, encoding_format="avro").reason == "duplicate_name"
    assert len(passes) == len(COLUMNS) + 1


def test_a_string_is_no_number() -> None:
    """wire.md 1.3.2; an ENUM was a string before v8.0."""
    types = {"id": "int(10) unsigned", "e": "enum('a','b')"}
    context = DecoderContext(
        schemas={("d", "t", VERSION): tuple(Column(name=name, type=of) for name, of in types.items())}
    )

    def image(entry: bytes) -> bytes:
        return PREFIX + b"\x02\x02" + entry + b"\0\0"

    assert row(image(b"\x02e\x08\x02b"), context=context, encoding_format="avro").after == {"e": "2"}
    assert row(image(b"\x04id\x02\x02"), context=context, encoding_format="avro").after == {"id": "1"}
    for text in (b"\x00", b"\x025"):
        assert failure(image(b"\x04id\x08" + text), context=context, encoding_format="avro").reason == "wrong_type"


def test_a_default_of_bits_is_no_text() -> None:
    """wire.md 1.3.1: it is the bits' bytes in a string."""
    case = next(case for case in cases("ticdc-simple-avro") if case.name == "defaults.insert.all_default")
    schema, *rows = case.values
    assert schema is not None
    default = b"\x02f\x06bit\x0cbinary\x0cbinary\x08\0\0\x02\x01\x02\0\x01\x02\x02"
    assert schema.count(default + b"\x05") == 1
    other = schema.replace(default + b"\x05", default + b"\xff")
    assert decode(other, *rows, encoding_format="avro") == decode(schema, *rows, encoding_format="avro")


def test_a_row_whose_first_numbers_are_longer_than_they_need_to_be_is_refused() -> None:
    """Avro allows a number of 22 in two bytes. A row is told by the bytes that both writers begin it with."""
    assert PREFIX[:1] == varint(11)
    assert failure(b"\x96\x00" + AVRO_VALID[0][1:], encoding_format="avro").reason == "wrong_type"


def test_a_row_of_a_table_without_columns_has_none() -> None:
    context = DecoderContext(schemas={("d", "t", VERSION): ()})
    found = failure(AVRO_VALID[0], context=context, encoding_format="avro")
    assert (found.reason, found.table) == ("wrong_columns", "t")
