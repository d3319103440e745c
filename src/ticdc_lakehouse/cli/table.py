"""``ticdc-lake table``: decide about a table that stands still; the reason is recorded."""

from __future__ import annotations

import argparse

from ticdc_lakehouse.cli.lake import feed_files, open_lake
from ticdc_lakehouse.cli.place import place_arguments
from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.lake import ops
from ticdc_lakehouse.lake.decision import Action, decide


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument(
        "action",
        type=Action,
        choices=tuple(Action),
        help="skip-ddl: pass over the DDL at which the table stands still; resume: try again from there",
    )
    parser.add_argument("feed")
    parser.add_argument("table", metavar="DATABASE.TABLE", help="as `ticdc-lake status` names it")
    parser.add_argument("--reason", required=True, help="why; it is recorded in ops.decisions")
    place_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Record the decision and say what comes next."""
    database, dot, table = options.table.partition(".")
    if not (database and dot and table):
        raise ConfigError(f"table: expected DATABASE.TABLE, found {options.table!r}")
    if not options.reason.strip():
        raise ConfigError("--reason: expected a text that says why, found none")
    known = sorted(feed_files(options))
    if options.feed not in known:
        raise ConfigError(f"feed: expected one of {', '.join(known) or 'none'}, found {options.feed!r}")
    lake = open_lake(options)
    ops.create_feed(lake, options.feed)
    state = decide(lake, options.feed, (database, table), options.action, options.reason)
    print(f"{options.table} stood still at TSO {state.applied_tso}: {state.reason}")
    print(f"The next run of gold goes on from there: ticdc-lake run --feed {options.feed}")
    return 0
