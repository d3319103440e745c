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
from ticdc_lakehouse.schema.change import change
from ticdc_lakehouse.schema.definition import table_from_json, table_from_wire, table_to_json
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import AlterTable
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
    typed = with_wire_types(table(SQL), [UNDECLARED], APPLYING)
    assert [(c.open, c.by) for c in typed.columns] == [(True, None), (True, None), (True, "name"), (True, None)]
    assert typed.columns[3].defect == DEBEZIUM_DECIMAL
    assert [c.spark_type for c in typed_columns(typed)] == ["BIGINT", "DATE", "STRING", "DECIMAL(20,2)"]
    assert table_from_json(table_to_json(typed)) == typed
    assert [c.open for c in with_wire_types(typed, [rows("bigint")], APPLYING).columns] == [False, False, False, True]
    assert with_wire_types(typed, [], APPLYING) is typed


def test_keys_of_an_open_type_are_made_of_whole_texts() -> None:
    def keys(group: RowGroup) -> bool:
        typed = with_wire_types(table(SQL), [group], APPLYING)
        return MergeRows(table=typed, after=1, through=9, groups=(group,)).wire_keys

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


def of_wire(*types: str, key: str = "bigint") -> RowGroup:
    """Rows with a key and columns of these types."""
    columns = (Column(name="id", type=key, key=True), *(Column(name=f"c{n}", type=t) for n, t in enumerate(types)))
    return replace(ROWS, columns=columns)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (of_wire("datetime", "time"), of_wire("unknown", "unknown"), "leave the type of column c0 open"),
        (of_wire("datetime(6)"), of_wire("unknown"), "leave the type of column c0 open"),
        (of_wire("time"), of_wire("unknown"), "only rows from before show that it is time, not with how many digits"),
        (of_wire("date", "timestamp", "decimal", "blob"), of_wire(*["unknown"] * 4, key="unknown"), None),
        (of_wire("unknown"), of_wire("date"), "have date as the type of column c0, which the rows before left open"),
        (of_wire("connect string"), of_wire("blob"), "have blob as the type of column c0"),
        (of_wire("connect string", key="connect int64"), of_wire("unknown", key="unknown"), None),
        (of_wire(key="unknown"), of_wire(), "have bigint as the type of column id"),
    ],
)
def test_rows_that_carry_types_and_rows_that_do_not_follow_each_other_only_where_their_values_agree(
    before: RowGroup, after: RowGroup, said: str | None
) -> None:
    """The changefeed's debezium-disable-schema was changed, and no statement defines the table."""
    known = with_wire_types(table_from_wire(*NAME, before.columns), [before], APPLYING)
    stop = refusal(with_wire_types(known, [after], APPLYING), after, APPLYING, defined=False)
    assert (stop is None) if said is None else (said in str(stop) and "debezium-disable-schema" in str(stop))
    assert refusal(with_wire_types(known, [before], APPLYING), before, APPLYING, defined=False) is None


@pytest.mark.parametrize("key_type", ["decimal", "time", "datetime", "timestamp", "bigint"])
@pytest.mark.parametrize("first", ["declared", "unknown"])
def test_one_row_has_one_key_whether_rows_carry_its_type_or_not(key_type: str, first: str) -> None:
    """With a type, a key has the digits of the message, without one those of the definition."""
    sql = f"CREATE TABLE d.t (id {key_type} PRIMARY KEY)"
    config = replace(APPLYING, traits=ProtocolTraits(noncanonical_key_digits=True))
    groups = [of_wire(key=key_type), of_wire(key="unknown")]
    if first == "unknown":
        groups.reverse()
    stops, known = [], table(sql)
    for group in (groups[0], groups[0], groups[1], groups[1]):
        known = table_from_json(table_to_json(with_wire_types(known, [group], config)))
        stops.append(refusal(known, group, config, defined=True))
    assert stops[:2] == [None, None]
    said = [stop is not None and "key column id" in str(stop) for stop in stops[2:]]
    assert said == [key_type != "bigint"] * 2


def test_a_key_column_has_declared_digits_after_a_modify_too() -> None:
    config = replace(APPLYING, traits=ProtocolTraits(noncanonical_key_digits=True))
    (modify,) = read_ddl("ALTER TABLE t MODIFY id DATETIME NOT NULL COMMENT 'c'", "d", "t")
    assert isinstance(modify, AlterTable)
    known = with_wire_types(table("CREATE TABLE d.t (id DATETIME PRIMARY KEY)"), [of_wire(key="datetime")], config)
    known = change(known, modify).table
    open_rows = of_wire(key="unknown")
    stop = refusal(with_wire_types(known, [open_rows], config), open_rows, config, defined=True)
    assert "some rows carry the type of key column id, others do not" in str(stop)


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
