"""Scripts of CREATE TABLE statements: a feed's schema_file, or what SHOW CREATE TABLE printed."""

from __future__ import annotations

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.schema.create import read_create
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import CreateTable
from ticdc_lakehouse.schema.tokens import (
    AmbiguousError,
    Author,
    Tokens,
    UnreadableError,
    is_hand_written,
    statements,
)

# ALGORITHM, DEFINER and SQL SECURITY stand before VIEW.
_NO_TABLE = ("DATABASE", "SCHEMA", "SEQUENCE", "ALGORITHM", "DEFINER", "SQL", "VIEW")


def tables_from_sql(text: str, database: str | None = None, source: str = "SQL") -> tuple[Table, ...]:
    """The tables of a script of CREATE TABLE statements; ``USE db;`` sets the database of unqualified names.

    What dumps write around them (SET, LOCK TABLES, databases, views, sequences) is passed over; DROP TABLE IF EXISTS
    takes away what came before.

    Where strings have backslashes, the script is read as SHOW CREATE TABLE prints it, and as people write SQL if they
    certainly wrote it or it cannot be read otherwise.

    Raises ConfigError, with ``source`` and the line, for any other statement, for one that cannot be read, and for a
    table that stands twice and is not the same.
    """
    try:
        return _tables(text, database)
    except UnreadableError as error:
        raise ConfigError(f"{source}, line {error.line}: {error}") from None


def _tables(text: str, database: str | None) -> tuple[Table, ...]:
    if "\\" in text and not is_hand_written(text):
        try:
            return _tables_by(Author.SHOW_CREATE, text, database)
        except AmbiguousError:
            raise
        except UnreadableError:
            pass  # people wrote it, or it is wrong: the other reading says where
    return _tables_by(Author.PERSON, text, database)


def _tables_by(author: Author, text: str, database: str | None) -> tuple[Table, ...]:
    tables: dict[TableName, Table] = {}
    for tokens in statements(text, author):
        if tokens.take("USE"):
            database = tokens.name()
        elif tokens.take("DROP", "TABLE", "IF", "EXISTS"):
            _drop(tables, tokens, database)
        elif not _says_nothing(tokens):
            _add(tables, tokens, database)
    return tuple(tables.values())


def _says_nothing(tokens: Tokens) -> bool:
    match tokens.word(), tokens.word(1):
        case ("SET", _) | ("LOCK" | "UNLOCK", "TABLES") | ("DROP", "VIEW" | "SEQUENCE"):
            return True
        case "CREATE", "OR":
            return tokens.word(3) in _NO_TABLE
        case "CREATE", made:
            return made in _NO_TABLE
    return False


def _add(tables: dict[TableName, Table], tokens: Tokens, database: str | None) -> None:
    if tokens.word() != "CREATE":
        raise tokens.unreadable("CREATE TABLE or USE")
    line = tokens.unreadable("").line  # where the statement begins
    created = read_create(tokens, database)
    if not isinstance(created, CreateTable):
        raise tokens.unreadable("CREATE TABLE name (column, …)")
    table = created.table
    if tables.setdefault(table.name, table) != table:
        raise UnreadableError(f"one table {table.database}.{table.table}", "another, with other columns or keys", line)


def _drop(tables: dict[TableName, Table], tokens: Tokens, database: str | None) -> None:
    tables.pop(tokens.table_name(database), None)
    while tokens.take(","):
        tables.pop(tokens.table_name(database), None)
