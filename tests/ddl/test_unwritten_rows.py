"""MODIFYs after which rows that do not store the column may show another value (`unwritten_rows`)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from altered import alter, table

from ticdc_lakehouse.schema.effect import ColumnConverted
from ticdc_lakehouse.schema.unwritten_rows import UNKNOWN_ORIGIN_DEFAULT, unknown_origin_default


def origin_default(*alters: str) -> tuple[str | None, bool]:
    """Of the last column, after some ALTER TABLEs, and whether it may be NULL instead."""
    known = table("id INT PRIMARY KEY, c BIGINT, s CHAR(9)")
    for text in alters:
        known = alter(known, text).table
    return known.columns[-1].origin_default, known.columns[-1].may_be_rewritten


def may_show_default(columns: str, *alters: str, options: str = "") -> bool:
    """What the last of some ALTER TABLEs says."""
    before = table(f"id INT PRIMARY KEY{columns and ', '}{columns}", options)
    effects = ()
    for text in alters:
        changed = alter(before, text)
        before, effects = changed.table, changed.effects
    (converted,) = (effect for effect in effects if isinstance(effect, ColumnConverted))
    return converted.may_show_default


@pytest.mark.parametrize(
    "alters",
    [
        ("MODIFY c INT DEFAULT 7",),
        ("MODIFY c INT NOT NULL",),
        ("CHANGE c d INT DEFAULT 7",),
        ("MODIFY s VARCHAR(10) DEFAULT 'x'",),
        ("MODIFY s CHAR(20) DEFAULT 'x'",),
        ("ADD COLUMN a BIGINT NOT NULL DEFAULT 5", "MODIFY a INT NOT NULL"),
        ("ADD COLUMN a BIGINT NOT NULL DEFAULT 5", "MODIFY a INT NOT NULL DEFAULT 6"),
        ("ADD COLUMN a BIGINT DEFAULT 5", "MODIFY a INT"),
        ("ADD COLUMN a VARCHAR(20) DEFAULT 'x'", "MODIFY a VARCHAR(10) DEFAULT 'y'"),
        ("ADD COLUMN a VARCHAR(20) DEFAULT 'x'", "MODIFY a VARCHAR(10) DEFAULT (UUID())"),
        ("ADD COLUMN a CHAR(2) NOT NULL DEFAULT ' '", "MODIFY a VARCHAR(10) NOT NULL DEFAULT ' '"),
        ("ADD COLUMN a CHAR(9) DEFAULT 'ab  '", "MODIFY a TEXT"),
        ("ADD COLUMN a CHAR(9) DEFAULT 'ab'", "MODIFY a VARCHAR(10)"),
        ("ADD COLUMN a CHAR(9) DEFAULT 'ab  '", "MODIFY a VARBINARY(10)"),
        ("ADD COLUMN a BIGINT DEFAULT 5", "MODIFY a VARCHAR(20)", "MODIFY a VARCHAR(10) DEFAULT '5'"),
        ("ADD COLUMN a BINARY(2) DEFAULT 'x'", "MODIFY a VARCHAR(20)", "MODIFY a VARCHAR(10) DEFAULT '7800'"),
        ("ADD COLUMN a BINARY(2) DEFAULT x'ff'", "MODIFY a VARCHAR(9)", "MODIFY a VARCHAR(8) DEFAULT (UUID())"),
        ("ADD COLUMN a VARBINARY(2) DEFAULT x'ff'", "MODIFY a VARCHAR(9)", "MODIFY a VARCHAR(8) DEFAULT (UUID())"),
        ("ADD COLUMN a BINARY(2) DEFAULT x'ff'", "MODIFY a CHAR(2)", "MODIFY a TEXT"),
        ("ADD COLUMN a BIGINT DEFAULT 5", "MODIFY a INT DEFAULT 5", "MODIFY a SMALLINT DEFAULT 5"),
    ],
)
def test_rows_may_show_another_default(alters: tuple[str, ...]) -> None:
    assert may_show_default("c BIGINT, s VARCHAR(20)", *alters)


def test_a_char_whose_default_is_not_known_may_show_spaces() -> None:
    """As after ADD COLUMN … DEFAULT (date_format(now(), '%b  ')): its value may end with spaces."""
    known = alter(table("id INT PRIMARY KEY, c BIGINT"), "ADD COLUMN s CHAR(9) DEFAULT 'ab'").table
    added = replace(known.columns[-1], origin_default=unknown_origin_default(77))
    (converted,) = alter(replace(known, columns=(*known.columns[:-1], added)), "MODIFY s TEXT").effects
    assert isinstance(converted, ColumnConverted)
    assert converted.may_show_default


@pytest.mark.parametrize(
    "alters",
    [
        ("MODIFY c INT",),
        ("MODIFY c INT UNSIGNED DEFAULT 7",),
        ("MODIFY c DECIMAL(10,2) DEFAULT 7",),
        ("MODIFY c VARCHAR(20) DEFAULT 'x'",),
        ("MODIFY s VARCHAR(30) DEFAULT 'x'",),
        ("MODIFY s TEXT",),
        ("ADD COLUMN a BIGINT NOT NULL DEFAULT 5", "MODIFY a INT NOT NULL DEFAULT '5'"),
        ("ADD COLUMN a BIGINT NOT NULL", "MODIFY a INT NOT NULL"),
        ("ADD COLUMN a INT NOT NULL DEFAULT 5", "MODIFY a BIGINT NOT NULL"),
        ("ADD COLUMN a CHAR(9) DEFAULT 'ab'", "MODIFY a TEXT"),
        ("ADD COLUMN a CHAR(9) DEFAULT 'ab'", "MODIFY a VARCHAR(10) DEFAULT 'ab'"),
        ("ADD COLUMN a CHAR(9) DEFAULT 'ab '", "MODIFY a CHAR(10) DEFAULT 'x'"),
    ],
)
def test_rows_show_what_they_did(alters: tuple[str, ...]) -> None:
    assert not may_show_default("c BIGINT, s VARCHAR(20)", *alters)


def test_rows_of_a_partitioned_table_are_written_again() -> None:
    partitions = "PARTITION BY HASH (id) PARTITIONS 4"
    assert not may_show_default("c BIGINT", "MODIFY c INT DEFAULT 7", options=partitions)
    assert may_show_default("c BIGINT", "ADD COLUMN a CHAR(2) DEFAULT ' '", "MODIFY a TEXT", options=partitions)


@pytest.mark.parametrize(
    ("alters", "expected"),
    [
        (("ADD COLUMN a INT DEFAULT 5", "MODIFY a BIGINT DEFAULT 6"), "5"),
        (("ADD COLUMN a DECIMAL(5,2) DEFAULT 1", "MODIFY a DECIMAL(5,2) DEFAULT 2"), "1.00"),
        (("ADD COLUMN a DOUBLE(5,2) DEFAULT 1", "MODIFY a DOUBLE(6,2) DEFAULT 2"), "1"),
        (("ADD COLUMN a DATETIME(1) DEFAULT '2020-01-02'", "MODIFY a DATETIME(3)"), "2020-01-02 00:00:00.0"),
        (("ADD COLUMN a ENUM('a','b') DEFAULT 'a'", "MODIFY a ENUM('a','b','c')"), "a"),
        (("ADD COLUMN a TINYTEXT NOT NULL", "MODIFY a CHAR(255)"), ""),
        (("ADD COLUMN a VARCHAR(9) DEFAULT 'x'", "MODIFY a TEXT"), "x"),
        (("ADD COLUMN a CHAR(9) DEFAULT 'x'", "MODIFY a CHAR(20) DEFAULT 'y'"), "x"),
        (("MODIFY s VARCHAR(9)",), None),
    ],
)
def test_a_type_with_all_values_keeps_the_origin_default(alters: tuple[str, ...], expected: str | None) -> None:
    assert origin_default(*alters) == (expected, False)


@pytest.mark.parametrize(
    "alters",
    [
        ("ADD COLUMN a INT DEFAULT 5", "MODIFY a INT UNSIGNED DEFAULT 6"),
        ("ADD COLUMN a INT DEFAULT 5", "MODIFY a VARCHAR(20) DEFAULT '6'"),
        ("ADD COLUMN a INT DEFAULT 5", "MODIFY a VARCHAR(20) DEFAULT (UUID())"),
        ("ADD COLUMN a DECIMAL(5,2) DEFAULT 1", "MODIFY a DECIMAL(6,2) DEFAULT 2"),
        ("ADD COLUMN a DOUBLE(5,2) DEFAULT 1", "MODIFY a DOUBLE DEFAULT 2"),
        ("ADD COLUMN a DATETIME(1) DEFAULT '2020-01-02'", "MODIFY a DATETIME"),
        ("ADD COLUMN a ENUM('a','b') DEFAULT 'a'", "MODIFY a ENUM('b','a')"),
        ("ADD COLUMN a BINARY(2) DEFAULT 'x'", "MODIFY a BINARY(3) DEFAULT 'y'"),
        ("ADD COLUMN a VARBINARY(2) DEFAULT 'x'", "MODIFY a BINARY(2) DEFAULT 'y'"),
        ("ADD COLUMN a BIGINT DEFAULT 5", "MODIFY a INT DEFAULT 5", "MODIFY a FLOAT"),
    ],
)
def test_no_row_lacks_a_column_with_other_values(alters: tuple[str, ...]) -> None:
    assert origin_default(*alters) == (None, False)


@pytest.mark.parametrize(
    ("alters", "expected"),
    [
        (("ADD COLUMN a INT DEFAULT 5", "MODIFY a SMALLINT DEFAULT 5"), "5"),
        (("ADD COLUMN a INT DEFAULT 5", "MODIFY a SMALLINT DEFAULT 5", "MODIFY a INT"), "5"),
        (("ADD COLUMN a INT DEFAULT 5", "MODIFY a SMALLINT DEFAULT 6"), None),
        (("ADD COLUMN a INT DEFAULT 5", "MODIFY a SMALLINT"), None),
        (("ADD COLUMN a VARCHAR(9) DEFAULT 'x'", "MODIFY a CHAR(20) DEFAULT 'x'"), "x"),
        (("ADD COLUMN a CHAR(9) DEFAULT 'x'", "MODIFY a VARCHAR(9) DEFAULT 'x'"), "x"),
        (("ADD COLUMN a CHAR(9) DEFAULT 'x'", "MODIFY a VARCHAR(9)"), None),
        (("ADD COLUMN a CHAR(9) DEFAULT 'x'", "MODIFY a VARBINARY(9)"), "78"),
        (("ADD COLUMN a BINARY(2) DEFAULT 'x'", "MODIFY a VARCHAR(2)"), "x\0"),
        (("ADD COLUMN a BINARY(2) DEFAULT x'ff'", "MODIFY a VARCHAR(2)"), UNKNOWN_ORIGIN_DEFAULT),
        (("MODIFY s VARCHAR(9) DEFAULT 'x'",), None),
    ],
)
def test_version_and_mode_decide_whether_rows_are_written(alters: tuple[str, ...], expected: str | None) -> None:
    assert origin_default(*alters) == (expected, True)
