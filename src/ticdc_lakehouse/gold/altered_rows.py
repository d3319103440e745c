"""The rows of a live table on their way through the effects of a DDL: a query that each effect wraps in another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ticdc_codec.errors import ApplyError
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.ambiguous_keys import KEPT_APART, timestamps_in_key
from ticdc_lakehouse.gold.own_columns import DELETED, KEY
from ticdc_lakehouse.planning.steps import AlterRows
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.sql.instant import backward_shifts
from ticdc_lakehouse.sql.key_text import key_text_sql, stored_key_texts
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.typed_columns import IRREGULAR, TypedColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredRows:
    """The rows of a live table on their way through the effects of a DDL: a query, and the names of its columns."""

    query: str
    columns: tuple[str, ...]
    same: bool = True
    """True if no stored value has changed yet: columns without values may have been added, and columns dropped."""
    rekeyed: bool = False
    """True if the rows need new keys, once all effects have given them their columns (``with_new_keys``)."""

    def select(self, expressions: dict[str, str], *, columns: Sequence[str] | None = None) -> AlteredRows:
        """Returns the rows with other expressions for some of their columns."""
        names = self.columns if columns is None else tuple(columns)
        listed = ", ".join(f"{expressions.get(name, quoted(name))} AS {quoted(name)}" for name in names)
        return replace(self, query=f"SELECT {listed} FROM ({self.query})", columns=names, same=False)

    @property
    def present(self) -> str:
        """Query of the rows without tombstones (mode eventual), which have NULL in every column."""
        return f"SELECT * FROM ({self.query}) WHERE NOT {DELETED}" if DELETED in self.columns else self.query

    def where(self, condition: str) -> AlteredRows:
        """Returns the rows for which the condition holds."""
        return replace(self, query=f"SELECT * FROM ({self.query}) WHERE {condition}", same=False)


def is_any(lake: Lake, rows: str, condition: str) -> bool:
    """True if one of the rows fulfils the condition."""
    # No WHERE: see `column_conversion._check`.
    return bool(lake.spark.sql(f"SELECT bool_or({condition}) AS found FROM ({rows})").collect()[0]["found"])


def has_irregular(lake: Lake, rows: str, name: str) -> bool:
    """True if one of the rows has an irregular value in the column."""
    return is_any(lake, rows, f"map_contains_key({IRREGULAR}, {literal(name)})")


def assigned(typed: TypedColumn, text: str, time_zone: str) -> dict[str, str]:
    """Returns the expressions that assign the value of a text to a column; what its type cannot hold goes to the
    irregular values."""
    value = typed.sql(text, time_zone)
    others = irregular_without(typed.name)
    all_texts = f"map_concat(coalesce({others}, map()), map({literal(typed.name)}, {text}))"
    irregular = f"CASE WHEN {value} IS NULL AND {text} IS NOT NULL THEN {all_texts} ELSE {others} END"
    return {typed.name: value, IRREGULAR: irregular}


def irregular_without(name: str) -> str:
    """Returns SQL: a row's irregular values without that of a column; NULL if none is left."""
    rest = f"map_filter({IRREGULAR}, (k, v) -> k <> {literal(name)})"
    is_only = f"size({IRREGULAR}) = 1"
    has_it = f"map_contains_key({IRREGULAR}, {literal(name)})"
    return f"CASE WHEN {has_it} AND {is_only} THEN NULL WHEN {has_it} THEN {rest} ELSE {IRREGULAR} END"


def with_new_keys(lake: Lake, rows: AlteredRows, step: AlterRows, time_zone: str) -> AlteredRows:
    """Returns the rows with new keys: a row's key is made of the texts of its key columns, as the wire would write
    it. Raises ApplyError if there are rows, and these texts are not known, are those of two rows, or one is missing.
    The rows of a table that has no key any more keep theirs: TiCDC sends no change of them, and all of them would have
    one text."""
    if not step.table.key:
        return rows.select({})
    try:
        texts = stored_key_texts(step.table, time_zone)
    except ApplyError:
        if lake.spark.sql(rows.query).head(1):
            raise
        return rows
    _check_whole(lake, rows, step.table, texts)
    rekeyed = rows.select({KEY: key_text_sql(texts)})
    if (times := timestamps_in_key(step.table)) and backward_shifts(time_zone):
        _check_apart(lake, rekeyed, times, time_zone)
    return rekeyed


def _check_whole(lake: Lake, rows: AlteredRows, table: Table, texts: Sequence[str]) -> None:
    """Raises ApplyError if a row lacks a value of its new key, which has no NULLs in TiDB: it came with its former key
    only, and ``on_handle_key_only: null`` gave it NULL in its other columns."""
    if is_any(lake, rows.present, " OR ".join(f"{text} IS NULL" for text in texts)):
        raise ApplyError(
            f"rows have no value in a column of the new key {', '.join(table.key)}: they came cut to their former key "
            "(on_handle_key_only: null)"
        )


def _check_apart(lake: Lake, rows: AlteredRows, times: Sequence[str], time_zone: str) -> None:
    """Raises ApplyError if two rows have one key: in TiDB they differ in the instant that a TIMESTAMP's text is."""
    doubled = f"SELECT {KEY} FROM ({rows.present}) GROUP BY {KEY} HAVING count(*) > 1"
    if (first := lake.spark.sql(doubled).first()) is not None:
        raise ApplyError(
            f"several rows would have the key {first[KEY]}: times in column {', '.join(times)} are two instants with "
            f"one text in {time_zone}, the feed's time_zone, where clocks were set back: {KEPT_APART}"
        )
