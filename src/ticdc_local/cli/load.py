"""``ticdc-lake load``: rows from before the changefeed, out of an export of Dumpling's."""

from __future__ import annotations

import argparse

from ticdc_codec.tso import with_time
from ticdc_local.cli.arguments import place_arguments
from ticdc_local.cli.open_lake import feed_run


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("folder", help="where `dumpling --filetype csv` wrote, or a URI that Spark reads")
    place_arguments(parser)
    parser.add_argument("--feed", required=True)
    parser.add_argument(
        "--time-zone", help="of the session that exported; UTC after --params time_zone=+00:00. Needed for TIMESTAMPs"
    )


def run(options: argparse.Namespace) -> int:
    """Load it and say how many rows each table got."""
    loaded = feed_run(options, options.feed).load(options.folder, options.time_zone)
    for name, rows in loaded.rows.items():
        print(f"{'.'.join(name)}: {rows} rows as of {with_time(loaded.tso)}, and what the changefeed sent since")
    return 0
