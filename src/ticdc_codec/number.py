"""Integers of variable length (Craft, wire.md 1.1.1; Avro's int and long): single ones, and arrays of them.

uvarint           7 bits a byte, least significant first, top bit set on all bytes but the last
varint            zigzag over 64 bits (0, -1, 1, -2 …), then uvarint
reversed uvarint  a uvarint's bytes backwards: read leftwards from its end
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import sub
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_codec.errors import DecodeError

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

Bools = npt.NDArray[np.bool_]

LONGEST = 10
"""Bytes of the longest uvarint; its last byte may hold one bit only."""
PAD = 24
"""Zeros after the bytes of a batch: they close a number or a word that runs over the end."""

_WORD = 8
_OCTET = np.uint64(0xFF)
_MORE = np.uint64(0x80)
"""Bit 7 of a byte: set if another byte follows."""
_MORE_OF_EIGHT = np.uint64(0x8080808080808080)
_HALVES = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
"""Masks and shifts that join eight groups of 7 bits in three steps: neighbours, pairs, fours."""


def read_uvarint(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Returns the uvarint that begins at ``start``, and the position after it; it must end before ``end``."""
    value = 0
    for at in range(start, min(end, start + LONGEST)):
        value |= (data[at] & 0x7F) << 7 * (at - start)
        if data[at] < 0x80:
            return _checked(value, start), at + 1
    raise _endless(start, end)


def read_reversed_uvarint(data: bytes) -> tuple[int, int]:
    """Returns the reversed uvarint that ends ``data``, and the position where it begins."""
    value = 0
    for size in range(1, min(len(data), LONGEST) + 1):
        byte = data[-size]
        value |= (byte & 0x7F) << 7 * (size - 1)
        if byte < 0x80:
            return _checked(value, len(data) - size), len(data) - size
    raise _endless(0, len(data))


def zigzag(number: int) -> int:
    """Returns the signed number that a varint holds as ``number``."""
    return (number >> 1) ^ -(number & 1)


def words_of(buffer: bytes | pa.Buffer) -> UInt64s:
    """Returns words[p]: the eight bytes from position p of the buffer on, whose last ``PAD`` bytes must be zeros."""
    return np.ndarray(memoryview(buffer).nbytes - _WORD + 1, np.dtype("<u8"), buffer, strides=(1,))


def uvarints_at(words: UInt64s, at: Int64s) -> tuple[UInt64s, Int64s]:
    """Returns the uvarints at these positions, and the positions after them; -1 after one of more than 64 bits."""
    numbers = words[at] & _OCTET
    after = at + 1
    longer = np.flatnonzero(numbers >= _MORE)
    if len(longer):
        numbers[longer], after[longer] = _long_uvarints(words, at[longer])
    return numbers, after


def _long_uvarints(words: UInt64s, at: Int64s) -> tuple[UInt64s, Int64s]:
    """Does what ``uvarints_at`` does for numbers of any size: eight bytes in one step, then a ninth and a tenth."""
    # last: bit 7 of each number's last byte among its first eight, 0 if the number is longer.
    eight_bytes = words[at]
    last = ~eight_bytes & _MORE_OF_EIGHT
    last &= -last.astype(np.int64).view(np.uint64)
    numbers = eight_bytes & (2 * last - 1) & ~_MORE_OF_EIGHT
    for low, high, shift in _HALVES:
        numbers = (numbers & low) | ((numbers & high) >> shift)
    # A power of two has its exponent in a float64's bits 52 and up.
    after = at + ((last.astype(np.float64).view(np.int64) >> 52) - 1022 >> 3)
    rest = np.flatnonzero(last == 0)
    if len(rest):
        ninth, tenth = (words[at[rest] + position] & _OCTET for position in (8, 9))
        numbers[rest] |= (ninth & ~_MORE) << np.uint64(56) | np.where(ninth < _MORE, 0, tenth) << np.uint64(63)
        after[rest] = np.where(ninth < _MORE, at[rest] + 9, np.where(tenth < 2, at[rest] + 10, -1))
    return numbers, after


def uvarints_of(octets: bytes) -> tuple[UInt64s, Int64s, Bools]:
    """Returns all uvarints of ``octets``, the position of each, and which of them have more than 64 bits."""
    # ends, starts: of each number. One that has more than 64 bits ends elsewhere than its first ten bytes say.
    ends = np.flatnonzero(np.frombuffer(octets, np.uint8) < _MORE)
    starts = np.append(0, ends + 1)[:-1]
    numbers, after = uvarints_at(words_of(octets + bytes(PAD)), starts)
    return numbers, starts, after != ends + 1


def zigzags(numbers: UInt64s) -> Int64s:
    """Applies ``zigzag`` to each number."""
    return (numbers >> np.uint64(1)).astype(np.int64) ^ -(numbers & np.uint64(1)).astype(np.int64)


def zigzagged(numbers: Int64s) -> UInt64s:
    """Inverse of ``zigzags``."""
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def octets_of(numbers: UInt64s) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """Returns the bytes of the numbers as uvarints one after another, and the number of bytes of each."""
    width = max(1, -(-int(numbers.max(initial=0)).bit_length() // 7))
    octets = np.empty((len(numbers), width), np.uint8)
    used = np.empty((len(numbers), width), np.bool_)
    sizes = np.zeros(len(numbers), np.int64)
    here = np.ones(len(numbers), np.bool_)
    # octets[n, p], used[n, p]: byte p of number n, and whether it has one. By columns: numpy is slow on short rows.
    for position in range(width):
        rest = numbers >> np.uint64(7 * position)
        used[:, position] = here
        sizes += here
        here = rest >= _MORE
        octets[:, position] = (rest & ~_MORE).astype(np.uint8) | here.view(np.uint8) << 7
    return octets[used], sizes


Whole = TypeVar("Whole", UInt64s, Int64s)


def running(numbers: Whole, first: Int64s, owner: Int64s) -> Whole:
    """Returns running sums modulo 2^64 within each owner's numbers.

    ``first`` has the index of each owner's first number, ``owner`` the owner of each number.
    """
    # sums[n]: of all numbers up to n. Taken from it is what stands before the owner's first number.
    sums = np.cumsum(numbers, dtype=numbers.dtype)
    return sums - (sums[first] - numbers[first])[owner]


def uvarint(number: int) -> bytes:
    """Returns the bytes of 0 <= ``number`` < 2^64."""
    if number < _SMALL_LIMIT:
        return _SMALL[number]
    digits = b""
    while number >= _SMALL_LIMIT:
        digits += _PAIRS[number & _SMALL_LIMIT - 1]
        number >>= 14
    return digits + _SMALL[number]


def varint(number: int) -> bytes:
    """Returns the bytes of ``number`` modulo 2^64, as differences wrap in Go."""
    doubled = number << 1 if number >= 0 else ~(number << 1)
    if doubled < _SMALL_LIMIT:
        return _SMALL[doubled]
    if doubled > _MASK:
        return varint((number + _HALF & _MASK) - _HALF)
    return uvarint(doubled)


def delta_varints(numbers: Sequence[int]) -> bytes:
    """Returns a delta varint chunk: the first number, then each one's difference from the one before."""
    if numbers.count(numbers[0]) == len(numbers):
        return varint(numbers[0]) + bytes(len(numbers) - 1)
    return b"".join(map(varint, [numbers[0], *map(sub, numbers[1:], numbers)]))


def delta_uvarints(numbers: Sequence[int]) -> bytes:
    """Returns a delta uvarint chunk: like ``delta_varints``, but unsigned; differences wrap modulo 2^64."""
    return b"".join(map(uvarint, [numbers[0], *[b - a & _MASK for a, b in pairwise(numbers)]]))


_HALF = 1 << 63
_MASK = (1 << 64) - 1
_SMALL_LIMIT = 1 << 14
_PAIRS = tuple(bytes([number & 0x7F | 0x80, number >> 7 | 0x80]) for number in range(_SMALL_LIMIT))
"""Two bytes with more to follow."""
_SMALL = tuple(
    bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80, number >> 7]) for number in range(_SMALL_LIMIT)
)


def _checked(value: int, start: int) -> int:
    if value >> 64:
        raise _too_large(start)
    return value


def _too_large(start: int) -> DecodeError:
    return DecodeError("out_of_range", "expected a number of at most 64 bits in 10 bytes", offset=start)


def _endless(start: int, end: int) -> DecodeError:
    if end - start >= LONGEST:
        return _too_large(start)
    return DecodeError("truncated", f"a number runs over the end of its part at byte {end}", offset=max(start, 0))
