"""``ticdc-lake status --watch``: the feeds on a terminal, looked at again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ticdc_lakehouse.ops.status import FeedStatus, Health

_COLOURS = {Health.FINE: "green", Health.ATTENTION: "yellow", Health.BROKEN: "red"}
_COLUMNS = ("landed", "a second", "waiting", "quarantined", "unapplied", "age of data", "blocked")
Check = Callable[[FeedStatus], tuple[Health, str]]
"""Gives a feed's health, and a line that says it and why."""


def watch(look: Callable[[], Sequence[FeedStatus]], check: Check, every: float) -> None:
    """Show what ``look`` gives, every so many seconds, until a signal ends the process."""
    landed: dict[str, tuple[float, int]] = {}
    with Live(auto_refresh=False) as live:
        live.console.show_cursor()  # a signal ends the process without the end of this block, which would show it
        while True:
            found = look()
            live.update(watch_view(found, rates(found, landed, time.monotonic()), check), refresh=True)
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


def watch_view(found: Sequence[FeedStatus], rate: Mapping[str, float], check: Check) -> Group:
    """A table with a line a feed, for a terminal of 80 columns; below it which feeds are not fine, and why."""
    table = Table("feed", *_COLUMNS, box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold underline")
    concerns = []
    for each in found:
        health, text = check(each)
        cells = (
            f"{each.landed:,}",
            f"{rate[each.feed]:,.1f}" if each.feed in rate else "",
            f"{each.waiting:,}",
            f"{each.quarantined:,}",
            _duration(each.unapplied_seconds),
            _duration(each.age_seconds),
            f"{len(each.blocked)} of {len(each.tables)}",
        )
        table.add_row(Text(each.feed, style=_COLOURS[health]), *cells)
        if health is not Health.FINE:
            concerns.append(Text(f"{each.feed}: {text}", style=_COLOURS[health]))
    return Group(table, "", *concerns)


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else str(timedelta(seconds=round(seconds)))
