"""Values whose digits only TiDB's type shows, and values with two texts: equal tables are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mariadb
import pytest
from published_lake import published_lake
from test_verify_source import TSO, Verification

from ticdc_codec.event import Column
from ticdc_codec.mysql_type import parse_type
from ticdc_lakehouse.ops.verify import comparison
from ticdc_lakehouse.ops.verify.results import Result
from ticdc_lakehouse.ops.verify.row_differences import DifferenceKind
from ticdc_lakehouse.ops.verify.value_text import ComparedColumn
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.schema.definition import Table, table_from_wire
from ticdc_lakehouse.sql.typed_columns import typed_columns
from ticdc_lakehouse.tidb.columns import SourceColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHOUT_SERVER = pytest.mark.skipif(mariadb.missing() is not None, reason=str(mariadb.missing()))
ROWS = 30

STORED = [  # type in messages, in TiDB; stored value in Spark's SQL; its text
    ("datetime", "datetime(3)", "TIMESTAMP_NTZ'2024-01-01 00:00:00.5'", "2024-01-01 00:00:00.500"),
    ("datetime", "datetime(3)", "TIMESTAMP_NTZ'2024-01-01 00:00:00'", "2024-01-01 00:00:00.000"),
    ("datetime", "datetime(3)", "TIMESTAMP_NTZ'2024-01-01 00:00:00.1234'", "2024-01-01 00:00:00.1234"),
    ("datetime", "datetime", "TIMESTAMP_NTZ'2024-01-01 00:00:00'", "2024-01-01 00:00:00"),
    ("datetime", "datetime", "TIMESTAMP_NTZ'2024-01-01 00:00:00.5'", "2024-01-01 00:00:00.5"),
    ("timestamp", "timestamp(6)", "TIMESTAMP'2024-01-01 00:00:00.5Z'", "2024-01-01 00:00:00.500000"),
    ("timestamp", "timestamp(6)", "CAST(NULL AS TIMESTAMP)", None),
    ("datetime", "varchar(40)", "TIMESTAMP_NTZ'2024-01-01 00:00:00.5'", "2024-01-01 00:00:00.5"),
    ("time", "time(2)", "'-10:00:00.500'", "-10:00:00.50"),
    ("time", "time(2)", "'10:00:00.505'", "10:00:00.505"),
    ("decimal", "decimal(10,2)", "'1.5'", "1.50"),
    ("decimal", "decimal(10,2)", "'-7'", "-7.00"),
    ("decimal", "decimal(10,2)", "'1.505'", "1.505"),
]


def from_wire(*columns: tuple[str, str], key: str = "") -> Table:
    wire = tuple(Column(name=name, type=kind, key=name in key, by=None) for name, kind in columns)
    return table_from_wire("shop", "moments", wire)


def test_stored_values_have_the_digits_of_tidbs_type(spark: SparkSession) -> None:
    """A value with more digits than TiDB's type keeps them: it differs."""
    found = []
    for wire, kind, value, _ in STORED:
        (typed,) = typed_columns(from_wire(("v", wire)))
        column = ComparedColumn(typed=typed, source=SourceColumn(name="v", type=parse_type(kind)))
        stored = f"SELECT {value} AS v, CAST(NULL AS MAP<STRING, STRING>) AS _ticdc_irregular"
        found.append(f"SELECT {len(found)} AS place, {column.lake_text} AS text FROM ({stored})")
    texts = spark.sql(" UNION ALL ".join(found)).orderBy("place").collect()
    assert [row["text"] for row in texts] == [text for *_, text in STORED]


@WITHOUT_SERVER
def test_tables_of_which_messages_show_no_digits_are_compared_by_value(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the key, and not in it; and numbers that MariaDB writes with an exponent, in more rows than are listed."""
    monkeypatch.setattr(comparison, "_MOST_LISTED", 5)
    columns = [("at", "datetime"), ("id", "int"), ("noon", "timestamp"), ("tiny", "double")]
    rows = [
        (f"2024-01-{1 + i:02} 00:00:00.{i % 10}00", str(i), f"2024-01-01 00:00:{i:02}.500000", f"{1 + i}e-20")
        for i in range(ROWS)
    ]
    table = from_wire(*columns, key="at id")
    config = GoldConfig(feed="moments", time_zone="UTC")
    lake = published_lake(spark, tmp_path_factory.mktemp("moments"), config, {table: rows}, TSO)
    with mariadb.mariadb(tmp_path_factory.mktemp("mariadb")) as port:
        verification = Verification(lake, port, config)
        verification.execute(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.moments (at datetime(3), id int, noon timestamp(6), tiny double, PRIMARY KEY (at, id))",
            *(f"INSERT INTO shop.moments VALUES ('{at}', {id_}, '{noon}', {tiny})" for at, id_, noon, tiny in rows),
        )
        equal = verification.verify()["moments"]
        assert [str(each) for each in equal.differences] == []
        assert (equal.result, equal.rows) == (Result.EQUAL, ROWS)

        verification.execute(
            "UPDATE shop.moments SET at = '2024-01-05 00:00:00.401' WHERE id = 4",
            "UPDATE shop.moments SET noon = '2024-01-01 00:00:20.500001' WHERE id = 20",
        )
        found = verification.verify()["moments"]
    assert {(each.kind, each.key, each.column) for each in found.differences} == {
        (DifferenceKind.EXTRA, '["2024-01-05 00:00:00.400","4"]', None),
        (DifferenceKind.MISSING, '["2024-01-05 00:00:00.401","4"]', None),
        (DifferenceKind.CHANGED, '["2024-01-21 00:00:00.000","20"]', "noon"),
    }
