"""The table of TiCDC's Kafka protocols. Adding a protocol is one package and one line here (docs/protocols/adding.md).

Decoders and encoders are functions of bytes and events: no Spark, no files, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa

from ticdc_codec import canal_json, craft, debezium, open_protocol, simple
from ticdc_codec.batch import NO_CONTEXT, DecodeBatch, DecoderContext
from ticdc_codec.byte_map import ByteMap, whole_maps
from ticdc_codec.errors import ConfigError, DecodeError
from ticdc_codec.event import Event
from ticdc_codec.message import Message
from ticdc_codec.options import SinkOptions, sink_options


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """One protocol's two directions."""

    decoder: Callable[[SinkOptions, DecoderContext], DecodeBatch]
    """Makes a decoder of batches from options and context. A decoder caches what repeats and serves one thread."""
    encode: Callable[[Sequence[Event], SinkOptions], list[Message]]
    """Events to messages that TiCDC's own decoder accepts, in order. Objects of a ``ClaimCheck`` are stored first."""
    external_schemas: bool = False
    """True if rows do not describe their columns, but name a schema that another message carries."""
    byte_maps: Callable[[bytes | None, bytes | None, SinkOptions], tuple[ByteMap, ...]] = whole_maps
    """The meaning of each byte of a message (key, value), for people; never raises."""
    flags_may_be_stale: bool = False
    """True if columns may have flags from before a DDL, so that only the definition says what is UNSIGNED."""
    noncanonical_key_digits: bool = False
    """True if key texts of decimals and times have the wire's number of digits, not MySQL's."""


PROTOCOLS: Mapping[str, Protocol] = MappingProxyType(
    {
        "craft": Protocol(decoder=craft.decoder, encode=craft.encode, byte_maps=craft.byte_maps),
        "canal_json": Protocol(decoder=canal_json.decoder, encode=canal_json.encode),
        "debezium": Protocol(decoder=debezium.decoder, encode=debezium.encode, noncanonical_key_digits=True),
        "open_protocol": Protocol(
            decoder=open_protocol.decoder,
            encode=open_protocol.encode,
            byte_maps=open_protocol.byte_maps,
            flags_may_be_stale=True,
        ),
        "simple": Protocol(
            decoder=simple.decoder, encode=simple.encode, byte_maps=simple.byte_maps, external_schemas=True
        ),
    }
)


def protocol_named(name: str) -> Protocol:
    """The protocol with this sink-uri name; ``-`` and ``_`` are the same. Raises ConfigError for any other name."""
    found = PROTOCOLS.get(name.replace("-", "_"))
    if found is None:
        raise ConfigError(f"protocol: expected one of {', '.join(map(spelling, PROTOCOLS))}, found {name!r}")
    return found


def spelling(protocol: str) -> str:
    """A protocol's name as TiCDC's documentation and a sink-uri spell it: ``canal-json``, ``open-protocol``."""
    return protocol.replace("_", "-")


class Decoder:
    """Decodes batches of messages of one feed; caches what repeats from batch to batch."""

    def __init__(self, protocol: str, options: SinkOptions, known: DecoderContext = NO_CONTEXT) -> None:
        self._decode = protocol_named(protocol).decoder(options, known)

    def decode(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> pa.RecordBatch:
        """The messages' events as EVENTS columns, in order; a message that is not valid is one row of kind
        ``error``."""
        return self._decode(keys, values)


def encode(events: Iterable[Event], protocol: str, options: Mapping[str, object] | None = None) -> list[Message]:
    """The events as Kafka messages that TiCDC's own decoder accepts, in order.

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
