"""What a table is: its columns with exact MySQL types, its keys and its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from ticdc_codec.event import Column, NamedBy, key_order
from ticdc_codec.mysql_type import Family, MysqlType, parse_type
from ticdc_codec.name_case import fold
from ticdc_lakehouse.schema.names import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDefault:
    """The value that an ADD COLUMN gave to the rows from before it is not known yet (`computed_default`). It is that of
    every row that was not written since."""

    name: str
    """The column's name in the ADD COLUMN: it names the value, also after a RENAME of the column."""
    since: int
    """commit_ts of the ADD COLUMN."""
    estimated: bool = False
    """True if those rows hold an estimate; False if they hold NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """One column of a table."""

    name: str
    type: MysqlType
    nullable: bool = True
    virtual: bool = False
    """A generated column that is not stored: no protocol ever sends it."""
    by: NamedBy | None = None
    """ENUM and SET: whether the feed's values are ``index`` or ``name``."""
    defect: str | None = None
    """What may be wrong with values of the feed's, as messages say (``event.Column``)."""
    open: bool = False
    """True if messages leave its type open, so that its texts are the wire's own (Debezium)."""
    declared: bool = False
    """A key column whose texts have digits as messages have them: True if some messages declared its type. With
    ``open``, others did not, and one row would have two keys."""
    pending: PendingDefault | None = None
    """Set while the value of rows from before its ADD COLUMN is not known."""
    origin_default: str | None = None
    """What TiDB shows in rows from before its ADD COLUMN that were not written since (the column's origin default),
    where that is not NULL: a value's text (a CHAR's with the spaces at its end), or of one that is not known a mark
    which only CREATE TABLE … LIKE copies.
    None also where messages, an export or the ``schema_file`` made the definition: they do not show it."""
    may_be_rewritten: bool = False
    """True if a MODIFY may have written all rows again: the origin default may as well be NULL (`unwritten_rows`)."""
    sized: bool = True
    """False if only messages show its type, and not how many digits its values have after the point, or how long they
    are: most protocols call a DATETIME(3) ``datetime``, and a CHAR(9) ``char``, which is CHAR(1) in a statement."""

    @property
    def has_names(self) -> bool:
        """True of an ENUM or SET, whose values are names with numbers."""
        return self.type.family in (Family.ENUM, Family.SET)

    @property
    def has_unknown_digits(self) -> bool:
        """True if the number of digits in the texts of its values is not known: for a moment messages do not show
        it."""
        return not self.sized and self.type.family in (Family.DATETIME, Family.TIMESTAMP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A primary or unique key, or an index, of which no more is known than its name and columns."""

    name: str
    """``PRIMARY`` is the primary key's."""
    columns: tuple[str, ...]
    """None of an index of expressions."""
    unique: bool = True
    """True if it can be the handle key: not an index, nor a key of expressions."""

    @property
    def primary(self) -> bool:
        """True if it is the primary key."""
        return self.name.upper() == "PRIMARY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition of a table."""

    name: str
    bounds: tuple[str | None, ...] = ()
    """RANGE: the value that every row is below, none for MAXVALUE. LIST: the values, None for NULL. Texts of the
    literals as they are written; what is no literal stays as SQL."""
    default: bool = False
    """LIST: takes what no other partition takes."""


PartitionMethod = Literal["range", "list", "hash", "key"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitioning:
    """How a table's rows are spread over partitions."""

    method: PartitionMethod
    column: str | None
    """The one column that the partition of a row depends on; None if it is more than one, or an expression that is not
    understood."""
    function: str | None
    """``year``, ``to_days``, … around the column, None for the column itself."""
    partitions: tuple[Partition, ...]
    """In the order of the text: of RANGE, by rising bounds; of HASH, by their number, that is abs(x mod their count) of
    their rows (0 of NULL). None of KEY, whose rows cannot be distinguished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table's definition."""

    database: str
    table: str
    columns: tuple[ColumnDefinition, ...]
    key: tuple[str, ...]
    """Handle key column names (``handle_key``) in the key's own order, none if there is no such key."""
    keys: tuple[Key, ...] | None = None
    """All keys and indexes, in the order in which they were made; None where that is not known."""
    partitioning: Partitioning | None = None
    foreign_keys: int = 0
    """How many foreign keys it ever had, as far as statements show: TiDB numbers those without a name."""

    @property
    def name(self) -> TableName:
        """Its database and name."""
        return TableName(self.database, self.table)

    def named(self, name: TableName) -> Table:
        """Returns the table under another name: a table that is renamed while it is blocked has the name of its last
        state here."""
        return replace(self, database=name.database, table=name.table)

    @property
    def key_text_columns(self) -> tuple[str, ...]:
        """The handle key's columns in the order in which a key's text has their values."""
        return tuple(key_order(self.key))

    def is_part_of_key(self, names: Set[str]) -> bool:
        """True if columns are what rows have of a unique key with virtual columns, which they lack: ticdc takes such a
        key where there is no primary key, and the other columns are not unique."""
        return any(key & self._virtual and key - self._virtual == names for key in self._unique_keys)

    def is_unique_key(self, names: Set[str]) -> bool:
        """True if columns are what rows have of a unique key. Of several of one size TiCDC takes the one with the
        lowest number, and TiDB gives a key another number where MODIFY rewrites it: no definition shows it."""
        return any(key - self._virtual == names for key in self._unique_keys)

    @property
    def names_rows(self) -> bool:
        """True if TiCDC can name rows by a key, and so sends them: by the handle key, or by what they have of a unique
        key with virtual columns."""
        return bool(self.key) or any(key & self._virtual for key in self._unique_keys)

    @property
    def _unique_keys(self) -> list[Set[str]]:
        return [{fold(name) for name in key.columns} for key in self.keys or () if key.unique]

    @property
    def _virtual(self) -> Set[str]:
        return {fold(column.name) for column in self.columns if column.virtual}

    @property
    def sent(self) -> tuple[ColumnDefinition, ...]:
        """The columns that row images hold: all but the virtual ones."""
        return tuple(column for column in self.columns if not column.virtual)

    @property
    def described(self) -> tuple[Column, ...]:
        """The columns of row images as a message would describe them."""
        return tuple(Column(name=c.name, type=c.type.text, key=c.name in self.key, by=c.by) for c in self.sent)


def handle_key(columns: Iterable[ColumnDefinition], keys: Iterable[Key]) -> tuple[str, ...]:
    """Returns the key that TiCDC chooses: the primary key, else of the unique keys without columns that may be NULL or
    are virtual that of the fewest columns, of those the oldest; else none.

    Source: tiflow ``cdc/model/schema_storage.go``, findHandleIndex; wire.md 1.2.5.
    """
    sure = {fold(column.name) for column in columns if not column.nullable and not column.virtual}
    unique = (key for key in keys if key.unique)
    eligible = [key for key in unique if key.primary or sure.issuperset(fold(name) for name in key.columns)]
    return min(eligible, key=lambda key: (not key.primary, len(key.columns))).columns if eligible else ()


def table_to_json(table: Table) -> str:
    """Returns the definition as one JSON text."""
    columns = [
        {"name": c.name, "type": c.type.text, "nullable": c.nullable, "virtual": c.virtual, "by": c.by}
        | ({} if c.defect is None else {"defect": c.defect})
        | ({"open": True} if c.open else {})
        | ({"declared": True} if c.declared else {})
        | ({} if c.pending is None else {"pending": c.pending})
        | ({} if c.origin_default is None else {"first": c.origin_default})
        | ({"may_be_rewritten": True} if c.may_be_rewritten else {})
        | ({} if c.sized else {"sized": False})
        for c in table.columns
    ]
    members: dict[str, object] = {"database": table.database, "table": table.table, "columns": columns}
    members["key"] = table.key
    if table.keys is not None:
        members["keys"] = table.keys
    if table.partitioning is not None:
        members["partitioning"] = table.partitioning
    if table.foreign_keys:
        members["foreign_keys"] = table.foreign_keys
    return msgspec.json.encode(members).decode()


def table_from_json(text: str) -> Table:
    """Inverse of `table_to_json`."""
    members = msgspec.json.decode(text)
    return Table(
        database=members["database"],
        table=members["table"],
        columns=tuple(map(_column_from, members["columns"])),
        key=tuple(members["key"]),
        keys=msgspec.convert(members.get("keys"), tuple[Key, ...] | None),
        partitioning=msgspec.convert(members.get("partitioning"), Partitioning | None),
        foreign_keys=members.get("foreign_keys", 0),
    )


def _column_from(members: dict[str, Any]) -> ColumnDefinition:
    others = {name: value for name, value in members.items() if name not in ("type", "pending", "first")}
    pending = msgspec.convert(members.get("pending"), PendingDefault | None)
    return ColumnDefinition(
        type=parse_type(members["type"]), pending=pending, origin_default=members.get("first"), **others
    )


def table_from_wire(database: str, table: str, columns: tuple[Column, ...]) -> Table:
    """Returns the definition as far as a row message shows it: types without lengths, keys only where the wire names
    them."""
    kinds = [parse_type(column.type) for column in columns]
    sized = any(kind.size and kind.family not in _SIZED_ALONE for kind in kinds)
    return Table(
        database=database,
        table=table,
        columns=tuple(_column_from_wire(column, sized=sized) for column in columns),
        key=tuple(c.name for c in columns if c.key),
    )


_SIZED_ALONE = (Family.BIT, Family.DATETIME)
"""Types whose size Debezium shows, and that of no other. It calls a DATETIME with four digits or more datetime(6)."""
_WITH_DIGITS = (Family.DATETIME, Family.TIMESTAMP, Family.TIME, Family.DECIMAL)
_WITH_LENGTH = ("char", "binary", "bit")
"""Types that have a length where a statement gives none (``sized``)."""


def _column_from_wire(column: Column, *, sized: bool) -> ColumnDefinition:
    """Returns the definition of a column of messages. ``sized``: messages show the sizes of types, so that a type
    without one has none."""
    kind = parse_type(column.type)
    is_bit = kind.family is Family.BIT and bool(kind.size)
    sized = sized or is_bit or not (kind.family in _WITH_DIGITS or kind.name in _WITH_LENGTH)
    return ColumnDefinition(name=column.name, type=kind, by=column.by, defect=column.defect, sized=sized)
