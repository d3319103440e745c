"""Open Protocol: keys and values of JSON texts behind their lengths, several events a message. wire.md 1.2.

    key      1, length, {"ts": tso, "scm": "d", "tbl": "t", "t": 1}, length, …         t: 1 row, 2 DDL, 3 watermark
    value       length, {"u": {"id": {"t": 3, "h": true, "f": 11, "v": 1}}, "p": {…}}, length, …

One module a concern: ``frame`` (the lengths, the key), ``table`` (a table as one row describes it, compiled), ``value``
(texts by type, both ways), ``decode`` (with the rows for ``json_rows``) and ``encode``.
"""

from __future__ import annotations

from ticdc_codec.open_protocol.decode import decoder
from ticdc_codec.open_protocol.encode import encode
from ticdc_codec.open_protocol.frame import byte_maps

__all__ = ["byte_maps", "decoder", "encode"]
