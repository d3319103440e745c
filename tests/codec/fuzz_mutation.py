"""Recorded messages with something broken at random: bytes, numbers, names, members, lengths, halves of two messages.

A mutation is made of one ``random.Random`` alone, so equal seeds give equal messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random

from wires import Pair, Wire

from ticdc_codec.errors import DecodeError
from ticdc_codec.number import uvarint, varint
from ticdc_codec.open_protocol.frame import framed, texts_of

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\w+|[^\w"]')
_INSIDE = re.compile(rb'(?<=")[^"\\]+(?=")')
_TOKENS = [
    b"null", b"true", b"false", b"{}", b"[]", b'""', b'"x"', b'"\\ud800"', b'"\\u0000"', b'"\xff"', b"[{}]", b"{", b"}",
    b"[", b"]", b",", b":", b"0", b"-1", b"-0", b"1.5", b"1e999", b"NaN", b"127", b"256", b"65536", b"2147483648",
    b"-2147483649", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615", b"18446744073709551616",
    b"-9223372036854775809", b"0.0000001", b'"0000-00-00"', b'"-838:59:59"', b'"2024-13-01"', b'"id"', b'"1"',
    b'"0001-01-01 00:00:00"', b'"9999-12-31 23:59:59"', b"1e99999999999999999999", b'"decimal(%s,2)"' % (b"9" * 5000),
]  # fmt: skip
_TEXTS = [b"", b"-", b"0", b"00", b"-0", b"1e5", b".", b"9" * 30, b"null", b" 1", b"1\\n", b"\\u00e9", b"+1", b"0x1"]
_NUMBERS = [0, 1, -1, -2, 7, 127, 128, 255, 1 << 14, 1 << 31, -(1 << 31) - 1, (1 << 63) - 1, -(1 << 63)]
_LENGTHS = [0, 1, 7, 1 << 31, (1 << 32) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]

Change = Callable[[bytes, bytes, Random], bytes]
"""Makes another message of one, and may take from a second one."""


def mutated(wire: Wire, messages: Sequence[Pair], rng: Random) -> Pair:
    """One of the messages, changed."""
    key, value = messages[rng.randrange(len(messages))]
    other_key, other = messages[rng.randrange(len(messages))]
    if key is None or rng.random() < 0.85:
        return key, _changed(wire, value or b"", other or b"", rng)
    return _changed(wire, key, other_key or b"", rng, key=True), value


def _changed(wire: Wire, value: bytes, other: bytes, rng: Random, *, key: bool = False) -> bytes:
    for _ in range(1 if rng.random() < 0.6 else rng.randint(2, 4)):
        if wire.framed and rng.random() < 0.9:
            value = _in_frame(value, other, rng, 8 * key)
        else:
            value = rng.choice(_JSON_CHANGES if wire.json else _BINARY_CHANGES)(value, other, rng)
    return value


def _in_frame(value: bytes, other: bytes, rng: Random, start: int) -> bytes:
    """One text of a frame changed, or a frame's length, or texts of both."""
    try:
        texts, others = texts_of(value, start), texts_of(other, start)
    except DecodeError:
        return _flip(value, other, rng)
    at = rng.randrange(max(1, len(texts)))
    match rng.randrange(8):
        case 0:
            texts = texts[:at] + others + texts[at:]
        case 1:
            place = rng.randrange(max(1, len(value)))
            return value[:place] + rng.choice(_LENGTHS).to_bytes(8) + value[place + 8 :]
        case _ if texts:
            texts[at] = rng.choice(_JSON_CHANGES)(texts[at], others[0] if others else b"", rng)
    return value[:start] + framed(texts)


def _span(value: bytes, rng: Random, longest: int = 40) -> tuple[int, int]:
    start = rng.randrange(len(value) + 1)
    return start, min(len(value), start + rng.randint(1, longest))


def _flip(value: bytes, _: bytes, rng: Random) -> bytes:
    at = rng.randrange(max(1, len(value)))
    octet = value[at] ^ (1 << rng.randrange(8)) if value and rng.random() < 0.6 else rng.randrange(256)
    return value[:at] + bytes([octet]) + value[at + 1 :]


def _cut(value: bytes, _: bytes, rng: Random) -> bytes:
    start, end = _span(value, rng)
    return value[:start] if rng.random() < 0.2 else value[:start] + value[end:]


def _insert(value: bytes, _: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(value) + 1)
    return value[:at] + rng.randbytes(rng.randint(1, 6)) + value[at:]


def _repeat(value: bytes, _: bytes, rng: Random) -> bytes:
    start, end = _span(value, rng)
    return value[:end] + value[start:]


def _splice(value: bytes, other: bytes, rng: Random) -> bytes:
    return value[: rng.randrange(len(value) + 1)] + other[rng.randrange(len(other) + 1) :]


def _transplant(value: bytes, other: bytes, rng: Random) -> bytes:
    """A span of the other message in the place of as many bytes."""
    start, end = _span(other, rng)
    at = rng.randrange(len(value) + 1)
    return value[:at] + other[start:end] + value[at + end - start :]


@lru_cache(maxsize=4096)
def _tokens(value: bytes) -> list[bytes]:
    return _TOKEN.findall(value)


def _token(value: bytes, other: bytes, rng: Random) -> bytes:
    """One token is another's, or none that fits."""
    tokens, at = _picked(value, rng)
    tokens[at] = rng.choice(_TOKENS) if rng.random() < 0.5 else rng.choice(_tokens(other) or _TOKENS)
    return b"".join(tokens)


def _text(value: bytes, _: bytes, rng: Random) -> bytes:
    """A part of one string is another."""
    tokens, at = _picked(value, rng)
    inside = _INSIDE.search(tokens[at])
    if inside is None:
        return _flip(value, b"", rng)
    start, end = _span(inside[0], rng, 4)
    middle = rng.choice(_TEXTS) if rng.random() < 0.7 else rng.randbytes(1)
    tokens[at] = b'"' + inside[0][:start] + middle + inside[0][end:] + b'"'
    return b"".join(tokens)


def _tokens_moved(value: bytes, _: bytes, rng: Random) -> bytes:
    """A run of tokens is left out, or stands twice, or elsewhere too."""
    tokens, at = _picked(value, rng)
    run = tokens[at : at + rng.randint(1, 8)]
    if rng.random() < 0.4:
        return b"".join(tokens[:at] + tokens[at + len(run) :])
    to = rng.randrange(len(tokens)) if rng.random() < 0.5 else at
    return b"".join(tokens[:to] + run + tokens[to:])


def _picked(value: bytes, rng: Random) -> tuple[list[bytes], int]:
    tokens = [*_tokens(value)] or [b""]
    return tokens, rng.randrange(len(tokens))


def _number(value: bytes, _: bytes, rng: Random) -> bytes:
    """A number of any size in the place of a byte or in front of it."""
    at = rng.randrange(len(value) + 1)
    number = rng.choice(_NUMBERS)
    octets = varint(number) if rng.random() < 0.6 else uvarint(number & ((1 << 64) - 1))
    return value[:at] + octets + value[at + rng.randrange(len(octets) + 2) :]


_BYTE_CHANGES: list[Change] = [_flip, _cut, _insert, _repeat, _splice, _transplant]
_JSON_CHANGES: list[Change] = [
    *_BYTE_CHANGES,
    _token,
    _token,
    _token,
    _text,
    _text,
    _text,
    _tokens_moved,
    _tokens_moved,
]
_BINARY_CHANGES: list[Change] = [*_BYTE_CHANGES, _flip, _flip, _flip, _transplant, _number, _number]
