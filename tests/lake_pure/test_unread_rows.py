"""Rows that TiDB does not give, as a worker of Spark asks for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.gold.source_rows import _reader
from ticdc_lakehouse.schema.script import tables_from_sql


def test_a_tidb_that_does_not_answer_is_asked_once() -> None:
    """Each question may end by a time-out only; and the table is blocked before the first row."""
    asked = []

    def snapshot_at(tso: int) -> Any:
        def connect() -> None:
            asked.append(tso)
            raise ConfigError("no answer")

        return SimpleNamespace(connect=connect)

    (table,) = tables_from_sql("USE d; CREATE TABLE t (id INT PRIMARY KEY, v TEXT);", source="test")
    cut = [{"key": f"{key}", "commit_ts": ts, "image": f'{{"id":"{key}"}}'} for ts, key in ((7, 1), (7, 2), (8, 3))]
    batches = [pa.RecordBatch.from_pylist(some) for some in (cut[:1], cut[1:])]
    rows = [row for batch in _reader(snapshot_at, table)(batches) for row in batch.to_pylist()]
    assert asked == [7]
    assert [(row["commit_ts"], row["image"], row["error"]) for row in rows] == [
        (7, None, "no answer"),
        (7, None, "no answer"),
        (8, None, "no answer"),
    ]
