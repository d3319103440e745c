"""What an interrupted run left of a live table: the next run continues from it, or puts the table back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ticdc_codec.mysql_type import Family
from ticdc_lakehouse.gold.live_commits import Commit, commits_since, own_version, restore
from ticdc_lakehouse.gold.run import GoldRun
from ticdc_lakehouse.gold.staging import may_stop
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import AlterRows, ExchangeRows, MergeRows, Step
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.effect import ColumnAdded, ColumnConverted, Effect
from ticdc_lakehouse.sql.type_conversion import has_session_time


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """Where a run continues with a live table."""

    version: int
    """The newest version of the table."""
    done: tuple[Step, ...]
    """The first steps of the plan, which runs that died have done."""


def resume(run: GoldRun, plan: TablePlan, name: str, *, alone: bool) -> ResumePoint:
    """Keeps what a run that died did, or puts the live table back to its published version. Returns the version that
    the table is at then, and the steps of the plan that are done.

    ``alone``: no other table takes part in the plan's steps.
    """
    state, feed = plan.state, run.config.feed
    assert state is not None
    newest, commits = commits_since(run.lake, name, state.version)
    restored = [at for at, commit in enumerate(commits) if commit.puts_back(feed, state.version)]
    commits = commits[restored[-1] + 1 :] if restored else commits
    done = count_done_steps(plan, commits, feed) if alone and _merges_all_rows(run.config, plan) else None
    if done is None and commits:
        restore(run.commits.at(state.applied_tso), name, state.version)
        newest = own_version(run.lake, name, newest, run.commits.run)
    return ResumePoint(version=newest, done=plan.steps[: done or 0])


def _merges_all_rows(config: GoldConfig, plan: TablePlan) -> bool:
    """True if the plan's rows are merged in any case: no row may block the table before what a dead run merged."""
    rows = (step for step in plan.steps if isinstance(step, MergeRows))
    return config.mode is Mode.WATERMARKS and not any(may_stop(config, step) for step in rows)


def count_done_steps(plan: TablePlan, commits: Sequence[Commit], feed: str) -> int | None:
    """Counts the plan's steps that the commits of runs that died have done for good: those up to their last DDL. Rows
    merged after it are merged again, which changes nothing.

    Returns None if the table must go back to its published version: it was blocked, something else was written, or more
    than the plan does, or values that follow from settings of the feed file, which may have been edited since. A MERGE
    at the published TSO is a repair's (`ops.verify.repair`), or of rows that were replayed.
    """
    if plan.state is not None and plan.state.stop is not None:
        # They may be from before it was blocked: without the late row for which it was, and is resumed.
        return None
    done, applied_tso = 0, -1 if plan.state is None else plan.state.applied_tso
    for commit in commits:
        if commit.feed != feed or commit.tso is None or commit.tso > plan.through:
            return None
        if commit.merged:
            if commit.tso <= applied_tso:
                return None
            continue
        later = (number for number, step in enumerate(plan.steps) if number >= done and _is_ddl_at(step, commit.tso))
        found = next(later, None)
        if found is None:
            return None
        done = found + 1
    return None if any(map(_is_done_again, plan.steps[:done])) else done


def _is_done_again(step: Step) -> bool:
    """True if the step might do something else now than it did in a run that died."""
    match step:
        case MergeRows(replayed=replayed):
            return replayed
        case AlterRows(effects=effects):
            return any(map(_follows_settings, effects))
        case ExchangeRows():
            return False


def _follows_settings(effect: Effect) -> bool:
    """True if ``gold.on_computed_default`` or ``gold.ddl_time_zone`` may decide what values rows get: those of a
    computed default, also of a TIMESTAMP's text, and of a conversion in a session's zone."""
    match effect:
        case ColumnAdded(column=column, value=value):
            return column.pending is not None or (value is not None and column.type.family is Family.TIMESTAMP)
        case ColumnConverted(before=before, after=after):
            return has_session_time(before.type, after.type)
        case _:
            return False


def _is_ddl_at(step: Step, tso: int) -> bool:
    return isinstance(step, AlterRows) and step.commit_ts == tso
