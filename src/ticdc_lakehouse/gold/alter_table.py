"""Live tables follow an ALTER TABLE in one commit: it changes only metadata where no stored value changes, else it is
an atomic replacement that is written from the version before.

TiDB sends no row for what an ALTER TABLE does to the rows that are there, so gold does the same to its own: new columns
get their DEFAULT, and values of a column that changes its type are converted by MySQL's rules (`type_conversion`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import eq

from ticdc_codec.errors import ApplyError
from ticdc_codec.name_case import fold
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.altered_rows import AlteredRows, assigned, has_irregular, irregular_without, with_new_keys
from ticdc_lakehouse.gold.column_conversion import convert_column
from ticdc_lakehouse.gold.live_table import (
    LiveColumn,
    commented,
    given_properties,
    layout_sql,
    live_columns,
    temporary_view,
)
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, DELETED
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import AlterRows, ExchangeRows
from ticdc_lakehouse.policy import OnIrregular
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table
from ticdc_lakehouse.schema.effect import (
    ColumnAdded,
    ColumnConverted,
    ColumnDropped,
    ColumnFilled,
    ColumnRenamed,
    Effect,
    KeyChanged,
    RowsRemoved,
)
from ticdc_lakehouse.schema.names import spark_names
from ticdc_lakehouse.sql.partition_rows import partition_condition_sql
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.typed_columns import IRREGULAR, by_name, typed_column


def alter(lake: Lake, config: GoldConfig, name: str, step: AlterRows, version: int) -> None:
    """Applies the DDL to the live table, which is at ``version``, in one commit; none if there is nothing to do.

    Raises ApplyError, before anything is written, if values cannot be converted.
    """
    table = lake.table(Layer.LIVE, name)
    schema = lake.spark.table(table).schema
    stored = tuple(schema.names)
    tombstones = DELETED in stored
    target = live_columns(step.table, tombstones=tombstones)
    if _is_plain_rename(lake, table, step, stored):
        (effect,) = step.effects
        assert isinstance(effect, ColumnRenamed)
        lake.spark.sql(f"ALTER TABLE {table} RENAME COLUMN {quoted(effect.old)} TO {quoted(effect.new)}")
        return
    rows = AlteredRows(query=f"SELECT * FROM {table} VERSION AS OF {version}", columns=stored)
    for effect in step.effects:
        rows = _apply_effect(lake, config, rows, effect, step)
    if rows.rekeyed:
        rows = with_new_keys(lake, rows, step, config.time_zone)
    if not rows.same or _adds_and_drops(step.effects):
        _replace_rows(lake, table, rows.query, step.table, target)
        return
    types = {field.name: field.dataType.simpleString() for field in schema}
    wanted = [replace(c, spark_type=types.get(c.name, c.spark_type)) for c in target]
    comments = {field.name: field.metadata.get("comment", "") for field in schema}
    if [(c.name, c.comment) for c in wanted] != list(comments.items()):
        lake.spark.sql(f"ALTER TABLE {table} REPLACE COLUMNS ({', '.join(c.declaration for c in wanted)})")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveVersion:
    """A Delta version of a live table, with its definition then."""

    name: str
    version: int
    definition: Table

    def rows(self, lake: Lake) -> AlteredRows:
        """Returns its rows, of a table without tombstones: those of mode eventual exchange none."""
        columns = live_columns(self.definition, tombstones=False)
        query = f"SELECT * FROM {lake.table(Layer.LIVE, self.name)} VERSION AS OF {self.version}"
        return AlteredRows(query=query, columns=tuple(column.name for column in columns))


def exchange(lake: Lake, step: ExchangeRows, partitioned: LiveVersion, plain: LiveVersion, zone: str) -> None:
    """Exchanges the rows of a partition and of a plain table: one replacement of each.

    Raises ApplyError, before anything is written, if some of the plain table's rows lie outside the partition's bounds
    (WITHOUT VALIDATION): later on nothing would distinguish them from others.
    """
    before, others = partitioned.rows(lake), plain.rows(lake)
    coming = _respelled(others, before.columns)
    for rows in (before, coming):
        _check_readable(lake, rows.query, step.part)
    inside = f"coalesce({partition_condition_sql(step.part, zone)}, false)"
    if lake.spark.sql(f"SELECT 1 FROM ({coming.query}) WHERE NOT {inside}").head(1):
        raise ApplyError("EXCHANGE PARTITION: the other table has rows outside the partition's bounds")
    staying = before.select({}).where(f"NOT {inside}")
    leaving = _respelled(before.where(inside), others.columns)
    for live, query in ((partitioned, f"{staying.query} UNION ALL {coming.query}"), (plain, leaving.query)):
        columns = live_columns(live.definition, tombstones=False)
        _replace_rows(lake, lake.table(Layer.LIVE, live.name), query, live.definition, columns)


def _respelled(rows: AlteredRows, names: Sequence[str]) -> AlteredRows:
    """Returns the rows with these names of their columns, which TiDB takes for the same."""
    renamed = {old: new for old, new in zip(rows.columns, names, strict=True) if old != new}
    if not renamed:
        return rows.select({})
    cases = " ".join(f"WHEN {literal(old)} THEN {literal(new)}" for old, new in renamed.items())
    irregular = f"transform_keys({IRREGULAR}, (k, v) -> CASE k {cases} ELSE k END)"
    return rows.select({**{new: quoted(old) for old, new in renamed.items()}, IRREGULAR: irregular}, columns=names)


def _replace_rows(lake: Lake, table: str, query: str, definition: Table, columns: Sequence[LiveColumn]) -> None:
    """Replaces rows, columns and layout of a live table in one commit. Older versions keep theirs, and the table keeps
    the other properties that were set."""
    layout = layout_sql(definition, columns, given_properties(lake, table))
    with temporary_view(lake, commented(lake.spark.sql(query), columns)) as source:
        lake.spark.sql(f"REPLACE TABLE {table} USING delta {layout} AS SELECT * FROM {source}")


def _adds_and_drops(effects: Sequence[Effect]) -> bool:
    """True if columns are dropped and others added: Delta cannot distinguish that from a change of their types, and a
    new column under a dropped one's name has other values."""
    return any(isinstance(e, ColumnAdded) for e in effects) and any(isinstance(e, ColumnDropped) for e in effects)


def _is_plain_rename(lake: Lake, table: str, step: AlterRows, stored: Sequence[str]) -> bool:
    """True if the DDL only renames one column, which keeps its position, to a name that is another one to Spark, and if
    no irregular value is stored under the old name."""
    match step.effects:
        case (ColumnRenamed(old=old, new=new),):
            order = [column.name for column in live_columns(step.table, tombstones=DELETED in stored)]
            is_same = any(map(eq, spark_names(old), spark_names(new)))
            in_place = [new if name == old else name for name in stored] == order
            return in_place and not is_same and not has_irregular(lake, f"SELECT * FROM {table}", old)
        case _:
            return False


def _apply_effect(lake: Lake, config: GoldConfig, rows: AlteredRows, effect: Effect, step: AlterRows) -> AlteredRows:
    """Returns the rows after one effect of the DDL."""
    match effect:
        case ColumnAdded(column=column, value=value):
            rows = _add(rows, by_name(column), value, config.time_zone)
            if value is not None:
                _check_irregular(lake, config, rows, column, step)
            return rows
        case ColumnFilled(column=column, value=value):
            rows = _fill(rows, column, value, config.time_zone)
            _check_irregular(lake, config, rows, column, step)
            return rows
        case ColumnDropped(column=column):
            return drop_column(lake, rows, column)
        case ColumnRenamed(old=old, new=new):
            return _rename(rows, old, new)
        case ColumnConverted():
            return convert_column(lake, config, rows, effect, step)
        case KeyChanged():
            return replace(rows, rekeyed=True, same=False)
        case RowsRemoved():
            _check_readable(lake, rows.query, effect)
            return rows.where(f"NOT coalesce({partition_condition_sql(effect, config.time_zone)}, false)")


def _add(rows: AlteredRows, column: ColumnDefinition, value: str | None, time_zone: str) -> AlteredRows:
    typed = typed_column(column)
    columns = (*rows.columns, column.name)
    if value is None:
        added = rows.select({column.name: f"CAST(NULL AS {typed.spark_type})"}, columns=columns)
        return replace(added, same=rows.same)
    return rows.select(assigned(typed, literal(value), time_zone), columns=columns)


def _fill(rows: AlteredRows, column: ColumnDefinition, value: str, time_zone: str) -> AlteredRows:
    """Sets the column's value in rows that were not written since the ADD COLUMN."""
    assert column.pending is not None
    values = assigned(typed_column(column), literal(value), time_zone)
    is_old = f"{COMMIT_TS} <= {column.pending.since}"
    return rows.select({name: f"CASE WHEN {is_old} THEN {sql} ELSE {quoted(name)} END" for name, sql in values.items()})


def _check_irregular(
    lake: Lake, config: GoldConfig, rows: AlteredRows, column: ColumnDefinition, step: AlterRows
) -> None:
    """Raises ApplyError if a column has values that it cannot hold, and the feed blocks those."""
    policy = config.policy(step.table.database, step.table.table)
    if policy.on_irregular is OnIrregular.BLOCK and has_irregular(lake, rows.query, column.name):
        raise ApplyError(
            f"column {column.name}: the rows that are there get a value that {column.type.text} cannot hold in the "
            "lake (on_irregular: block)"
        )


def drop_column(lake: Lake, rows: AlteredRows, column: ColumnDefinition) -> AlteredRows:
    """Drops a column, with its irregular values: a column added under the same name later must not find them."""
    columns = [name for name in rows.columns if fold(name) != fold(column.name)]
    if not typed_column(column).may_lose or not has_irregular(lake, rows.query, column.name):
        return replace(rows.select({}, columns=columns), same=rows.same)
    return rows.select({IRREGULAR: irregular_without(column.name)}, columns=columns)


def _rename(rows: AlteredRows, old: str, new: str) -> AlteredRows:
    columns = [new if name == old else name for name in rows.columns]
    keys = f"transform_keys({IRREGULAR}, (k, v) -> CASE WHEN k = {literal(old)} THEN {literal(new)} ELSE k END)"
    irregular = f"CASE WHEN map_contains_key({IRREGULAR}, {literal(old)}) THEN {keys} ELSE {IRREGULAR} END"
    return rows.select({new: quoted(old), IRREGULAR: irregular}, columns=columns)


def _check_readable(lake: Lake, rows: str, gone: RowsRemoved) -> None:
    """Raises ApplyError if the rows of a partition cannot be identified: a zero or partial date is NULL in its column,
    which does not show the partition of its row."""
    if (gone.low, gone.high, gone.values, gone.remainder) == (None, None, None, None):
        return
    name = gone.column.name
    if has_irregular(lake, rows, name):
        raise ApplyError(f"cannot tell which rows the partition held: column {name} contains invalid dates")
