"""Craft against the bytes of TiCDC's own encoder, and what is written against what was read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from vectors import Case, as_expected, cases
from well_typed import handle_key_text

from ticdc_codec.craft import encode
from ticdc_codec.event import Bootstrap, Ddl, Event, Op, Resolved, RowChange, events_of
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder

TRUST = {"craft-float": "trust"}
ONE_MESSAGE = sink_options("craft", {"max-batch-size": 1000, "max-message-bytes": 1 << 30})
FILES = ("tiflow-craft", "tiflow-craft-batch-4", "tiflow-craft-delete-handle-key-only")
CASES = [case for file in FILES for case in cases(file)]


def decode(*values: bytes | None, **options: str) -> list[Event]:
    batch = Decoder("craft", sink_options("craft", TRUST | options)).decode([None] * len(values), values)
    return [event for _, event in events_of(batch)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_decodes_to_the_values_that_sql_reads(case: Case) -> None:
    events = decode(*case.values)
    assert [as_expected(event, expected) for event, expected in zip(events, case.expect, strict=True)] == case.expect


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_encodes_to_the_same_bytes(case: Case) -> None:
    for value in case.values:
        assert [message.value for message in encode(decode(value), ONE_MESSAGE)] == [value]


def test_largest_watermark_keeps_all_64_bits() -> None:
    """All 64 bits: in the columns they are those of -1, the time is that of the unsigned number."""
    (case,) = [case for case in cases("tiflow-craft") if case.name == "resolved.max"]
    batch = Decoder("craft", sink_options("craft", TRUST)).decode(case.keys, case.values)
    assert batch["commit_ts"].to_pylist() == [-1]
    assert batch["commit_time"][0].value == ((1 << 46) - 1) * 1000
    assert [event for _, event in events_of(batch)] == [Resolved(commit_ts=(1 << 64) - 1)]


def test_benchmark_cases_have_the_sizes_of_wire_6_2() -> None:
    sizes = {
        case.name: [len(value) for value in case.values] for case in cases("tiflow-craft") if "benchmark" in case.name
    }
    assert list(sizes.values()) == [[301], [997]]


def test_a_batch_decodes_as_its_messages_do() -> None:
    values = [value for case in CASES for value in case.values]
    assert decode(*values) == [event for value in values for event in decode(value)]


def test_a_decoder_gives_equal_events_for_equal_messages() -> None:
    values = [value for case in CASES[:200] for value in case.values]
    decoder = Decoder("craft", sink_options("craft", TRUST))
    keys = [None] * len(values)
    assert decoder.decode(keys, values).equals(decoder.decode(keys, values))


ROW_0 = bytes.fromhex("01a091d8e18ebba7c51601010000010102060001020404746573746e756c6c021a03010c010c07")
DDL_0 = bytes.fromhex("019491d8e18ebba7c51602010001011263726561746520646174616261736520613b010161021a13012805")
DDL_1 = bytes.fromhex("019791d8e18ebba7c51602010001021064726f7020646174616261736520613b010161021a13012405")
DDL_3 = bytes.fromhex(
    "019d91d8e18ebba7c516020100020323637265617465207461626c65206328696420696e74207072696d617279206b6579293b"
    "0201016163021a0f014a05"
)
RESOLVED_0 = bytes.fromhex("019091d8e18ebba7c51603010101021a19010005")


def test_bytes_of_tibigdata_are_decoded() -> None:
    """wire.md 1.1.6."""
    row, create, drop, table, resolved = decode(ROW_0, DDL_0, DDL_1, DDL_3, RESOLVED_0)
    assert isinstance(row, RowChange)
    assert (row.op, row.database, row.table, row.after) == (Op.INSERT, "test", "test", {"null": None})
    assert row.columns[0].type == "null"
    assert [
        (ddl.database, ddl.table, ddl.query, ddl.type) for ddl in (create, drop, table) if isinstance(ddl, Ddl)
    ] == [
        ("a", None, "create database a;", "1"),
        ("a", None, "drop database a;", "2"),
        ("a", "c", "create table c(id int primary key);", "3"),
    ]
    assert resolved == Resolved(commit_ts=row.commit_ts - 16)


@pytest.mark.parametrize(("option", "defect"), [("refuse", "craft-float"), ("trust", None), ("null", None)])
def test_option_craft_float_decides_whether_floats_are_suspect(option: str, defect: str | None) -> None:
    case = next(case for case in CASES if case.name == "float.insert")
    for event, expected in zip(decode(*case.values, **{"craft-float": option}), case.expect, strict=True):
        floats = {column.name for column in event.columns if column.type == "float"}
        assert floats
        assert {column.name: column.defect for column in event.columns} == {
            column.name: defect if column.name in floats else None for column in event.columns
        }
        nulls = dict.fromkeys(floats) if option == "null" else {}
        assert event.after == expected["after"] | nulls


def test_float_defect_spoils_nothing_but_floats() -> None:
    """wire.md 8.1: bytes of tiflow 8.2 and later; a FLOAT is NULL if the operator says so, the rest is right."""
    for case in cases("tiflow-craft-float-defect"):
        events = decode(*case.values, **{"craft-float": "null"})
        for event, expected in zip(events, case.expect, strict=True):
            floats = {column.name for column in event.columns if column.type == "float"}
            wanted = {name: expected[name] for name in expected if name != "lossy"}
            for image in ("before", "after"):
                wanted[image] = expected[image] and expected[image] | dict.fromkeys(expected[image].keys() & floats)
            assert as_expected(event, wanted) == wanted


def test_handle_key_has_the_values_of_the_key_columns() -> None:
    for case in CASES:
        for event in decode(*case.values):
            if isinstance(event, RowChange):
                image = event.before if event.after is None else event.after
                keys = [column.name for column in event.columns if column.key]
                assert event.handle_key == (handle_key_text({key: image[key] for key in keys}) if keys else None)
                moved = event.op is Op.UPDATE and {key: event.before[key] for key in keys}
                expected = handle_key_text(moved) if moved else None
                assert event.old_handle_key == (None if expected == event.handle_key else expected)


def test_dictionaries_do_not_leak() -> None:
    """The same ids and heads, other names: what was learnt from one message must not name another's columns."""
    other = ROW_0.replace(b"testnull", b"sideword")
    events = decode(ROW_0, other, ROW_0)
    assert [(event.database, event.table, list(event.after)) for event in events] == [
        ("test", "test", ["null"]),
        ("side", "side", ["word"]),
        ("test", "test", ["null"]),
    ]


def test_partitions_of_one_message_may_be_as_far_apart_as_any() -> None:
    """No partition is -1 (wire.md 1.1.2): the difference to the largest one has 64 bits and a sign, and wraps."""
    (row,) = decode(ROW_0)
    assert isinstance(row, RowChange)
    rows = [replace(row, table_id=number) for number in (None, (1 << 63) - 1, None, 0)]
    (message,) = encode(rows, ONE_MESSAGE)
    assert decode(message.value) == rows


def test_bootstraps_are_left_out() -> None:
    """Craft's rows describe their columns themselves."""
    (row,) = decode(ROW_0)
    assert encode([Bootstrap(database="test", table="test"), row], ONE_MESSAGE) == encode([row], ONE_MESSAGE)
