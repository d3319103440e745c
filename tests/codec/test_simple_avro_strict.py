"""Simple whose bytes are anything: an error or a well-typed event, in bounded time and memory."""

from __future__ import annotations

import pytest
from simple_messages import (
    COMMIT_TS,
    VERSION,
    decode,
    failure,
    row,
)

from ticdc_lakehouse.codec.number import varint
from ticdc_lakehouse.event import Failure

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


def test_blocks() -> None:
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
    twice, keyless = PREFIX + b"\x02\x04" + one + one + rest, PREFIX + b"\x02\x02" + two + rest
    bad, worse, good = decode(twice, keyless, plain, encoding_format="avro")
    assert isinstance(bad, Failure)
    assert isinstance(worse, Failure)
    assert (bad.reason, worse.reason, good) == ("duplicate_name", "wrong_columns", expected)
