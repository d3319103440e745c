"""What repeats in every row of a table, compiled once: how to read its images, its columns, and their texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Raw

from ticdc_codec.bounded_cache import make_room
from ticdc_codec.debezium.field import columns_of
from ticdc_codec.debezium.form import Form
from ticdc_codec.debezium.row import Image, Read, image_reader, members_of, reader
from ticdc_codec.debezium.value import Texts, texts
from ticdc_codec.decoder_context import DecoderContext
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, columns_text
from ticdc_codec.json_text import is_odd, names_of
from ticdc_codec.message_prefix import Head
from ticdc_codec.undeclared_types import Described, described

_ENCODE = msgspec.json.Encoder().encode
_ENCODE_LINES = msgspec.json.Encoder().encode_lines

BEGIN = b'{"payload":'


class Table:
    """One description of a table: its columns, its handle key, and the bytes that follow the payloads."""

    __slots__ = (
        "_columns", "_end", "_handle", "_key_end", "_keys", "_make", "_make_key", "_named", "_read_key", "layout",
        "read",
    )  # fmt: skip

    def __init__(self, description: Description, columns: Mapping[str, Described]) -> None:
        layout = tuple(each.column for each in columns.values())
        forms = {name: each.form for name, each in columns.items()}
        odd = is_odd(forms)
        self.layout = Layout(description.database, description.table, layout, columns_text(layout))
        self.read: Read = reader(forms)
        """Reads images. Raises DecodeError or one of ``Unreadable`` if they have other columns."""
        self._end, self._key_end = _end_of(description.schema), _end_of(description.key_schema)
        get: Callable[[str], Callable[[Image], Any]] = itemgetter if odd else attrgetter
        getters = {name: get(name if odd else f"c{at}") for at, name in enumerate(forms)}
        self._columns = [(getters[name], form) for name, form in forms.items()]
        _, self._make = image_reader(forms)
        self._handle = [at for at, column in enumerate(layout) if column.key]
        # A column that images never have, as it is virtual, has nothing to be compared with.
        self._keys = [name for name in description.keys or () if name in forms]
        self._named = None if description.keys is None else [getters[name] for name in self._keys]
        self._read_key, self._make_key = image_reader({name: forms[name] for name in self._keys})

    def images_of(self, values: Sequence[bytes], head: Head) -> list[bytes]:
        """What comes after the head of each row's payload, as an object; fewer if one has another schema."""
        end = self._end
        place = slice(len(head.text), -len(end))
        return [b"{" + value[place] for value in values if value.endswith(end)]

    def texts(self, images: list[Image]) -> list[Texts]:
        """Each column's texts as in ``event``. Raises DecodeError, or one of ``Unreadable``."""
        return [_texts([*map(get, images)], form) for get, form in self._columns]

    def lines(self, columns: list[Texts], count: int) -> bytes:
        """Images of so many rows as lines of JSON."""
        return _ENCODE_LINES([*map(self._make, *columns)] if columns else [{}] * count)

    def keys(self, images: list[Image]) -> list[bytes | None]:
        """The Kafka keys of rows with these images, if they have no needless escapes."""
        if self._named is None:
            return [None] * len(images)
        if not self._named:
            return [BEGIN + b"{}" + self._key_end] * len(images)
        values = [[*map(get, images)] for get in self._named]
        lines = _ENCODE_LINES([*map(self._make_key, *values)]).splitlines()
        return [BEGIN + line + self._key_end for line in lines]

    def plain_key(self, payload: bytes) -> bytes:
        """The Kafka key with this payload as ``keys`` has it. Raises DecodeError, or one of ``Unreadable``."""
        members = members_of(payload)
        compared = _ENCODE({name: members[name] for name in self._keys})
        return BEGIN + _ENCODE(self._read_key(compared)) + self._key_end

    def handle_keys(self, columns: list[Texts]) -> bytes:
        """The handle keys' texts as lines, none if there are none."""
        return _ENCODE_LINES([*self._handles(columns)]) if self._handle else b""

    def old_handle_keys(self, old: list[Texts], new: list[Texts]) -> list[bytes | None] | None:
        """The keys before updates, None for one that is the same, or for all."""
        was, now = [*self._handles(old)], [*self._handles(new)]
        if was == now:
            return None
        return [None if before == after else _ENCODE(before) for before, after in zip(was, now, strict=True)]

    def _handles(self, columns: list[Texts]) -> Iterable[tuple[str | None, ...]]:
        return zip(*(columns[at] for at in self._handle), strict=True)


def _end_of(schema: bytes) -> bytes:
    return b',"schema":' + schema + b"}" if schema else b"}"


def _texts(values: list[Any], form: Form) -> Texts:
    if form.texts is texts or not values:
        return values
    if form.read is Raw or None not in values:
        return form.texts(values)
    given = [value for value in values if value is not None]
    found = iter(form.texts(given) if given else ())
    return [None if value is None else next(found) for value in values]


_OP = b',"op":"'
_AFTER_OP = len('",')
_BEFORE_IMAGES = ["source", "ts_ms", "transaction", "op"]


def begin_of(value: bytes) -> bytes:
    """What identifies the table in both writers: ``source.db`` and ``table``; no more than a hint."""
    at = value.find(b',"db":')
    return value[at : value.find(b',"server_id":', at)]


def letter_of(head: Head) -> int:
    """Where the letter of its op is in a message with this head."""
    return len(head.text) - _AFTER_OP - 1


def head_of(value: bytes) -> Head | None:
    """What either writer puts before the images of a row, a value that has been read: all else in its payload, each
    once. None for others."""
    letter = value.find(_OP) + len(_OP)
    text = value[: letter + 1 + _AFTER_OP]
    try:
        found = names_of(text[:-1] + b"}}")
        if text.endswith(b",") and [*found] == ["payload"] and [*found["payload"]] == _BEFORE_IMAGES:
            return Head(text, b"commit_ts", (b"start_ts", b"ts_ms"), letter)
    except (DecodeError, ValueError):
        pass
    return None


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """What one message says of its table."""

    database: str
    table: str
    names: tuple[str, ...]
    """The columns of its images."""
    keys: tuple[str, ...] | None
    """The columns of the Kafka key, None if it has no key (before v8.5)."""
    schema: bytes
    """The schema of the value, byte for byte; empty with debezium-disable-schema."""
    key_schema: bytes


class Tables:
    """The tables of a feed that messages have described so far."""

    __slots__ = ("_by_begin", "_by_description", "_known", "_zone")

    def __init__(self, known: DecoderContext, zone: ZoneInfo) -> None:
        self._known = known
        self._zone = zone
        self._by_begin: dict[bytes, tuple[Table, Head]] = {}
        self._by_description: dict[Description, Table] = {}

    def known(self, begin: bytes) -> tuple[Table, Head] | None:
        """The table of the last row that began so, and its head."""
        return self._by_begin.get(begin)

    def learn(self, value: bytes, table: Table) -> None:
        """Remember by what the messages that are like this one are found."""
        head = head_of(value)
        if head is not None:
            make_room(self._by_begin)
            self._by_begin[begin_of(value)] = (table, head)

    def described(self, description: Description) -> Table:
        """The table as this row describes it. Raises DecodeError, or one of ``Unreadable``."""
        table = self._by_description.get(description)
        if table is None:
            make_room(self._by_description)
            table = self._by_description[description] = Table(description, self._columns(description))
        return table

    def _columns(self, description: Description) -> dict[str, Described]:
        fields = columns_of(description.schema) if description.schema else {}
        if fields and not fields.keys() >= {*description.names}:
            raise DecodeError("wrong_columns", f"expected columns {[*fields]}, found {[*description.names]}")
        if fields and not fields.keys() >= {*(description.keys or ())}:
            raise DecodeError("wrong_columns", f"expected key columns among {[*fields]}, found {description.keys}")
        defined = self._defined(description)
        keys = description.keys if description.keys is not None else [name for name in defined if defined[name].key]
        # ticdc takes a unique key with virtual columns too, which images do not have, and the others are not unique.
        keys = keys if {*description.names} >= {*keys} else ()
        return {
            name: described(name, fields.get(name), defined.get(name), self._zone, key=name in keys)
            for name in description.names
        }

    def _defined(self, description: Description) -> dict[str, Column]:
        columns = self._known.schemas.get((description.database, description.table, 0), ())
        return {column.name: column for column in columns}
