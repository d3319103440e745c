"""``ticdc-lake table``: override what blocks a table; the reason is recorded."""

from __future__ import annotations

import argparse

from ticdc_codec.errors import ConfigError, suggestion
from ticdc_lakehouse.gold.overrides import OverrideAction, blocked_table
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.schema.names import by_text, table_named
from ticdc_local.cli.arguments import feed_argument, in_same_place, one_of, place_arguments
from ticdc_local.cli.notice import note, progress
from ticdc_local.cli.open_lake import feed_run
from ticdc_local.cli.project import feed_named, open_reader
from ticdc_local.runner.display import without_controls

EXAMPLES = """examples:
  ticdc-lake table skip-ddl shop.orders --feed crm --reason "a column that nobody reads"
  ticdc-lake table resume shop.orders --feed crm --reason "the schema file is corrected\""""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "action",
        type=one_of(OverrideAction),
        choices=tuple(OverrideAction),
        help="skip-ddl: skip the DDL that blocks the table; resume: try again from there",
    )
    parser.add_argument("table", metavar="DATABASE.TABLE", help="as `ticdc-lake status` names it")
    place_arguments(parser)
    feed_argument(parser, "feed of the table", required=True)
    parser.add_argument("--reason", required=True, help="why; it is recorded in ops.overrides")


def run(options: argparse.Namespace) -> int:
    """Records the override and prints the next command."""
    if not options.reason.strip():
        raise ConfigError("--reason: expected a text that says why, found none")
    feed_named(options, options.feed)
    _check_table(options)
    run = feed_run(options, options.feed)
    with progress("recording the override"):
        state = run.override(options.table, options.action, options.reason)
    print(without_controls(f"{options.table} was blocked at TSO {state.applied_tso}: {state.stop}"))
    command = in_same_place(options, f"ticdc-lake run --feed {options.feed}")
    note(f"The next run of gold continues from there: {command}")
    return 0


def _check_table(options: argparse.Namespace) -> None:
    """Raises ConfigError for a table that the feed does not have, with the most similar name, and for one of which
    no override is possible."""
    lake = open_reader(options)
    now = published(lake, options.feed)
    if table_named(options.table, now.tables) is None:
        known = suggestion(options.table, by_text(now.tables))
        raise ConfigError(f"{options.table}: feed {options.feed} has no such table; {known}")
    blocked_table(lake, options.feed, now, options.table, OverrideAction(options.action))
