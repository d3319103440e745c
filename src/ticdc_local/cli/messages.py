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
from ticdc_codec.protocols import Pair

_SHOWN = 40
_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", type(None): "null"}


def opened(file: str | None) -> AbstractContextManager[BinaryIO]:
    """Opens the file, or standard input if none is named, or ``-``. Raises ConfigError."""
    if file is None or file == "-":
        if sys.stdin is None:
            raise ConfigError("standard input is closed; name a file")
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None


def messages_in(content: bytes, key: bytes | None) -> Iterable[Pair]:
    """Returns the messages of a file, by what its lines are. Raises ConfigError for a line that is unlike the first.

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
    """Returns the message of a JSON line. Raises ConfigError, which names ``place``."""
    expected = f'{place}: expected {{"key": base64 or null, "value": base64 or null}}'
    record = _record(line, expected)
    return _bytes(record, "key", expected), _bytes(record, "value", expected)


def _printed(line: bytes, number: int) -> Pair:
    """Reads what ``kcat -J`` printed. Raises ConfigError."""
    expected = f"line {number}: expected what kcat -J prints, with key and payload"
    record = {"key": None, **_record(line, expected)}
    key, value = _text(record, "key", expected), _text(record, "payload", expected)
    return None if key is None else key.encode(), None if value is None else value.encode()


def _record(line: bytes, expected: str) -> dict[str, Any]:
    """Returns the object of a JSON line. Raises ConfigError, which begins with ``expected``."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{expected}; found no JSON: {error}") from None
    if not isinstance(record, dict):
        raise ConfigError(f"{expected}; found {_kind(record)}")
    return record


def _text(record: dict[str, Any], name: str, expected: str) -> str | None:
    if name not in record:
        raise ConfigError(f'{expected}; found no "{name}"')
    text = record[name]
    if not isinstance(text, str | None):
        raise ConfigError(f'{expected}; found {_kind(text)} as "{name}"')
    return text


def _bytes(record: dict[str, Any], name: str, expected: str) -> bytes | None:
    text = _text(record, name, expected)
    if text is None:
        return None
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise ConfigError(f'{expected}; found "{name}" that is no base64: {text[:_SHOWN]!r}') from None


def _kind(value: object) -> str:
    """Returns what a JSON value is called."""
    return _KINDS.get(type(value), "a number")


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None
