"""Rows of MySQL's texts that no message brought, of an export or read from TiDB, as a live table holds them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from ticdc_lakehouse.sql.text import quoted
from ticdc_lakehouse.sql.typed_columns import IRREGULAR, TypedColumn, irregular_sql, irregular_texts_sql, values_sql


def typed_rows(texts: DataFrame, typed: Sequence[TypedColumn], time_zone: str, *others: str) -> DataFrame:
    """Returns rows of texts as a live table holds them: the columns ``others`` unchanged, `IRREGULAR`, then the typed
    columns.

    ``texts`` has the text of each column of ``typed`` as t0, t1 …; those of TIMESTAMPs are in ``time_zone``.
    """
    names, values = [f"t{i}" for i in range(len(typed))], [f"v{i}" for i in range(len(typed))]
    inlined = f"inline(array({values_sql(tuple(typed), names, time_zone)})) AS ({', '.join(values)})"
    irregular = f"{irregular_texts_sql(tuple(typed), names, values)} AS irregular_texts"
    converted = texts.selectExpr(*others, *names, inlined).selectExpr(*others, *values, irregular)
    renamed = (f"{value} AS {quoted(column.name)}" for column, value in zip(typed, values, strict=True))
    return converted.selectExpr(*others, f"{irregular_sql('irregular_texts')} AS {IRREGULAR}", *renamed)
