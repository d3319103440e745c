"""What comments of columns in the lake say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ticdc_lakehouse.gold.live_table import tags_sql
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.sql.typed_columns import typed_columns


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("id BIGINT PRIMARY KEY, v INT", ["BIGINT, key", "INT"]),
        (
            "A INT, B DATE, PRIMARY KEY (b, a)",
            ["INT, key 2 of 2", "DATE (zero and partial dates: see _ticdc_irregular), key 1 of 2"],
        ),
        ("v INT NOT NULL, UNIQUE KEY u (v)", ["INT, key"]),
        ("v INT", ["INT"]),
    ],
)
def test_the_comment_of_a_key_column_says_so(declared: str, expected: list[str]) -> None:
    (table,) = tables_from_sql(f"CREATE TABLE d.t ({declared});", source="test")
    assert [column.comment for column in typed_columns(table)] == expected


def test_tags_are_feed_and_database() -> None:
    (table,) = tables_from_sql("CREATE TABLE d.t (v INT);", source="test")
    assert tags_sql("`c`.`live`.`f_d_t`", "f", replace(table, database="d'" + "x" * 300)) == (
        f"ALTER TABLE `c`.`live`.`f_d_t` SET TAGS ('ticdc_feed' = 'f', 'ticdc_database' = 'd\\'{'x' * 254}')"
    )
