"""Log lines with fields: one a layer's run, window, table and override, the same as text and as JSON.

2026-11-23T03:10:00.123Z INFO ticdc_lakehouse.gold applied feed=shop from_tso=1 tso=2 row_changes=9 seconds=1.204
{"time": "2026-11-23T03:10:00.123Z", "level": "INFO", "logger": "ticdc_lakehouse.gold", "event": "applied", "feed": …}
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from ticdc_lakehouse.error_text import first_line

ROOT = "ticdc_lakehouse"
_QUIET = ("py4j", "py4j.clientserver", "pyspark")
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/+")


class Format(StrEnum):
    """How a line is written."""

    TEXT = "text"
    JSON = "json"


def log(part: str, event: str, /, **fields: object) -> None:
    """Logs one event of a part of the lakehouse: ``bronze``, ``silver``, ``gold``, ``ops``. A field that is None is
    left out."""
    _log(part, logging.INFO, event, fields)


def warn(part: str, event: str, /, **fields: object) -> None:
    """Logs what needs a person's attention."""
    _log(part, logging.WARNING, event, fields)


def _log(part: str, level: int, event: str, fields: Mapping[str, object]) -> None:
    given = {name: value for name, value in fields.items() if value is not None}
    logging.getLogger(f"{ROOT}.{part}").log(level, event, extra={"fields": given})


@contextmanager
def timed(part: str, event: str, /, **fields: object) -> Iterator[dict[str, object]]:
    """Logs an event when it is done, with its seconds and the fields that the block puts into the mapping; with its
    error, and as ``<event> failed``, if it raises."""
    started, found = time.monotonic(), dict(fields)
    try:
        yield found
    except BaseException as error:
        found |= {"error": type(error).__name__, "detail": first_line(error) if str(error) else None}
        _log(part, logging.WARNING, f"{event} failed", {**found, "seconds": _since(started)})
        raise
    _log(part, logging.INFO, event, {**found, "seconds": _since(started)})


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)


def configure(level: str = "INFO", form: Format = Format.TEXT) -> None:
    """Writes what the lakehouse logs to stderr, from this level on; libraries from WARNING on. A second call replaces
    the first."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form is Format.JSON else TextLines())
    logger = logging.getLogger(ROOT)
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)


def configure_unless_done(level: str = "INFO") -> None:
    """Configures a notebook's logs: what the lakehouse logs from this level on goes to the notebook's standard error,
    unless logging is configured already."""
    if not logging.getLogger(ROOT).handlers:
        configure(level)


class TextLines(logging.Formatter):
    """A line with ``name=value`` fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        head = f"{_time(record)} {record.levelname} {record.name} {record.getMessage()}"
        return " ".join([head, *(f"{name}={_value(value)}" for name, value in _fields(record).items())])


class JsonLines(logging.Formatter):
    """A JSON object on a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        head = {"time": _time(record), "level": record.levelname, "logger": record.name, "event": record.getMessage()}
        return json.dumps({**head, **_fields(record)}, default=str, ensure_ascii=False)


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(record, "fields", {})
    return fields


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _value(value: object) -> str:
    """Returns a value that is clearly separate from the next field."""
    text = str(value)
    return text if text and _BARE.issuperset(text) else json.dumps(text, ensure_ascii=False)
