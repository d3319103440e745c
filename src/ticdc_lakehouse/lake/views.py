"""The views that analysts read: gold pinned to a published version, and each table's changes in silver, typed."""

from __future__ import annotations

from collections.abc import Collection

from ticdc_lakehouse.definition import Table
from ticdc_lakehouse.event import Kind
from ticdc_lakehouse.lake import silver
from ticdc_lakehouse.lake.merge import GONE
from ticdc_lakehouse.lake.open_type import whole_text_sql
from ticdc_lakehouse.lake.place import Lake, Layer, literal, quoted
from ticdc_lakehouse.lake.state import TableState, definitions, names_ever, published
from ticdc_lakehouse.lake.typed import IRREGULAR, TypedColumn, image_sql, typed_columns, values_sql
from ticdc_lakehouse.mysql_type import Family
from ticdc_lakehouse.policy import Mode

_ABOUT = ("commit_ts", "commit_time", "op", "topic", "partition", "offset", "index")
_SHOWN = {
    Mode.WATERMARKS: "at the published watermark",
    Mode.EVENTUAL: "as far as its changes have arrived (gold mode eventual: not one point in time for all rows)",
}
_MAY_BE_IRREGULAR = (Family.DATE, Family.DATETIME, Family.TIMESTAMP)


def gold_view(lake: Lake, table: Table, state: TableState, mode: Mode = Mode.WATERMARKS) -> None:
    """Create or replace the view of one table, pinned to the Delta version of its published state."""
    typed = typed_columns(table)
    columns = [*(quoted(column.name) for column in typed), *_irregular(typed)]
    comments = ", ".join([*(_commented(c.name, c.comment) for c in typed), *_irregular_comment(typed)])
    source = lake.table(Layer.GOLD, state.data)
    comment = f"TiDB table {table.database}.{table.table} {_SHOWN[mode]}"
    if state.reason is not None:
        comment += f"; it stands still at TSO {state.applied_tso}: {state.reason}"
    present = "" if mode is Mode.WATERMARKS else f" WHERE NOT {GONE}"
    query = f"SELECT {', '.join(columns)} FROM {source} VERSION AS OF {state.version}{present}"
    lake.view(Layer.GOLD, state.name, query, comment=comment, columns=f"({comments})")


def silver_view(lake: Lake, feed: str, name: str, table: Table, time_zone: str) -> None:
    """Create or replace the view of one table's changes: after (or the deleted row) as typed columns, before as a
    struct. Changes from before an ALTER TABLE are shown in today's columns; `ops.definitions` has those of then."""
    typed = typed_columns(table)
    own, old = (
        [whole_text_sql(c.definition, f"{image}.{quoted(c.name)}", time_zone) for c in typed]
        for image in ("image", "old")
    )
    shown = ", ".join(f"{c.sql(text, time_zone)} AS {quoted(c.name)}" for c, text in zip(typed, own, strict=True))
    taken = {c.name.lower() for c in typed}
    about = ", ".join(f"{name} AS {_free(name, taken)}" for name in _ABOUT)
    events = lake.table(Layer.SILVER, silver.events_table(feed))
    query = f"""
        SELECT {about}, {shown},
               CASE WHEN old IS NOT NULL THEN {values_sql(typed, old, time_zone)} END AS {_free("_before", taken)}
        FROM (SELECT *, {image_sql(table, "coalesce(after, before)")} AS image, {image_sql(table, "before")} AS old
              FROM {events} WHERE kind = '{Kind.ROW}' AND database = {literal(table.database)}
              AND table = {literal(table.table)})"""
    comment = f"Every change of TiDB table {table.database}.{table.table}, repeats included"
    lake.view(Layer.SILVER, name, query, comment=comment)


def _free(name: str, taken: set[str]) -> str:
    """The view's name for a column about the change: another one where the table has a column of that name."""
    while name in taken:
        name = f"_ticdc_{name.removeprefix('_')}" if not name.startswith("_ticdc") else f"{name}_"
    return name


def in_place(lake: Lake, feed: str) -> bool:
    """Whether all views of a feed show its published state; no more after a run died on them, and in a new session of
    a laptop, which knows no views."""
    return lake.exists(Layer.OPS, _in_place(feed))


def leave_place(lake: Lake, feed: str) -> None:
    """Say that views are about to fall behind the published state."""
    lake.spark.sql(f"DROP VIEW IF EXISTS {lake.table(Layer.OPS, _in_place(feed))}")


def take_place(lake: Lake, feed: str) -> None:
    """Say that all views show the published state."""
    comment = f"Is there while all views of changefeed {feed} show its published watermark"
    lake.view(Layer.OPS, _in_place(feed), "SELECT true AS in_place", comment=comment)


def _in_place(feed: str) -> str:
    return f"{feed}_views_in_place"


def refresh(lake: Lake, feed: str, time_zone: str, mode: Mode) -> None:
    """Create or replace all views of a feed as its published state says: in a new session, or after a run that died."""
    now = published(lake, feed)
    known = definitions(lake, feed)
    for state in now.tables.values():
        if state.version >= 0:
            gold_view(lake, known[state.data].table, state, mode)
            silver_view(lake, feed, state.name, known[state.data].table, time_zone)
    drop(lake, names_ever(lake, feed) - {state.name for state in now.tables.values()})
    take_place(lake, feed)


def drop(lake: Lake, names: Collection[str]) -> None:
    """Drop the views of names that no table has any more."""
    for name in sorted(names):
        for layer in (Layer.GOLD, Layer.SILVER):
            lake.spark.sql(f"DROP VIEW IF EXISTS {lake.table(layer, name)}")


def _commented(name: str, comment: str) -> str:
    return f"{quoted(name)} COMMENT {literal(comment)}"


def _irregular(typed: tuple[TypedColumn, ...]) -> list[str]:
    return [IRREGULAR] if any(c.definition.type.family in _MAY_BE_IRREGULAR for c in typed) else []


def _irregular_comment(typed: tuple[TypedColumn, ...]) -> list[str]:
    return [
        _commented(name, "column to exact MySQL text, for values its type cannot hold") for name in _irregular(typed)
    ]
