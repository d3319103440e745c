"""Events into messages: tiflow's members, columns in the order of the event. Escapes are other than TiCDC's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import orjson
from msgspec import UNSET
from msgspec.structs import replace

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column, Ddl, Event, Image, Op, Resolved, RowChange
from ticdc_codec.message import (
    OVERHEAD,
    ClaimCheck,
    Cut,
    Message,
    StoredObject,
    checked,
    compress,
    limited,
    named,
    with_handle_key_only,
)
from ticdc_codec.mysql_type import parse_type
from ticdc_codec.number_text import number_of_names
from ticdc_codec.open_protocol.frame import DDL, RESOLVED, ROW, VERSION, Key, framed, key_texts, texts_of
from ticdc_codec.open_protocol.value import format_of
from ticdc_codec.options import LargeMessage, SinkOptions
from ticdc_codec.tidb_codes import code_of, flags_of

_ENCODE = msgspec.json.Encoder().encode
_FRAME = 16
"""Bytes of an event's two lengths."""


def encode(events: Sequence[Event], options: SinkOptions) -> list[Message]:
    """Encodes row changes in batches, also those that are cut to their handle key (wire.md 1.2.6), and each DDL and
    watermark as a message of its own.

    Raises ConfigError for an option that is not supported and for an event that Open Protocol cannot carry.
    """
    writer, plans = _Writer(options), _Plans()
    whole = options.large_message_handle_option is LargeMessage.NONE

    def write(row: RowChange, cut: Cut | None = None) -> Message:
        members = _row(row, options, plans) if cut is None else _cut(row, options, plans, cut)
        return _single_message(*_texts(*members, options))

    fitting = limited(write, options)
    for event in events:
        match event:
            case RowChange() if whole:
                writer.add(*_texts(*_row(event, options, plans), options))
            case RowChange():
                writer.add_of(fitting(event))
            case Ddl():
                writer.add_single(checked(_single_message(*_texts(*_ddl(event), options)), event, options))
            case Resolved(commit_ts=watermark):
                writer.add_single(_single_message(_ENCODE(Key(ts=watermark, t=RESOLVED)), b""))
            case _:
                raise ConfigError(f"open_protocol carries rows, DDL and watermarks, found {type(event).__name__}")
    writer.flush()
    return writer.messages


def _texts(key: Key, value: str, options: SinkOptions) -> tuple[bytes, bytes]:
    """Returns an event's texts as they stand behind their lengths."""
    return _ENCODE(key), compress(value.encode(), options.large_message_handle_compression)


def _single_message(key: bytes, value: bytes) -> Message:
    """Returns the message of one event."""
    return Message(key=VERSION + framed([key]), value=framed([value]))


class _Writer:
    """Collects row changes into messages."""

    def __init__(self, options: SinkOptions) -> None:
        self.messages: list[Message] = []
        self._most = options.max_batch_size
        self._most_bytes = options.max_message_bytes - OVERHEAD
        self._keys: list[bytes] = []
        self._values: list[bytes] = []
        self._stored: tuple[StoredObject, ...] = ()
        self._size = len(VERSION)

    def add(self, key: bytes, value: bytes, stored: tuple[StoredObject, ...] = ()) -> None:
        """Adds an event to the message that is being collected, or to a new one if it has no room there."""
        size = len(key) + len(value) + _FRAME
        if len(self._keys) >= self._most or self._size + size > self._most_bytes:
            self.flush()
        self._keys.append(key)
        self._values.append(value)
        if stored:
            self._stored += stored
        self._size += size

    def add_of(self, message: Message) -> None:
        """Adds the event of a message that has one, as ``add`` does."""
        (key,), (value,) = key_texts(message.key), texts_of(message.value or b"")
        self.add(key, value, message.stored if isinstance(message, ClaimCheck) else ())

    def add_single(self, message: Message) -> None:
        """Adds a message that is not collected."""
        self.flush()
        self.messages.append(message)

    def flush(self) -> None:
        """Closes the message that is being collected."""
        if self._keys:
            key, value, stored = VERSION + framed(self._keys), framed(self._values), self._stored
            message = ClaimCheck(key=key, value=value, stored=stored) if stored else Message(key=key, value=value)
            self.messages.append(message)
        self._keys, self._values, self._stored, self._size = [], [], (), len(VERSION)


def _row(row: RowChange, options: SinkOptions, plans: _Plans) -> tuple[Key, str]:
    image = row.before if row.op is Op.DELETE else row.after
    if image is None or row.commit_ts is None:
        raise ConfigError(f"open_protocol: {row.op} of {row.database}.{row.table} without its row or its commit_ts")
    key = Key(
        ts=row.commit_ts,
        scm=row.database,
        tbl=row.table,
        ptn=UNSET if row.table_id is None else row.table_id,
        t=ROW,
        ohk=True if row.handle_only else UNSET,
    )
    plan = plans.of(row.columns)
    if row.op is Op.DELETE:
        # A row that names no key keeps its columns: TiCDC would refuse it.
        if options.delete_only_output_handle_key_columns and plan.keys:
            image = {name: image[name] for name in plan.keys}
        return key, f'{{"d":{plan.written(image)}}}'
    before = row.before if row.op is Op.UPDATE and options.output_old_value else None
    if before is None:
        return key, f'{{"u":{plan.written(image)}}}'
    if options.only_output_updated_columns:  # p may be empty, as ticdc writes it (wire.md 1.2.3)
        before = {name: text for name, text in before.items() if text != image[name]}
    return key, f'{{"u":{plan.written(image)},"p":{plan.written(before)}}}'


def _cut(row: RowChange, options: SinkOptions, plans: _Plans, cut: Cut) -> tuple[Key, str]:
    if not plans.of(row.columns).keys:
        option = options.large_message_handle_option
        raise ConfigError(f"large-message-handle-option={option}: {named(row)} is too large and names no handle key")
    key, value = _row(with_handle_key_only(row), options, plans)
    if cut.location is not None:
        key = replace(key, ohk=UNSET, ccl=cut.location)  # never both in tiflow (wire.md 1.2.2)
    return key, value


def _ddl(ddl: Ddl) -> tuple[Key, str]:
    if ddl.type is None or not ddl.type.isdecimal() or ddl.commit_ts is None:
        raise ConfigError(f"open_protocol needs a DDL's commit_ts and TiDB's number of its type, found {ddl}")
    key = Key(ts=ddl.commit_ts, scm=ddl.database or UNSET, tbl=ddl.table or UNSET, t=DDL)
    return key, _ENCODE({"q": ddl.query, "t": int(ddl.type)}).decode()


class _Plan:
    """How the images of one set of columns are written."""

    __slots__ = ("_cells", "columns", "keys")

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self.keys = [column.name for column in columns if column.key]
        self._cells = {column.name: _cell(column) for column in columns}

    def written(self, image: Image) -> str:
        """Returns the image as JSON. Raises ConfigError."""
        members = []
        for name, text in image.items():
            head, written = self._cells[name]
            try:
                members.append(f"{head}null}}" if text is None else f"{head}{written(text)}}}")
            except ValueError as error:
                raise ConfigError(f"open_protocol: column {name} cannot have this value: {error}") from None
        return f"{{{','.join(members)}}}"


class _Plans:
    """The plans of the columns met so far, by the identity of the tuple: rows of a table share one."""

    def __init__(self) -> None:
        self._by_id: dict[int, _Plan] = {}

    def of(self, columns: tuple[Column, ...]) -> _Plan:
        """Returns the plan of these columns."""
        plan = self._by_id.get(id(columns))
        if plan is None:
            # The plan holds the tuple, so that no other can have its id.
            plan = self._by_id[id(columns)] = _Plan(columns)
        return plan


def _cell(column: Column) -> tuple[str, Callable[[str], str]]:
    """Returns a cell's JSON as far as its value, and what writes the value."""
    try:
        code, flags = code_of(column.type), flags_of(column)
    except ValueError as error:
        raise ConfigError(f"open_protocol: column {column.name}: {error}") from None
    head: dict[str, Any] = {"t": code, **({"h": True} if column.key else {}), "f": flags}
    name = orjson.dumps(column.name).decode()
    named = column.by == "name"
    written = number_of_names(parse_type(column.type)) if named else format_of(code, flags)[1].written
    return f'{name}:{orjson.dumps(head).decode()[:-1]},"v":', written
