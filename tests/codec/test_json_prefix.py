"""Prefixes of messages: the same bytes but for numbers of as many digits, and one letter."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from vectors import FOLDER, cases

from ticdc_codec.debezium.decode import pattern_of as debezium_pattern
from ticdc_codec.json_text import PrefixPattern
from ticdc_codec.simple.decode import pattern_of as simple_pattern

TEXT = rb'{"a":{"ms":"1795","n\"":12,"ts":470613139966656514},"ms":1795246658000,"x":",\"ms\":12,","op":"c",'
MS = b'"ms":1795246658000'
TS = b"470613139966656514"


def pattern(text: bytes = TEXT) -> PrefixPattern:
    return PrefixPattern(text, b"ts", (b"ms",), text.rindex(b'",') - 1)


def test_numbers_and_the_letter_of_a_prefix_may_vary() -> None:
    others = [(b"100000000000000000", b"9999999999999", b"u"), (b"999999999999999999", b"1000000000000", b"\xff")]
    values = [
        TEXT.replace(TS, ts).replace(MS, b'"ms":' + ms).replace(b'"c"', b'"' + op + b'"') + b"{}"
        for ts, ms, op in others
    ]
    assert pattern().numbers([TEXT, *values]) == [int(TS), 10**17, 10**18 - 1]


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (TS, b"47061313996665651"),
        (TS, b"047061313996665651"),
        (TS, b"47061313996665651:"),
        (TS, b"47061313996665651/"),
        (TS, b"4706131399666565\xb1\xb2"),
        (MS, b'"ms":1795246658e10'),
        (MS, b'"ms":-179524665800'),
        (b'"1795"', b'"1796"'),
        (b":12,", b":13,"),
        (rb"\"ms\":12", rb"\"ms\":13"),
        (b'"x"', b'"y"'),
        (b'"op"', b'"pp"'),
    ],
)
def test_a_prefix_that_differs_elsewhere_does_not_match(was: bytes, becomes: bytes) -> None:
    other = TEXT.replace(was, becomes)
    assert other != TEXT
    assert pattern().numbers([TEXT, other, TEXT]) is None


def test_a_message_shorter_than_the_prefix_does_not_match() -> None:
    assert pattern().numbers([TEXT, TEXT[:-1]]) is None


@pytest.mark.parametrize("ts", [b"1", b"1234567890123456789", b"12.5", b"12e3", b"-12", b'"12"', b"null"])
def test_the_number_of_a_prefix_has_as_many_digits(ts: bytes) -> None:
    with pytest.raises(ValueError, match="ts"):
        pattern(TEXT.replace(TS, ts))


@pytest.mark.parametrize(
    ("files", "pattern_of", "row"),
    [
        ("t*-debezium*", debezium_pattern, re.compile(rb'\{"payload":.*?,"op":"[cud]"')),
        ("t*-simple-json*", simple_pattern, re.compile(rb'\{"version":1,"database":')),
    ],
)
def test_the_rows_of_both_writers_show_their_prefixes(
    files: str, pattern_of: Callable[[bytes], PrefixPattern | None], row: re.Pattern[bytes]
) -> None:
    """Else each would be read alone, which is slow."""
    recorded = [path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob(f"{files}.jsonl.gz")]
    rows = [value for file in recorded for case in cases(file) for value in case.values if value and row.match(value)]
    assert len(rows) > 1000
    for value in rows:
        head = pattern_of(value)
        assert head is not None
        assert head.numbers([value]) is not None
