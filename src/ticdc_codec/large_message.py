"""Rows whose message is larger than ``max-message-bytes``, by ``large-message-handle-option`` (wire.md 1.2.6, 1.3.6,
1.4.3).

    none             sent as they are: whether Kafka takes them is not asked
    handle-key-only  sent with the columns of their handle key alone
    claim-check      the same, and where the whole message lies: an object that goes with the message
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Event, Image, RowChange
from ticdc_codec.message import ClaimCheck, Message, stored_object
from ticdc_codec.options import LargeMessage, SinkOptions

OVERHEAD = 36
"""Bytes that TiCDC counts for a Kafka record beside its key and value (tiflow C/common/message.go)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """That a row is sent with its handle key alone."""

    location: str | None = None
    """Of the claim-check object that has the whole message."""


class WriteRow(Protocol):
    """Encodes a row, whole or cut."""

    def __call__(self, row: RowChange, cut: Cut | None = None) -> Message: ...


def limited(write: WriteRow, options: SinkOptions) -> Callable[[RowChange], Message]:
    """What encodes a row as the options say for its size; with ``none`` that is ``write``.

    It raises ConfigError for a row that is too large even when it is cut, as TiCDC stops then (wire.md 1.6). Raises
    ConfigError for claim-check without a place for the objects.
    """
    option = options.large_message_handle_option
    if option is LargeMessage.CLAIM_CHECK and options.claim_check_storage_uri is None:
        raise ConfigError("claim-check-storage-uri: missing; large-message-handle-option=claim-check needs it")
    return write if option is LargeMessage.NONE else partial(_fitting, write, options)


def checked(message: Message, event: Event, options: SinkOptions) -> Message:
    """The message. Raises ConfigError if large ones are to be handled, and this one is still too large."""
    option, most = options.large_message_handle_option, options.max_message_bytes
    if option is not LargeMessage.NONE and _size(message) > most:
        raise ConfigError(
            f"max-message-bytes={most}: {named(event)} takes {_size(message)} bytes, and "
            f"large-message-handle-option={option} cannot make it smaller"
        )
    return message


def key_alone(row: RowChange) -> RowChange:
    """The row as it is sent when it is cut: its images have no columns but those of its handle key."""
    keys = {column.name for column in row.columns if column.key}
    return replace(row, before=_only(keys, row.before), after=_only(keys, row.after), handle_only=True)


def named(event: Event) -> str:
    """The event as errors name it."""
    match event:
        case RowChange(op=op, database=database, table=table, commit_ts=commit_ts):
            return f"the {op} of {database}.{table} at commit_ts {commit_ts}"
        case _:
            return repr(event)


def _only(names: set[str], image: Image | None) -> Image | None:
    return None if image is None else {name: text for name, text in image.items() if name in names}


def _fitting(write: WriteRow, options: SinkOptions, row: RowChange) -> Message:
    whole = write(row)
    if row.handle_only or _size(whole) <= options.max_message_bytes:
        return checked(whole, row, options)
    if options.large_message_handle_option is LargeMessage.HANDLE_KEY_ONLY:
        return checked(write(row, Cut()), row, options)
    stored = stored_object(whole, options)
    cut = checked(write(row, Cut(location=stored.location)), row, options)
    return ClaimCheck(key=cut.key, value=cut.value, stored=(stored,))


def _size(message: Message) -> int:
    """As TiCDC measures it, after compression."""
    return len(message.key or b"") + len(message.value or b"") + OVERHEAD
