"""Messages to typed events without Spark: ``from ticdc_lakehouse import decode``. docs/decode.md shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, overload

import pyarrow as pa

from ticdc_codec.claim_check_storage import StoredObjects
from ticdc_codec.decoder_context import DecoderContext
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Event, Failure, events_of
from ticdc_codec.message import Message
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder, protocol_named

if TYPE_CHECKING:
    from typing_extensions import TypeIs

OneMessage = bytes | tuple[bytes | None, bytes | None] | Message
"""A message: its value alone (the key is null then), key and value, or ``codec.message.Message``."""
Events = tuple[Event, ...]
"""The events of one message, in wire order."""

_AT_A_TIME = 512


class MessageDecoder:
    """Decodes the messages of one changefeed. Keeps what the protocol repeats, such as the schemas that Simple sends
    apart from its rows: use one for all messages of a changefeed, from one thread.

    ``protocol`` and ``options`` are named as in the changefeed's sink-uri (``-`` or ``_`` in the protocol), plus
    ``time-zone``, the TiCDC server's. Raises ConfigError for an unknown name or a wrong value. Claim-check objects are
    read from the option ``claim-check-storage-uri``, a folder or a URI.
    """

    def __init__(self, protocol: str, options: Mapping[str, object] | None = None) -> None:
        protocol_named(protocol)
        sink = sink_options(protocol.replace("-", "_"), options or {})
        self._decoder = Decoder(protocol, sink, DecoderContext(objects=StoredObjects(sink.claim_check_storage_uri)))

    @overload
    def decode(self, messages: OneMessage) -> Events: ...  # type: ignore[overload-overlap]  # a pair is one message
    @overload
    def decode(self, messages: Iterable[OneMessage]) -> Iterator[Events]: ...
    def decode(self, messages: OneMessage | Iterable[OneMessage]) -> Events | Iterator[Events]:
        """The events of one message, or of each of many, in order. A message decodes whole or not at all.

        One message that is not valid raises DecodeError. Among many, it gives one ``Failure`` in its place, and the
        messages after it follow. Many are read as they are asked for, up to 512 ahead.
        """
        if is_one(messages):
            return _raised(next(self._each([messages])))
        return self._each(messages)

    def table(self, messages: Iterable[OneMessage]) -> pa.Table:
        """All events as columns (``event.EVENTS``): ``message`` counts the messages from 0, a message that is not
        valid is one line of kind ``error``. Images are JSON texts; ``to_pandas()`` makes a data frame of it."""
        return pa.Table.from_batches([self._columns([*messages])])

    def _each(self, messages: Iterable[OneMessage]) -> Iterator[Events]:
        rest = iter(messages)
        while chunk := [*islice(rest, _AT_A_TIME)]:
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
) -> Events: ...
@overload
def decode(
    messages: Iterable[OneMessage], protocol: str, options: Mapping[str, object] | None = None
) -> Iterator[Events]: ...
def decode(
    messages: OneMessage | Iterable[OneMessage], protocol: str, options: Mapping[str, object] | None = None
) -> Events | Iterator[Events]:
    """``MessageDecoder(protocol, options).decode(messages)``: for messages that stand alone, or for all at once."""
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


def _raised(events: Events) -> Events:
    """The events of a message; raises the DecodeError that a Failure describes."""
    match events:
        case (Failure() as fault,):
            raise DecodeError(
                fault.reason, fault.detail, offset=fault.offset, database=fault.database, table=fault.table
            )
    return events
