"""Chunks of a table: conditions on both sides that hold for the same rows.

A chunk is a range of the key where TiDB and Spark sort its values in one order. Else, and for a table without a key, it
is the rows whose hash begins with certain hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ticdc_codec.mysql_type import Family
from ticdc_lakehouse.ops.verify.value_text import ZONE, ComparedColumn
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.tidb.columns import NUMBERS, source_literal

Bound = tuple[str, ...]
"""MySQL's texts of the key columns' values."""

EVERYTHING = "true"
_PADDED = ("utf8mb4_bin", "utf8_bin", "utf8mb3_bin", "latin1_bin", "ascii_bin")
"""Collations that order by bytes, spaces at the end not counted (TiDB cuts them from the sort key)."""
_UNPADDED = ("utf8mb4_0900_bin",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A part of a table's rows."""

    lake: str = EVERYTHING
    """Condition in Spark SQL."""
    source: str = EVERYTHING
    """Condition in TiDB's SQL."""


def has_common_order(column: ComparedColumn) -> bool:
    """True if TiDB and Spark sort the column's values in one order."""
    kind = column.source.type
    if kind.family is not column.typed.definition.type.family:
        return False
    if kind.family is Family.TEXT:
        return column.source.collation in (*_PADDED, *_UNPADDED)
    is_number = kind.family in NUMBERS and column.typed.spark_type != "STRING"
    return is_number or column.typed.has_dates or kind.family is Family.BINARY


def lake_order(column: ComparedColumn) -> str:
    """Returns Spark SQL of what a key column is ordered by."""
    return _trimmed(column, quoted(column.name))


def key_range(key: Sequence[ComparedColumn], lower: Bound | None, upper: Bound | None, within: Chunk) -> Chunk:
    """Returns the rows of ``within`` from a bound up to below another; None has no bound on that side."""
    lake, source = [within.lake], [within.source]
    if lower is not None:
        lake.append(_lake_from_sql(key, lower))
        source.append(_source_from_sql(key, lower))
    if upper is not None:
        lake.append(f"NOT {_lake_from_sql(key, upper)}")
        source.append(f"NOT {_source_from_sql(key, upper)}")
    return Chunk(lake=_all(lake), source=_all(source))


def key_ranges(key: Sequence[ComparedColumn], bounds: Sequence[Bound], within: Chunk) -> list[Chunk]:
    """Returns the rows of ``within``, split at ascending bounds: one chunk more than there are bounds."""
    lowers: list[Bound | None] = [None, *bounds]
    uppers: list[Bound | None] = [*bounds, None]
    return [key_range(key, lower, upper, within) for lower, upper in zip(lowers, uppers, strict=True)]


def range_number_sql(key: Sequence[ComparedColumn], bounds: Sequence[Bound]) -> str:
    """Returns Spark SQL of the number of the range (from 0) that a row is in: a binary search."""

    def search(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        return f"IF({_lake_from_sql(key, bounds[middle])}, {search(middle + 1, high)}, {search(low, middle)})"

    return search(0, len(bounds))


def _lake_from_sql(key: Sequence[ComparedColumn], bound: Bound) -> str:
    """Returns the condition that a row of the lake is at the bound or after it; never NULL."""
    given = [_trimmed(c, c.typed.sql(literal(text), ZONE)) for c, text in zip(key, bound, strict=True)]
    condition = _from_sql([lake_order(column) for column in key], given)
    # A zero date is NULL in the lake, and before all others in TiDB.
    return f"coalesce({condition}, false)" if any(c.typed.has_dates for c in key) else condition


def _source_from_sql(key: Sequence[ComparedColumn], bound: Bound) -> str:
    given = [source_literal(column.source, text) for column, text in zip(key, bound, strict=True)]
    return _from_sql([quoted(column.source.name) for column in key], given)


def _from_sql(values: Sequence[str], bound: Sequence[str]) -> str:
    """Returns SQL of a lexicographic ``>=``, in the form whose index ranges TiDB finds: ``a > 1 OR (a = 1 AND b >=
    2)``."""
    if len(values) == 1:
        return f"({values[0]} >= {bound[0]})"
    rest = _from_sql(values[1:], bound[1:])
    return f"({values[0]} > {bound[0]} OR ({values[0]} = {bound[0]} AND {rest}))"


def _trimmed(column: ComparedColumn, value: str) -> str:
    return f"rtrim({value})" if column.source.collation in _PADDED else value


def bucket(lake_hash: str, source_hash: str, prefixes: Sequence[str]) -> Chunk:
    """Returns the rows whose hash (SQL of 32 hexadecimal digits) begins with one of the prefixes, all of one length."""
    listed, digits = ", ".join(f"'{prefix}'" for prefix in prefixes), len(prefixes[0])
    lake, source = (f"{prefix_sql(each, digits)} IN ({listed})" for each in (lake_hash, source_hash))
    return Chunk(lake=lake, source=source)


def prefix_sql(hash_sql: str, digits: int) -> str:
    """Returns either side's SQL of the first digits of a hash."""
    return f"SUBSTRING({hash_sql}, 1, {digits})"


def _all(conditions: Sequence[str]) -> str:
    return " AND ".join(c for c in conditions if c != EVERYTHING) or EVERYTHING
