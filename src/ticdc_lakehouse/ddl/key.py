"""Keys and indexes as CREATE TABLE, ALTER TABLE and CREATE INDEX write them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, count

from ticdc_lakehouse.ddl.statement import AddKey
from ticdc_lakehouse.ddl.tokens import Tokens
from ticdc_lakehouse.definition import ColumnDefinition, Key

_INDEXES = ("INDEX", "KEY", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR", "HYBRID")
_WORDS = (*_INDEXES, "PRIMARY", "UNIQUE", "CONSTRAINT", "FOREIGN", "CHECK")


def is_key(tokens: Tokens) -> bool:
    """Whether a key, index or constraint comes next. A column may bear such a word as its name, but then in quotes."""
    return tokens.word() in _WORDS


def read_key(tokens: Tokens) -> AddKey | None:
    """Passes a key, index or constraint up to a comma or the end; None unless it is a primary or unique key of
    columns."""
    name = _read_constraint(tokens)
    word = tokens.take_any("PRIMARY", "UNIQUE")
    if not word:
        tokens.skip_until(",")
        return None
    tokens.take_any("KEY", "INDEX")
    tokens.take("IF", "NOT", "EXISTS")
    return read_key_columns(tokens, index=_read_name(tokens) or name, primary=word == "PRIMARY")


def read_key_columns(tokens: Tokens, *, index: str | None, primary: bool) -> AddKey | None:
    """Passes ``(column, …) options``; None for a key of expressions, which can be nobody's handle."""
    parts = tokens.brackets().parts()
    tokens.skip_until(",")
    if any(part.word() == "(" for part in parts):
        return None
    if not parts:
        raise tokens.unreadable("a key with columns")
    return AddKey(primary=primary, index=index, columns=tuple(part.name() for part in parts))


def _read_constraint(tokens: Tokens) -> str | None:
    if not tokens.take("CONSTRAINT") or tokens.word() in _WORDS:
        return None
    return tokens.name()


def _read_name(tokens: Tokens) -> str | None:
    name = None if tokens.word() in ("(", "USING", "TYPE") else tokens.name()
    if tokens.take_any("USING", "TYPE"):
        tokens.name()
    return name


def added(keys: tuple[Key, ...], key: AddKey) -> tuple[Key, ...]:
    """The keys with one more. One without a name gets TiDB's: its first column, then ``_2``, ``_3`` … behind it."""
    if key.primary:
        return (*keys, Key(name="PRIMARY", columns=key.columns))
    taken = {other.name.lower() for other in keys}
    first = key.columns[0]
    names = chain([key.index or first], (f"{first}_{number}" for number in count(2)))
    name = next(name for name in names if name.lower() not in taken)
    return (*keys, Key(name=name, columns=key.columns))


def without_nulls(columns: tuple[ColumnDefinition, ...], key: AddKey) -> tuple[ColumnDefinition, ...]:
    """The columns after a key is added: those of a primary key cannot be NULL."""
    sure = {name.lower() for name in key.columns} if key.primary else set()
    return tuple(replace(c, nullable=False) if c.name.lower() in sure else c for c in columns)
