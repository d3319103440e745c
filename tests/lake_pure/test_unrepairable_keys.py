"""Rows whose keys in gold may be those of two rows in TiDB are compared, and never repaired."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest
from pyspark.sql import Row

from ticdc_lakehouse.ops.verify.chunk import Chunk
from ticdc_lakehouse.ops.verify.compared_table import ComparedTable, compared_table
from ticdc_lakehouse.ops.verify.comparison import Comparison, DifferentRows
from ticdc_lakehouse.ops.verify.differences import Differences, differences
from ticdc_lakehouse.ops.verify.verification import _unrepairable
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.tidb.columns import SourceColumn

Text = tuple[str, ...]
COLUMNS = "v int, ts timestamp, u timestamp, d int"
ZONE = "America/New_York"
TWICE = "2024-11-03 05:30:00"
"""01:30 in New York, as is an hour later."""


def compared(key: str) -> ComparedTable:
    (defined,) = tables_from_sql(f"USE d; CREATE TABLE t ({COLUMNS}, PRIMARY KEY ({key}));", source="test")
    columns = [SourceColumn(name=column.name, type=column.type) for column in defined.sent]
    return compared_table(defined, "lake.t", columns)[0]


def found(table: ComparedTable, *, lake: tuple[Text, ...], source: tuple[Text, ...], limit: int = 9) -> Differences:
    """The differences of rows, each with a hash of its key of its own unless the keys are one."""
    hashes = {table.key_of(row): f"h{table.key_of(row)}" for row in (*lake, *source)}
    rows = [Row(key_hash=hashes[table.key_of(row)], v=row[0], ts=row[1], u=row[2], d=row[3], key="[]") for row in lake]
    spark = SimpleNamespace(sql=lambda _: SimpleNamespace(collect=lambda: rows))
    tidb = SimpleNamespace(query=lambda _: [(hashes[table.key_of(row)], *row) for row in source])
    different = DifferentRows(chunk=Chunk(), lake=Counter({(key, "row"): 1 for key in hashes.values()}))
    return differences(spark, tidb, table, Comparison(different=(different,)), limit)  # type: ignore[arg-type]


def reason(found: Differences, table: ComparedTable, zone: str = ZONE) -> str | None:
    return _unrepairable(GoldConfig(feed="f", time_zone=zone), table, found, ())


@pytest.mark.parametrize(
    ("lake", "source"),
    [
        ((), (("1", TWICE, "2024-01-01 00:00:00", "7"),)),
        ((("1", "2024-11-03 06:30:00.500", "2024-01-01 00:00:00", "7"),), ()),
        ((("1", TWICE, "2024-01-01 00:00:00", "7"),), (("2", TWICE, "2024-01-01 00:00:00", "7"),)),
        (
            (("1", "2024-11-03 06:30:00", "2024-01-01 00:00:00", "7"),),
            (("1", TWICE, "2024-01-01 00:00:00", "7"), ("1", "2023-01-01 00:00:00", "2024-01-01 00:00:00", "7")),
        ),
    ],
    ids=["missing", "extra", "changed", "read as the other instant"],
)
def test_a_row_whose_key_may_be_that_of_two_rows_is_not_repaired(
    lake: tuple[Text, ...], source: tuple[Text, ...]
) -> None:
    table = compared("d, ts")
    said = reason(found(table, lake=lake, source=source), table)
    assert said is not None
    assert " UTC, whose time in America/New_York, where clocks were set back, is that of another instant" in said
    assert "a feed with time_zone: UTC" in said
    beyond = found(table, lake=lake, source=source, limit=0)
    assert beyond.first == ()
    assert reason(beyond, table) == said, "also if it is not among the differences that are recorded"
    assert reason(found(table, lake=lake, source=source), table, "UTC") is None


@pytest.mark.parametrize("time", ["2024-11-03 04:59:59", "2024-11-03 07:00:00", "0000-00-00 00:00:00"])
def test_a_row_whose_time_is_one_instant_is_repaired(time: str) -> None:
    table = compared("d, ts")
    assert reason(found(table, lake=(), source=(("1", time, TWICE, "7"),)), table) is None


def test_a_time_beside_the_key_is_in_no_way() -> None:
    table = compared("d")
    assert reason(found(table, lake=(), source=(("1", TWICE, TWICE, "7"),)), table) is None
