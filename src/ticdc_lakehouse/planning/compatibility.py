"""Compatibility of a window's rows with the definition of their table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from ticdc_codec import writer_defects
from ticdc_codec.event import Column
from ticdc_codec.mysql_type import Family, MysqlType, parse_type
from ticdc_codec.name_case import fold
from ticdc_codec.undeclared_types import completed, is_open, may_be
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.stop_reason import UNKNOWN_COLUMNS, StopKind, StopReason, WayOut, incompatible
from ticdc_lakehouse.planning.window import RowGroup
from ticdc_lakehouse.policy import OnHandleKeyOnly
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table, table_from_wire
from ticdc_lakehouse.schema.names import TableName

_UNKNOWN = parse_type("unknown")
_SOFT_DELETE = frozenset({"_tidb_softdelete_time", "_tidb_origin_ts"})
"""Hidden columns of tables that are SOFTDELETE or ACTIVE_ACTIVE, as their CREATE TABLE or only their database says."""
_BYTES = {
    **dict.fromkeys(("bool", "boolean", "tinyint"), 1),
    "smallint": 2,
    "mediumint": 3,
    **dict.fromkeys(("int", "integer"), 4),
    "bigint": 8,
}
"""Sizes of MySQL's integer types."""
_PERHAPS_STALE = ", perhaps by flags from before a DDL (restart the changefeed before taking the export)"
_OPTION_CHANGED = " (debezium-disable-schema or enable-tidb-extension of the changefeed was changed)"
_TEXT_TYPES = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BINARY_TYPES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})


def refusal(table: Table | None, group: RowGroup, config: GoldConfig, *, defined: bool) -> StopReason | None:
    """Returns why a table with this definition (None: unknown) cannot hold a row group; None if it can.

    ``defined``: the definition comes from a statement and is not inferred from the wire.
    """
    if group.has_only_key and config.policy(*group.name).on_handle_key_only is OnHandleKeyOnly.BLOCK:
        return incompatible(
            "a row was too large for a message, which has only its handle key columns (large-message-handle-option)",
            WayOut.LOAD_EXPORT,
            WayOut.SET_HANDLE_KEY_POLICY,
        )
    if not _SOFT_DELETE.isdisjoint(fold(column.name) for column in group.columns):
        return incompatible("it is SOFTDELETE or ACTIVE_ACTIVE: TiCDC does not send all of its deletes")
    if table is None:
        return UNKNOWN_COLUMNS
    if not table.key and not names_key(table, group):
        return incompatible("the table has no handle key known to the feed")
    if (reason := _other_key(table, group, config)) is not None:
        return incompatible(reason)
    types = {column.name: column.type for column in table.columns}
    columns = tuple(completed(column, types.get(column.name, _UNKNOWN)) for column in group.columns)
    defect = writer_defects.refusal(columns, config.options, defined=defined)
    if defect is None and config.traits.external_schemas and _reordered(table, group):
        defect = writer_defects.refusal_of_order(config.options)
    if defect is not None:
        return StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail=defect)
    mismatch = _mismatch(table, group, signs=not (config.traits.flags_may_be_stale and defined))
    if mismatch is None and not table.key:
        # Rows that are there may have the texts of another key, and nothing says of which: no MERGE could find them.
        mismatch = f"the handle key of its rows is {_named(group)}, the table's definition has none"
    return None if mismatch is None else incompatible(mismatch)


def names_key(table: Table, group: RowGroup) -> bool:
    """True if the rows name the table's key, or, where the table has none, a whole key: of a key with virtual columns,
    Open Protocol marks only the other columns."""
    named = _key_of(group)
    is_whole = named == _folded(table.key) if table.key else bool(named) and not table.is_part_of_key(named)
    return group.keyed and is_whole


def _other_key(table: Table, group: RowGroup, config: GoldConfig) -> str | None:
    """Returns why the rows' key, which is not the table's, cannot stand for it: one row would be stored twice, or two
    rows would become one. None if it can, also where the rows name another unique key of the definition: keys are made
    from the definition then."""
    named, key = _key_of(group), _folded(table.key)
    now = _named(group) or "none"
    before = ", ".join(table.key) or "none"
    if named == key:
        return None
    if not named and config.traits.names_primary_keys and any(each.primary for each in table.keys or ()):
        return f"its rows name no handle key, the table's definition has the primary key {before}"
    if not key and any(writer_defects.OPEN_FLAGS in (each.defect or "").split() for each in group.columns if each.key):
        return f"flags that may be from before a DDL name {now} as the handle key of its rows, its definition has none"
    if table.keys is not None and not (named and key):
        return None
    if table.keys is None:
        return f"the handle key of its rows was {before} and is {now}"
    if not table.is_unique_key(named):
        return f"the handle key of its rows is {now}, the table's definition has {before} and no such key"
    if any(config.rewrites_key(column.type) for column in table.columns if fold(column.name) in key):
        return f"the handle key of its rows is {now}, and how the feed would write that of its definition, {before}"
    return None


def _key_of(group: RowGroup) -> Set[str]:
    return _folded(column.name for column in group.columns if column.key)


def _named(group: RowGroup) -> str:
    return ", ".join(column.name for column in group.columns if column.key)


def _folded(names: Iterable[str]) -> Set[str]:
    return {fold(name) for name in names}


def _reordered(table: Table, group: RowGroup) -> bool:
    """True if the rows list their columns in another order than the table: tiflow lists them in order of creation."""
    names = [column.name for column in group.columns]
    return names != [column.name for column in table.sent if column.name in names]


def _mismatch(table: Table, group: RowGroup, *, signs: bool) -> str | None:
    """Returns the first difference between the rows' columns and the definition; None if there is none. Of a delete
    only the key counts: in mode eventual its other columns may be those from before a DDL. ``signs``: the rows' flags
    count; they say what is UNSIGNED and BINARY."""
    definitions, key = {column.name: column for column in table.sent}, _folded(table.key)
    defined = {name: column.type for name, column in definitions.items()}
    sent = {c.name: c for c in group.columns if group.is_upsert or c.key or fold(c.name) in key}
    unknown = sorted(sent.keys() - defined.keys())
    spelled = {fold(name): name for name in defined}
    if (name := next((name for name in unknown if fold(name) in spelled), None)) is not None:
        defined_as = spelled[fold(name)]
        return f"rows spell column {name} so, the definition {defined_as}: a schema_file has SHOW CREATE TABLE's names"
    if unknown:
        return f"rows have columns that the table's definition lacks: {', '.join(unknown)}"
    missing = sorted((defined.keys() if group.has_all_columns else set(table.key)) - sent.keys())
    if missing:
        return f"rows lack columns of the table's definition: {', '.join(missing)}"
    for name, column in sent.items():
        if (difference := _declared_otherwise(column, definitions[name])) is not None:
            return difference
        if not signs and is_misread(column, defined[name], partitioned=table.partitioning is not None):
            continue
        if not _same_kind(column, defined[name], signs=signs):
            only_binary = {parse_type(column.type).family, defined[name].family} == {Family.TEXT, Family.BINARY}
            cause = "" if signs or not only_binary else _PERHAPS_STALE
            return f"column {name} is {defined[name].text} in the table's definition, rows have {column.type}{cause}"
    return None


def _declared_otherwise(column: Column, defined: ColumnDefinition) -> str | None:
    """Returns why rows that carry a column's type cannot follow rows that left it open, or the other way round, as
    where ``debezium-disable-schema`` is changed; None if they can. Without a type silver has the wire's own texts."""
    undeclared, name = is_open(column.type), column.name
    if column.key and defined.declared and defined.open:
        return f"some rows carry the type of key column {name}, others do not, and its digits differ{_OPTION_CHANGED}"
    if is_open(defined.type.text) and not undeclared:
        return f"rows have {column.type} as the type of column {name}, which the rows before left open{_OPTION_CHANGED}"
    if undeclared and not defined.sized and defined.type.family in (Family.DATETIME, Family.TIME):
        return (
            f"rows leave the type of column {name} open, and only rows from before show that it is "
            f"{defined.type.text}, not with how many digits after the point{_OPTION_CHANGED}"
        )
    return None


def is_misread(column: Column, defined: MysqlType, *, partitioned: bool) -> bool:
    """True if flags made a column's bytes a text, or its text bytes (wire.md 8.4): in a table without partitions flags
    may be missing, in another one they may be those of any column that once had its name.

    Without partitions only the definition shows that: a NOT NULL text has no flags either.
    """
    sent = parse_type(column.type).family
    if defined.family is Family.TEXT:
        return partitioned and sent is Family.BINARY
    unflagged = column.flags == 0 or writer_defects.OPEN_FLAGS in (column.defect or "").split()
    return defined.family is Family.BINARY and sent is Family.TEXT and (partitioned or unflagged)


def misreadable(columns: Iterable[ColumnDefinition], *, partitioned: bool) -> dict[str, frozenset[str]]:
    """Returns the columns that flags may make another kind of, each with all types that rows may declare then."""
    types = {Family.BINARY: _TEXT_TYPES}
    if partitioned:
        types[Family.TEXT] = _BINARY_TYPES
    return {column.name: types[column.type.family] for column in columns if column.type.family in types}


def _same_kind(column: Column, defined: MysqlType, *, signs: bool) -> bool:
    if is_open(column.type):
        return defined.family is Family.OTHER or may_be(column.type, defined)
    sent = parse_type(column.type)
    if Family.OTHER in (sent.family, defined.family):
        return True
    if sent.family is Family.DATETIME and sent.size and (sent.size[0] > 3) != (defined.digits > 3):
        return False  # Debezium encodes up to DATETIME(3) in milliseconds: an outdated definition would misread them
    signed = signs and sent.family is Family.INTEGER
    fits = sent.family is defined.family and (not signed or sent.unsigned == defined.unsigned)
    return fits and not _larger(sent, defined) and (column.by == "name" or not _renumbered(sent, defined))


def _larger(sent: MysqlType, defined: MysqlType) -> bool:
    """True if the rows' type has values outside the definition's type, so that the lake's type would lose them: the
    schema_file is outdated, or a DDL was skipped."""
    if sent.family is Family.INTEGER:
        return _BYTES[sent.name] > _BYTES[defined.name]
    if sent.family is Family.DECIMAL and sent.size and defined.size:
        return sent.scale > defined.scale or sent.size[0] - sent.scale > defined.size[0] - defined.scale
    return False


def _renumbered(sent: MysqlType, defined: MysqlType) -> bool:
    """True if a number of an ENUM or SET has another name in the rows' type than in the definition's."""
    return any(name != other for name, other in zip(sent.elements, defined.elements, strict=False))


def with_wire_types(table: Table, groups: Iterable[RowGroup], config: GoldConfig) -> Table:
    """Completes a definition with what only messages carry: whether ENUM and SET values are indexes or names, which
    types are undeclared, and which columns are suspect. A suspect column stays suspect, because the table keeps its
    rows."""
    sent: dict[str, list[Column]] = {}
    for group in groups:
        for column in group.columns:
            sent.setdefault(column.name, []).append(column)
    columns = tuple(_with_wire_type(c, sent.get(c.name, ()), config) for c in table.columns)
    return table if columns == table.columns else replace(table, columns=columns)


def _with_wire_type(column: ColumnDefinition, sent: Sequence[Column], config: GoldConfig) -> ColumnDefinition:
    if not sent:
        return column
    undeclared = column.type.family is not Family.OTHER and any(is_open(each.type) for each in sent)
    keeps_digits = any(each.key and not is_open(each.type) for each in sent) and config.rewrites_key(column.type)
    declared = column.declared or keeps_digits
    by, defect = column.by, column.defect
    for each in sent:
        whole = completed(each, column.type)
        by, defect = whole.by or by, whole.defect or defect
    return replace(column, by=by, defect=defect, open=undeclared or (declared and column.open), declared=declared)


def with_named_elements(table: Table) -> Table:
    """Returns the definition for messages that have names of ENUM and SET elements, also of columns that no message has
    shown: the texts of keys depend on it."""
    columns = (replace(c, by="name") if c.type.elements and c.by is None else c for c in table.columns)
    return replace(table, columns=tuple(columns))


def inconsistent_declarations(table: Table, groups: Iterable[RowGroup]) -> str | None:
    """Returns why these row groups cannot be read together: some declare the type of a column, others do not, because
    the feed's schema_file changed between them. None if they can."""
    sent = {(column.name, is_open(column.type)) for group in groups for column in group.columns}
    mixed = sorted(name for name, undeclared in sent if undeclared and (name, False) in sent)
    names = [name for name in mixed if any(c.name == name and c.type.family is not Family.OTHER for c in table.columns)]
    return f"some rows carry the type of columns {', '.join(names)}, others do not" if names else None


def definition_from_wire(name: TableName, groups: Iterable[RowGroup]) -> Table | None:
    """Infers the definition from the first row group with all columns; None if there is none."""
    for group in groups:
        if group.has_all_columns:
            return table_from_wire(*name, group.columns)
    return None
