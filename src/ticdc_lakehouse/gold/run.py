"""One run of gold: what its steps on live tables share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.live_commits import Commits
from ticdc_lakehouse.gold.live_table import live_name
from ticdc_lakehouse.planning.naming import dropped_name
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.tidb.session import SnapshotAt


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldRun:
    """One run of gold at work on live tables."""

    lake: Lake
    config: GoldConfig
    commits: Commits
    names: Mapping[str, str]
    """Stable id to name of the live tables that are published, or about to be published from an export."""
    number: int
    """Number of the published window on which it began."""
    source: SnapshotAt | None
    """Snapshots of TiDB, for rows that no message has whole."""
    undisturbed: bool
    """True if this process wrote the published state and nothing failed since: then no run has died on a live table, or
    the first commit to it shows that one has (`own_version`)."""

    def live(self, plan: TablePlan, stable_id: str) -> str:
        """Returns the name of a plan's live table until the window is published. One whose name another table has now
        is made under its id."""
        if stable_id in self.names or (plan.state is not None and plan.state.has_live_table):
            return live_name(self.names, stable_id)
        if plan.dropped_at is not None:
            return dropped_name(stable_id)
        return stable_id if plan.lake_name in self.names.values() else plan.lake_name
