"""TiCDC's Kafka messages: bytes to events and back, in five protocols.

    from ticdc_codec import decode, encode, inspect

Knows no Spark, no YAML and no SQL parser, and can be used alone: docs/codec.md shows it.
"""

from __future__ import annotations

from ticdc_codec.errors import ConfigError, DecodeError
from ticdc_codec.event import EVENTS, Bootstrap, Column, Ddl, Event, Failure, Op, Resolved, RowChange
from ticdc_codec.inspection import Inspection, inspect
from ticdc_codec.message import ClaimCheck, Message, StoredObject
from ticdc_codec.protocols import MessageDecoder, decode, encode

__all__ = [
    "EVENTS",
    "Bootstrap",
    "ClaimCheck",
    "Column",
    "ConfigError",
    "Ddl",
    "DecodeError",
    "Event",
    "Failure",
    "Inspection",
    "Message",
    "MessageDecoder",
    "Op",
    "Resolved",
    "RowChange",
    "StoredObject",
    "decode",
    "encode",
    "inspect",
]
