"""What the plan of a window follows from, read from the lake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.late_rows import ddls_between, late_ddls, late_rows
from ticdc_lakehouse.gold.naming import naming, taken_names
from ticdc_lakehouse.gold.overrides import skipped
from ticdc_lakehouse.gold.watermark import Completeness
from ticdc_lakehouse.gold.window_reader import read_arrivals, read_window
from ticdc_lakehouse.gold.window_start import WindowStart
from ticdc_lakehouse.planning.naming import NamesNeeded
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Published, Restart
from ticdc_lakehouse.planning.window import BatchRange, DdlEvent, Window
from ticdc_lakehouse.planning.window_plan import WindowPlan, plan_tables
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName


def plan_window(lake: Lake, inputs: PlanningInput) -> WindowPlan:
    """Returns the plan of a window. Reads the names that are taken only if it depends on them: most windows neither
    make nor rename a table."""
    try:
        return plan_tables(inputs)
    except NamesNeeded:
        names = replace(inputs.naming, taken=taken_names(lake, inputs.config))
        return plan_tables(replace(inputs, naming=names))


def planning_input(lake: Lake, config: GoldConfig, start: WindowStart, restart: Restart) -> PlanningInput:
    """Returns what the window's plan follows from. Tables of ``restart`` are in the place of those that were
    published."""
    before = replace(start.before, tables={**start.before.tables, **restart.tables})
    complete, restarted = start.completeness, {definition.stable_id: definition for definition in restart.definitions}
    # Completeness was asked of the published tables.
    window = _read_window(lake, config, start, before, has_ddls=complete.has_ddls or bool(restart.tables))
    eventual = config.mode is Mode.EVENTUAL
    # Both ask which table had a name before.
    finds_former = complete.late_ddls or (not eventual and any(_new_names(config, before, window)))
    names = naming(config, taken_names(lake, config) if finds_former else None, restarted)
    inputs = PlanningInput(
        config=config,
        before=before,
        definitions={**before.definitions, **restarted},
        window=window,
        quarantine_points=complete.quarantine_points,
        tso=start.tso,
        naming=names,
        batches=_new_batches(before, complete) if eventual else None,
        late_points=late_rows(lake, config.feed, before, complete.batch) if complete.late_rows else {},
        late_ddl_points=(
            late_ddls(lake, config.feed, before, complete.batch, names.ids_named_at) if complete.late_ddls else {}
        ),
        skipped=skipped(lake, config.feed, before),
    )
    return inputs if eventual else replace(inputs, past_ddls=_past_ddls(lake, inputs, complete.batch))


def _new_batches(before: Published, complete: Completeness) -> BatchRange:
    return BatchRange(after=before.batch if before.batch >= 0 else None, through=complete.batch)


def _read_window(lake: Lake, config: GoldConfig, start: WindowStart, before: Published, *, has_ddls: bool) -> Window:
    feed, tso, complete = config.feed, start.tso, start.completeness
    if config.mode is Mode.EVENTUAL:
        return read_arrivals(lake, feed, before, tso, complete.batch, replays_through=complete.replays_through)
    return read_window(lake, feed, before, tso, has_ddls=has_ddls, replays_through=complete.replays_through)


def _new_names(config: GoldConfig, before: Published, window: Window) -> Iterator[TableName]:
    """Yields the names that rows of the window have, though no published table has them."""
    return (name for name in window.rows if name not in before.tables and config.matches(*name))


def _past_ddls(lake: Lake, inputs: PlanningInput, batch: int) -> Sequence[DdlEvent]:
    """Returns the published DDLs that may explain the names which rows of the window have and no published table has:
    all since a table first left such a name."""
    before, window = inputs.before, inputs.window
    new = _new_names(inputs.config, before, window)
    firsts = {name: min(group.first for group in window.rows[name]) for name in new}
    left = [found[0] for name, first in firsts.items() if (found := inputs.naming.left_name(name, first)) is not None]
    return ddls_between(lake, inputs.config.feed, min(left), before.tso, batch) if left else ()
