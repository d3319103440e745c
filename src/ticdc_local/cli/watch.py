"""``ticdc-lake status --watch``: the feeds on a terminal, looked at again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from rich.live import Live
from rich.table import Table
from rich.text import Text

from ticdc_codec.tso import time_text
from ticdc_lakehouse.ops.alarm import Thresholds
from ticdc_lakehouse.ops.status import FeedStatus, Health

_COLOURS = {Health.FINE: "green", Health.ATTENTION: "yellow", Health.BROKEN: "red"}
_COLUMNS = (
    "landed",
    "a second",
    "waiting",
    "quarantined",
    "watermark",
    "unapplied",
    "age of data",
    "tables",
    "blocked",
)


def watch(look: Callable[[], Sequence[FeedStatus]], tolerated: Mapping[str, Thresholds], every: float) -> None:
    """Show what ``look`` gives, every so many seconds, until a signal ends the process. ``tolerated``: what feeds may
    leave."""
    landed: dict[str, tuple[float, int]] = {}
    with Live(auto_refresh=False) as live:
        live.console.show_cursor()  # a signal ends the process without the end of this block, which would show it
        while True:
            found = look()
            live.update(watch_table(found, rates(found, landed, time.monotonic()), tolerated), refresh=True)
            time.sleep(every)


def rates(found: Sequence[FeedStatus], before: dict[str, tuple[float, int]], now: float) -> dict[str, float]:
    """Messages a second by feed since the look before, which ``before`` holds and then becomes this one."""
    rate = {}
    for each in found:
        if each.feed in before:
            then, landed = before[each.feed]
            rate[each.feed] = (each.landed - landed) / (now - then)
        before[each.feed] = now, each.landed
    return rate


def watch_table(found: Sequence[FeedStatus], rate: Mapping[str, float], tolerated: Mapping[str, Thresholds]) -> Table:
    """A line a feed, and why it needs attention."""
    table = Table("feed", *_COLUMNS, "health")
    for each in found:
        cells = (
            f"{each.landed:,}",
            f"{rate[each.feed]:,.1f}" if each.feed in rate else "",
            f"{each.waiting:,}",
            f"{each.quarantined:,}",
            time_text(each.tso) if each.tso else "none",
            _duration(each.unapplied_seconds),
            _duration(each.age_seconds),
            str(len(each.tables)),
            str(len(each.blocked)),
        )
        thresholds = tolerated[each.feed]
        health = each.health(thresholds)
        why = "; ".join([health.name.lower(), *each.concerns(thresholds)])
        table.add_row(each.feed, *cells, Text(why, style=_COLOURS[health]))
    return table


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else str(timedelta(seconds=round(seconds)))
