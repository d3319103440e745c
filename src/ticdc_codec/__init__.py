"""TiCDC's Kafka messages: bytes to events and back, in five protocols.

    from ticdc_codec import MessageDecoder, decode, inspect

Knows no Spark, no YAML and no SQL parser, and can be used alone: docs/codec.md shows it.
"""

from __future__ import annotations

from ticdc_codec.decoding import MessageDecoder, decode
from ticdc_codec.inspection import inspect

__all__ = ["MessageDecoder", "decode", "inspect"]
