"""A table's schema as DDL and BOOTSTRAP messages carry it, and the columns that it means (wire.md 1.3.1, 1.3.2).

    {"schema": "d", "table": "t", "tableID": 7, "version": tso, "columns": [{"name": "id", "dataType": {…},
     "nullable": false, "default": null}], "indexes": [{"name": "primary", "unique": true, "primary": true, …}]}

Rows are read only by ``Column``: its type text has all that they need. DDL events also have what ``default`` says of
dates and times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import msgspec

from ticdc_codec.batch import SchemaName, checked_tso
from ticdc_codec.errors import SCHEMA_MISSING, DecodeError
from ticdc_codec.event import Column, Layout, NamedBy, columns_text
from ticdc_codec.mysql_type import Family, family_of, is_known, quoted_element
from ticdc_codec.name_case import fold

_HIDDEN = "_V$_"
"""Prefix of the generated columns behind indexes of expressions, which rows never have."""
_ADDED = "primary"
"""Name of the index that writers add if none is primary; a primary key that is an index is named ``PRIMARY``."""


class DataType(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """``dataType``; numbers that are 0 are left out."""

    mysql_type: str = msgspec.field(name="mysqlType")
    charset: str
    collate: str
    length: int = 0
    decimal: int = 0
    elements: tuple[str, ...] | None = None
    unsigned: bool = False
    zerofill: bool = False


class ColumnSchema(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One of ``columns``. ``default`` is a number for BIT."""

    name: str
    data_type: DataType = msgspec.field(name="dataType")
    nullable: bool
    default: str | int | None


class IndexSchema(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One of ``indexes``."""

    name: str
    unique: bool
    primary: bool
    nullable: bool
    columns: tuple[str, ...]


class TableSchema(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """``tableSchema`` and ``preTableSchema``."""

    database: str = msgspec.field(name="schema")
    table: str
    table_id: int = msgspec.field(name="tableID")
    """The logical table's, where rows have their partition's (wire.md 8.12)."""
    version: int
    columns: tuple[ColumnSchema, ...] | None
    indexes: tuple[IndexSchema, ...] | None


def layout_of(schema: TableSchema) -> Layout:
    """Returns the columns of a schema, in its order. Raises DecodeError."""
    described = schema.columns or ()
    keys = _handle_key(schema)
    names = [column.name for column in described]
    if len(set(names)) < len(names):
        raise DecodeError("duplicate_column", f"expected each column once, found {names}")
    if not keys <= set(names):
        raise DecodeError("wrong_columns", f"expected columns of indexes among {names}, found {sorted(keys)}")
    columns = tuple(_column(column, key=column.name in keys) for column in described)
    return Layout(schema.database, schema.table, columns, columns_text(columns), checked_tso(schema.version))


def _handle_key(schema: TableSchema) -> frozenset[str]:
    """Returns the primary key; else the unique key without NULLs that has the fewest columns, the first of several;
    else none.

    Source: tiflow ``cdc/model/schema_storage.go``, findHandleIndex; ticdc ``table_info_helper.go``, initIndexColumns.
    """
    indexes = schema.indexes or ()
    nullable = {column.name for column in schema.columns or () if column.nullable}
    unique = [
        index.columns
        for index in indexes
        if index.unique
        and not index.primary
        and nullable.isdisjoint(index.columns)
        and not any(name.startswith(_HIDDEN) for name in index.columns)
    ]
    primary = [index.columns for index in indexes if index.primary and not _is_stand_in(index, unique)]
    chosen = primary or sorted(unique, key=len)
    return frozenset(chosen[0]) if chosen else frozenset()


def _is_stand_in(primary: IndexSchema, unique: Sequence[tuple[str, ...]]) -> bool:
    """True if the table has no primary key: writers add TiDB's stand-in then, the first unique key without NULLs, which
    need not be the handle key (``newTableSchema`` in their ``simple/message.go``).
    """
    return primary.name == _ADDED and primary.columns in unique[:1]


def _column(column: ColumnSchema, *, key: bool) -> Column:
    text = type_text(column.data_type)
    if not is_known(text):
        raise DecodeError("unknown_type", f"column {column.name} is of type {text[:80]!r}")
    by: NamedBy | None = "index" if family_of(text) in (Family.ENUM, Family.SET) else None
    return Column(name=column.name, type=text, key=key, by=by)


_DATES_AND_TIMES = (Family.DATE, Family.DATETIME, Family.TIME, Family.TIMESTAMP)
_CONSTANT = re.compile(r"[-:. \d]+", re.ASCII)


def with_defaults(layout: Layout, schema: TableSchema) -> Layout:
    """Returns the layout of a schema with the constant DEFAULTs of its dates and times."""
    described = zip(layout.columns, schema.columns or (), strict=True)
    columns = tuple(replace(column, default=_constant(column, each.default)) for column, each in described)
    if columns == layout.columns:
        return layout
    return Layout(layout.database, layout.table, columns, columns_text(columns), layout.version)


def _constant(column: Column, default: str | int | None) -> str | None:
    """Returns ``Column.default``; None for CURRENT_TIMESTAMP. Source: TiDB's ``pkg/ddl/add_column.go``,
    getDefaultValue and convertTimestampDefaultValToUTC."""
    if isinstance(default, str) and _CONSTANT.fullmatch(default) and family_of(column.type) in _DATES_AND_TIMES:
        return default
    return None


_STRINGS = {"var_string": ("varchar", "varbinary"), "varchar": ("varchar", "varbinary"), "char": ("char", "binary")}
LENGTH_WITHOUT_FRACTION = {"datetime": 19, "timestamp": 19, "time": 10}
"""``length`` of a type of times without digits after the point; with them the point and the digits come on top."""


def type_text(data_type: DataType) -> str:
    """Returns MySQL's type text, as SHOW COLUMNS prints it, except FLOAT(M,D) and DOUBLE(M,D): D is not sent."""
    name = data_type.mysql_type
    match name:
        case "enum" | "set" if data_type.elements:
            return f"{name}({','.join(map(quoted_element, data_type.elements))})"
        case "datetime" | "timestamp" | "time":
            # tiflow leaves decimal out for TIMESTAMP, length says it (wire.md 1.3.1)
            fraction = data_type.length - LENGTH_WITHOUT_FRACTION[name] - 1
            return f"{name}({fraction})" if fraction > 0 else name
        case "var_string" | "varchar" | "char":
            return f"{_STRINGS[name][data_type.charset == 'binary']}({data_type.length})"
        case "binary" | "varbinary":
            return f"{name}({data_type.length})"
        case "bit" | "year" | "vector":  # none of TiDB's has 0: it is that of a column whose size is not known
            return f"{name}({data_type.length})" if data_type.length > 0 else name
        case _:
            return name + _size_of_number(data_type) + _attributes(data_type)


def _size_of_number(data_type: DataType) -> str:
    match data_type.mysql_type:
        case "decimal" if data_type.length > 0:
            return f"({data_type.length},{data_type.decimal})"
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            return f"({data_type.length})"
        case _:
            return ""


def _attributes(data_type: DataType) -> str:
    return " unsigned" * data_type.unsigned + " zerofill" * data_type.zerofill


class LayoutReplacedError(Exception):
    """A message defines another layout for a name and version: the rows before it have to be decoded first."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        """The new one."""


def name_of(layout: Layout) -> SchemaName:
    """Returns what rows name the layout of a schema by, without case; it has all three."""
    return _folded((layout.database or "", layout.table or "", layout.version or 0))


def _folded(name: SchemaName) -> SchemaName:
    database, table, version = name
    return fold(database), fold(table), version


class Schemas:
    """Layouts by database, table and schema version. RENAME TABLE leaves the version as it is (wire.md 1.3.1), and the
    spelling of names may change meanwhile (8.14): case does not count, and rows keep their own."""

    MOST = 10_000

    def __init__(self, known: Mapping[SchemaName, tuple[Column, ...]]) -> None:
        self._known = known
        self._learned: dict[SchemaName, Layout] = {}
        self._missing: set[SchemaName] = set()

    def begin_batch(self) -> None:
        """Looks up missing schemas in ``known`` again."""
        self._missing.clear()

    def learn(self, layout: Layout) -> Layout:
        """Stores a layout for the rows that name it. Returns the stored one if both are equal.

        Raises LayoutReplacedError if another one is stored or known: ``replace`` it once the rows before are decoded.
        """
        before = self._stored(layout.database or "", layout.table or "", layout.version or 0)
        if before is None:
            return self._store(layout)
        if before.text != layout.text:
            raise LayoutReplacedError(layout)
        return before

    def replace(self, layout: Layout) -> None:
        """Stores a layout in place of another one of the same name and version."""
        self._store(layout)

    def _store(self, layout: Layout) -> Layout:
        if len(self._learned) >= self.MOST:
            del self._learned[next(iter(self._learned))]
        self._learned[name_of(layout)] = layout
        self._missing.discard((layout.database or "", layout.table or "", layout.version or 0))
        return layout

    def _stored(self, database: str, table: str, version: int) -> Layout | None:
        """Returns the layout of a name, in this spelling."""
        name = database, table, version
        layout = self._learned.get(_folded(name))
        if layout is not None:
            is_same = (layout.database, layout.table) == (database, table)
            return layout if is_same else _respelled(layout, database, table)
        columns = None if name in self._missing else self._known.get(name)
        if columns is None:
            self._missing.add(name)
            return None
        columns = tuple(replace(column, default=None) for column in columns)  # a DDL event's have some
        return self._store(Layout(database, table, columns, columns_text(columns), version))

    def is_newest(self, layout: Layout) -> bool:
        """True if a layout that ``find`` returned is still that of its name."""
        newest = self._learned.get(name_of(layout))
        return newest is not None and newest.text == layout.text

    def find(self, database: str, table: str, version: int) -> Layout:
        """Returns the layout that a row names, with the row's spelling of the names. Raises DecodeError
        ``schema_missing`` if its schema has not arrived."""
        layout = self._stored(database, table, version)
        if layout is None:
            detail = f"expected a schema of version {version} of {database}.{table} before its rows, found none"
            raise DecodeError(SCHEMA_MISSING, detail, database=database, table=table)
        return layout


@lru_cache(maxsize=4096)
def _respelled(layout: Layout, database: str, table: str) -> Layout:
    """Returns the layout under another spelling of its names; one object for equal arguments."""
    return Layout(database, table, layout.columns, layout.text, layout.version)


@lru_cache(maxsize=4096)
def layout_with(layout: Layout, names: frozenset[str]) -> Layout:
    """Returns the layout of rows that have these columns: all, or all but virtual ones, or only the handle key; one
    object for equal arguments. Raises DecodeError for other names.

    Rows name no key if they lack a column of it: a unique key may have virtual columns, and the others are not unique.
    """
    columns = tuple(column for column in layout.columns if column.name in names)
    if len(columns) != len(names):
        expected = [column.name for column in layout.columns]
        raise DecodeError("wrong_columns", f"expected columns among {expected}, found {sorted(names)}")
    if len(columns) == len(layout.columns):
        return layout
    if not names >= {column.name for column in layout.columns if column.key}:
        columns = tuple(replace(column, key=False) for column in columns)
    return Layout(layout.database, layout.table, columns, columns_text(columns), layout.version)
