"""What an ALTER TABLE makes of a definition, and of the rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from altered import COLUMNS, PLAIN, alter, table

from ticdc_codec.errors import ApplyError
from ticdc_codec.event import Column
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table, table_from_wire
from ticdc_lakehouse.schema.effect import (
    Changed,
    ColumnAdded,
    ColumnConverted,
    ColumnDropped,
    ColumnRenamed,
    Effect,
    KeyChanged,
)


def column(before: Table, name: str) -> ColumnDefinition:
    return next(column for column in before.columns if column.name == name)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ADD COLUMN a INT", "id Name n v a"),
        ("ADD COLUMN a INT FIRST, ADD COLUMN b INT AFTER `ID`", "a id b Name n v"),
        ("ADD COLUMN a INT, ADD COLUMN b INT AFTER a", "id Name n v a b"),
        ("ADD COLUMN IF NOT EXISTS NAME INT", "id Name n v"),
        ("ADD COLUMN IF NOT EXISTS a INT, ADD COLUMN IF NOT EXISTS A TEXT", "id Name n v a"),
        ("DROP COLUMN name, DROP COLUMN IF EXISTS name", "id n v"),
        ("DROP COLUMN name, ADD COLUMN name INT FIRST", "name id n v"),
        ("ADD COLUMN name INT FIRST, DROP COLUMN name", "name id n v"),
        ("RENAME COLUMN name TO n, RENAME COLUMN n TO name", "id n name v"),
        ("RENAME COLUMN id TO n, RENAME COLUMN n TO name, RENAME COLUMN name TO id", "n id name v"),
        ("RENAME COLUMN name TO NAME", "id Name n v"),
        ("RENAME COLUMN name TO NAME, RENAME COLUMN name TO m", "id m n v"),
        ("RENAME COLUMN name TO m, RENAME COLUMN name TO NAME", "id m n v"),
        ("ADD COLUMN IF NOT EXISTS name INT, DROP COLUMN name", "id n v"),
        ("CHANGE COLUMN name NAME VARCHAR(20)", "id NAME n v"),
        ("CHANGE COLUMN name n INT, CHANGE COLUMN n name INT FIRST", "name id n v"),
        ("MODIFY COLUMN `name` varchar(20) FIRST", "name id n v"),
        ("MODIFY COLUMN id INT AFTER n", "Name n id v"),
    ],
)
def test_alter_table_names_and_orders_the_columns(text: str, names: str) -> None:
    assert [c.name for c in alter(PLAIN, text).table.columns] == names.split()


@pytest.mark.parametrize("kind", ["char", "binary", "bit"])
def test_a_modify_to_a_length_of_one_converts_a_type_without_length(kind: str) -> None:
    """Of a statement CHAR is CHAR(1)."""
    wire = table_from_wire("d", "t", (Column(name="id", type="int", key=True), Column(name="v", type=kind)))
    (effect,) = alter(wire, f"MODIFY v {kind}(1)").effects
    assert isinstance(effect, ColumnConverted)
    assert alter(table(f"id INT PRIMARY KEY, v {kind}"), f"MODIFY v {kind}(1)").effects == ()


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("ADD COLUMN a INT", [("a", None)]),
        ("ADD COLUMN a INT NOT NULL", [("a", "0")]),
        (
            "ADD COLUMN a DECIMAL(5,2) NOT NULL DEFAULT 1.5, ADD COLUMN b ENUM('x') NOT NULL",
            [("a", "1.50"), ("b", "x")],
        ),
        ("ADD COLUMN a VARCHAR(5) NOT NULL DEFAULT ''", [("a", "")]),
        ("ADD COLUMN a INT DEFAULT NULL", [("a", None)]),
        ("ADD COLUMN a INT AS (n) VIRTUAL", []),
        ("ADD COLUMN IF NOT EXISTS name INT DEFAULT 5", []),
    ],
)
def test_added_column_has_a_value_in_old_rows(text: str, effects: list[tuple[str, str | None]]) -> None:
    changed = alter(PLAIN, text)
    assert [(e.column.name, e.value) for e in changed.effects if isinstance(e, ColumnAdded)] == effects
    assert len(changed.effects) == len(effects)


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("DROP COLUMN v", []),
        ("DROP COLUMN NAME", [ColumnDropped(column=column(PLAIN, "Name"))]),
        (
            "DROP COLUMN name, ADD COLUMN name INT DEFAULT 5",
            [
                ColumnDropped(column=column(PLAIN, "Name")),
                ColumnAdded(column=column(table("name INT"), "name"), value="5"),
            ],
        ),
        ("RENAME COLUMN v TO w", []),
        ("RENAME COLUMN name TO b", [ColumnRenamed(old="Name", new="b")]),
        ("RENAME COLUMN name TO `Name`", []),
        (
            "RENAME COLUMN name TO n, RENAME COLUMN n TO name",
            [
                ColumnRenamed(old="n", new="_ticdc_aside_0"),
                ColumnRenamed(old="Name", new="n"),
                ColumnRenamed(old="_ticdc_aside_0", new="name"),
            ],
        ),
        ("MODIFY COLUMN n BIGINT(20) NOT NULL", "bigint(20)"),
        ("MODIFY COLUMN n INT NOT NULL DEFAULT 3 COMMENT 'x'", []),
        ("MODIFY COLUMN n INTEGER NOT NULL", []),
        ("MODIFY COLUMN n INT UNSIGNED NOT NULL", "int unsigned"),
        ("MODIFY COLUMN v BIGINT AS (n) VIRTUAL", []),
        ("MODIFY COLUMN `Name` VARCHAR(20) CHARACTER SET gbk", []),
        ("MODIFY COLUMN NAME VARCHAR(20)", [ColumnRenamed(old="Name", new="NAME")]),
        ("DROP INDEX whatever, RENAME INDEX u TO w", []),
        ("ADD UNIQUE KEY x (name)", []),
    ],
)
def test_alter_table_has_these_effects_on_rows(text: str, effects: list[Effect] | str) -> None:
    changed = alter(PLAIN, text)
    if isinstance(effects, str):
        after = column(changed.table, "n")
        assert after.type.text.lower() == effects
        effects = [ColumnConverted(before=column(PLAIN, "n"), after=after)]
    assert list(changed.effects) == effects


def test_change_column_is_a_rename_and_a_conversion() -> None:
    before = table("id INT PRIMARY KEY, e ENUM('a')")
    before = replace(before, columns=tuple(replace(c, by="index" if c.name == "e" else None) for c in before.columns))
    changed = alter(before, "CHANGE COLUMN e f ENUM('a','b') FIRST")
    renamed, converted = changed.effects
    assert renamed == ColumnRenamed(old="e", new="f")
    assert isinstance(converted, ColumnConverted)
    assert (converted.before.name, converted.before.type.text, converted.after) == (
        "f",
        "ENUM('a')",
        changed.table.columns[0],
    )
    assert changed.table.columns[0].by == "index"


@pytest.mark.parametrize(
    ("keys", "text", "key"),
    [
        ("PRIMARY KEY (id)", "DROP PRIMARY KEY", ()),
        ("PRIMARY KEY (id), UNIQUE u (n)", "DROP PRIMARY KEY", ("n",)),
        ("UNIQUE u (n)", "ADD PRIMARY KEY (name)", ("Name",)),
        ("UNIQUE u (n)", "ADD CONSTRAINT u PRIMARY KEY (name)", ("Name",)),
        ("UNIQUE u (n)", "DROP INDEX U", ()),
        ("UNIQUE u (n), UNIQUE w (id)", "DROP INDEX u", ("id",)),
        ("UNIQUE u (n)", "MODIFY COLUMN n INT NULL", ()),
        ("UNIQUE u (name)", "MODIFY COLUMN name VARCHAR(20) NOT NULL", ("name",)),
        ("UNIQUE u (id, n)", "ADD UNIQUE KEY w (n)", ("n",)),
        ("UNIQUE u (n)", "RENAME INDEX u TO w, DROP INDEX w", ()),
        ("UNIQUE (n), UNIQUE (n, id)", "DROP INDEX n_2", None),
        ("UNIQUE (n), UNIQUE (n, id)", "DROP INDEX n", ("n", "id")),
        ("PRIMARY KEY (id)", "DROP PRIMARY KEY, ADD PRIMARY KEY (id)", None),
        ("PRIMARY KEY (id)", "MODIFY COLUMN id BIGINT", None),
        ("UNIQUE u (n), UNIQUE w (id)", "MODIFY COLUMN n BIGINT NOT NULL", None),
        ("PRIMARY KEY (id), UNIQUE u (n)", "DROP INDEX u", None),
        ("UNIQUE u (n), UNIQUE w (id)", "DROP COLUMN n", ("id",)),
        ("UNIQUE u (v)", "DROP COLUMN name", None),
        ("KEY k (n)", "DROP INDEX k", None),
        ("KEY n (id), UNIQUE (n)", "DROP INDEX n", None),
        ("UNIQUE (n), UNIQUE n (n, id)", "DROP INDEX n", None),
        ("PRIMARY KEY (ID), KEY (n)", "ADD UNIQUE (n), DROP INDEX n, DROP PRIMARY KEY", ("n",)),
        ("UNIQUE u (n, id)", "ADD UNIQUE KEY IF NOT EXISTS u (n)", None),
        ("KEY n ((id + 1))", "DROP COLUMN name, ADD UNIQUE (n), DROP INDEX n", ("n",)),
    ],
)
def test_alter_table_changes_the_handle_key(keys: str, text: str, key: tuple[str, ...] | None) -> None:
    before = table(f"{COLUMNS}, {keys}")
    changed = alter(before, text)
    assert changed.table.key == (before.key if key is None else key)
    assert [e for e in changed.effects if isinstance(e, KeyChanged)] == ([] if key is None else [KeyChanged(key=key)])


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("RENAME COLUMN id TO z", ("n", "z")),
        ("CHANGE COLUMN n a BIGINT NOT NULL", ("a", "id")),
        ("CHANGE COLUMN n o BIGINT NOT NULL", None),
        ("RENAME COLUMN n TO id, RENAME COLUMN id TO n", ("id", "n")),
        ("RENAME COLUMN id TO Id", None),
        ("RENAME COLUMN name TO a", None),
        ("MODIFY COLUMN n INT NOT NULL FIRST", None),
        ("RENAME COLUMN n TO o, DROP PRIMARY KEY, ADD PRIMARY KEY (id)", ("id",)),
    ],
)
def test_texts_of_keys_have_the_values_in_the_order_of_the_columns_names(
    text: str, key: tuple[str, ...] | None
) -> None:
    """A RENAME COLUMN that changes the order makes the stored rows' keys anew, with those of later messages."""
    before = table(f"{COLUMNS}, PRIMARY KEY (n, id)")
    assert (before.key, before.key_text_columns) == (("n", "id"), ("id", "n"))
    rekeyed = [e for e in alter(before, text).effects if isinstance(e, KeyChanged)]
    assert rekeyed == ([] if key is None else [KeyChanged(key=key)])


def test_auto_increment_makes_a_new_column_not_null() -> None:
    before = table("id BIGINT AUTO_INCREMENT UNIQUE KEY, a INT")
    assert (before.columns[0].nullable, before.key) == (False, ("id",))
    assert alter(before, "MODIFY COLUMN id BIGINT(20) AUTO_INCREMENT").table.key == ()
    assert alter(before, "MODIFY COLUMN id BIGINT(20) AUTO_INCREMENT NOT NULL").table.key == ("id",)


def test_rows_that_tidb_numbers_for_a_new_column_are_not_followed() -> None:
    with pytest.raises(ApplyError, match="TiDB numbers the rows that are there"):
        alter(table("id BIGINT PRIMARY KEY"), "ADD COLUMN n BIGINT AUTO_INCREMENT UNIQUE")


def test_a_renamed_column_keeps_its_keys_and_partitions() -> None:
    before = table(f"{COLUMNS}, PRIMARY KEY (ID)", "PARTITION BY RANGE (Id) (PARTITION p VALUES LESS THAN (5))")
    changed = alter(before, "RENAME COLUMN id TO pk").table
    assert changed.keys is not None
    assert changed.partitioning is not None
    assert (changed.key, changed.keys[0].columns, changed.partitioning.column) == (("pk",), ("pk",), "pk")


def test_a_primary_key_has_no_nulls() -> None:
    changed = alter(PLAIN, "DROP PRIMARY KEY, ADD PRIMARY KEY (name), MODIFY COLUMN n INT").table
    assert [(c.name, c.nullable) for c in changed.columns[:3]] == [("id", False), ("Name", False), ("n", True)]
    assert not alter(changed, "MODIFY COLUMN name VARCHAR(9)").table.columns[1].nullable


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ADD COLUMN name INT", "has that column already"),
        ("ADD COLUMN a INT AFTER b", "has no such column"),
        ("ADD COLUMN a DATETIME DEFAULT CURRENT_TIMESTAMP", "DEFAULT CURRENT_TIMESTAMP is computed by TiDB"),
        ("ADD COLUMN a INT AS (n) STORED", "generated by TiDB"),
        ("ADD COLUMN a VECTOR(3) NOT NULL", "VECTOR(3) NOT NULL, no DEFAULT"),
        ("DROP COLUMN a", "has no column `a`"),
        ("RENAME COLUMN a TO b", "has no column `a`"),
        ("RENAME COLUMN name TO N", "has a column `N` already"),
        ("MODIFY COLUMN a INT", "has no column `a`"),
        ("CHANGE COLUMN a b INT", "has no column `a`"),
        ("ADD PRIMARY KEY (a)", "has no column `a`"),
        ("ADD PRIMARY KEY (n)", "the table has one already, so a DDL before this one is missing"),
        ("DROP PARTITION p", "DROP PARTITION p: which rows"),
    ],
)
def test_what_cannot_be_followed_says_why(text: str, reason: str) -> None:
    with pytest.raises(ApplyError) as error:
        alter(PLAIN, text)
    assert reason in str(error.value)


def test_keys_that_are_not_known() -> None:
    wire = replace(PLAIN, keys=None)
    assert alter(wire, "DROP INDEX u, RENAME INDEX a TO b, ADD UNIQUE KEY (n)") == Changed(table=wire, effects=())
    assert alter(wire, "ADD PRIMARY KEY (n)").effects == (KeyChanged(key=("n",)),)
    renamed = alter(wire, "ADD PRIMARY KEY (N), RENAME COLUMN n TO m")
    assert (renamed.table.key, renamed.table.keys, renamed.effects[-1]) == (("m",), None, KeyChanged(key=("m",)))
    assert alter(wire, "ADD PRIMARY KEY (id)") == Changed(table=wire, effects=())
    for text in ("DROP PRIMARY KEY", "DROP COLUMN id"):
        with pytest.raises(ApplyError, match="other keys are not known"):
            alter(wire, text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("DROP COLUMN g", "id Name n v"),
        ("RENAME COLUMN g TO h", "id Name n v"),
        ("MODIFY COLUMN g BIGINT AS (id) VIRTUAL FIRST", "id Name n v"),
        ("CHANGE COLUMN g h BIGINT AS (id) VIRTUAL", "id Name n v"),
        ("ADD COLUMN c INT AFTER g", "id Name n v c"),
        ("MODIFY COLUMN n INT AFTER g", "id Name n v"),
        ("DROP COLUMN g, ADD COLUMN g INT, ADD COLUMN c INT AFTER g", "id Name n v g c"),
        ("ADD PRIMARY KEY (n), DROP COLUMN g, ADD INDEX (g), ADD UNIQUE KEY u (g)", "id Name n v"),
    ],
)
def test_a_column_that_rows_do_not_show_may_be_virtual(text: str, names: str) -> None:
    """Messages have none of those: a definition from rows lacks them."""
    wire = replace(PLAIN, keys=None)
    assert " ".join(column.name for column in alter(wire, text).table.columns) == names
    for stored in ("MODIFY COLUMN g BIGINT", "CHANGE COLUMN g h BIGINT", "RENAME COLUMN g TO name"):
        with pytest.raises(ApplyError, match="has no column `g`"):
            alter(wire, stored)


@pytest.mark.parametrize(
    ("kind", "by"), [("VARCHAR(9)", None), ("ENUM('a', 'b')", "index"), ("SET('a', 'b')", "index")]
)
def test_only_an_enum_or_set_has_values_by_number(kind: str, by: str | None) -> None:
    before = table("id INT PRIMARY KEY, e ENUM('a')")
    before = replace(before, columns=(before.columns[0], replace(before.columns[1], by="index")))
    assert alter(before, f"MODIFY e {kind}").table.columns[1].by == by


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("DROP COLUMN c, ADD COLUMN IF NOT EXISTS c INT DEFAULT 5", ["id"]),
        ("RENAME COLUMN c TO e, ADD COLUMN IF NOT EXISTS c INT DEFAULT 5", ["id", "e"]),
        ("ADD COLUMN x INT DEFAULT 5, DROP COLUMN IF EXISTS x", ["id", "c", "x"]),
        ("MODIFY COLUMN IF EXISTS x BIGINT", ["id", "c"]),
        ("CHANGE COLUMN IF EXISTS x y BIGINT, ADD COLUMN x INT", ["id", "c", "x"]),
        ("CHANGE COLUMN IF EXISTS c d INT", ["id", "d"]),
    ],
)
def test_if_exists_means_the_table_before_the_statement(text: str, names: list[str]) -> None:
    changed = alter(table("id INT PRIMARY KEY, c INT"), text)
    assert [column.name for column in changed.table.columns] == names


@pytest.mark.parametrize("default", ["NOT NULL", "DEFAULT 'x'"])
def test_a_binary_that_no_memory_holds_is_not_followed(default: str) -> None:
    with pytest.raises(ApplyError, match="its value in old rows is not known"):
        alter(PLAIN, f"ADD COLUMN b BINARY(9999999999999) {default}")
