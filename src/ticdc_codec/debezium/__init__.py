"""Debezium: one JSON object a message, with or without its schema; a row change, a DDL, or a watermark. wire.md 1.5.

    key     {"payload": {"id": 2}, "schema": {…}}
    value   {"payload": {"source": {…, "db": "d", "table": "t", …, "commit_ts": tso}, "ts_ms": ms, "transaction": null,
             "op": "u", "before": {"id": 2, "c": "a"}, "after": {"id": 2, "c": "b"}}, "schema": {…}}

One module a concern: ``envelope`` (the object), ``row`` and ``table`` (a row's images, read by a type of its table),
``part`` (rows of one op as columns), ``field`` (the schema's columns), ``form`` and ``value`` (how values of a type
stand here), ``column`` (all that is known of one), ``ddl``, ``twin`` (a defect), ``write`` and ``image`` (values that
are written, and images of them), ``decode`` and ``encode``.
"""

from __future__ import annotations

from ticdc_codec.debezium.decode import decoder
from ticdc_codec.debezium.encode import encode

__all__ = ["decoder", "encode"]
