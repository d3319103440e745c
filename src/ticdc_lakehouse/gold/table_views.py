"""The two views of one table: gold pinned to its published version, and its changes in silver, typed."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.errors import AnalysisException

from ticdc_codec.event import Kind, Op
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold import irregular
from ticdc_lakehouse.gold.live_table import id_of
from ticdc_lakehouse.gold.misread_values import view_image_sql
from ticdc_lakehouse.gold.own_columns import DELETED, OWN_COLUMNS
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.policy import Mode, Views
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import spark_names
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.sql.text import commented_sql, is_table_sql, literal, quoted
from ticdc_lakehouse.sql.typed_columns import (
    IRREGULAR,
    TypedColumn,
    image_sql,
    irregular_sql,
    irregular_texts_sql,
    stored_text_sql,
    text_comment,
    typed_columns,
)
from ticdc_lakehouse.sql.undeclared_types import whole_text_sql

_ABOUT = ("commit_ts", "commit_time", "op", "handle_only", "topic", "partition", "offset", "index")
_BEFORE = "the row before an update or delete, where the wire has it; else NULL. Only its key if handle_only"
_SHOWN = {
    Mode.WATERMARKS: "at the published watermark",
    Mode.EVENTUAL: "as far as its changes have arrived (gold mode eventual: not one point in time for all rows)",
}


def gold_view(
    lake: Lake,
    config: GoldConfig,
    table: Table,
    state: TableState,
    *,
    same_comment: bool = False,
    live: str | None = None,
) -> None:
    """Makes the view of one table show the Delta version of its published state, if the feed has such views. It is made
    once and altered from then on, so that it keeps its privileges; columns have the comments of the live table's.
    ``live`` is the name that the live table has for the moment, if it is not the published one yet."""
    if config.views is Views.NONE:
        return
    as_text = irregular.dates_as_text(config, table)
    columns = [_shown(column, config.time_zone, as_text=as_text) for column in typed_columns(table)]
    if irregular.is_shown(config, table):
        columns.append(IRREGULAR)
    source = lake.table(Layer.LIVE, live or state.lake_name)
    comment = f"TiDB table {table.database}.{table.table} {_SHOWN[config.mode]}"
    if state.stop is not None:
        comment += f"; {'BLOCKED' if state.blocked else 'last rows'} at TSO {state.applied_tso}: {state.stop}"
    present = "" if config.mode is Mode.WATERMARKS else f" WHERE NOT {DELETED}"
    query = f"SELECT {', '.join(columns)} FROM {source} VERSION AS OF {state.version}{present}"
    lake.alter_view(Layer.GOLD, state.lake_name, query, comment=comment, same_comment=same_comment)


def silver_view(lake: Lake, config: GoldConfig, name: str, table: Table) -> None:
    """Makes the view of one table show its changes: after (or the deleted row) as typed columns, before as a struct.
    Changes from before an ALTER TABLE are read by today's definition, which may give them other values, and names that
    changed places mix two columns or tables; `ops.definitions` has the definitions of then."""
    events = events_table.full_name(lake, config.feed)
    after, before = "after", "before"
    if config.traits.flags_may_be_stale and table.partitioning is not None:
        after, before = (view_image_sql(table, image) for image in (after, before))
    image, old = image_sql(table, "coalesce(after, before)"), image_sql(table, _whole_before_sql())
    query = f"""
        SELECT {", ".join(_silver_columns(config, table))}
        FROM (SELECT *, {image} AS image, {old} AS old
              FROM (SELECT * EXCEPT (after, before), {after} AS after, {before} AS before FROM {events}
                    WHERE kind = '{Kind.ROW}' AND {is_table_sql(table.name)}))"""
    comment = f"Every change that came as one of TiDB table {table.database}.{table.table}, duplicates included"
    lake.alter_view(Layer.SILVER, name, query, comment=comment)


def renew(
    lake: Lake, config: GoldConfig, table: Table, state: TableState, old: TableState | None, *, redefined: bool
) -> None:
    """Makes the views of a table, which show its published state ``old`` if there is one, show ``state``: silver's only
    if the table's columns (``redefined``) or its name have changed, or if it has the name of another one now."""
    is_renamed = old is None or (old.lake_name, old.stable_id) != (state.lake_name, state.stable_id)
    same = old is not None and old.stop == state.stop and not is_renamed and not redefined
    gold_view(lake, config, table, state, same_comment=same)
    if redefined or is_renamed:
        silver_view(lake, config, state.lake_name, table)


def show_table(lake: Lake, config: GoldConfig, table: Table, state: TableState) -> None:
    """Makes the views of a table show its published state, whatever they showed before. Raises ConfigError for a live
    table that was restored from an older copy, without that version."""
    try:
        gold_view(lake, config, table, state)
    except AnalysisException:
        if id_of(lake, state.lake_name) == state.stable_id:  # else another run has dropped or renamed it since
            lake.commits(lake.table(Layer.LIVE, state.lake_name), state.version)  # says so if it lacks the version
        raise
    silver_view(lake, config, state.lake_name, table)


def drop(lake: Lake, names: Collection[str], *, layers: Collection[Layer] = (Layer.GOLD, Layer.SILVER)) -> None:
    """Drops the views of names that no table has any more."""
    for name in sorted(names):
        for layer in layers:
            if lake.exists(layer, name):
                lake.spark.sql(f"DROP VIEW IF EXISTS {lake.table(layer, name)}")


def _shown(column: TypedColumn, time_zone: str, *, as_text: bool) -> str:
    if not (as_text and column.has_dates):
        return quoted(column.name)
    text = commented_sql(stored_text_sql(column, time_zone), column.name, *_declared(column, as_text=True))
    return f"{text} AS {quoted(column.name)}"


def _declared(column: TypedColumn, *, as_text: bool) -> tuple[str, str]:
    """Returns a column's type and comment, with dates shown as texts (``as_text``) or not."""
    if not (as_text and column.has_dates):
        return column.spark_type, column.comment
    return "STRING", text_comment(column.definition)


def _silver_columns(config: GoldConfig, table: Table) -> list[str]:
    """Returns what the view of a table's changes selects, each with its comment."""
    typed, as_text = typed_columns(table), irregular.dates_as_text(config, table)
    images = (
        [whole_text_sql(c.definition, f"{image}.{quoted(c.name)}", config.time_zone) for c in typed]
        for image in ("image", "old")
    )
    (own, irregular_texts), (old, _) = (_read(typed, texts, config.time_zone, as_text=as_text) for texts in images)
    declared = [(c.name, *_declared(c, as_text=as_text)) for c in typed]
    shown = [f"{commented_sql(value, *of)} AS {quoted(of[0])}" for value, of in zip(own, declared, strict=True)]
    fields = ", ".join(f"{quoted(name)}: {kind} COMMENT {literal(comment)}" for name, kind, comment in declared)
    row_before = f"CASE WHEN old IS NOT NULL THEN struct({', '.join(old)}) END"
    taken = {spark_names(c.name)[0] for c in typed}
    about = [f"{name} AS {_free_name(name, taken)}" for name in _ABOUT]
    before = f"{commented_sql(row_before, '_before', f'STRUCT<{fields}>', _BEFORE)} AS {_free_name('_before', taken)}"
    if not irregular.is_shown(config, table):
        return [*about, *shown, before]
    exact = commented_sql(irregular_sql(irregular_texts), IRREGULAR, *OWN_COLUMNS[IRREGULAR])
    return [*about, *shown, before, f"{exact} AS {_free_name(IRREGULAR, taken)}"]


def _whole_before_sql() -> str:
    """Returns SQL of the row before a change. Under ``only-output-updated-columns`` an update sends of it only what
    changed: the rest is as after it. Of two members with one name ``from_json`` takes the last."""
    merged = "concat(left(after, length(after) - 1), ',', substr(before, 2))"
    whole = f"CASE WHEN before = '{{}}' THEN after ELSE {merged} END"
    return f"CASE WHEN op = '{Op.UPDATE}' AND NOT coalesce(handle_only, false) THEN {whole} ELSE before END"


def _read(
    columns: tuple[TypedColumn, ...], texts: list[str], time_zone: str, *, as_text: bool
) -> tuple[list[str], str]:
    """Returns SQL of the values of an image as the view shows them, and of the irregular dates among them as JSON."""
    values = [t if as_text and c.has_dates else c.sql(t, time_zone) for c, t in zip(columns, texts, strict=True)]
    dates = [at for at, column in enumerate(columns) if column.has_dates]
    irregular_texts = irregular_texts_sql(
        tuple(columns[at] for at in dates), [texts[at] for at in dates], [values[at] for at in dates]
    )
    return values, irregular_texts


def _free_name(name: str, taken: set[str]) -> str:
    """Returns the view's name for a column about the change: another one where the table has a column of that name."""
    while name in taken:
        name = f"_ticdc_{name.removeprefix('_')}" if not name.startswith("_ticdc") else f"{name}_"
    return name
