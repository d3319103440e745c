"""The lake's tables read without Spark; ``tests/lake/test_commands.py`` holds the answers against Spark's."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.sql.text import literal, quoted, time_literal
from ticdc_local.delta_reader import DeltaReader

TIME = datetime(2026, 11, 21, 7, 36, 50, 528001, UTC)
ROWS = {
    "topic": ["a.b-c", "a.b-c", "z"],
    "partition": [0, 1, 0],
    "offset": [1, 2, 3],
    "index": [0, 0, 1],
    "database": ["shop", "it's", None],
    "table": ["orders", "back\\slash", None],
    "replayed_at": [None, TIME, TIME - timedelta(microseconds=1)],
}


@pytest.fixture
def lake(tmp_path: Path) -> DeltaReader:
    columns = pa.table(ROWS).cast(
        pa.schema(
            [
                *((name, pa.string()) for name in ("topic",)),
                *((name, pa.int64()) for name in ("partition", "offset", "index")),
                *((name, pa.string()) for name in ("database", "table")),
                ("replayed_at", pa.timestamp("us", "UTC")),
            ]
        )
    )
    write_deltalake(str(tmp_path / "silver" / "Feed_events"), columns, configuration={"delta.checkpointInterval": "20"})
    return DeltaReader(tmp_path)


def test_rows_have_their_columns_names_and_times_in_utc(lake: DeltaReader) -> None:
    events = lake.table(Layer.SILVER, "Feed_events")
    found = lake.rows(f"SELECT topic, partition, offset, index, database, table, replayed_at FROM {events}")
    assert sorted(found, key=lambda row: row["offset"]) == [
        dict(zip(ROWS, values, strict=True)) for values in zip(*ROWS.values(), strict=True)
    ]
    assert lake.columns(Layer.SILVER, "Feed_events") == [*ROWS]


def test_a_table_has_its_properties(lake: DeltaReader) -> None:
    assert lake.property(Layer.SILVER, "Feed_events", "delta.checkpointInterval") == "20"
    assert lake.property(Layer.SILVER, "Feed_events", "ticdc.table") is None


def test_names_texts_and_times_are_written_as_for_spark(lake: DeltaReader) -> None:
    events = lake.table(Layer.SILVER, "Feed_events")
    assert lake.rows(f"SELECT offset FROM {events} WHERE {quoted('table')} = {literal('orders')}") == [{"offset": 1}]
    assert lake.rows(f"SELECT offset FROM {events} WHERE database = {literal('none')}") == []
    elsewhere = TIME.astimezone(timezone(timedelta(hours=-7)))
    for time in (TIME, elsewhere):
        assert lake.rows(f"SELECT offset FROM {events} WHERE replayed_at = {time_literal(time)}") == [{"offset": 2}]
        assert lake.rows(f"SELECT offset FROM {events} WHERE replayed_at < {time_literal(time)}") == [{"offset": 3}]


READ = """
import sys
from pathlib import Path
from ticdc_lakehouse.catalog import Layer
from ticdc_local.delta_reader import DeltaReader
lake = DeltaReader(Path(sys.argv[1]))
print(len(lake.rows(f"SELECT * FROM {lake.table(Layer.SILVER, 'Feed_events')}")), "pandas" in sys.modules)
"""


@pytest.mark.usefixtures("lake")
def test_reading_does_not_wait_for_pandas(tmp_path: Path) -> None:
    command = [sys.executable, "-c", READ, str(tmp_path)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "3 False\n"


def test_a_reader_keeps_a_table_as_of_its_first_query(lake: DeltaReader, tmp_path: Path) -> None:
    count = f"SELECT count(*) AS rows FROM {lake.table(Layer.SILVER, 'Feed_events')}"
    more = pa.table({"topic": ["a"]})
    write_deltalake(str(tmp_path / "silver" / "Feed_events"), more, mode="append", schema_mode="merge")
    assert lake.rows(count) == [{"rows": 3}]
    again = DeltaReader(tmp_path)
    again.table(Layer.SILVER, "Feed_events")
    assert again.rows(count) == [{"rows": 4}]


def test_a_broken_table_is_named(lake: DeltaReader, tmp_path: Path) -> None:
    assert not lake.exists(Layer.OPS, "windows")
    (tmp_path / "ops" / "windows" / "_delta_log").mkdir(parents=True)
    (tmp_path / "ops" / "windows" / "_delta_log" / f"{0:020}.json").write_text("no JSON")
    assert lake.exists(Layer.OPS, "windows")
    with pytest.raises(ConfigError, match="ops/windows: cannot be read as a Delta table: "):
        lake.table(Layer.OPS, "windows")


def test_a_deleted_file_is_an_error_of_one_line(lake: DeltaReader, tmp_path: Path) -> None:
    events = lake.table(Layer.SILVER, "Feed_events")
    for file in (tmp_path / "silver" / "Feed_events").glob("*.parquet"):
        file.unlink()
    with pytest.raises(ConfigError) as raised:
        lake.rows(f"SELECT * FROM {events}")
    assert "\n" not in str(raised.value)
