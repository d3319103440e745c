"""Every byte of a Simple message: field by field in Avro; JSON is one text."""

from __future__ import annotations

from ticdc_codec.byte_map import ByteMap, whole_maps
from ticdc_codec.options import Compression, EncodingFormat, SinkOptions
from ticdc_codec.simple.avro.schema import byte_map


def byte_maps(key: bytes | None, value: bytes | None, options: SinkOptions) -> tuple[ByteMap, ...]:
    """The map of a message's value; its key is null. A compressed value is one span."""
    bare = options.large_message_handle_compression is Compression.NONE
    if bare and options.encoding_format is EncodingFormat.AVRO:
        return (byte_map(value or b""),)
    return whole_maps(key, value, options)
