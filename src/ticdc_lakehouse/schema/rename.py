"""RENAME TABLE of several tables. TiCDC sends one DDL for each, all of one commit_ts, and each to the topic of its old
name (wire.md 2.4 and 8.6): from one topic they come in TiDB's order, from several in none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import RenameTables


def possible_order(renames: Sequence[RenameTables], names: Iterable[TableName]) -> list[int]:
    """The numbers of the renames in an order in which each finds a table of its old name and the new name free, given
    the ``names`` that tables have before; those that never do, as they come."""
    names_in_use = set(names)
    left, order = [*range(len(renames))], []
    while left:
        number = next((number for number in left if _is_possible(renames[number], names_in_use)), left[0])
        left.remove(number)
        order.append(number)
        names_in_use = _afterwards(renames[number], names_in_use)
    return order


def _is_possible(rename: RenameTables, names_in_use: set[TableName]) -> bool:
    for old, new in rename.pairs:
        free = new not in names_in_use or new == old
        if old not in names_in_use or not free:
            return False
        names_in_use = _afterwards(RenameTables(pairs=((old, new),)), names_in_use)
    return True


def _afterwards(rename: RenameTables, names_in_use: set[TableName]) -> set[TableName]:
    for old, new in rename.pairs:
        names_in_use = names_in_use - {old} | {new}
    return names_in_use
