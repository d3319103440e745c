"""``ticdc-lake maintain``: delete what is older than the feeds' retention, compact what stays."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection

from ticdc_codec.errors import ConfigError, LakehouseError
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.entry import RUN_FAILURES
from ticdc_lakehouse.gold.maintenance import Maintained
from ticdc_lakehouse.gold.state import published_feeds
from ticdc_lakehouse.ops import retention
from ticdc_local.cli.arguments import feed_argument, in_same_place, lake_root, place_arguments
from ticdc_local.cli.job_text import spark_text
from ticdc_local.cli.notice import note, progress
from ticdc_local.cli.open_lake import feed_run, open_lake
from ticdc_local.cli.project import feed_files, feed_named, no_feeds
from ticdc_local.runner.display import without_controls

EXAMPLES = """examples:
  ticdc-lake maintain                   every feed that has a file and has published
  ticdc-lake maintain --feed crm --json"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    place_arguments(parser)
    feed_argument(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON list with one object per feed")


def run(options: argparse.Namespace) -> int:
    """Maintains each feed and says what was done. Returns 1 if one of them was refused or failed, or its retention was
    put off: the others are maintained. Raises ConfigError where there is no feed."""
    if options.feed is not None:
        feed_named(options, options.feed)
    lake = open_lake(options, frees_space=True)
    files = feed_files(options)
    feeds = [options.feed] if options.feed else _published(options, lake, files)
    for feed in (each for each in feeds if each not in files):  # `status` says that such a feed needs attention
        note(f"{feed}: no file in resources/feeds, so its tables stay as they are")
    objects, failed = [], False
    for feed in (each for each in feeds if each in files):
        try:
            done = _maintained(options, feed, lake)
            kept = () if options.json else retention.lines(lake, feed)
        except RUN_FAILURES as error:
            why = str(error) if isinstance(error, LakehouseError) else spark_text(error, lake_root(options))
            print(f"{feed}: not maintained: {why}", file=sys.stderr)
            objects.append({"feed": feed, "error": why})
            failed = True
            continue
        objects.append(_object(feed, done))
        failed = failed or bool(done.put_off)
        if not options.json:
            print("\n".join(map(without_controls, [str(done), *(f"{feed}: {line}" for line in kept)])))
    if options.json:
        print(json.dumps(objects))
    return 1 if failed else 0


def _published(options: argparse.Namespace, lake: Lake, files: Collection[str]) -> list[str]:
    """Returns the feeds that gold has published. Raises ConfigError where there is none: a job that maintains a wrong
    lake must not find that all is well."""
    feeds = published_feeds(lake)
    if feeds:
        return feeds
    root = lake_root(options)
    if not files:
        raise no_feeds(options, f", and {root} has published none")
    raise ConfigError(
        f"{root}: expected a feed that has published, found none; name another lake with --lake, or publish first: "
        f"{in_same_place(options, 'ticdc-lake run')}"
    )


def _maintained(options: argparse.Namespace, feed: str, lake: Lake) -> Maintained:
    run = feed_run(options, feed, lake)
    with progress(f"{feed}: compacting"):
        return run.maintain()


def _object(feed: str, done: Maintained) -> dict[str, object]:
    return {
        "feed": feed,
        "readable_since": done.since.isoformat(),
        "tables_compacted": done.compacted,
        "tables_dropped": [*done.dropped],
        "retention_put_off": [*done.put_off],
    }
