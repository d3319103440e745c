"""What rows that begin alike have in common, and how they begin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Op
from ticdc_codec.json_text import names_of
from ticdc_codec.message_prefix import Head
from ticdc_codec.simple.json.table import Table

_COMMIT_TS = b',"commitTs":'
_TO_VERSION = len(',"commitTs":,"buildTs":,"schemaVersion":') + 18 + 13
"""Bytes from there to the schema's version: a TSO has 18 digits since 2014, a time in milliseconds 13 since 2001."""
_AFTER_VERSION = _TO_VERSION + 18
_IN_HEAD = ["version", "database", "table", "tableID", "type", "commitTs", "buildTs", "schemaVersion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What rows that begin alike have in common."""

    table: Table
    op: Op
    table_id: int


def begin_of(value: bytes) -> bytes:
    """The bytes that identify a row's table, type and schema version in both writers; no more than a hint."""
    at = value.find(_COMMIT_TS)
    return value[:at] + value[at + _TO_VERSION : at + _AFTER_VERSION]


def by_begin(values: Mapping[int, bytes]) -> dict[bytes, list[int]]:
    """The numbers of the messages by ``begin_of``."""
    alike: dict[bytes, list[int]] = defaultdict(list)
    for number, value in values.items():
        alike[begin_of(value)].append(number)
    return alike


def head_of(value: bytes) -> Head | None:
    """What both writers begin a row with, a value that has been read. None if another one has."""
    at = value.find(_COMMIT_TS)
    text = value[: at + _AFTER_VERSION + 1]
    try:
        if text.endswith(b",") and [*names_of(text[:-1] + b"}")] == _IN_HEAD:
            return Head(text, b"commitTs", (b"buildTs",))
    except (DecodeError, ValueError):
        pass
    return None
