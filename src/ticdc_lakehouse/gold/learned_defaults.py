"""The value that an ADD COLUMN gave to old rows, learned from the first change of such a row.

TiDB gives all rows from before the ADD COLUMN one value and sends none of them. A change of a row that was not written
since shows it: in its image from before, or in the new one where the column stayed as it was
(docs/computed-defaults.md).

A row that another session wrote moments before the DDL's commit_ts looks like an old one, and shows a value of its own:
rows of the last second do not count. Nor does, since a DDL may wait, a value that is just below its row's own commit
time: it is the clock's when that row was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ticdc_codec.event import Kind, Op
from ticdc_codec.mysql_type import Family
from ticdc_codec.tso import first_of, milliseconds
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.misread_values import value_sql
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, KEY
from ticdc_lakehouse.gold.step_changes import StepChanges, row_keys_sql
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.schema.computed_default import pending_columns, pending_defaults
from ticdc_lakehouse.schema.definition import ColumnDefinition, PendingDefault, Table
from ticdc_lakehouse.schema.effect import ColumnFilled
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.sql.text import is_table_sql, literal, quoted
from ticdc_lakehouse.sql.typed_columns import IMAGE_OPTIONS
from ticdc_lakehouse.sql.undeclared_types import whole_text_sql

_WRITTEN_EARLY_MS = 1000
"""How long before the DDL's commit_ts sessions may write the column, in ms: up to 331 were measured."""
_QUARTER_US = 15 * 60 * 1_000_000
_OWN_CLOCK_US = 60 * 1_000_000
"""From the start of a statement that writes a row to its commit, in µs, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a segment's rows, before they are merged, show of the pending columns of their live table."""

    fills: tuple[ColumnFilled, ...]
    """The values that they show. A value counts if all rows that show one show the same."""
    without_rows: frozenset[PendingDefault]
    """The values that no row of the live table waits for."""

    @property
    def settled(self) -> frozenset[PendingDefault]:
        """All that is pending no more."""
        return self.without_rows.union(fill.column.pending for fill in self.fills if fill.column.pending is not None)


def learned(name: str, changes: StepChanges) -> Learned:
    """Returns what the changes, which the live table has not merged yet, show of its pending columns."""
    table = changes.rows.table
    columns = [*zip(pending_columns(table), pending_defaults(table), strict=True)]
    found = changes.lake.spark.sql(_learned_sql(name, changes, columns)).first()
    assert found is not None
    pairs = ((column, found[f"low{i}"], found[f"high{i}"]) for i, (column, _) in enumerate(columns))
    return Learned(
        fills=tuple(ColumnFilled(column=c, value=low) for c, low, high in pairs if low is not None and low == high),
        without_rows=_younger_than([pending for _, pending in columns], found["oldest"]),
    )


def without_rows(lake: Lake, name: str, table: Table) -> frozenset[PendingDefault]:
    """Returns the values of the table's pending columns that no row of its live table waits for."""
    pending = pending_defaults(table)
    found = lake.spark.sql(_oldest_sql(lake, name, pending)).first() if pending else None
    return frozenset() if found is None else _younger_than(pending, found["oldest"])


def _younger_than(pending: Iterable[PendingDefault], oldest: int | None) -> frozenset[PendingDefault]:
    """Returns the values of ADD COLUMNs before a live table's oldest row; all if it has none (None)."""
    return frozenset(each for each in pending if oldest is None or each.since < oldest)


def _oldest_sql(lake: Lake, name: str, pending: Sequence[PendingDefault]) -> str:
    """Returns SQL of one row: the lowest commit_ts of a live table's rows from before the last of the ADD COLUMNs; NULL
    if there is none. Delta skips files without such rows."""
    return f"SELECT min({COMMIT_TS}) AS oldest FROM {lake.table(Layer.LIVE, name)} WHERE {_is_before_sql(pending)}"


def _is_before_sql(pending: Iterable[PendingDefault], alias: str = "") -> str:
    return f"{alias}{COMMIT_TS} <= {max(each.since for each in pending)}"


def _learned_sql(name: str, changes: StepChanges, columns: Sequence[tuple[ColumnDefinition, PendingDefault]]) -> str:
    """Returns SQL of one row: the lowest and the highest value that old rows show of each column, NULL if none does;
    and ``oldest`` (`_oldest_sql`)."""
    lake, rows, time_zone = changes.lake, changes.rows, changes.time_zone
    values = ", ".join(f"{text_before_sql(rows, column, time_zone)} AS v{i}" for i, (column, _) in enumerate(columns))
    first = ", ".join(f"v{i}" for i, _ in enumerate(columns))
    key, old_key = row_keys_sql(rows, time_zone)
    sent = f"""
        SELECT coalesce({old_key}, {key}) AS {KEY}, commit_ts, op, {values}
        FROM (SELECT *, {_image_sql("before", columns)} AS old, {_image_sql("after", columns)} AS new
              FROM {events_table.full_name(lake, changes.feed)}
              WHERE kind = '{Kind.ROW}' AND {is_table_sql(rows.table.name)}
              AND commit_ts > {rows.after} AND commit_ts <= {rows.through})"""
    # Only the first change of a key shows what the row had; at one commit_ts a delete is before an upsert.
    # It may have been replayed since the window was read: what it shows is true all the same.
    order = f"struct(commit_ts, op <> '{Op.DELETE}')"
    firsts = f"SELECT {KEY}, min_by(struct({first}), {order}) AS first FROM ({sent}) GROUP BY {KEY}"
    values_shown = ", ".join(
        f"{function}(s.first.v{i}) FILTER (WHERE {_is_old_sql(column, pending, f's.first.v{i}')}) AS {bound}{i}"
        for i, (column, pending) in enumerate(columns)
        for function, bound in (("min", "low"), ("max", "high"))
    )
    defaults = [pending for _, pending in columns]
    joined = f"{lake.table(Layer.LIVE, name)} t ON s.{KEY} = t.{KEY} AND {_is_before_sql(defaults, 't.')}"
    shown = f"SELECT {values_shown} FROM ({firsts}) s JOIN {joined}"
    return f"SELECT * FROM ({shown}) CROSS JOIN ({_oldest_sql(lake, name, defaults)})"


def _is_old_sql(column: ColumnDefinition, pending: PendingDefault, shown: str) -> str:
    """Returns SQL: true if the live row ``t`` is from well before the ADD COLUMN, and did not show the time at which it
    was written."""
    is_old = f"t.{COMMIT_TS} <= {first_of(milliseconds(pending.since) - _WRITTEN_EARLY_MS)}"
    if column.type.family not in (Family.DATETIME, Family.TIMESTAMP):
        return is_old
    cut = 10 ** max(0, 3 - column.type.digits)  # as the column cuts it, in ms
    committed = f"(shiftright(t.{COMMIT_TS}, 18) div {cut}) * {cut * 1000}"
    # A DATETIME is in the zone of its session, which is not known: zones differ by quarters of an hour.
    before = f"pmod({committed} - unix_micros(try_to_timestamp({shown})), {_QUARTER_US})"
    return f"{is_old} AND NOT coalesce({before} BETWEEN 1 AND {_OWN_CLOCK_US}, false)"


def _image_sql(image: str, columns: Sequence[tuple[ColumnDefinition, PendingDefault]]) -> str:
    fields = literal(", ".join(f"{quoted(column.name)} STRING" for column, _ in columns))
    return f"from_json({image}, {fields}, map({IMAGE_OPTIONS}))"


def text_before_sql(rows: MergeRows, column: ColumnDefinition, time_zone: str) -> str:
    """Returns SQL: the column's text before a change, NULL if the change does not show it.

    An image from before that leaves the column out shows that it stayed as it was (``only-output-updated-columns``).
    Older tiflow writes the TIMESTAMP of a row that TiDB has not written since as UTC's, whatever the server's time zone
    (defects.md): outside UTC it counts only where the new image agrees.
    """
    texts = (value_sql(rows, column.name, f"{image}.{quoted(column.name)}") for image in ("old", "new"))
    old, new = (whole_text_sql(column, text, time_zone) for text in texts)
    listed = f"array_contains(json_object_keys(before), {literal(column.name)})"
    is_whole = "before IS NOT NULL AND NOT coalesce(handle_only, false)"
    shown = f"CASE WHEN {is_whole} THEN CASE WHEN {listed} THEN {old} WHEN op = '{Op.UPDATE}' THEN {new} END END"
    if column.type.family is Family.TIMESTAMP and time_zone != "UTC":
        return f"CASE WHEN {shown} = {new} THEN {shown} END"
    return shown
