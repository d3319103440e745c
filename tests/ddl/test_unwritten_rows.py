"""MODIFYs after which rows that do not store the column may show another value (`unwritten_rows`)."""

from __future__ import annotations

import pytest
from altered import alter, table

from ticdc_lakehouse.schema.effect import ColumnConverted


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
    ],
)
def test_rows_may_show_another_default(alters: tuple[str, ...]) -> None:
    assert may_show_default("c BIGINT, s VARCHAR(20)", *alters)


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
