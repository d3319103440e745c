"""``ticdc-lake load``: rows from before the changefeed, out of an export of Dumpling's."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ticdc_codec.tso import with_time
from ticdc_lakehouse.config.layer_settings import gold_config_of
from ticdc_lakehouse.counted import counted
from ticdc_lakehouse.ops.dumpling.export import read_export
from ticdc_lakehouse.ops.dumpling.folder import LocalFolder
from ticdc_lakehouse.ops.load import Loaded
from ticdc_lakehouse.ops.load_options import add_load_options, load_options
from ticdc_lakehouse.ops.loadable import loadable_tables
from ticdc_lakehouse.schema.names import by_text
from ticdc_local.cli.arguments import feed_argument, path_or_uri, place_arguments
from ticdc_local.cli.notice import progress
from ticdc_local.cli.open_lake import feed_run
from ticdc_local.cli.project import feed_named
from ticdc_local.runner.display import without_controls

EXAMPLES = """examples:
  ticdc-lake load export/ --feed crm
  ticdc-lake load export/ --feed crm --table crm.orders --json"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("folder", type=path_or_uri, help="where dumpling wrote, or a URI that Spark reads")
    place_arguments(parser)
    feed_argument(parser, "feed of the tables", required=True)
    parser.add_argument("--json", action="store_true", help="a JSON object: the export's tso, rows by table")
    add_load_options(parser)


def run(options: argparse.Namespace) -> int:
    """Loads it and says how many rows each table got. A folder of this machine is checked before Spark starts."""
    given, feed, folder = load_options(options), feed_named(options, options.feed), options.folder
    if ":/" not in folder:
        # Spark takes a name with a colon, as dumpling makes them (export-2026-11-23T10:00:00Z), only in a whole path.
        folder = str(Path(folder).absolute())
        export = read_export(LocalFolder(path=folder), given.dumpling)
        loadable_tables(export, gold_config_of(feed), given)
    opened = feed_run(options, options.feed)
    with progress(f"loading {folder}"):
        loaded = opened.load(folder, given)
    if options.json:
        print(json.dumps(loaded_object(loaded)))
        return 0
    for line in loaded_lines(loaded):
        print(line)
    return 0


def loaded_object(loaded: Loaded) -> dict[str, object]:
    """Returns what was loaded as a JSON object."""
    return {"tso": loaded.tso, "rows": _rows_by_text(loaded)}


def loaded_lines(loaded: Loaded) -> list[str]:
    """Returns a line for each table."""
    since = f"as of {with_time(loaded.tso)}, and what the changefeed sent since"
    return [
        without_controls(f"{table}: {counted(rows, 'row')} {since}") for table, rows in _rows_by_text(loaded).items()
    ]


def _rows_by_text(loaded: Loaded) -> dict[str, int]:
    return {table: loaded.rows[name] for table, name in by_text(loaded.rows).items()}
