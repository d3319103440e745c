"""Gold: TiDB's tables as they were at a watermark.

    live.<feed>_<database>_<table>   the Delta table: its rows, with the handle key and commit_ts of each
    gold.<feed>_<database>_<table>   view for analysts: pinned to the published Delta version

``apply`` takes the window (W_prev, W] as a whole: each table's latest change per handle key in one MERGE, a DDL in one
commit. Then W and the Delta version of every table are published (``state.commit_window``), then live tables get their
new names and views their new versions (``publication``). A run that dies in between leaves the published state as it
was; the next run continues from what the dead one wrote (``interrupted_run.resume``), or puts it back.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from uuid import uuid4

from ticdc_codec.errors import ConfigError
from ticdc_codec.tso import with_time
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.commit_sessions import threads
from ticdc_lakehouse.gold import state_tables
from ticdc_lakehouse.gold.apply_plan import TableOutcome, apply_plans
from ticdc_lakehouse.gold.live_commits import Commits, own_version
from ticdc_lakehouse.gold.live_table import live_names
from ticdc_lakehouse.gold.log_folders import trim_logs
from ticdc_lakehouse.gold.publication import publish
from ticdc_lakehouse.gold.run import GoldRun
from ticdc_lakehouse.gold.staging import staged
from ticdc_lakehouse.gold.window_input import plan_window, planning_input
from ticdc_lakehouse.gold.window_start import WindowStart, begin_window
from ticdc_lakehouse.log import log, warn
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput, left_out
from ticdc_lakehouse.planning.published_state import Definition, Published, Recoverable, Restart
from ticdc_lakehouse.planning.window_plan import TablePlan, WindowPlan
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.session_settings import generated_code
from ticdc_lakehouse.silver import quarantine
from ticdc_lakehouse.silver.retention_floor import retention_floor
from ticdc_lakehouse.tidb.session import SnapshotAt

_TABLES_AT_ONCE = 4
"""Tables that are merged at the same time."""
_LEFT_OUT = "the key tables of the feed file leaves it out; `as_of` reads it at earlier TSOs"
_NO_RESTART = Restart(number=0, tables={}, definitions=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What one run of gold did."""

    feed: str
    from_tso: int
    tso: int
    """The published watermark; equal to ``from_tso`` if nothing new was complete."""
    row_changes: int
    merged: int
    """Tables that were merged into, summed over the run's windows: one that is in two counts twice."""
    blocked: dict[TableName, str]
    """Tables that are blocked, and why."""
    waiting_on: str | None
    """What keeps the watermark where it is, None if nothing but the source does."""
    state: Published = field(repr=False)
    """What is published now."""
    is_undecoded: bool = False
    """True if bronze has messages that silver has not decoded."""


def create_tables(lake: Lake) -> None:
    """Creates the ops tables where they are missing."""
    state_tables.create_tables(lake)
    quarantine.create_tables(lake)


def apply(
    lake: Lake,
    config: GoldConfig,
    *,
    until_tso: int | None = None,
    restart: Restart = _NO_RESTART,
    known: Published | None = None,
    source: SnapshotAt | None = None,
) -> Applied:
    """Applies what is complete, up to ``until_tso`` at most, and publishes it. Repeating it changes nothing. Where a
    window retires the topic that the watermark was waiting on, the next window follows at once.

    Tables of ``restart`` continue from there, in the place of what was published of them. ``known`` is the state that
    an earlier run of this process published (`Applied.state`), after which none failed: it is not read again if it is
    still the newest. ``source`` opens sessions in TiDB, for ``on_handle_key_only: source``. Raises ConfigError if
    nothing can be published at all, and PublishedMeanwhileError if another run published after ``restart`` was made.
    """
    applied, may_advance = _apply_window(lake, config, known, until_tso, source, restart)
    while may_advance and (until_tso is None or applied.tso < until_tso):
        later, may_advance = _apply_window(lake, config, applied.state, until_tso, source)
        applied = _followed_by(applied, later)
    return applied


def _followed_by(applied: Applied, later: Applied) -> Applied:
    """Returns both windows as one run."""
    return replace(
        later,
        from_tso=applied.from_tso,
        row_changes=applied.row_changes + later.row_changes,
        merged=applied.merged + later.merged,
        waiting_on=later.waiting_on if later.tso > applied.tso else applied.waiting_on,
    )


def _apply_window(
    lake: Lake,
    config: GoldConfig,
    known: Published | None,
    until_tso: int | None,
    source: SnapshotAt | None,
    restart: Restart = _NO_RESTART,
) -> tuple[Applied, bool]:
    """Applies one window. Returns also whether another one may be complete then (`Completeness.may_advance`)."""
    if known is None:
        create_tables(lake)
    start = begin_window(lake, config, known, until_tso, restart)
    if not start.can_publish:
        return _nothing_applied(config, start, restart), False
    inputs = planning_input(lake, config, start, restart)
    plan, row_changes = plan_window(lake, inputs), inputs.window.row_changes
    lake.make_schemas(table.lake_name for table in plan.tables)
    run = _gold_run(lake, config, start, restart, source)
    with closing(run.commits), generated_code(lake.spark, row_changes):
        outcomes = _with_definitions(_apply_plans(run, plan), restart.definitions)
    _check_retention(lake, config, restart)
    _check_created(run, outcomes)
    now = _publish_changes(lake, start, inputs, outcomes)
    applied = _summary(config, start, now, row_changes, sum(outcome.merged for outcome in outcomes))
    return applied, start.completeness.may_advance and now.tso > start.before.tso


def _nothing_applied(config: GoldConfig, start: WindowStart, restart: Restart) -> Applied:
    """Returns the summary of a run that can publish nothing. Raises ConfigError if it was to publish tables of an
    export."""
    if restart.tables:
        raise ConfigError(f"feed {config.feed}: gold cannot publish now: {start.completeness.waiting_on}")
    return _summary(config, start, start.before, 0, 0)


def _check_retention(lake: Lake, config: GoldConfig, restart: Restart) -> None:
    """Raises ConfigError if retention, which no lock keeps out on Databricks, has deleted changes since an export while
    they were read."""
    gone = retention_floor(lake, config.feed, Layer.SILVER).tso if restart.tables else 0
    oldest = min((state.applied_tso for state in restart.tables.values()), default=gone)
    if oldest < gone:
        raise ConfigError(
            f"feed {config.feed}: exported at {with_time(oldest)}, but meanwhile silver has deleted changes up to "
            f"{with_time(gone)} (silver.retention_days): export it again"
        )


def _check_created(run: GoldRun, outcomes: Sequence[TableOutcome]) -> None:
    """Raises ConfigError if another run made a table again that this run made: on Databricks no lock keeps it out. Just
    before the publication: it may have done so while this run was at work on other tables."""
    created = [outcome.live for outcome in outcomes if outcome.created and run.lake.on_databricks]
    with ThreadPoolExecutor(_TABLES_AT_ONCE) as pool:
        list(pool.map(lambda name: own_version(run.lake, name, -1, run.commits.run), created))


def _publish_changes(
    lake: Lake, start: WindowStart, inputs: PlanningInput, outcomes: Sequence[TableOutcome]
) -> Published:
    """Publishes the window if it changes anything. Returns what is published."""
    before, config, window = start.before, inputs.config, inputs.window
    planned = _state_after(before, inputs, start.completeness.batch, outcomes)
    if planned == before:
        return planned
    after = publish(lake, config, before, planned, outcomes, window.row_changes)
    changed = [outcome.state.lake_name for outcome in outcomes if outcome.merged]
    trim_logs(lake, config.feed, changed)
    for name in left_out(config, before):
        if name not in planned.tables:
            warn("gold", "table left out", feed=config.feed, table=".".join(name), reason=_LEFT_OUT)
    return after


def _gold_run(
    lake: Lake, config: GoldConfig, start: WindowStart, restart: Restart, source: SnapshotAt | None
) -> GoldRun:
    before = start.before
    return GoldRun(
        lake=lake,
        config=config,
        commits=Commits(lake=lake, feed=config.feed, run=str(uuid4())),
        names={
            **live_names(before.tables.values()),
            **{state.stable_id: state.stable_id for state in restart.tables.values()},
        },
        number=before.number,
        source=source,
        undisturbed=start.undisturbed,
    )


def _state_after(before: Published, inputs: PlanningInput, batch: int, outcomes: Sequence[TableOutcome]) -> Published:
    """Returns what is to be published after a window; ``batch`` is the newest bronze batch that it looked at."""
    window = inputs.window
    return replace(
        before,
        tso=inputs.tso,
        mode=inputs.config.mode,
        time_zone=inputs.config.time_zone,
        batch=batch,
        replays_seen=window.replays_seen,
        tables={outcome.name: outcome.state for outcome in outcomes if outcome.dropped_at is None},
        recoverable=tuple(_recoverable(o, o.dropped_at) for o in outcomes if o.dropped_at is not None),
        topics=_tables_by_topic(before.topics, window.topics),
    )


def _apply_plans(run: GoldRun, plan: WindowPlan) -> list[TableOutcome]:
    """Applies the plans, some at a time: much of a MERGE is planning, which keeps one core busy and the others idle."""
    at_once = threads(run.lake, _TABLES_AT_ONCE)
    with staged(run.lake, run.config, plan) as plan_with_stages, ThreadPoolExecutor(at_once) as pool:
        outcomes = pool.map(lambda plans: _apply_group(run, plans), plan_with_stages.groups())
        return [outcome for each in outcomes for outcome in each]


def _apply_group(run: GoldRun, plans: Sequence[TablePlan]) -> list[TableOutcome]:
    """Applies the plans of tables that exchange rows, one table mostly, and logs what changed."""
    started, feed = time.monotonic(), run.config.feed
    outcomes = apply_plans(run, plans)
    seconds = round(time.monotonic() - started, 3)
    stops = {plan.state.stable_id: plan.state.stop for plan in plans if plan.state is not None}
    for outcome in outcomes:
        table, state = ".".join(outcome.name), outcome.state
        if outcome.merged or outcome.new_definitions:
            log("gold", "table applied", feed=feed, table=table, tso=state.applied_tso, seconds=seconds)
        if state.blocked:
            # Once: a loop would warn of it every few seconds.
            tell = log if stops.get(state.stable_id) == state.stop else warn
            tell("gold", "table blocked", feed=feed, table=table, tso=state.applied_tso, reason=state.stop)
    return outcomes


def _with_definitions(outcomes: list[TableOutcome], definitions: Iterable[Definition]) -> list[TableOutcome]:
    """Returns the outcomes, with definitions that are new although the window did not find them."""
    by_id = {definition.stable_id: (definition,) for definition in definitions}
    return [replace(o, new_definitions=(*by_id.get(o.state.stable_id, ()), *o.new_definitions)) for o in outcomes]


def _recoverable(outcome: TableOutcome, dropped_at: int) -> Recoverable:
    state = outcome.state
    version = -1 if state.stop is not None else state.version
    return Recoverable(name=outcome.name, stable_id=state.stable_id, version=version, dropped_at=dropped_at)


def _tables_by_topic(*some: Mapping[str, frozenset[TableName]]) -> dict[str, frozenset[TableName]]:
    topics = sorted({topic for each in some for topic in each})
    return {topic: frozenset().union(*(each.get(topic, ()) for each in some)) for topic in topics}


def _summary(config: GoldConfig, start: WindowStart, now: Published, row_changes: int, merged: int) -> Applied:
    return Applied(
        feed=config.feed,
        from_tso=start.before.tso,
        tso=now.tso,
        row_changes=row_changes,
        merged=merged,
        blocked={name: str(t.stop) for name, t in now.tables.items() if t.blocked},
        waiting_on=start.completeness.waiting_on,
        state=now,
        is_undecoded=start.completeness.is_undecoded,
    )
