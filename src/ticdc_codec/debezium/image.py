"""Rows' images as JSON objects, those of a table a column at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import repeat
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from ticdc_codec.debezium.write import never_null, writer
from ticdc_codec.event import Column
from ticdc_codec.json_text import is_odd, object_type
from ticdc_codec.mysql_type import parse_type
from ticdc_codec.same_layout import Alike, with_nulls

_ENCODE_LINES = msgspec.json.Encoder().encode_lines


def image_texts(some: Alike, zone: ZoneInfo) -> Iterable[tuple[bytes, bytes]]:
    """Of each image the object of its handle key, and that of all its columns."""
    columns = {column.name: column for column in some.columns}
    values = {name: _values(columns[name], some.texts(name), zone) for name in some.names}
    keys = {column.name: values[column.name] for column in some.columns if column.key}
    return zip(_objects(keys, len(some.images)), _objects(values, len(some.images)), strict=True)


def _values(column: Column, texts: list[str | None], zone: ZoneInfo) -> list[Any]:
    write = writer(parse_type(column.type), column.by, zone)
    if write is None:
        return texts
    # Of other columns no event tells whether they are NOT NULL.
    return with_nulls(texts, never_null(write) if column.key else write, None)


def _objects(columns: Mapping[str, list[Any]], count: int) -> Iterable[bytes]:
    """JSON objects with a value of each column."""
    if not columns:
        return repeat(b"{}", count)
    # JSON has no line feed but between such lines.
    return _ENCODE_LINES(map(_maker(tuple(columns)), *columns.values())).splitlines()


@lru_cache(maxsize=1024)
def _maker(names: tuple[str, ...]) -> Callable[..., Any]:
    """What makes an object of its members' values."""
    if is_odd(names):
        return lambda *values: dict(zip(names, values, strict=True))
    return object_type(names, [(Any,)] * len(names))
