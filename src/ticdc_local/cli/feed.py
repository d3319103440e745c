"""``ticdc-lake feed``: writes a feed file, and looks at a feed's topics before anything runs."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Ddl, Event, Failure, Resolved, RowChange
from ticdc_codec.inspection import inspect
from ticdc_codec.options import has_watermarks, sink_options
from ticdc_codec.protocols import SPELLINGS, protocol_named, spelling
from ticdc_lakehouse.config.feed import FEED_NAME, FEED_NAME_WORDS, Feed
from ticdc_lakehouse.config.layer_settings import decoding_of, gold_config_of
from ticdc_lakehouse.counted import counted
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.gold.window_start import check_filter
from ticdc_lakehouse.planning.planning_input import left_out
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.silver.first_messages import events_in
from ticdc_local.cli.arguments import (
    in_same_place,
    lake_root,
    named_values,
    pairs_argument,
    place_arguments,
    refuse,
    writing,
)
from ticdc_local.cli.generate import sink_values
from ticdc_local.cli.inspect import print_tree
from ticdc_local.cli.notice import note, progress
from ticdc_local.cli.project import feed_named, feeds_folder, options_given
from ticdc_local.cli.status import LEFT_OUT
from ticdc_local.delta_reader import DeltaReader
from ticdc_local.feed_file import commented, kept_if_readable, yaml_value
from ticdc_local.preflight import ONLY_JAVA, Sample, problems, read_sample
from ticdc_local.runner.dbutils import Secrets
from ticdc_local.runner.display import without_controls

EXAMPLES = """examples:
  ticdc-lake feed new crm                   asks for what a feed needs, on a terminal
  ticdc-lake feed new crm --protocol canal-json --topic crm --bootstrap-servers localhost:9092
  ticdc-lake feed check crm"""

_NOT_READ = "nothing is read yet: with starting_offsets: latest a run reads what comes after the feed's first one"
_OF_NEW = ("protocol", "topic", "bootstrap_servers", "time_zone", "option", "include", "force")
"""The arguments that describe a new feed."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "action", choices=("new", "check"), help="new: write the feed's file; check: what a run needs, and its messages"
    )
    parser.add_argument("name", metavar="NAME", help="of the feed: letters a-z, digits and _; tables are named by it")
    place_arguments(parser)
    new = parser.add_argument_group("new")
    new.add_argument("--protocol", help=f"one of {SPELLINGS}")
    new.add_argument("--topic", action="append", help="of the changefeed; may be repeated (default: NAME)")
    new.add_argument("--bootstrap-servers", metavar="HOST:PORT,…", help="(default: localhost:9092)")
    new.add_argument("--time-zone", help="of the TiCDC server (default: UTC)")
    pairs_argument(new, "--option", "of the sink-uri; enable-tidb-extension is true if not given")
    new.add_argument("--include", action="append", metavar="PATTERN", help="tables, as crm.* (default: all)")
    new.add_argument("--force", action="store_true", help="overwrite an existing file")


def run(options: argparse.Namespace) -> int:
    """Writes or checks the file, and says what comes next."""
    if options.action == "new":
        return _new(options)
    refuse(options, _OF_NEW, "`feed check` does not take it: the feed's file says it")
    return _check(options)


def _new(options: argparse.Namespace) -> int:
    if not FEED_NAME.fullmatch(options.name):
        raise ConfigError(f"NAME: expected {FEED_NAME_WORDS}, found {options.name!r}")
    path = feeds_folder(options) / f"{options.name}.yml"
    if path.exists() and not options.force:
        raise ConfigError(f"{path}: exists already; --force overwrites it")
    text = _described(options)
    with writing("feed new", path), kept_if_readable(path):
        path.write_text(text, encoding="utf-8")
    print(f"wrote {path}")
    note(f"Next: {in_same_place(options, f'ticdc-lake feed check {options.name}')}")
    return 0


def _described(options: argparse.Namespace) -> str:
    """Returns the file's text, from the flags and from answers at the terminal. Raises ConfigError where a flag is
    missing and standard input is no terminal."""
    protocol = _given(options.protocol, "--protocol", f"protocol ({SPELLINGS})")
    protocol_named(protocol)
    key = protocol.replace("-", "_")
    given = sink_values(key, named_values(options.option, "--option"))
    return commented(
        options.name,
        protocol=spelling(protocol),
        options={name: yaml_value(text) for name, text in given.items()},
        time_zone=_given(options.time_zone, "--time-zone", "time zone of the TiCDC server", "UTC"),
        bootstrap_servers=_given(
            options.bootstrap_servers, "--bootstrap-servers", "Kafka's host:port", "localhost:9092"
        ),
        topics=options.topic or [_answer("--topic", "topic", options.name)],
        include=options.include or ["*.*"],
        mode=_mode(key, given),
    )


def _mode(protocol: str, given: Mapping[str, str]) -> Mode:
    """Returns the mode of gold that a changefeed with these options allows. The others are checked with the file."""
    extension = {name: text for name, text in given.items() if name == "enable-tidb-extension"}
    return Mode.WATERMARKS if has_watermarks(protocol, sink_options(protocol, extension)) else Mode.EVENTUAL


def _check(options: argparse.Namespace) -> int:
    feed = feed_named(options, options.name)
    print(f"{feed.name}: the file is right: {spelling(feed.protocol)}, mode {feed.gold.mode}")
    current = published(DeltaReader(lake_root(options)), feed.name)
    check_filter(gold_config_of(feed), current)
    for name in left_out(gold_config_of(feed), current):
        print(without_controls(f"{feed.name}: table {name}: {LEFT_OUT}"))
    with progress("asking the brokers"):
        sample = read_sample(feed, Secrets().get)
    if sample is None:
        print(f"{feed.name}: brokers answer; {ONLY_JAVA}, so that only a run can read them")
        return _next(options)
    print(f"{feed.name}: brokers answer at {', '.join(feed.bootstrap_servers)}; {topics_text(sample)}")
    with progress("asking the brokers"):
        problem = problems([feed], lake_root(options), Secrets().get).get(feed.name)
    if problem:
        raise ConfigError(problem)
    failed = 0
    if sample.messages:
        events = events_in(decoding_of(feed, {}), sample.messages)
        failed = sum(isinstance(event, Failure) for _, event in events)
        print(f"{feed.name}: first {counted(len(sample.messages), 'message')}: {_events_text([e for _, e in events])}")
        if others := _left_out_tables(feed, [e for _, e in events]):
            print(f"{feed.name}: of these, the key tables of the feed file leaves out {', '.join(others)}")
        shown = sample.messages[_telling(events)]
        print_tree(inspect(shown, feed.protocol, options_given(feed)).tree, sys.stdout)
    elif feed.begins_at_end:
        print(f"{feed.name}: {_NOT_READ}")
    else:
        print(f"{feed.name}: the topics are empty; a run waits for messages")
    return 1 if failed else _next(options)


def _next(options: argparse.Namespace) -> int:
    note(f"Next: {in_same_place(options, f'ticdc-lake run --feed {options.name}')}")
    return 0


def topics_text(sample: Sample) -> str:
    """Returns the topics with their partitions, on a line."""
    return ", ".join(
        f"topic {topic} has {counted(count, 'partition')}" for topic, count in sorted(sample.partitions.items())
    )


def _events_text(events: list[Event]) -> str:
    """Returns how many events of which kind, on a line; rows by table."""
    counts = Counter(_kind(event) for event in events)
    kinds = (counted(count, *kind) for kind, count in sorted(counts.items(), key=lambda item: -item[1]))
    return without_controls(", ".join(kinds))


def _telling(events: list[tuple[int, Event]]) -> int:
    """Returns the number of the message that says most: the first that does not decode, else that of the first row,
    else the first of all."""
    kinds = (Failure, RowChange)
    return next((number for kind in kinds for number, event in events if isinstance(event, kind)), 0)


def _left_out_tables(feed: Feed, events: list[Event]) -> list[str]:
    """Returns the tables whose rows the feed does not take: a wrong pattern leaves gold empty, and no later step
    fails."""
    seen = {(event.database, event.table) for event in events if isinstance(event, RowChange)}
    others = (f"{database}.{table}" for database, table in seen if not feed.tables.matches(database, table))
    return sorted(map(without_controls, others))


def _kind(event: Event) -> tuple[str, str]:
    """Returns what the event is called, first of one, then of several."""
    match event:
        case RowChange():
            return f"row of {event.database}.{event.table}", f"rows of {event.database}.{event.table}"
        case Ddl():
            return "DDL", "DDLs"
        case Resolved():
            return "watermark", "watermarks"
        case Failure():
            return f"does not decode ({event.reason})", f"do not decode ({event.reason})"
        case _:
            return "schema", "schemas"


def _given(value: str | None, flag: str, question: str, default: str | None = None) -> str:
    """Returns the flag's value, else the answer. One that is given and empty, as of a variable that is not set, stays:
    the file is refused, and no default is taken for it."""
    return _answer(flag, question, default) if value is None else value


def _answer(flag: str, question: str, default: str | None = None) -> str:
    """Returns the answer typed at the terminal; ``default`` for an empty line, and without a terminal.

    Raises ConfigError that names the flag if there is neither an answer nor a default.
    """
    asks = sys.stdin is not None and sys.stdin.isatty()
    while asks:
        print(f"{question}{'' if default is None else f' [{default}]'}: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if line.strip() or default is not None:
            return line.strip() or str(default)
        asks = line != ""
    if default is None:
        raise ConfigError(f"{flag}: expected a value, and there is no terminal to ask for it")
    return default
