"""Messages to typed events in plain Python: ``decode`` and ``MessageDecoder`` (docs/codec.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, overload

import pyarrow as pa

from ticdc_codec.batch import DecoderContext
from ticdc_codec.claim_check_storage import StoredObjects
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Event, Failure, events_of
from ticdc_codec.message import Message
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder, protocol_named

if TYPE_CHECKING:
    from typing_extensions import TypeIs

OneMessage = bytes | tuple[bytes | None, bytes | None] | Message
"""A message: its value alone (the key is null then), key and value, or ``Message``."""
MessageEvents = tuple[Event, ...]
"""The events of one message, in wire order."""

_BATCH_SIZE = 512
"""Messages that are decoded together."""


class MessageDecoder:
    """Decodes the messages of one changefeed, in one thread.

    Keeps what messages refer to or repeat, such as the schemas that Simple sends apart from its rows: use one decoder
    for all messages of a changefeed.

    ``protocol`` is the name in the changefeed's sink-uri (``-`` or ``_``). ``options`` are the sink-uri's, by their
    documented names, plus ``time-zone``, that of the TiCDC server. Claim-check objects are read from the option
    ``claim-check-storage-uri``, a folder or a URI. Raises ConfigError for an unknown name or a wrong value.

    >>> from ticdc_codec import MessageDecoder, Resolved, encode
    >>> decoder = MessageDecoder("simple", {"encoding-format": "avro"})
    >>> messages = encode([Resolved(commit_ts=7), Resolved(commit_ts=8)], "simple", {"encoding-format": "avro"})
    >>> for events in decoder.decode(messages):
    ...     print(*events)
    Resolved(commit_ts=7)
    Resolved(commit_ts=8)
    """

    def __init__(self, protocol: str, options: Mapping[str, object] | None = None) -> None:
        protocol_named(protocol)
        sink = sink_options(protocol.replace("-", "_"), options or {})
        self._decoder = Decoder(protocol, sink, DecoderContext(objects=StoredObjects(sink.claim_check_storage_uri)))

    @overload
    def decode(self, messages: OneMessage) -> MessageEvents: ...  # type: ignore[overload-overlap]  # a pair is one message
    @overload
    def decode(self, messages: Iterable[OneMessage]) -> Iterator[MessageEvents]: ...
    def decode(self, messages: OneMessage | Iterable[OneMessage]) -> MessageEvents | Iterator[MessageEvents]:
        """The events of one message (a tuple, in wire order), or an iterator of such tuples for many, in order.

        A message decodes whole or not at all. One message that is not valid raises DecodeError; among many it gives one
        ``Failure`` in its place. Many messages are read lazily, up to 512 ahead.
        """
        if is_one(messages):
            return _raise_failure(next(self._each([messages])))
        return self._each(messages)

    def table(self, messages: Iterable[OneMessage]) -> pa.Table:
        """All events as one table with the columns ``event.EVENTS``: ``message`` numbers the messages from 0, a message
        that is not valid is one row of kind ``error``, images are JSON texts."""
        return pa.Table.from_batches([self._columns([*messages])])

    def _each(self, messages: Iterable[OneMessage]) -> Iterator[MessageEvents]:
        rest = iter(messages)
        while chunk := [*islice(rest, _BATCH_SIZE)]:
            numbered = groupby(events_of(self._columns(chunk)), key=itemgetter(0))
            found = {number: tuple(event for _, event in events) for number, events in numbered}
            # Open Protocol allows a message without any event.
            yield from (found.get(number, ()) for number in range(len(chunk)))

    def _columns(self, messages: list[OneMessage]) -> pa.RecordBatch:
        pairs = [pair_of(message) for message in messages]
        return self._decoder.decode([key for key, _ in pairs], [value for _, value in pairs])


@overload
def decode(  # type: ignore[overload-overlap]  # a pair is one message
    messages: OneMessage, protocol: str, options: Mapping[str, object] | None = None
) -> MessageEvents: ...
@overload
def decode(
    messages: Iterable[OneMessage], protocol: str, options: Mapping[str, object] | None = None
) -> Iterator[MessageEvents]: ...
def decode(
    messages: OneMessage | Iterable[OneMessage], protocol: str, options: Mapping[str, object] | None = None
) -> MessageEvents | Iterator[MessageEvents]:
    """The events of one message, or of each of many: ``MessageDecoder(protocol, options).decode(messages)``.

    Raises DecodeError if the one message is not valid, ConfigError for a wrong protocol or option, TypeError for what
    is not a message.

    >>> from ticdc_codec import decode
    >>> value = bytes.fromhex("01a091d8e18ebba7c51601010000010102060001020404746573746e756c6c021a03010c010c07")
    >>> [change] = decode(value, protocol="craft")
    >>> print(change.op, change.database, change.table, change.commit_ts, change.before, change.after)
    insert test test 1624284170621946016 None {'null': None}
    >>> [events, failure] = decode([value, value[:-1]], protocol="craft")
    >>> print(failure[0].reason)
    bad_size
    """
    return MessageDecoder(protocol, options).decode(messages)


def is_one(messages: object) -> TypeIs[OneMessage]:
    """Whether this is one message: a pair of bytes (or None) is its key and value, never two messages."""
    if isinstance(messages, tuple):
        return len(messages) == 2 and all(isinstance(part, bytes | None) for part in messages)
    return isinstance(messages, bytes | Message)


def pair_of(message: object) -> tuple[bytes | None, bytes | None]:
    """Key and value of one message. Raises TypeError for anything else."""
    if not is_one(message):
        raise TypeError(f"expected a message: bytes, (key, value) or Message, found {type(message).__name__}")
    match message:
        case bytes():
            return None, message
        case Message(key=key, value=value):
            return key, value
    return message


def _raise_failure(events: MessageEvents) -> MessageEvents:
    """The events of a message. Raises the DecodeError that a Failure describes."""
    match events:
        case (Failure() as fault,):
            raise DecodeError(
                fault.reason, fault.detail, offset=fault.offset, database=fault.database, table=fault.table
            )
    return events
