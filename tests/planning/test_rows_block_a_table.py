"""Where rows that do not fit a table stop it in a window, and the reason that people read: every stop is a line of a
table here. `test_ddls_block_a_table` has those of DDLs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import (
    ID,
    KNOWN,
    LATER,
    ROWS,
    STATE,
    V,
    check_stop,
    ddl,
    definition,
    plan,
    planning_input,
    table,
)

from ticdc_codec.event import Column
from ticdc_codec.options import sink_options
from ticdc_codec.traits import ProtocolTraits
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Origin
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import RowGroup
from ticdc_lakehouse.schema.definition import table_from_wire

SIMPLE = GoldConfig(feed="f", time_zone="UTC", traits=ProtocolTraits(external_schemas=True))
DEBEZIUM = GoldConfig(feed="f", time_zone="UTC", traits=ProtocolTraits(noncanonical_key_digits=True))
DECIMAL_KEY = "CREATE TABLE d.t (id DECIMAL(9,2) PRIMARY KEY, v VARCHAR(9))"
DECIMAL = definition(sql=DECIMAL_KEY)
SIMPLE_TRUSTED = replace(SIMPLE, options=sink_options("simple", {"simple-column-order": "trust"}))
WIRE = replace(definition(), table=table_from_wire("d", "t", ROWS.columns), origin=Origin.WIRE)
VIRTUAL = (
    "CREATE TABLE d.t (id BIGINT NOT NULL, v VARCHAR(9) NOT NULL, g BIGINT AS (id + 1) VIRTUAL NOT NULL, "
    "UNIQUE (id, g){})"
)
TWO_KEYS = definition(sql="CREATE TABLE d.t (id DECIMAL(9,2) PRIMARY KEY, v VARCHAR(9) UNIQUE)")
OF_V = replace(ROWS, columns=(replace(ID, key=False), replace(V, key=True)))
"""Rows that name v as their key."""
PARTLY_VIRTUAL = definition(sql=VIRTUAL.format(""))
UNIQUE_NULLS = definition(sql="CREATE TABLE d.t (id BIGINT, v VARCHAR(9) UNIQUE)")
DROPPED_KEY = definition(sql="CREATE TABLE d.t (id BIGINT, v VARCHAR(9) UNIQUE, PRIMARY KEY (id) NONCLUSTERED)")
DROP_KEY = ddl(17, "ALTER TABLE t DROP PRIMARY KEY")


def of_two_keys(*types: str) -> RowGroup:
    """Rows with columns of these types that name v as their key."""
    return replace(OF_V, columns=tuple(replace(c, type=kind) for c, kind in zip(OF_V.columns, types, strict=True)))


LETTERS = definition(sql="CREATE TABLE d.t (id BIGINT PRIMARY KEY, v ENUM('a','b'))")


def of_letters(kind: str, by: str = "index") -> RowGroup:
    """Rows with an ENUM of this type."""
    return replace(ROWS, columns=(ID, Column(name="v", type=kind, by=by)))


OF_DECIMAL = (Column(name="id", type="decimal", key=True, defect="debezium-decimal-key"), V)

SOFT_DELETED = replace(ROWS, columns=(ID, V, Column(name="_tidb_softdelete_time", type="timestamp")))
"""Rows of a table that is SOFTDELETE because its database is: its CREATE TABLE does not say so."""

STOPS = {
    "rows of a table with soft deletes, which only they describe": (
        planning_input(SOFT_DELETED),
        14,
        "it is SOFTDELETE or ACTIVE_ACTIVE: TiCDC does not send all of its deletes",
    ),
    "rows of a table with soft deletes, whose CREATE TABLE does not say so": (
        planning_input(SOFT_DELETED, known=KNOWN, state=STATE),
        14,
        "it is SOFTDELETE or ACTIVE_ACTIVE: TiCDC does not send all of its deletes",
    ),
    "rows without the primary key, whose DROP ticdc does not send": (
        planning_input(replace(ROWS, columns=(replace(ID, key=False), V), keyed=False), known=KNOWN, state=STATE),
        14,
        "its rows name no handle key, the table's definition has the primary key id",
    ),
    "rows without a key of a writer that may name none": (
        planning_input(
            replace(ROWS, columns=(replace(ID, key=False), V), keyed=False),
            known=KNOWN,
            state=STATE,
            config=replace(DEBEZIUM, traits=replace(DEBEZIUM.traits, names_primary_keys=False)),
        ),
        20,
        None,
    ),
    "a table from the wire, of which schema_file tells the digits of its key only since": (
        planning_input(
            replace(ROWS, columns=OF_DECIMAL),
            known=replace(WIRE, table=table_from_wire("d", "t", OF_DECIMAL)),
            state=STATE,
            config=replace(DEBEZIUM, options=sink_options("debezium", {}), tables=(table(DECIMAL_KEY),)),
        ),
        14,
        "so that two rows may be one: `ticdc-lake load` an export taken since if only the digits are unknown",
    ),
    "a new table with a column that is named as gold's own": (
        planning_input(replace(ROWS, columns=(ID, replace(V, name="_TiCDC_Key")))),
        10,
        "column `_TiCDC_Key`: names that begin with _ticdc_",
    ),
    "CREATE TABLE with such a column": (
        planning_input(ddls=(ddl(12, "CREATE TABLE t (id INT PRIMARY KEY, _ticdc_key INT)"),)),
        12,
        "column `_ticdc_key`: names that begin with _ticdc_",
    ),
    "ADD COLUMN of such a column": (
        planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, "ALTER TABLE t ADD _ticdc_irregular INT"),)),
        17,
        "unsupported DDL at 17 (1970-01-01 00:00:00.000 UTC): column `_ticdc_irregular`: names that begin",
    ),
    "a new table with two columns that are one in Spark": (
        planning_input(replace(ROWS, columns=(ID, replace(V, name="\u03c3"), replace(V, name="\u03c2")))),
        10,
        "columns `\u03c3` and `\u03c2`: two names in TiDB and one in Spark",
    ),
    "CREATE TABLE with a column that is gold's own in Spark": (
        planning_input(ddls=(ddl(12, "CREATE TABLE t (id INT PRIMARY KEY, `_t\u0131cdc_key` INT)"),)),
        12,
        "column `_t\u0131cdc_key`: names that begin with _ticdc_",
    ),
    "CREATE TABLE with two columns that are one in small letters": (
        planning_input(ddls=(ddl(12, "CREATE TABLE t (id INT PRIMARY KEY, `İ` INT, `i̇` INT)"),)),
        12,
        "columns `İ` and `i̇`: two names",
    ),
    "a table without rows that is blocked because of two such columns": (
        planning_input(
            state=replace(STATE, applied_tso=5, stop=StopReason(kind=StopKind.RESERVED_COLUMN, detail="columns `s`"))
        ),
        5,
        "columns `s`",
    ),
    "ADD COLUMN of one that is another in Spark": (
        planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, "ALTER TABLE t ADD `\u0131d` INT"),)),
        17,
        "columns `id` and `\u0131d`: two names in TiDB",
    ),
    "such a column in the place of the other": (
        planning_input(
            ROWS,
            known=definition(sql="CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(9), s INT)"),
            state=STATE,
            ddls=(ddl(12, "ALTER TABLE t DROP s, ADD `\u017f` INT"),),
        ),
        12,
        "columns `s` and `\u017f`: two names in TiDB",
    ),
    "a column that gets the capitals of its name": (
        planning_input(known=KNOWN, state=STATE, ddls=(ddl(17, "ALTER TABLE t CHANGE v V VARCHAR(9), ADD w INT"),)),
        20,
        None,
    ),
    "rows with their key alone": (
        planning_input(replace(ROWS, handle_only=True), known=KNOWN, state=STATE),
        14,
        "a row was too large",
    ),
    "deletes with their key alone": (
        planning_input(replace(ROWS, columns=(ID,), handle_only=True, is_upsert=False), known=KNOWN, state=STATE),
        20,
        None,
    ),
    "a column of the type NULL, which has no values": (
        planning_input(replace(ROWS, columns=(ID, replace(V, type="null"))), known=KNOWN, state=STATE),
        20,
        None,
    ),
    "deletes of a table that nobody knows": (planning_input(replace(ROWS, is_upsert=False)), 10, "columns are unknown"),
    "no key on the wire, none in the definition": (
        planning_input(
            replace(ROWS, keyed=False), known=definition(sql="CREATE TABLE d.t (id BIGINT, v TEXT)"), state=STATE
        ),
        14,
        "no handle key",
    ),
    "no key on the wire, one in the definition": (
        planning_input(replace(ROWS, keyed=False), known=KNOWN, state=STATE),
        20,
        None,
    ),
    "a key on the wire that lacks a virtual column, none in the definition": (
        planning_input(ROWS, known=PARTLY_VIRTUAL, state=STATE),
        14,
        "no handle key",
    ),
    "a key on the wire that is an index of the definition, which has none": (
        planning_input(OF_V, known=definition(sql=VIRTUAL.format(", KEY (v, g)")), state=STATE),
        14,
        "the handle key of its rows is v, the table's definition has none",
    ),
    "a key on the wire that may be NULL in the definition, which has none": (
        planning_input(OF_V, known=UNIQUE_NULLS, state=STATE),
        14,
        "the handle key of its rows is v, the table's definition has none",
    ),
    "rows that name the primary key which a DDL dropped, where no other is left": (
        planning_input(LATER, known=DROPPED_KEY, state=STATE, ddls=(DROP_KEY,)),
        18,
        "the handle key of its rows is id, the table's definition has none",
    ),
    "rows that name a key with NULLs after the DROP of the primary key": (
        planning_input(replace(OF_V, first=19, last=19), known=DROPPED_KEY, state=STATE, ddls=(DROP_KEY,)),
        18,
        "the handle key of its rows is v, the table's definition has none",
    ),
    "rows of force-replicate after the DROP of the last key": (
        planning_input(
            replace(LATER, columns=(replace(ID, key=False), V), keyed=False),
            known=DROPPED_KEY,
            state=STATE,
            ddls=(DROP_KEY,),
        ),
        18,
        "the table has no handle key known to the feed",
    ),
    "rows with a key of no columns, none in the definition": (
        planning_input(
            replace(ROWS, columns=(replace(ID, key=False), V)),
            known=definition(sql="CREATE TABLE d.t (id BIGINT, v VARCHAR(9))"),
            state=STATE,
        ),
        14,
        "the table has no handle key known to the feed",
    ),
    "the DROP of the last key alone": (
        planning_input(ROWS, known=DROPPED_KEY, state=STATE, ddls=(DROP_KEY,)),
        20,
        None,
    ),
    "another handle key than rows named before": (
        planning_input(OF_V, known=WIRE, state=STATE),
        14,
        "the handle key of its rows was id and is v",
    ),
    "no handle key any more": (
        planning_input(replace(ROWS, columns=(replace(ID, key=False), V), keyed=False), known=WIRE, state=STATE),
        14,
        "the handle key of its rows was id and is none",
    ),
    "a handle key that the definition lacks": (
        planning_input(OF_V, known=KNOWN, state=STATE),
        14,
        "the handle key of its rows is v, the table's definition has id and no such key",
    ),
    "an index of the definition as the handle key": (
        planning_input(
            OF_V, known=definition(sql="CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(9), KEY (v))"), state=STATE
        ),
        14,
        "and no such key",
    ),
    "another key of the definition, whose own the feed writes with other digits": (
        planning_input(of_two_keys("decimal", "varchar"), known=TWO_KEYS, state=STATE, config=DEBEZIUM),
        14,
        "the handle key of its rows is v, and how the feed would write that of its definition, id",
    ),
    "another key of the definition, whose own has MySQL's digits": (
        planning_input(of_two_keys("decimal", "varchar"), known=TWO_KEYS, state=STATE),
        20,
        None,
    ),
    "another key of the definition, which itself has other digits": (
        planning_input(
            of_two_keys("bigint", "decimal"),
            known=definition(sql="CREATE TABLE d.t (id BIGINT PRIMARY KEY, v DECIMAL(9,2) UNIQUE)"),
            state=STATE,
            config=DEBEZIUM,
        ),
        20,
        None,
    ),
    "the handle key under its new name": (
        planning_input(
            replace(ROWS, columns=(replace(ID, name="ID2"), V), first=18, last=18),
            known=WIRE,
            state=STATE,
            ddls=(ddl(17, "ALTER TABLE t RENAME COLUMN ID TO ID2"),),
        ),
        20,
        None,
    ),
    "a column that the definition has not": (
        planning_input(replace(ROWS, columns=(ID, V, replace(V, name="w"))), known=KNOWN, state=STATE),
        14,
        "lacks: w",
    ),
    "a column that the schema_file spells otherwise": (
        planning_input(replace(ROWS, columns=(ID, replace(V, name="V"))), known=KNOWN, state=STATE),
        14,
        "rows spell column V so, the definition v: a schema_file has SHOW CREATE TABLE's names",
    ),
    "a column of the definition is missing": (
        planning_input(replace(ROWS, columns=(ID,)), known=KNOWN, state=STATE),
        14,
        "rows lack columns of the table's definition: v",
    ),
    "a delete may hold the key alone": (
        planning_input(replace(ROWS, columns=(ID,), is_upsert=False), known=KNOWN, state=STATE),
        20,
        None,
    ),
    "a delete with columns of another definition": (
        planning_input(
            replace(ROWS, columns=(ID, replace(V, type="int"), replace(V, name="w")), is_upsert=False),
            known=KNOWN,
            state=STATE,
        ),
        20,
        None,
    ),
    "a delete whose key is of another type": (
        planning_input(
            replace(ROWS, columns=(replace(ID, type="varchar"), V), is_upsert=False), known=KNOWN, state=STATE
        ),
        14,
        "column id is BIGINT in the table's definition, rows have varchar",
    ),
    "a delete whose key is of another type, none in the definition": (
        planning_input(
            replace(ROWS, columns=(replace(ID, type="varchar"), V), is_upsert=False),
            known=definition(sql="CREATE TABLE d.t (id BIGINT, v VARCHAR(9))"),
            state=STATE,
        ),
        14,
        "column id is BIGINT in the table's definition, rows have varchar",
    ),
    "another kind of type": (
        planning_input(replace(ROWS, columns=(ID, replace(V, type="int"))), known=KNOWN, state=STATE),
        14,
        "column v is VARCHAR(9) in the table's definition, rows have int",
    ),
    "signed and unsigned": (
        planning_input(replace(ROWS, columns=(replace(ID, type="bigint unsigned"), V)), known=KNOWN, state=STATE),
        14,
        "rows have bigint unsigned",
    ),
    "an integer that is larger than the definition knows": (
        planning_input(ROWS, known=definition(sql="CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(9))"), state=STATE),
        14,
        "column id is INT in the table's definition, rows have bigint",
    ),
    "an integer that is smaller than the definition knows": (
        planning_input(replace(ROWS, columns=(replace(ID, type="mediumint"), V)), known=KNOWN, state=STATE),
        20,
        None,
    ),
    "a decimal with more digits after the point than the definition knows": (
        planning_input(replace(ROWS, columns=(replace(ID, type="decimal(9,3)"), V)), known=DECIMAL, state=STATE),
        14,
        "column id is DECIMAL(9,2) in the table's definition, rows have decimal(9,3)",
    ),
    "a decimal with more digits before the point than the definition knows": (
        planning_input(replace(ROWS, columns=(replace(ID, type="decimal(9)"), V)), known=DECIMAL, state=STATE),
        14,
        "rows have decimal(9)",
    ),
    "a decimal of which the wire does not tell the digits": (
        planning_input(replace(ROWS, columns=(replace(ID, type="decimal"), V)), known=DECIMAL, state=STATE),
        20,
        None,
    ),
    "an ENUM whose numbers have other names than the definition knows": (
        planning_input(of_letters("enum('b','a')"), known=LETTERS, state=STATE),
        14,
        "column v is ENUM('a','b') in the table's definition, rows have enum('b','a')",
    ),
    "an ENUM with more names than the definition knows": (
        planning_input(of_letters("enum('a','b','c')"), known=LETTERS, state=STATE),
        20,
        None,
    ),
    "an ENUM of which the wire does not tell the names": (
        planning_input(of_letters("enum"), known=LETTERS, state=STATE),
        20,
        None,
    ),
    "an ENUM with other names whose values are names": (
        planning_input(of_letters("enum('b','a')", by="name"), known=LETTERS, state=STATE),
        20,
        None,
    ),
    "Craft's FLOAT, refused": (
        planning_input(
            replace(ROWS, columns=(ID, replace(V, defect="craft-float"))),
            known=KNOWN,
            state=STATE,
            config=GoldConfig(feed="f", time_zone="UTC", options=sink_options("craft", {})),
        ),
        14,
        "it has a FLOAT column",
    ),
    "Craft's FLOAT, trusted": (
        planning_input(
            replace(ROWS, columns=(ID, replace(V, defect="craft-float"))),
            known=KNOWN,
            state=STATE,
            config=GoldConfig(feed="f", time_zone="UTC", options=sink_options("craft", {"craft-float": "trust"})),
        ),
        20,
        None,
    ),
    "a key of digits that are the protocol's own": (
        planning_input(
            known=definition(sql=DECIMAL_KEY),
            state=STATE,
            ddls=(ddl(17, "ALTER TABLE t MODIFY id DECIMAL(9,4)"),),
            config=DEBEZIUM,
        ),
        17,
        "DECIMAL(9,4) keys with different digits",
    ),
    "a key of digits that are the protocol's own, as it was": (
        planning_input(
            known=definition(sql=DECIMAL_KEY),
            state=STATE,
            ddls=(ddl(17, "ALTER TABLE t ADD w INT"),),
            config=DEBEZIUM,
        ),
        20,
        None,
    ),
    "columns in another order than the table's": (
        planning_input(replace(ROWS, columns=(V, ID)), known=KNOWN, state=STATE, config=SIMPLE),
        14,
        "set the feed's option simple-column-order to trust only if",
    ),
    "columns in another order, trusted": (
        planning_input(replace(ROWS, columns=(V, ID)), known=KNOWN, state=STATE, config=SIMPLE_TRUSTED),
        20,
        None,
    ),
    "columns in another order, of a protocol whose rows describe themselves": (
        planning_input(replace(ROWS, columns=(V, ID)), known=KNOWN, state=STATE),
        20,
        None,
    ),
}


@pytest.mark.parametrize(("now", "through", "reason"), STOPS.values(), ids=STOPS)
def test_rows_block_a_table(now: PlanningInput, through: int, reason: str | None) -> None:
    check_stop(plan(now), through, reason)


def test_keys_are_made_from_the_definition_where_rows_name_a_part_of_a_key() -> None:
    """ticdc takes a unique key with a virtual column, which rows lack."""
    (step,) = plan(planning_input(ROWS, known=definition(sql=VIRTUAL.format(", UNIQUE (v)")), state=STATE)).steps
    assert isinstance(step, MergeRows)
    assert (step.table.key, step.wire_keys) == (("v",), False)


def test_keys_are_made_from_the_definition_where_rows_name_another_of_its_keys() -> None:
    """Of two unique keys of one size TiCDC takes the older one, and a MODIFY of its columns makes it the younger."""
    known = definition(sql="CREATE TABLE d.t (id CHAR(9) NOT NULL, v VARCHAR(9) NOT NULL, UNIQUE (id), UNIQUE (v))")
    modified = (ddl(13, "ALTER TABLE t MODIFY id BIGINT NOT NULL"),)
    (*_, step) = plan(planning_input(OF_V, known=known, state=STATE, ddls=modified)).steps
    assert isinstance(step, MergeRows)
    assert (step.table.key, step.wire_keys) == (("id",), False)
