"""``ticdc-lake verify-source``: gold compared with TiDB itself, at the TSO that gold has published."""

from __future__ import annotations

import argparse
import json

from ticdc_codec.tso import with_time
from ticdc_lakehouse.config.layer_settings import gold_config_of
from ticdc_lakehouse.counted import counted
from ticdc_lakehouse.entry import source_address
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.ops.verify.results import TableResult, Verified
from ticdc_lakehouse.ops.verify.verification import chosen_tables
from ticdc_lakehouse.tidb.session import Snapshot
from ticdc_local.cli.arguments import feed_argument, not_empty, place_arguments, positive, seconds
from ticdc_local.cli.notice import progress
from ticdc_local.cli.open_lake import feed_run
from ticdc_local.cli.project import feed_named, open_reader
from ticdc_local.runner.dbutils import Secrets
from ticdc_local.runner.display import without_controls

_SHOWN = 20
"""Differences of a table that are printed; ``ops.differences`` has more."""

EXAMPLES = """examples:
  export LAKEHOUSE_SECRET_TIDB_READER=…     its password
  ticdc-lake verify-source --feed crm --dsn 'mysql://reader@tidb:4000/?secret=tidb/reader'
  ticdc-lake verify-source --feed crm --dsn … --table crm.orders --repair"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    place_arguments(parser)
    feed_argument(parser, "feed whose tables are compared", required=True)
    parser.add_argument(
        "--dsn",
        type=not_empty,
        help="mysql://USER@HOST:4000/?secret=SCOPE/KEY (more: tls=true, ca=FILE; default: the feed's source); the "
        "password is that secret, on a laptop the environment variable LAKEHOUSE_SECRET_SCOPE_KEY",
    )
    parser.add_argument("--table", action="append", default=[], help="database.table; may be repeated (default: all)")
    parser.add_argument("--threads", type=positive, default=4, help="queries that TiDB answers at once (default: 4)")
    parser.add_argument("--sleep", type=seconds, default=0.0, help="pause of each thread after a query, such as 0.2s")
    parser.add_argument("--json", action="store_true", help="print a JSON object, with one for each table")
    parser.add_argument("--repair", action="store_true", help="give rows that differ TiDB's values")


def run(options: argparse.Namespace) -> int:
    """Compares and prints what differs; 1 if something does, or could not be compared."""
    with progress("asking TiDB"):
        _check(options)
    opened = feed_run(options, options.feed)
    with progress("comparing with TiDB"):
        verified = opened.verify_source(
            options.dsn, options.table, threads=options.threads, sleep=options.sleep, repair=options.repair
        )
    print(json.dumps(verified_object(verified)) if options.json else "\n".join(verified_lines(verified)))
    return int(bool(verified.different))


def _check(options: argparse.Namespace) -> None:
    """Raises ConfigError for what is known before Spark starts: a missing table or secret, a TiDB that
    does not answer, or no longer has the data at that TSO."""
    feed = feed_named(options, options.feed)
    before = published(open_reader(options), feed.name)
    chosen_tables(before, gold_config_of(feed), options.table)
    Snapshot(address=source_address(feed, options.dsn, Secrets().get), tso=before.tso).connect().close()


def verified_object(verified: Verified) -> dict[str, object]:
    """Returns what was compared as a JSON object."""
    texts = verified.texts
    return {
        "feed": verified.feed,
        "tso": verified.tso,
        "tables": [
            {
                "table": texts[table.name],
                "tso": table.tso,
                "result": table.result.value,
                "detail": table.detail,
                "rows": table.rows,
                "chunks": table.chunks,
                "different_rows": table.different_rows,
                "differences": [str(each) for each in table.differences[:_SHOWN]],
            }
            for table in verified.tables
        ],
    }


def verified_lines(verified: Verified) -> list[str]:
    """Returns a line for each table, and below it what differs."""
    texts = verified.texts
    width = max(map(len, texts.values()), default=0)
    lines = [f"{verified.feed} at {with_time(verified.tso)}"]
    for table in verified.tables:
        lines.append(f"  {texts[table.name]:{width}}  {_summary(table, verified.tso)}")
        lines.extend(f"    {difference}" for difference in table.differences[:_SHOWN])
        if len(table.differences) > _SHOWN:
            lines.append(f"    … {len(table.differences) - _SHOWN} more are in ops.differences")
    return [*map(without_controls, lines)]


def _summary(table: TableResult, tso: int) -> str:
    at = "" if table.tso == tso else f" at {with_time(table.tso)}, where it is blocked"
    counts = f"{counted(table.rows, 'row')} in {counted(table.chunks, 'chunk')}"
    differing = f", {counted(table.different_rows, 'row differs', 'rows differ')}" if table.different_rows else ""
    detail = f" ({table.detail})" if table.detail else ""
    return f"{table.result}{at}: {counts}{differing}{detail}"
