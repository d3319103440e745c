"""Keys that gold writes itself, and ranges that it takes from keys: their texts have the order of the wire's.

A table's key may name its columns in another order than its messages list them.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold import key_range
from ticdc_lakehouse.gold.altered_rows import AlteredRows, with_new_keys
from ticdc_lakehouse.gold.step_changes import row_keys_sql
from ticdc_lakehouse.planning.steps import AlterRows, MergeRows
from ticdc_lakehouse.planning.window import RowGroup
from ticdc_lakehouse.schema.script import tables_from_sql

[TABLE] = tables_from_sql("CREATE TABLE d.t (a INT, z INT, v INT, PRIMARY KEY (z, a))")


class _Spark:
    """Answers each query with one row and keeps its text."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def sql(self, query: str) -> Any:
        self.queries.append(query)
        return SimpleNamespace(collect=lambda: [{"numFiles": 100, "low": "5", "high": "7", "other": 0}])


def _rows(*, keyed: bool) -> MergeRows:
    group = RowGroup(
        name=TABLE.name,
        columns=TABLE.described,
        is_upsert=True,
        handle_only=False,
        keyed=keyed,
        first=1,
        last=2,
        rows=1,
    )
    return MergeRows(table=TABLE, after=0, through=9, groups=(group,))


def _lake(spark: _Spark) -> Lake:
    return cast(Lake, SimpleNamespace(spark=spark, checkpoints="memory", table=lambda _, name: name))


def test_key_of_a_definition_is_in_the_order_of_names() -> None:
    key, _ = row_keys_sql(_rows(keyed=False), "UTC")
    assert key.index("`a`") < key.index("`z`")


def test_the_range_of_the_first_key_column_is_that_of_its_values() -> None:
    """Of another column's, stored rows would not be found, and would be there twice."""
    spark = _Spark()
    found = key_range.key_range(_lake(spark), "t", _rows(keyed=True), "changes")
    within = "BETWEEN CAST('5' AS INT) AND CAST('7' AS INT)"
    assert found.of_stored == f"AND (t.`z` {within})"
    assert found.of_changes == f"AND try_cast(get_json_object(s._ticdc_key, '$[1]') AS INT) {within}"
    assert "get_json_object(_ticdc_key, '$[1]')" in spark.queries[-1]


def test_rows_keep_their_keys_where_a_table_has_none_any_more() -> None:
    """All of them would have the text of no values, as if they were one row."""
    rows = AlteredRows(query="SELECT * FROM t", columns=("a", "_ticdc_key"), rekeyed=True)
    keyless = replace(TABLE, key=(), keys=())
    made = with_new_keys(_lake(_Spark()), rows, AlterRows(commit_ts=5, query="", effects=(), table=keyless), "UTC")
    assert made.query == "SELECT `a` AS `a`, `_ticdc_key` AS `_ticdc_key` FROM (SELECT * FROM t)"
    assert not made.same, "the table is written again: a key's column, by which it is clustered, may go later"
