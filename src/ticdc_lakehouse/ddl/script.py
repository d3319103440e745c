"""Scripts of CREATE TABLE statements: a feed's schema_file, or what SHOW CREATE TABLE printed."""

from __future__ import annotations

from ticdc_lakehouse.ddl.create import read_create
from ticdc_lakehouse.ddl.statement import CreateTable, TableName
from ticdc_lakehouse.ddl.tokens import Tokens, UnreadableError, statements
from ticdc_lakehouse.definition import Table
from ticdc_lakehouse.errors import ConfigError

_CREATED = ("TABLE", "DATABASE", "SCHEMA", "VIEW", "SEQUENCE")


def tables_from_sql(text: str, database: str | None = None, source: str = "SQL") -> tuple[Table, ...]:
    """The tables of a script of CREATE TABLE statements; ``USE db;`` sets the database of unqualified names.

    What dumps write around them (SET, LOCK TABLES, DROP … IF EXISTS, databases, views, sequences) is passed over.
    Raises ConfigError, with ``source`` and the line, for any other statement, for one that cannot be read, and for a
    table that stands twice and is not the same.
    """
    tables: dict[TableName, Table] = {}
    try:
        for tokens in statements(text):
            if tokens.take("USE"):
                database = tokens.name()
            elif tokens.take("DROP", "TABLE", "IF", "EXISTS"):
                _drop(tables, tokens, database)
            elif not _says_nothing(tokens):
                _add(tables, tokens, database)
    except UnreadableError as error:
        raise ConfigError(f"{source}, line {error.line}: {error}") from None
    return tuple(tables.values())


def _says_nothing(tokens: Tokens) -> bool:
    match tokens.word(), tokens.word(1):
        case ("SET", _) | ("LOCK" | "UNLOCK", "TABLES") | ("DROP", "VIEW" | "SEQUENCE"):
            return True
        case ("CREATE", _):
            return _created(tokens) not in ("", "TABLE")
    return False


def _created(tokens: Tokens) -> str:
    """What a CREATE makes; words such as ALGORITHM, DEFINER and TEMPORARY may stand before it."""
    words = (tokens.word(ahead) for ahead in range(1, tokens.left))
    return next((word for word in words if word in _CREATED), "")
