"""Stored values after an ALTER TABLE that changed their type, and rows of partitions: MySQL's texts, no table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ticdc_codec.mysql_type import parse_type
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.alter_table import drop_column
from ticdc_lakehouse.gold.altered_rows import AlteredRows
from ticdc_lakehouse.gold.column_conversion import _converted_sql
from ticdc_lakehouse.schema.definition import ColumnDefinition
from ticdc_lakehouse.schema.effect import RowsRemoved
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.sql.float_text import number_text_sql
from ticdc_lakehouse.sql.key_text import wire_text_sql
from ticdc_lakehouse.sql.partition_rows import partition_condition_sql
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.type_conversion import converted_sql
from ticdc_lakehouse.sql.typed_columns import image_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# (type before, type after, text, what it becomes: None if that is not certain)
CONVERTED: list[tuple[str, str, str, str | None]] = [
    ("bigint", "int", "7", "7"),
    ("decimal(10,2)", "int", "2.50", "3"),
    ("decimal(10,2)", "int", "-2.50", "-3"),
    ("decimal(10,2)", "int", "0.49", "0"),
    ("double", "int", "2.5", "2"),
    ("double", "bigint unsigned", "3.5", "4"),
    ("float", "double", "0.1", "0.10000000149011612"),
    ("double", "float", "1.0000000596046448", "1.0"),
    ("bigint", "float", "1152921573326323713", "1.1529215E18"),
    ("varchar(22)", "float", " 1.00000005960464478 ", "1.0"),
    ("float", "decimal(12,4)", "12345.678", "12345.6777"),
    ("decimal(10,4)", "decimal(10,2)", "-0.0050", "-0.01"),
    ("decimal", "decimal(10,2)", "1.5", "1.50"),
    ("float", "bigint", "123456790", "123456792"),
    ("double", "bigint", "1.2345678901234568e+18", "1234567890123456768"),
    ("double", "bigint", "-9223372036854775808", "-9223372036854775808"),
    ("double", "bigint unsigned", "1.2345678901234567e+19", "12345678901234567168"),
    ("double", "bigint unsigned", "9223372036854775808", "9223372036854775808"),
    ("double", "bigint unsigned", "18446744073709549568", "18446744073709549568"),
    ("double", "bigint unsigned", "1.8446744073709552e+19", None),
    ("double", "bigint", "-1e+19", None),
    ("double", "bigint", "1e+21", None),
    ("float", "bigint", "1.2345679e+18", "1234567939550609408"),
    ("double", "decimal(30,2)", "2e+23", "200000000000000000000000.00"),
    ("double(10,2)", "double(12,3)", "1.25", "1.25"),
    ("varchar(9)", "enum('x','y')", "y", "y"),
    ("varchar(9)", "enum('x','y')", "1", None),
    ("varchar(9)", "set('x','y')", "y,x", "x,y"),
    ("varchar(9)", "set('x','y')", "", ""),
    ("varchar(9)", "set('x','y')", "x,z", None),
    ("double", "varchar(9)", "0.5", "0.5"),
    ("double", "varchar(9)", "1e+21", None),
    ("varchar(9)", "char(9)", "a  ", "a"),
    ("varchar(9)", "char(9)", "a\t ", "a\t"),
    ("varchar(9)", "varchar(3)", "éé ", "éé "),
    ("varchar(9)", "varchar(3)", "é   ", "é  "),
    ("varchar(9)", "varchar(3)", "abc\t \n", "abc"),
    ("varchar(9)", "varchar(3)", "abcd", None),
    ("text", "char(3)", "a     ", "a"),
    ("tinytext", "char(255)", "a ", "a "),
    ("tinytext", "char(254)", "a ", "a"),
    ("tinyblob", "binary(255)", "61", "61"),
    ("varchar(9)", "varbinary(9)", "é", "c3a9"),
    ("varchar(9)", "binary(4)", "a", "61000000"),
    ("varbinary(2)", "binary(4)", "ff00", "ff000000"),
    ("varbinary(2)", "binary(1)", "ff00", None),
    ("varbinary(9)", "varchar(9)", "c3a9", "é"),
    ("varbinary(9)", "varchar(9)", "ff", None),
    ("varbinary(9)", "char(9)", "c3a920", "é"),
    ("varbinary(9)", "varchar(2)", "61202020", "a "),
    ("year", "varchar(9)", "0000", "0"),
    ("year", "char(4)", "2024", "2024"),
    ("enum('a','b')", "enum('A','b')", "b", "b"),
    ("enum('a','b')", "enum('A','b')", "a", None),
    ("enum('a','b')", "enum('b')", "", ""),
    ("set('a','b','c')", "set('a','c')", "a,c", "a,c"),
    ("set('a','b','c')", "set('a','c')", "a,b", None),
    ("set('a','b','c')", "set('a','c')", "", ""),
    ("enum('a','b','c')", "enum('c','a')", "c", "c"),
    ("enum('a','b','c')", "enum('c','a')", "b", None),
    ("set('x','y','z')", "set('z','y','x')", "x,y", "y,x"),
    ("set('x','y','z')", "set('z','x')", "x,z", "z,x"),
    ("set('x','y','z')", "set('z','x')", "x,y", None),
    ("set('x','y','z')", "set('z','y','x')", "", ""),
    ("varchar(9)", "int", " 12 ", "12"),
    ("varchar(9)", "int", "1.5", None),
    ("varchar(9)", "int", "x", None),
    ("varchar(9)", "double", "1e3", "1e3"),
    ("varchar(9)", "double", "0x1", None),
    ("varchar(9)", "decimal(9,2)", "-.5", "-0.50"),
    ("varchar(9)", "decimal(9,2)", "1.005", "1.01"),
    ("varchar(9)", "date", "2024-02-29", "2024-02-29"),
    ("varchar(9)", "date", "20240229", None),
    ("varchar(10)", "date", "2023-02-29", None),
    ("varchar(10)", "date", "2024-01-00", None),
    ("varchar(10)", "date", "0000-00-00", None),
    ("varchar(30)", "datetime", "2024-01-01 00:00:00.5", "2024-01-01 00:00:01"),
    ("varchar(30)", "datetime", "1 2", None),
    ("varchar(30)", "datetime", "2024-01-01", "2024-01-01 00:00:00"),
    ("varchar(30)", "datetime", "2024-02-30 00:00:00", None),
    ("varchar(30)", "datetime", "2024-01-01 24:00:00", None),
    ("varchar(30)", "datetime", "0000-00-00 00:00:00", None),
    ("datetime(6)", "datetime(3)", "2024-01-01 00:00:00.123500", "2024-01-01 00:00:00.124"),
    ("datetime(6)", "datetime(3)", "2024-07-01 12:00:00.123499", "2024-07-01 12:00:00.123"),
    ("datetime(6)", "datetime(5)", "2024-12-31 23:59:59.999995", "2025-01-01 00:00:00"),
    ("datetime(1)", "datetime", "2024-03-10 02:30:00.5", "2024-03-10 02:30:01"),
    ("datetime(1)", "datetime", "1969-12-31 23:59:59.5", "1970-01-01 00:00:00"),
    ("datetime(1)", "datetime", "0000-00-00 00:00:00.0", "0000-00-00 00:00:00"),
    ("datetime(6)", "datetime(1)", "2024-01-00 00:00:00.500000", "2024-01-00 00:00:00.5"),
    ("datetime(6)", "datetime(1)", "2024-01-00 00:00:00.510000", None),
    ("datetime(1)", "bigint", "9999-12-31 23:59:59.5", None),
    ("datetime(1)", "bigint", "9999-12-31 23:59:59.4", "99991231235959"),
    ("timestamp(3)", "timestamp", "2024-01-01 00:00:00.499", "2024-01-01 00:00:00"),
    ("datetime(1)", "date", "2024-01-01 23:59:59.5", "2024-01-01"),
    ("datetime", "date", "2024-01-00 12:00:00", "2024-01-00"),
    ("date", "datetime", "2024-02-29", "2024-02-29 00:00:00"),
    ("date", "datetime(3)", "0000-00-00", "0000-00-00 00:00:00.000"),
    ("datetime(6)", "bigint", "2011-11-10 11:59:59.999999", "20111110120000"),
    ("datetime(3)", "bigint", "2011-12-31 23:59:59.499", "20111231235959"),
    ("datetime", "bigint", "0000-00-00 00:00:00", "0"),
    ("datetime(3)", "bigint", "0000-00-00 00:00:00.000", "0"),
    ("datetime", "bigint", "2024-05-00 00:00:00", None),
    ("datetime", "bigint", "0000-05-01 00:00:00", "501000000"),
    ("date", "bigint", "2020-02-29", "20200229"),
    ("date", "int", "0000-00-00", "0"),
    ("date", "int", "2024-05-00", None),
    ("date", "decimal(10,2)", "9999-12-31", "99991231"),
    ("date", "double", "2020-02-29", "20200229"),
    ("datetime(6)", "decimal(20,3)", "2011-11-10 11:11:11.999999", "20111110111112.000"),
    ("datetime(3)", "decimal(20,3)", "2011-11-10 11:11:11.123", "20111110111111.123"),
    ("datetime", "double", "2011-11-10 11:11:11", "20111110111111"),
    ("time", "time(3)", "-10:00:00", "-10:00:00.000"),
    ("time(1)", "time(3)", "10:00:00.5", "10:00:00.500"),
    ("time(6)", "time", "00:00:00.500000", "00:00:01"),
    ("time(6)", "time", "-00:00:00.500000", "00:00:00"),
    ("time(6)", "time", "-00:00:00.500001", "-00:00:01"),
    ("time(6)", "time", "-838:59:58.500000", "-838:59:58"),
    ("time(6)", "time", "838:59:58.500000", "838:59:59"),
    ("time(6)", "time", "99:59:59.500000", "100:00:00"),
    ("time(6)", "time", "-00:00:00.000001", "00:00:00"),
    ("time(6)", "time(1)", "-10:59:59.950000", "-10:59:59.9"),
    ("time(6)", "time(1)", "10:59:59.950000", "11:00:00.0"),
    ("time(6)", "time(3)", "00:00:00.000500", "00:00:00.001"),
    ("time(6)", "time(5)", "-100:00:00.000050", "-100:00:00.00005"),
]


@pytest.mark.parametrize(("zone", "ansi"), [("UTC", "true"), ("America/New_York", "false")])
def test_values_become_what_mysql_makes_of_them(spark: SparkSession, zone: str, ansi: str) -> None:
    sql = [converted_sql(parse_type(before), parse_type(after), literal(text)) for before, after, text, _ in CONVERTED]
    settings = {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}
    usual = {name: str(spark.conf.get(name)) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        (row,) = spark.sql(f"SELECT {', '.join(f'{each} AS c{i}' for i, each in enumerate(sql))}").collect()
    finally:
        for name, value in usual.items():
            spark.conf.set(name, value)
    assert [(*each[:3], found) for each, found in zip(CONVERTED, row, strict=True)] == CONVERTED


@pytest.mark.parametrize("name", ["name", "NAME", "s", "x", "n", "t", "k", "v"])
def test_a_column_may_be_called_as_a_variable(spark: SparkSession, name: str) -> None:
    kinds = parse_type("varchar(9)"), parse_type("set('x','y','z')")
    listed = converted_sql(*kinds, quoted(name))
    assert spark.sql(f"SELECT {listed} FROM (SELECT 'z,x' AS {quoted(name)})").collect()[0][0] == "x,z"
    number = number_text_sql(quoted(name), "DOUBLE")
    assert spark.sql(f"SELECT {number} FROM (SELECT 0D AS {quoted(name)})").collect()[0][0] == "0"


# (function, date, its value): MySQL's reference manual, Date and Time Functions
DATES = [
    ("to_days", "2007-10-07", 733321),
    ("to_days", "1950-05-01", 712343),
    ("to_days", "0001-01-01", 366),
    ("year", "1987-01-01", 1987),
    ("month", "2008-02-03", 2),
    ("dayofmonth", "2007-02-03", 3),
    ("dayofyear", "2007-02-03", 34),
    ("dayofweek", "2007-02-03", 7),
    ("weekday", "2007-11-06", 1),
    ("quarter", "2008-04-01", 2),
]


def test_a_function_of_a_date_tells_the_partition_of_a_row(spark: SparkSession) -> None:
    """Of bounds around the value: in the partition, below it, above it."""
    days, conditions = [], []
    for number, (function, date, value) in enumerate(DATES):
        day = ColumnDefinition(name=f"d{number}", type=parse_type("date"))
        days.append(f"DATE'{date}' AS {day.name}")
        for low, high in ((value, value + 1), (value + 1, value + 9), (value - 9, value)):
            gone = RowsRemoved(column=day, function=function, low=str(low), high=str(high))
            conditions.append(f"{partition_condition_sql(gone, 'UTC')} AS c{len(conditions)}")
    (found,) = spark.sql(f"SELECT {', '.join(conditions)} FROM (SELECT {', '.join(days)})").collect()
    assert list(found) == [True, False, False] * len(DATES)


def test_a_bound_above_the_columns_type_is_one(spark: SparkSession) -> None:
    gone = RowsRemoved(
        column=ColumnDefinition(name="id", type=parse_type("tinyint")), function=None, low="5", high="128"
    )
    rows = "VALUES (CAST(4 AS TINYINT)), (CAST(5 AS TINYINT)), (CAST(127 AS TINYINT)) AS rows (id)"
    (found,) = spark.sql(
        f"SELECT sort_array(collect_list(id)) FROM {rows} WHERE {partition_condition_sql(gone, 'UTC')}"
    ).collect()
    assert found[0] == [5, 127]


SET_OF_64 = "set(" + ",".join(f"'{i}'" for i in range(64)) + ")"


@pytest.mark.parametrize(
    ("kind", "by", "text", "wire"),
    [
        ("enum('a','b')", "index", "b", "2"),
        ("enum('a','b')", "index", "", "0"),
        ("enum('a','')", "index", "", "2"),
        ("enum('a','b')", "name", "b", "b"),
        ("enum('','a')", "index", "", "1"),
        ("enum('','a')", "index", "a", "2"),
        ("set('','a')", "index", "", "0"),
        ("set('','a')", "index", ",a", "3"),
        ("set('a','b','c')", "index", "a,c", "5"),
        ("set('a','b','c')", "index", "", "0"),
        (SET_OF_64, "index", "0,63", "9223372036854775809"),
        ("varchar(9)", None, "b", "b"),
    ],
)
def test_keys_are_made_of_what_the_wire_sends(
    spark: SparkSession, kind: str, by: str | None, text: str, wire: str
) -> None:
    column = wire_text_sql(ColumnDefinition(name="k", type=parse_type(kind), by=by), "UTC")
    rows = f"(SELECT {literal(text)} AS k, CAST(NULL AS MAP<STRING, STRING>) AS _ticdc_irregular)"
    (found,) = spark.sql(f"SELECT {column} FROM {rows}").collect()
    assert found[0] == wire


@pytest.mark.parametrize("kind", ["enum('a','b')", "set('a','b')"])
def test_a_number_without_a_name_stays_itself_in_keys_and_becomes_no_text(spark: SparkSession, kind: str) -> None:
    """The definition is older than the row. Two such rows had one key, and a MODIFY made the number a text."""
    before, after = (ColumnDefinition(name="k", type=parse_type(each)) for each in (kind, "varchar(9)"))
    key = wire_text_sql(before, "UTC")
    irregular = "SELECT CAST(NULL AS STRING) AS k, map('k', '8') AS _ticdc_irregular"
    named = "SELECT 'b' AS k, CAST(NULL AS MAP<STRING, STRING>) AS _ticdc_irregular"
    texts = "coalesce(_ticdc_irregular['k'], k)"
    by_number, by_name = (_converted_sql(replace(before, by=by), after, texts) for by in ("index", "name"))
    found = spark.sql(f"SELECT {key}, {by_number}, {by_name} FROM ({irregular} UNION ALL {named})").collect()
    assert [*map(tuple, found)] == [("8", None, "8"), ("2", "b", "b")]


@pytest.mark.parametrize("kind", ["decimal(20,0)", "datetime", "bigint", "enum('a','b')"])
def test_a_dropped_column_takes_its_irregular_values_along(spark: SparkSession, kind: str) -> None:
    """A column that is added under its name later has none of them."""
    lake = Lake(spark=spark, catalog="c", schemas={}, checkpoints="")
    kept = "map('d', 'what no d can hold', 'e', '0000-00-00') AS _ticdc_irregular"
    rows = AlteredRows(query=f"SELECT 1 AS id, NULL AS d, {kept}", columns=("id", "d", "_ticdc_irregular"))
    left = drop_column(lake, rows, ColumnDefinition(name="d", type=parse_type(kind)))
    assert left.columns == ("id", "_ticdc_irregular")
    assert [*map(tuple, spark.sql(left.query).collect())] == [(1, {"e": "0000-00-00"})]


def test_an_image_may_have_very_long_texts(spark: SparkSession) -> None:
    """16 MB of binary are 32 million digits."""
    (table,) = tables_from_sql("CREATE TABLE d.t (v LONGBLOB)")
    image = """concat('{"v":"', repeat('ab', 10000001), '"}')"""
    (found,) = spark.sql(f"SELECT length(i.v) FROM (SELECT {image_sql(table, image)} AS i)").collect()
    assert found[0] == 20000002
