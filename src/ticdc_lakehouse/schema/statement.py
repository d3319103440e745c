"""What a DDL says: one dataclass a kind of statement, and one a kind of action within ALTER TABLE."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ticdc_codec.name_case import fold
from ticdc_lakehouse.schema.definition import ColumnDefinition, Partition, Partitioning, Table
from ticdc_lakehouse.schema.names import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase:
    """All tables of a database go."""

    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """A new, empty table."""

    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTableLike:
    """A new, empty table with the columns, keys and partitions of another."""

    name: TableName
    source: TableName
    unqualified: bool = field(default=False, compare=False)
    """True if the source has no database in the text, as in `RenameTables`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTables:
    """Tables go, with their rows."""

    names: tuple[TableName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateTable:
    """A table loses all its rows, and none of its columns."""

    name: TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTables:
    """Tables get other names, one after the other (a swap goes through a third name)."""

    pairs: tuple[tuple[TableName, TableName], ...]
    """(old, new)."""
    unqualified: bool = field(default=False, compare=False)
    """True if the one old name has no database in the text, and that of the new name here for want of a better: the
    table may come from any. Another version of TiCDC may write its database, in the same DDL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreTable:
    """RECOVER or FLASHBACK TABLE: a dropped or truncated table comes back with the rows that it had."""

    name: TableName
    """The name under which it was dropped."""
    to: TableName
    """The name under which it comes back."""
    by_job: bool = False
    """True if a number of TiDB's says which of the tables that had the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """A table's columns, keys or partitions change."""

    name: TableName
    actions: tuple[Action, ...]
    """In the order of the text. Actions that change nothing in the lake (comment, default, …) are left out; if none is
    left, the statement is NoChange."""

    @property
    def of_indexes(self) -> bool:
        """True if it adds only indexes: their names must be known, but no row and no key depends on them."""
        return all(
            isinstance(action, AddForeignKey) or (isinstance(action, AddKey) and not action.unique)
            for action in self.actions
        )

    @property
    def of_named_indexes(self) -> bool:
        """True if it adds only indexes that have names in the text: done twice, it changes nothing more. (An index
        without a name would be there under two names, and a foreign key would be counted twice.)"""
        return all(isinstance(action, AddKey) and not action.unique and action.index for action in self.actions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangePartition:
    """A partition and a plain table exchange their rows."""

    partitioned: TableName
    partition: str
    plain: TableName
    unqualified: bool = field(default=False, compare=False)
    """True if the partitioned table has no database in the text, as in `RenameTables`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoChange:
    """A DDL that changes no table's rows, columns, keys or name: a view, a comment, CREATE DATABASE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A DDL that is not understood. It may have changed everything it names; every table where it names nothing."""

    names: tuple[TableName, ...]
    """The tables that it names; none if it is about a whole database, or names nothing."""
    database: str | None
    """The database whose every table it may change, None if it is only about ``names``, or names nothing."""
    reason: str
    gives_names: bool = False
    """True if it is known to rename tables, but not to which names."""


TableStatement = (
    DropDatabase
    | CreateTable
    | CreateTableLike
    | DropTables
    | TruncateTable
    | RenameTables
    | RestoreTable
    | AlterTable
    | ExchangePartition
    | Unread
)
"""A statement that changes tables, or may do so."""
Statement = TableStatement | NoChange


def names_of(statement: Statement) -> tuple[TableName, ...]:
    """Returns every table that a statement names; none of one about a whole database."""
    match statement:
        case CreateTable(table=table):
            return (table.name,)
        case CreateTableLike(name=name, source=source):
            return name, source
        case DropTables(names=names) | Unread(names=names):
            return names
        case TruncateTable(name=name) | AlterTable(name=name):
            return (name,)
        case RenameTables(pairs=pairs):
            return tuple(name for pair in pairs for name in pair)
        case RestoreTable(name=name, to=to):
            return name, to
        case ExchangePartition(partitioned=partitioned, plain=plain):
            return partitioned, plain
        case DropDatabase() | NoChange():
            return ()


def given_names(statement: Statement) -> tuple[TableName, ...]:
    """Returns the names that a statement gives to tables: of new, renamed and restored ones."""
    match statement:
        case CreateTable(table=table):
            return (table.name,)
        case CreateTableLike(name=name) | RestoreTable(to=name):
            return (name,)
        case RenameTables(pairs=pairs):
            return tuple(new for _, new in pairs)
        case _:
            return ()


def unqualified_name(statement: Statement) -> TableName | None:
    """Returns the name of a table in a RENAME or EXCHANGE that may be in any database; None if the text names its
    database."""
    match statement:
        case RenameTables(pairs=[(name, _)], unqualified=True) | ExchangePartition(partitioned=name, unqualified=True):
            return name
        case _:
            return None


def is_unqualified(statement: Statement) -> bool:
    """True if a statement has the name of one table without its database, and that of another with it."""
    match statement:
        case (
            CreateTableLike(unqualified=unqualified)
            | RenameTables(unqualified=unqualified)
            | ExchangePartition(unqualified=unqualified)
        ):
            return unqualified
        case _:
            return False


def may_give_name(statement: Statement, name: TableName) -> bool:
    """True if a statement gives this name to a table, or is not understood and may do so."""
    match statement:
        case Unread(names=(), database=database):
            return database is None or fold(database) == fold(name.database)
        case Unread(names=names):
            return name in names
        case _:
            return name in given_names(statement)


def database_of(statement: Statement) -> str | None:
    """Returns the database whose every table a statement may change, None if it is about single tables."""
    match statement:
        case DropDatabase(database=database) | Unread(database=database):
            return database
        case _:
            return None


def is_of_all_tables(statement: Statement) -> bool:
    """True if a statement may change every table of a feed: it is not understood, and names neither table nor
    database."""
    return isinstance(statement, Unread) and not statement.names and statement.database is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a column goes: FIRST, or AFTER another; no Position means at the end, or where it is."""

    after: str | None
    """None: FIRST."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """The DEFAULT of a column: what rows get that were there before it."""

    value: str | None
    """MySQL's canonical text (``event`` docstring; BIT as decimal integer, binary as hex, ENUM and SET by name), None
    for NULL."""
    padded: str | None = field(default=None, compare=False)
    """A CHAR's with the spaces at its end: TiDB keeps them, and shows them once the column has another type."""

    @property
    def origin(self) -> str | None:
        """`ColumnDefinition.origin_default` of a column that is added with this DEFAULT."""
        return self.value if self.padded is None else self.padded


class Computation(StrEnum):
    """Where the value of a DEFAULT comes from that its text does not show."""

    CLOCK = "clock"
    """CURRENT_TIMESTAMP: the clock when the statement ran."""
    LOCAL_TIME = "local time"
    """A TIMESTAMP's text, in the zone of the session that ran the statement."""
    EXPRESSION = "expression"
    """An expression, or a literal of which it is not certain what the type makes of it."""
    GENERATED = "generated"
    """A stored generated column: each row has a value of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedDefault:
    """A DEFAULT whose value the text does not show. All old rows get one value, but for generated columns."""

    by: Computation
    reason: str = field(compare=False)
    """Why the message does not determine the value, for people. It has the text of the DEFAULT, which another version
    of TiCDC may write otherwise."""
    local_time: str | None = None
    """LOCAL_TIME: the canonical text, in the session's zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """ADD COLUMN."""

    column: ColumnDefinition
    default: Default | None
    """None where the text has none: old rows get NULL, or MySQL's zero value of a NOT NULL column."""
    computed: ComputedDefault | None
    """Set where the text does not show the value of old rows."""
    position: Position | None
    lenient: bool
    """IF NOT EXISTS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """DROP COLUMN."""

    name: str
    lenient: bool = False
    """IF EXISTS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    """RENAME COLUMN old TO new."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyColumn:
    """MODIFY COLUMN, and CHANGE COLUMN, which renames as well."""

    old: str
    column: ColumnDefinition
    """Its ``origin_default`` is what rows that do not store the column have where TiDB does not write them again."""
    position: Position | None
    lenient: bool
    """IF EXISTS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddKey:
    """ADD PRIMARY KEY, ADD UNIQUE KEY or ADD INDEX: the handle key may become another, and a name is taken."""

    primary: bool
    index: str | None
    """Its name, None where the text has none: TiDB calls it after its first column then."""
    columns: tuple[str, ...]
    """None of an index of expressions."""
    unique: bool = True
    """True if it is a key of columns, which may become the handle key."""
    first: str | None = None
    """The column that comes first in an index of expressions; None if an expression does."""
    called: str = "expression_index"
    """What TiDB calls it where neither the text nor a column names it."""
    lenient: bool = False
    """IF NOT EXISTS."""
    made: bool = True
    """False of FULLTEXT, of which TiDB v8.5 only warns, and of a CHECK: CREATE TABLE gives no other key its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddForeignKey:
    """A FOREIGN KEY: TiDB makes an index of its name for it, unless one begins with its columns."""

    name: str | None
    """Its name; None where the text has none: TiDB calls it ``fk_`` and its number then."""
    columns: tuple[str, ...]
    """Empty if an index is known to begin with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropKey:
    """DROP PRIMARY KEY, or DROP INDEX."""

    index: str
    """``PRIMARY`` is the primary key's name."""
    lenient: bool = False
    """IF EXISTS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameKey:
    """RENAME INDEX, of any index or key."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPartitions:
    """DROP PARTITION (``keep`` false) or TRUNCATE PARTITION (``keep`` true): the partitions' rows go."""

    names: tuple[str, ...]
    """Empty: ALL."""
    keep: bool
    lenient: bool = False
    """IF EXISTS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPartitioning:
    """The table's partitions become these and no row is lost: PARTITION BY, REMOVE PARTITIONING (None)."""

    partitioning: Partitioning | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    """ADD PARTITION; with ``replaces``, REORGANIZE PARTITION: no row is lost."""

    partitions: tuple[Partition, ...]
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeHash:
    """ADD PARTITION PARTITIONS n, or COALESCE PARTITION n of HASH and KEY: rows go to other partitions, none is
    lost."""

    by: int
    """Partitions more; below 0: fewer."""


Action = (
    AddColumn
    | DropColumn
    | RenameColumn
    | ModifyColumn
    | AddKey
    | AddForeignKey
    | DropKey
    | RenameKey
    | DropPartitions
    | SetPartitioning
    | AddPartitions
    | ResizeHash
)
