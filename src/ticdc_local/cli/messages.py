"""Messages as commands are given them: files and standard input."""

from __future__ import annotations

import sys
from base64 import b64decode
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from ticdc_codec.errors import ConfigError

Pair = tuple[bytes | None, bytes | None]
"""Key and value."""


def opened(file: str | None) -> AbstractContextManager[BinaryIO]:
    """The file, or standard input if none is named, or ``-``. Raises ConfigError."""
    if file is None or file == "-":
        if sys.stdin is None:
            raise ConfigError("standard input is closed; name a file")
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None


def messages_in(content: bytes, key: bytes | None = None) -> Iterable[Pair]:
    """The messages of a file, by what its lines are. Raises ConfigError for a line that is unlike the first.

        {"key": base64 or null, "value": base64 or null}      as for ``decode``, one a line
        {"topic": …, "key": text, "payload": text}            as ``kcat -J`` prints them
        {"database": …}                                       values that are JSON, one a line, as ``kcat`` prints them
        anything else                                         one message's value, ``kcat -c 1 -e -f %s``

    ``key`` is that of the one message.
    """
    lines = [(number, line) for number, line in enumerate(content.split(b"\n"), start=1) if line.strip()]
    record = _object(lines[0][1]) if lines and key is None else None
    if record is None or not content.strip():
        return [(key, content)] if content else []
    if {"key", "value"} <= record.keys() and all(isinstance(record[part], str | None) for part in ("key", "value")):
        return (message_in(line, f"line {number}") for number, line in lines)
    if {"topic", "payload"} <= record.keys():
        return (_printed(line, number) for number, line in lines)
    return [(None, line) for _, line in lines]


def message_in(line: bytes, place: str) -> Pair:
    """The message of a JSON line. Raises ConfigError, which names ``place``."""
    try:
        record = orjson.loads(line)
        return _bytes(record["key"]), _bytes(record["value"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f'{place}: expected {{"key": base64 or null, "value": base64 or null}}: {error}') from None


def _printed(line: bytes, number: int) -> Pair:
    """What ``kcat -J`` printed. Raises ConfigError."""
    try:
        record = orjson.loads(line)
        key, value = record.get("key"), record["payload"]
        return key and key.encode(), value and value.encode()
    except (ValueError, KeyError, AttributeError) as error:
        raise ConfigError(f"line {number}: expected what kcat -J prints, with key and payload: {error}") from None


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text, validate=True)
