"""``ticdc-lake sql``: a Spark SQL prompt on the lake."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import takewhile

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from ticdc_codec.errors import ConfigError
from ticdc_codec.tso import time_of
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.entry import LARGEST
from ticdc_lakehouse.gold import views
from ticdc_lakehouse.gold.state import published, published_feeds
from ticdc_lakehouse.gold.time_travel import as_of
from ticdc_lakehouse.ops import status
from ticdc_lakehouse.silver import decode_stream
from ticdc_local.cli.arguments import place_arguments
from ticdc_local.cli.open_lake import feed_files, feed_run, open_lake
from ticdc_local.runner.notebook import sql_statements

PROMPT, MORE = "sql> ", "  -> "
ROWS, WIDTH = 20, 40
_LEAVE = ("quit", "exit")
# Quoted texts, quoted names and comments that end; and the beginning of one that does not.
_CLOSED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_OPENED = re.compile(r"""['"`]|/\*""")
_AS_OF = re.compile(r"as\s+of\s+(?P<feed>\w+)\s+(?P<tso>[0-9]{1,99})", re.IGNORECASE)
_HINT = (
    "For a table's changes read silver.NAME instead of gold.NAME. For an earlier state: AS OF <feed> <tso>; then NAME "
    "without a schema. End statements with ; and leave with quit."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    place_arguments(parser)
    parser.add_argument(
        "-e", dest="statements", action="append", default=[], metavar="STATEMENT", help="run this and end; repeatable"
    )


def run(options: argparse.Namespace) -> int:
    """Run the statements of ``-e``, of standard input, or those typed at a prompt; 1 if one of a script fails."""
    lake = open_lake(options, reads_only=True)
    feeds = refresh_views(options, lake)
    if options.statements or not sys.stdin.isatty():
        text = ";\n".join(options.statements) or sys.stdin.read()
        return run_all(lake, sql_statements(text))
    print("\n".join([*(feed_line(lake, feed) for feed in feeds), _HINT]))
    for statement in typed(_read_line):
        execute(lake, statement)
    return 0


def refresh_views(options: argparse.Namespace, lake: Lake) -> list[str]:
    """Make all views of the published feeds, which this session's catalog has forgotten; gives the feeds."""
    files = feed_files(options)
    feeds = published_feeds(lake)
    for feed in feeds:
        if feed not in files:
            print(f"{feed}: no file in resources/feeds, so its views are not made", file=sys.stderr)
            continue
        decode_stream.create_views(lake, feed)
        status.create_views(lake, feed)
        views.refresh(lake, feed_run(options, feed, lake).applying)
    return feeds


def feed_line(lake: Lake, feed: str) -> str:
    """A feed's watermark and the names of its tables."""
    now = published(lake, feed)
    names = ", ".join(f"gold.{state.name}" for state in now.tables.values() if state.version >= 0)
    return f"{feed} as of {time_of(now.tso):%Y-%m-%d %H:%M:%S} UTC: {names}"


def run_all(lake: Lake, statements: Iterator[str]) -> int:
    """Run statements up to ``quit`` or the first that fails; 1 if one does."""
    return 0 if all(execute(lake, statement) for statement in takewhile(_is_sql, statements)) else 1


def execute(lake: Lake, statement: str) -> bool:
    """Run one statement and print its result, or its error as one line; gives whether it went well."""
    asked = _AS_OF.fullmatch(statement.strip())
    try:
        if asked:
            print(as_of_line(lake, asked["feed"], int(asked["tso"])))
            return True
        result = lake.spark.sql(statement)
        if result.columns:
            result.show(ROWS, truncate=WIDTH)
        else:
            print("done")
    except (PySparkException, Py4JJavaError, ConfigError) as error:
        print(f"error: {_first_line(error)}", file=sys.stderr, flush=True)
        return False
    return True


def as_of_line(lake: Lake, feed: str, tso: int) -> str:
    """Make temporary views of a feed's tables as of a TSO, and say which. Raises ConfigError if there is no such
    state."""
    if tso > LARGEST:
        raise ConfigError(f"AS OF: expected a TSO, at most {LARGEST}, found {tso}")
    snapshot = as_of(lake.spark, feed, tso, lake=lake)
    names = ", ".join(snapshot.create_views())
    when = f"{snapshot.time:%Y-%m-%d %H:%M:%S} UTC (TSO {snapshot.tso})"
    return f"{feed} as of {when}; read these without the gold. prefix: {names}"


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def typed(read_line: Callable[[str], str | None]) -> Iterator[str]:
    """Statements from lines, each when its ``;`` is there, until ``quit`` or the end (``read_line`` gives None)."""
    text = ""
    while (line := read_line(MORE if text.strip() else PROMPT)) is not None:
        if not text.strip() and not _is_sql(line):
            return
        text += line + "\n"
        if complete(text):
            yield from sql_statements(text)
            text = ""
    if text.strip():
        yield from sql_statements(text)


def _is_sql(statement: str) -> bool:
    return statement.strip().rstrip(";").strip().lower() not in _LEAVE


def complete(text: str) -> bool:
    """Whether the text ends with a ``;`` that stands outside quotes and comments."""
    rest = _CLOSED.sub(" ", text).rstrip()
    return rest.endswith(";") and not _OPENED.search(rest)


def _read_line(prompt: str) -> str | None:
    with suppress(ImportError):
        import readline  # noqa: F401 - gives `input` a history, where Python has it
    try:
        return input(prompt)
    except EOFError:
        print()
        return None
