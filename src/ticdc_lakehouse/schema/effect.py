"""What an ALTER TABLE does to the rows that a table has, beside its definition."""

from __future__ import annotations

from dataclasses import dataclass

from ticdc_codec.mysql_type import Family
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table

WHOLE_NUMBERS = (Family.INTEGER, Family.YEAR)
"""Types whose values are whole numbers to the partitions of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnAdded:
    """Rows get a column."""

    column: ColumnDefinition
    value: str | None
    """What old rows have in it: MySQL's canonical text (ENUM and SET by name), None for NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFilled:
    """The value of a pending column is known: rows that were not written since its ADD COLUMN get it."""

    column: ColumnDefinition
    """As it is until then, with its ``pending``."""
    value: str
    """As row images have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDropped:
    """Rows lose a column."""

    column: ColumnDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRenamed:
    """A column gets another name."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnConverted:
    """A column gets another type, and TiDB converts the values that rows have (it sends no row for that)."""

    before: ColumnDefinition
    after: ColumnDefinition
    """The new column, of the same name: a CHANGE that renames as well is a ColumnRenamed, then a ColumnConverted."""
    may_show_default: bool = False
    """True if rows that do not store the column may have another value than before, where TiDB does not write them
    again (`unwritten_rows`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChanged:
    """The handle key becomes another, or its text has the values in another order."""

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRemoved:
    """Rows of one partition go; all rows if neither bounds nor values nor a remainder are given.

    RANGE: ``low`` ≤ x < ``high`` (None: no bound; with no ``low``, NULL as well). LIST: x is in
    ``values`` (None in them: NULL). HASH: ``remainder`` is (r, n) and abs(x mod n) = r (of 0: NULL as well). x is
    the column, or ``function`` of it.
    """

    column: ColumnDefinition
    function: str | None
    low: str | None = None
    high: str | None = None
    values: tuple[str | None, ...] | None = None
    remainder: tuple[int, int] | None = None


Effect = ColumnAdded | ColumnFilled | ColumnDropped | ColumnRenamed | ColumnConverted | KeyChanged | RowsRemoved


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A table after an ALTER TABLE."""

    table: Table
    effects: tuple[Effect, ...]
    """In the order in which they are to be done. Empty if only the definition changes, or not even that."""
