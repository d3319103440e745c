"""The views that analysts read: gold pinned to a published version, and each table's changes in silver, typed.

A view is made once, altered where what it shows changes, and dropped with its table, so that it keeps its privileges.
A feed may do without those of gold (``gold.views: none``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyspark.errors import AnalysisException

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Kind
from ticdc_lakehouse.catalog import VERSION, Lake, Layer
from ticdc_lakehouse.gold import irregular, live_table
from ticdc_lakehouse.gold.live_table import id_of, is_left_over, live_names, misnamed, published_name
from ticdc_lakehouse.gold.misread_values import view_image_sql
from ticdc_lakehouse.gold.own_columns import DELETED, OWN_COLUMNS
from ticdc_lakehouse.gold.state import names_ever, newest, published, published_ids
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.policy import Mode, OnIrregular, Views
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName, spark_names
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
_MARKER = "_views_in_place"
VIEWS_AT_ONCE = 4
"""Views that are renewed at the same time: each waits for the catalog more than it works."""


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
    lake.keep_view(Layer.GOLD, state.lake_name, query, comment=comment, same_comment=same_comment)


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
    comment = f"Every change of TiDB table {table.database}.{table.table}, duplicates included"
    lake.keep_view(Layer.SILVER, name, query, comment=comment)


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
    return f"CASE WHEN op = 'update' AND NOT coalesce(handle_only, false) THEN {whole} ELSE before END"


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


def are_current(
    lake: Lake, config: GoldConfig, tables: Iterable[TableName], *, replaced: Collection[TableName] = ()
) -> bool:
    """True if all views of a feed show its published state, as its file wants them, or all except those of tables that
    are about to be ``replaced``; False after a run died on them, after ``gold.views``, ``gold.on_irregular`` or the
    version of this package changed, and in a new session of a laptop, which knows no views."""
    if not lake.exists(Layer.OPS, _marker_view(config.feed)):
        return False
    row = lake.spark.table(lake.table(Layer.OPS, _marker_view(config.feed))).first()
    return row is not None and row[0] in (_view_settings(config, tables, ()), _view_settings(config, tables, replaced))


def finish_publishing(
    lake: Lake, config: GoldConfig, current: Published, *, replaced: Collection[TableName] = ()
) -> None:
    """Brings views and the names of live tables to the published state ``current``, after a run that died on them;
    without the views of tables that are about to be ``replaced``."""
    if current.number and not are_current(lake, config, current.tables, replaced=replaced):
        refresh(lake, config, replaced=replaced)


def mark_stale(lake: Lake, feed: str) -> None:
    """Records that views are about to fall behind the published state."""
    lake.spark.sql(f"DROP VIEW IF EXISTS {lake.table(Layer.OPS, _marker_view(feed))}")


def refresh_session(lake: Lake, feed: str) -> None:
    """Refreshes, on a laptop, the session's own catalog after another process published: tables now, views with the
    next window."""
    if not lake.on_databricks:
        lake.refresh()
        mark_stale(lake, feed)


def mark_current(
    lake: Lake, config: GoldConfig, tables: Iterable[TableName], *, replaced: Collection[TableName] = ()
) -> None:
    """Records that all views show the published state of these tables, or all except those that are ``replaced``."""
    comment = f"Is there while all views of changefeed {config.feed} show its published watermark"
    views = "views COMMENT 'version that made them, gold.views of its file, and the tables that show dates as texts'"
    query = f"SELECT {literal(_view_settings(config, tables, replaced))}"
    lake.view(Layer.OPS, _marker_view(config.feed), views, query, comment=comment)


def _view_settings(config: GoldConfig, tables: Iterable[TableName], replaced: Iterable[TableName]) -> str:
    """Returns what the views depend on: settings of the feed's file, and the version of this package; and which of them
    are not made."""
    as_text = (".".join(name) for name in tables if config.policy(*name).on_irregular is OnIrregular.TEXT)
    without = (f"without {'.'.join(name.folded)}" for name in replaced)
    return " ".join([VERSION, config.views.value, *sorted(as_text), *sorted(without)])


def _marker_view(feed: str) -> str:
    return f"{feed}{_MARKER}"


def is_marker_view(name: str) -> bool:
    """True if it is the view of ops that exists while all views of a feed show its published state."""
    return name.endswith(_MARKER)


def refresh(lake: Lake, config: GoldConfig, *, replaced: Collection[TableName] = ()) -> None:
    """Makes live tables have the names, and views show the versions, that are published: in a new session, or after a
    run that died. Leaves out the views of tables that are about to be ``replaced``."""
    searched = published(lake, config.feed)
    current, renamed = _restore_names(lake, config, searched)
    if not renamed:
        if current.number != searched.number:
            mark_stale(lake, config.feed)  # that run may know nothing of ``searched``: the next one shows all
            return
        try:
            show(lake, config, current, replaced=replaced)
        except (AnalysisException, ConfigError):
            if not _is_overtaken(lake, config, current):
                raise
            mark_stale(lake, config.feed)
    _show_published_since(lake, config, current)


def _is_overtaken(lake: Lake, config: GoldConfig, current: Published) -> bool:
    """True if another run has published since ``current``: it may have dropped or renamed a table that could not be
    shown."""
    return newest(lake, config.feed, current).number != current.number


def _show_published_since(lake: Lake, config: GoldConfig, shown: Published) -> Published:
    """Shows what another run has published since ``shown``, whose views may have been put back meanwhile, until there
    is nothing newer. That ends: it does no more than publishing does, and that run must also apply its windows. Returns
    the newest published state."""
    while (later := newest(lake, config.feed, shown)).number != shown.number:
        try:
            _show_changed(lake, replace(config, mode=later.mode), shown, later)
        except AnalysisException:
            if not _is_overtaken(lake, config, later):
                raise
            mark_stale(lake, config.feed)
        else:
            shown = later
    return shown


def _show_changed(lake: Lake, config: GoldConfig, shown: Published, later: Published) -> None:
    """Makes the views of the tables that changed since ``shown`` show ``later``, as far as their live tables have their
    published names."""
    changed = {name for name in later.tables if _shown_state(later, name) != _shown_state(shown, name)}
    tables = [(table, state) for table, state in _with_rows(later) if table.name in changed]
    in_place = [(table, state) for table, state in tables if id_of(lake, state.lake_name) == state.stable_id]
    with ThreadPoolExecutor(VIEWS_AT_ONCE) as pool:
        list(pool.map(lambda each: _renew_since(lake, config, shown, later, *each), in_place))
    drop(lake, _view_names(shown) - _view_names(later))
    if len(in_place) < len(tables):  # that run is about to rename them, and shows them then; or it has died
        mark_stale(lake, config.feed)
    elif sorted(irregular.counted(config, _with_rows(shown))) != sorted(irregular.counted(config, _with_rows(later))):
        irregular.create_view(lake, config, _with_rows(later))


def _renew_since(
    lake: Lake, config: GoldConfig, shown: Published, later: Published, table: Table, state: TableState
) -> None:
    old = shown.tables.get(table.name)
    former = None if old is None else shown.definitions.get(old.stable_id)
    renew(lake, config, table, state, old, redefined=former != later.definitions[state.stable_id])


def _shown_state(published_state: Published, name: TableName) -> tuple[object, ...] | None:
    """Returns what the views of a table depend on in a published state; None if it has no table of this name."""
    state = published_state.tables.get(name)
    if state is None:
        return None
    definition = published_state.definitions.get(state.stable_id)
    return state.lake_name, state.stable_id, state.version, state.stop, definition


def _view_names(published_state: Published) -> set[str]:
    return {state.lake_name for state in published_state.tables.values()} - {""}


def restore_names(lake: Lake, config: GoldConfig) -> Published:
    """Renames live tables to their published names, after a run that died between publishing and renaming; then the
    views are shown again, too. Returns the published state that the names are of."""
    current, renamed = _restore_names(lake, config, published(lake, config.feed))
    return _show_published_since(lake, config, current) if renamed else current


def _restore_names(lake: Lake, config: GoldConfig, current: Published) -> tuple[Published, bool]:
    """Renames live tables to their published names, and drops what dead runs left unpublished. The published state is
    the one that is the newest after the search: ``current``, or what another run published meanwhile, which renames
    tables itself. Returns that state, and True if any table had another name."""
    feed = config.feed
    before = published_ids(lake, feed)
    found, unpublished = misnamed(lake, feed, live_names(current.tables.values()), before)
    if found or unpublished:  # not searched again: the next window may be published sooner than a search ends
        current = newest(lake, feed, current)
    names = live_names(current.tables.values())
    # The run that published the state may be alive, and may have renamed them by now.
    # Nor does what that run has made since get another name: it is about to be published under its own.
    earlier = [old for old in found if id_of(lake, old) in before]
    renames = {old: new for old in earlier if (new := published_name(lake, feed, old, names)) not in (None, old)}
    known = published_ids(lake, feed) if unpublished else frozenset()
    for name in unpublished:  # a run at work may have made it anew, or renamed another to it, during the search
        if is_left_over(lake, feed, name, known, renames.values()):
            lake.drop(Layer.LIVE, name)
    if renames:
        _rename(lake, replace(config, mode=current.mode), current, renames)
    return current, bool(renames)


def _rename(lake: Lake, config: GoldConfig, current: Published, renames: Mapping[str, str]) -> None:
    """Renames live tables, old name to new one. The views are still those of before: so all of them step aside
    first."""
    lake.make_schemas(state.lake_name for state in current.tables.values())
    tables = _with_rows(current)
    arriving = lake.step_aside(renames)
    repoint_and_take_names(lake, config, arriving, tables)
    show(lake, config, current)
    update_comments(lake, config, renames.values(), tables)


def repoint_and_take_names(
    lake: Lake, config: GoldConfig, arriving: Mapping[str, str], shown: Iterable[tuple[Table, TableState]]
) -> None:
    """Renames live tables from the names in between (``arriving``), under which their views read them until then, to
    their own: a view may fail for moments, but never show the rows of another table that takes a name."""
    between = {name: live for live, name in arriving.items()}
    for table, state in shown:
        if state.lake_name in between:
            gold_view(lake, config, table, state, live=between[state.lake_name])
    lake.take_names(arriving)


def update_comments(
    lake: Lake, config: GoldConfig, renamed: Collection[str], tables: Iterable[tuple[Table, TableState]]
) -> None:
    """Makes the comments of live tables that were renamed name the tables that they are now."""
    for table, state in tables:
        if state.lake_name in renamed:
            live_table.update_comment(lake, config, state.lake_name, table)


def _with_rows(current: Published) -> list[tuple[Table, TableState]]:
    """Returns the published tables that have a live table, as they are named now."""
    return [
        (current.definitions[state.stable_id].table.named(name), state)
        for name, state in current.tables.items()
        if state.has_live_table
    ]


def show(lake: Lake, config: GoldConfig, current: Published, *, replaced: Collection[TableName] = ()) -> None:
    """Makes views show what is published, in the mode in which it was, whatever the feed's file says since; without
    those of tables that are about to be ``replaced``. Live tables must have their published names
    (`live_table.has_published_names`).

    Raises ConfigError for a live table that was restored from an older copy."""
    config = replace(config, mode=current.mode)
    lake.make_schemas(state.lake_name for state in current.tables.values())
    shown = [(table, state) for table, state in _with_rows(current) if table.name not in replaced]
    for table, state in shown:
        _show_table(lake, config, table, state)
    irregular.create_view(lake, config, shown)
    ever = names_ever(lake, config.feed)
    drop(lake, ever - {state.lake_name for state in current.tables.values()})
    if config.views is Views.NONE:
        drop(lake, ever, layers=(Layer.GOLD,))
    mark_current(lake, config, current.tables, replaced=replaced)


def _show_table(lake: Lake, config: GoldConfig, table: Table, state: TableState) -> None:
    try:
        gold_view(lake, config, table, state)
    except AnalysisException:
        if id_of(lake, state.lake_name) == state.stable_id:  # else another run has dropped or renamed it since
            lake.commits(lake.table(Layer.LIVE, state.lake_name), state.version)  # says so if it lacks the version
        raise
    silver_view(lake, config, state.lake_name, table)


def renew(
    lake: Lake, config: GoldConfig, table: Table, state: TableState, old: TableState | None, *, redefined: bool
) -> None:
    """Makes the views of a table, which show its published state ``old`` if there is one, show ``state``: silver's only
    if the table's columns (``redefined``) or its name have changed."""
    is_renamed = old is None or old.lake_name != state.lake_name
    same = old is not None and old.stop == state.stop and not is_renamed and not redefined
    gold_view(lake, config, table, state, same_comment=same)
    if redefined or is_renamed:
        silver_view(lake, config, state.lake_name, table)


def drop(lake: Lake, names: Collection[str], *, layers: Collection[Layer] = (Layer.GOLD, Layer.SILVER)) -> None:
    """Drops the views of names that no table has any more."""
    for name in sorted(names):
        for layer in layers:
            if lake.exists(layer, name):
                lake.spark.sql(f"DROP VIEW IF EXISTS {lake.table(layer, name)}")
