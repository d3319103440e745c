"""What a table is: its columns with exact MySQL types and its key, read from the CREATE TABLE text that TiDB prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import orjson
from sqlglot import tokenize
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]  # from its compiled half, not re-exported

from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.event import Column
from ticdc_lakehouse.mysql_type import MysqlType, parse_type

_KEY_WORDS = {
    "PRIMARY",
    "UNIQUE",
    "KEY",
    "INDEX",
    "CONSTRAINT",
    "FULLTEXT",
    "SPATIAL",
    "FOREIGN",
    "CHECK",
    "VECTOR",
}
_TYPE_SUFFIXES = {"UNSIGNED", "SIGNED", "ZEROFILL", "PRECISION"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """One column of a table."""

    name: str
    type: MysqlType
    nullable: bool = True
    virtual: bool = False
    """A generated column that is not stored: no protocol ever sends it."""
    by: str | None = None
    """ENUM and SET: whether the feed's values are ``index`` or ``name``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition of a table."""

    name: str
    bounds: tuple[str | None, ...] = ()
    """RANGE: the value that every row is below, none for MAXVALUE. LIST: the values, None for NULL. HASH, KEY: none."""
    default: bool = False
    """LIST: takes what no other partition takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitioning:
    """How a table's rows are spread over partitions."""

    method: str
    """``range``, ``list``, ``hash`` or ``key``; empty where a statement only adds partitions."""
    column: str | None
    """The one column that the partition of a row depends on; None if it is more than one, or an expression that is not
    understood."""
    function: str | None
    """``year``, ``to_days``, … around the column, None for the column itself."""
    partitions: tuple[Partition, ...]
    """In the order of the text: of RANGE, by rising bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table's definition."""

    database: str
    table: str
    columns: tuple[ColumnDefinition, ...]
    key: tuple[str, ...]
    """Handle key column names: the primary key, else the first unique key without NULLs, else none (wire.md 1.2.5)."""
    partitioning: Partitioning | None = None

    @property
    def sent(self) -> tuple[ColumnDefinition, ...]:
        """The columns that row images hold: all but the virtual ones."""
        return tuple(column for column in self.columns if not column.virtual)

    @property
    def described(self) -> tuple[Column, ...]:
        """The columns of row images as a message would describe them."""
        return tuple(Column(name=c.name, type=c.type.text, key=c.name in self.key, by=c.by) for c in self.sent)


def by_name(table: Table) -> Table:
    """The table as a feed has it that sends ENUM and SET by name."""
    columns = tuple(replace(column, by="name") if column.type.elements else column for column in table.columns)
    return replace(table, columns=columns)


def table_to_json(table: Table) -> str:
    """The definition as one JSON text."""
    columns = [
        {"name": c.name, "type": c.type.text, "nullable": c.nullable, "virtual": c.virtual, "by": c.by}
        for c in table.columns
    ]
    members = {"database": table.database, "table": table.table, "columns": columns, "key": table.key}
    return orjson.dumps(members).decode()


def table_from_json(text: str) -> Table:
    """What ``table_to_json`` wrote, read back."""
    members = orjson.loads(text)
    columns = tuple(ColumnDefinition(**{**c, "type": parse_type(c["type"])}) for c in members["columns"])
    return Table(database=members["database"], table=members["table"], columns=columns, key=tuple(members["key"]))


def table_from_wire(database: str, table: str, columns: tuple[Column, ...]) -> Table:
    """The definition as far as a row message tells it: types without lengths, keys only where the wire names them."""
    return Table(
        database=database,
        table=table,
        columns=tuple(ColumnDefinition(name=c.name, type=parse_type(c.type), by=c.by) for c in columns),
        key=tuple(c.name for c in columns if c.key),
    )


def tables_from_sql(text: str, database: str | None = None, source: str = "SQL") -> tuple[Table, ...]:
    """The tables of a script of CREATE TABLE statements; ``USE db;`` sets the database of unqualified names.

    Raises ConfigError, with ``source`` and the line, for a statement that is neither and for one that cannot be read.
    """
    tables: list[Table] = []
    for statement in _statements(text, source):
        if _words(statement, 1) == ["USE"]:
            database = statement[1].text
        elif _words(statement, 2)[:1] == ["CREATE"] and "DATABASE" not in _words(statement, 2):
            tables.append(_create_table(statement, text, database, source))
        elif _words(statement, 1) not in (["SET"], ["CREATE"]):
            raise _unreadable(statement[0], source, "CREATE TABLE or USE")
    return tuple(tables)


def _statements(text: str, source: str) -> Iterator[list[Token]]:
    try:
        tokens = tokenize(text, read="mysql")
    except TokenError as error:
        raise ConfigError(f"{source}: not SQL: {error}") from None
    statement: list[Token] = []
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


def _words(tokens: list[Token], count: int) -> list[str]:
    return [token.text.upper() for token in tokens[:count]]


def _unreadable(token: Token, source: str, wanted: str) -> ConfigError:
    return ConfigError(f"{source}, line {token.line}: expected {wanted}, found {token.text!r}")


def _create_table(tokens: list[Token], text: str, database: str | None, source: str) -> Table:
    """``CREATE TABLE [IF NOT EXISTS] [db.]name (entry, …) options``."""
    opening = next((i for i, token in enumerate(tokens) if token.token_type is TokenType.L_PAREN), None)
    if opening is None or "TABLE" not in _words(tokens, 3):
        raise _unreadable(tokens[0], source, "CREATE TABLE name (column, …)")
    if tokens[opening - 2].token_type is TokenType.DOT:
        database = tokens[opening - 3].text
    if database is None:
        raise _unreadable(
            tokens[opening - 1], source, "a table name with its database (`db`.`table`, or USE before it)"
        )
    kinds = [token.token_type for token in tokens]
    if kinds.count(TokenType.L_PAREN) != kinds.count(TokenType.R_PAREN):
        raise _unreadable(tokens[-1], source, "as many ) as (")
    entries = list(_entries(tokens[opening:]))
    columns = tuple(_column(entry, text, source) for entry in entries if not _is_index(entry))
    return Table(database=database, table=tokens[opening - 1].text, columns=columns, key=_handle_key(entries, columns))


def _entries(tokens: list[Token]) -> Iterator[list[Token]]:
    """The comma-separated entries inside the first pair of brackets."""
    depth = 0
    entry: list[Token] = []
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0 or (depth == 1 and token.token_type is TokenType.COMMA):
            yield entry
            entry = []
        elif depth > 1 or token.token_type is not TokenType.L_PAREN or entry:
            entry.append(token)
        if depth == 0:
            return


def _is_index(entry: list[Token]) -> bool:
    """Whether an entry is an index or constraint. A column may bear such a word as its name, but then in quotes."""
    return entry[0].token_type is not TokenType.IDENTIFIER and entry[0].text.upper().split()[0] in _KEY_WORDS


def _column(entry: list[Token], text: str, source: str) -> ColumnDefinition:
    if len(entry) < 2:
        raise _unreadable(entry[0], source, "a column name and its type")
    end = _type_end(entry)
    rest = _plain_words(entry[end:])
    generated = "GENERATED" in rest or "AS" in rest
    return ColumnDefinition(
        name=entry[0].text,
        type=parse_type(text[entry[1].start : entry[end - 1].end + 1]),
        nullable="PRIMARY" not in rest and ("NOT", "NULL") not in pairwise(rest),
        virtual=generated and "STORED" not in rest,
    )


def _type_end(entry: list[Token]) -> int:
    """The position after a column's type: its word, its brackets, and ``unsigned zerofill``."""
    end = 2
    if end < len(entry) and entry[end].token_type is TokenType.L_PAREN:
        depth = 0
        while end < len(entry):
            depth += (entry[end].token_type is TokenType.L_PAREN) - (entry[end].token_type is TokenType.R_PAREN)
            end += 1
            if depth == 0:
                break
    while end < len(entry) and entry[end].text.upper() in _TYPE_SUFFIXES:
        end += 1
    return end


def _plain_words(tokens: list[Token]) -> list[str]:
    """The unquoted words, one by one and in capitals (the tokenizer joins some, such as PRIMARY KEY)."""
    quoted = (TokenType.IDENTIFIER, TokenType.STRING)
    return [word for token in tokens if token.token_type not in quoted for word in token.text.upper().split()]


def _handle_key(entries: list[list[Token]], columns: tuple[ColumnDefinition, ...]) -> tuple[str, ...]:
    nullable = {column.name.lower(): column.nullable for column in columns}
    unique: list[tuple[str, ...]] = []
    for entry in entries:
        words = _plain_words(entry)
        if _is_index(entry):
            names = _index_columns(entry)
            if "PRIMARY" in words:
                return names
            if "UNIQUE" in words and not any(nullable.get(name.lower(), True) for name in names):
                unique.append(names)
        elif "PRIMARY" in words:
            return (entry[0].text,)
        elif "UNIQUE" in words and not nullable[entry[0].text.lower()]:
            unique.append((entry[0].text,))
    return unique[0] if unique else ()


def _index_columns(entry: list[Token]) -> tuple[str, ...]:
    return tuple(part[0].text for part in _entries(entry[_first_bracket(entry) :]))


def _first_bracket(entry: list[Token]) -> int:
    return next(i for i, token in enumerate(entry) if token.token_type is TokenType.L_PAREN)
