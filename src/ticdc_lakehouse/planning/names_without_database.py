"""DDLs that write a table's name without its database: which tables they may mean, and how those are blocked."""

from __future__ import annotations

from collections.abc import Sequence

from ticdc_lakehouse.planning.blocking import ambiguous, is_ambiguous_at
from ticdc_lakehouse.planning.stop_reason import StopKind
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.planning.window_tables import WindowTables
from ticdc_lakehouse.schema.names import TableName


def possible_tables(tables: WindowTables, ddl: DdlEvent, unqualified: TableName, other: TableName) -> list[TableName]:
    """Returns the tables, of any database, that a DDL may mean by a name without one: those that do not include it yet,
    except the ``other`` that it names."""
    existing = tables.builders.named_in_any_database(unqualified.table)
    names = dict.fromkeys(b.name for b in existing if b.dropped_at is None and not b.includes(ddl))
    return [name for name in names if name != other]


def is_any_ambiguous(tables: WindowTables, ddl: DdlEvent, names: Sequence[TableName]) -> bool:
    """True if one of the tables is blocked because an earlier DDL may mean another: its name since is uncertain."""
    return any(is_ambiguous_at(builder, ddl) for builder in tables.affected(ddl, names))


def block_ambiguous(
    tables: WindowTables, ddl: DdlEvent, unqualified: TableName, candidates: Sequence[TableName], other: TableName
) -> None:
    """Blocks the candidates and the other table that the DDL names. A candidate that is blocked before gets this
    reason instead of its own: the next windows may not find the others any more."""
    stop = ambiguous(ddl, unqualified)
    tables.block_named(ddl, [*candidates, other], stop)
    for builder in tables.affected(ddl, candidates):
        if builder.stop is not None and builder.stop.kind is not StopKind.AMBIGUOUS_TABLE:
            builder.stop = stop
