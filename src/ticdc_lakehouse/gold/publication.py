"""Publishing a window: its state first, then the names of live tables and the views that show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold import irregular, state, table_views, view_marker, views
from ticdc_lakehouse.gold.apply_plan import TableOutcome
from ticdc_lakehouse.gold.live_table import live_name, live_names
from ticdc_lakehouse.log import log
from ticdc_lakehouse.planning.planning_input import GoldConfig, left_out
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, TableState
from ticdc_lakehouse.schema.definition import Table


def publish(
    lake: Lake,
    config: GoldConfig,
    before: Published,
    planned: Published,
    outcomes: Sequence[TableOutcome],
    row_changes: int,
) -> Published:
    """Publishes the state ``planned``, then renames live tables and renews the views that must change. Returns what is
    published. A run that dies in between leaves them to `views.finish_publishing`. Raises as `state.commit_window`."""
    new_definitions = [definition for outcome in outcomes for definition in outcome.new_definitions]
    renames = _renames(before, planned, outcomes)
    kept = [outcome for outcome in outcomes if outcome.dropped_at is None]
    shown = [o for o in kept if o.new_definitions or _view_changes(before.tables.get(o.name), o.state)]
    gone = {s.lake_name for s in before.tables.values()} - {s.lake_name for s in planned.tables.values()} - {""}
    changes = bool(shown or gone or renames)
    if changes:
        view_marker.mark_stale(lake, config.feed)
    ended = [name for name in left_out(config, before) if name not in planned.tables]
    after = state.commit_window(lake, config.feed, before, planned, new_definitions, row_changes, ended)
    log("gold", "window published", feed=config.feed, from_tso=before.tso, tso=planned.tso, row_changes=row_changes)
    tables = _defined(shown)
    arriving = lake.begin_renames(renames)
    views.repoint_and_finish_renames(lake, config, arriving, tables)
    with ThreadPoolExecutor(views.VIEWS_AT_ONCE) as pool:
        list(pool.map(lambda outcome: _renew_views(lake, config, before, outcome), shown))
    views.update_comments(lake, config, {*renames.values(), *_moved(before, shown)}, tables)
    if before.number == 0 or counts_change(config, before, kept) or _has_loaded(new_definitions):
        irregular.create_view(lake, config, _defined(kept))
    table_views.drop(lake, gone)
    if changes:
        view_marker.mark_current(lake, config, planned.tables)
    return after


def publish_versions(
    lake: Lake, config: GoldConfig, before: Published, versions: Mapping[str, int], *, run: str | None = None
) -> Published:
    """Publishes other versions of live tables, by stable id, at the same watermark, and refreshes the views. Returns
    what is published. ``run`` and the errors are those of `state.commit_window`."""
    tables = {
        name: replace(table, version=versions.get(table.stable_id, table.version))
        for name, table in before.tables.items()
    }
    view_marker.mark_stale(lake, config.feed)
    after = state.commit_window(lake, config.feed, before, replace(before, tables=tables), (), 0, run=run)
    views.refresh(lake, config)
    return after


def _renames(before: Published, planned: Published, outcomes: Iterable[TableOutcome]) -> dict[str, str]:
    """Returns the live tables whose names the window changes, each with its new name: those of tables that were renamed
    or dropped, and of those that were made while another table had their name."""
    current = live_names(before.tables.values())
    current |= {outcome.state.stable_id: outcome.live for outcome in outcomes if outcome.state.has_live_table}
    published = live_names(planned.tables.values())
    return {name: new for stable_id, name in current.items() if (new := live_name(published, stable_id)) != name}


def _moved(before: Published, outcomes: Iterable[TableOutcome]) -> set[str]:
    """Returns the names of the live tables that TiDB renamed, also those that ``gold.name`` calls as before."""
    former = {table.stable_id: name for name, table in before.tables.items()}
    return {o.state.lake_name for o in outcomes if former.get(o.state.stable_id, o.name) != o.name}


def _defined(outcomes: Iterable[TableOutcome]) -> list[tuple[Table, TableState]]:
    return [(o.definition.table.named(o.name), o.state) for o in outcomes if o.definition]


def counts_change(config: GoldConfig, before: Published, kept: Iterable[TableOutcome]) -> bool:
    """True if the view of irregular values must count other columns or tables than before the window."""
    after = {outcome.name: outcome for outcome in kept}
    changed = {name for name, o in after.items() if o.new_definitions or name not in before.tables}
    former = [
        (before.definitions[state.stable_id].table.named(name), state)
        for name, state in before.tables.items()
        if (name in changed or name not in after) and state.stable_id in before.definitions
    ]
    current = _defined(after[name] for name in changed)
    return sorted(irregular.counted(config, former)) != sorted(irregular.counted(config, current))


def _has_loaded(new_definitions: Iterable[Definition]) -> bool:
    """True if tables of an export were loaded, which the view of irregular values may lack (`views.show`)."""
    return any(definition.origin is Origin.EXPORT for definition in new_definitions)


def _renew_views(lake: Lake, config: GoldConfig, before: Published, outcome: TableOutcome) -> None:
    if outcome.definition is not None:
        table, old = outcome.definition.table.named(outcome.name), before.tables.get(outcome.name)
        table_views.renew(lake, config, table, outcome.state, old, redefined=bool(outcome.new_definitions))


def _view_changes(old: TableState | None, new: TableState) -> bool:
    return old is None or old.shown != new.shown
