"""Simple: one message an event, JSON or Avro; rows name the schema that they need. wire.md 1.3, specs/simple.md.

{"version": 1, "database": "d", "table": "t", "tableID": 7, "type": "UPDATE", "commitTs": tso, "buildTs": ms,
 "schemaVersion": tso, "data": {"id": "1", "c": "b"}, "old": {"id": "1", "c": "a"}}
{"version": 1, "type": "BOOTSTRAP", "commitTs": 0, "buildTs": ms, "tableSchema": {…}}
"""

from __future__ import annotations

from ticdc_codec.simple.decode import decoder
from ticdc_codec.simple.encode import encode
from ticdc_codec.simple.spans import byte_maps

__all__ = ["byte_maps", "decoder", "encode"]
