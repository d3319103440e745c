"""Defects of the writers: recognised in their own bytes, refused or taken as the feed says, named in comments."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from vectors import FOLDER, Case, cases, header

from ticdc_codec import decode, encode
from ticdc_codec.event import Column, Event, Failure, Op, RowChange, events_of
from ticdc_codec.mysql_type import parse_type
from ticdc_codec.options import SinkOptions, sink_options
from ticdc_codec.protocols import Decoder
from ticdc_codec.traits import ProtocolTraits
from ticdc_codec.undeclared_types import completed, is_open
from ticdc_codec.writer_defects import (
    CRAFT_FLOAT,
    DEBEZIUM_DATE,
    DEBEZIUM_DECIMAL,
    DEBEZIUM_DECIMAL_KEY,
    DEBEZIUM_DEFAULT,
    OPEN_FLAGS,
    OPEN_LOST_NAME,
    SIMPLE_COLUMN_ORDER,
    WRITER_DEFECTS,
    refusal,
    remark,
)
from ticdc_lakehouse.planning.compatibility import refusal as refuses
from ticdc_lakehouse.planning.compatibility import with_wire_types
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.window import RowGroup
from ticdc_lakehouse.schema.definition import table_from_json, table_from_wire, table_to_json
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.sql.typed_columns import text_comment, typed_columns

PROTOCOLS = {
    CRAFT_FLOAT: "craft",
    DEBEZIUM_DECIMAL: "debezium",
    DEBEZIUM_DECIMAL_KEY: "debezium",
    DEBEZIUM_DEFAULT: "debezium",
    OPEN_FLAGS: "open_protocol",
    SIMPLE_COLUMN_ORDER: "simple",
}
DEFECTS = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("tiflow-simple-*-defect.jsonl.gz"))
TAKEN = {DEBEZIUM_DECIMAL, DEBEZIUM_DEFAULT}
"""What the wire itself loses: every such feed has it."""


def suspect(*words: str) -> tuple[Column, ...]:
    return (Column(name="id", type="int", key=True), Column(name="c", type="float", defect=" ".join(words)))


@pytest.mark.parametrize(("word", "protocol"), PROTOCOLS.items())
def test_the_option_of_its_name_decides(word: str, protocol: str) -> None:
    for choice in ("refuse", "trust"):
        found = refusal(suspect(word), sink_options(protocol, {word: choice}), defined=False)
        assert (found is None) == (choice == "trust")
        assert found is None or f"option {word}" in found
    assert (refusal(suspect(word), sink_options(protocol, {}), defined=False) is None) == (word in TAKEN)
    assert remark(word) in remark(f"{DEBEZIUM_DECIMAL} {word}")


def test_every_writer_defect_that_leaves_a_choice_belongs_to_a_protocol_and_has_an_option() -> None:
    assert {*PROTOCOLS, OPEN_LOST_NAME, DEBEZIUM_DATE} == WRITER_DEFECTS.keys()
    assert {word.replace("-", "_") for word in PROTOCOLS} < {field.name for field in fields(SinkOptions)}


@pytest.mark.parametrize("sent", ["unknown", "connect int32", "date"])
def test_a_date_of_debezium_says_what_its_wire_makes_of_zero_dates(sent: str) -> None:
    """Also one whose type the definition tells; TIMESTAMP has its zero date on this wire (wire.md 1.5.2)."""
    whole = completed(Column(name="d", type=sent, defect=None if is_open(sent) else DEBEZIUM_DATE), parse_type("date"))
    [typed] = typed_columns(table_from_wire("d", "t", (whole,)))
    assert typed.comment == f"date (zero and partial dates: see _ticdc_irregular; {remark(DEBEZIUM_DATE)})"
    assert text_comment(typed.definition) == f"date (MySQL's text: on_irregular; {remark(DEBEZIUM_DATE)})"
    assert completed(Column(name="z", type="unknown"), parse_type("timestamp")).defect is None


def test_rows_decoded_before_the_feed_said_null_stay_refused() -> None:
    """Silver has their false values; only a replay reads them as NULL."""
    assert refusal(suspect(CRAFT_FLOAT), sink_options("craft", {"craft-float": "null"}), defined=True) is not None


def test_one_of_several_defects_refuses_the_rows() -> None:
    options = sink_options("debezium", {"debezium-decimal": "refuse"})
    assert refusal(suspect(DEBEZIUM_DEFAULT), options, defined=True) is None
    both = suspect(DEBEZIUM_DEFAULT, DEBEZIUM_DECIMAL)
    assert refusal(both, options, defined=True) == WRITER_DEFECTS[DEBEZIUM_DECIMAL].refusal


def test_a_create_table_settles_what_flags_were_lost() -> None:
    for word in PROTOCOLS.keys() - TAKEN:
        settled = refusal(suspect(word), SinkOptions(), defined=True) is None
        assert settled == (word == OPEN_FLAGS)


def test_a_lost_name_is_nothing_that_gold_takes() -> None:
    assert refusal(suspect(OPEN_LOST_NAME), SinkOptions(), defined=False) is None
    assert remark(OPEN_LOST_NAME)
    assert remark(None) == ""


def test_comment_of_a_suspect_column_names_its_defect_from_then_on() -> None:
    (table,) = tables_from_sql("CREATE TABLE d.t (id INT PRIMARY KEY, c FLOAT)")
    group = RowGroup(
        name=TableName("d", "t"),
        columns=suspect(CRAFT_FLOAT),
        is_upsert=True,
        handle_only=False,
        keyed=True,
        first=5,
        last=5,
        rows=1,
    )
    sound = replace(group, columns=tuple(replace(column, defect=None) for column in group.columns))
    config = GoldConfig(feed="f", time_zone="UTC")
    typed = with_wire_types(with_wire_types(table, [group], config), [sound], config)
    assert table_from_json(table_to_json(typed)) == typed
    comments = [column.comment for column in typed_columns(typed)]
    assert comments == ["INT, key", "FLOAT (wrong if TiCDC 8.2 or later wrote it)"]
    assert with_wire_types(table, [sound], config) is table


def decoded(case: Case) -> list[Event]:
    file_header = header(case.file)
    decoder = Decoder(file_header["protocol"], sink_options(file_header["protocol"], file_header["options"]))
    return [event for _, event in events_of(decoder.decode(case.keys, case.values))]


def test_floats_of_8_2_are_refused_unless_the_feed_says_otherwise() -> None:
    """Every row with a FLOAT that differs from TiDB's is refused."""
    wrong = 0
    for case in cases("tiflow-craft-float-defect"):
        for event, expected in zip(decoded(case), case.expect, strict=True):
            if isinstance(event, Failure):  # what is left of the value is NaN
                continue
            assert isinstance(event, RowChange)
            suspects = {column.name for column in event.columns if column.defect == CRAFT_FLOAT}
            assert suspects >= {*(expected.get("lossy") or ())}
            wrong += bool(expected.get("lossy"))
    assert wrong


@pytest.mark.parametrize("file", DEFECTS)
def test_the_order_of_a_schema_shows_whose_values_may_stand_under_wrong_names(file: str) -> None:
    """tiflow lists columns as they were made; CREATE TABLE says in which order they stand."""
    config = GoldConfig(feed="f", time_zone="UTC", traits=ProtocolTraits(external_schemas=True))
    for case in cases(file):
        (table,) = tables_from_sql(case.content["create"], "evolve")
        _, row = decoded(case)
        if isinstance(row, Failure):  # a value of a type that the column of that name cannot have
            continue
        assert isinstance(row, RowChange)
        assert row.after != case.expect[1]["after"]
        group = RowGroup(
            name=table.name, columns=row.columns, is_upsert=True, handle_only=False, keyed=True, first=5, last=5, rows=1
        )
        assert "simple-column-order" in str(refuses(table, group, config, defined=True))
        ordered = tuple(sorted(row.columns, key=lambda c: [d.name for d in table.columns].index(c.name)))
        assert refuses(table, replace(group, columns=ordered), config, defined=True) is None


def inserted(kind: str, *keys: str) -> list[RowChange]:
    """A row for each key, which is of this type."""
    columns = (Column(name="k", type=kind, key=True), Column(name="v", type="int"))
    return [
        RowChange(
            op=Op.INSERT,
            database="d",
            table="t",
            commit_ts=(1 << 58) + at,
            commit_ms=1 << 40,
            before=None,
            after={"k": key, "v": str(at)},
            columns=columns,
        )
        for at, key in enumerate(keys)
    ]


def test_a_float_in_a_key_is_not_read_as_null() -> None:
    """Without it all rows would be one."""
    options = {"craft-float": "null"}
    (message,) = encode(inserted("float", "1.5", "2.5"), "craft")
    rows = [event for event in decode(message, "craft", options) if isinstance(event, RowChange)]
    assert [(row.handle_key, row.columns[0].defect) for row in rows] == [
        ('["1.5"]', CRAFT_FLOAT),
        ('["2.5"]', CRAFT_FLOAT),
    ]
    assert refusal(rows[0].columns, sink_options("craft", options), defined=True) is not None


def test_a_long_decimal_in_a_key_is_refused() -> None:
    """A float64 makes two such keys one: digits after the 15th are lost."""
    options = {"enable-tidb-extension": True}
    messages = encode(inserted("decimal(20,0)", "12345678901234567890", "12345678901234567891"), "debezium", options)
    rows = [event for each in messages for event in decode(each, "debezium", options) if isinstance(event, RowChange)]
    assert rows[0].handle_key == rows[1].handle_key
    assert rows[0].columns[0].defect == DEBEZIUM_DECIMAL_KEY
    options_of_feed = sink_options("debezium", options)
    for kind, refused in [("decimal(20,0)", True), ("decimal(15,2)", False)]:
        known = (completed(rows[0].columns[0], parse_type(kind)),)
        assert (refusal(known, options_of_feed, defined=True) is not None) == refused
