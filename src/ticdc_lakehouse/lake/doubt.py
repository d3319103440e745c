"""Whether a table can take the rows of a window as they came: pure, no Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ticdc_lakehouse.codec import doubt
from ticdc_lakehouse.ddl.statement import TableName
from ticdc_lakehouse.definition import Table, table_from_wire
from ticdc_lakehouse.lake.situation import Applying
from ticdc_lakehouse.lake.window import Shape
from ticdc_lakehouse.mysql_type import Family, MysqlType, parse_type

UNKNOWN_COLUMNS = "the table's columns are not known yet: give its CREATE TABLE in the feed's schema_file"


def refusal(table: Table | None, shape: Shape, applying: Applying, *, defined: bool) -> str | None:
    """Why a table with this definition (None: not known) cannot take rows of this shape; None if it can.

    ``defined`` says that the definition is a statement's, not made of rows.
    """
    if shape.handle_only:
        return "a row was too large for a message and came with its handle key alone (large-message-handle-option)"
    if table is None:
        return UNKNOWN_COLUMNS
    if not shape.keyed and not table.key:
        return "the table has no handle key that the feed knows: give its CREATE TABLE in the feed's schema_file"
    reason = doubt.refusal(shape.columns, applying.options, defined=defined)
    if reason is None and applying.schemas_apart and _reordered(table, shape):
        reason = doubt.refusal_of_order(applying.options)
    return reason or _mismatch(table, shape)


def _reordered(table: Table, shape: Shape) -> bool:
    """Whether the wire's columns stand in another order than the table's: tiflow lists them as they were made."""
    names = [column.name for column in shape.columns]
    return names != [column.name for column in table.sent if column.name in names]


def _mismatch(table: Table, shape: Shape) -> str | None:
    """Where the wire's columns are not those of the definition, None if they are."""
    defined = {column.name: column.type for column in table.sent}
    sent = {column.name: parse_type(column.type) for column in shape.columns}
    unknown = sorted(sent.keys() - defined.keys())
    if unknown:
        return f"rows have columns that the table's definition has not: {', '.join(unknown)}"
    missing = sorted((defined.keys() if shape.whole else set(table.key)) - sent.keys())
    if missing:
        return f"rows lack columns of the table's definition: {', '.join(missing)}"
    for name, kind in sent.items():
        if not _same_kind(kind, defined[name]):
            return f"column {name} is {defined[name].text} in the table's definition, rows have {kind.text}"
    return None


def _same_kind(sent: MysqlType, defined: MysqlType) -> bool:
    if Family.OTHER in (sent.family, defined.family):
        return True
    return sent.family is defined.family and (sent.family is not Family.INTEGER or sent.unsigned == defined.unsigned)


def as_sent(table: Table, shapes: Iterable[Shape]) -> Table:
    """The definition for reading these rows: whether ENUM and SET come by index or by name, and what may be wrong with
    values, is known by the wire alone. What once was in doubt stays so: the table has such rows."""
    by = {column.name: column.by for shape in shapes for column in shape.columns if column.by is not None}
    doubts = {column.name: column.doubt for shape in shapes for column in shape.columns if column.doubt is not None}
    columns = tuple(replace(c, by=by.get(c.name, c.by), doubt=doubts.get(c.name, c.doubt)) for c in table.columns)
    return table if columns == table.columns else replace(table, columns=columns)


def definition_from_wire(name: TableName, shapes: Iterable[Shape]) -> Table | None:
    """The definition that the first whole row tells, None if there is none."""
    for shape in shapes:
        if shape.whole and not shape.handle_only:
            return table_from_wire(*name, shape.columns)
    return None
