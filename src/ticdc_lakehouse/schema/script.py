"""Scripts of CREATE TABLE statements: a feed's schema_file, or what SHOW CREATE TABLE printed."""

from __future__ import annotations

from ticdc_codec.errors import ConfigError
from ticdc_codec.name_case import fold
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
    statement_at,
    statements,
)

# ALGORITHM, DEFINER and SQL SECURITY stand before VIEW.
_NO_TABLE = ("DATABASE", "SCHEMA", "SEQUENCE", "ALGORITHM", "DEFINER", "SQL", "VIEW")


def tables_from_sql(text: str, database: str | None = None, source: str = "SQL") -> tuple[Table, ...]:
    """Returns the tables of a script of CREATE TABLE statements; ``USE db;`` sets the database of unqualified names.

    What dumps write around them (SET, LOCK TABLES, databases, views, sequences, global temporary tables) is passed
    over; DROP TABLE IF EXISTS takes away what came before.

    A statement with backslashes is read as SHOW CREATE TABLE prints it, and as people write SQL if they certainly wrote
    it or it cannot be read otherwise.

    Raises ConfigError, with ``source`` and the line, for any other statement, for one that cannot be read, and for a
    table that stands twice and is not the same.
    """
    script, at = _Script(database), 0
    while at < len(text):
        try:
            at += script.read_next(text, at)
        except UnreadableError as error:
            line = text.count("\n", 0, at) + error.line
            raise ConfigError(f"{source}, line {line}: {error}") from None
    return tuple(script.tables.values())


class _Script:
    """What the statements of a script have made so far."""

    def __init__(self, database: str | None) -> None:
        self.tables: dict[TableName, Table] = {}
        self._database = database

    def read_next(self, text: str, at: int) -> int:
        """Reads the statement that begins there, and returns its length."""
        shown = statement_at(text, at, Author.SHOW_CREATE)
        if "\\" in shown and not is_hand_written(shown):
            try:
                self._read(shown, Author.SHOW_CREATE)
                return len(shown)
            except AmbiguousError:
                raise
            except UnreadableError:
                pass  # people wrote it, or it is wrong: the other reading says where
        written = statement_at(text, at, Author.PERSON)
        self._read(written, Author.PERSON)
        return len(written)

    def _read(self, text: str, author: Author) -> None:
        for tokens in statements(text, author):
            if tokens.take("USE"):
                self._database = tokens.name()
            elif tokens.take("DROP", "TABLE", "IF", "EXISTS"):
                _drop(self.tables, tokens, self._database)
            elif not _says_nothing(tokens):
                _add(self.tables, tokens, self._database)


def _says_nothing(tokens: Tokens) -> bool:
    match tokens.word(), tokens.word(1):
        case ("SET", _) | ("LOCK" | "UNLOCK", "TABLES") | ("DROP", "VIEW" | "SEQUENCE"):
            return True
        case "CREATE", "OR":
            return tokens.word(3) in _NO_TABLE
        case "CREATE", "GLOBAL":  # its rows are a session's own
            return tokens.word(2) == "TEMPORARY"
        case "CREATE", made:
            return made in _NO_TABLE
        case _:
            return False


def _add(tables: dict[TableName, Table], tokens: Tokens, database: str | None) -> None:
    if tokens.word() != "CREATE":
        raise tokens.unreadable("CREATE TABLE or USE")
    line = tokens.unreadable("").line  # where the statement begins
    created = read_create(tokens, database)
    if not isinstance(created, CreateTable):
        raise tokens.unreadable("CREATE TABLE name (column, …)")
    table = created.table
    if twice := _repeated(table):
        raise UnreadableError(f"each column of {table.database}.{table.table} once", f"{twice} again", line)
    if tables.setdefault(table.name, table) != table:
        raise UnreadableError(f"one table {table.database}.{table.table}", "another, with other columns or keys", line)


def _repeated(table: Table) -> str | None:
    """Returns a column that stands twice; TiDB refuses such a table, and no table of the lake can be made of it."""
    names: set[str] = set()
    for column in table.columns:
        if fold(column.name) in names:
            return column.name
        names.add(fold(column.name))
    return None


def _drop(tables: dict[TableName, Table], tokens: Tokens, database: str | None) -> None:
    tables.pop(tokens.table_name(database), None)
    while tokens.take(","):
        tables.pop(tokens.table_name(database), None)
