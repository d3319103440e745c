"""Debezium's values whose type no message tells, made whole by the definition: as the decoder does that knows it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from vectors import cases, definitions, header

from ticdc_codec.batch import NO_CONTEXT, DecoderContext
from ticdc_codec.event import RowChange, events_of
from ticdc_codec.mysql_type import Family, parse_type
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder
from ticdc_codec.undeclared_types import is_open, may_be
from ticdc_lakehouse.gold.step_changes import row_keys_sql
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table
from ticdc_lakehouse.sql.text import literal
from ticdc_lakehouse.sql.typed_columns import typed_column
from ticdc_lakehouse.sql.undeclared_types import whole_text_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from vectors import Case

FILES = ["tiflow-debezium", "tiflow-debezium-no-schema", "ticdc-debezium-noext", "ticdc-debezium-no-schema"]
ZONE = "Asia/Shanghai"
Values = dict[str, set[tuple[str, str]]]
"""For each type the texts of the wire, and what they are."""


def rows(case: Case, context: DecoderContext) -> list[RowChange]:
    file_header = header(case.file)
    options = sink_options(file_header["protocol"], file_header["options"] | {"time-zone": ZONE})
    decoder = Decoder(file_header["protocol"], options, context)
    return [event for _, event in events_of(decoder.decode(case.keys, case.values)) if isinstance(event, RowChange)]


def open_values(file: str) -> Values:
    found: Values = defaultdict(set)
    for case in cases(file):
        for row, whole in zip(rows(case, NO_CONTEXT), rows(case, definitions(case)), strict=True):
            types = {column.name: column.type for column in whole.columns}
            for name in [column.name for column in row.columns if is_open(column.type)]:
                text, wanted = (row.after or {}).get(name), (whole.after or {}).get(name)
                if text is not None and wanted is not None:
                    found[types[name]].add((text, wanted))
    return found


@pytest.mark.parametrize("file", FILES)
def test_texts_become_those_of_a_decoder_that_knows_the_definition(spark: SparkSession, file: str) -> None:
    expected = {(kind, *pair) for kind, pairs in open_values(file).items() for pair in pairs}
    assert len(expected) > 30
    lines = ", ".join(f"({', '.join(map(literal, line))})" for line in sorted(expected))
    kinds = sorted({kind for kind, _, _ in expected})
    columns = {kind: ColumnDefinition(name="c", type=parse_type(kind), open=True) for kind in kinds}
    cases = " ".join(f"WHEN {literal(kind)} THEN {whole_text_sql(columns[kind], 'text', ZONE)}" for kind in kinds)
    found = spark.sql(
        f"SELECT kind, text, CASE kind {cases} END FROM VALUES {lines} AS t(kind, text, wanted)"
    ).collect()
    assert {readable(*line) for line in found} == {readable(*line) for line in expected}


def readable(kind: str, text: str, whole: str) -> tuple[str, str, object]:
    """Numbers by their values: zeros of a DECIMAL and the exponent's form are the typed column's affair."""
    numbers = (Family.DECIMAL, Family.FLOAT, Family.DOUBLE)
    return kind, text, float(whole) if parse_type(kind).family in numbers else whole


@pytest.mark.parametrize("name", ["BOOL", "BOOLEAN", "TINYINT(1)"])
def test_a_boolean_in_a_schema_file_is_a_tinyint(name: str) -> None:
    sent = [f"connect {word}" for word in ("int16", "int32", "int64", "double", "string")]
    assert [word for word in sent if may_be(word, parse_type(name))] == ["connect int16"]


WRONG = [
    ("date", "2932897"),
    ("date", "x"),
    ("datetime", "253402300800000"),
    ("datetime(6)", "253402300800000000"),
    ("datetime(6)", "2024-01-01"),
    ("timestamp", "2024-01-01 00:00:00"),
    ("timestamp", "2024-13-01T00:00:00Z"),
    ("bit(8)", ""),
    ("binary(2)", "?"),
    ("bigint unsigned", "-x"),
]


def test_what_a_type_cannot_have_is_null(spark: SparkSession) -> None:
    """Gold shows the wire's text in _ticdc_irregular."""
    columns = [(ColumnDefinition(name="c", type=parse_type(kind), open=True), text) for kind, text in WRONG]
    texts = ", ".join(f"{whole_text_sql(c, literal(t), 'UTC')} AS c{i}" for i, (c, t) in enumerate(columns))
    (found,) = spark.sql(f"SELECT {texts}").collect()
    assert [(*wrong, text) for wrong, text in zip(WRONG, found, strict=True)] == [(*wrong, None) for wrong in WRONG]


LONG_DECIMALS = [
    ("decimal(38,2)", "1e+21", "1000000000000000000000"),
    ("decimal(38,2)", "-1.2345678901234568e+25", "-12345678901234568000000000"),
    ("decimal(65,0)", "9.999999999999999e+64", f"9999999999999999{49 * '0'}"),
    ("decimal(20,10)", "-1.5e-07", "-0.00000015"),
    ("decimal(65,30)", "1e-30", f"0.{29 * '0'}1"),
    ("decimal(38,2)", "123456789012345680000", "123456789012345680000"),
    ("decimal(38,2)", "-0.000001", "-0.000001"),
    ("decimal(38,2)", "1e+2000000000", "1e+2000000000"),
    ("decimal(38,2)", "1e-2000000000", "1e-2000000000"),
]


def test_a_decimal_with_an_exponent_is_written_in_digits(spark: SparkSession) -> None:
    """A DECIMAL takes the digits of one from 1e21 on; behind the point of its text there are more than its own."""
    columns = [ColumnDefinition(name="c", type=parse_type(kind), open=True) for kind, _, _ in LONG_DECIMALS]
    whole = [
        whole_text_sql(column, literal(text), "UTC")
        for column, (_, text, _) in zip(columns, LONG_DECIMALS, strict=True)
    ]
    (found,) = spark.sql(f"SELECT {', '.join(f'{text} AS c{i}' for i, text in enumerate(whole))}").collect()
    assert list(found) == [text for _, _, text in LONG_DECIMALS]
    value = typed_column(columns[1]).sql(whole[1], "UTC")
    assert str(spark.sql(f"SELECT {value}").collect()[0][0]) == "-12345678901234568000000000.00"


def test_a_timestamp_whose_text_is_read_as_another_one_is_null(spark: SparkSession) -> None:
    """It would be read an hour too early, east of Greenwich too late. Decoders that know the type leave such a text as
    it is sent, too."""
    column = ColumnDefinition(name="c", type=parse_type("timestamp(3)"), open=True)
    moments = ("2024-11-03T05:30:00.5Z", "2024-11-03T06:30:00.5Z", "2024-11-03T07:30:00.5Z")
    texts = ", ".join(whole_text_sql(column, literal(moment), "America/New_York") for moment in moments)
    assert tuple(spark.sql(f"SELECT {texts}").collect()[0]) == ("2024-11-03 01:30:00.5", None, "2024-11-03 02:30:00.5")
    moments_in_berlin = ("2024-10-27T00:30:00.5Z", "2024-10-27T01:30:00.5Z")
    texts = ", ".join(whole_text_sql(column, literal(moment), "Europe/Berlin") for moment in moments_in_berlin)
    assert tuple(spark.sql(f"SELECT {texts}").collect()[0]) == (None, "2024-10-27 02:30:00.5")
    value = typed_column(replace(column, open=False)).sql(literal(moments[1]), "America/New_York")
    assert spark.sql(f"SELECT {value}").collect()[0][0] is None


def test_such_a_timestamp_in_a_key_is_a_key_of_its_own(spark: SparkSession) -> None:
    moments = ("2024-11-03T05:30:00Z", "2024-11-03T06:30:00Z")
    column = ColumnDefinition(name="c", type=parse_type("timestamp"), open=True)
    table = Table(database="d", table="t", columns=(column,), key=("c",))
    key, _ = row_keys_sql(MergeRows(table=table, after=0, through=9, groups=()), "America/New_York")
    rows = ", ".join(f"""('insert', '{{"c":"{moment}"}}', NULL)""" for moment in moments)
    found = spark.sql(f"SELECT {key} FROM VALUES {rows} AS t(op, after, before)").collect()
    assert [text for (text,) in found] == ['["2024-11-03 01:30:00"]', f'["{moments[1]}"]']
