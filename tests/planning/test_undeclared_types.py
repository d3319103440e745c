"""Rows whose types no message tells (Debezium without its extension or schema): the definition in force tells them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import (
    DATA,
    NAME,
    ROWS,
    STATE,
    block_reason,
    ddl,
    definition,
    needs_override,
    plan,
    planning_input,
    table,
)

from ticdc_codec.event import Column
from ticdc_codec.options import sink_options
from ticdc_codec.traits import ProtocolTraits
from ticdc_codec.writer_defects import DEBEZIUM_DECIMAL
from ticdc_lakehouse.planning.compatibility import refusal, with_wire_types
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import AlterRows, MergeRows
from ticdc_lakehouse.planning.window import RowGroup
from ticdc_lakehouse.schema.definition import table_from_json, table_to_json
from ticdc_lakehouse.sql.typed_columns import typed_columns

SQL = "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v DATE, e ENUM('a'), n DECIMAL(20,2))"


def rows(id_type: str = "connect int64", v: str = "date", e: str = "enum", n: str = "connect double") -> RowGroup:
    columns = (
        Column(name="id", type=id_type, key=True),
        Column(name="v", type=v),
        Column(name="e", type=e, by="name" if e == "enum" else None),
        Column(name="n", type=n),
    )
    return replace(ROWS, columns=columns)


UNDECLARED = rows("unknown", "unknown", "unknown", "unknown")
APPLYING = GoldConfig(feed="f", time_zone="UTC", options=sink_options("debezium", {}))


def test_open_columns_are_those_of_the_definition() -> None:
    typed = with_wire_types(table(SQL), [UNDECLARED])
    assert [(c.open, c.by) for c in typed.columns] == [(True, None), (True, None), (True, "name"), (True, None)]
    assert typed.columns[3].defect == DEBEZIUM_DECIMAL
    assert [c.spark_type for c in typed_columns(typed)] == ["BIGINT", "DATE", "STRING", "DECIMAL(20,2)"]
    assert table_from_json(table_to_json(typed)) == typed
    assert [c.open for c in with_wire_types(typed, [rows("bigint")]).columns] == [False, False, False, True]
    assert with_wire_types(typed, []) is typed


def test_keys_of_an_open_type_are_made_of_whole_texts() -> None:
    def keys(group: RowGroup) -> bool:
        return MergeRows(table=with_wire_types(table(SQL), [group]), after=1, through=9, groups=(group,)).wire_keys

    assert (keys(rows("bigint")), keys(rows())) == (True, False)


@pytest.mark.parametrize(
    ("group", "column"),
    [
        (rows("connect int32"), "id is BIGINT"),
        (rows("connect string"), "id is BIGINT"),
        (rows(v="connect int32"), "v is DATE"),  # a DATE has a name of its own
        (rows(n="connect int64"), "n is DECIMAL(20,2)"),
    ],
)
def test_a_type_that_the_wire_rules_out_is_refused(group: RowGroup, column: str) -> None:
    assert column in str(refusal(table(SQL), group, APPLYING, defined=True))


def test_what_the_wire_leaves_open_is_taken_unless_the_feed_refuses_its_losses() -> None:
    assert refusal(table(SQL), UNDECLARED, APPLYING, defined=True) is None
    refusing = replace(APPLYING, options=sink_options("debezium", {"debezium-decimal": "refuse"}))
    assert "debezium-decimal" in str(refusal(table(SQL), UNDECLARED, refusing, defined=True))


def test_milliseconds_are_no_microseconds() -> None:
    """A definition from before MODIFY read the wire's number of days, ms or us."""
    older = replace(ROWS, columns=(Column(name="id", type="bigint", key=True), Column(name="v", type="datetime(3)")))
    for digits, fits in ((2, True), (3, True), (4, False), (6, False)):
        now = table(f"CREATE TABLE d.t (id BIGINT PRIMARY KEY, v DATETIME({digits}))")
        assert (refusal(now, older, APPLYING, defined=True) is None) == fits


def test_rows_of_both_kinds_are_not_read_together() -> None:
    known = replace(definition(0, SQL), stable_id=DATA)
    later = replace(UNDECLARED, first=18, last=18)
    made = plan(planning_input(rows("bigint", n="decimal"), later, known=known, state=STATE))
    assert (made.through, needs_override(made)) == (10, False)
    assert "e, id, n, v" in (block_reason(made) or "")
    between = ddl(16, "ALTER TABLE t ADD w INT")
    wider = replace(later, columns=(*later.columns, Column(name="w", type="unknown")))
    made = plan(planning_input(rows("bigint", n="decimal"), wider, known=known, state=STATE, ddls=(between,)), NAME)
    assert (made.through, block_reason(made)) == (20, None)


@pytest.mark.parametrize(
    ("create", "statement"),
    [
        ("id BIGINT PRIMARY KEY, e ENUM('a','b') NOT NULL", "DROP PRIMARY KEY, ADD PRIMARY KEY (id, e)"),
        ("id BIGINT PRIMARY KEY, e INT", "ADD f SET('a','b') NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (id, f)"),
        ("e VARCHAR(9) NOT NULL, UNIQUE (e)", "MODIFY e ENUM('x','y') NOT NULL"),
    ],
)
@pytest.mark.parametrize(("names_elements", "by"), [(True, "name"), (False, None)])
def test_a_new_key_has_the_names_of_an_enum_if_messages_have_them(
    create: str, statement: str, names_elements: bool, by: str | None
) -> None:
    """Also if no message has shown the column yet."""
    known = definition(sql=f"CREATE TABLE d.t ({create})")
    config = GoldConfig(feed="f", time_zone="UTC", traits=ProtocolTraits(names_elements=names_elements))
    altered = ddl(16, f"ALTER TABLE t {statement}")
    made = plan(planning_input(known=known, state=STATE, ddls=(altered,), config=config))
    (step,) = (each for each in made.steps if isinstance(each, AlterRows))
    assert {column.by for column in step.table.columns if column.type.elements} == {by}
