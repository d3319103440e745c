"""Typed events to messages in plain Python: ``encode`` (docs/codec.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Event
from ticdc_codec.message import Message
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import protocol_named


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
    written = protocol_named(protocol)
    sink = sink_options(protocol.replace("-", "_"), options or {})
    try:
        return written.encode([*events], sink)
    except ValueError as error:
        raise ConfigError(f"{protocol}: {error}") from error
