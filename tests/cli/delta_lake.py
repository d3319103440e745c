"""A lake's Delta tables written by delta-rs: what commands that start no Spark read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from ticdc_lakehouse.gold.state_tables import FORMAT

TIME = pa.timestamp("us", "UTC")
SCHEMAS = {
    "messages": {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "timestamp": TIME}
    | {"key": pa.binary(), "value": pa.binary(), "ingest_time": TIME, "batch": pa.int64()},
    "offsets": {"batch": pa.int64(), "query": pa.string(), "topic": pa.string(), "partition": pa.int32()}
    | {"start_offset": pa.int64(), "end_offset": pa.int64(), "messages": pa.int64(), "listing": pa.int64()}
    | {"ingest_time": TIME},
    "events": {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "index": pa.int32()}
    | {"timestamp": TIME, "batch": pa.int64(), "replayed_at": TIME, "kind": pa.string(), "commit_ts": pa.int64()}
    | {"commit_time": TIME, "database": pa.string(), "table": pa.string(), "query": pa.string()}
    | {"reason": pa.string(), "detail": pa.string(), "error_offset": pa.int64()},
    "windows": {"feed": pa.string(), "number": pa.int64(), "run": pa.string(), "base": pa.int64(), "tso": pa.int64()}
    | {
        "time": TIME,
        "mode": pa.string(),
        "time_zone": pa.string(),
        "from_tso": pa.int64(),
        "batch": pa.int64(),
        "published_at": TIME,
    }
    | {"row_changes": pa.int64(), "replays_seen": TIME, "format": pa.int32()},
    "table_states": {"feed": pa.string(), "number": pa.int64(), "run": pa.string(), "database": pa.string()}
    | {"table": pa.string(), "dropped_at": pa.int64(), "removed": pa.bool_(), "name": pa.string()}
    | {"data": pa.string(), "version": pa.int64(), "applied_tso": pa.int64(), "ddls": pa.list_(pa.string())}
    | {"blocked_at": pa.int64(), "block_reason": pa.string(), "stop": pa.string(), "defined_in": pa.int64()}
    | {"defined_by": pa.string()},
    "definitions": {"feed": pa.string(), "number": pa.int64(), "run": pa.string(), "place": pa.int32()}
    | {"database": pa.string(), "table": pa.string(), "commit_ts": pa.int64(), "source": pa.string()}
    | {"name": pa.string(), "data": pa.string(), "definition": pa.string(), "named_at": pa.int64()},
    "quarantine_actions": {"feed": pa.string(), "topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
    | {"action": pa.string(), "note": pa.string(), "acted_at": TIME},
    "retention": {"feed": pa.string(), "layer": pa.string(), "first_batch": pa.int64(), "tso": pa.int64()}
    | {"held_by": pa.string(), "kept_at": TIME},
    "topics": {"feed": pa.string(), "topic": pa.string(), "database": pa.string(), "table": pa.string()}
    | {"number": pa.int64()},
}
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def write(folder: Path, kind: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Append rows to the table in a folder; columns that a row does not give are NULL, but for the format."""
    columns = SCHEMAS[kind]
    table = pa.table(
        {name: pa.array([{"format": FORMAT, **row}.get(name) for row in rows], kind) for name, kind in columns.items()}
    )
    write_deltalake(str(folder), table, mode="append")
