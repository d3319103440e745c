"""The DDLs of the recorded streams give, at every watermark, the tables that TiDB had."""

from __future__ import annotations

import pytest
from catalog_walk import STREAMS, created, walk

from ticdc_codec.mysql_type import parse_type, same_type
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName


@pytest.mark.parametrize("stream", STREAMS)
def test_tables_have_tidbs_columns_at_every_watermark(stream: str) -> None:
    for answer, tables in walk(stream):
        assert {f"{database}.{table}" for database, table in tables} == answer["tables"].keys()
        for name, expected in answer["tables"].items():
            table = tables[TableName(*name.split(".", maxsplit=1))]
            assert_columns(table, expected["columns"])
            assert_same(table, created(name, expected["create"]))


def assert_columns(table: Table, expected: list[tuple[str, str, bool, str]]) -> None:
    """The columns as SHOW COLUMNS describes them: name, type, whether NULL may be, PRI of a primary key."""
    assert [(c.name, c.nullable) for c in table.columns] == [(name, nullable) for name, _, nullable, _ in expected]
    for column, (_, kind, _, _) in zip(table.columns, expected, strict=True):
        assert same_type(column.type, parse_type(kind)), column
    primary = {name for name, _, _, key in expected if key == "PRI"}
    assert not primary or set(table.key) == primary


def assert_same(table: Table, shown: Table) -> None:
    """The keys and partitions as SHOW CREATE TABLE has them."""
    assert (table.key, table.keys, table.partitioning) == (shown.key, shown.keys, shown.partitioning)
    assert [c.virtual for c in table.columns] == [c.virtual for c in shown.columns]
