"""``ticdc-lake sql``: a Spark SQL prompt on the lake."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException

from ticdc_codec.errors import ConfigError
from ticdc_codec.tso import time_of
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.error_text import first_line
from ticdc_lakehouse.gold import table_views, view_marker, views
from ticdc_lakehouse.gold.live_table import has_published_names, live_names
from ticdc_lakehouse.gold.state import names_ever, newest, published, published_feeds
from ticdc_lakehouse.gold.time_travel import as_of
from ticdc_lakehouse.job_parameters import LARGEST
from ticdc_lakehouse.ops import feed_views
from ticdc_lakehouse.planning.naming import is_internal
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.silver import events_table
from ticdc_local.cli.arguments import in_same_place, one_of, place_arguments, positive
from ticdc_local.cli.interrupt import cancelled_by_interrupt, open_prompt, read_until_interrupt
from ticdc_local.cli.notice import note, progress
from ticdc_local.cli.open_lake import feed_run, open_lake
from ticdc_local.cli.project import existing_lake, feed_files, open_reader
from ticdc_local.cli.sql_result import Format, Printing
from ticdc_local.cli.sql_statement import check_reads, complete
from ticdc_local.sql_text import sql_statements

PROMPT, MORE = "sql> ", "  -> "
ROWS, WIDTH = 20, 40
_LEAVE = ("quit", "exit")
_AS_OF = re.compile(r"as\s+of\s+(?P<feed>\w+)\s+(?P<tso>[0-9]{1,99})", re.IGNORECASE)
_BEGINS_AS_OF = re.compile(r"as\s+of\b", re.IGNORECASE)
"""No statement of Spark's begins so."""
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_HINT = (
    "For a table's changes read silver.NAME instead of gold.NAME. For an earlier state: AS OF <feed> <tso>; then NAME "
    "without a schema. End statements with ; and leave with quit or Ctrl-D. Ctrl-C drops what is typed, or cancels the "
    "statement that runs; a second Ctrl-C during one statement leaves, too."
)


_UNSETTLED = (
    "its views are not made: a run that died published names which its live tables have not got yet. The next run of "
    "gold finishes that:"
)
TABLE = Printing()
AsOfViews = dict[str, list[str]]
"""The temporary views that the last AS OF of each feed made."""
EXAMPLES = """examples:
  ticdc-lake sql                                     a prompt
  ticdc-lake sql -e "SELECT * FROM ops.feeds" --format markdown
  ticdc-lake sql --format csv < report.sql > report.csv
  PAGER='less -S' ticdc-lake sql --rows all          a prompt that shows all rows, page by page"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    place_arguments(parser)
    parser.add_argument(
        "-e", dest="statements", action="append", default=[], metavar="STATEMENT", help="run this and end; repeatable"
    )
    parser.add_argument(
        "--format", type=one_of(Format), choices=tuple(Format), default=Format.TABLE, help="of results (default: table)"
    )
    parser.add_argument("--json", action="store_const", const=Format.JSON, dest="format", help="--format json")
    parser.add_argument(
        "--rows", type=_row_limit, metavar="N|all", help=f"of each result (default: {ROWS} of a table, else all)"
    )
    parser.add_argument(
        "--width", type=positive, metavar="N", help=f"cut longer values of a table (at a prompt: {WIDTH})"
    )


def run(options: argparse.Namespace) -> int:
    """Runs the statements of ``-e``, of standard input, or those typed at a prompt; 1 if one of a script fails."""
    if not options.statements and sys.stdin is None:  # Python has none where the shell closed it: <&-
        raise ConfigError("standard input is closed; give a statement with -e")
    existing_lake(options)  # before a script is waited for
    is_script = bool(options.statements) or not sys.stdin.isatty()
    statements = _statements(options) if is_script else []
    if is_script and not statements:
        return 0
    lake = open_lake(options, reads_only=True)
    with progress("making the views"):
        feeds = refresh_views(options, lake)
    printing, shown = printing_of(options, is_script=is_script), _Shown(options, lake, feeds)
    if is_script:
        return run_all(lake, iter(statements), printing, shown.follow)
    note("\n".join([*(_feed_line(lake, feed, now) for feed, now in feeds.items() if now.number), _HINT]))
    made: AsOfViews = {}
    with line_editing(names(lake)), open_prompt():
        for statement in typed(_read_line):
            with cancelled_by_interrupt(lake.spark.sparkContext.cancelAllJobs):
                if shown.follow():
                    execute(lake, statement, printing, made)
    return 0


def _statements(options: argparse.Namespace) -> list[str]:
    """Returns the statements of ``-e``, else of standard input. Raises ConfigError if they are not UTF-8."""
    try:
        texts = options.statements or [sys.stdin.read()]
        "".join(texts).encode()  # where the locale is C, other bytes are surrogates
    except UnicodeError:
        given = "-e" if options.statements else "standard input"
        raise ConfigError(f"{given}: expected SQL in UTF-8, found other bytes") from None
    return [*chain.from_iterable(map(sql_statements, texts))]


def printing_of(options: argparse.Namespace, *, is_script: bool) -> Printing:
    """Returns how results are printed: a table's first rows, at a prompt cut and paged; all rows of any other
    format."""
    default = ROWS if options.format is Format.TABLE else None
    rows = default if options.rows is None else options.rows or None
    return Printing(options.format, rows, options.width or (None if is_script else WIDTH), pages=not is_script)


def _row_limit(text: str) -> int:
    """Returns a number of rows, 0 for ``all``. Raises argparse.ArgumentTypeError."""
    return 0 if text == "all" else positive(text)


def names(lake: Lake) -> list[str]:
    """Returns the tables and views that a statement may name, without those that gold keeps for itself."""
    all_names = (f"{schema}.{name}" for layer, schema in lake.schemas.items() for name in lake.tables(layer))
    return [name for name in all_names if not (is_internal(name) or view_marker.is_marker_view(name))]


def refresh_views(options: argparse.Namespace, lake: Lake) -> dict[str, Published]:
    """Makes all views of the published feeds, which this session's catalog has forgotten; returns what each published,
    nothing for one whose live tables do not have their published names. delta-rs reads what is published: in
    milliseconds, where Spark takes seconds."""
    files, reader = feed_files(options), open_reader(options)
    feeds = {feed: published(reader, feed) for feed in published_feeds(reader)}
    feed_views.create_views(lake, *(feed for feed in feeds if feed in files))
    for feed, now in [*feeds.items()]:
        if feed not in files:
            note(f"{feed}: no file in resources/feeds, so its views are not made")
            continue
        events_table.create_views(lake, feed)
        feeds[feed] = _show(options, lake, feed, now)
    return feeds


def _show(options: argparse.Namespace, lake: Lake, feed: str, now: Published, *, again: bool = True) -> Published:
    """Makes a feed's views show the state ``now``. If a run publishes another one meanwhile, and drops or renames
    tables, tries once more (``again``), with that. Returns the state that the views show: an empty one, and says so, if
    live tables do not have their published names."""
    if not has_published_names(open_reader(options), live_names(now.tables.values())):
        note(f"{feed}: {_UNSETTLED} {in_same_place(options, f'ticdc-lake run --feed {feed}')}")
        return Published()
    try:
        views.show(lake, feed_run(options, feed, lake).gold_config, now)
    except ConfigError as error:
        note(f"{feed}: its views are not made: {error}")
    except (AnalysisException, Py4JJavaError):  # the latter where the folder is gone
        later = newest(open_reader(options), feed, now)
        if not again or later.number == now.number:
            raise
        lake.refresh()
        table_views.drop(lake, names_ever(lake, feed), layers=(Layer.GOLD,))  # they may show rows of other tables now
        return _show(options, lake, feed, later, again=False)
    return now


def follow_renames(
    options: argparse.Namespace, lake: Lake, seen: Mapping[str, Published]
) -> dict[str, Published] | None:
    """Makes the views again if a run of another process has made, renamed or dropped live tables since ``seen``: a view
    reads a version of the folder of its table's name, which may be another table's now. Returns what is published;
    None, and prints why, if the views could not be made."""
    try:
        return _with_new_names(options, lake, seen)
    except (PySparkException, Py4JJavaError, ConfigError) as error:
        note(f"not run: the views of renamed tables could not be made: {first_line(error)}")
        return None


@dataclass(slots=True)
class _Shown:
    """What a session's views show."""

    options: argparse.Namespace
    lake: Lake
    feeds: Mapping[str, Published]

    def follow(self) -> bool:
        """Makes the views again as `follow_renames`; false, once it is printed why, if a statement may not run."""
        shown = follow_renames(self.options, self.lake, self.feeds)
        if shown is not None:
            self.feeds = shown
        return shown is not None


def _with_new_names(options: argparse.Namespace, lake: Lake, seen: Mapping[str, Published]) -> dict[str, Published]:
    reader = open_reader(options)
    shown = {feed: seen.get(feed, Published()) for feed in published_feeds(reader)}
    now = {feed: newest(reader, feed, known) for feed, known in shown.items()}
    names = {feed: live_names(each.tables.values()) for feed, each in now.items()}
    renamed = [feed for feed, known in shown.items() if names[feed] != live_names(known.tables.values())]
    for feed in renamed:  # else its views show rows of other tables until they are made again
        if shown[feed].number:
            table_views.drop(lake, names_ever(lake, feed), layers=(Layer.GOLD,))
    if any(has_published_names(reader, names[feed]) for feed in renamed):
        with progress("making the views"):
            lake.refresh()
            return refresh_views(options, lake)
    return {**now, **dict.fromkeys(renamed, Published())}


def _feed_line(lake: Lake, feed: str, now: Published) -> str:
    """Returns a feed's watermark and the names of its tables."""
    shown = [state.lake_name for state in now.tables.values() if state.has_live_table]
    layers = {name: Layer.GOLD if lake.exists(Layer.GOLD, name) else Layer.LIVE for name in shown}
    names = ", ".join(lake.table(layer, name).replace("`", "").partition(".")[2] for name, layer in layers.items())
    return f"{feed} as of {time_of(now.tso):%Y-%m-%d %H:%M:%S} UTC: {names}"


def run_all(
    lake: Lake, statements: Iterator[str], printing: Printing = TABLE, follow: Callable[[], bool] = lambda: True
) -> int:
    """Runs statements up to ``quit`` or the first that fails; 1 if one does, and the rest is named. ``follow`` is asked
    before each, since a report may run for hours beside runs that rename tables; where it returns false, that one is
    not run, either."""
    pending, made = takewhile(_is_sql, statements), AsOfViews()
    for statement in pending:
        may_run = follow()
        if may_run and execute(lake, statement, printing, made):
            continue
        for left in pending if may_run else chain([statement], pending):
            print(f"not run: {' '.join(left.split())}", file=sys.stderr)
        return 1
    return 0


def execute(lake: Lake, statement: str, printing: Printing = TABLE, made: AsOfViews | None = None) -> bool:
    """Runs one statement that reads and prints its result, or its error as one line; true if it went well. ``made``:
    the views of AS OF, which another AS OF replaces."""
    plain = _COMMENT.sub(" ", statement).strip()
    try:
        if _BEGINS_AS_OF.match(plain):
            print(as_of_line(lake, *_feed_and_tso(plain), {} if made is None else made), file=printing.remarks)
            return True
        check_reads(statement)
        result = lake.spark.sql(statement)
        if result.columns:
            printing.show(result)
        else:
            print("done", file=printing.remarks)
    except (PySparkException, Py4JJavaError, ConfigError) as error:
        print(f"error: {first_line(error)}", file=sys.stderr, flush=True)
        return False
    return True


def _feed_and_tso(statement: str) -> tuple[str, int]:
    """Returns what an AS OF names. Raises ConfigError if it is not a feed and a TSO: Spark would only say that it is no
    SQL."""
    if found := _AS_OF.fullmatch(statement):
        return found["feed"], int(found["tso"])
    found_text = " ".join(statement.split())
    raise ConfigError(f"AS OF: expected AS OF <feed> <tso>, such as AS OF crm 470613127188971521, found {found_text}")


def as_of_line(lake: Lake, feed: str, tso: int, made: AsOfViews) -> str:
    """Makes temporary views of a feed's tables as of a TSO, and says which, and which of them are behind it; drops
    those ``made`` of tables that did not exist then. Raises ConfigError if there is no such state."""
    if tso > LARGEST:
        raise ConfigError(f"AS OF: expected a TSO, at most {LARGEST}, found {tso}")
    snapshot = as_of(lake.spark, feed, tso, lake=lake)
    earlier = made.get(feed, [])
    made[feed] = snapshot.create_views()
    for name in {*earlier} - {*made[feed]}:
        lake.spark.catalog.dropTempView(name)
    when = f"{snapshot.time:%Y-%m-%d %H:%M:%S} UTC (TSO {snapshot.tso})"
    text = f"{feed} as of {when}; read these without the gold. prefix: {', '.join(made[feed])}"
    return f"{text}; behind: {snapshot.behind_text}" if snapshot.behind else text


def typed(read_line: Callable[[str], str | None]) -> Iterator[str]:
    """Yields statements from lines, each once its ``;`` is read, until ``quit`` or the end (``read_line`` returns
    None). KeyboardInterrupt of ``read_line`` drops the lines of a statement that is not complete."""
    text = ""
    while True:
        try:
            line = read_line(MORE if text.strip() else PROMPT)
        except KeyboardInterrupt:
            text = ""
            continue
        if line is None:
            break
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


@contextmanager
def line_editing(known: Sequence[str]) -> Iterator[None]:
    """Provides `input` within it with a history, also of earlier sessions, and Tab completes names, where Python has
    readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    with suppress(OSError, RuntimeError):  # RuntimeError: of a user without a home folder
        readline.read_history_file(_HISTORY.expanduser())
    readline.set_completer_delims(" \t\n,()=<>;")
    readline.set_completer(lambda text, number: dict(enumerate(n for n in known if n.startswith(text))).get(number))
    # macOS has another library under the same name.
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    try:
        yield
    finally:
        with suppress(OSError, RuntimeError):
            readline.set_history_length(1000)
            readline.write_history_file(_HISTORY.expanduser())


_HISTORY = Path("~/.ticdc_lake_history")


def _read_line(prompt: str) -> str | None:
    """Reads a line that is typed; None at the end of input. Raises KeyboardInterrupt on Ctrl-C."""
    try:
        return read_until_interrupt(lambda: input(prompt))
    except EOFError:
        print()
        return None
    except KeyboardInterrupt:
        print()
        raise
