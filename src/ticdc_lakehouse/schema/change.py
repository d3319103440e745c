"""What an ALTER TABLE makes of a table's definition and of the rows that it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import Family, same_type
from ticdc_codec.name_case import fold
from ticdc_lakehouse.schema.computed_default import pending_columns
from ticdc_lakehouse.schema.definition import ColumnDefinition, Key, Table, handle_key
from ticdc_lakehouse.schema.effect import (
    Changed,
    ColumnAdded,
    ColumnConverted,
    ColumnDropped,
    ColumnRenamed,
    Effect,
    KeyChanged,
)
from ticdc_lakehouse.schema.key import (
    added,
    free_name,
    spelled,
    unknown_index,
    with_foreign_key,
    without_covered,
    without_nulls,
)
from ticdc_lakehouse.schema.literal import zero
from ticdc_lakehouse.schema.partition_effects import add_partitions, drop_partitions, resize_hash
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
    Position,
    RenameColumn,
    RenameKey,
    ResizeHash,
    SetPartitioning,
)
from ticdc_lakehouse.schema.unwritten_rows import may_show_default, unknown_origin_default, with_origin_default

_Step = tuple[Table, tuple[Effect, ...]]


def change(table: Table, statement: AlterTable) -> Changed:
    """Returns the table after the statement, and what becomes of its rows.

    Names are compared as MySQL does, without regard to case. Raises ApplyError, with the reason, for what cannot be
    followed: a value that TiDB computed, rows of a partition that are unknown, a column that is not there.
    """
    effects: list[Effect] = []
    positions, is_new_key = _key_positions(table), False
    for action in _apart(_resolved(table, statement.actions)):
        before = table.key
        table, done = _act(table, action)
        effects.extend(done)
        is_new_key |= isinstance(action, AddKey) and table.key != before
    key = table.key if table.keys is None else handle_key(table.columns, table.keys)
    # A key's text has the values in the order of the columns' names (``ticdc_codec.event.key_order``): a RENAME COLUMN
    # may change it.
    if is_new_key or key != table.key or positions != _key_positions(table):
        table = replace(table, key=key)
        _check_known(table, key)
        effects.append(KeyChanged(key=key))
    return Changed(table=table, effects=tuple(effects))


def renumbered(table: Table, statement: AlterTable) -> Table:
    """Returns the table with the names that a statement defines for the numbers of an ENUM or SET, and nothing else of
    it: rows that follow have only the numbers."""
    for given in _given(statement):
        table = replace(table, columns=tuple(_with_names(column, given) for column in table.columns))
    return table


def undeclared_retyped(table: Table, statement: AlterTable) -> str | None:
    """Returns the first column whose type messages do not declare and to which a statement gives another one: rows that
    follow are read by it. None if there is none."""
    types = {fold(column.name): column.type for column in table.columns if column.open}
    other = (c.name for c in _given(statement) if fold(c.name) in types and not same_type(types[fold(c.name)], c.type))
    return next(other, None)


def _given(statement: AlterTable) -> list[ColumnDefinition]:
    """Returns the columns that a statement describes."""
    return [action.column for action in statement.actions if isinstance(action, AddColumn | ModifyColumn)]


def _with_names(column: ColumnDefinition, given: ColumnDefinition) -> ColumnDefinition:
    is_same = _same(column.name, given.name) and column.type.family is given.type.family
    known = column.type.elements if is_same and column.by != "name" else ()
    return replace(column, type=given.type) if known not in ((), given.type.elements) else column


def _resolved(table: Table, actions: Sequence[Action]) -> list[Action]:
    """Returns the actions as TiDB takes them when the statement begins: without those that IF EXISTS or IF NOT EXISTS
    makes idle, and keys with their names, which the other actions do not change; foreign keys likewise."""
    if (unknown := unknown_index(table, actions)) is not None:
        raise ApplyError(
            f"index `{unknown}`: the table's definition has none of this name, and the handle key may depend on it: "
            "skip it if it is no unique key"
        )
    return [_named(table, action) for action in actions if not _is_idle(table, action)]


def _is_idle(table: Table, action: Action) -> bool:
    match action:
        case AddColumn(column=column, lenient=True):
            return _has_column(table, column.name)
        case DropColumn(name=name, lenient=True) | ModifyColumn(old=name, lenient=True):
            return not _has_column(table, name)
        case AddKey(made=False):
            return True
        case AddKey(index=str(index), lenient=True):
            return any(_same(key.name, index) for key in table.keys or ())
        case DropKey(index=index, lenient=True):
            return all(not _same(key.name, index) for key in table.keys or ())
        case _:
            return False


def _named(table: Table, action: Action) -> Action:
    if isinstance(action, AddForeignKey):
        return without_covered(action, _indexes(table))
    if not isinstance(action, AddKey) or action.index or action.primary or table.keys is None:
        return action
    return replace(action, index=free_name(table.keys, next(iter(action.columns), action.first or action.called)))


def _has_column(table: Table, name: str) -> bool:
    return any(_same(name, column.name) for column in table.columns)


def _may_be_virtual(table: Table, *names: str) -> bool:
    """True if the table has no such columns and they may be virtual: its definition is from rows, which do not have
    those."""
    return table.keys is None and not any(_has_column(table, name) for name in names)


def _indexes(table: Table) -> list[Key]:
    """Returns the keys and indexes that TiDB looks through for a foreign key of ALTER TABLE: a clustered primary key of
    one integer column is not among them."""
    integers = {fold(column.name) for column in table.columns if column.type.family is Family.INTEGER}
    return [k for k in table.keys or () if not (k.primary and len(k.columns) == 1 and fold(k.columns[0]) in integers)]


def _key_positions(table: Table) -> list[int]:
    """Returns the position in the key of each value's column, in the order of the values in a key's text."""
    return [table.key.index(name) for name in table.key_text_columns]


def _check_known(table: Table, key: tuple[str, ...]) -> None:
    """Raises ApplyError for a key of which stored rows do not have all values."""
    for column in pending_columns(table):
        if any(_same(column.name, name) for name in key):
            raise ApplyError(f"key column `{column.name}`: its value in old rows is not known yet")


def _act(table: Table, action: Action) -> _Step:
    match action:
        case AddColumn():
            return _add_column(table, action)
        case DropColumn():
            return _drop_column(table, action)
        case RenameColumn():
            return _rename_column(table, action)
        case ModifyColumn():
            return _modify_column(table, action)
        case AddKey() | AddForeignKey() | DropKey() | RenameKey():
            return _change_key(table, action), ()
        case DropPartitions():
            return drop_partitions(table, action)
        case AddPartitions():
            return add_partitions(table, action), ()
        case ResizeHash(by=by):
            return resize_hash(table, by), ()
        case SetPartitioning(partitioning=partitioning):
            return replace(table, partitioning=partitioning), ()


def _add_column(table: Table, action: AddColumn) -> _Step:
    column = action.column
    if _has_column(table, column.name):
        if action.lenient:  # another action of the statement added it
            return table, ()
        raise ApplyError(f"ADD COLUMN `{column.name}`: the table has that column already")
    effects = () if column.virtual else (ColumnAdded(column=column, value=_first_value(action)),)
    column = replace(column, origin_default=column.origin_default or _origin_default(action, effects))
    columns = _placed(table, table.columns, column, action.position, len(table.columns))
    return replace(table, columns=columns), effects


def _origin_default(action: AddColumn, effects: tuple[ColumnAdded, ...]) -> str | None:
    if action.column.pending is not None:
        return unknown_origin_default(action.column.pending.since)
    return action.default.origin if action.default is not None else effects[0].value if effects else None


def _first_value(action: AddColumn) -> str | None:
    """Returns what rows have in the column that were there before it."""
    column = action.column
    if action.computed is not None:
        raise ApplyError(f"ADD COLUMN `{column.name}`: its value in old rows is not known: {action.computed.reason}")
    if action.default is not None:
        return action.default.value
    try:
        return None if column.nullable else zero(column.type)
    except ValueError:
        raise ApplyError(
            f"ADD COLUMN `{column.name}`: its value in old rows is not known: {column.type.text} NOT NULL, no DEFAULT"
        ) from None


def _drop_column(table: Table, action: DropColumn) -> _Step:
    if action.lenient and not _has_column(table, action.name):  # another action of the statement dropped it
        return table, ()
    if _may_be_virtual(table, action.name):
        return table, ()
    at = _position(table, action.name, "DROP COLUMN")
    column = table.columns[at]
    if table.keys is None and any(_same(action.name, name) for name in table.key):
        raise ApplyError(
            f"DROP COLUMN `{action.name}`: it belongs to the key, and the table's other keys are not known"
        )
    keys = None if table.keys is None else tuple(_keys_without(table.keys, column.name))
    columns = table.columns[:at] + table.columns[at + 1 :]
    return replace(table, columns=columns, keys=keys), () if column.virtual else (ColumnDropped(column=column),)


def _keys_without(keys: tuple[Key, ...], column: str) -> Iterator[Key]:
    """Yields the keys without the column. A key goes with its last column."""
    for key in keys:
        names = tuple(name for name in key.columns if not _same(name, column))
        if names or not key.columns:
            yield replace(key, columns=names)


def _rename_column(table: Table, action: RenameColumn) -> _Step:
    if _may_be_virtual(table, action.old, action.new):
        return table, ()
    at = _position(table, action.old, "RENAME COLUMN")
    column = table.columns[at]
    if any(_same(action.new, other.name) for other in table.columns if other is not column):
        raise ApplyError(f"RENAME COLUMN `{action.old}`: the table has a column `{action.new}` already")
    if column.name == action.new:
        return table, ()
    renamed = _renamed(table, column.name, action.new)
    columns = _replaced(table.columns, at, replace(column, name=action.new))
    effects = () if column.virtual else (ColumnRenamed(old=column.name, new=action.new),)
    return replace(renamed, columns=columns), effects


def _renamed(table: Table, old: str, new: str) -> Table:
    """Returns the table whose keys and partitions have a column's new name."""

    def names(columns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if _same(name, old) else name for name in columns)

    keys, partitioning = table.keys, table.partitioning
    if keys is not None:
        keys = tuple(replace(key, columns=names(key.columns)) for key in keys)
    if partitioning is not None and partitioning.column is not None:
        partitioning = replace(partitioning, column=names((partitioning.column,))[0])
    return replace(table, key=names(table.key), keys=keys, partitioning=partitioning)


def _modify_column(table: Table, action: ModifyColumn) -> _Step:
    if action.column.virtual and _may_be_virtual(table, action.old, action.column.name):
        return table, ()
    at = _position(table, action.old, "MODIFY COLUMN")
    table, effects = _rename_column(table, RenameColumn(old=action.old, new=action.column.name))
    before = table.columns[at]
    primary = any(_same(before.name, name) for key in table.keys or () if key.primary for name in key.columns)
    nullable = action.column.nullable and not primary
    column = with_origin_default(before, action.column)
    by = before.by if column.has_names else None
    after = replace(
        column, by=by, open=before.open, declared=before.declared, pending=before.pending, nullable=nullable
    )
    columns = _placed(table, table.columns[:at] + table.columns[at + 1 :], after, action.position, at)
    if not after.virtual and not (before.sized and same_type(before.type, after.type)):
        shows_default = may_show_default(before, action.column, partitioned=table.partitioning is not None)
        effects = (*effects, ColumnConverted(before=before, after=after, may_show_default=shows_default))
    return replace(table, columns=columns), effects


def _change_key(table: Table, action: AddKey | AddForeignKey | DropKey | RenameKey) -> Table:
    """Adds, drops or renames a key. Where a table's keys are not known, only a primary key shows what the handle key
    is."""
    match action:
        case AddKey():
            return _add_key(table, action)
        case AddForeignKey():
            return with_foreign_key(table, action)
        case DropKey(index=index):
            if table.keys is None and _same(index, "PRIMARY"):
                raise ApplyError("DROP PRIMARY KEY: the table's other keys are not known")
            kept = _drop_or_rename_first(table.keys or (), index)
        case RenameKey(old=old, new=new):
            kept = _drop_or_rename_first(table.keys or (), old, new)
    return table if table.keys is None else replace(table, keys=kept)


def _drop_or_rename_first(keys: tuple[Key, ...], name: str, new: str | None = None) -> tuple[Key, ...]:
    """Returns the keys without the first one of a name, or with its ``new`` one: a table may have two (`keys_of`)."""
    for at, key in enumerate(keys):
        if _same(key.name, name):
            renamed = () if new is None else (replace(key, name=new),)
            return (*keys[:at], *renamed, *keys[at + 1 :])
    return keys


def _add_key(table: Table, action: AddKey) -> Table:
    if table.keys is None and not action.primary:
        return table
    # A primary key is called PRIMARY, whatever its name in the text.
    if not action.primary and any(_same(key.name, action.index or "") for key in table.keys or ()):
        if action.lenient or not action.unique:
            return table
        raise ApplyError(f"ADD KEY `{action.index}`: the table has a key of that name already")
    for name in action.columns:
        _position(table, name, "ADD KEY")
    if action.primary and any(key.primary for key in table.keys or ()):
        raise ApplyError("ADD PRIMARY KEY: the table has one already, so a DDL before this one is missing")
    key = spelled(action, table.columns)
    if table.keys is None:  # and stay so: an ADD PRIMARY KEY does not say which others there are
        return replace(table, key=handle_key(table.columns, added((), key)))
    return replace(table, columns=without_nulls(table.columns, key), keys=added(table.keys, key))


def _placed(
    table: Table, columns: tuple[ColumnDefinition, ...], column: ColumnDefinition, position: Position | None, at: int
) -> tuple[ColumnDefinition, ...]:
    """Returns the columns with one more: where ``position`` says, else at the place ``at``."""
    if position is not None and not (position.after is not None and _may_be_virtual(table, position.after)):
        names = [fold(other.name) for other in columns]
        if position.after is not None and fold(position.after) not in names:
            raise ApplyError(f"`{column.name}` goes AFTER `{position.after}`, and the table has no such column")
        at = 0 if position.after is None else names.index(fold(position.after)) + 1
    return (*columns[:at], column, *columns[at:])


def _replaced(columns: tuple[ColumnDefinition, ...], at: int, column: ColumnDefinition) -> tuple[ColumnDefinition, ...]:
    return (*columns[:at], column, *columns[at + 1 :])


def _position(table: Table, name: str, action: str) -> int:
    for at, column in enumerate(table.columns):
        if _same(column.name, name):
            return at
    raise ApplyError(f"{action}: the table has no column `{name}`")


def _same(one: str, other: str) -> bool:
    return fold(one) == fold(other)


def _apart(actions: Sequence[Action]) -> tuple[Action, ...]:
    """Returns the actions so that they can be done one after the other.

    In the text old names are those of the table before it. So a column whose name another action takes before its own
    action is reached goes out of the way first: ``RENAME COLUMN a TO b, RENAME COLUMN b TO a``.

    TiDB keeps a name that would change only in case (``RenameColumn`` of its executor); CHANGE and MODIFY
    spell it anew.
    """
    actions = [a for a in actions if not (isinstance(a, RenameColumn) and _same(a.old, a.new))]
    aside: dict[str, str] = {}
    for at, action in enumerate(actions):
        name = _name_taken(action)
        later = {_name_left(other) for other in actions[at + 1 :]}
        if name is not None and name in later and name not in {_name_left(other) for other in actions[:at]}:
            aside[name] = f"_ticdc_aside_{at}"
    moves = [RenameColumn(old=old, new=new) for old, new in aside.items()]
    return (*moves, *(_of_moved(action, aside) for action in actions))


def _name_taken(action: Action) -> str | None:
    match action:
        case AddColumn(column=column):
            return fold(column.name)
        case RenameColumn(new=new):
            return fold(new)
        case ModifyColumn(column=column, old=old) if not _same(old, column.name):
            return fold(column.name)
        case _:
            return None


def _name_left(action: Action) -> str | None:
    match action:
        case DropColumn(name=name):
            return fold(name)
        case RenameColumn(old=old):
            return fold(old)
        case ModifyColumn(column=column, old=old) if not _same(old, column.name):
            return fold(old)
        case _:
            return None


def _of_moved(action: Action, aside: dict[str, str]) -> Action:
    match action:
        case DropColumn(name=name):
            return replace(action, name=aside.get(fold(name), name))
        case RenameColumn(old=old) | ModifyColumn(old=old):
            return replace(action, old=aside.get(fold(old), old))
        case _:
            return action
