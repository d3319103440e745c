"""What an ALTER TABLE makes of a definition, and of the rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from altered import alter, table

from ticdc_codec.errors import ApplyError
from ticdc_codec.event import Column, NamedBy
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table, table_from_json, table_from_wire, table_to_json
from ticdc_lakehouse.schema.effect import (
    Changed,
    ColumnAdded,
    ColumnConverted,
    ColumnDropped,
    ColumnRenamed,
    Effect,
    KeyChanged,
    RowsRemoved,
)
from ticdc_lakehouse.schema.partition_effects import exchanged

COLUMNS = "`id` int(11) NOT NULL, `Name` varchar(20), n int(11) NOT NULL, v int AS (n) VIRTUAL"


def column(before: Table, name: str) -> ColumnDefinition:
    return next(column for column in before.columns if column.name == name)


PLAIN = table(f"{COLUMNS}, PRIMARY KEY (id), UNIQUE KEY u (n)")


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
    for text in ("DROP PRIMARY KEY", "DROP COLUMN id"):
        with pytest.raises(ApplyError, match="other keys are not known"):
            alter(wire, text)


RANGE = table(
    "id INT, a DATE, PRIMARY KEY (id, a)",
    "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20),"
    " PARTITION p2 VALUES LESS THAN MAXVALUE)",
)
UNPARTITIONED = alter(RANGE, "REMOVE PARTITIONING").table
SUBPARTITIONED = table(
    "id INT",
    "PARTITION BY RANGE (id) SUBPARTITION BY HASH (id + 1) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (10)"
    " (SUBPARTITION s0, SUBPARTITION s1), PARTITION p1 VALUES LESS THAN MAXVALUE (SUBPARTITION s2, SUBPARTITION s3))",
)
YEARS = table(
    "id INT, a DATE, PRIMARY KEY (id, a)",
    "PARTITION BY RANGE (YEAR(a)) (PARTITION p0 VALUES LESS THAN (2000), PARTITION p1 VALUES LESS THAN (2010))",
)
LIST = table(
    "id INT, a DATE, PRIMARY KEY (id, a)",
    "PARTITION BY LIST COLUMNS (a) (PARTITION p0 VALUES IN ('2020-1-2', NULL), PARTITION p1 VALUES IN (DEFAULT))",
)
HASH = table("id INT PRIMARY KEY", "PARTITION BY HASH (id) PARTITIONS 4")
KEY = table("id INT PRIMARY KEY", "PARTITION BY KEY (id) PARTITIONS 4")


Rows = list[tuple[str, str | None, str | None, str | None, object]]


def gone(before: Table, text: str) -> Rows:
    effects = alter(before, text).effects
    assert all(isinstance(effect, RowsRemoved) for effect in effects)
    return [(e.column.name, e.function, e.low, e.high, e.values) for e in effects if isinstance(e, RowsRemoved)]


@pytest.mark.parametrize(
    ("before", "text", "rows"),
    [
        (RANGE, "DROP PARTITION P0", [("id", None, None, "10", None)]),
        (RANGE, "TRUNCATE PARTITION p1, p2", [("id", None, "10", "20", None), ("id", None, "20", None, None)]),
        (RANGE, "DROP PARTITION IF EXISTS p1, p9", [("id", None, "10", "20", None)]),
        (SUBPARTITIONED, "TRUNCATE PARTITION p0", [("id", None, None, "10", None)]),
        (YEARS, "TRUNCATE PARTITION p1", [("a", "year", "2000", "2010", None)]),
        (LIST, "DROP PARTITION p0", [("a", None, None, None, ("2020-01-02", None))]),
        (
            table(
                "y YEAR",
                "PARTITION BY RANGE (y) (PARTITION p VALUES LESS THAN (70), PARTITION q VALUES LESS THAN (2000))",
            ),
            "DROP PARTITION q",
            [("y", None, "70", "2000", None)],
        ),
        (HASH, "TRUNCATE PARTITION ALL", [("id", None, None, None, None)]),
        (table("v INT AS (1 + 1)", "PARTITION BY HASH (v) PARTITIONS 2"), "TRUNCATE PARTITION ALL", []),
        (RANGE, "REORGANIZE PARTITION p0, p1 INTO (PARTITION p VALUES LESS THAN (20))", []),
        (RANGE, "REMOVE PARTITIONING", []),
        (RANGE, "PARTITION BY HASH (id) PARTITIONS 3", []),
        (YEARS, "ADD PARTITION (PARTITION p2 VALUES LESS THAN (2020))", []),
        (HASH, "ADD PARTITION (PARTITION p9)", []),
        (PLAIN, "ADD PARTITION (PARTITION p2 VALUES LESS THAN (2020))", []),
    ],
)
def test_rows_of_a_dropped_partition_are_removed(
    before: Table, text: str, rows: list[tuple[str, str | None, str | None, str | None, object]]
) -> None:
    assert gone(before, text) == rows


@pytest.mark.parametrize(
    ("before", "text", "expected"),
    [
        (HASH, "TRUNCATE PARTITION p0, P3", [("id", None, (0, 4)), ("id", None, (3, 4))]),
        (alter(HASH, "COALESCE PARTITION 1").table, "TRUNCATE PARTITION p2", [("id", None, (2, 3))]),
        (alter(HASH, "ADD PARTITION PARTITIONS 2").table, "TRUNCATE PARTITION p5", [("id", None, (5, 6))]),
        (alter(HASH, "ADD PARTITION (PARTITION x)").table, "TRUNCATE PARTITION x", [("id", None, (4, 5))]),
        (alter(RANGE, "PARTITION BY HASH (id) PARTITIONS 3").table, "TRUNCATE PARTITION p1", [("id", None, (1, 3))]),
        (
            table("a INT", "PARTITION BY HASH (a) (PARTITION x, PARTITION y)"),
            "TRUNCATE PARTITION y",
            [("a", None, (1, 2))],
        ),
        (table("a DATE", "PARTITION BY HASH (YEAR(a)) PARTITIONS 2"), "TRUNCATE PARTITION p1", [("a", "year", (1, 2))]),
    ],
)
def test_truncated_hash_partition_removes_the_rows_of_its_remainder(
    before: Table, text: str, expected: list[tuple[str, str | None, object]]
) -> None:
    effects = [effect for effect in alter(before, text).effects if isinstance(effect, RowsRemoved)]
    assert [(e.column.name, e.function, e.remainder) for e in effects] == expected


def test_partitions_of_key_are_not_counted() -> None:
    for text in ("COALESCE PARTITION 1", "ADD PARTITION PARTITIONS 2"):
        assert alter(KEY, text) == Changed(table=KEY, effects=())


def test_bounds_may_be_functions_of_a_date() -> None:
    before = table(
        "a DATE",
        "PARTITION BY RANGE (TO_DAYS(a)) (PARTITION p0 VALUES LESS THAN (TO_DAYS(_UTF8MB4'2020-01-01')),"
        " PARTITION p1 VALUES LESS THAN (TO_DAYS('2020-02-01 00:00:00')), PARTITION p2 VALUES LESS THAN (YEAR('x')))",
    )
    (gone,) = alter(before, "DROP PARTITION p1").effects
    assert isinstance(gone, RowsRemoved)
    assert (gone.function, gone.low, gone.high) == ("to_days", "737790", "737821")
    with pytest.raises(ApplyError, match="bound is not understood"):
        alter(before, "DROP PARTITION p2")


def test_bounds_follow_the_partitions() -> None:
    split = alter(
        RANGE, "REORGANIZE PARTITION p1 INTO (PARTITION a VALUES LESS THAN (15), PARTITION b VALUES LESS THAN (20))"
    ).table
    assert gone(split, "DROP PARTITION b") == [("id", None, "15", "20", None)]
    dropped = alter(split, "DROP PARTITION a").table
    assert gone(dropped, "DROP PARTITION b") == [("id", None, "10", "20", None)]
    assert gone(alter(split, "TRUNCATE PARTITION a").table, "DROP PARTITION b") == [("id", None, "15", "20", None)]
    more = alter(YEARS, "ADD PARTITION (PARTITION p2 VALUES LESS THAN (2020))").table
    assert gone(more, "DROP PARTITION p2") == [("a", "year", "2010", "2020", None)]


@pytest.mark.parametrize(
    ("before", "text", "reason"),
    [
        (RANGE, "DROP PARTITION p9", "no partition p9"),
        (LIST, "DROP PARTITION p1", "is unknown"),
        (KEY, "TRUNCATE PARTITION p0", "is unknown"),
        (HASH, "TRUNCATE PARTITION p4", "no partition p4"),
        (table("a INT", "PARTITION BY HASH (a + 1) PARTITIONS 2"), "TRUNCATE PARTITION p0", "is unknown"),
        (table("a BIGINT UNSIGNED", "PARTITION BY HASH (a) PARTITIONS 3"), "TRUNCATE PARTITION p0", "UNSIGNED"),
        (
            table("a INT", "PARTITION BY RANGE (a + 1) (PARTITION p VALUES LESS THAN (5))"),
            "DROP PARTITION p",
            "is unknown",
        ),
        (table("a INT", "PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5 + 5))"), "DROP PARTITION p", "bound"),
        (
            table("a DATE", "PARTITION BY RANGE COLUMNS (a) (PARTITION p VALUES LESS THAN ('2024-02-00'))"),
            "DROP PARTITION p",
            "bound is not understood",
        ),
        (
            table("a DATETIME", "PARTITION BY LIST COLUMNS (a) (PARTITION p VALUES IN (NULL, '0000-00-00 00:00:00'))"),
            "DROP PARTITION p",
            "bound is not understood",
        ),
        (
            table("a VARCHAR(9)", "PARTITION BY LIST COLUMNS (a) (PARTITION p VALUES IN ('x'))"),
            "DROP PARTITION p",
            "VARCHAR",
        ),
        (
            alter(RANGE, "REORGANIZE PARTITION p0, p8 INTO (PARTITION p VALUES LESS THAN (10))").table,
            "DROP PARTITION p2",
            "is unknown",
        ),
    ],
)
def test_drop_of_a_partition_whose_rows_are_unknown_is_refused(before: Table, text: str, reason: str) -> None:
    with pytest.raises(ApplyError, match=reason):
        alter(before, text)


def table_after(before: Table, ddls: tuple[str, ...]) -> Table:
    for text in ddls:
        before = alter(before, text).table
    return before


@pytest.mark.parametrize(
    ("partitioned", "plain"),
    [
        ((), ("ADD COLUMN c INT NOT NULL DEFAULT 5",)),
        (("ADD COLUMN c INT NOT NULL DEFAULT 5",), ("ADD COLUMN c INT NOT NULL",)),
        (("ADD COLUMN c INT NOT NULL DEFAULT 5", "MODIFY COLUMN c BIGINT"), ("ADD COLUMN c BIGINT NOT NULL",)),
    ],
)
def test_rows_keep_no_value_of_an_added_column_in_another_table(
    partitioned: tuple[str, ...], plain: tuple[str, ...]
) -> None:
    """TiDB shows such a row with the origin default of the table that it lies in; seen in TiDB and on the wire."""

    one, two = table_after(RANGE, partitioned), table_after(UNPARTITIONED, plain)
    if not partitioned:  # it has the column from its CREATE TABLE
        one = replace(one, columns=(*one.columns, replace(two.columns[-1], origin_default=None)))
    with pytest.raises(ApplyError, match="EXCHANGE PARTITION: column `c` was added to one of the tables, or to both"):
        exchanged(one, two, "p1")


def test_tables_whose_columns_differ_in_case_alone_exchange_their_rows() -> None:
    plain = table(f"{COLUMNS.replace('`id`', '`ID`').replace('Name', 'NAME')}, PRIMARY KEY (iD)")
    assert exchanged(alter(plain, "PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (10))").table, PLAIN, "p")


@pytest.mark.parametrize(
    ("kind", "by"), [("VARCHAR(9)", None), ("ENUM('a', 'b')", "index"), ("SET('a', 'b')", "index")]
)
def test_only_an_enum_or_set_has_values_by_number(kind: str, by: str | None) -> None:
    before = table("id INT PRIMARY KEY, e ENUM('a')")
    before = replace(before, columns=(before.columns[0], replace(before.columns[1], by="index")))
    assert alter(before, f"MODIFY e {kind}").table.columns[1].by == by


@pytest.mark.parametrize("by", [None, "index"])
def test_a_text_that_was_an_enum_exchanges_its_rows(by: NamedBy | None) -> None:
    """An earlier version's definitions call it one by number, although its values are texts."""
    one, two = (table_after(each, ("ADD COLUMN e VARCHAR(9)",)) for each in (RANGE, UNPARTITIONED))
    one = replace(one, columns=(*one.columns[:-1], replace(one.columns[-1], by=by)))
    assert exchanged(one, two, "p1").low == "10"


@pytest.mark.parametrize("kind", ["enum", "set"])
def test_numbers_and_names_of_enums_without_elements_are_not_exchanged(kind: str) -> None:
    columns = Column(name="id", type="int", key=True), Column(name="e", type=kind, by="index")
    plain = table_from_wire("d", "t", columns)
    named = replace(plain, columns=(plain.columns[0], replace(plain.columns[1], by="name")))
    with pytest.raises(ApplyError, match="the two tables' columns or keys are not the same"):
        exchanged(replace(named, partitioning=RANGE.partitioning), plain, "p1")
    assert exchanged(replace(plain, partitioning=RANGE.partitioning), plain, "p1").low == "10"


@pytest.mark.parametrize("added", ["ADD COLUMN c INT NOT NULL DEFAULT 5", "ADD COLUMN c INT"])
def test_rows_keep_the_value_that_both_tables_got_or_null(added: str) -> None:
    one, two = table_after(RANGE, (added,)), table_after(UNPARTITIONED, (added,))
    assert exchanged(one, two, "p1").low == "10"
    assert exchanged(one, table_from_json(table_to_json(two)), "p1").low == "10"


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
        alter(RANGE, f"ADD COLUMN b BINARY(9999999999999) {default}")
