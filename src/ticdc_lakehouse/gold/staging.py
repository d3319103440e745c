"""One pass over a window of many tables: the latest change of every key, staged by table for the MERGEs.

Below `FEWEST` segments each MERGE reads the window for itself, which is as fast. From there on one pass reads it once,
whatever the number of tables: it deduplicates all of them by (segment, key) and writes the result to temporary Parquet
files under the checkpoint folder, in the order of the segments, so that a MERGE reads its own rows. The pass types
nothing: images stay texts. Segments that it cannot serve (`is_stageable`) are read by their MERGE as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import count

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.event import Kind
from ticdc_codec.name_case import fold
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.ambiguous_keys import may_be_ambiguous
from ticdc_lakehouse.gold.own_columns import KEY
from ticdc_lakehouse.gold.source_rows import needs_source
from ticdc_lakehouse.gold.step_changes import NEWEST_IMAGE, changed_keys_sql
from ticdc_lakehouse.gold.temporary_files import Purpose, new_folder, remove, remove_abandoned
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import MergeRows, Stage, Step
from ticdc_lakehouse.planning.window_plan import TablePlan, WindowPlan
from ticdc_lakehouse.policy import OnIrregular
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.sql.text import folded_sql, rows_sql

FEWEST = 8
"""Segments from which on one pass is faster than a scan for each."""
_SEGMENTS = "segment: INT, of_database: STRING, of_table: STRING, since: BIGINT, until: BIGINT"


@contextmanager
def staged(lake: Lake, config: GoldConfig, plan: WindowPlan) -> Iterator[WindowPlan]:
    """Yields the plan whose row steps read what one pass staged, where that is worth it. The staged files exist within
    the context; temporary files of runs that died are removed first."""
    remove_abandoned(lake, config.feed)
    path = new_folder(lake, config.feed, Purpose.STAGE)
    plan_with_stages = _with_stages(config, plan, path)
    tables = (*plan_with_stages.tables, *plan_with_stages.recoverable)
    rows = [step for table in tables for step in table.steps if isinstance(step, MergeRows) and step.stage is not None]
    if len(rows) < FEWEST:
        yield plan
        return
    try:
        write_stage(lake, config.feed, rows, path)
        yield plan_with_stages
    finally:
        remove(path)


def is_stageable(config: GoldConfig, step: MergeRows) -> bool:
    """True if the pass can serve a step: rows whose keys are on the wire, in the order of commit_ts.

    It cannot serve keys that are made from a definition's columns; replays from quarantine, which look again at keys
    below the segment; the eventual mode, which has an order of its own; rows with misread values, rows that TiDB has
    whole, keys that may be those of two rows, and tables with ``on_irregular: block``, which may merge only a part of
    the segment.
    """
    if not step.groups or step.eventual:
        return False
    return step.wire_keys and not step.replayed and not may_stop(config, step)


def may_stop(config: GoldConfig, rows: MergeRows) -> bool:
    """True if a row of the step may block the table, so that only the rows before it are merged."""
    blocks_irregular = config.policy(rows.table.database, rows.table.table).on_irregular is OnIrregular.BLOCK
    ambiguous = may_be_ambiguous(rows, config.time_zone)
    return blocks_irregular or bool(rows.misread) or needs_source(config, rows) or ambiguous


def _with_stages(config: GoldConfig, plan: WindowPlan, path: str) -> WindowPlan:
    """Returns the plan whose stageable steps read their segments below ``path``, each by a number of its own."""
    numbers = count()

    def with_stage(step: Step) -> Step:
        if not isinstance(step, MergeRows) or not is_stageable(config, step):
            return step
        return replace(step, stage=Stage(path=path, segment=next(numbers)))

    def table_with_stages(table: TablePlan) -> TablePlan:
        return replace(table, steps=tuple(map(with_stage, table.steps)))

    tables, recoverable = (tuple(map(table_with_stages, some)) for some in (plan.tables, plan.recoverable))
    return replace(plan, tables=tables, recoverable=recoverable)


def write_stage(lake: Lake, feed: str, rows: Sequence[MergeRows], path: str) -> None:
    """Writes the latest change of each key of these steps' segments to Parquet files: segment, key, commit_ts, image
    (NULL for a deleted row); ordered by segment."""
    segments = [_segment(step) for step in rows]
    changes = _changes(lake, feed, segments, rows[0].replays_seen)
    # Distributed by segment, the rows of one lie in one file; a segment that is most of the window would keep one core
    # busy and leave the others idle.
    sizes = [sum(group.rows for group in step.groups) for step in rows]
    by = ["segment", KEY] if 2 * max(sizes) > sum(sizes) else ["segment"]
    # Without the repartition Spark sorts each side of the shuffle: texts are aggregated in sorted order.
    latest = changes.repartition(*by).groupBy("segment", KEY)
    reduced = latest.agg(F.max("commit_ts").alias("commit_ts"), F.expr(NEWEST_IMAGE).alias("image"))
    reduced.sortWithinPartitions("segment").write.parquet(path)


def _segment(step: MergeRows) -> dict[str, str | int]:
    """Returns a step's segment as a row of ``_SEGMENTS``."""
    assert step.stage is not None, "only steps with a stage are staged"
    named = {"of_database": fold(step.table.database), "of_table": fold(step.table.table)}
    return {"segment": step.stage.segment, **named, "since": step.after, "until": step.through}


def _changes(
    lake: Lake, feed: str, segments: Sequence[Mapping[str, str | int]], replays_seen: datetime | None
) -> DataFrame:
    """Returns each change of a key (segment, commit_ts, key, image): one scan, from the first segment's start to the
    last one's end. ``replays_seen`` is the window's."""
    first, last = min(segment["since"] for segment in segments), max(segment["until"] for segment in segments)
    commit_ts = F.col("commit_ts")
    events = events_table.events(lake, feed).where(events_table.known_sql(replays_seen))
    rows = events.where((F.col("kind") == Kind.ROW.value) & (commit_ts > first) & (commit_ts <= last))
    named = rows.withColumns({f"folded_{name}": F.expr(folded_sql(name)) for name in ("database", "table")})
    within = (commit_ts > F.col("since")) & (commit_ts <= F.col("until"))
    of_table = (F.col("folded_database") == F.col("of_database")) & (F.col("folded_table") == F.col("of_table"))
    joined = named.join(F.broadcast(lake.spark.sql(rows_sql(segments, _SEGMENTS))), of_table & within)
    return joined.selectExpr("segment", "commit_ts", changed_keys_sql("handle_key", "old_handle_key"))
