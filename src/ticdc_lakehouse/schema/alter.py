"""ALTER TABLE, CREATE INDEX and DROP INDEX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ticdc_codec.name_case import fold
from ticdc_lakehouse.schema.column import read_column
from ticdc_lakehouse.schema.create import read_entry, refuse_binary
from ticdc_lakehouse.schema.key import is_key, read_key, read_key_columns
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.partition import read_count, read_partitioning, read_partitions
from ticdc_lakehouse.schema.statement import (
    Action,
    AddColumn,
    AddForeignKey,
    AddKey,
    AddPartitions,
    AlterTable,
    DropColumn,
    DropKey,
    DropPartitions,
    ExchangePartition,
    ModifyColumn,
    NoChange,
    Position,
    RenameColumn,
    RenameKey,
    RenameTables,
    ResizeHash,
    SetPartitioning,
    Statement,
)
from ticdc_lakehouse.schema.tokens import Tokens

_OPTIONS = (
    *("ALGORITHM", "ALTER", "ATTRIBUTES", "AUTOEXTEND_SIZE", "AUTO_ID_CACHE", "AUTO_INCREMENT", "AUTO_RANDOM_BASE"),
    *("AVG_ROW_LENGTH", "CACHE", "CHARACTER", "CHARSET", "CHECKSUM", "COLLATE", "COMMENT", "COMPACT"),
    *("COMPRESSION", "CONNECTION", "CONVERT", "DEFAULT", "DELAY_KEY_WRITE", "DISABLE", "ENABLE", "ENCRYPTION"),
    *("ENGINE", "ENGINE_ATTRIBUTE", "FORCE", "INSERT_METHOD", "KEY_BLOCK_SIZE", "LOCK", "MAX_ROWS", "MIN_ROWS"),
    *("NOCACHE", "ORDER", "PACK_KEYS", "PLACEMENT", "PRE_SPLIT_REGIONS", "ROW_FORMAT", "SECONDARY_ENGINE", "SET"),
    *("SHARD_ROW_ID_BITS", "STATS_AUTO_RECALC", "STATS_BUCKETS", "STATS_COL_CHOICE", "STATS_COL_LIST"),
    *("STATS_OPTIONS", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "STATS_SAMPLE_RATE", "STATS_TOPN", "TTL"),
    *("TTL_ENABLE", "TTL_JOB_INTERVAL", "WITH", "WITHOUT"),
)
"""What an action begins with that changes neither rows nor columns (texts stay as they are in UTF-8). ``ALTER``: the
default of a column, the visibility of an index, a CHECK."""
_PARTITION_CARE = ("ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR")
_NO_BINLOG = ("NO_WRITE_TO_BINLOG", "LOCAL")


def read_alter(tokens: Tokens, database: str | None) -> tuple[Statement, ...]:
    """Passes ALTER TABLE; a RENAME TO comes as a statement of its own after the rest. Raises UnreadableError for an
    action that is not known."""
    tokens.expect("ALTER", "TABLE")
    is_qualified = tokens.word(1) == "."
    name = tokens.table_name(database)
    if tokens.take("EXCHANGE", "PARTITION"):
        return (_read_exchange(tokens, name, database, is_qualified=is_qualified),)
    actions: list[Action] = []
    renamed: tuple[RenameTables, ...] = ()
    while not tokens.ended:
        if tokens.word() == "RENAME" and tokens.word(1) not in ("COLUMN", "INDEX", "KEY"):
            renamed = (_read_target(tokens, name, database, is_qualified=is_qualified),)
        else:
            actions.extend(_read_action(tokens))
        if not tokens.take(",") and not _partitioning_comes(tokens):
            tokens.expect_end()
    altered = (AlterTable(name=name, actions=tuple(actions)),) if actions else ()
    return altered + renamed or (NoChange(),)


def read_create_index(tokens: Tokens, database: str | None) -> Statement:
    """Passes CREATE INDEX of any kind."""
    tokens.expect("CREATE")
    unique = tokens.take("UNIQUE")
    tokens.skip_until("INDEX")
    tokens.expect("INDEX")
    lenient = tokens.take("IF", "NOT", "EXISTS")
    index = tokens.name()
    tokens.skip_until("ON")
    tokens.expect("ON")
    name = tokens.table_name(database)
    key = AddKey(primary=False, index=index, columns=(), unique=unique, lenient=lenient)
    return AlterTable(name=name, actions=(read_key_columns(tokens, key),))


def read_drop_index(tokens: Tokens, database: str | None) -> Statement:
    """Passes DROP INDEX."""
    tokens.expect("DROP", "INDEX")
    lenient = tokens.take("IF", "EXISTS")
    index = tokens.name()
    tokens.expect("ON")
    name = tokens.table_name(database)
    while tokens.take_any("ALGORITHM", "LOCK"):
        tokens.take("=")
        tokens.name()
    return AlterTable(name=name, actions=(DropKey(index=index, lenient=lenient),))


def _read_exchange(tokens: Tokens, name: TableName, database: str | None, *, is_qualified: bool) -> ExchangePartition:
    """Passes the rest of EXCHANGE PARTITION. The database of the event is that of the plain table, except in Simple
    (wire.md 8.7)."""
    partition = tokens.name()
    tokens.expect("WITH", "TABLE")
    plain_is_qualified = tokens.word(1) == "."
    plain = tokens.table_name(database or name.database)
    if tokens.take_any("WITH", "WITHOUT"):
        tokens.expect("VALIDATION")
    tokens.expect_end()
    unqualified = plain_is_qualified and not is_qualified and fold(name.database) == fold(plain.database)
    return ExchangePartition(partitioned=name, partition=partition, plain=plain, unqualified=unqualified)


def _read_target(tokens: Tokens, name: TableName, database: str | None, *, is_qualified: bool) -> RenameTables:
    """Passes RENAME TO. A new name without a database is in the session's, which the event has."""
    tokens.expect("RENAME")
    tokens.take_any("TO", "AS", "=")
    to_is_qualified = tokens.word(1) == "."
    to = tokens.table_name(database or name.database)
    return (
        rename_of_unqualified(name, to) if to_is_qualified and not is_qualified else RenameTables(pairs=((name, to),))
    )


def rename_of_unqualified(old: TableName, new: TableName) -> RenameTables:
    """Returns the rename of a table whose old name stands without a database, and whose new name with one. The event's
    database is that of the new name where TiCDC's classic writer sent it."""
    return RenameTables(pairs=((old, new),), unqualified=fold(old.database) == fold(new.database))


def _read_action(tokens: Tokens) -> tuple[Action, ...]:
    match tokens.word():
        case "ADD":
            return tuple(_read_add(tokens))
        case "DROP":
            return _read_drop(tokens)
        case "RENAME":
            return (_read_rename(tokens),)
        case "MODIFY" | "CHANGE":
            return _read_modify(tokens)
        case "PARTITION" | "TRUNCATE" | "REORGANIZE" | "REMOVE":
            return _read_partition_action(tokens)
        case "COALESCE":
            return (_read_coalesce(tokens),)
        case word if word in _PARTITION_CARE and tokens.word(1) == "PARTITION":
            tokens.skip_until()
        case word if word in _OPTIONS:
            _skip_option(tokens)
        case _:
            raise tokens.unreadable("an action of ALTER TABLE")
    return ()


def _read_add(tokens: Tokens) -> Iterator[Action]:
    tokens.expect("ADD")
    if is_key(tokens):
        key = read_key(tokens)
        yield from _without_checks(() if key is None else (key,))
    elif tokens.word() == "STATS_EXTENDED":
        tokens.skip_until(",")
    elif tokens.take("PARTITION"):
        yield from _read_add_partitions(tokens)
    else:
        tokens.take("COLUMN")
        lenient = tokens.take("IF", "NOT", "EXISTS")
        entries = tokens.brackets().parts() if tokens.word() == "(" else [tokens]
        for entry in entries:
            yield from _read_add_entry(entry, lenient=lenient)
            if entry is not tokens:
                entry.expect_end()


def _read_add_entry(tokens: Tokens, *, lenient: bool) -> Iterator[Action]:
    column, keys = read_entry(tokens)
    if column is not None:
        yield AddColumn(
            column=column.definition,
            default=column.default,
            computed=column.computed,
            position=_read_position(tokens),
            lenient=lenient,
        )
    yield from _without_checks(keys)


def _without_checks(keys: Iterable[AddKey | AddForeignKey]) -> Iterator[Action]:
    """Yields the keys, but no CHECK, which has no columns: only CREATE TABLE gives no other key its name."""
    return (key for key in keys if isinstance(key, AddForeignKey) or key.made or key.columns)


def _read_position(tokens: Tokens) -> Position | None:
    if tokens.take("FIRST"):
        return Position(after=None)
    return Position(after=tokens.column_name()) if tokens.take("AFTER") else None


def _read_add_partitions(tokens: Tokens) -> Iterator[Action]:
    tokens.take("IF", "NOT", "EXISTS")
    tokens.take_any(*_NO_BINLOG)
    if tokens.take("PARTITIONS"):  # of HASH and KEY
        yield ResizeHash(by=read_count(tokens))
    else:
        yield AddPartitions(partitions=read_partitions(tokens))


def _read_drop(tokens: Tokens) -> tuple[Action, ...]:
    tokens.expect("DROP")
    if tokens.take("PRIMARY", "KEY"):
        return (DropKey(index="PRIMARY"),)
    if tokens.take_any("INDEX", "KEY"):
        lenient = tokens.take("IF", "EXISTS")
        return (DropKey(index=tokens.name(), lenient=lenient),)
    if tokens.take_any("FOREIGN", "CHECK", "CONSTRAINT", "STATS_EXTENDED"):
        tokens.skip_until(",")
        return ()
    if tokens.take("PARTITION"):
        lenient = tokens.take("IF", "EXISTS")
        return (DropPartitions(names=tokens.names(), keep=False, lenient=lenient),)
    tokens.take("COLUMN")
    lenient = tokens.take("IF", "EXISTS")
    name = tokens.column_name()
    tokens.take_any("RESTRICT", "CASCADE")
    return (DropColumn(name=name, lenient=lenient),)


def _read_rename(tokens: Tokens) -> Action:
    tokens.expect("RENAME")
    column = tokens.take("COLUMN") or not tokens.take_any("INDEX", "KEY")
    old = tokens.name()
    tokens.expect("TO")
    new = tokens.name()
    return RenameColumn(old=old, new=new) if column else RenameKey(old=old, new=new)


def _read_modify(tokens: Tokens) -> tuple[Action, ...]:
    change = tokens.take_any("MODIFY", "CHANGE") == "CHANGE"
    tokens.take("COLUMN")
    lenient = tokens.take("IF", "EXISTS")
    old = tokens.column_name() if change else None
    column = read_column(tokens, new=False)
    position = _read_position(tokens)
    definition = replace(column.definition, origin_default=column.origin_default)
    modify = ModifyColumn(old=old or column.name, column=definition, position=position, lenient=lenient)
    return (modify, *column.keys)


def _read_partition_action(tokens: Tokens) -> tuple[Action, ...]:
    if tokens.take("TRUNCATE", "PARTITION"):
        return (DropPartitions(names=() if tokens.take("ALL") else tokens.names(), keep=True),)
    if tokens.take("REORGANIZE", "PARTITION"):
        return _read_reorganize(tokens)
    if tokens.take("REMOVE", "PARTITIONING"):
        return (SetPartitioning(partitioning=None),)
    if tokens.word() == "PARTITION" and tokens.word(1) == "BY":
        return (SetPartitioning(partitioning=read_partitioning(tokens)),)
    if tokens.take("REMOVE", "TTL"):
        return ()
    tokens.expect("PARTITION")
    tokens.name()
    if not tokens.take_any("ATTRIBUTES", "PLACEMENT"):
        raise tokens.unreadable("an action on a partition")
    _skip_option(tokens)
    return ()


def _read_reorganize(tokens: Tokens) -> tuple[Action, ...]:
    tokens.take_any(*_NO_BINLOG)
    if tokens.ended:  # HASH and KEY
        return ()
    names = tokens.names()
    tokens.expect("INTO")
    return (AddPartitions(partitions=read_partitions(tokens), replaces=names),)


def _read_coalesce(tokens: Tokens) -> ResizeHash:
    tokens.expect("COALESCE", "PARTITION")
    tokens.take_any(*_NO_BINLOG)
    return ResizeHash(by=-read_count(tokens))


def _partitioning_comes(tokens: Tokens) -> bool:
    """True if an action comes before which there may be no comma."""
    return tokens.comes("PARTITION", "BY") or tokens.comes("REMOVE", "PARTITIONING")


def _skip_option(tokens: Tokens) -> None:
    """Passes everything up to the next action: options may have commas of their own before strings (``LOCATION LABELS
    "a", "b"``)."""
    while True:
        while not tokens.ended and tokens.word() != "," and not _partitioning_comes(tokens):
            refuse_binary(tokens)
            tokens.skip()
        if tokens.word() != "," or tokens.word(1):
            return
        tokens.expect(",")
