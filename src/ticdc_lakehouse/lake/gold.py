"""Gold: TiDB's tables as they were at a watermark.

    gold.<feed>_<database>_<table>__data   the rows, with the handle key and commit_ts of each
    gold.<feed>_<database>_<table>         view for analysts: pinned to the published Delta version

``apply`` takes the window (W_prev, W] as a whole: each table's newest change per handle key in one MERGE, then W and
the Delta version of every table in one append (``state.publish``), then the views. A run that dies in between leaves
the published state as it was; the next run first puts back what the dead one wrote (``merge.mend``), so that every
window starts from the published tables.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ticdc_lakehouse.lake import quarantine, state, views
from ticdc_lakehouse.lake.merge import Span, create_data_table, mend, merge, version_of
from ticdc_lakehouse.lake.place import Lake
from ticdc_lakehouse.lake.plan import Applying, Situation, TablePlan, plan_tables
from ticdc_lakehouse.lake.state import Definition, Published, TableName, TableState
from ticdc_lakehouse.lake.watermark import completeness
from ticdc_lakehouse.lake.window import read_window

_TOGETHER = 4
"""Tables that are merged at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What one run of gold did."""

    feed: str
    from_tso: int
    tso: int
    """The published watermark; equal to ``from_tso`` if nothing new was complete."""
    row_changes: int
    merged: int
    """Tables that were merged into."""
    stopped: dict[TableName, str]
    """Tables that stand still, and why."""
    waits: str | None
    """What keeps the watermark where it is, None if nothing but the source does."""


def create_tables(lake: Lake) -> None:
    """Create the ops tables where they are missing."""
    state.create_tables(lake)
    quarantine.create_tables(lake)


def apply(lake: Lake, applying: Applying, *, until_tso: int | None = None) -> Applied:
    """Apply what is complete, up to ``until_tso`` at most, and publish it. Repeating it changes nothing."""
    create_tables(lake)
    feed = applying.feed
    before = state.published(lake, feed)
    if before.tables and not views.in_place(lake, feed):
        views.refresh(lake, feed, applying.time_zone)
    complete = completeness(lake, feed, before)
    tso = complete.tso if until_tso is None else min(complete.tso, until_tso)
    if tso < before.tso or tso == 0:
        return _summary(applying, before, before, 0, 0, complete.waits)
    window = read_window(lake, feed, before, tso)
    known = state.definitions(lake, feed)
    plans = plan_tables(
        Situation(
            applying=applying,
            before=before,
            known=known,
            window=window,
            holds=complete.table_holds,
            tso=tso,
            name_of=state.new_names(lake, feed),
        )
    )
    state.record_definitions(lake, feed, _new_definitions(plans, known))
    tables = _apply_tables(lake, applying, before, plans)
    now = Published(tso=tso, batch=complete.batch, replays_seen=window.replays_seen, tables=tables)
    if now != before:
        _publish(lake, applying, before, now, plans, window.row_changes)
    merged = sum(plan.merges for plan in plans)
    return _summary(applying, before, now, window.row_changes, merged, complete.waits)


def _new_definitions(plans: tuple[TablePlan, ...], known: dict[TableName, Definition]) -> list[Definition]:
    return [plan.definition for plan in plans if plan.definition is not None and plan.name not in known]


def _apply_tables(
    lake: Lake, applying: Applying, before: Published, plans: tuple[TablePlan, ...]
) -> dict[TableName, TableState]:
    """Some at a time: much of a MERGE is planning, which keeps one core busy and the others idle."""
    with ThreadPoolExecutor(_TOGETHER) as pool:
        states = pool.map(lambda plan: _apply_table(lake, applying, before, plan), plans)
        return {plan.name: state for plan, state in zip(plans, states, strict=True)}


def _apply_table(lake: Lake, applying: Applying, before: Published, plan: TablePlan) -> TableState:
    old = before.tables.get(plan.name)
    if plan.definition is None:
        return TableState(name="", version=-1, applied_tso=plan.through, reason=plan.reason, final=plan.final)
    name = plan.definition.name
    version = old.version if old is not None else -1
    if version < 0:
        create_data_table(lake, name, plan.definition.table)
        version = 0
    if plan.merges:
        mend(lake, name, version)
        span = Span(
            after=plan.after,
            through=plan.through,
            wire_keys=not plan.definition.table.key or all(shape.keyed for shape in plan.changes.shapes),
            replayed=plan.changes.replayed,
        )
        merge(lake, applying.feed, name, plan.definition.table, span, applying.time_zone)
        version = version_of(lake, name)
    return TableState(name=name, version=version, applied_tso=plan.through, reason=plan.reason, final=plan.final)


def _publish(
    lake: Lake, applying: Applying, before: Published, now: Published, plans: tuple[TablePlan, ...], row_changes: int
) -> None:
    """Publish, then renew the views that must change. A run that dies in between leaves them not ``in_place``."""
    changed = [plan for plan in plans if plan.definition is not None and _view_changes(before, now, plan)]
    if changed:
        views.leave_place(lake, applying.feed)
    state.publish(lake, applying.feed, before, now, row_changes)
    for plan in changed:
        assert plan.definition is not None
        old = before.tables.get(plan.name)
        if old is None or old.version < 0:
            views.silver_view(lake, applying.feed, plan.definition, applying.time_zone)
        views.gold_view(lake, plan.definition, now.tables[plan.name])
    if changed:
        views.take_place(lake, applying.feed)


def _view_changes(before: Published, now: Published, plan: TablePlan) -> bool:
    old, new = before.tables.get(plan.name), now.tables[plan.name]
    return old is None or (old.version, old.reason) != (new.version, new.reason)


def _summary(
    applying: Applying, before: Published, now: Published, row_changes: int, merged: int, waits: str | None
) -> Applied:
    return Applied(
        feed=applying.feed,
        from_tso=before.tso,
        tso=now.tso,
        row_changes=row_changes,
        merged=merged,
        stopped={name: t.reason for name, t in now.tables.items() if t.reason is not None},
        waits=waits,
    )
