"""Values that no Spark type holds (``0000-00-00``, ``2024-05-00``), or not that of an outdated definition: counted, and
looked for where a table must not have any.

    ops.<feed>_irregular   view: database, table, column, rows: how many rows of gold have such a value there
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.naming import analysts_layer
from ticdc_lakehouse.gold.step_changes import StepChanges
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import BlockingPoint
from ticdc_lakehouse.policy import OnIrregular
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.typed_columns import IRREGULAR, has_dates, image_sql, typed_columns
from ticdc_lakehouse.sql.undeclared_types import whole_text_sql

_COLUMNS = """
    database COMMENT 'database in TiDB',
    table COMMENT 'table in TiDB',
    column COMMENT 'column in TiDB',
    rows COMMENT 'number of rows with an irregular value in the column'
"""
_NONE = "SELECT '' AS database, '' AS table, '' AS column, 0L AS rows WHERE false"


class Counted(NamedTuple):
    """Columns of one table that the view counts."""

    table: TableName
    layer: Layer
    """Where the table has the exact texts: what analysts read of it has them only beside dates."""
    lake_name: str
    columns: tuple[str, ...]


def counted(config: GoldConfig, tables: Iterable[tuple[Table, TableState]]) -> list[Counted]:
    """Returns what the feed's view counts of these tables. Dates that are shown as texts are not counted."""
    return [
        Counted(table.name, analysts_layer(config) if is_shown(config, table) else Layer.LIVE, state.lake_name, columns)
        for table, state in tables
        if state.has_live_table and (columns := _columns(config, table))
    ]


def create_view(lake: Lake, config: GoldConfig, tables: Iterable[tuple[Table, TableState]]) -> None:
    """Creates or replaces the feed's view over these tables. Spark resolves each that is counted, so gold does so only
    where a window changes what is `counted`."""
    comment = f"Values of changefeed {config.feed} that their columns' types cannot hold: exact in {IRREGULAR}"
    query = _union([_count_sql(lake, each) for each in counted(config, tables)])
    lake.replace_view(Layer.OPS, f"{config.feed}_irregular", _COLUMNS, query, comment=comment)


def _columns(config: GoldConfig, table: Table) -> tuple[str, ...]:
    """Returns the columns that may have such values and show NULL then."""
    as_text = dates_as_text(config, table)
    return tuple(c.name for c in typed_columns(table) if c.may_be_outdated or (c.has_dates and not as_text))


def is_shown(config: GoldConfig, table: Table) -> bool:
    """True if a table's views have the exact texts of irregular values beside the NULLs."""
    return has_dates(table) and not dates_as_text(config, table)


def dates_as_text(config: GoldConfig, table: Table) -> bool:
    """True if a table's views show dates as MySQL's texts."""
    return config.policy(table.database, table.table).on_irregular is OnIrregular.TEXT


def _union(queries: Sequence[str]) -> str:
    """Returns one query of the rows of all. Spark reads UNIONs of UNIONs by recursion, so they form a tree that is not
    deep: its stack does not hold a list of thousands."""
    if len(queries) < 2:
        return queries[0] if queries else _NONE
    middle = len(queries) // 2
    return f"({_union(queries[:middle])}) UNION ALL ({_union(queries[middle:])})"


def _count_sql(lake: Lake, of: Counted) -> str:
    database, table = map(literal, of.table)
    return f"""SELECT {database} AS database, {table} AS table, column, count(*) AS rows
        FROM (SELECT explode(map_keys({IRREGULAR})) AS column FROM {lake.table(of.layer, of.lake_name)})
        WHERE column IN ({", ".join(map(literal, of.columns))})
        GROUP BY column"""


def first_irregular(changes: StepChanges) -> BlockingPoint | None:
    """Returns the point at which a table that takes no such values must stop: before the first of them among these
    changes; None if there is none."""
    table, time_zone, fields = changes.rows.table, changes.time_zone, []
    for column in typed_columns(table):
        if column.has_dates:
            text = whole_text_sql(column.definition, f"image.{quoted(column.name)}", time_zone)
            unfit = f"{column.sql(text, time_zone)} IS NULL AS unfit"
            fields.append(f"struct({literal(column.name)} AS name, image.{quoted(column.name)} AS text, {unfit})")
    if not fields:
        return None
    irregular_values = f"inline(filter(array({', '.join(fields)}), value -> value.unfit AND value.text IS NOT NULL))"
    found = changes.lake.spark.sql(f"""
        SELECT min(struct(commit_ts, name, text)) AS first FROM (SELECT commit_ts, {irregular_values}
        FROM (SELECT commit_ts, {image_sql(table, "image")} AS image
        FROM ({changes.all_sql()}) WHERE image IS NOT NULL))""")
    first = found.collect()[0]["first"]
    if first is None:
        return None
    detail = (
        f"column {first['name']} has {first['text']} at {first['commit_ts']}, which is no date (on_irregular: block)"
    )
    stop = StopReason(kind=StopKind.IRREGULAR_VALUE, detail=detail)
    return BlockingPoint(tso=first["commit_ts"] - 1, stop=stop)
