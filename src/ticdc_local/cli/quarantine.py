"""``ticdc-lake quarantine``: list, decode again or dismiss the messages that could not be decoded."""

from __future__ import annotations

import argparse
import json
import shlex
from collections import Counter

from ticdc_codec.errors import ConfigError, listed
from ticdc_lakehouse.catalog import Layer, Values
from ticdc_lakehouse.config.feed import Feed
from ticdc_lakehouse.counted import counted
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.ops.status import has_batch_offsets
from ticdc_lakehouse.silver import events_table, quarantine
from ticdc_lakehouse.silver.quarantine import ALL, Position, QuarantineAction, fault_text, position_text, positions_of
from ticdc_local.cli.arguments import feed_argument, in_same_place, place_arguments, refuse
from ticdc_local.cli.notice import note, progress
from ticdc_local.cli.open_lake import feed_run
from ticdc_local.cli.project import check_feed, feed_files, feed_named, no_feeds, open_reader
from ticdc_local.cli.quarantined_messages import absent_object, failure_text, print_absent, show, trial, tried_object
from ticdc_local.delta_reader import DeltaReader
from ticdc_local.runner.display import without_controls

_SHOWN = 20
_TRIED = 1000
"""Messages that a dry run decodes at most: the first."""
_ARGUMENTS = {"list": ("json",), "show": ("explain",), "replay": ("dry_run", "json"), "dismiss": ("reason",)}
"""What each action takes beside the feed and its messages."""

EXAMPLES = """examples:
  ticdc-lake quarantine list --feed crm
  ticdc-lake quarantine show --feed crm --at crm-changes/0/17 --explain
  ticdc-lake quarantine replay --feed crm --dry-run
  ticdc-lake quarantine dismiss --feed crm --at crm-changes/0/17 --reason "sent by hand\""""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "action",
        choices=tuple(_ARGUMENTS),
        help="list: how many are open for which reason, and the first; show: why, and their bytes; replay: decode them "
        "again; dismiss: they are not needed, gold continues without them",
    )
    place_arguments(parser)
    feed_argument(parser, "list: only this feed; other actions need it where there are several")
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="TOPIC/PARTITION/OFFSET",
        help=f"this message; may be repeated; {ALL}: every open one, which replay and list take without it, too",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="list and replay --dry-run: print a JSON list with one object per message",
    )
    parser.add_argument("--explain", action="store_true", help="show: what each byte is, as far as it can be read")
    parser.add_argument("--dry-run", action="store_true", help="replay: say what would decode now, change nothing")
    parser.add_argument("--reason", help="dismiss: why the message is not needed; it is recorded")


def run(options: argparse.Namespace) -> int:
    """Lists, shows, replays or dismisses; 1 if a message stays open, or a position has no open message."""
    _check_arguments(options)
    messages = options.at or ([] if options.action in ("show", "dismiss") else [ALL])
    positions = positions_of(messages)
    if options.action == "dismiss" and not (options.reason or "").strip():
        raise ConfigError("--reason: expected a text that says why these messages are not needed, found none")
    feeds = _feeds(options)
    lake = open_reader(options)
    if options.action == "list":
        if options.json:
            print(json.dumps([each for feed in feeds for each in _open_objects(lake, feed, positions)]))
        else:
            print("\n".join(_list_text(options, lake, feed, positions) for feed in feeds))
        return 0
    feed = feed_named(options, _one(feeds))
    if not (options.action == "show" or options.dry_run):
        return _act(options, lake, feed.name, messages)
    if not_run := _not_run(options, lake, feed.name):
        raise ConfigError(not_run)
    if options.action == "show":
        return show(options, lake, feed, positions)
    return _try_replay(options, lake, feed, positions)


def _act(options: argparse.Namespace, lake: DeltaReader, feed: str, messages: list[str]) -> int:
    """Replays or dismisses; 1 if a message stays open, or a position has none. Spark starts where there is one."""
    dismisses, positions = options.action == "dismiss", positions_of(messages)
    done = tuple(QuarantineAction) if dismisses else quarantine.done_before_replay(positions)
    absent = quarantine.absent(lake, feed, positions, done)
    code = 0
    if not absent or len(absent) < len(set(positions)):
        run = feed_run(options, feed)
        code = _dismiss(options, run, messages) if dismisses else _replay(options, run, messages)
    print_absent(feed, absent)
    return 1 if absent else code


def _check_arguments(options: argparse.Namespace) -> None:
    """Raises ConfigError for an argument of another action."""
    for_others = {name for names in _ARGUMENTS.values() for name in names} - {*_ARGUMENTS[options.action]}
    refuse(options, sorted(for_others), f"`quarantine {options.action}` does not take it")
    if options.action == "replay" and not options.dry_run:
        refuse(options, ["json"], "`quarantine replay` takes it beside --dry-run")


def _feeds(options: argparse.Namespace) -> list[str]:
    known = sorted(feed_files(options))
    if options.feed is None:
        if not known:
            raise no_feeds(options)
        return known
    check_feed(options, options.feed, known)
    return [options.feed]


def _one(feeds: list[str]) -> str:
    if len(feeds) != 1:
        raise ConfigError(f"--feed: expected one of {listed(feeds)}")
    return feeds[0]


def _list_text(options: argparse.Namespace, lake: DeltaReader, feed: str, positions: list[Position]) -> str:
    """Returns how many messages are open for which reason, and the first of them with position and detail."""
    if not_run := _not_run(options, lake, feed):
        return not_run
    reasons = Counter(quarantine.reasons(lake, feed, positions))
    first = quarantine.first_open(lake, feed, positions, _SHOWN)
    return "\n".join([summary(feed, reasons), *map(message_text, first), *_rest(feed, reasons.total())])


def _not_run(options: argparse.Namespace, lake: DeltaReader, feed: str) -> str | None:
    """Returns the line of a feed that bronze or silver has not run for; None if both have."""
    is_landed = has_batch_offsets(lake, feed)
    if is_landed and events_table.exists(lake, feed):
        return None
    layer = Layer.SILVER if is_landed else Layer.BRONZE
    return f"{feed}: {layer} has not run for this feed: {_run_command(options, feed)}"


def _run_command(options: argparse.Namespace, feed: str) -> str:
    return in_same_place(options, f"ticdc-lake run --feed {feed}")


def _open_objects(lake: DeltaReader, feed: str, positions: list[Position]) -> list[dict[str, object]]:
    """Returns every open message as a JSON object."""
    if not events_table.exists(lake, feed):
        return []
    rows = quarantine.first_open(lake, feed, positions)
    return [{"feed": feed, **row, "timestamp": row["timestamp"].isoformat()} for row in rows]


def summary(feed: str, reasons: Counter[str]) -> str:
    """Returns one line: the number of open messages by reason."""
    if not reasons:
        return f"{feed}: no open message"
    counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    return f"{feed}: {reasons.total()} open ({counts})"


def message_text(row: Values) -> str:
    """Returns one open message: its position as ``--at`` takes it, its table if that is known, and its fault."""
    table = "any table" if row["table"] is None else f"{row['database']}.{row['table']}"
    return without_controls(f"  {position_text(row)}  {table}  {fault_text(row)}")


def _rest(feed: str, count: int) -> list[str]:
    return [f"  and {count - _SHOWN} more; silver.{feed}_quarantine has all that ever were"] if count > _SHOWN else []


def _try_replay(options: argparse.Namespace, lake: DeltaReader, feed: Feed, positions: list[Position]) -> int:
    """Prints how many messages would decode now, and why the others would not; 1 if there are others, or a position has
    no open message."""
    absent = quarantine.absent(lake, feed.name, positions, quarantine.done_before_replay(positions))
    limit = max(_TRIED, len(positions))
    with progress("decoding"):
        tried = trial(lake, feed, positions, limit)
    failed = [message for message in tried if message.failure is not None]
    if len(tried) == limit > len(positions):
        note(f"{feed.name}: only the first {limit} were tried")
    if options.json:
        print(json.dumps([*map(tried_object, tried), *map(absent_object, absent)]))
        return 1 if failed or absent else 0
    count = counted(len(tried), "message")
    print(f"{feed.name}: of {count} {len(tried) - len(failed)} would decode, {len(failed)} stay open")
    print("\n".join(failure_text(message) for message in failed[:_SHOWN]), end="\n" if failed else "")
    if len(tried) > len(failed):
        replay = shlex.join(["ticdc-lake", "quarantine", "replay", "--feed", feed.name, *_at(options.at)])
        note(f"Next: {in_same_place(options, replay)}")
    print_absent(feed.name, absent)
    return 1 if absent or failed else 0


def _at(messages: list[str]) -> list[str]:
    return [word for message in messages for word in ("--at", message)]


def _replay(options: argparse.Namespace, run: Run, messages: list[str]) -> int:
    feed = run.feed.name
    with progress("decoding again"):
        done = run.replay(messages)
    print(f"{feed}: {done.decoded} decoded, {done.still_open} still open")
    if done.decoded:
        note(f"The next run of gold puts their rows in place: {_run_command(options, feed)}")
    return 1 if done.still_open else 0


def _dismiss(options: argparse.Namespace, run: Run, messages: list[str]) -> int:
    feed = run.feed.name
    with progress("dismissing"):
        count = run.dismiss(messages, options.reason)
    print(f"{feed}: {count} dismissed")
    if count:
        note(f"The next run of gold continues without them: {_run_command(options, feed)}")
    return 0
