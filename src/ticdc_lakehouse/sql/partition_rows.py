"""SQL conditions of the rows that a partition holds."""

from __future__ import annotations

from ticdc_lakehouse.schema.effect import WHOLE_NUMBERS, RowsRemoved
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.typed_columns import by_name, typed_column


def partition_condition_sql(gone: RowsRemoved, time_zone: str) -> str:
    """SQL condition of the rows that a partition holds."""
    typed = typed_column(by_name(gone.column))
    column = quoted(typed.name)
    # Spark has MySQL's functions of a date under the same names, but for this one: 1 is the first day of the year 0.
    days = f"(datediff({column}, DATE'0001-01-01') + 366)"
    value = {None: column, "to_days": days}.get(gone.function, f"{gone.function}({column})")

    def bound(text: str) -> str:
        # A whole number as it is: RANGE may end above all that the column's type can hold.
        whole = gone.function is not None or gone.column.type.family in WHOLE_NUMBERS
        return text if whole else typed.sql(literal(text), time_zone)

    if gone.remainder is not None:
        number, count = gone.remainder
        return f"abs({value} % {count}) = {number}" + (f" OR {value} IS NULL" if number == 0 else "")
    if gone.values is not None:
        members = [f"{value} IS NULL" if text is None else f"{value} = {bound(text)}" for text in gone.values]
        return " OR ".join(members)
    low = "true" if gone.low is None else f"{value} >= {bound(gone.low)}"
    high = "true" if gone.high is None else f"{value} < {bound(gone.high)}"
    return f"({low} AND {high})" + (f" OR {value} IS NULL" if gone.low is None else "")
