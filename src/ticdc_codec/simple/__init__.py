"""Simple: one message for each event, in JSON or Avro; rows name the schema that they need (wire.md 1.3).

{"version": 1, "database": "d", "table": "t", "tableID": 7, "type": "UPDATE", "commitTs": tso, "buildTs": ms,
 "schemaVersion": tso, "data": {"id": "1", "c": "b"}, "old": {"id": "1", "c": "a"}}
{"version": 1, "type": "BOOTSTRAP", "commitTs": 0, "buildTs": ms, "tableSchema": {…}}

In Avro each Kafka value is one message of the writers' schema, without header or schema id:

    16               the 12th type of the union at the top: Message
    00 00            type and payload: 00 00 Watermark, 02 02 Bootstrap, 04 04 DDL, 06 06 DML
    …                the payload's fields (wire.md 1.3.2)

fastavro writes all messages and reads those without a row (``avro_message``). The rows of a batch are read all at once,
one field of all of them after the other (``avro_rows``, ``avro_cursors``, ``avro_images``, ``avro_values``). No length
or count is believed before the bytes are there. ``avro_schema`` names the fault of a message that is not what its
schema says.
"""

from __future__ import annotations

from ticdc_codec.simple.avro_schema import byte_maps
from ticdc_codec.simple.decode import decoder
from ticdc_codec.simple.encode import encode

__all__ = ["byte_maps", "decoder", "encode"]
