"""What becomes of a table's rows when partitions go. TiDB sends no row for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import starmap

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import Family, same_type
from ticdc_codec.name_case import fold
from ticdc_lakehouse.schema.computed_default import pending_columns
from ticdc_lakehouse.schema.definition import ColumnDefinition, Partition, Partitioning, Table
from ticdc_lakehouse.schema.effect import WHOLE_NUMBERS, Effect, RowsRemoved
from ticdc_lakehouse.schema.literal import stored
from ticdc_lakehouse.schema.partition import hash_partitions
from ticdc_lakehouse.schema.statement import AddPartitions, DropPartitions
from ticdc_lakehouse.schema.unwritten_rows import have_same_origin_default

_BY_ROWS = ("range", "list", "hash")
"""Methods of which a row's values show its partition."""
_DATES = (Family.DATE, Family.DATETIME)
"""Types whose values show a row's partition, beside whole numbers. Texts compare by a collation, which definitions do
not know."""


def drop_partitions(table: Table, action: DropPartitions) -> tuple[Table, tuple[Effect, ...]]:
    """Returns the table after DROP or TRUNCATE PARTITION, and the rows that go. Raises ApplyError if nothing shows
    which."""
    if not action.names:  # all rows; none can be here of a table whose columns are all virtual
        return table, tuple(RowsRemoved(column=column, function=None) for column in table.sent[:1])
    partitioning = table.partitioning
    by_rows = () if partitioning is None else _BY_ROWS if action.keep else ("range", "list")
    if partitioning is None or partitioning.method not in by_rows or not partitioning.partitions:
        raise ApplyError(f"{_verb(action)} {', '.join(action.names)}: which rows the partition had is unknown")
    known = [fold(partition.name) for partition in partitioning.partitions]
    wanted = [fold(name) for name in action.names if fold(name) in known or not action.lenient]
    if unknown := set(wanted).difference(known):
        raise ApplyError(f"{_verb(action)}: the table has no partition {', '.join(sorted(unknown))}")
    gone = tuple(_rows_of(table, partitioning, known.index(name)) for name in wanted)
    left = tuple(p for p in partitioning.partitions if action.keep or fold(p.name) not in wanted)
    return replace(table, partitioning=replace(partitioning, partitions=left)), gone


def add_partitions(table: Table, action: AddPartitions) -> Table:
    """Returns the table after ADD or REORGANIZE PARTITION. One whose partitions are not known stays so."""
    partitioning = table.partitioning
    if partitioning is None or not partitioning.partitions:
        return table
    replaced = {fold(name) for name in action.replaces}
    before = partitioning.partitions
    first = next((at for at, p in enumerate(before) if fold(p.name) in replaced), len(before))
    kept = [p for p in before if fold(p.name) not in replaced]
    if len(before) - len(kept) != len(replaced):
        return replace(table, partitioning=None)
    partitions = (*kept[:first], *action.partitions, *kept[first:])
    return replace(table, partitioning=replace(partitioning, partitions=partitions))


def resize_hash(table: Table, by: int) -> Table:
    """Returns the table with ``by`` HASH partitions more (below 0: fewer). One whose partitions are not known
    stays so."""
    partitioning = table.partitioning
    if partitioning is None or partitioning.method != "hash" or not partitioning.partitions:
        return table
    before = partitioning.partitions
    partitions = before[:by] if by < 0 else (*before, *hash_partitions(len(before), len(before) + by))
    return replace(table, partitioning=replace(partitioning, partitions=partitions))


def exchanged(table: Table, plain: Table, partition: str) -> RowsRemoved:
    """Returns the rows of a partition that EXCHANGE PARTITION puts into a plain table. Raises ApplyError if they are
    unknown, or if the tables are not of the same columns and key."""
    pairs = zip(table.sent, plain.sent, strict=False)
    keys = [[*map(fold, each.key)] for each in (table, plain)]
    are_same = len(table.sent) == len(plain.sent) and all(starmap(_is_same_column, pairs)) and keys[0] == keys[1]
    if not are_same:
        raise ApplyError("EXCHANGE PARTITION: the two tables' columns or keys are not the same")
    if pending := (*pending_columns(table), *pending_columns(plain)):
        raise ApplyError(f"EXCHANGE PARTITION: the value of column `{pending[0].name}` in old rows is not known yet")
    # TiDB shows a row that was not written since an ADD COLUMN with what the table where it lies now has for that.
    pairs = zip(table.sent, plain.sent, strict=True)
    if other := next((one for one, two in pairs if not have_same_origin_default(one, two)), None):
        raise ApplyError(
            f"EXCHANGE PARTITION: column `{other.name}` was added to one of the tables, or to both with different "
            "values: what old rows have in the other one is not known"
        )
    _, (gone,) = drop_partitions(table, DropPartitions(names=(partition,), keep=True))
    assert isinstance(gone, RowsRemoved)
    return gone


def _is_same_column(one: ColumnDefinition, other: ColumnDefinition) -> bool:
    # Of an ENUM or SET without elements the lake has what messages have: numbers or names.
    same_values = not one.has_names or bool(one.type.elements) or one.by == other.by
    return fold(one.name) == fold(other.name) and same_type(one.type, other.type) and same_values


def _verb(action: DropPartitions) -> str:
    return "TRUNCATE PARTITION" if action.keep else "DROP PARTITION"


def _rows_of(table: Table, partitioning: Partitioning, at: int) -> RowsRemoved:
    partition = partitioning.partitions[at]
    name = fold(partitioning.column or "")
    column = next((column for column in table.sent if fold(column.name) == name), None)
    if column is None or partition.default:
        raise ApplyError(f"partition {partition.name}: which rows it had is unknown: its expression does not say it")
    if column.pending is not None:
        raise ApplyError(
            f"partition {partition.name}: the value of column `{column.name}` in old rows is not known yet"
        )
    if partitioning.method == "hash":
        return _hash_rows(partitioning, column, at)
    try:
        bounds = _bounds(partition, column, partitioning.function)
        if partitioning.method == "list":
            return RowsRemoved(column=column, function=partitioning.function, values=bounds)
        below = _bounds(partitioning.partitions[at - 1], column, partitioning.function) if at else ()
    except ValueError as error:
        raise ApplyError(f"partition {partition.name}: its bound is not understood: {error}") from None
    return RowsRemoved(column=column, function=partitioning.function, low=_first(below), high=_first(bounds))


def _hash_rows(partitioning: Partitioning, column: ColumnDefinition, at: int) -> RowsRemoved:
    """Returns the rows of a HASH partition. Raises ApplyError where they are unknown: TiDB takes the 64 bits of a
    BIGINT UNSIGNED for a signed number."""
    is_number = partitioning.function is not None or column.type.family in WHOLE_NUMBERS
    if not is_number or (column.type.unsigned and column.type.name == "bigint"):
        raise ApplyError(
            f"partition {partitioning.partitions[at].name}: which rows it had is unknown for {column.type.text}"
        )
    count = len(partitioning.partitions)
    return RowsRemoved(column=column, function=partitioning.function, remainder=(at, count))


def _bounds(partition: Partition, column: ColumnDefinition, function: str | None) -> tuple[str | None, ...]:
    """Returns the bounds as canonical texts. Those of whole numbers and of a function are integers of any size: TiDB
    checks none against the column's type, and adds no century to a YEAR (``checkPartitionValuesIsInt``)."""
    if function is not None or column.type.family in WHOLE_NUMBERS:
        return tuple(None if bound is None else str(int(bound)) for bound in partition.bounds)
    if column.type.family not in _DATES:
        raise ValueError(f"values of {column.type.text}")
    bounds = tuple(stored(bound, column.type) for bound in partition.bounds)
    for bound in filter(None, bounds):  # a zero or partial date is no DATE of the lake's to compare with
        datetime.fromisoformat(bound)
    return bounds


def _first(bounds: tuple[str | None, ...]) -> str | None:
    return bounds[0] if bounds else None
