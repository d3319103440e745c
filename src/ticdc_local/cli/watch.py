"""``ticdc-lake status --watch``: the feeds on a terminal, looked at again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from rich.console import Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from ticdc_lakehouse.counted import duration
from ticdc_lakehouse.ops.status import Check, FeedStatus, Health

_COLOURS = {Health.FINE: "green", Health.ATTENTION: "yellow", Health.BROKEN: "red"}
_COLUMNS = ("landed", "a second", "waiting", "quarantined", "unapplied", "age of data", "blocked")


def watch(read_statuses: Callable[[], tuple[Sequence[FeedStatus], Check]], every: float) -> None:
    """Shows what ``read_statuses`` returns, every ``every`` seconds, until a signal ends the process: the feeds'
    statuses, and what checks them."""
    landed: dict[str, tuple[float, int]] = {}
    with Live(auto_refresh=False) as live:
        live.console.show_cursor()  # a signal ends the process without the end of this block, which would show it
        while True:
            statuses, check = read_statuses()
            live.update(watch_view(statuses, rates(statuses, landed, time.monotonic()), check), refresh=True)
            time.sleep(every)


def rates(statuses: Sequence[FeedStatus], before: dict[str, tuple[float, int]], now: float) -> dict[str, float]:
    """Returns the messages per second by feed since the reading before, which ``before`` holds and then becomes
    this one."""
    rate = {}
    for status in statuses:
        if status.feed in before:
            then, landed = before[status.feed]
            rate[status.feed] = (status.landed - landed) / (now - then)
        before[status.feed] = now, status.landed
    return rate


def watch_view(statuses: Sequence[FeedStatus], rate: Mapping[str, float], check: Check) -> Group:
    """Returns a table with a line per feed, for a terminal of 80 columns; below it which feeds are not fine, and
    why."""
    numbers = (Column(name, justify="right") for name in _COLUMNS)
    table = Table("feed", *numbers, box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold underline")
    concerns = []
    for status in statuses:
        health, text = check(status)
        cells = (
            f"{status.landed:,}",
            f"{rate[status.feed]:,.1f}" if status.feed in rate else "",
            f"{status.waiting:,}",
            f"{status.quarantined:,}",
            *(
                "" if seconds is None else duration(seconds)
                for seconds in (status.unapplied_seconds, status.age_seconds)
            ),
            f"{len(status.blocked)} of {len(status.tables)}",
        )
        table.add_row(Text(status.feed, style=_COLOURS[health]), *cells)
        if health is not Health.FINE:
            concerns.append(Text(f"{status.feed}: {text}", style=_COLOURS[health]))
    return Group(table, "", *concerns, Text(f"{datetime.now(UTC):%H:%M:%S} UTC, until Ctrl-C", style="dim"))
