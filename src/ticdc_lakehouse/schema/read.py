"""What a DDL text says. Source of what arrives in which form: wire.md 2.4, 3.1 and 8.6 to 8.10."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # from its compiled half, not re-exported

from ticdc_lakehouse.schema.alter import read_alter, read_create_index, read_drop_index, rename_of_unqualified
from ticdc_lakehouse.schema.create import read_create
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import (
    DropDatabase,
    DropTables,
    NoChange,
    RenameTables,
    RestoreTable,
    Statement,
    TruncateTable,
    Unread,
)
from ticdc_lakehouse.schema.tokens import Author, Tokens, UnreadableError, is_hand_written, statements

_DATABASE = ("DATABASE", "SCHEMA")
_INDEX_KINDS = ("UNIQUE", "INDEX", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR", "HYBRID")
_OTHER_THINGS = (
    *("ALGORITHM", "BINDING", "DEFINER", "MASKING", "PLACEMENT", "RESOURCE", "ROLE", "SEQUENCE", "SQL", "STATISTICS"),
    *("STATS", "TEMPORARY", "USER", "VIEW"),
)
"""What CREATE, ALTER and DROP may name that is no table of the feed. ALGORITHM, DEFINER and SQL SECURITY stand before
VIEW. Rows of a (GLOBAL) TEMPORARY TABLE are a session's own: TiCDC sends none."""
_NO_DDL = ("ADMIN", "ANALYZE", "FLUSH", "GRANT", "KILL", "LOCK", "REVOKE", "SET", "SPLIT", "UNLOCK", "USE")


@lru_cache(maxsize=1_000)  # a lagging table has its DDLs in every window again
def read_ddl(query: str, database: str | None, table: str | None) -> tuple[Statement, ...]:
    """Returns the statements of a DDL event's text, in their order; at least one.

    ``database`` and ``table`` are what the event says: the database is that of unqualified names. Where the text names
    other tables, it is right. A text that is not understood, as TiDB writes strings nor as people do, becomes Unread
    with every table that it may touch. Only where there is a backslash do the two ways differ.
    """
    database, table = database or None, table or None
    if "\\" not in query:
        return _read_text(query, database, table, Author.PARSER)
    authors = (Author.PERSON, Author.PARSER) if is_hand_written(query) else (Author.PARSER, Author.PERSON)
    read = _read_text(query, database, table, authors[0])
    if any(isinstance(statement, Unread) for statement in read):
        other = _read_text(query, database, table, authors[1])
        return read if any(isinstance(statement, Unread) for statement in other) else other
    return read


def _read_text(query: str, database: str | None, table: str | None, author: Author) -> tuple[Statement, ...]:
    try:
        found = statements(query, author)
    except UnreadableError as error:
        return (_unread(None, database, table, str(error)),)
    if not found:
        return (_unread(None, database, table, "the text is empty"),)
    return tuple(statement for tokens in found for statement in _read(tokens, database, table))


def _read(tokens: Tokens, database: str | None, table: str | None) -> tuple[Statement, ...]:
    try:
        read = _read_statement(tokens, database, table)
        tokens.expect_end()
    except UnreadableError as error:
        return (_unread(tokens, database, table, str(error)),)
    return read


def _read_statement(tokens: Tokens, database: str | None, table: str | None) -> tuple[Statement, ...]:
    match tokens.word(), tokens.word(1):
        case "ALTER", "TABLE":
            return read_alter(tokens, database)
        case ("CREATE" | "DROP" | "RENAME" | "TRUNCATE" | "RECOVER" | "FLASHBACK", _) if not _changes_nothing(tokens):
            return (_read_other(tokens, database, table),)
        case _ if not _changes_nothing(tokens):
            raise tokens.unreadable("a statement that is known")
        case _:
            tokens.skip_until()
            return (NoChange(),)


def _read_other(tokens: Tokens, database: str | None, table: str | None) -> Statement:
    match tokens.word(), tokens.word(1):
        case "CREATE", "TABLE":
            return read_create(tokens, database)
        case "CREATE", kind if kind in _INDEX_KINDS:
            return read_create_index(tokens, database)
        case "DROP", "INDEX":
            return read_drop_index(tokens, database)
        case "DROP", "DATABASE" | "SCHEMA":
            return _read_drop_database(tokens)
        case "DROP", "TABLE" | "TABLES":
            return _read_drop_tables(tokens, database)
        case "RENAME", "TABLE" | "TABLES":
            return _read_rename(tokens, database)
        case "TRUNCATE", _:
            return _read_truncate(tokens, database)
        case "RECOVER" | "FLASHBACK", "TABLE":
            return _read_restore(tokens, database, table)
        case _:
            raise tokens.unreadable("a statement that is known")


def _changes_nothing(tokens: Tokens) -> bool:
    verb = tokens.word()
    if verb not in ("CREATE", "ALTER", "DROP"):
        return verb in _NO_DDL or (verb == "RENAME" and tokens.word(1) == "USER")
    start = 3 if (tokens.word(1), tokens.word(2)) == ("OR", "REPLACE") else 1
    other = tokens.word(start + 1) if tokens.word(start) in ("GLOBAL", "SESSION") else tokens.word(start)
    return other in _OTHER_THINGS or (verb != "DROP" and other in _DATABASE)


def _read_drop_database(tokens: Tokens) -> DropDatabase:
    tokens.expect("DROP")
    tokens.take_any(*_DATABASE)
    tokens.take("IF", "EXISTS")
    return DropDatabase(database=tokens.name())


def _read_drop_tables(tokens: Tokens, database: str | None) -> DropTables:
    tokens.expect("DROP")
    tokens.take_any("TABLE", "TABLES")
    tokens.take("IF", "EXISTS")
    names = [tokens.table_name(database)]
    while tokens.take(","):
        names.append(tokens.table_name(database))
    tokens.take_any("RESTRICT", "CASCADE")
    return DropTables(names=tuple(names))


def _read_rename(tokens: Tokens, database: str | None) -> RenameTables:
    tokens.expect("RENAME")
    tokens.take_any("TABLE", "TABLES")
    old_is_qualified = tokens.word(1) == "."
    pairs = [_read_pair(tokens, database)]
    if tokens.ended and not old_is_qualified and tokens.word(-2) == ".":
        return rename_of_unqualified(*pairs[0])
    while tokens.take(","):
        pairs.append(_read_pair(tokens, database))
    return RenameTables(pairs=tuple(pairs))


def _read_pair(tokens: Tokens, database: str | None) -> tuple[TableName, TableName]:
    old = tokens.table_name(database)
    tokens.expect("TO")
    return old, tokens.table_name(database)


def _read_truncate(tokens: Tokens, database: str | None) -> TruncateTable:
    tokens.expect("TRUNCATE")
    tokens.take("TABLE")
    return TruncateTable(name=tokens.table_name(database))


def _read_restore(tokens: Tokens, database: str | None, table: str | None) -> RestoreTable:
    """Passes RECOVER or FLASHBACK TABLE. ``TO`` has only a table's name: it comes back in the database in which it was.
    ``BY JOB`` names a DDL of TiDB's, and the event the table."""
    tokens.take_any("RECOVER", "FLASHBACK")
    tokens.expect("TABLE")
    by_job = tokens.take("BY", "JOB")
    if by_job:
        if database is None or table is None:
            raise tokens.unreadable("an event that names the table")
        name = TableName(database, table)
    else:
        name = tokens.table_name(database)
    tokens.number(TokenType.NUMBER)
    to = TableName(name.database, tokens.name()) if tokens.take("TO") else name
    return RestoreTable(name=name, to=to, by_job=by_job)


def _unread(tokens: Tokens | None, database: str | None, table: str | None, reason: str) -> Unread:
    named = () if database is None or table is None else (TableName(database, table),)
    whole = None if tokens is None else _database_in(tokens)
    found = () if tokens is None or whole is not None else _named(tokens, database)
    names = tuple(dict.fromkeys((*named, *found)))
    return Unread(names=names, database=None if names else whole or database, reason=reason)


def _database_in(tokens: Tokens) -> str | None:
    """Returns the database of ``DROP DATABASE``, ``FLASHBACK DATABASE name [TO name]``: the last, under which tables
    return."""
    tokens.at = 1
    if tokens.word() not in _DATABASE:
        return None
    name = None
    with suppress(UnreadableError):
        while tokens.take_any(*_DATABASE, "TO"):
            tokens.take("IF", "EXISTS")
            name = tokens.name()
    return name


def _named(tokens: Tokens, database: str | None) -> Iterator[TableName]:
    """Yields every table that a statement names as its own object."""
    tokens.at = 0
    verb = tokens.word() if tokens.word(1) in ("TABLE", "TABLES", "INDEX") or tokens.word() == "TRUNCATE" else ""
    while not tokens.ended:
        if not _pass_to_name(tokens, verb):
            tokens.at += 1
            continue
        with suppress(UnreadableError):
            yield tokens.table_name(database)


def _pass_to_name(tokens: Tokens, verb: str) -> bool:
    """Passes the words before a table's name, if they are next."""
    if tokens.take_any("TABLE", "TABLES"):
        return tokens.take("IF", "NOT", "EXISTS") or tokens.take("IF", "EXISTS") or tokens.word() != "BY"
    match verb:
        case "RENAME" | "FLASHBACK":
            return bool(tokens.take_any("TO", ","))
        case "DROP":
            return bool(tokens.take_any("ON", ","))
        case "TRUNCATE":
            return tokens.take("TRUNCATE") and tokens.word() != "TABLE"
        case "ALTER" if tokens.word() == "RENAME" and tokens.word(1) not in ("COLUMN", "INDEX", "KEY"):
            return tokens.take("RENAME") and (bool(tokens.take_any("TO", "AS", "=")) or True)
    return False
