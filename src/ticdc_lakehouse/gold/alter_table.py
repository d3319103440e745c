"""Live tables follow an ALTER TABLE in one commit: of metadata alone where no stored value changes, else an atomic
replacement that is written from the version before.

TiDB sends no row for what an ALTER TABLE does to the rows that are there, so gold does the same to its own: new columns
get their DEFAULT, and values of a column that changes its type are converted by MySQL's rules (`type_conversion`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import eq

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import Family
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.live_table import (
    Column,
    commented,
    given_properties,
    layout_sql,
    live_columns,
    temporary_view,
)
from ticdc_lakehouse.gold.merge import COMMIT_TS, DELETED, KEY, key_text_sql
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import AlterRows, ExchangeRows
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table
from ticdc_lakehouse.schema.effect import Added, ConvertedColumn, Dropped, Effect, Filled, Rekeyed, Renamed, RowsGone
from ticdc_lakehouse.schema.names import fold, spark_names
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.type_conversion import (
    as_wall_clock,
    converted_sql,
    has_session_time,
    zeros,
)
from ticdc_lakehouse.sql.typed_columns import (
    IRREGULAR,
    TypedColumn,
    by_name,
    filled_time_sql,
    stored_text_sql,
    typed_column,
    value_text_sql,
)
from ticdc_lakehouse.sql.value_range import is_value_sql

_MOMENTS = (Family.DATETIME, Family.TIMESTAMP)
_FIRST, _LAST = "TIMESTAMP'1970-01-01 00:00:01Z'", "TIMESTAMP'2038-01-19 03:14:07.999999Z'"
"""What a TIMESTAMP can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows of a live table on their way through the effects of a DDL: a query, and the names of its columns."""

    query: str
    columns: tuple[str, ...]
    same: bool = True
    """Whether no stored value has changed yet: columns without one may have come, and columns may have gone."""

    def select(self, expressions: dict[str, str], *, columns: Sequence[str] | None = None) -> _Rows:
        """The rows with other expressions for some of their columns."""
        names = self.columns if columns is None else tuple(columns)
        listed = ", ".join(f"{expressions.get(name, quoted(name))} AS {quoted(name)}" for name in names)
        return _Rows(query=f"SELECT {listed} FROM ({self.query})", columns=names, same=False)

    def where(self, condition: str) -> _Rows:
        """The rows for which the condition holds."""
        return replace(self, query=f"SELECT * FROM ({self.query}) WHERE {condition}", same=False)


def alter(lake: Lake, config: GoldConfig, name: str, step: AlterRows, version: int) -> bool:
    """Do to the live table, which is at ``version``, what the DDL did, in one commit; gives whether there was anything
    to do.

    Raises ApplyError, before anything is written, if values cannot be converted.
    """
    table = lake.table(Layer.LIVE, name)
    schema = lake.spark.table(table).schema
    stored = tuple(schema.names)
    tombstones = DELETED in stored
    target = live_columns(step.table, tombstones=tombstones)
    if _renames_alone(lake, table, step, stored):
        (effect,) = step.effects
        assert isinstance(effect, Renamed)
        lake.spark.sql(f"ALTER TABLE {table} RENAME COLUMN {quoted(effect.old)} TO {quoted(effect.new)}")
        return True
    rows = _Rows(query=f"SELECT * FROM {table} VERSION AS OF {version}", columns=stored)
    for effect in step.effects:
        rows = _after(lake, config, rows, effect, step)
    if not rows.same or _adds_and_drops(step.effects):
        replace_rows(lake, table, rows.query, step.table, target)
        return True
    types = {field.name: field.dataType.simpleString() for field in schema}
    wanted = [replace(c, spark_type=types.get(c.name, c.spark_type)) for c in target]
    comments = {field.name: field.metadata.get("comment", "") for field in schema}
    if [(c.name, c.comment) for c in wanted] == list(comments.items()):
        return False
    lake.spark.sql(f"ALTER TABLE {table} REPLACE COLUMNS ({', '.join(c.declaration for c in wanted)})")
    return True


def exchange(
    lake: Lake,
    step: ExchangeRows,
    names: tuple[str, str],
    versions: tuple[int, int],
    tables: tuple[Table, Table],
    zone: str,
) -> None:
    """Exchange the rows of a partition and of a plain table, at these Delta versions: one replacement of each.

    Raises ApplyError, before anything is written, if some of the plain table's rows lie outside the partition's bounds
    (WITHOUT VALIDATION): later on nothing would distinguish them from others.
    """
    live = [lake.table(Layer.LIVE, name) for name in names]
    partitioned, plain = (f"SELECT * FROM {t} VERSION AS OF {v}" for t, v in zip(live, versions, strict=True))
    for rows in (partitioned, plain):
        _check_readable(lake, rows, step.part)
    inside = f"coalesce({gone_sql(step.part, zone)}, false)"
    if lake.spark.sql(f"SELECT 1 FROM ({plain}) WHERE NOT {inside}").head(1):
        raise ApplyError("EXCHANGE PARTITION: the other table has rows outside the partition's bounds")
    columns = live_columns(step.table, tombstones=False)
    listed = ", ".join(quoted(column.name) for column in columns)
    queries = (
        f"SELECT {listed} FROM ({partitioned}) WHERE NOT {inside} UNION ALL SELECT {listed} FROM ({plain})",
        f"SELECT {listed} FROM ({partitioned}) WHERE {inside}",
    )
    for table, query, definition in zip(live, queries, tables, strict=True):
        replace_rows(lake, table, query, definition, columns)


def replace_rows(lake: Lake, table: str, query: str, definition: Table, columns: Sequence[Column]) -> None:
    """Replace rows, columns and layout of a live table in one commit; older versions keep theirs, and the table what
    else was set of it."""
    layout = layout_sql(definition, columns, given_properties(lake, table))
    with temporary_view(lake, commented(lake.spark.sql(query), columns)) as source:
        lake.spark.sql(f"REPLACE TABLE {table} USING delta {layout} AS SELECT * FROM {source}")


def _adds_and_drops(effects: Sequence[Effect]) -> bool:
    """Whether columns are dropped and others added: Delta cannot tell that from a change of their types, and a new
    column under a dropped one's name has other values."""
    return any(isinstance(e, Added) for e in effects) and any(isinstance(e, Dropped) for e in effects)


def _renames_alone(lake: Lake, table: str, step: AlterRows, stored: Sequence[str]) -> bool:
    """Whether the DDL only renames one column, to a name that is another one to Spark, and of which no irregular
    value is kept by name."""
    match step.effects:
        case (Renamed(old=old, new=new),):
            order = [column.name for column in live_columns(step.table, tombstones=DELETED in stored)]
            is_same = any(map(eq, spark_names(old), spark_names(new)))
            in_place = [new if name == old else name for name in stored] == order
            return in_place and not is_same and not _has_irregular(lake, f"SELECT * FROM {table}", old)
        case _:
            return False


def _has_irregular(lake: Lake, rows: str, name: str) -> bool:
    # No WHERE: see `_check`.
    found = lake.spark.sql(f"SELECT bool_or(map_contains_key({IRREGULAR}, {literal(name)})) AS found FROM ({rows})")
    return bool(found.collect()[0]["found"])


def _after(lake: Lake, config: GoldConfig, rows: _Rows, effect: Effect, step: AlterRows) -> _Rows:
    """The rows after one effect of the DDL."""
    match effect:
        case Added(column=column, value=value):
            return _add(rows, by_name(column), value, config.time_zone)
        case Filled(column=column, value=value):
            return _fill(rows, column, value, config.time_zone)
        case Dropped(column=column):
            return _drop(lake, rows, column)
        case Renamed(old=old, new=new):
            return _rename(rows, old, new)
        case ConvertedColumn(before=before, after=after):
            return _convert_if_any(lake, config, rows, before, by_name(after), step)
        case Rekeyed():
            return _rekey(rows, step, config.time_zone)
        case RowsGone():
            _check_readable(lake, rows.query, effect)
            return rows.where(f"NOT coalesce({gone_sql(effect, config.time_zone)}, false)")


def _add(rows: _Rows, column: ColumnDefinition, value: str | None, time_zone: str) -> _Rows:
    typed = typed_column(column)
    columns = (*rows.columns, column.name)
    if value is None:
        added = rows.select({column.name: f"CAST(NULL AS {typed.spark_type})"}, columns=columns)
        return replace(added, same=rows.same)
    return rows.select(_assigned(typed, literal(value), time_zone), columns=columns)


def _fill(rows: _Rows, column: ColumnDefinition, value: str, time_zone: str) -> _Rows:
    """Rows that were not written since the ADD COLUMN get its value."""
    assert column.pending is not None
    assigned = _assigned(typed_column(column), literal(value), time_zone)
    is_old = f"{COMMIT_TS} <= {column.pending.since}"
    return rows.select(
        {name: f"CASE WHEN {is_old} THEN {sql} ELSE {quoted(name)} END" for name, sql in assigned.items()}
    )


def _assigned(typed: TypedColumn, text: str, time_zone: str) -> dict[str, str]:
    """The expressions that give a column the value of a text; what its type cannot hold goes to the irregular."""
    value = typed.sql(text, time_zone)
    name = literal(typed.name)
    others = f"map_filter(coalesce({IRREGULAR}, map()), (k, v) -> k <> {name})"
    lost = f"CASE WHEN {value} IS NULL AND {text} IS NOT NULL THEN map_concat({others}, map({name}, {text}))"
    rest = f"WHEN map_contains_key({IRREGULAR}, {name}) THEN {others} ELSE {IRREGULAR} END"
    return {typed.name: value, IRREGULAR: f"{lost} {rest}"}


def _drop(lake: Lake, rows: _Rows, column: ColumnDefinition) -> _Rows:
    """A column added under the same name later must not find the irregular values of this one."""
    columns = [name for name in rows.columns if fold(name) != fold(column.name)]
    if not typed_column(column).may_lose or not _has_irregular(lake, rows.query, column.name):
        return replace(rows.select({}, columns=columns), same=rows.same)
    name = literal(column.name)
    kept = f"CASE WHEN map_contains_key({IRREGULAR}, {name}) THEN map_filter({IRREGULAR}, (k, v) -> k <> {name}) "
    return rows.select({IRREGULAR: f"{kept} ELSE {IRREGULAR} END"}, columns=columns)


def _rename(rows: _Rows, old: str, new: str) -> _Rows:
    columns = [new if name == old else name for name in rows.columns]
    keys = f"transform_keys({IRREGULAR}, (k, v) -> CASE WHEN k = {literal(old)} THEN {literal(new)} ELSE k END)"
    irregular = f"CASE WHEN map_contains_key({IRREGULAR}, {literal(old)}) THEN {keys} ELSE {IRREGULAR} END"
    return rows.select({new: quoted(old), IRREGULAR: irregular}, columns=columns)


def _convert_if_any(
    lake: Lake, config: GoldConfig, rows: _Rows, before: ColumnDefinition, after: ColumnDefinition, step: AlterRows
) -> _Rows:
    """The column with converted values. One that has none may become whatever TiDB allows."""
    try:
        return _convert(lake, config, rows, before, after, step)
    except ApplyError:
        if _has_values(lake, rows.query, before.name):
            raise
        return rows.select({after.name: f"CAST(NULL AS {typed_column(after).spark_type})"})


def _has_values(lake: Lake, rows: str, name: str) -> bool:
    found = lake.spark.sql(f"SELECT count({quoted(name)}) AS found FROM ({rows})").collect()[0]["found"]
    return bool(found) or _has_irregular(lake, rows, name)


def _convert(
    lake: Lake,
    config: GoldConfig,
    rows: _Rows,
    before: ColumnDefinition,
    after: ColumnDefinition,
    step: AlterRows,
) -> _Rows:
    """The column with converted values; a type that the lake keeps in the same way only changes its comment."""
    zone = _conversion_zone(config, before, after)
    before = _with_all_digits(before)
    old, new = typed_column(before), typed_column(after)
    text = stored_text_sql(old, zone)
    converted = _converted_sql(before, after, text)
    if after.type.family is Family.TIMESTAMP and has_session_time(before.type, after.type):
        converted = _instant_sql(new, converted, zone)
    in_key = fold(after.name) in {fold(name) for name in step.table.key}
    if converted == text and (old.spark_type, before.type.family) == (new.spark_type, after.type.family):
        if is_value_sql(before.type, after.type, text) != "true":
            _check(lake, rows.query, (before, new), text, converted, zone)
        # The key's texts stay as the wire wrote them, but for numbers of ENUM and SET and for digits of moments.
        kept = _more_digits(rows, before, after)
        moved = in_key and (kept is not rows or after.type.elements or not before.sized)
        return _rekey(kept, step, config.time_zone) if moved else kept
    _check(lake, rows.query, (before, new), text, converted, zone)
    rows = rows.select(_assigned(new, converted, zone))
    return _rekey(rows, step, config.time_zone) if in_key else rows


def _conversion_zone(config: GoldConfig, before: ColumnDefinition, after: ColumnDefinition) -> str:
    """The zone of the wall-clock times that TiDB converts. Raises ApplyError if they depend on one that is unknown."""
    if before.type.family is after.type.family is Family.TIMESTAMP:
        return "UTC"  # instants, which no zone leaves out or has twice
    if not has_session_time(before.type, after.type):
        return config.time_zone
    if config.ddl_time_zone is None:
        raise ApplyError(
            f"column {before.name}: what {before.type.text} becomes as {after.type.text} depends on the time zone of "
            "the session that ran the DDL: give it as gold.ddl_time_zone, and resume the table"
        )
    return config.ddl_time_zone


def _instant_sql(timestamp: TypedColumn, text: str, zone: str) -> str:
    """The text of a wall-clock time that a TIMESTAMP can be in the zone; NULL of others, of which TiDB makes something
    else without strict mode: in an hour that the zone leaves out, before 1970 or after 2038."""
    instant = timestamp.sql(text, zone)
    is_there = f"left({value_text_sql(timestamp, instant, zone)}, 19) = left({text}, 19)"
    fits = f"{is_there} AND {instant} BETWEEN {_FIRST} AND {_LAST}"
    return f"CASE WHEN {text} LIKE '0000-00-00%' OR ({fits}) THEN {text} END"


def _with_all_digits(column: ColumnDefinition) -> ColumnDefinition:
    """A moment of whose type messages tell no digits may have all that there can be."""
    return replace(column, type=replace(column.type, size=(6,))) if column.has_unknown_digits else column


def _converted_sql(before: ColumnDefinition, after: ColumnDefinition, text: str) -> str:
    """`converted_sql`, also of values of which only their texts tell the digits after the point."""
    kinds = before.type.family, after.type.family
    if not before.sized and kinds == (Family.TIME, Family.TIME):
        return filled_time_sql(text, after.type.digits)
    if kinds[1] is Family.TEXT:
        _check_digits(before)
    if not has_session_time(before.type, after.type):
        return converted_sql(before.type, after.type, text)
    had, has = as_wall_clock(before.type), as_wall_clock(after.type)
    more = had.family is has.family and had.digits < has.digits
    return f"concat({text}, {zeros(had.digits, has.digits)})" if more else converted_sql(had, has, text)


def _check_digits(column: ColumnDefinition) -> None:
    """Raises ApplyError for a moment whose text is not known."""
    if column.has_unknown_digits:
        raise ApplyError(f"column {column.name}: messages do not tell how many digits its values have after the point")


def _more_digits(rows: _Rows, before: ColumnDefinition, after: ColumnDefinition) -> _Rows:
    """Moments are stored with all digits that a type can have; texts of those that are none get the new type's."""
    had, has = before.type.digits, after.type.digits
    if before.type.family not in _MOMENTS or had == has:
        return rows
    name = literal(before.name)
    longer = f"regexp_replace(v, '(?<!Z)(?=Z?$)', {zeros(had, has)})"  # before the Z of a text in UTC
    texts = f"transform_values({IRREGULAR}, (k, v) -> CASE WHEN k = {name} THEN {longer} ELSE v END)"
    return rows.select(
        {IRREGULAR: f"CASE WHEN map_contains_key({IRREGULAR}, {name}) THEN {texts} ELSE {IRREGULAR} END"}
    )


def _check(
    lake: Lake, rows: str, change: tuple[ColumnDefinition, TypedColumn], text: str, converted: str, time_zone: str
) -> None:
    """A value that is too large for the new type is lost as well: without strict mode TiDB makes another of it."""
    before, new = change
    after = new.definition
    value = converted if new.has_dates else new.sql(converted, time_zone)
    kept = f"abs({value}) < double('Infinity')" if new.spark_type in ("FLOAT", "DOUBLE") else f"{value} IS NOT NULL"
    gone = f"{text} IS NOT NULL AND NOT coalesce({kept} AND {is_value_sql(before.type, after.type, converted)}, false)"
    # No WHERE: Spark would put it below the conversions of columns before, and write out each of them many times.
    example = lake.spark.sql(f"SELECT min({text}) FILTER (WHERE {gone}) AS text FROM ({rows})").collect()[0]
    if example["text"] is not None:
        raise ApplyError(
            f"column {before.name}: the value {example['text']!r} cannot be converted from {before.type.text} to "
            f"{after.type.text} as TiDB did it"
        )


def _rekey(rows: _Rows, step: AlterRows, time_zone: str) -> _Rows:
    """A row's key is made of the texts of its key columns, as the wire would write it: when these change, so does the
    key."""
    return rows.select({KEY: stored_key_sql(step.table, time_zone)})


def stored_key_sql(table: Table, time_zone: str) -> str:
    """The text of a stored row's key, as the feed's messages have it. Raises ApplyError for a column whose texts are
    not known."""
    columns = {fold(column.name): column for column in table.columns}
    return key_text_sql([wire_text_sql(columns[fold(name)], time_zone) for name in table.key_text_columns])


def wire_text_sql(column: ColumnDefinition, time_zone: str) -> str:
    """A stored value's text in the feed's keys: ENUM and SET are stored by name, and most protocols send numbers.

    Raises ApplyError for a column whose texts are not known.
    """
    _check_digits(column)
    text = stored_text_sql(typed_column(by_name(column)), time_zone)
    elements = [literal(name) for name in column.type.elements]
    if not elements or column.by == "name":
        return text
    if column.type.family is Family.ENUM:  # 0 for none of the names: the empty text, unless a name is empty
        return f"CAST(array_position(array({', '.join(elements)}), {text}) AS STRING)"
    chosen = f"split({text}, ',')"
    bits = (f"IF(array_contains({chosen}, {name}), {1 << bit}, 0)" for bit, name in enumerate(elements))
    mask = f"CAST(CAST({' + '.join(bits)} AS DECIMAL(20,0)) AS STRING)"
    # TiDB reads the empty text as no name, also where one is empty.
    return f"CASE WHEN {text} = '' THEN '0' ELSE {mask} END" if "" in column.type.elements else mask


def _check_readable(lake: Lake, rows: str, gone: RowsGone) -> None:
    """A zero or partial date is NULL in its column, which does not show the partition of its row."""
    if (gone.low, gone.high, gone.values, gone.remainder) == (None, None, None, None):
        return
    name = gone.column.name
    if _has_irregular(lake, rows, name):
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

    if gone.remainder is not None:
        number, count = gone.remainder
        return f"abs({value} % {count}) = {number}" + (f" OR {value} IS NULL" if number == 0 else "")
    if gone.values is not None:
        members = [f"{value} IS NULL" if text is None else f"{value} = {bound(text)}" for text in gone.values]
        return " OR ".join(members)
    low = "true" if gone.low is None else f"{value} >= {bound(gone.low)}"
    high = "true" if gone.high is None else f"{value} < {bound(gone.high)}"
    return f"({low} AND {high})" + (f" OR {value} IS NULL" if gone.low is None else "")
