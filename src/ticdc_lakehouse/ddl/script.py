"""Scripts of CREATE TABLE statements: a feed's schema_file, or what SHOW CREATE TABLE printed."""

from __future__ import annotations

from ticdc_lakehouse.ddl.create import read_create
from ticdc_lakehouse.ddl.statement import CreateTable
from ticdc_lakehouse.ddl.tokens import Tokens, UnreadableError, statements
from ticdc_lakehouse.definition import Table
from ticdc_lakehouse.errors import ConfigError


def tables_from_sql(text: str, database: str | None = None, source: str = "SQL") -> tuple[Table, ...]:
    """The tables of a script of CREATE TABLE statements; ``USE db;`` sets the database of unqualified names.

    Raises ConfigError, with ``source`` and the line, for a statement that is neither and for one that cannot be read.
    """
    tables: list[Table] = []
    try:
        for tokens in statements(text):
            if tokens.take("USE"):
                database = tokens.name()
            elif not _says_nothing(tokens):
                tables.append(_read_table(tokens, database))
    except UnreadableError as error:
        raise ConfigError(f"{source}, line {error.line}: {error}") from None
    return tuple(tables)


def _says_nothing(tokens: Tokens) -> bool:
    return tokens.word() == "SET" or (tokens.word() == "CREATE" and tokens.word(1) in ("DATABASE", "SCHEMA"))


def _read_table(tokens: Tokens, database: str | None) -> Table:
    if tokens.word() != "CREATE":
        raise tokens.unreadable("CREATE TABLE or USE")
    created = read_create(tokens, database)
    if not isinstance(created, CreateTable):
        raise tokens.unreadable("CREATE TABLE name (column, …)")
    return created.table
