r"""BINARY and VARBINARY: Go's strconv.Quote without its outer quotes (wire.md 1.2.4).

\a \b \f \n \r \t \v \\ \"    as in Go
\xNN                          a byte that is no valid UTF-8, and other ASCII control characters
\uNNNN \UNNNNNNNN             a code point that cannot be printed, none of ASCII
anything else                 itself, in UTF-8
"""

from __future__ import annotations

import re
from functools import lru_cache

from ticdc_codec.errors import DecodeError

_PLAIN = re.compile(r'[^\\"\x00-\x1f\x7f]*')
_QUOTED = re.compile(
    r'(?:[^\\"\x00-\x1f\x7f]|\\(?:[abfnrtv\\"]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}))*', re.ASCII
)
_ESCAPE = re.compile(rb"\\(?:u(.{4})|U(.{8})|.)")
_ODD = re.compile(r"[^ !#-\[\]-~]")
_LETTERS = dict(zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True))


def unquoted(text: str) -> bytes:
    """The bytes behind a quoted text. Raises DecodeError ``bad_value``."""
    if _PLAIN.fullmatch(text):
        return text.encode()
    if not _QUOTED.fullmatch(text):
        raise DecodeError("bad_value", f"expected bytes as Go quotes them, found {text[:40]!r}")
    data = text.encode()
    if b"\\u" in data or b"\\U" in data:
        data = _ESCAPE.sub(_spelled_out, data)
    # Of bytes that are no escape, this codec makes the code points of the same numbers.
    return data.decode("unicode_escape").encode("latin-1")


def _spelled_out(escape: re.Match[bytes]) -> bytes:
    r"""The UTF-8 of ``\u`` and ``\U``; other escapes as they are."""
    digits = escape[1] or escape[2]
    if digits is None:
        return escape[0]
    number = int(digits, 16)
    if number < 0x80 or number > 0x10FFFF or 0xD800 <= number < 0xE000:
        raise DecodeError("bad_value", f"expected bytes as Go quotes them, found the code point {number:#x}")
    return chr(number).encode()


def quoted(data: bytes) -> str:
    """``unquoted`` backwards."""
    return _ODD.sub(lambda character: _escaped(character[0]), data.decode(errors="surrogateescape"))


@lru_cache(maxsize=4096)
def _escaped(character: str) -> str:
    number = ord(character)
    if character in _LETTERS:
        return f"\\{_LETTERS[character]}"
    if number < 0x80 or 0xDC80 <= number < 0xDD00:  # an escaped surrogate stands for a byte
        return f"\\x{number & 0xFF:02x}"
    if character.isprintable():
        return character
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
