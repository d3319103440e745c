"""JSON texts beside the parser: faults, duplicate names, and what repeats from text to text.

Texts that mostly repeat are written by a template, ``template``, and read by their prefix, ``PrefixPattern``. Texts of
a batch are made of Arrow columns in a few calls: ``escaped`` makes contents of strings, ``joined`` whole objects.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw

from ticdc_codec.errors import DecodeError

_BYTE = re.compile(r"\(byte (\d+)\)")
_ENCODE = msgspec.json.Encoder().encode

_QUOTE = b'"'
_REPLACED = re.compile(rb"(?<!\\)(?:\\\\)*\\ufffd")
_FIRST_OF_REPLACEMENT = "\ufffd".encode()[:1]
"""A byte that few texts have, found faster than all three."""

# Parts of msgspec's messages, and the reasons of a DecodeError that they mean.
_REASONS = (
    ("truncated", "truncated"),
    ("trailing characters", "trailing_bytes"),
    ("out of range", "out_of_range"),
    ("Expected `int` >=", "out_of_range"),
    ("Expected `int` <=", "out_of_range"),
    ("base64", "bad_value"),
    ("missing required field", "missing_member"),
    ("unknown field", "unknown_member"),
    ("Expected", "wrong_type"),
    ("Invalid", "bad_value"),
)

Unreadable = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not the expected JSON."""


def unreadable(error: BaseException, value: bytes) -> DecodeError:
    """Returns the DecodeError that one of ``Unreadable``, raised for ``value``, means."""
    if isinstance(error, UnicodeDecodeError):
        # The error has only the string: all of it stands in the value if it has no escapes.
        begin = value.find(error.object)
        offset = None if begin < 0 else begin + error.start
        return DecodeError("bad_json", f"expected UTF-8, found byte 0x{error.object[error.start]:02x}", offset=offset)
    text = str(error)
    byte = _BYTE.search(text)
    reason = next((ours for theirs, ours in _REASONS if theirs in text), "bad_json")
    return DecodeError(reason, text, offset=int(byte[1]) if byte else None)


def names_of(value: bytes) -> Any:
    """Reads ``value`` as plain JSON values. Raises DecodeError ``duplicate_name`` if an object in it has one name
    twice, and ``bad_json`` for broken UTF-8 in members that msgspec skips."""
    try:
        return json.loads(value.decode(), object_pairs_hook=unique, parse_int=str)
    except Unreadable as error:
        raise unreadable(error, value) from None


def text_of(members: Any) -> bytes:
    """Returns plain JSON values as text. Raises DecodeError ``bad_json`` for one half of a pair of surrogates."""
    try:
        return _ENCODE(members)
    except UnicodeEncodeError:
        raise DecodeError("bad_json", "expected UTF-8, found one half of a pair of surrogates") from None


def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Makes an object of its members. Raises DecodeError ``duplicate_name``."""
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise DecodeError("duplicate_name", f"expected each name once in an object, found {twice!r} again")
    return members


def check_replaced_bytes(texts: Iterable[bytes], *read: bytes) -> None:
    """Raises DecodeError ``bad_utf8`` if a text has U+FFFD as an escape: Go's encoders write it for a byte that is no
    UTF-8, such as a column of latin1 may have, and the character itself as it is (wire.md 8.15).

    ``read`` is what was read of the texts, which has the character then.
    """
    for text in texts if any(_FIRST_OF_REPLACEMENT in each for each in read) else ():
        if b"\\" in text and _REPLACED.search(text):
            raise DecodeError("bad_utf8", "expected UTF-8, found \\ufffd, which TiCDC writes in place of other bytes")


def number_as_written(digits: str) -> Raw:
    """Returns a number as it is written: ``parse_int`` and ``parse_float`` of json.loads for values that are written
    again."""
    return Raw(digits.encode())


def quotes_of(value: bytes) -> int:
    """Counts the quotes in ``value`` (valid JSON) that open or close a string: two for each name and each text, and no
    more."""
    return _without_escapes(value).count(_QUOTE)


def quotes_of_all(values: Iterable[bytes]) -> int:
    """Returns the sum of ``quotes_of`` of many texts."""
    octets = np.frombuffer(_without_escapes(b" ".join(values)), np.uint8)
    return int(np.count_nonzero(octets == ord(_QUOTE)))


def _without_escapes(value: bytes) -> bytes:
    if b"\\" in value:
        # A run of backslashes begins with an escape, so pairs from its left are escaped backslashes.
        return value.replace(b"\\\\", b"").replace(b'\\"', b"")
    return value


# No JSON text contains what marks a gap.
NUMBER = Raw(b"\0d")
"""A gap for a whole number."""
JSON = Raw(b"\0b")
"""A gap for JSON that is written already, as bytes."""


def template(members: Mapping[str, object]) -> bytes:
    """Returns an object with gaps among its members and theirs, to be filled in their order."""
    return msgspec.json.encode(members).replace(b"%", b"%%").replace(b"\0", b"%")


# A member's name, or any other string: then no number follows. 18 digits are less than 63 bits.
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*+)"(?::([1-9][0-9]{1,17})(?=[,}]))?+', re.DOTALL)
_ZERO = ord("0")
_NINE = 9
_ANY = 0xFF


class PrefixPattern:
    """The beginning of a JSON text in which some numbers vary, but not their number of digits."""

    __slots__ = ("_firsts", "_most", "_number", "_octets", "_powers", "text")

    def __init__(self, text: bytes, number: bytes, others: Collection[bytes], letter: int | None = None) -> None:
        """Takes the members whose numbers vary, which have one of these names; ``number`` is the one to read. The byte
        at offset ``letter`` varies too, if there is one. Raises ValueError if the number is missing, or its text has
        other than 2 to 18 digits.
        """
        # spans: begin and end of each number that may vary, with its member's name; strings without one have (-1, -1).
        spans = {match.span(2): match[1] for match in _STRING.finditer(text) if match[1] in {number, *others}}
        spans.pop((-1, -1), None)
        self.text = text
        """As in the message that has shown it."""
        # A message fits if byte p differs from octets[p] by no more than most[p]: 0 where it must be the same.
        self._octets = np.frombuffer(text, np.uint8).copy()
        self._most = np.zeros(len(text), np.uint8)
        for start, end in spans:
            self._octets[start:end], self._most[start:end] = _ZERO, _NINE
        if letter is not None:
            self._most[letter] = _ANY
        self._firsts = [start for start, _ in spans]
        start, end = next((span for span, name in spans.items() if name == number), (0, 0))
        if start == end:
            raise ValueError(f"expected a number of 2 to 18 digits in {number.decode()}")
        self._number = slice(start, end)
        self._powers = 10 ** np.arange(end - start - 1, -1, -1, dtype=np.int64)

    def numbers(self, values: Sequence[bytes]) -> list[int] | None:
        """Returns the number in each message; None if one of them begins otherwise."""
        size = len(self.text)
        octets = np.frombuffer(b"".join([value[:size] for value in values]), np.uint8)
        if len(octets) != size * len(values):
            return None
        # differences[m, p]: how byte p of message m differs. No number begins with a zero, as in JSON.
        # What differs from a zero by no more than its four low bits, up to 9, is a digit.
        differences = octets.reshape(-1, size) ^ self._octets
        if (differences > self._most).any() or not differences[:, self._firsts].all():
            return None
        numbers: list[int] = (differences[:, self._number] @ self._powers).tolist()
        return numbers


def joined(opening: str, members: Iterable[tuple[str, pa.Array]], closing: str) -> pa.Array:
    """Returns JSON texts, one per row: each member's label, then its value between quotes or ``null``."""
    pieces: list[Any] = []
    text = opening
    for label, column in members:
        if column.null_count:
            quoted = pc.binary_join_element_wise('"', column, '"', "").fill_null("null")
            pieces += [text + label, quoted]
            text = ","
        else:
            pieces += [text + label + '"', column]
            text = '",'
    return pc.binary_join_element_wise(*pieces, text.removesuffix(",") + closing, "")


def escaped(texts: pa.Array) -> pa.Array:
    """Returns the texts as contents of JSON strings, escaped as orjson does it. ``texts`` is no slice of an array."""
    # octets: all texts one after another; starts[n]: where text n begins in them. special: the octets to be escaped;
    # numbers: the texts that have any.
    _, offsets, data = texts.buffers()
    octets = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    blocks = range(0, len(octets), _BLOCK)
    special = np.concatenate([_specials(octets[at : at + _BLOCK]) + at for at in blocks] or [_NO_OFFSETS])
    if not len(special):
        return texts
    starts = np.frombuffer(offsets, np.int32)[: len(texts) + 1]
    numbers = np.unique(np.searchsorted(starts, special, side="right") - 1)
    mask = np.zeros(len(texts), bool)
    mask[numbers] = True
    escaped = [orjson.dumps(text)[1:-1] for text in texts.take(pa.array(numbers)).to_pylist()]
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(escaped, pa.string()))


_BLOCK = 1 << 16
"""Bytes that are searched together: the arrays for this number stay in a processor's cache."""
_NO_OFFSETS = np.zeros(0, np.int64)


def _specials(octets: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Returns the offsets of control characters, quotes and backslashes."""
    return np.flatnonzero((octets < 0x20) | (octets == 0x22) | (octets == 0x5C))


def slices_of(buffer: pa.Buffer, starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> pa.Array:
    """Cuts a buffer into large binaries, without a copy: slice n is item 2 n, the bytes behind it are item 2 n + 1.

    ``starts`` and ``starts + sizes`` ascend, as Arrow's offsets do.
    """
    # offsets: begin and end of slice 0, of slice 1, …
    offsets = np.stack((starts, starts + sizes), axis=1).ravel()
    buffers = [None, pa.py_buffer(offsets), buffer]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def not_utf8(texts: pa.Array) -> npt.NDArray[np.bool_]:
    """Marks the binaries that are not UTF-8."""
    return np.array([text != text.decode(errors="replace").encode() for text in texts.to_pylist()])


def digits_of(slices: pa.Array) -> pa.Array:
    """Returns large binaries as lower-case hexadecimal digits."""
    _, offsets, data = slices.buffers()
    starts = np.frombuffer(offsets, np.int64)[: len(slices) + 1]
    digits = data.to_pybytes().hex().encode() if data is not None else b""
    buffers = [None, pa.py_buffer(2 * starts), pa.py_buffer(digits)]
    return pa.Array.from_buffers(pa.large_string(), len(slices), buffers).cast(pa.string())
