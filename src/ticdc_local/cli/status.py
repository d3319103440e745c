"""``ticdc-lake status``: how far each feed is, and why a table is blocked. Creates nothing."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import timedelta

from pyspark.sql import functions as F

from ticdc_codec.tso import time_text
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.state import published_feeds
from ticdc_lakehouse.ops import status
from ticdc_lakehouse.ops.status import FeedStatus
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.silver import quarantine
from ticdc_local.cli.arguments import place_arguments
from ticdc_local.cli.open_lake import check_feed, feed_files, landed, open_lake


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    place_arguments(parser)
    parser.add_argument("--feed", help="this feed only")


def run(options: argparse.Namespace) -> int:
    """Print each feed's status."""
    lake = open_lake(options, reads_only=True)
    print("\n\n".join(status_text(lake, feed) for feed in _chosen(options, lake)))
    return 0


def _chosen(options: argparse.Namespace, lake: Lake) -> list[str]:
    known = sorted({*feed_files(options), *published_feeds(lake)})
    if options.feed is None:
        return known
    check_feed(options, options.feed, known)
    return [options.feed]


def status_text(lake: Lake, feed: str) -> str:
    """One feed's status as lines of text."""
    if not landed(lake, feed):
        return f"{feed}\n  bronze has not run for this feed"
    return feed_text(status.feed_status(lake, feed), _dismissed(lake, feed))


def _dismissed(lake: Lake, feed: str) -> int:
    if not lake.exists(Layer.OPS, quarantine.ACTIONS):
        return 0
    actions = lake.spark.table(lake.table(Layer.OPS, quarantine.ACTIONS))
    chosen = actions.where((F.col("feed") == feed) & (F.col("action") == quarantine.Action.DISMISSED.value))
    return chosen.select("topic", "partition", "offset").distinct().count()


def feed_text(status: FeedStatus, dismissed: int) -> str:
    """A feed's name, its counts of messages, its watermark, and a line a table."""
    decoded = status.landed - status.waiting - status.quarantined - dismissed
    facts = {
        "landed": f"{status.landed} messages",
        "decoded": f"{decoded} messages",
        "waiting": f"{status.waiting} messages that silver has not decoded",
        "quarantined": f"{status.quarantined} messages open, {dismissed} dismissed",
        "watermark": f"{status.tso}, {time_text(status.tso)}" if status.tso else "none published yet",
        **({"mode": _EVENTUAL} if status.mode is Mode.EVENTUAL else {}),
        "unapplied": _duration(status.unapplied_seconds, "from the watermark to the newest change that arrived"),
        "age of data": _duration(status.age_seconds, "from the watermark to now"),
        "next": _next(status),
    }
    lines = [f"  {name:11}  {value}" for name, value in facts.items()]
    return "\n".join([status.feed, *lines, *tables_text(status.tables, status.tso)])


def _next(status: FeedStatus) -> str:
    if status.waits is not None:
        return f"waiting on: {status.waits}"
    return "nothing: caught up" if status.caught_up else "nothing is blocking gold: run the job"


def _duration(seconds: float | None, what: str) -> str:
    if seconds is None:
        return "unknown: nothing is published yet"
    return f"{timedelta(seconds=round(seconds))}, {what}"


_EVENTUAL = (
    "eventual: the newest commit of each key that has arrived; the watermark is the newest commit seen, no consistent "
    "point in time"
)


def tables_text(tables: Mapping[TableName, TableState], tso: int) -> list[str]:
    """A line a table: at the watermark, or since when it is blocked and why."""
    width = max((len(".".join(name)) for name in tables), default=0)
    return [f"  {'.'.join(name):{width}}  {_state(state, tso)}" for name, state in sorted(tables.items())]


def _state(state: TableState, tso: int) -> str:
    if state.stop is None:
        return "at the watermark" if state.applied_tso == tso else f"at TSO {state.applied_tso}"
    way_out = "until somebody acts" if state.needs_override else "the next run tries again"
    since = f"at TSO {state.applied_tso}, {time_text(state.applied_tso)}" if state.applied_tso else "from the start"
    return f"BLOCKED {since} ({way_out}): {state.stop}"
