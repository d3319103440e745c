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
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold import irregular, live_table, table_views, view_marker
from ticdc_lakehouse.gold.live_table import id_of, is_left_over, live_names, misnamed, published_name
from ticdc_lakehouse.gold.state import names_ever, newest, published, published_ids
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.policy import Views
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName

VIEWS_AT_ONCE = 4
"""Views that are renewed at the same time: each waits for the catalog more than it works."""


def finish_publishing(
    lake: Lake, config: GoldConfig, current: Published, *, replaced: Collection[TableName] = ()
) -> None:
    """Brings views and the names of live tables to the published state ``current``, after a run that died on them;
    without the views of tables that are about to be ``replaced``."""
    if current.number and not view_marker.are_current(lake, config, current.tables, replaced=replaced):
        refresh(lake, config, replaced=replaced)


def refresh_session(lake: Lake, feed: str) -> None:
    """Refreshes, on a laptop, the session's own catalog after another process published: tables now, views with the
    next window."""
    if not lake.on_databricks:
        lake.refresh()
        view_marker.mark_stale(lake, feed)


def refresh(lake: Lake, config: GoldConfig, *, replaced: Collection[TableName] = ()) -> None:
    """Makes live tables have the names, and views show the versions, that are published: in a new session, or after a
    run that died. Leaves out the views of tables that are about to be ``replaced``."""
    searched = published(lake, config.feed)
    current, renamed = _restore_names(lake, config, searched)
    if not renamed:
        if current.number != searched.number:
            # That run may know nothing of ``searched``: the next one shows all.
            view_marker.mark_stale(lake, config.feed)
            return
        try:
            show(lake, config, current, replaced=replaced)
        except (AnalysisException, ConfigError):
            if not _is_overtaken(lake, config, current):
                raise
            view_marker.mark_stale(lake, config.feed)
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
            view_marker.mark_stale(lake, config.feed)
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
    table_views.drop(lake, _view_names(shown) - _view_names(later))
    if len(in_place) < len(tables):  # that run is about to rename them, and shows them then; or it has died
        view_marker.mark_stale(lake, config.feed)
    elif sorted(irregular.counted(config, _with_rows(shown))) != sorted(irregular.counted(config, _with_rows(later))):
        irregular.create_view(lake, config, _with_rows(later))


def _renew_since(
    lake: Lake, config: GoldConfig, shown: Published, later: Published, table: Table, state: TableState
) -> None:
    old = shown.tables.get(table.name)
    former = None if old is None else shown.definitions.get(old.stable_id)
    table_views.renew(lake, config, table, state, old, redefined=former != later.definitions[state.stable_id])


def _shown_state(published_state: Published, name: TableName) -> tuple[object, ...] | None:
    """Returns what the views of a table depend on in a published state; None if it has no table of this name."""
    state = published_state.tables.get(name)
    if state is None:
        return None
    definition = published_state.definitions.get(state.stable_id)
    return *state.shown, definition


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
    arriving = lake.rename_aside(renames)
    repoint_and_finish_renames(lake, config, arriving, tables)
    show(lake, config, current)
    update_comments(lake, config, renames.values(), tables)


def repoint_and_finish_renames(
    lake: Lake, config: GoldConfig, arriving: Mapping[str, str], shown: Iterable[tuple[Table, TableState]]
) -> None:
    """Renames live tables from the names in between (``arriving``), under which their views read them until then, to
    their own: a view may fail for moments, but never show the rows of another table that takes a name."""
    between = {name: live for live, name in arriving.items()}
    for table, state in shown:
        if state.lake_name in between:
            table_views.gold_view(lake, config, table, state, live=between[state.lake_name])
    lake.finish_renames(arriving)


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
        table_views.show_table(lake, config, table, state)
    irregular.create_view(lake, config, shown)
    ever = names_ever(lake, config.feed)
    table_views.drop(lake, ever - {state.lake_name for state in current.tables.values()})
    if config.views is Views.NONE:
        table_views.drop(lake, ever, layers=(Layer.GOLD,))
    view_marker.mark_current(lake, config, current.tables, replaced=replaced)
