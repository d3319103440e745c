"""What repeats in every row of a table with the same columns, compiled once: reading, changing texts, handle keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter, itemgetter
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from ticdc_codec.event import Layout
from ticdc_codec.json_text import is_odd
from ticdc_codec.simple.checksum import check
from ticdc_codec.simple.json.row import Image, Row, odd_reader, reader
from ticdc_codec.simple.json.value import converter

_ENCODE = msgspec.json.Encoder().encode
_ENCODE_LINES = msgspec.json.Encoder().encode_lines


class Table:
    """A table's rows of one schema version and of one choice of its columns."""

    __slots__ = ("_changes", "_get", "_key", "_set", "_zone", "layout", "read")

    def __init__(self, layout: Layout, zone: ZoneInfo) -> None:
        self.layout = layout
        names = [column.name for column in layout.columns]
        odd = is_odd(names)
        self.read: Callable[[bytes], Row] = (odd_reader if odd else reader)(layout)
        """Reads a row of this table. Raises DecodeError or one of ``Unreadable`` if it is none."""
        fields = {name: name if odd else f"c{at}" for at, name in enumerate(names)}
        getter = itemgetter if odd else attrgetter
        self._set: Callable[..., None] = dict.__setitem__ if odd else setattr
        self._changes = [
            (fields[column.name], getter(fields[column.name]), *change)
            for column in layout.columns
            if (change := converter(column.type, zone))
        ]
        self._get = [getter(field) for field in fields.values()]
        self._zone = zone
        self._key = [getter(fields[column.name]) for column in layout.columns if column.key]

    def texts(self, images: list[Image]) -> tuple[bytes, bytes]:
        """Images as lines of JSON: with the wire's values, and with the texts of ``event``.

        They are changed to those of ``event``. Raises DecodeError.
        """
        theirs = _ENCODE_LINES(images)
        changed = False
        for field, get, are_ours, change in self._changes:
            values = [*map(get, images)]
            if not are_ours([value for value in values if value is not None]):
                changed = True
                for image, value in zip(images, values, strict=True):
                    if value is not None:
                        self._set(image, field, change(value))
        return theirs, _ENCODE_LINES(images) if changed else theirs

    def check_sums(self, rows: list[Row]) -> None:
        """Check rows with checksums, which have been changed to the texts of ``event``. Raises DecodeError."""
        for row in rows:
            if row.checksum is not None and not row.handle_key_only:
                data, old = (
                    None if image is None else [get(image) for get in self._get] for image in (row.data, row.old)
                )
                check(row.checksum, self.layout.columns, data, old, self._zone)

    def handle_keys(self, images: list[Image]) -> bytes:
        """The handle keys' texts as lines, none if the table has no key."""
        return _ENCODE_LINES([*self._keys(images)])

    def old_handle_keys(self, old: list[Image], new: list[Image]) -> list[bytes | None] | None:
        """The keys before updates, None for one that is the same, or for all."""
        was, now = [*self._keys(old)], [*self._keys(new)]
        if was == now:
            return None
        return [None if before == after else _ENCODE(before) for before, after in zip(was, now, strict=True)]

    def _keys(self, images: list[Image]) -> Iterable[tuple[Any, ...]]:
        return zip(*(map(get, images) for get in self._key), strict=True) if self._key else ()
