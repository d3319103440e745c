"""Conversions of stored values that are refused, and those that change nothing. What they give: ``tests/lake``."""

from __future__ import annotations

import pytest

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import parse_type
from ticdc_lakehouse.sql.type_conversion import as_wall_clock, converted_sql, has_session_time
from ticdc_lakehouse.sql.value_range import is_value_sql


def converted(before: str, after: str) -> str:
    return converted_sql(parse_type(before), parse_type(after), "x")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("json", "int", "the conversion from json to int is not followed"),
        ("varchar(9)", "json", "from varchar(9) to json"),
        ("varchar(9)", "time", "from varchar(9) to time"),
        ("varchar(9)", "timestamp", "from varchar(9) to timestamp"),
        ("vector(3)", "varchar(9)", "from vector(3) to varchar(9)"),
        ("timestamp", "datetime", "from timestamp to datetime"),
        ("datetime", "timestamp", "from datetime to timestamp"),
        ("time", "datetime", "from time to datetime"),
        ("datetime", "time", "from datetime to time"),
        ("date", "time", "from date to time"),
        ("datetime", "double(20,2)", "the rounding of decimal(14,0) to double(20,2)"),
        ("datetime", "bit(64)", "from datetime to bit(64)"),
        ("int", "date", "from int to date"),
        ("int", "year", "from int to year"),
        ("bit(8)", "varchar(9)", "from bit(8) to varchar(9)"),
        ("int", "varbinary(9)", "from int to varbinary(9)"),
        ("blob", "int", "from blob to int"),
        ("enum('a')", "int", "from enum('a') to int"),
        ("enum('a')", "set('a')", "from enum('a') to set('a')"),
        ("int", "geometry", "from int to geometry"),
        ("int", "decimal(65,30)", "not converted to decimal(65,30): Spark's DECIMAL has 38 digits"),
        ("decimal(10,2)", "decimal(39,2)", "not converted to decimal(39,2)"),
        ("int", "decimal", "not converted to decimal:"),
        ("decimal(65,30)", "int", "not converted to decimal(65,30)"),
        ("decimal(14,4)", "double(10,2)", "the rounding of decimal(14,4) to double(10,2)"),
        ("double", "float(7,2)", "the rounding of double to float(7,2)"),
        ("varchar(9)", "double(10,2)", "the rounding of varchar(9) to double(10,2)"),
        ("varchar(9)", "set", "the names of set are not known"),
        ("enum", "varchar(9)", "the names of enum are not known"),
        ("set", "text", "the names of set are not known"),
        ("enum", "enum('a')", "the names of enum are not known"),
        ("set", "set('a')", "the names of set are not known"),
    ],
)
def test_an_unsupported_conversion_is_refused_with_its_reason(before: str, after: str, reason: str) -> None:
    with pytest.raises(ApplyError) as error:
        converted(before, after)
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int", "bigint"),
        ("bigint", "tinyint unsigned"),
        ("varchar(9)", "varchar(20)"),
        ("varchar(9)", "text"),
        ("varbinary(4)", "blob"),
        ("datetime", "datetime(6)"),
        ("timestamp(3)", "timestamp(6)"),
        ("time(3)", "time(3)"),
        ("enum('a','b')", "enum('a','c','b')"),
        ("enum('a','b')", "enum('b','c','a')"),
        ("char(9)", "varchar(9)"),
        ("varchar", "text"),
        ("set('a','b')", "set('a','b','c')"),
        ("json", "varchar(9)"),
        ("int", "double(10,2)"),
    ],
)
def test_conversion_leaves_the_text_as_it_is(before: str, after: str) -> None:
    assert converted(before, after) == "x"


@pytest.mark.parametrize(
    ("before", "after", "sql"),
    [
        ("varchar(9)", "varchar(4)", "char_length(x) <= 4 THEN x"),
        ("text", "varchar(4)", "THEN left(x, 4) END"),
        ("varchar", "char(4)", "rtrim(CASE"),
        ("varbinary(9)", "char(9)", "rtrim(CASE"),
        ("year", "varchar(9)", "CAST(CAST(x AS INT) AS STRING)"),
        ("enum('a','b','c')", "enum('a','c')", "x = '' OR x IN ('a', 'c')"),
        ("enum('a','b','c')", "enum('c','a')", "x = '' OR x IN ('c', 'a')"),
        ("enum('a')", "enum('A')", "x = '' OR x IN ('A')"),
        ("date", "int", "regexp_replace(x, '[- :]', '')"),
        ("datetime(6)", "bigint", "timestampadd(MICROSECOND, 500000"),
        ("datetime(6)", "decimal(30,6)", "AS DECIMAL(20,6))"),
        ("date", "datetime(3)", "concat(x, ' 00:00:00', '.000')"),
        ("time(6)", "time(3)", "_ticdc_time - pmod(_ticdc_time, 1000)"),
        ("time(1)", "time", "CASE WHEN x RLIKE '^-?[0-9]{2,3}:"),
        ("set('a','b')", "set('b')", "array_except(split(x, ','), array('', 'b'))"),
        ("set('a','b')", "set('b','a')", "filter(array('b', 'a'), _ticdc_name ->"),
    ],
)
def test_values_that_may_not_stay_are_looked_at(before: str, after: str, sql: str) -> None:
    assert sql in converted(before, after)


WHOLE, REAL = "try_cast(x AS DECIMAL(38,0))", "try_cast(x AS DOUBLE)"


@pytest.mark.parametrize(
    ("before", "after", "sql"),
    [
        ("int", "tinyint", f"{WHOLE} BETWEEN -128 AND 127"),
        ("varchar(9)", "mediumint unsigned", f"{WHOLE} BETWEEN 0 AND 16777215"),
        ("bigint", "bigint unsigned", f"{WHOLE} BETWEEN 0 AND 18446744073709551615"),
        ("bigint unsigned", "bigint", f"{WHOLE} BETWEEN -9223372036854775808 AND 9223372036854775807"),
        ("int unsigned", "int", f"{WHOLE} BETWEEN -2147483648 AND 2147483647"),
        ("int", "bit(64)", f"{WHOLE} BETWEEN 0 AND 18446744073709551615"),
        ("bit", "bit(3)", f"{WHOLE} BETWEEN 0 AND 7"),
        ("bit(9)", "tinyint unsigned", f"{WHOLE} BETWEEN 0 AND 255"),
        ("decimal(9,2)", "decimal(9,2) unsigned", f"{REAL} >= 0"),
        ("double", "float unsigned", f"{REAL} >= 0"),
        ("int", "double(10,2)", f"abs({REAL}) < 1e8"),
        ("float(10,2)", "float(9,2) unsigned", f"{REAL} >= 0 AND abs({REAL}) < 1e7"),
        ("varbinary(9)", "varbinary(3)", "length(x) <= 6"),
        ("varbinary", "varbinary(3)", "length(x) <= 6"),
        ("blob", "tinyblob", "length(x) <= 510"),
        ("varchar(64)", "tinyblob", "length(x) <= 510"),
        ("json", "varchar(9)", "char_length(x) <= 9"),
        ("int", "char(9)", "char_length(x) <= 9"),
        ("decimal(3,2)", "varchar(4)", "char_length(x) <= 4"),
        ("json", "tinytext", "octet_length(x) <= 255"),
        ("varchar(64)", "tinytext", "octet_length(x) <= 255"),
        ("longtext", "mediumtext", "octet_length(x) <= 16777215"),
        ("varchar", "text", "octet_length(x) <= 65535"),
        ("datetime(6)", "datetime(3)", "x NOT LIKE '+%'"),
        ("varchar", "timestamp(6)", "x NOT LIKE '+%'"),
    ],
)
def test_what_is_a_value_of_a_type(before: str, after: str, sql: str) -> None:
    assert is_value_sql(parse_type(before), parse_type(after), "x") == sql


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int", "bigint"),
        ("tinyint unsigned", "int"),
        ("bit(8)", "tinyint unsigned"),
        ("bit", "bigint unsigned"),
        ("int unsigned", "double unsigned"),
        ("decimal(9,2)", "decimal(9,4)"),
        ("float(10,2)", "double(12,3)"),
        ("varbinary(9)", "varbinary(9)"),
        ("binary(9)", "tinyblob"),
        ("blob", "longblob"),
        ("varbinary", "longblob"),
        ("varchar(63)", "tinytext"),
        ("tinytext", "text"),
        ("text", "varchar(9)"),
        ("datetime(3)", "datetime(6)"),
        ("date", "datetime"),
    ],
)
def test_types_with_all_values_of_another(before: str, after: str) -> None:
    assert is_value_sql(parse_type(before), parse_type(after), "x") == "true"


def test_a_timestamp_has_the_time_of_the_session_that_converts_it() -> None:
    timestamp, moment, text = map(parse_type, ("timestamp(3)", "datetime(3)", "varchar(30)"))
    assert has_session_time(timestamp, moment)
    assert has_session_time(text, timestamp)
    assert not has_session_time(timestamp, parse_type("timestamp"))
    assert not has_session_time(moment, text)
    assert [as_wall_clock(kind) for kind in (timestamp, text)] == [moment, text]
