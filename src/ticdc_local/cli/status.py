"""``ticdc-lake status``: how far each feed is, and why a table is blocked. Starts no Spark and creates nothing."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from ticdc_codec.errors import ConfigError
from ticdc_codec.tso import time_text
from ticdc_lakehouse.config.feed import Feed
from ticdc_lakehouse.config.layer_settings import gold_config_of, thresholds_of
from ticdc_lakehouse.counted import counted, duration
from ticdc_lakehouse.ops import retention
from ticdc_lakehouse.ops.alarm import Thresholds
from ticdc_lakehouse.ops.status import NOTHING_LEFT, Check, FeedStatus, Health, feed_status
from ticdc_lakehouse.ops.verify.results import last_verification, verification_object, verification_text
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName, texts_of
from ticdc_local.cli.arguments import age, feed_argument, in_same_place, place_arguments, refuse, seconds
from ticdc_local.cli.notice import can_erase, progress
from ticdc_local.cli.project import FeedOrMistake, chosen_feeds, open_reader, read_feed_files
from ticdc_local.delta_reader import DeltaReader
from ticdc_local.runner.display import without_controls

EXAMPLES = """examples:
  ticdc-lake status --feed crm
  ticdc-lake status --check --max-age 1h     for a monitor: one line per feed, exit code of the worst
  ticdc-lake status --json | jq '.[].tables[] | select(.blocked)'

exit codes of --check:
  0    every feed is fine
  1    attention: a feed never ran, has messages and never published, has more than its file's alarm tolerates, or has
       no file any more
  2    broken: a feed is stopped until somebody acts, or its file is wrong; or the lake cannot be read, or there is
       no feed"""

NO_FILE = (
    "no file in resources/feeds: no run of this project processes or maintains it. Put the file back, name the project "
    "that has it (--project), or remove the feed if nobody needs it (docs/databricks.md, Remove a feed)"
)
"""What is said of a feed that gold has published and that has no file: this project's jobs do not take it."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    place_arguments(parser)
    feed_argument(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON list with one object per feed")
    parser.add_argument("--check", action="store_true", help="for monitors: one line per feed, exit code 0, 1 or 2")
    parser.add_argument(
        "--watch",
        nargs="?",
        type=seconds,
        const=2.0,
        metavar="TIME",
        help="refresh on a terminal, every TIME (default: 2s)",
    )
    parser.add_argument(
        "--max-age",
        type=age,
        metavar="TIME",
        help="with --check, --json, --watch: older data needs attention, in place of alarm.behind of the feed's file "
        "(30m, 6h, 2d)",
    )


def run(options: argparse.Namespace) -> int:
    """Prints each feed's status; with ``--check`` the worst feed's `Health` is the exit code."""
    if options.watch is not None:
        refuse(options, ("check", "json"), "expected without --watch, which is for people")
        _watch(options)
    elif not (options.check or options.json):
        refuse(options, ("max_age",), "expected beside --check, --json or --watch")
    lake = open_reader(options)
    try:
        with progress("reading the lake"):
            files = read_feed_files(options, chosen_feeds(options, lake))
            found = [status_of(lake, feed, file) for feed, file in files.items()]
    except OSError as error:  # as what else keeps from reading it: exit code 2
        raise ConfigError(f"the lake cannot be read: {error}") from None
    if not (options.json or options.check):
        print("\n\n".join("\n".join(_lines(options, lake, each, files[each.feed])) for each in found))
        return 0
    checked = [health_of(files, each, options.max_age) for each in found]
    if options.json:
        print(json.dumps([_feed_object(lake, each, *health) for each, health in zip(found, checked, strict=True)]))
    else:
        print("\n".join(f"{each.feed}: {text}" for each, (_, text) in zip(found, checked, strict=True)))
    return max((health for health, _ in checked), default=Health.FINE) if options.check else 0


def _lines(options: argparse.Namespace, lake: DeltaReader, status: FeedStatus, file: FeedOrMistake) -> list[str]:
    """Returns what is printed of a feed, for people."""
    wrong = [f"  feed file    {problem}" for problem in _file_problem(file)]
    command = in_same_place(options, f"ticdc-lake run --feed {status.feed}")
    never_ran = f"{status.feed}\n  bronze has not run for this feed: {command}"
    return [feed_text(status) if status.is_landed else never_ran, *wrong, *_records_text(lake, status.feed)]


def _file_problem(file: FeedOrMistake) -> list[str]:
    """Returns what people read of a feed's file that is wrong, or not there; empty for one that is right."""
    if isinstance(file, ConfigError):
        return [f"broken: {_on_one_line(file)}"]
    return [NO_FILE] if file is None else []


def _on_one_line(mistakes: ConfigError) -> str:
    return "; ".join(str(mistakes).splitlines())


def _records_text(lake: DeltaReader, feed: str) -> list[str]:
    """Returns lines that say how far back bronze and silver go, once maintenance has looked, and when the feed's tables
    were last compared with TiDB's, if ever, at which TSO, with what result."""
    retained = [without_controls(f"  retention    {line}") for line in retention.lines(lake, feed)]
    verified = last_verification(lake, feed)
    return [*retained, f"  verified     {verification_text(verified)}"] if verified else retained


def _watch(options: argparse.Namespace) -> None:
    """Shows the feeds until Ctrl-C. Raises ConfigError without a terminal for it."""
    if not can_erase(sys.stdout):
        raise ConfigError("--watch: expected a terminal that can erase lines; --json or --check are for scripts")
    from ticdc_local.cli.watch import watch  # the others need no rich

    feeds = chosen_feeds(options, open_reader(options))

    def read_statuses() -> tuple[list[FeedStatus], Check]:
        lake = open_reader(options)  # a reader keeps the tables as it found them
        files = read_feed_files(options, feeds)
        statuses = [status_of(lake, feed, file) for feed, file in files.items()]
        return statuses, partial(health_of, files, max_age=options.max_age)

    watch(read_statuses, options.watch)


def status_of(lake: DeltaReader, feed: str, file: FeedOrMistake) -> FeedStatus:
    """Returns a feed's status, by its file if there is one that is right."""
    return feed_status(lake, feed, gold_config_of(file) if isinstance(file, Feed) else None)


def health_of(
    files: Mapping[str, FeedOrMistake], status: FeedStatus, max_age: float | None = None
) -> tuple[Health, str]:
    """Returns the same as `checked_status`, by what the feed's file tolerates in its section ``alarm``; ``max_age`` is
    in place of its ``behind``. A feed whose file is wrong is broken, and says nothing about the others. A feed without
    a file needs attention, however fine its tables are: nothing adds to them."""
    file = files[status.feed]
    if isinstance(file, ConfigError):
        return Health.BROKEN, f"{Health.BROKEN.name.lower()}: {_on_one_line(file)}"
    tolerated = NOTHING_LEFT if file is None else thresholds_of(file)
    if max_age is not None:
        tolerated = replace(tolerated, behind_seconds=round(max_age))
    return checked_status(status, tolerated, () if file is not None else (NO_FILE,))


def checked_status(status: FeedStatus, tolerated: Thresholds, more: Sequence[str] = ()) -> tuple[Health, str]:
    """Returns a feed's health, and a line that says it and why. ``more`` needs attention, too."""
    health = max(status.health(tolerated), Health.ATTENTION if more else Health.FINE)
    concerns = [*more, *status.concerns(tolerated)]
    return health, without_controls(f"{health.name.lower()}: {'; '.join(concerns) or _next(status)}")


def _feed_object(lake: DeltaReader, status: FeedStatus, health: Health, text: str) -> dict[str, object]:
    """Returns what is printed of a feed, for programs."""
    return status_object(status, health, text) | {
        "retention": {
            layer.value: {"first_batch": floor.first_batch, "tso": floor.tso or None, "held_by": floor.held_by}
            for layer, floor in retention.floors(lake, status.feed).items()
        },
        "verified": verification_object(last_verification(lake, status.feed)),
    }


def status_object(status: FeedStatus, health: Health, text: str) -> dict[str, object]:
    """Returns a feed's status as a JSON object; times in seconds."""
    return {
        "feed": status.feed,
        "health": health.name.lower(),
        "check": text,
        "landed": status.landed,
        "decoded": status.decoded,
        "waiting": status.waiting,
        "quarantined": status.quarantined,
        "dismissed": status.dismissed,
        "mode": status.mode.value,
        "tso": status.tso or None,
        "time": None if status.time is None else status.time.isoformat(),
        "unapplied_seconds": status.unapplied_seconds,
        "age_seconds": status.age_seconds,
        "waiting_on": status.waiting_on,
        "blocked_by": None if status.blocked_by is None else status.blocked_by.position,
        "caught_up": status.caught_up,
        "tables": [_table_object(status, name, state) for name, state in sorted(status.tables.items())],
    }


def _table_object(status: FeedStatus, name: TableName, state: TableState) -> dict[str, object]:
    return {
        "database": name[0],
        "table": name[1],
        "applied_tso": state.applied_tso,
        "blocked": state.blocked,
        "blocked_at": state.applied_tso if state.blocked else None,
        "block_reason": None if state.stop is None else str(state.stop),
        "needs_override": state.blocked and state.needs_override,
        "dropped": state.dropped,
        "pending_columns": list(status.pending.get(name, ())),
        "left_out": name in status.left_out,
    }


def feed_text(status: FeedStatus) -> str:
    """Returns the name of a feed that bronze has run for, its counts of messages, its watermark, and a line per
    table."""
    facts = {
        "landed": counted(status.landed, "message"),
        "decoded": counted(status.decoded, "message"),
        "waiting": f"{counted(status.waiting, 'message')} that silver has not decoded",
        "quarantined": f"{counted(status.quarantined, 'message')} open, {status.dismissed} dismissed",
        "watermark": f"{status.tso}, {time_text(status.tso)}" if status.tso else "none published yet",
        **({"mode": _EVENTUAL} if status.mode is Mode.EVENTUAL else {}),
        "unapplied": _duration(status.unapplied_seconds, "from the watermark to the newest change that arrived"),
        "age of data": _duration(status.age_seconds, "from the watermark to now"),
        "next": _next(status),
    }
    lines = [f"  {name:11}  {value}" for name, value in facts.items()]
    return "\n".join([status.feed, *lines, *_tables_text(status)])


def _next(status: FeedStatus) -> str:
    if status.waiting_on is not None:
        return f"waiting on: {status.waiting_on}"
    return "nothing: caught up" if status.caught_up else "nothing is blocking gold: run the job"


def _duration(seconds: float | None, what: str) -> str:
    if seconds is None:
        return "unknown: nothing is published yet"
    return f"{duration(seconds)}, {what}"


LEFT_OUT = "the key tables of the feed file leaves it out: the next run takes it out of gold"
_ALL_LEFT_OUT = "the key tables of the feed file leaves out all tables: a run refuses that"
_EVENTUAL = (
    "eventual: the newest commit of each key that has arrived; the watermark is the newest commit seen, no consistent "
    "point in time"
)


def _tables_text(status: FeedStatus) -> list[str]:
    """Returns a line per table: at the watermark, or since when it is blocked and why; its pending columns; and whether
    the feed's file leaves it out."""
    shown = {name: without_controls(text) for name, text in texts_of(sorted(status.tables)).items()}
    width = max(map(len, shown.values()), default=0)
    why_gone = LEFT_OUT if len(status.left_out) < len(status.tables) else _ALL_LEFT_OUT
    gone = dict.fromkeys(status.left_out, f"; {why_gone}")
    states = {
        name: f"{_state(status.tables[name], status.tso)}{_pending(status.pending.get(name, ()))}{gone.get(name, '')}"
        for name in shown
    }
    return [f"  {text:{width}}  {without_controls(states[name])}" for name, text in shown.items()]


def _pending(columns: Sequence[str]) -> str:
    return f"; value in old rows not known yet: {', '.join(columns)}" if columns else ""


def _state(state: TableState, tso: int) -> str:
    if state.stop is None:
        return "at the watermark" if state.applied_tso == tso else f"at TSO {state.applied_tso}"
    if state.dropped:
        return f"last rows at TSO {state.applied_tso}, {time_text(state.applied_tso)}: {state.stop}"
    way_out = "until somebody acts" if state.needs_override else "the next run tries again"
    since = f"at TSO {state.applied_tso}, {time_text(state.applied_tso)}" if state.applied_tso else "from the start"
    return f"BLOCKED {since} ({way_out}): {state.stop}"
