"""Tables of several databases as TiDB holds them, for random scripts (`random_database`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ticdc_codec.name_case import fold
from ticdc_lakehouse.schema.names import TableName

Row = dict[str, str | None]


@dataclass(frozen=True)
class HeldColumn:
    name: str
    type: str
    number: int
    """TiDB's number of the column: tables exchange partitions only if those of their columns are the same."""
    default: str | None = None
    """What rows have that were there before it."""
    converted: bool = False
    """Whether a MODIFY changed its type."""


@dataclass
class HeldTable:
    name: TableName
    """As it was created or renamed."""
    number: int
    """TiDB's id of the table: each TRUNCATE gives another."""
    columns: list[HeldColumn]
    rows: dict[str, Row] = field(default_factory=dict)
    """By the text of the key, which is the first column of number 1."""
    partitions: int = 0
    """Of HASH partitions of the key, 0 without."""
    uncertain: bool = False
    """Whether gold may be unable to tell its columns or rows, so that it may be blocked."""
    unknown: bool = False
    """Whether this model does not know its rows, so that it must be blocked."""
    lowered: bool = False
    """Whether its rows come with the database in lower case, as after a RENAME."""
    columns_made: int = 2
    unread: frozenset[int] = frozenset()
    """commit_ts of the DDLs of it that nobody can read."""
    former: tuple[int, ...] = ()
    """The numbers that it had before a TRUNCATE."""

    @property
    def key(self) -> str:
        return next(column.name for column in self.columns if column.number == 1)

    @property
    def sent_name(self) -> TableName:
        """The name that messages have."""
        return TableName(fold(self.name.database), self.name.table) if self.lowered else self.name

    def partition_of(self, key: str) -> int:
        return int(key) % self.partitions

    def change_columns(self, columns: list[HeldColumn]) -> None:
        """Gives the rows the columns of these numbers."""
        before = {column.number: column.name for column in self.columns}
        for row in self.rows.values():
            values = {c.number: row[before[c.number]] if c.number in before else c.default for c in columns}
            row.clear()
            row.update((column.name, values[column.number]) for column in columns)
        self.columns = columns

    def emptied(self, number: int) -> HeldTable:
        """The table after a TRUNCATE, or another one that is made like it."""
        return replace(
            self, number=number, rows={}, columns=[*self.columns], unknown=False, lowered=False, unread=frozenset(),
            former=(*self.former, self.number),
        )  # fmt: skip


@dataclass(frozen=True)
class Dropped:
    """A DROP TABLE or TRUNCATE in TiDB's history."""

    schema: int
    """TiDB's id of the database."""
    name: TableName
    """The table's name then."""
    table: HeldTable


@dataclass
class Databases:
    """TiDB's databases and tables."""

    schemas: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By folded name: as it was created, and TiDB's id."""
    tables: dict[TableName, HeldTable] = field(default_factory=dict)
    history: list[Dropped] = field(default_factory=list)

    def drop(self, name: TableName) -> HeldTable:
        table = self.tables.pop(name)
        self.history.append(Dropped(self.schemas[fold(name.database)][1], name, table))
        return table

    def drop_database(self, database: str) -> None:
        """RECOVER TABLE finds none of its tables: their job is that of the database."""
        del self.schemas[fold(database)]
        for name in [name for name in self.tables if fold(name.database) == fold(database)]:
            del self.tables[name]

    def found_dropped(self) -> dict[TableName, HeldTable]:
        """By name, the table that RECOVER and FLASHBACK TABLE find: the newest dropped one, unless it is back."""
        numbers = {number: name for name, number in self.schemas.values()}
        newest = {each.name: each for each in self.history if each.schema in numbers}
        there = {table.number for table in self.tables.values()}
        return {name: each.table for name, each in newest.items() if each.table.number not in there}

    def restore(self, name: TableName, to: TableName) -> HeldTable:
        table = self.found_dropped()[name]
        newest = next(each for each in reversed(self.history) if each.name == name)
        later = [each for each in self.history if each.table.number == table.number]
        self.tables[to] = back = replace(
            table,
            name=to,
            rows={key: {**row} for key, row in table.rows.items()},
            columns=[*table.columns],
            lowered=False,
        )
        if later[-1] is not newest:  # it came back before, and was dropped under another name
            back.uncertain = back.unknown = True
        return back
