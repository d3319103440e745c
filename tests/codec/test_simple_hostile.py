"""Simple whose bytes are anything: an error or a well-typed event, in bounded time and memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mutated import places, replaced
from simple_messages import (
    BOTH,
    COMMIT_TS,
    KNOWN,
    VALID,
    VERSION,
    decode,
    failure,
    row,
)

from ticdc_lakehouse.codec.known import Known
from ticdc_lakehouse.codec.number import varint
from ticdc_lakehouse.event import Failure, RowChange

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


@pytest.mark.parametrize(("value", "encoding"), BOTH)
def test_every_truncation_and_what_is_left(value: bytes, encoding: str) -> None:
    for event in decode(*[value[:size] for size in range(len(value))], value + b"\0", encoding_format=encoding):
        assert isinstance(event, Failure)


@pytest.mark.parametrize(("value", "encoding"), BOTH)
def test_any_byte_may_be_any_other(value: bytes, encoding: str) -> None:
    """Alone and together with others it is the same error or event."""
    octets = (0, 1, 2, 3, 0x0C, 0x22, 0x5B, 0x7F, 0x80, 0xFE, 0xFF)
    changed = [value[:at] + bytes([octet]) + value[at + 1 :] for at in range(len(value)) for octet in octets]
    together = decode(*changed, encoding_format=encoding, known=Known(schemas=KNOWN))
    assert len(together) == len(changed)
    for one, event in [*zip(changed, together, strict=True)][::97]:
        if not isinstance(event, RowChange | Failure):
            continue
        assert decode(one, encoding_format=encoding) == [event]


WRONG: tuple[Any, ...] = (None, 0, -1, 2**63, 2**64, 1.5, True, "", "x", "\0", [], [[]], ["id"], {}, {"id": None})


@pytest.mark.parametrize("value", VALID)
def test_any_member_may_be_anything(value: bytes) -> None:
    """An error or an event whose columns hold their types: ``decode`` validates the batch."""
    texts = [*map(json.dumps, WRONG), "[" * 2000 + "]" * 2000, "1e999", "NaN", "", '"\\ud800"']
    changed = [replaced(value, at, text) for at in places(json.loads(value)) for text in texts]
    assert len(decode(*changed)) == len(changed)
