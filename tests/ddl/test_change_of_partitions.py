"""What an ALTER TABLE makes of a definition's partitions, and which rows it removes or exchanges."""

from __future__ import annotations

from dataclasses import replace

import pytest
from altered import COLUMNS, PLAIN, alter, table

from ticdc_codec.errors import ApplyError
from ticdc_codec.event import Column, NamedBy
from ticdc_lakehouse.schema.definition import Table, table_from_json, table_from_wire, table_to_json
from ticdc_lakehouse.schema.effect import Changed, RowsRemoved
from ticdc_lakehouse.schema.partition_effects import exchanged

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


def test_bounds_may_lie_outside_the_type_of_their_column() -> None:
    """TiDB compares them as 64 bits."""
    names = "p0 VALUES LESS THAN (100), PARTITION p1 VALUES LESS THAN (1000), PARTITION p2 VALUES LESS THAN MAXVALUE"
    small = table("a TINYINT", f"PARTITION BY RANGE (a) (PARTITION {names})")
    assert gone(small, "TRUNCATE PARTITION p1") == [("a", None, "100", "1000", None)]
    assert gone(small, "DROP PARTITION p2") == [("a", None, "1000", None, None)]
    plain = alter(small, "REMOVE PARTITIONING").table
    assert exchanged(small, plain, "p1").high == "1000"
    listed = table("a TINYINT UNSIGNED", "PARTITION BY LIST (a) (PARTITION p VALUES IN (-1, 300, NULL))")
    assert gone(listed, "DROP PARTITION p") == [("a", None, None, None, ("-1", "300", None))]


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
