"""Data tables made to follow an ALTER TABLE: their columns through column mapping, their rows by one update a column.

TiDB sends no row for what an ALTER TABLE does to the rows that are there, so gold does the same to its own: new columns
get their DEFAULT, and values of a column that changes its type are converted by MySQL's rules (`recast`).
"""

from __future__ import annotations

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import Family
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.merge import COMMIT_TS, KEY, key_text_sql
from ticdc_lakehouse.planning.table_plan import Alter, Exchange
from ticdc_lakehouse.schema.definition import ColumnDefinition
from ticdc_lakehouse.schema.effect import Added, Dropped, Effect, Recast, Rekeyed, Renamed, RowsGone
from ticdc_lakehouse.schema.names import fold
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.type_conversion import converted_sql, zeros
from ticdc_lakehouse.sql.typed_columns import (
    IRREGULAR,
    TypedColumn,
    by_name,
    stored_text_sql,
    typed_column,
    typed_columns,
)

_NEW = "_ticdc_new"
"""A column that is about to take another one's place."""


def alter(lake: Lake, data: str, step: Alter, time_zone: str) -> None:
    """Do to the data table and its rows what the DDL did. Raises ApplyError, before anything is written for that
    effect, if values cannot be converted."""
    table = lake.table(Layer.GOLD, data)
    for effect in step.effects:
        for statement in _statements(lake, table, effect, step, time_zone):
            lake.spark.sql(statement)


def exchange(lake: Lake, step: Exchange, versions: tuple[int, int], time_zone: str) -> None:
    """Exchange the rows of a partition and of a plain table, which are at these Delta versions. Raises ApplyError,
    before anything is written, if some of the plain table's rows lie outside the partition's bounds (WITHOUT
    VALIDATION): later on nothing would distinguish them from others."""
    tables = [lake.table(Layer.GOLD, name) for name in (step.partitioned, step.plain)]
    for table in tables:
        _check_readable(lake, table, step.part)
    rows = gone_sql(step.part, time_zone)
    if lake.spark.sql(f"SELECT 1 FROM {tables[1]} WHERE NOT coalesce({rows}, false)").head(1):
        raise ApplyError("EXCHANGE PARTITION: the other table has rows outside the partition's bounds")
    columns = ", ".join([KEY, COMMIT_TS, IRREGULAR, *(quoted(column.name) for column in typed_columns(step.table))])
    partitioned, plain = (f"{t} VERSION AS OF {v}" for t, v in zip(tables, versions, strict=True))
    for statement in (
        f"DELETE FROM {tables[0]} WHERE {rows}",
        f"INSERT INTO {tables[0]} ({columns}) SELECT {columns} FROM {plain}",
        f"DELETE FROM {tables[1]}",
        f"INSERT INTO {tables[1]} ({columns}) SELECT {columns} FROM {partitioned} WHERE {rows}",
    ):
        lake.spark.sql(statement)


def _statements(lake: Lake, table: str, effect: Effect, step: Alter, time_zone: str) -> list[str]:
    match effect:
        case Added(column=column, value=value):
            return _add(table, by_name(column), value, time_zone)
        case Dropped(column=column):
            return [_drop(table, column.name), *_forget(table, column)]
        case Renamed(old=old, new=new):
            return _rename(table, old, new)
        case Recast(before=before, after=after):
            recast = _recast(lake, table, before, by_name(after), time_zone)
            keyed = fold(after.name) in {fold(name) for name in step.table.key}
            moved = len(recast) > 1 or bool(after.type.elements)  # else the key's texts stay as the wire wrote them
            return [*recast, *(_rekey(table, step, step.table.key, time_zone) if keyed and moved else [])]
        case Rekeyed(key=key):
            return _rekey(table, step, key, time_zone)
        case RowsGone():
            _check_readable(lake, table, effect)
            return [f"DELETE FROM {table} WHERE {gone_sql(effect, time_zone)}"]


def _add(table: str, column: ColumnDefinition, value: str | None, time_zone: str) -> list[str]:
    typed = typed_column(column)
    added = [f"ALTER TABLE {table} ADD COLUMNS ({_declared(typed, column.name)})"]
    if value is None:
        return added
    text = literal(value)
    return [*added, f"UPDATE {table} SET {_assigned(typed, column.name, text, time_zone)}"]


def _declared(typed: TypedColumn, name: str) -> str:
    return f"{quoted(name)} {typed.spark_type} COMMENT {literal(typed.comment)}"


def _assigned(typed: TypedColumn, target: str, text: str, time_zone: str) -> str:
    """The assignments that give a column the value of a text; what its type cannot hold goes to the irregular."""
    value = typed.sql(text, time_zone)
    name = literal(typed.name)
    others = f"map_filter(coalesce({IRREGULAR}, map()), (k, v) -> k <> {name})"
    lost = f"CASE WHEN {value} IS NULL AND {text} IS NOT NULL THEN map_concat({others}, map({name}, {text}))"
    rest = f"WHEN map_contains_key({IRREGULAR}, {name}) THEN {others} ELSE {IRREGULAR} END"
    return f"{quoted(target)} = {value}, {IRREGULAR} = {lost} {rest}"


def _drop(table: str, name: str) -> str:
    return f"ALTER TABLE {table} DROP COLUMNS ({quoted(name)})"


def _forget(table: str, column: ColumnDefinition) -> list[str]:
    """A column added under the same name later must not find the irregular values of this one."""
    if column.type.family not in (Family.DATE, Family.DATETIME, Family.TIMESTAMP):
        return []
    name = literal(column.name)
    kept = f"map_filter({IRREGULAR}, (k, v) -> k <> {name})"
    return [f"UPDATE {table} SET {IRREGULAR} = {kept} WHERE map_contains_key({IRREGULAR}, {name})"]


def _rename(table: str, old: str, new: str) -> list[str]:
    """Through another name: where only the case changes, the new name is taken by the old one."""
    steps = [(old, _NEW), (_NEW, new)] if fold(old) == fold(new) else [(old, new)]
    renamed = [f"ALTER TABLE {table} RENAME COLUMN {quoted(a)} TO {quoted(b)}" for a, b in steps]
    keys = f"transform_keys({IRREGULAR}, (k, v) -> CASE WHEN k = {literal(old)} THEN {literal(new)} ELSE k END)"
    return [*renamed, f"UPDATE {table} SET {IRREGULAR} = {keys} WHERE map_contains_key({IRREGULAR}, {literal(old)})"]


def _recast(lake: Lake, table: str, before: ColumnDefinition, after: ColumnDefinition, time_zone: str) -> list[str]:
    """Another column takes the place of the old one, with the converted values; a type that the lake keeps in the same
    way only changes its comment."""
    old, new = typed_column(before), typed_column(after)
    text = stored_text_sql(old, time_zone)
    converted = converted_sql(before.type, after.type, text)
    if converted == text and (old.spark_type, before.type.family) == (new.spark_type, after.type.family):
        commented = f"ALTER TABLE {table} ALTER COLUMN {quoted(before.name)} COMMENT {literal(new.comment)}"
        return [commented, *_more_digits(table, before, after)]
    _check(lake, table, (before, new), text, converted, time_zone)
    return [
        f"ALTER TABLE {table} ADD COLUMNS ({_declared(new, _NEW)})",
        f"UPDATE {table} SET {_assigned(new, _NEW, converted, time_zone)}",
        _drop(table, before.name),
        f"ALTER TABLE {table} RENAME COLUMN {quoted(_NEW)} TO {quoted(after.name)}",
    ]


def _more_digits(table: str, before: ColumnDefinition, after: ColumnDefinition) -> list[str]:
    """Moments are stored with all digits that a type can have; texts of those that are none get the new type's."""
    had, has = before.type.digits, after.type.digits
    if before.type.family not in (Family.DATETIME, Family.TIMESTAMP) or had == has:
        return []
    name = literal(before.name)
    texts = (
        f"transform_values({IRREGULAR}, (k, v) -> CASE WHEN k = {name} THEN concat(v, {zeros(had, has)}) ELSE v END)"
    )
    return [f"UPDATE {table} SET {IRREGULAR} = {texts} WHERE map_contains_key({IRREGULAR}, {name})"]


def _check(
    lake: Lake, table: str, change: tuple[ColumnDefinition, TypedColumn], text: str, converted: str, time_zone: str
) -> None:
    """A value that is too large for the new type is lost as well: without strict mode TiDB makes another of it."""
    before, new = change
    after = new.definition
    value = converted if new.has_dates else new.sql(converted, time_zone)
    kept = f"abs({value}) < double('Infinity')" if new.spark_type in ("FLOAT", "DOUBLE") else f"{value} IS NOT NULL"
    gone = f"{text} IS NOT NULL AND NOT coalesce({kept}, false)"
    lost = lake.spark.sql(f"SELECT {text} AS text FROM {table} WHERE {gone}")
    example = lost.first()
    if example is not None:
        raise ApplyError(
            f"column {before.name}: the value {example['text']!r} cannot be converted from {before.type.text} to "
            f"{after.type.text} as TiDB did it"
        )


def _rekey(table: str, step: Alter, key: tuple[str, ...], time_zone: str) -> list[str]:
    """A row's key is made of the texts of its key columns: when these change, so does the key."""
    return [f"UPDATE {table} SET {KEY} = {_key_sql(step, key, time_zone)}"]


def _key_sql(step: Alter, key: tuple[str, ...], time_zone: str) -> str:
    """The key's JSON text from the stored columns, as the wire would write it."""
    columns = {fold(column.name): column for column in step.table.columns}
    return key_text_sql([wire_text_sql(columns[fold(name)], time_zone) for name in key])


def wire_text_sql(column: ColumnDefinition, time_zone: str) -> str:
    """A stored value's text in the feed's keys: ENUM and SET are stored by name, and most protocols send numbers."""
    text = stored_text_sql(typed_column(by_name(column)), time_zone)
    elements = [literal(name) for name in column.type.elements]
    if not elements or column.by == "name":
        return text
    if column.type.family is Family.ENUM:
        return f"CAST(array_position(array('', {', '.join(elements)}), {text}) - 1 AS STRING)"
    chosen = f"split({text}, ',')"
    bits = (f"IF(array_contains({chosen}, {name}), {1 << bit}, 0)" for bit, name in enumerate(elements))
    return f"CAST(CAST({' + '.join(bits)} AS DECIMAL(20,0)) AS STRING)"


def _check_readable(lake: Lake, table: str, gone: RowsGone) -> None:
    """A zero or partial date is NULL in its column, which does not show the partition of its row."""
    if gone.low is None and gone.high is None and gone.values is None:
        return
    name = gone.column.name
    if lake.spark.sql(f"SELECT 1 FROM {table} WHERE map_contains_key({IRREGULAR}, {literal(name)})").head(1):
        raise ApplyError(f"cannot tell which rows the partition held: column {name} contains invalid dates")


def gone_sql(gone: RowsGone, time_zone: str) -> str:
    """The condition of the rows that go with a partition."""
    typed = typed_column(by_name(gone.column))
    column = quoted(typed.name)
    # Spark has MySQL's functions of a date under the same names, but for this one: 1 is the first day of the year 0.
    days = f"(datediff({column}, DATE'0001-01-01') + 366)"
    value = {None: column, "to_days": days}.get(gone.function, f"{gone.function}({column})")

    def bound(text: str) -> str:
        # A whole number as it is: RANGE may end above all that the column's type can hold.
        whole = gone.function is not None or gone.column.type.family is Family.INTEGER
        return text if whole else typed.sql(literal(text), time_zone)

    if gone.values is not None:
        members = [f"{value} IS NULL" if text is None else f"{value} = {bound(text)}" for text in gone.values]
        return " OR ".join(members)
    low = "true" if gone.low is None else f"{value} >= {bound(gone.low)}"
    high = "true" if gone.high is None else f"{value} < {bound(gone.high)}"
    return f"({low} AND {high})" + (f" OR {value} IS NULL" if gone.low is None else "")
