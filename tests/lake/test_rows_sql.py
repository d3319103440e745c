"""Rows that the driver writes into a query come back as they were given."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import SparkSession

from ticdc_lakehouse.sql.text import rows_sql

TEXTS = (
    None,
    "",
    "it's",
    'a "quoted" one',
    "back\\slash \\n",
    "two\nlines\r",
    "${spark.master} $1",
    "\x00\x1f",
    "żółć 😀",
    None,
)
AT = datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=UTC)


def test_rows_come_back_as_they_were_given(spark: SparkSession) -> None:
    rows = [{"text": text, "number": 2**63 - 1, "many": [1, -1], "at": AT} for text in TEXTS]
    found = spark.sql(rows_sql(rows, "text: STRING, number: BIGINT, many: ARRAY<BIGINT>, at: TIMESTAMP"))
    shown = found.selectExpr("text", "number", "many", "unix_micros(at) AS at").collect()
    assert [row["text"] for row in shown] == [*TEXTS]
    micros = 1_709_251_199_123_456
    assert {(row["number"], *row["many"], row["at"]) for row in shown} == {(2**63 - 1, 1, -1, micros)}


def test_no_rows_are_a_query_too(spark: SparkSession) -> None:
    assert spark.sql(rows_sql([], "number: BIGINT")).dtypes == [("number", "bigint")]
    assert spark.sql(rows_sql([], "number: BIGINT")).collect() == []
