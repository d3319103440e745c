"""Checksums of a table's rows in Spark: what must differ does, where CRC32 alone would not show it."""

from __future__ import annotations

import random
import zlib
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ticdc_codec.mysql_type import parse_type
from ticdc_lakehouse.ops.verify.compared_table import compared_table
from ticdc_lakehouse.ops.verify.row_checksum import lake_checksum_sql
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.tidb.columns import SourceColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_lakehouse.ops.verify.value_text import ComparedColumn

_IRREGULAR = "CAST(map() AS MAP<STRING, STRING>) AS _ticdc_irregular"


def compared_columns(kinds: str) -> tuple[ComparedColumn, ...]:
    """The columns of a definition, of which the first is the key."""
    (table,) = tables_from_sql(f"CREATE TABLE d.t ({kinds})", source="test")
    return compared_table(table, "t", [SourceColumn(name=c.name, type=parse_type(c.type.text)) for c in table.sent])[
        0
    ].columns


def test_values_that_two_rows_swapped_show_in_the_xor(spark: SparkSession) -> None:
    """Also where their CRC32s differ in one bit, which sums of CRC32s that depend on no key show in 39 of 40."""
    texts = [f"{random.Random(number).getrandbits(64)}" for number in range(60_000)]
    crc_of = {zlib.crc32(text.encode()): text for text in texts}
    near = [
        (text, crc_of[crc ^ (1 << bit)])
        for crc, text in crc_of.items()
        for bit in range(32)
        if crc ^ (1 << bit) in crc_of
    ]
    assert len(near) > 1
    columns = compared_columns("k INT PRIMARY KEY, v VARCHAR(20)")
    checksum = lake_checksum_sql(columns, columns[:1])
    spark.createDataFrame(near, "a STRING, b STRING").createOrReplaceTempView("near_values")
    pairs = "near_values CROSS JOIN (SELECT id AS n FROM range(2000))"
    rows = " UNION ALL ".join(
        f"SELECT n, a, b, {key} AS k, {value} AS v, {_IRREGULAR} FROM {pairs}"
        for key, value in product(("n", "n + 2000"), ("a", "b"))
    )
    # Each value beside either key, so that the four cancel out where the two rows may swap unseen.
    unseen = f"SELECT n, a, b FROM ({rows}) GROUP BY n, a, b HAVING bit_xor({checksum}) = 0"
    assert spark.sql(unseen).count() == 0


def test_values_that_changed_places_within_a_row_show(spark: SparkSession) -> None:
    columns = compared_columns("k INT PRIMARY KEY, v VARCHAR(9), w VARCHAR(9)")
    checksum = lake_checksum_sql(columns, columns[:1])
    values = (
        "(1, 'a', 'b'), (1, 'b', 'a'), (1, NULL, 'a'), (1, 'a', NULL), (1, '', 'a'), (1, NULL, NULL), (1, 'N', 'a')"
    )
    rows = spark.sql(
        f"SELECT {checksum} AS h FROM (SELECT *, {_IRREGULAR} FROM VALUES {values} AS t(k, v, w))"
    ).collect()
    assert len({row.h for row in rows}) == len(rows)


@pytest.mark.parametrize("columns", [1, 1017])
def test_no_number_of_columns_overflows(spark: SparkSession, columns: int) -> None:
    (column,) = compared_columns("k INT PRIMARY KEY")
    largest = lake_checksum_sql([column] * columns, [column] * min(columns, 16))
    largest = largest.replace(f"crc32(CAST({column.lake_text} AS BINARY))", "CAST(NULL AS BIGINT)")
    (row,) = spark.sql(f"SELECT {largest} AS h").collect()
    assert 0 < row.h < 2**63


@pytest.mark.parametrize(
    ("kind", "spark_type", "number"), [("double", "DOUBLE", np.float64), ("float", "FLOAT", np.float32)]
)
def test_numbers_have_no_exponent(spark: SparkSession, kind: str, spark_type: str, number: type[np.floating]) -> None:
    texts = (
        "0 -0.0 1 -1 12.5 0.001 0.00099 -0.0001 1e-7 -1.25e-7 9999999 9999999.5 1e7 -10000001 12345678.5 3e20 1.5e22"
    )
    values = [number(text) for text in (*texts.split(), np.finfo(number).max)]
    (_, column) = compared_columns(f"k INT PRIMARY KEY, v {kind}")
    rows = spark.createDataFrame([(at, float(value)) for at, value in enumerate(values)], "k INT, v DOUBLE")
    rows.selectExpr("k", f"CAST(v AS {spark_type}) AS v", _IRREGULAR).createOrReplaceTempView("numbers")
    found = [row.t for row in spark.sql(f"SELECT {column.lake_text} AS t FROM numbers ORDER BY k").collect()]
    assert found == ["0" if value == 0 else np.format_float_positional(value, trim="-") for value in values]
