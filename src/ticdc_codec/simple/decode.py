"""Messages to events: schemas before rows, as a schema may be sent after the first rows that need it."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ticdc_codec.batch import DecodeBatch, DecoderContext, Events, in_order
from ticdc_codec.json_rows import contents_of
from ticdc_codec.options import EncodingFormat, SinkOptions
from ticdc_codec.simple.avro_rows import AvroMessages
from ticdc_codec.simple.json_decode import JsonMessages
from ticdc_codec.simple.schema import Schemas


def decoder(options: SinkOptions, context: DecoderContext) -> DecodeBatch:
    """A decoder of batches of messages, which looks up schemas and claim-check objects in ``context``.

    It keeps the schemas of its messages. A row whose schema has not come is an error ``schema_missing``; decode it
    again once it has.
    """
    return _Decoder(options, context).decode


class _Decoder:
    __slots__ = ("_compression", "_messages", "_schemas")

    def __init__(self, options: SinkOptions, context: DecoderContext) -> None:
        self._compression = options.large_message_handle_compression
        self._schemas = Schemas(context.schemas)
        read = AvroMessages if options.encoding_format is EncodingFormat.AVRO else JsonMessages
        self._messages = read(options, self._schemas, context.objects)

    def decode(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> pa.RecordBatch:
        """The messages' events. The key is null, and nothing is read from it."""
        out = Events()
        self._schemas.begin_batch()
        messages = [value for _, value in zip(keys, values, strict=True)]
        contents = contents_of(messages, self._compression, out, "a message")
        rows = self._messages.read(contents, out)
        return in_order(rows, out, [0] * len(out))
