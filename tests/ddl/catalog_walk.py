"""A catalog walked along recorded DDLs: what tables there are, and how they look, at each watermark.

``tests/data/ddl/<stream>.jsonl.gz`` holds, of a stream of ``../shared/streams``, the tables at its start, every DDL of
the Canal-JSON file in order of arrival, and every answer without its rows.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ticdc_lakehouse.schema.change import change
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.schema.statement import (
    AlterTable,
    CreateTable,
    CreateTableLike,
    DropDatabase,
    DropTables,
    NoChange,
    RenameTables,
    Statement,
    TruncateTable,
)

FOLDER = Path(__file__).parent.parent / "data" / "ddl"
STREAMS = ("tiflow-ddl", "ticdc-ddl")


@lru_cache
def recorded(stream: str) -> list[dict[str, Any]]:
    """The lines of a stream's file."""
    with gzip.open(FOLDER / f"{stream}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def created(name: str, create: str) -> Table:
    """A table from ``database.table`` and its CREATE TABLE text."""
    return tables_from_sql(create, name.split(".", maxsplit=1)[0])[0]


@dataclass
class Catalog:
    """Tables by name."""

    tables: dict[TableName, Table] = field(default_factory=dict)

    def add(self, name: TableName, table: Table) -> None:
        self.tables[name] = replace(table, database=name[0], table=name[1])

    def apply(self, statement: Statement) -> None:
        match statement:
            case CreateTable(table=table):
                assert table.name not in self.tables
                self.add(table.name, table)
            case CreateTableLike(name=name, source=source):
                self.add(name, self.tables[source])
            case AlterTable(name=name):
                self.add(name, change(self.tables[name], statement).table)
            case RenameTables(pairs=pairs):
                for old, new in pairs:
                    assert new not in self.tables
                    self.add(new, self.tables.pop(old))
            case DropTables(names=names):
                for name in names:
                    del self.tables[name]
            case DropDatabase(database=database):
                self.tables = {name: table for name, table in self.tables.items() if name[0] != database}
            case _:
                assert isinstance(statement, TruncateTable | NoChange), statement


def walk(stream: str) -> Iterator[tuple[dict[str, Any], dict[TableName, Table]]]:
    """Each answer with the tables that the DDLs up to its watermark give."""
    lines = recorded(stream)
    catalog = Catalog()
    for name, create in lines[0]["tables"].items():
        catalog.add(TableName(*name.split(".", maxsplit=1)), created(name, create))
    seen = {(line["commit_ts"], line["query"]): line for line in reversed(lines) if line["kind"] == "ddl"}
    arrived = [line for line in lines if line["kind"] == "ddl" and seen[line["commit_ts"], line["query"]] is line]
    pending = sorted(arrived, key=lambda line: line["commit_ts"])
    for answer in (line for line in lines if line["kind"] == "answer"):
        while pending and pending[0]["commit_ts"] <= answer["watermark"]:
            ddl = pending.pop(0)
            for statement in read_ddl(ddl["query"], ddl["database"], ddl["table"]):
                catalog.apply(statement)
        yield answer, dict(catalog.tables)
