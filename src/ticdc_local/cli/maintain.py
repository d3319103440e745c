"""``ticdc-lake maintain``: delete what is older than the feeds' retention, compact what stays."""

from __future__ import annotations

import argparse

from ticdc_lakehouse.gold.state import published_feeds
from ticdc_lakehouse.ops import retention
from ticdc_local.cli.arguments import place_arguments
from ticdc_local.cli.open_lake import feed_run, open_lake
from ticdc_local.cli.project import feed_named


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    place_arguments(parser)
    parser.add_argument("--feed", help="this feed only")


def run(options: argparse.Namespace) -> int:
    """Maintain each feed and say what was done."""
    if options.feed is not None:
        feed_named(options, options.feed)
    lake = open_lake(options)
    for feed in [options.feed] if options.feed else published_feeds(lake):
        done = feed_run(options, feed, lake).maintain()
        print(f"{feed}: readable since {done.since:%Y-%m-%d %H:%M} UTC; {done.kept} tables compacted", end="")
        print(f", dropped {', '.join(done.dropped)}" if done.dropped else "")
        for line in retention.lines(lake, feed):
            print(f"{feed}: {line}")
    return 0
