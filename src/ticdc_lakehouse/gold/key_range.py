"""The range of keys that a MERGE touches, so that it reads only the files of that range.

A live table is clustered by its primary key. Open-source Delta skips files in a MERGE only by conditions on the target,
never by the keys of the source: without a range a change of one row reads the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass

from ticdc_codec.mysql_type import Family
from ticdc_codec.name_case import fold
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.own_columns import KEY
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.typed_columns import typed_column

FEWEST_FILES = 8
"""A smaller table is read whole in less time than it takes to find the range."""
_MOST_CHANGES = 200_000
"""More changes are rarely in one range, and they would have to be read once more to find it."""
_ASKED_EVERY = 32
"""MERGEs of a table between two looks at how many files it has, when this process has merged this number already.
Before that it looks at the first MERGE, the second, third, fifth, ninth …: the first may have filled the table."""
_NOT_ASKED_OF_NEW = 5
"""MERGEs that count as done for a table that this process made: its first three do not look, the fourth does."""
_MOST_TABLES = 10_000
_WITH_RANGES = (Family.INTEGER, Family.DATE, Family.DATETIME)
"""Types whose texts in a key Spark casts to the stored values exactly, or not at all."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """SQL to add to conditions of a MERGE into the live table ``t``; empty without a range."""

    of_stored: str = ""
    """To that of its ON."""
    of_changes: str = ""
    """To that of its INSERT: a change ``s`` that silver got since the range was found may be of a stored row outside.
    The next run reads such changes again: they are late rows, or were replayed."""


def key_range(lake: Lake, name: str, rows: MergeRows, changes: str) -> KeyRange:
    """Returns the range of the keys of ``changes``; none where it is not known, or would not pay. The changes have
    their keys in ``_ticdc_key``."""
    column = _leading(rows.table)
    # A tombstone has no values: in the eventual mode a stored row may lie outside the range of its own key.
    if column is None or not _has_few_changes(rows) or rows.eventual or _files(lake, name) < FEWEST_FILES:
        return KeyRange()
    spark_type = typed_column(column).spark_type
    position = rows.table.key_text_columns.index(rows.table.key[0])
    value = _value_sql(KEY, position, spark_type)
    bounds = f"CAST(min({value}) AS STRING) AS low, CAST(max({value}) AS STRING) AS high"
    found = lake.spark.sql(f"SELECT {bounds}, count_if({value} IS NULL) AS other FROM ({changes})").collect()[0]
    if found["low"] is None or found["other"]:
        return KeyRange()
    stored = f"t.{quoted(column.name)}"
    low, high = (f"CAST({literal(found[bound])} AS {spark_type})" for bound in ("low", "high"))
    within = f"BETWEEN {low} AND {high}"
    return KeyRange(
        # A zero date is NULL in its column.
        of_stored=f"AND ({stored} {within}" + (f" OR {stored} IS NULL)" if _has_zero(column) else ")"),
        of_changes=f"AND {_value_sql(f's.{KEY}', position, spark_type)} {within}",
    )


def _value_sql(key: str, position: int, spark_type: str) -> str:
    return f"try_cast(get_json_object({key}, '$[{position}]') AS {spark_type})"


def remember_new(lake: Lake, name: str, rows: MergeRows) -> None:
    """Remembers that a live table which this process made of these rows has few files, unless the rows are many: its
    next MERGEs need not ask for the number."""
    if _has_few_changes(rows):
        _files_of[_place(lake, name)] = 1, _NOT_ASKED_OF_NEW


def _has_few_changes(rows: MergeRows) -> bool:
    return sum(group.rows for group in rows.groups) <= _MOST_CHANGES


def _leading(table: Table) -> ColumnDefinition | None:
    """Returns the first column of the key if ranges of its values are known, else None."""
    for column in table.columns:
        if table.key and fold(column.name) == fold(table.key[0]):
            return None if column.open or column.type.family not in _WITH_RANGES else column
    return None


def _has_zero(column: ColumnDefinition) -> bool:
    return column.type.family is not Family.INTEGER


def _files(lake: Lake, name: str) -> int:
    """Returns how many files a live table has, as Delta said at one of its last MERGEs: asking takes longer than
    planning a small MERGE, and the answer changes slowly."""
    table = _place(lake, name)
    files, merges = _files_of.get(table, (0, 0))
    if merges % _ASKED_EVERY == 0 or merges & (merges - 1) == 0:  # none, or a power of two
        files = int(lake.spark.sql(f"DESCRIBE DETAIL {table[1]}").collect()[0]["numFiles"])
    if len(_files_of) >= _MOST_TABLES:
        _files_of.clear()
    _files_of[table] = files, merges + 1
    return files


def _place(lake: Lake, name: str) -> tuple[str, str]:
    return lake.checkpoints, lake.table(Layer.LIVE, name)


_files_of: dict[tuple[str, str], tuple[int, int]] = {}
"""(checkpoints of the lake, table) to its files and the MERGEs since this process asked first."""
