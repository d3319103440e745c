"""Shows if a table already has what an ALTER TABLE makes of it.

An export that is taken just before a DDL's commit_ts has the DDL's effect: TiDB shows a new schema some milliseconds
before the commit_ts that TiCDC sends (up to a third of a second was measured).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ticdc_codec.mysql_type import same_type
from ticdc_codec.name_case import fold
from ticdc_lakehouse.schema.definition import ColumnDefinition, Key, Table
from ticdc_lakehouse.schema.key import is_covered
from ticdc_lakehouse.schema.statement import (
    Action,
    AddColumn,
    AddForeignKey,
    AddKey,
    AddPartitions,
    AlterTable,
    DropColumn,
    DropKey,
    DropPartitions,
    ModifyColumn,
    RenameColumn,
    RenameKey,
    ResizeHash,
    SetPartitioning,
)


def is_done(table: Table, statement: AlterTable) -> bool:
    """True if each action of the statement has nothing left to do."""
    return all(_is_done(table, action) for action in statement.actions)


def must_not_repeat(statement: AlterTable) -> bool:
    """True if it must not be done to a table that may have rows from after it: done again, it may remove other rows, or
    undo a swap of names."""
    return _removes_other_rows(statement) or _swaps_names(statement)


def _removes_other_rows(statement: AlterTable) -> bool:
    """True if it is a TRUNCATE PARTITION, or changes the number of HASH partitions: done twice, it or a TRUNCATE after
    it may take other rows away."""
    truncates = any(isinstance(action, DropPartitions) and action.keep for action in statement.actions)
    return truncates or any(isinstance(action, ResizeHash) for action in statement.actions)


def _swaps_names(statement: AlterTable) -> bool:
    """True if a column gets the name that another one leaves: done twice, a swap of names is undone."""
    renames = [pair for action in statement.actions if (pair := _renamed(action)) is not None]
    return not {old for old, _ in renames}.isdisjoint({new for _, new in renames})


def _renamed(action: Action) -> tuple[str, str] | None:
    match action:
        case RenameColumn(old=old, new=new) if fold(old) != fold(new):
            return fold(old), fold(new)
        case ModifyColumn(old=old, column=column) if fold(old) != fold(column.name):
            return fold(old), fold(column.name)
        case _:
            return None


def adds_unnamed_key(statement: AlterTable) -> bool:
    """True if it adds a key or an index without a name: done twice, it is there under two names."""
    keys = (action for action in statement.actions if isinstance(action, AddKey))
    return any(key.index is None and not key.primary and key.made for key in keys)


def _is_done(table: Table, action: Action) -> bool:
    match action:
        case AddColumn(column=column):
            return _has(table, column)
        case DropColumn(name=name):
            return _column(table, name) is None
        case RenameColumn(old=old, new=new):
            return _column(table, new) is not None and (fold(old) == fold(new) or _column(table, old) is None)
        case ModifyColumn(old=old, column=column):
            renames = fold(old) != fold(column.name)
            return _has(table, column) and not (renames and _column(table, old))
        case AddKey() | AddForeignKey() | DropKey() | RenameKey():
            return _is_key_done(table.keys or (), action)
        case DropPartitions(names=names):
            return _partitions(table).isdisjoint(map(fold, names))
        case AddPartitions():
            return _has_added(table, action)
        case ResizeHash():
            return False
        case SetPartitioning(partitioning=partitioning):
            return table.partitioning == partitioning


def _is_key_done(keys: Sequence[Key], action: AddKey | AddForeignKey | DropKey | RenameKey) -> bool:
    names = {fold(key.name) for key in keys}
    match action:
        case AddForeignKey():
            return is_covered(action, keys)
        case AddKey(made=False):
            return True
        case AddKey(index=None, primary=False):
            return any(_is_unnamed(key, action) for key in keys)
        case AddKey(index=index, primary=primary):
            return fold("PRIMARY" if primary else index or "") in names
        case DropKey(index=index):
            return fold(index) not in names
        case RenameKey(old=old, new=new):
            return fold(new) in names and fold(old) not in names


def _is_unnamed(key: Key, added: AddKey) -> bool:
    """True if it is the added key, under a name that TiDB generates for one without."""
    first = next(iter(added.columns), added.first or added.called)
    is_name = re.fullmatch(rf"{re.escape(fold(first))}(_\d+)?", fold(key.name)) is not None
    return is_name and key.unique == added.unique and [*map(fold, key.columns)] == [*map(fold, added.columns)]


def _column(table: Table, name: str) -> ColumnDefinition | None:
    return next((column for column in table.columns if fold(column.name) == fold(name)), None)


def _has(table: Table, column: ColumnDefinition) -> bool:
    found = _column(table, column.name)
    return found is not None and same_type(found.type, column.type)


def _has_added(table: Table, added: AddPartitions) -> bool:
    if added.replaces:  # a REORGANIZE may keep a name and change the bound
        return table.partitioning is not None and {*added.partitions} <= {*table.partitioning.partitions}
    return {fold(partition.name) for partition in added.partitions} <= _partitions(table)


def _partitions(table: Table) -> set[str]:
    return {fold(p.name) for p in table.partitioning.partitions} if table.partitioning is not None else set()
