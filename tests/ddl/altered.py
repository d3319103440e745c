"""A table by its CREATE TABLE, and what an ALTER TABLE makes of it."""

from __future__ import annotations

from ticdc_lakehouse.schema.change import change
from ticdc_lakehouse.schema.definition import Table, table_from_json, table_to_json
from ticdc_lakehouse.schema.effect import Changed
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.schema.statement import AlterTable

COLUMNS = "`id` int(11) NOT NULL, `Name` varchar(20), n int(11) NOT NULL, v int AS (n) VIRTUAL"


def table(entries: str, options: str = "") -> Table:
    return tables_from_sql(f"CREATE TABLE d.t ({entries}) {options}")[0]


def alter(before: Table, text: str) -> Changed:
    (statement,) = read_ddl(f"ALTER TABLE d.t {text}", None, None)
    assert isinstance(statement, AlterTable), statement
    changed = change(before, statement)
    assert table_from_json(table_to_json(changed.table)) == changed.table
    return changed


PLAIN = table(f"{COLUMNS}, PRIMARY KEY (id), UNIQUE KEY u (n)")
