"""What the versions of a feed's live tables say of themselves, held against what the feed published."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator

from pyspark.sql import Row

from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.gold.live_commits import UPKEEP
from ticdc_lakehouse.gold.live_table import FEED, ID
from ticdc_lakehouse.gold.state import published


def wrong_versions(run: Run, watermarks: Iterable[int]) -> Iterator[str]:
    """What is wrong with the live tables' versions: metadata that is not whole, a TSO below the one before, two commits
    for one DDL, and a published version that is not the newest at or below its watermark. Gold at the watermarks is
    compared with TiDB elsewhere; so each of those versions is a state that TiDB had."""
    lake, feed = run.lake, run.feed.name
    histories: dict[str, list[tuple[int, int]]] = {}
    for name in lake.tables(Layer.LIVE):
        table = lake.table(Layer.LIVE, name)
        if lake.property(Layer.LIVE, name, FEED) != feed:
            continue
        commits = sorted(lake.history(table).collect(), key=lambda commit: commit["version"])
        commits = [commit for commit in commits if commit["operation"] not in UPKEEP]
        yield from (f"{name}: {mistake}" for mistake in _mistakes(commits, feed))
        data = lake.property(Layer.LIVE, name, ID)
        assert data is not None
        histories[data] = [(json.loads(commit["userMetadata"])["tso"], commit["version"]) for commit in commits]
    for watermark in watermarks:
        for state in published(lake, feed, at=watermark).tables.values():
            if not state.has_live_table:
                continue
            newest = max(version for tso, version in histories[state.stable_id] if tso <= state.applied_tso)
            if newest != state.version:
                yield f"{state.lake_name}: {state.version} is published at {watermark}, {newest} is its state"


_OF_ROWS = ("MERGE", "CREATE TABLE AS SELECT")
"""Commits of rows: a new table's first ones come with its creation. A DDL behind them may have their TSO."""


def _mistakes(commits: list[Row], feed: str) -> Iterator[str]:
    metadata = [json.loads(commit["userMetadata"] or "{}") for commit in commits]
    for commit, given in zip(commits, metadata, strict=True):
        if given.keys() != {"feed", "tso", "run"} or given["feed"] != feed:
            yield f"version {commit['version']} ({commit['operation']}) has metadata {given}"
            return
    tsos = [given["tso"] for given in metadata]
    if tsos != sorted(tsos):
        yield f"TSOs {tsos}"
    counts = Counter((c["operation"] in _OF_ROWS, given["tso"]) for c, given in zip(commits, metadata, strict=True))
    for (of_rows, tso), count in counts.items():
        if count > 1:
            yield f"{count} commits of {'rows' if of_rows else 'DDLs'} at {tso}"
