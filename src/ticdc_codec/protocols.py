"""The table of TiCDC's Kafka protocols, and messages to events and back by a protocol's name (docs/codec.md).

Adding a protocol is one package and one line in ``PROTOCOLS`` (docs/protocols/adding.md). Decoders and encoders are
functions of bytes and events: no Spark, no clock. Only ``MessageDecoder`` reads files: claim-check objects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, overload

import pyarrow as pa

from ticdc_codec import canal_json, craft, debezium, open_protocol, simple
from ticdc_codec.batch import NO_CONTEXT, DecodeBatch, DecoderContext, numbered_from
from ticdc_codec.byte_map import ByteMap, whole_maps
from ticdc_codec.claim_check_storage import StoredObjects
from ticdc_codec.errors import SCHEMA_MISSING, ConfigError, DecodeError
from ticdc_codec.event import EVENTS, Event, Failure, events_of
from ticdc_codec.message import Message
from ticdc_codec.options import SinkOptions, sink_options
from ticdc_codec.traits import ProtocolTraits

if TYPE_CHECKING:
    from typing_extensions import TypeIs


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """One protocol's two directions."""

    decoder: Callable[[SinkOptions, DecoderContext], DecodeBatch]
    """Makes a decoder of batches from options and context. A decoder caches what repeats and serves one thread."""
    encode: Callable[[Sequence[Event], SinkOptions], list[Message]]
    """Events to messages that TiCDC's own decoder accepts, in order. Objects of a ``ClaimCheck`` are stored first."""
    byte_maps: Callable[[bytes | None, bytes | None, SinkOptions], tuple[ByteMap, ...]] = whole_maps
    """The meaning of each byte of a message (key, value), for people; never raises."""
    traits: ProtocolTraits = field(default_factory=ProtocolTraits)
    """How its rows differ from those of most protocols."""


PROTOCOLS: Mapping[str, Protocol] = MappingProxyType(
    {
        "craft": Protocol(decoder=craft.decoder, encode=craft.encode, byte_maps=craft.byte_maps),
        "canal_json": Protocol(decoder=canal_json.decoder, encode=canal_json.encode),
        "debezium": Protocol(
            decoder=debezium.decoder,
            encode=debezium.encode,
            traits=ProtocolTraits(
                noncanonical_key_digits=True, names_elements=True, sends_instants=True, names_primary_keys=False
            ),
        ),
        "open_protocol": Protocol(
            decoder=open_protocol.decoder,
            encode=open_protocol.encode,
            byte_maps=open_protocol.byte_maps,
            traits=ProtocolTraits(flags_may_be_stale=True),
        ),
        "simple": Protocol(
            decoder=simple.decoder,
            encode=simple.encode,
            byte_maps=simple.byte_maps,
            traits=ProtocolTraits(external_schemas=True, sends_instants=True),
        ),
    }
)


def spelling(protocol: str) -> str:
    """Returns a protocol's name as TiCDC's documentation and a sink-uri spell it: ``canal-json``, ``open-protocol``."""
    return protocol.replace("_", "-")


SPELLINGS = ", ".join(map(spelling, PROTOCOLS))
"""The names of all protocols, for messages."""


def protocol_named(name: str) -> Protocol:
    """Returns the protocol with this sink-uri name; ``-`` and ``_`` are the same. Raises ConfigError for any other
    name."""
    protocol = PROTOCOLS.get(name.replace("-", "_"))
    if protocol is None:
        raise ConfigError(f"protocol: expected one of {SPELLINGS}, found {name!r}")
    return protocol


class Decoder:
    """Decodes batches of messages of one feed; caches what repeats from batch to batch."""

    def __init__(self, protocol: str, options: SinkOptions, context: DecoderContext = NO_CONTEXT) -> None:
        self._decode = protocol_named(protocol).decoder(options, context)

    def decode(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> pa.RecordBatch:
        """Returns the messages' events as EVENTS columns, in order; a message that is not valid is one row of kind
        ``error``."""
        return self._decode(keys, values)


Pair = tuple[bytes | None, bytes | None]
"""Key and value of a message."""
OneMessage = bytes | Pair | Message
"""A message: only its value (the key is null then), key and value, or ``Message``."""
MessageEvents = tuple[Event, ...]
"""The events of one message, in wire order."""

_BATCH_SIZE = 512
"""Messages that ``MessageDecoder.decode`` decodes together."""
_BATCH_WITH_OBJECTS = 16
"""Messages decoded together where each may name a claim-check object, which is larger than a message may be."""
_BATCH_BYTES = 8 << 20
"""Bytes of messages that are decoded together, of which the last one may exceed them: Arrow takes less than 2 GiB of
text in a column, each row repeats its columns' names and types, and compressed messages grow."""
_PART_BYTES = 64 << 20
"""Like `_BATCH_BYTES`, for protocols with external schemas: a row may arrive before its schema."""


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
        has_late_schemas = protocol_named(protocol).traits.external_schemas
        sink = sink_options(protocol.replace("-", "_"), options or {})
        self._together = _BATCH_SIZE if sink.claim_check_storage_uri is None else _BATCH_WITH_OBJECTS
        self._bytes_together = _PART_BYTES if has_late_schemas else _BATCH_BYTES
        self._decoder = Decoder(protocol, sink, DecoderContext(objects=StoredObjects(sink.claim_check_storage_uri)))

    @overload
    def decode(self, messages: OneMessage) -> MessageEvents: ...  # type: ignore[overload-overlap]  # a pair is one message
    @overload
    def decode(self, messages: Iterable[OneMessage]) -> Iterator[MessageEvents]: ...
    def decode(self, messages: OneMessage | Iterable[OneMessage]) -> MessageEvents | Iterator[MessageEvents]:
        """Decodes one message into its events (a tuple, in wire order), or many into an iterator of such tuples, in
        order.

        A message decodes whole or not at all. One message that is not valid raises DecodeError; among many it becomes
        one ``Failure`` in its place. Many messages are read lazily, up to 512 or 8 MiB ahead (Simple: 64 MiB). Where a
        row of Simple comes before its schema, messages are read until the schema comes, up to 64 MiB.
        """
        if _is_one(messages):
            return _raise_failure(next(self._each([messages])))
        return self._each(messages)

    def table(self, messages: Iterable[OneMessage]) -> pa.Table:
        """Returns all events as one table with the columns ``event.EVENTS``: ``message`` numbers the messages from 0, a
        message that is not valid is one row of kind ``error``, images are JSON texts. A row of Simple may come before
        its schema, within 64 MiB."""
        count, batches = 0, []
        for chunk in self._chunks(messages, sys.maxsize):
            batches.append(numbered_from(count, self._columns(chunk)))
            count += len(chunk)
        return pa.Table.from_batches(batches, EVENTS)

    def _each(self, messages: Iterable[OneMessage]) -> Iterator[MessageEvents]:
        held: list[MessageEvents] = []
        waiting: dict[int, Pair] = {}  # by their places in `held`
        size = since = 0
        for chunk in self._chunks(messages, self._together):
            events = self._events(chunk)
            since = since + len(chunk) if waiting else 0
            waiting |= {len(held) + n: chunk[n] for n, found in enumerate(events) if _waits(found)}
            held += events
            size += _size(chunk)
            is_full = size >= _PART_BYTES
            # After as many further ones as wait: each is decoded a few times, however long its schema takes to come.
            if waiting and (is_full or since >= len(waiting)):
                waiting, since = self._decode_again(held, waiting), 0
            if is_full or not waiting:
                yield from held
                held, waiting, size = [], {}, 0
        self._decode_again(held, waiting)
        yield from held

    def _decode_again(self, held: list[MessageEvents], waiting: Mapping[int, Pair]) -> dict[int, Pair]:
        """Decodes messages again that waited for their schema, and puts their events in place. Returns those that still
        wait."""
        places = [*waiting]
        for some in (places[at : at + self._together] for at in range(0, len(places), self._together)):
            for place, events in zip(some, self._events([waiting[place] for place in some]), strict=True):
                held[place] = events
        return {place: pair for place, pair in waiting.items() if _waits(held[place])}

    def _events(self, pairs: list[Pair]) -> list[MessageEvents]:
        """Returns the events of each message."""
        numbered = groupby(events_of(self._columns(pairs)), key=itemgetter(0))
        events_of_message = {number: tuple(event for _, event in events) for number, events in numbered}
        # Open Protocol allows a message without any event.
        return [events_of_message.get(number, ()) for number in range(len(pairs))]

    def _chunks(self, messages: Iterable[OneMessage], most: int) -> Iterator[list[Pair]]:
        """Yields keys and values of messages that are decoded together. Raises TypeError for what is not a message."""
        chunk: list[Pair] = []
        size = 0
        for key, value in map(pair_of, messages):
            chunk.append((key, value))
            size += len(key or b"") + len(value or b"")
            if len(chunk) == most or size >= self._bytes_together:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def _columns(self, chunk: list[Pair]) -> pa.RecordBatch:
        return self._decoder.decode([key for key, _ in chunk], [value for _, value in chunk])


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
    """Returns the events of one message, or of each of many: ``MessageDecoder(protocol, options).decode(messages)``.

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


def _is_one(messages: object) -> TypeIs[OneMessage]:
    """True if this is one message: a pair of bytes (or None) is its key and value, never two messages."""
    if isinstance(messages, tuple):
        return len(messages) == 2 and all(isinstance(part, bytes | None) for part in messages)
    return isinstance(messages, bytes | Message)


def pair_of(message: object) -> tuple[bytes | None, bytes | None]:
    """Returns key and value of one message. Raises TypeError for anything else."""
    if not _is_one(message):
        raise TypeError(f"expected a message: bytes, (key, value) or Message, found {type(message).__name__}")
    match message:
        case bytes():
            return None, message
        case Message(key=key, value=value):
            return key, value
        case _:
            return message


def _size(pairs: Iterable[Pair]) -> int:
    return sum(len(key or b"") + len(value or b"") for key, value in pairs)


def _waits(events: MessageEvents) -> bool:
    """True for the events of a message whose schema has not come."""
    match events:
        case (Failure(reason=reason),):
            return reason == SCHEMA_MISSING
        case _:
            return False


def _raise_failure(events: MessageEvents) -> MessageEvents:
    """Returns the events of a message. Raises the DecodeError that a Failure describes."""
    match events:
        case (Failure() as fault,):
            raise DecodeError(
                fault.reason, fault.detail, offset=fault.offset, database=fault.database, table=fault.table
            )
        case _:
            return events


def encode(events: Iterable[Event], protocol: str, options: Mapping[str, object] | None = None) -> list[Message]:
    """Returns the events as Kafka messages that TiCDC's own decoder accepts, in order.

    ``protocol`` and ``options`` are as ``MessageDecoder`` takes them. Craft and Open Protocol put up to
    ``max-batch-size`` rows into a message. Simple sends the schema of a row that has no ``schema_version`` in a message
    before it. The objects of a ``ClaimCheck`` message are to be stored before the message is sent.

    Raises ConfigError for a wrong protocol or option, and for an event that the protocol cannot carry.

    >>> from ticdc_codec import Column, Op, RowChange, decode, encode
    >>> row = RowChange(
    ...     op=Op.INSERT, database="shop", table="orders", commit_ts=470613127470252033, commit_ms=1795246610528,
    ...     before=None, after={"id": "1", "note": None},
    ...     columns=(Column(name="id", type="bigint", key=True), Column(name="note", type="varchar")),
    ... )
    >>> [message] = encode([row], "open-protocol")
    >>> message.value
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00...'
    >>> [decoded] = decode(message, "open-protocol")
    >>> decoded.after == row.after
    True
    """
    codec = protocol_named(protocol)
    sink = sink_options(protocol.replace("-", "_"), options or {})
    try:
        return codec.encode([*events], sink)
    except LookupError as error:
        raise ConfigError(f"{protocol}: an image is missing or has other columns than its row: {error!r}") from error
    except (ValueError, TypeError, OverflowError, DecodeError) as error:
        raise ConfigError(f"{protocol}: {error}") from error
