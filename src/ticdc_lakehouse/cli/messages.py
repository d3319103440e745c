"""Messages as commands are given them: files and standard input."""

from __future__ import annotations

import sys
from base64 import b64decode
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

import orjson

from ticdc_lakehouse.errors import ConfigError

Pair = tuple[bytes | None, bytes | None]
"""Key and value."""


def opened(file: str | None) -> AbstractContextManager[BinaryIO]:
    """The file, or standard input if none is named. Raises ConfigError."""
    if file is None:
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None


def message_in(line: bytes, place: str) -> Pair:
    """The message of a JSON line. Raises ConfigError, which names ``place``."""
    try:
        record = orjson.loads(line)
        return _bytes(record["key"]), _bytes(record["value"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f'{place}: expected {{"key": base64 or null, "value": base64 or null}}: {error}') from None


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text, validate=True)
