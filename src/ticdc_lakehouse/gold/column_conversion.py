"""Stored values of a column whose type an ALTER TABLE changed, converted as TiDB converts them (`type_conversion`)."""

from __future__ import annotations

from dataclasses import replace

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import Family
from ticdc_codec.name_case import fold
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.altered_rows import AlteredRows, assigned, has_irregular, is_any
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import AlterRows
from ticdc_lakehouse.schema.definition import ColumnDefinition
from ticdc_lakehouse.schema.effect import ColumnConverted
from ticdc_lakehouse.schema.unwritten_rows import is_known
from ticdc_lakehouse.sql.key_text import check_digits, unknown_digits
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.type_conversion import as_wall_clock, converted_sql, has_session_time, names_sql, zeros
from ticdc_lakehouse.sql.typed_columns import (
    IRREGULAR,
    TypedColumn,
    by_name,
    stored_text_sql,
    typed_column,
    value_text_sql,
    with_digits_sql,
)
from ticdc_lakehouse.sql.value_range import is_value_sql

_MOMENTS = (Family.DATETIME, Family.TIMESTAMP)
_FIRST, _LAST = "TIMESTAMP'1970-01-01 00:00:01Z'", "TIMESTAMP'2038-01-19 03:14:07.999999Z'"
"""The range of a TIMESTAMP."""


def convert_column(
    lake: Lake, config: GoldConfig, rows: AlteredRows, effect: ColumnConverted, step: AlterRows
) -> AlteredRows:
    """Returns the rows with the column's converted values. A column without values may become whatever TiDB allows."""
    _check_nulls(lake, rows.present, effect)
    if effect.may_show_default:
        _check_unwritten(lake, rows.present, effect.before)
    try:
        return _convert(lake, config, rows, effect, step)
    except ApplyError:
        if _has_values(lake, rows.query, effect.before.name):
            raise
        after = by_name(effect.after)
        return rows.select({after.name: f"CAST(NULL AS {typed_column(after).spark_type})"})


def _check_nulls(lake: Lake, rows: str, effect: ColumnConverted) -> None:
    """Raises ApplyError if TiDB put the time of the ALTER into rows, which it does in place of NULL in a column that
    becomes TIMESTAMP NOT NULL (``checkForNullValue``, ``getRowRecord``): TiCDC does not send these rows."""
    before, after = effect.before, effect.after
    if after.type.family is not Family.TIMESTAMP or before.type.family is Family.TIMESTAMP or after.nullable:
        return
    if is_any(lake, rows, _is_null_sql(before.name)):
        raise ApplyError(
            f"column {before.name}: TiDB put the time of the ALTER into rows that had NULL, and messages do not show it"
        )


def _check_unwritten(lake: Lake, rows: str, before: ColumnDefinition) -> None:
    """Raises ApplyError if rows have the value of those that do not store the column: TiDB may show another one in them
    now (`unwritten_rows`)."""
    first = before.origin_default
    if first is None:
        may_not_store = _is_null_sql(before.name)
    elif is_known(first):
        shown = first.rstrip(" ") if before.type.name == "char" else first
        may_not_store = f"{stored_text_sql(typed_column(before), 'UTC')} = {literal(shown)}"
    else:
        may_not_store = "true"
    if before.may_be_rewritten:
        may_not_store = f"{may_not_store} OR {_is_null_sql(before.name)}"
    if is_any(lake, rows, may_not_store):
        raise ApplyError(
            f"column {before.name}: TiDB since 8.5.5 may show another DEFAULT in rows that were not written since the "
            "column was added, or that had NULL, and messages do not show it"
        )


def _is_null_sql(name: str) -> str:
    is_irregular = f"coalesce(map_contains_key({IRREGULAR}, {literal(name)}), false)"
    return f"{quoted(name)} IS NULL AND NOT {is_irregular}"


def _has_values(lake: Lake, rows: str, name: str) -> bool:
    found = lake.spark.sql(f"SELECT count({quoted(name)}) AS found FROM ({rows})").collect()[0]["found"]
    return bool(found) or has_irregular(lake, rows, name)


def _convert(
    lake: Lake, config: GoldConfig, rows: AlteredRows, effect: ColumnConverted, step: AlterRows
) -> AlteredRows:
    """Returns the rows with the column's converted values; if the lake stores both types in the same way, only the
    comment changes."""
    before, after = effect.before, by_name(effect.after)
    zone = _conversion_zone(config, before, after)
    before = _with_all_digits(before)
    old, new = typed_column(before), typed_column(after)
    text = stored_text_sql(old, zone)
    if before.type.family is Family.TIMESTAMP and has_session_time(before.type, after.type):
        text = _local_sql(old, text, zone)
    if after.type.family is Family.TEXT and not before.sized and config.rewrites_key(before.type):
        raise unknown_digits(before)
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
        return replace(kept, rekeyed=True, same=False) if moved else kept
    _check(lake, rows.query, (before, new), text, converted, zone)
    rows = rows.select(assigned(new, converted, zone))
    return replace(rows, rekeyed=rows.rekeyed or in_key)


def _conversion_zone(config: GoldConfig, before: ColumnDefinition, after: ColumnDefinition) -> str:
    """Returns the zone of the wall-clock times that TiDB converts. Raises ApplyError if they depend on one that is
    unknown."""
    if before.type.family is after.type.family is Family.TIMESTAMP:
        return "UTC"  # instants, which stay as they are (but docs/defects.md, Rows that are written again)
    if not has_session_time(before.type, after.type):
        return config.time_zone
    if config.ddl_time_zone is None:
        raise ApplyError(
            f"column {before.name}: what {before.type.text} becomes as {after.type.text} depends on the time zone of "
            "the session that ran the DDL: give it as gold.ddl_time_zone, and resume the table"
        )
    return config.ddl_time_zone


def _local_sql(timestamp: TypedColumn, text: str, zone: str) -> str:
    """Returns SQL: the wall-clock time of a TIMESTAMP's text, which Debezium has in UTC, with a Z, where the feed's
    zone has the time twice."""
    local = value_text_sql(timestamp, f"try_cast({text} AS TIMESTAMP)", zone)
    return f"CASE WHEN {text} LIKE '%Z' THEN {local} ELSE {text} END"


def _instant_sql(timestamp: TypedColumn, text: str, zone: str) -> str:
    """Returns SQL: the text of a wall-clock time that a TIMESTAMP can be in the zone; NULL for one in an hour that the
    zone leaves out, before 1970 or after 2038, which TiDB changes without strict mode."""
    instant = timestamp.sql(text, zone)
    is_there = f"left({value_text_sql(timestamp, instant, zone)}, 19) = left({text}, 19)"
    fits = f"{is_there} AND {instant} BETWEEN {_FIRST} AND {_LAST}"
    return f"CASE WHEN {text} LIKE '0000-00-00%' OR ({fits}) THEN {text} END"


def _with_all_digits(column: ColumnDefinition) -> ColumnDefinition:
    """Returns the column with all digits that a moment can have, if messages do not show how many its type has."""
    return replace(column, type=replace(column.type, size=(6,))) if column.has_unknown_digits else column


def _converted_sql(before: ColumnDefinition, after: ColumnDefinition, text: str) -> str:
    """Returns `converted_sql`, also for values whose digits after the point only their texts show."""
    kinds = before.type.family, after.type.family
    if not before.sized and kinds == (Family.TIME, Family.TIME):
        return with_digits_sql(text, after.type.digits)
    if kinds[1] is Family.TEXT:
        check_digits(before)
    if kinds[1] is Family.TEXT and before.type.elements and before.by != "name":
        text = names_sql(before.type, text)  # a number without a name: TiDB has one, which is not known
    if not has_session_time(before.type, after.type):
        return converted_sql(before.type, after.type, text)
    had, has = as_wall_clock(before.type), as_wall_clock(after.type)
    more = had.family is has.family and had.digits < has.digits
    return f"concat({text}, {zeros(had.digits, has.digits)})" if more else converted_sql(had, has, text)


def _more_digits(rows: AlteredRows, before: ColumnDefinition, after: ColumnDefinition) -> AlteredRows:
    """Returns the rows, in which irregular texts get the new type's digits. Moments themselves are stored with all
    digits that a type can have."""
    had, has = before.type.digits, after.type.digits
    if before.type.family not in _MOMENTS or had == has:
        return rows
    name = literal(before.name)
    # Before the Z of a text in UTC. A zero date of Debezium has no digits.
    more = f"CASE WHEN contains(v, '.') THEN {zeros(had, has)} ELSE {zeros(0, has)} END"
    longer = f"regexp_replace(v, '(?<!Z)(?=Z?$)', {more})"
    texts = f"transform_values({IRREGULAR}, (k, v) -> CASE WHEN k = {name} THEN {longer} ELSE v END)"
    return rows.select(
        {IRREGULAR: f"CASE WHEN map_contains_key({IRREGULAR}, {name}) THEN {texts} ELSE {IRREGULAR} END"}
    )


def _check(
    lake: Lake, rows: str, change: tuple[ColumnDefinition, TypedColumn], text: str, converted: str, time_zone: str
) -> None:
    """Raises ApplyError if a value cannot be converted, or is too large for the new type: without strict mode TiDB
    makes another value of that."""
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
