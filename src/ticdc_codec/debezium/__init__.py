"""Debezium: one JSON object a message, with or without its schema; a row change, a DDL, or a watermark. wire.md 1.5.

    key     {"payload": {"id": 2}, "schema": {…}}
    value   {"payload": {"source": {…, "db": "d", "table": "t", …, "commit_ts": tso}, "ts_ms": ms, "transaction": null,
             "op": "u", "before": {"id": 2, "c": "a"}, "after": {"id": 2, "c": "b"}}, "schema": {…}}

``decode`` specifies the rows for ``json_rows``; ``envelope`` is the object, its members and the columns that they
describe, ``table`` how a table's images are read, ``value`` how values of a type are written here. ``encode`` writes
messages and their schemas, with the images of ``write``.
"""

from __future__ import annotations

from ticdc_codec.debezium.decode import decoder
from ticdc_codec.debezium.encode import encode

__all__ = ["decoder", "encode"]
