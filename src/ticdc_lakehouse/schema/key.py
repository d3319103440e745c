"""Keys and indexes as CREATE TABLE, ALTER TABLE and CREATE INDEX write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count

from ticdc_codec.name_case import fold
from ticdc_lakehouse.schema.definition import ColumnDefinition, Key, Table
from ticdc_lakehouse.schema.statement import (
    Action,
    AddForeignKey,
    AddKey,
    AlterTable,
    DropColumn,
    DropKey,
    ModifyColumn,
    RenameColumn,
    RenameKey,
)
from ticdc_lakehouse.schema.tokens import Tokens

_INDEXES = ("INDEX", "KEY", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR", "HYBRID")
_WORDS = (*_INDEXES, "PRIMARY", "UNIQUE", "CONSTRAINT", "FOREIGN", "CHECK")
_NOT_RESERVED = ("VECTOR", "COLUMNAR", "HYBRID")


def is_key(tokens: Tokens) -> bool:
    """True if a key, index or constraint comes next. A column may bear such a word as its name, those that are reserved
    in quotes."""
    return tokens.word() in _WORDS and (tokens.word() not in _NOT_RESERVED or tokens.word(1) in ("INDEX", "KEY"))


def read_key(tokens: Tokens) -> AddKey | AddForeignKey | None:
    """Passes a key, index or constraint up to a comma or the end; None for a CHECK without a name.

    Of ``CONSTRAINT x UNIQUE y`` TiDB takes the name x, unlike MySQL.
    """
    name = _read_constraint(tokens)
    if tokens.take("FOREIGN", "KEY"):
        return _read_foreign_key(tokens, name)
    word = tokens.take_any("PRIMARY", "UNIQUE", *_INDEXES)
    if not word:
        tokens.skip_until(",")
        return None if name is None else AddKey(primary=False, index=name, columns=(), unique=False, made=False)
    tokens.take_any("KEY", "INDEX")
    lenient = tokens.take("IF", "NOT", "EXISTS")
    index = _read_name(tokens)
    unique = word in ("PRIMARY", "UNIQUE")
    key = AddKey(
        primary=word == "PRIMARY",
        index=name or index,
        columns=(),
        unique=unique,
        lenient=lenient,
        made=word != "FULLTEXT",
    )
    return read_key_columns(tokens, replace(key, called="vector_index") if word == "VECTOR" else key)


def _read_foreign_key(tokens: Tokens, constraint: str | None) -> AddForeignKey:
    tokens.take("IF", "NOT", "EXISTS")  # TiDB refuses a second one all the same
    name = None if tokens.word() == "(" else tokens.name()
    columns = tuple(part.column_name() for part in tokens.brackets().parts())
    tokens.skip_until(",")
    return AddForeignKey(name=constraint or name, columns=columns)


def read_key_columns(tokens: Tokens, key: AddKey) -> AddKey:
    """Passes ``(column, …) options`` and returns ``key`` with its columns. One of expressions can be nobody's handle.

    Raises UnreadableError for a unique key of only some rows (``WHERE``): TiCDC may take it for the handle key.
    """
    parts = tokens.brackets().parts()
    tokens.skip_until(",", "WHERE", "PARTITION", "REMOVE")
    if key.unique and tokens.word() == "WHERE":
        raise tokens.unreadable("a key of all rows")
    if tokens.word() == "WHERE":
        tokens.skip_until(",")
    if not parts:
        raise tokens.unreadable("a key with columns")
    if any(part.word() == "(" for part in parts):
        return replace(key, unique=False, first=None if parts[0].word() == "(" else parts[0].column_name())
    return replace(key, columns=tuple(part.column_name() for part in parts))


def _read_constraint(tokens: Tokens) -> str | None:
    if not tokens.take("CONSTRAINT") or is_key(tokens):
        return None
    return tokens.name()


def _read_name(tokens: Tokens) -> str | None:
    name = None if tokens.word() in ("(", "USING", "TYPE") else tokens.name()
    if tokens.take_any("USING", "TYPE"):
        tokens.name()
    return name


def keys_of(made: Sequence[AddKey], columns: Iterable[ColumnDefinition]) -> tuple[Key, ...]:
    """Returns the keys and indexes of a new table. Those without a name get theirs when all others have one. So does
    the primary key, whose name no other one has then, though TiDB calls it PRIMARY.

    Of the names that are taken TiDB has those in the text in lower case, and those it made as they are spelled
    (``setEmptyConstraintName``): two keys may have one name but for its case.
    """
    columns = tuple(columns)
    taken = {fold(key.index) for key in made if key.index is not None}
    keys: tuple[Key, ...] = ()
    for key in made:
        name = key.index
        if name is None:
            name = next(name for name in _names_after(_first(key)) if name not in taken)
            taken.add(name)
        if key.made:
            keys = added(keys, spelled(replace(key, index=name), columns))
    return keys


def added(keys: tuple[Key, ...], key: AddKey) -> tuple[Key, ...]:
    """Returns the keys with one more. One without a name gets TiDB's: its first column, then ``_2``, ``_3`` … behind
    it, if that is the name of another one."""
    if key.primary:
        return (*keys, Key(name="PRIMARY", columns=key.columns))
    name = key.index or free_name(keys, _first(key))
    return (*keys, Key(name=name, columns=key.columns, unique=key.unique))


def _first(key: AddKey) -> str:
    """Returns what TiDB calls a key without a name: CREATE TABLE calls it expression_index if any part of it is an
    expression, ALTER TABLE if the first one is."""
    return key.columns[0] if key.columns else key.called


def with_foreign_key(table: Table, foreign: AddForeignKey) -> Table:
    """Returns the table with one foreign key more, and with its index if it has columns."""
    number = table.foreign_keys + 1
    table = replace(table, foreign_keys=number)
    if table.keys is None or not foreign.columns:
        return table
    index = Key(name=foreign.name or f"fk_{number}", columns=foreign.columns, unique=False)
    return replace(table, keys=(*table.keys, index))


def without_covered(foreign: AddForeignKey, keys: Iterable[Key]) -> AddForeignKey:
    """Returns the foreign key without its columns if an index or a key begins with them: it makes no index then."""
    return replace(foreign, columns=()) if is_covered(foreign, keys) else foreign


def is_covered(foreign: AddForeignKey, keys: Iterable[Key]) -> bool:
    """True if an index or a key begins with the columns of the foreign key."""
    columns = [fold(name) for name in foreign.columns]
    return any([fold(name) for name in key.columns[: len(columns)]] == columns for key in keys)


def free_name(keys: tuple[Key, ...], first: str) -> str:
    """Returns TiDB's name for a key without one that ALTER TABLE adds."""
    taken = {fold(other.name) for other in keys}
    return next(name for name in _names_after(first) if fold(name) not in taken)


def _names_after(first: str) -> Iterator[str]:
    """Yields the names that a key without one may get, but PRIMARY."""
    if fold(first) != "primary":
        yield first
    yield from (f"{first}_{number}" for number in count(2))


def spelled(key: AddKey, columns: Iterable[ColumnDefinition]) -> AddKey:
    """Returns the key with its columns' names as the columns spell them."""
    names = {fold(column.name): column.name for column in columns}
    return replace(key, columns=tuple(names.get(fold(name), name) for name in key.columns))


def without_nulls(columns: tuple[ColumnDefinition, ...], key: AddKey) -> tuple[ColumnDefinition, ...]:
    """Returns the columns after a key is added: those of a primary key cannot be NULL."""
    sure = {fold(name) for name in key.columns} if key.primary else set()
    return tuple(replace(c, nullable=False) if fold(c.name) in sure else c for c in columns)


def unknown_index(table: Table, actions: Iterable[Action]) -> str | None:
    """Returns the first index that is dropped or renamed and that the definition lacks: TiDB has it, so its unique keys
    may have other names than the definition's. None where the handle key does not depend on it: it is the primary
    key."""
    actions, keys = tuple(actions), table.keys or ()
    if not any(key.unique for key in keys) or any(key.primary for key in keys):
        return None
    known = {fold(key.name) for key in keys} | {fold(a.new) for a in actions if isinstance(a, RenameKey)}
    for action in actions:
        match action:
            case DropKey(index=name, lenient=False) | RenameKey(old=name) if fold(name) not in known:
                return name
    return None


def adds_primary_key(statement: AlterTable) -> bool:
    """True if a statement adds a primary key to a table that had none."""
    added = any(isinstance(action, AddKey) and action.primary for action in statement.actions)
    return added and DropKey(index="PRIMARY") not in statement.actions


def changes_unique_key(table: Table, statement: AlterTable) -> bool:
    """True if a statement adds or drops a primary or unique key of the table, or changes a column of one; also if it
    may, since the definition lacks the index that it drops or renames."""
    unique = [key for key in table.keys or () if key.unique]
    names = {fold(key.name) for key in unique}
    columns = {fold(name) for key in unique for name in key.columns}
    for action in statement.actions:
        match action:
            case AddKey(unique=True):
                return True
            case DropKey(index=name) | RenameKey(old=name) if fold(name) in names:
                return True
            case DropColumn(name=name) | RenameColumn(old=name) | ModifyColumn(old=name) if fold(name) in columns:
                return True
    return unknown_index(table, statement.actions) is not None
