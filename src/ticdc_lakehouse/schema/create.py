"""CREATE TABLE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ticdc_lakehouse.schema.column import ColumnText, read_column
from ticdc_lakehouse.schema.definition import Partitioning, Table, handle_key
from ticdc_lakehouse.schema.key import (
    is_key,
    keys_of,
    read_key,
    with_foreign_key,
    without_covered,
    without_nulls,
)
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.partition import read_partitioning
from ticdc_lakehouse.schema.statement import AddForeignKey, AddKey, CreateTable, CreateTableLike
from ticdc_lakehouse.schema.tokens import Tokens, UnreadableError

_DELETES_LACK = ("SOFTDELETE", "ACTIVE_ACTIVE")
"""Options of tables whose rows ticdc deletes at an UPDATE of a hidden column, and of which it sends no DELETE."""
_ROWS = ("AS", "SELECT", "WITH", "VALUES", "TABLE", "IGNORE", "REPLACE")
_ROWS_FOLLOW = (*_ROWS, "(")


def read_create(tokens: Tokens, database: str | None) -> CreateTable | CreateTableLike:
    """Passes CREATE TABLE.

    Raises UnreadableError also for a temporary table and for CREATE TABLE … AS SELECT, whose rows are in no message.
    """
    tokens.expect("CREATE", "TABLE")
    tokens.take("IF", "NOT", "EXISTS")
    is_qualified = tokens.word(1) == "."
    name = tokens.table_name(database)
    if tokens.take("LIKE"):
        return _read_like(tokens, name, is_qualified=is_qualified)
    entries = tokens.brackets()
    if entries.take("LIKE"):
        return _read_like(entries, name, is_qualified=is_qualified)
    table = _table(name, entries.parts())
    partitioning = _read_options(tokens)
    return CreateTable(table=table if partitioning is None else replace(table, partitioning=partitioning))


def read_entry(tokens: Tokens) -> tuple[ColumnText | None, Sequence[AddKey | AddForeignKey]]:
    """Passes a column, a key, index or foreign key, or a column with its own keys."""
    if is_key(tokens):
        key = read_key(tokens)
        return None, () if key is None else (key,)
    column = read_column(tokens)
    return column, column.keys


def _read_like(tokens: Tokens, name: TableName, *, is_qualified: bool) -> CreateTableLike:
    source_is_qualified = tokens.word(1) == "."
    source = tokens.table_name(name[0])
    tokens.expect_end()
    return CreateTableLike(name=name, source=source, unqualified=is_qualified and not source_is_qualified)


def _table(name: TableName, entries: list[Tokens]) -> Table:
    read = [read_entry(entry) for entry in entries]
    for entry in entries:
        entry.expect_end()
    columns = tuple(column.definition for column, _ in read if column is not None)
    if not columns:
        raise UnreadableError("a table with columns", "none", 1)
    # TiDB makes the keys of columns last; of keys of one length TiCDC chooses the oldest.
    constraints = [key for _, keys in sorted(read, key=lambda entry: entry[0] is not None) for key in keys]
    made = [key for key in constraints if isinstance(key, AddKey)]
    for key in made:
        columns = without_nulls(columns, key)
    keys = keys_of(made, columns)
    table = Table(database=name[0], table=name[1], columns=columns, key=handle_key(columns, keys), keys=keys)
    for foreign in constraints:  # whose indexes come after all others
        if isinstance(foreign, AddForeignKey):
            table = with_foreign_key(table, without_covered(foreign, table.keys or ()))
    return table


def _read_options(tokens: Tokens) -> Partitioning | None:
    while not tokens.ended:
        if tokens.take("SPLIT"):  # into regions: BETWEEN (…) AND (…) REGIONS n, or BY (…), (…)
            tokens.skip_until("SPLIT", "PARTITION", *_ROWS)
            continue
        if tokens.word() in _ROWS_FOLLOW:
            raise tokens.unreadable("a table without rows")
        if tokens.word() in _DELETES_LACK:
            raise tokens.unreadable("a table whose deletes are all sent")
        if tokens.word() == "PARTITION":
            return read_partitioning(tokens)
        refuse_binary(tokens)
        tokens.skip()
    return None


def refuse_binary(tokens: Tokens) -> None:
    """Raises UnreadableError if ``CHARSET = binary`` comes next: it makes binary columns of those that say VARCHAR."""
    start = tokens.at
    if tokens.take("CHARSET") or tokens.take("CHARACTER", "SET") or tokens.take("COLLATE"):
        tokens.take("=")
        if (tokens.string() or tokens.name()).lower() == "binary":
            raise tokens.unreadable("a character set of texts")
    tokens.at = start
