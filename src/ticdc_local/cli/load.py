"""``ticdc-lake load``: rows from before the changefeed, out of an export of Dumpling's."""

from __future__ import annotations

import argparse

from ticdc_codec.tso import with_time
from ticdc_lakehouse.entry import applying_of
from ticdc_lakehouse.ops.dumpling.export import read_export
from ticdc_lakehouse.ops.dumpling.folder import LocalFolder
from ticdc_lakehouse.ops.load_options import add_load_options, load_options
from ticdc_lakehouse.ops.loadable import loadable_tables
from ticdc_local.cli.arguments import place_arguments
from ticdc_local.cli.open_lake import feed_run
from ticdc_local.cli.project import feed_named


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("folder", help="where dumpling wrote, or a URI that Spark reads")
    place_arguments(parser)
    parser.add_argument("--feed", required=True)
    add_load_options(parser)


def run(options: argparse.Namespace) -> int:
    """Load it and say how many rows each table got. A folder of this machine is checked before Spark starts."""
    given, feed = load_options(options), feed_named(options, options.feed)
    if ":/" not in options.folder:
        export = read_export(LocalFolder(path=options.folder), given.dumpling)
        loadable_tables(export, applying_of(feed), given)
    loaded = feed_run(options, options.feed).load(options.folder, given)
    for name, rows in loaded.rows.items():
        print(f"{'.'.join(name)}: {rows} rows as of {with_time(loaded.tso)}, and what the changefeed sent since")
    return 0
