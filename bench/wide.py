"""The recorded table and its messages with more columns: nullable ones of four types, in turn."""

from __future__ import annotations

import json
from functools import lru_cache

from bench.recorded import recorded
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.script import tables_from_sql

COLUMNS = 10
"""Of the recorded table."""
DATABASE = "test"
_TYPES = (
    ("varchar(40)", "varchar", 12, "a text of some length"),
    ("bigint", "bigint", -5, "118298131398851786"),
    ("decimal(12,2)", "decimal", 3, "65889513.25"),
    ("datetime(3)", "datetime", 93, "2019-09-08 06:24:07.010"),
)


def create_statement(number: int, columns: int = COLUMNS) -> str:
    """CREATE TABLE of the benchmark's table of a number, qualified."""
    create = recorded("canal_json").create.replace("`sbtest1`", f"`{DATABASE}`.`sbtest{number}`")
    more = "".join(f"`{name}` {_TYPES[at][0]} DEFAULT NULL, " for name, at in _more(columns))
    return create.replace("PRIMARY KEY", f"{more}PRIMARY KEY", 1)


@lru_cache
def definitions(tables: int, columns: int = COLUMNS) -> tuple[Table, ...]:
    """The benchmark's table, so many times under names of its own."""
    return tuple(tables_from_sql(create_statement(number, columns), DATABASE)[0] for number in range(tables))


def message(value: bytes, columns: int = COLUMNS) -> bytes:
    """A recorded Canal-JSON message of a row with as many columns."""
    if columns == COLUMNS:
        return value
    content = json.loads(value)
    for name, at in _more(columns):
        _, content["mysqlType"][name], content["sqlType"][name], text = _TYPES[at]
        for image in (*(content["data"] or ()), *(content["old"] or ())):
            image[name] = text
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def _more(columns: int) -> list[tuple[str, int]]:
    """Names of the further columns, and the numbers of their types."""
    return [(f"x{number}", number % len(_TYPES)) for number in range(columns - COLUMNS)]
