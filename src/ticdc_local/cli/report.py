"""``ticdc-lake report``: one HTML page about the lake, with plots; starts no Spark."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ticdc_local.cli.arguments import feed_argument, local_path, place_arguments, writing
from ticdc_local.cli.notice import progress
from ticdc_local.cli.project import chosen_feeds, open_reader, read_feed_files
from ticdc_local.cli.status import health_of, status_of
from ticdc_local.report.facts import feed_facts
from ticdc_local.report.page import page

FILE = "report.html"
STANDARD_OUTPUT = Path("-")
EXAMPLES = """examples:
  ticdc-lake report && xdg-open report.html
  ticdc-lake report --feed crm --output /var/www/crm.html"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    place_arguments(parser)
    feed_argument(parser)
    parser.add_argument(
        "--output",
        type=local_path,
        default=Path(FILE),
        metavar="FILE",
        help=f"file to write (default: {FILE}); - is standard output",
    )


def run(options: argparse.Namespace) -> int:
    """Writes the page, and says where it is unless that is standard output."""
    lake = open_reader(options)
    with progress("reading the lake"):
        files = read_feed_files(options, chosen_feeds(options, lake))
        feeds = [feed_facts(lake, status_of(lake, feed, file)) for feed, file in files.items()]
    html = page(lake.name, datetime.now(UTC), feeds, partial(health_of, files))
    if options.output == STANDARD_OUTPUT:
        print(html, end="")
        return 0
    with writing("--output", options.output):
        options.output.write_text(html, encoding="utf-8")
    print(f"wrote {options.output}")
    return 0
