"""One DDL about table d.t, read."""

from __future__ import annotations

from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import Statement

T = ("d", "t")


def read(query: str, table: str | None = "t") -> Statement:
    """The only statement of a query."""
    (statement,) = read_ddl(query, "d", table)
    return statement
