"""Canal-JSON: one JSON object a message; a row change, a DDL, or a watermark. wire.md 1.4.

    {"id": 0, "database": "d", "table": "t", "pkNames": ["id"], "isDdl": false, "type": "UPDATE", "es": ms, "ts": ms,
     "sql": "", "sqlType": {"id": 4, "c": 12}, "mysqlType": {"c": "varchar", "id": "int"},
     "old": [{"id": "1", "c": "a"}], "data": [{"id": "1", "c": "b"}], "_tidb": {"commitTs": tso}}

``decode`` specifies the rows for ``json_rows``; ``envelope`` is the object and its faults, ``table`` how a table's rows
are read, and the texts that differ from those of ``event``. ``encode`` writes messages.
"""

from __future__ import annotations

from ticdc_codec.canal_json.decode import decoder
from ticdc_codec.canal_json.encode import encode

__all__ = ["decoder", "encode"]
