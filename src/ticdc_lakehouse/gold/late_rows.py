"""Rows and DDLs that arrive only after the watermark covering them was published.

TiCDC promises that a watermark arrives after every change below it, so such a row is a duplicate, as after a restart.
One that never arrived before breaks the promise: its table was published without it. Such late rows and DDLs are
distinguished from duplicates, and their table is blocked until an operator acts.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.event import Kind, Op
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.counted import counted
from ticdc_lakehouse.planning.late_ddls import HadName, late_ddl_points, new_ddls
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, WayOut
from ticdc_lakehouse.planning.window import BlockingPoint, DdlEvent, statements_of
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.silver.quarantine import position_text
from ticdc_lakehouse.silver.retention_floor import retention_floor
from ticdc_lakehouse.sql.text import folded_sql

_NAME = ("database", "table")
_IMAGES = f"{', '.join(_NAME)}, op, before IS NULL, coalesce(before, after), after"
_VERSION = f"{', '.join(_NAME)}, op = '{Op.DELETE}', handle_key"
"""SQL of what identifies a change beside an exact commit_ts, at which a key gets one row and is left once. Images may
differ: another version of TiCDC, which takes a changefeed over at its checkpoint, may list columns in another order, or
send less of the old row."""
_LEFT = f"{', '.join(_NAME)}, true, old_handle_key"
"""The same for the DELETE of an update that changes a key, which another version of TiCDC may send in two parts."""
_HASHES = {"change": "xxhash64", "change_too": "hash"}
"""96 bits in the place of names, keys and images, which would be shuffled with every row of the time span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRows:
    """The late rows of one table."""

    count: int
    commit_ts: int
    """The lowest of them."""
    last: int
    """The largest commit_ts."""
    position: str
    """Topic, partition and offset of the oldest, as `position_text` writes them."""


def late_rows(lake: Lake, feed: str, before: Published, batch: int) -> dict[TableName, BlockingPoint]:
    """Returns the tables that got late rows in bronze batches up to ``batch`` since the published state, each with the
    TSO up to which it is correct."""
    events = events_table.events(lake, feed).where(F.col("batch") <= batch)
    firsts = first_deliveries(events, before, before.tso, exact=True)
    if firsts is None:
        return {}
    first = F.min_by(F.struct("commit_ts", "topic", "partition", "offset"), "commit_ts")
    sums = F.count("*").alias("rows"), first.alias("first"), F.max("commit_ts").alias("last")
    found = firsts.groupBy(*_NAME).agg(*sums).collect()
    deleted_through = retention_floor(lake, feed, Layer.SILVER).tso if found else 0
    points = {}
    for row in found:
        name, oldest = TableName(row["database"], row["table"]), row["first"].asDict()
        points[name] = blocking_point(
            LateRows(
                count=row["rows"], commit_ts=oldest["commit_ts"], last=row["last"], position=position_text(oldest)
            ),
            published_tso=before.tso,
            deleted_through=deleted_through,
        )
    return points


def late_ddls(
    lake: Lake, feed: str, before: Published, batch: int, had_name: HadName
) -> dict[TableName, BlockingPoint]:
    """Returns the tables that lack late DDLs, each with the TSO up to which it is correct. Silver keeps all DDLs for
    good; one at the watermark itself may arrive after it."""
    arrived = _ddls(lake, feed, f"batch > {before.batch} AND replayed_at IS NULL AND commit_ts < {before.tso}", batch)
    if not arrived:
        return {}
    since = f"commit_ts >= {min(ddl.commit_ts for ddl in arrived)}"
    late = new_ddls(arrived, _ddls(lake, feed, since, before.batch))
    return late_ddl_points(before, late, _ddls(lake, feed, since, batch), had_name) if late else {}


def ddls_between(lake: Lake, feed: str, first: int, last: int, batch: int) -> list[DdlEvent]:
    """Returns the DDLs of bronze batches up to ``batch`` with a commit_ts from ``first`` to ``last``."""
    return _ddls(lake, feed, f"commit_ts BETWEEN {first} AND {last}", batch)


def _ddls(lake: Lake, feed: str, where: str, batch: int) -> list[DdlEvent]:
    """Returns the DDLs of bronze batches up to ``batch``."""
    rows = lake.rows(f"""
        SELECT DISTINCT commit_ts, database, table, query FROM {events_table.full_name(lake, feed)}
        WHERE kind = '{Kind.DDL}' AND batch <= {batch} AND {where}""")
    return [
        DdlEvent(**row, statements=statements_of(row["query"], row["database"], row["table"]))
        for row in sorted(rows, key=lambda row: row["commit_ts"])
    ]


def first_deliveries(events: DataFrame, before: Published, through: int, *, exact: bool) -> DataFrame | None:
    """Returns the rows up to commit_ts ``through`` that arrived since the published state and never before, with folded
    names; None if no row up to there arrived since. Without ``exact``, several changes of a key may have one
    commit_ts."""
    rows = events.where((F.col("kind") == Kind.ROW.value) & (F.col("commit_ts") <= through))
    # A duplicate may spell its names otherwise (wire.md 8.14).
    rows = rows.withColumns({name: F.expr(folded_sql(name)) for name in _NAME})
    rows = rows.withColumns({name: F.expr(sql) for name, sql in _identity(exact=exact).items()})
    # What quarantine gave back came in time, and gold knows it (``Window.replays_seen``).
    new = rows.where((F.col("batch") > before.batch) & F.col("replayed_at").isNull())
    ends = new.agg(F.min("commit_ts"), F.max("commit_ts")).first()
    if ends is None or ends[0] is None:
        return None
    earlier = rows.where((F.col("batch") <= before.batch) & F.col("commit_ts").between(*ends))
    same = ["commit_ts", *_HASHES]
    known = earlier.select(*same)
    if exact:
        left = {name: F.expr(f"{of}({_LEFT})") for name, of in _HASHES.items()}
        known = known.union(earlier.where("old_handle_key IS NOT NULL").withColumns(left).select(*same))
    return new.join(known, same, "left_anti")


def _identity(*, exact: bool) -> dict[str, str]:
    """Returns SQL of a change's hashes."""
    keyed = "handle_key IS NOT NULL" if exact else "false"
    return {name: f"CASE WHEN {keyed} THEN {of}({_VERSION}) ELSE {of}({_IMAGES}) END" for name, of in _HASHES.items()}


def blocking_point(late: LateRows, *, published_tso: int, deleted_through: int) -> BlockingPoint:
    """Returns the point before a table's first late row. ``deleted_through``: the commit_ts up to which silver has
    deleted changes, which may have been the same."""
    why, way_out = "", WayOut.RESUME
    if late.commit_ts <= deleted_through:
        why = f"; they may have come before, but silver no longer has all changes up to {deleted_through} "
        why, way_out = f"{why}(silver.retention_days)", WayOut.LOAD_EXPORT
    detail = (
        f"{counted(late.count, 'row change')} arrived only after the watermark covering them ({published_tso}) was "
        f"published, the oldest at {late.position}{why}"
    )
    stop = StopReason(kind=StopKind.LATE_ROWS, detail=detail, ways_out=(way_out,), needs_override=True)
    return BlockingPoint(tso=late.commit_ts - 1, stop=stop, last=late.last)
