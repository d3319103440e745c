"""Rows whose message is larger than ``max-message-bytes``, by ``large-message-handle-option`` (wire.md 1.2.6, 1.3.6,
1.4.3).

    none             sent as they are, even if Kafka may refuse them
    handle-key-only  sent with their handle key columns only
    claim-check      the same, with the location of a claim-check object that has the full message
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
    """Marks a row that is encoded with its handle key columns only, because the full message exceeds
    ``max-message-bytes``."""

    location: str | None = None
    """Location of the claim-check object that has the full message; None without one."""


class WriteRow(Protocol):
    """Encodes a row, in full or with its handle key only."""

    def __call__(self, row: RowChange, cut: Cut | None = None) -> Message: ...


def limited(write: WriteRow, options: SinkOptions) -> Callable[[RowChange], Message]:
    """A function that encodes a row and applies large-message-handle-option; with ``none`` it is ``write``.

    The function raises ConfigError for a row that is too large even with its handle key only, as TiCDC stops then
    (wire.md 1.6). Raises ConfigError for claim-check without claim-check-storage-uri.
    """
    option = options.large_message_handle_option
    if option is LargeMessage.CLAIM_CHECK and options.claim_check_storage_uri is None:
        raise ConfigError("claim-check-storage-uri: missing; large-message-handle-option=claim-check needs it")
    return write if option is LargeMessage.NONE else partial(_fitting, write, options)


def checked(message: Message, event: Event, options: SinkOptions) -> Message:
    """The message. Raises ConfigError if the options limit its size and it exceeds the limit."""
    option, most = options.large_message_handle_option, options.max_message_bytes
    if option is not LargeMessage.NONE and _size(message) > most:
        raise ConfigError(
            f"max-message-bytes={most}: {named(event)} takes {_size(message)} bytes, and "
            f"large-message-handle-option={option} cannot make it smaller"
        )
    return message


def key_alone(row: RowChange) -> RowChange:
    """The row with images that have its handle key columns only."""
    keys = {column.name for column in row.columns if column.key}
    return replace(row, before=_only(keys, row.before), after=_only(keys, row.after), handle_only=True)


def named(event: Event) -> str:
    """The event's name in error messages."""
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
    """The size that TiCDC compares with the limit, after compression."""
    return len(message.key or b"") + len(message.value or b"") + OVERHEAD
