"""``ticdc-lake quarantine``: list, decode again or dismiss the messages that could not be decoded."""

from __future__ import annotations

import argparse
from collections import Counter
from functools import reduce
from operator import or_

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.silver import decode_stream, quarantine
from ticdc_lakehouse.silver.quarantine import ALL, Position, positions_of
from ticdc_local.cli.arguments import place_arguments
from ticdc_local.cli.open_lake import check_feed, feed_files, feed_run, landed, open_lake

_SHOWN = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("action", choices=("list", "replay", "dismiss"))
    place_arguments(parser)
    parser.add_argument("--feed", help="list: this feed only; replay and dismiss: needed where there are several")
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="TOPIC/PARTITION/OFFSET",
        help=f"this message; may be repeated; {ALL}: every open one, which replay and list take without it, too",
    )
    parser.add_argument("--reason", help="dismiss: why the message is not needed; it is recorded")


def run(options: argparse.Namespace) -> int:
    """List, replay or dismiss; 1 if a message that was to be acted on stays open, or is not open at all."""
    dismisses = options.action == "dismiss"
    messages = options.at or ([] if dismisses else [ALL])
    positions = positions_of(messages)
    if dismisses and not (options.reason or "").strip():
        raise ConfigError("--reason: expected a text that says why these messages are not needed, found none")
    feeds = _feeds(options)
    match options.action:
        case "list":
            lake = open_lake(options, reads_only=True)
            for feed in feeds:
                print(list_text(lake, feed, positions))
            return 0
        case "replay":
            return _replay(feed_run(options, _one(feeds)), messages)
        case _:
            return _dismiss(feed_run(options, _one(feeds)), messages, options.reason)


def _feeds(options: argparse.Namespace) -> list[str]:
    known = sorted(feed_files(options))
    if options.feed is None:
        return known
    check_feed(options, options.feed, known)
    return [options.feed]


def _one(feeds: list[str]) -> str:
    if len(feeds) != 1:
        raise ConfigError(f"--feed: expected one of {', '.join(feeds) or 'none'}")
    return feeds[0]


def list_text(lake: Lake, feed: str, positions: list[Position]) -> str:
    """How many messages are open for which reason, and the first of them with position and detail."""
    if not landed(lake, feed):
        return f"{feed}: bronze has not run for this feed"
    if not lake.exists(Layer.SILVER, decode_stream.events_table(feed)):
        return f"{feed}: silver has not run for this feed"
    opened = quarantine.open_messages(lake, feed)
    if positions:
        opened = opened.where(reduce(or_, map(_is_at, positions)))
    reasons = Counter({line["reason"]: line["count"] for line in opened.groupBy("reason").count().collect()})
    first = opened.orderBy("timestamp", "topic", "partition", F.col("offset")).limit(_SHOWN).collect()
    return "\n".join([summary(feed, reasons), *(message_text(line) for line in first), *_rest(feed, reasons.total())])


def _is_at(place: Position) -> Column:
    topic, partition, offset = place
    return (F.col("topic") == topic) & (F.col("partition") == partition) & (F.col("offset") == offset)


def summary(feed: str, reasons: Counter[str]) -> str:
    """One line: the number of open messages by reason."""
    if not reasons:
        return f"{feed}: no open message"
    counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    return f"{feed}: {reasons.total()} open ({counts})"


def message_text(line: Row) -> str:
    """One open message: its position as ``--at`` takes it, whose rows it holds if that is known, what is wrong."""
    table = "any table" if line["table"] is None else f"{line['database']}.{line['table']}"
    byte = "" if line["error_offset"] is None else f" at byte {line['error_offset']}"
    place = f"{line['topic']}/{line['partition']}/{line['offset']}"
    return f"  {place}  {table}  {line['reason']}{byte}: {line['detail']}"


def _rest(feed: str, count: int) -> list[str]:
    return [f"  and {count - _SHOWN} more; silver.{feed}_quarantine has all that ever were"] if count > _SHOWN else []


def _replay(run: Run, messages: list[str]) -> int:
    feed = run.feed.name
    done = run.replay(messages)
    print(f"{feed}: {done.decoded} decoded, {done.still_open} still open")
    if done.decoded:
        print(f"The next run of gold puts their rows in place: ticdc-lake run --feed {feed}")
    absent = _not_open(messages, done.decoded + done.still_open)
    return 1 if done.still_open or absent else 0


def _dismiss(run: Run, messages: list[str], reason: str) -> int:
    count = run.dismiss(messages, reason)
    print(f"{run.feed.name}: {count} dismissed")
    return 1 if _not_open(messages, count) else 0


def _not_open(messages: list[str], found: int) -> int:
    """How many of the positions named no open message; says so."""
    absent = max(0, len(set(positions_of(messages))) - found)
    if absent:
        print(f"{absent} of the positions given with --at name no open message")
    return absent
