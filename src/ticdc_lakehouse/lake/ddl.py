"""What a DDL text is about. Gold follows CREATE DATABASE and CREATE TABLE; any other DDL stops its tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import tokenize
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]  # from its compiled half, not re-exported

from ticdc_lakehouse.ddl.script import tables_from_sql
from ticdc_lakehouse.definition import Table
from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.lake.state import TableName
from ticdc_lakehouse.lake.window import DdlEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase:
    """Nothing to do: a database is made of its tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """A new, empty table."""

    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfollowed:
    """A DDL that gold does not follow yet."""

    tables: tuple[TableName, ...]
    """The tables that it names."""
    database: str | None
    """The database whose every table it may change, None if it is about ``tables`` alone."""


Statement = CreateDatabase | CreateTable | Unfollowed


def read_ddl(ddl: DdlEvent, known: Callable[[TableName], Table | None]) -> Statement:
    """What a DDL is about. ``known`` gives the definition of a table, for CREATE TABLE … LIKE."""
    tokens = _tokens(ddl.query)
    words = [token.text.upper() for token in tokens[:2]]
    if words in (["CREATE", "DATABASE"], ["CREATE", "SCHEMA"]):
        return CreateDatabase()
    if words == ["CREATE", "TABLE"]:
        return _create(ddl, tokens, known)
    if not ddl.table:
        return Unfollowed(tables=(), database=ddl.database)
    return Unfollowed(tables=tuple(dict.fromkeys(_named(ddl, tokens))), database=None)


def _tokens(query: str) -> list[Token]:
    try:
        tokens = tokenize(query, read="mysql")
        # The tokenizer leaves what follows a first RENAME in one piece.
        rest = tokens[1].text if [t.token_type for t in tokens[:1]] == [TokenType.RENAME] and len(tokens) == 2 else ""
        return [*tokens[:1], *tokenize(rest, read="mysql")] if rest else tokens
    except TokenError:
        return []  # an unreadable text still stops the table that its message names


def _create(ddl: DdlEvent, tokens: list[Token], known: Callable[[TableName], Table | None]) -> Statement:
    name = (ddl.database or "", ddl.table or "")
    like = next((i for i, token in enumerate(tokens) if token.text.upper() == "LIKE"), None)
    if like is not None and TokenType.L_PAREN not in {token.token_type for token in tokens[:like]}:
        source = known(_name_at(tokens, like + 1, name[0]))
        if source is None:
            return Unfollowed(tables=(name,), database=None)
        return CreateTable(table=replace(source, database=name[0], table=name[1]))
    try:
        created = tables_from_sql(ddl.query, ddl.database)[0]
    except (ConfigError, IndexError):
        return Unfollowed(tables=(name,), database=None)
    return CreateTable(table=created)


def _named(ddl: DdlEvent, tokens: list[Token]) -> list[TableName]:
    """The message's table, and what RENAME and EXCHANGE name beside it (in a swap the message's own table can be
    wrong)."""
    names: list[TableName] = [(ddl.database or "", ddl.table or "")]
    words = [token.text.upper() for token in tokens]
    if words[:2] == ["RENAME", "TABLE"]:
        starts = [i + 1 for i, word in enumerate(words) if word in ("TABLE", "TO", ",")]
    elif words[:2] == ["ALTER", "TABLE"]:
        starts = [2, *_targets(tokens, words)]
    else:
        starts = []
    return names + [_name_at(tokens, start, names[0][0]) for start in starts if start < len(tokens)]


def _targets(tokens: list[Token], words: list[str]) -> list[int]:
    """Where ALTER TABLE names another table: ``RENAME [TO|AS] t`` and ``EXCHANGE PARTITION p WITH TABLE t``."""
    starts: list[int] = []
    for i, word in enumerate(words):
        plain = tokens[i].token_type is not TokenType.IDENTIFIER
        if plain and word == "RENAME" and words[i + 1 : i + 2] not in (["COLUMN"], ["INDEX"], ["KEY"]):
            starts.append(i + 2 if words[i + 1 : i + 2] in (["TO"], ["AS"]) else i + 1)
        if plain and word == "EXCHANGE" and "WITH" in words[i:]:
            starts.append(words.index("WITH", i) + 2)
    return starts


def _name_at(tokens: list[Token], start: int, database: str) -> TableName:
    """The table name that begins at ``start``."""
    if tokens[start + 1 : start + 2] and tokens[start + 1].token_type is TokenType.DOT:
        return tokens[start].text, tokens[start + 2].text
    return database, tokens[start].text
