"""``ticdc-lake generate``: a made-up changefeed, into Kafka or a file, and the feed file that reads it."""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from ticdc_codec.errors import ConfigError
from ticdc_codec.message import ClaimCheck, Message, StoredObject
from ticdc_codec.options import LargeMessage, SinkOptions, option_names, sink_options
from ticdc_codec.protocols import SPELLINGS, protocol_named
from ticdc_lakehouse.counted import counted
from ticdc_local.cli.arguments import local_path, named_values, not_empty, one_of, pairs_argument, positive, writing
from ticdc_local.cli.notice import note, progress
from ticdc_testkit.workload import WORKLOADS, workload_named
from ticdc_testkit.workload.stream import Changefeed, Dispatch, Interval, intervals

_ROWS = 10_000
_SERVERS = "localhost:9092"

EXAMPLES = """examples:
  ticdc-lake generate --workload shop --protocol canal-json --bootstrap-servers localhost:9092 --topic crm
  ticdc-lake generate --workload sysbench --protocol simple --option encoding-format=avro --file - --rows 10"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("--workload", required=True, help=f"one of {', '.join(WORKLOADS)}")
    parser.add_argument("--protocol", required=True, help=f"one of {SPELLINGS}")
    pairs_argument(parser, "--option", "a sink-uri option, or time-zone; enable-tidb-extension is true if not given")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--file", help="write JSON lines that `ticdc-lake decode` reads; - is standard output")
    place.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="write into this Kafka, without security")
    parser.add_argument("--topic", type=not_empty, help="created if it does not exist (default: the workload's name)")
    parser.add_argument("--partitions", type=positive, default=1, metavar="N", help="of the topic (default: 1)")
    parser.add_argument(
        "--dispatch",
        type=one_of(Dispatch),
        choices=tuple(Dispatch),
        default=Dispatch.INDEX_VALUE,
        help="rows to partitions by (default: index-value)",
    )
    parser.add_argument(
        "--rows",
        type=positive,
        default=_ROWS,
        metavar="N",
        help="row changes, and the rest of the transaction that has the Nth: at least 20 of shop, 100 of sysbench "
        f"(default: {_ROWS})",
    )
    parser.add_argument("--rate", type=positive, metavar="N", help="row changes a second, at most")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the same seed gives the same bytes")
    _add_file_arguments(parser)


def _add_file_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--schema-file",
        type=local_path,
        metavar="FILE",
        help="write CREATE TABLE here and not into the stream: the tables existed before the changefeed",
    )
    parser.add_argument(
        "--feed-file",
        type=local_path,
        metavar="FILE",
        help="write the feed that reads the stream, as the file NAME.yml of a feed NAME",
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing --schema-file and --feed-file")


def run(options: argparse.Namespace) -> int:
    """Writes the stream, and notes how many messages, row changes, transactions and watermarks it has."""
    protocol_named(options.protocol)
    protocol = options.protocol.replace("-", "_")
    given = sink_values(protocol, named_values(options.option, "--option"))
    feed = _changefeed(options, protocol, given)
    topic = options.topic or feed.workload
    _refuse_to_overwrite(options)
    if options.bootstrap_servers is not None:
        _check_brokers(options.bootstrap_servers)
    output = _prepared(options, feed, given, topic)
    written = Written()
    stream = written.counted(paced(stored(intervals(feed, options.rows), feed.options), options.rate))
    if output is None:
        with progress(f"writing {options.rows:,} row changes"):
            _to_kafka(options.bootstrap_servers, topic, options.partitions, stream)
    else:
        with output as file:
            file.writelines(lines(stream, topic))
    note(f"{written.text()} to {options.file or f'topic {topic}'}")
    for path in filter(None, (options.schema_file, options.feed_file)):
        note(f"wrote {path}")
    if options.file is None and (command := next_command(options, topic)):
        note(f"Next: {command}")
    return 0


def _changefeed(options: argparse.Namespace, protocol: str, given: Mapping[str, str]) -> Changefeed:
    """Returns the changefeed to make up. Raises ConfigError for an unknown workload, and for options that cannot be
    encoded."""
    feed = Changefeed(
        workload=options.workload,
        protocol=protocol,
        options=sink_options(protocol, given),
        partitions=options.partitions,
        dispatch=options.dispatch,
        creates=options.schema_file is None,
        seed=options.seed,
    )
    workload_named(feed.workload)
    protocol_named(protocol).encode([], feed.options)
    return feed


def next_command(options: argparse.Namespace, topic: str) -> str | None:
    """Returns the command that makes tables of the stream: a run, once there is a feed file; None if the run would not
    find that file."""
    if options.feed_file is not None:
        folder = options.feed_file.parent.resolve()
        found = Path("databricks.yml").is_file() and folder == Path("resources", "feeds").resolve()
        return f"ticdc-lake run --feed {options.feed_file.stem}" if found else None
    feed = re.sub("[^a-z0-9_]", "_", topic.lower())
    words = ["--protocol", options.protocol, "--topic", topic, "--bootstrap-servers", options.bootstrap_servers]
    for pair in options.option:
        name, _, value = pair.partition("=")
        words += ["--time-zone", value] if name == "time-zone" else ["--option", pair]
    return shlex.join(["ticdc-lake", "feed", "new", feed if feed[0].isalpha() else f"feed_{feed}", *words])


def _refuse_to_overwrite(options: argparse.Namespace) -> None:
    """Raises ConfigError for a schema file or feed file that exists, since it may have been edited, and for a feed file
    that no command would find."""
    feed_file = options.feed_file
    if feed_file is not None and feed_file.suffix != ".yml":
        raise ConfigError(f"--feed-file: {feed_file}: expected the ending .yml")
    for option, path in (("--schema-file", options.schema_file), ("--feed-file", feed_file)):
        if path is not None and path.is_file() and not options.force:
            raise ConfigError(f"{option}: {path}: exists already; --force overwrites it")


def _check_brokers(text: str) -> None:
    """Raises ConfigError if no broker takes a connection."""
    from ticdc_lakehouse.config.kafka import Servers
    from ticdc_local.kafka import check_brokers

    try:
        servers = Servers.parse(text)
    except ValueError:
        raise ConfigError(f"--bootstrap-servers: expected {Servers.expected}, found {text!r}") from None
    check_brokers(servers, "--bootstrap-servers")


def sink_values(protocol: str, given: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of the changefeed: those given, and watermarks where an option turns them on."""
    own = {"enable-tidb-extension": "true"} if "enable-tidb-extension" in option_names(protocol) else {}
    return {**own, **given}


def _prepared(
    options: argparse.Namespace, feed: Changefeed, given: Mapping[str, str], topic: str
) -> AbstractContextManager[TextIO] | None:
    """Writes the files that describe the stream. Returns the stream's own file, opened; None if it goes into Kafka.

    If one of them cannot be written, or the feed file is invalid, the files that describe the stream are as before.
    """
    from ticdc_local.feed_file import restored_on_error

    with restored_on_error(*filter(None, (options.schema_file, options.feed_file))):
        _describe(options, feed, given, topic)
        return None if options.file is None else _opened(options.file)


def _describe(options: argparse.Namespace, feed: Changefeed, given: Mapping[str, str], topic: str) -> None:
    """Writes the schema file and the feed file, where the options name them."""
    from ticdc_lakehouse.policy import Mode
    from ticdc_local.feed_file import gold_keys, kept_if_readable, write_feed_file, yaml_value

    if options.schema_file is not None:
        with writing("--schema-file", options.schema_file):
            options.schema_file.parent.mkdir(parents=True, exist_ok=True)
            options.schema_file.write_text(workload_named(feed.workload)[0], encoding="utf-8")
    if options.feed_file is not None:
        schema = options.schema_file and os.path.relpath(options.schema_file, options.feed_file.parent)
        with writing("--feed-file", options.feed_file), kept_if_readable(options.feed_file):
            write_feed_file(
                options.feed_file,
                protocol=feed.protocol,
                options={name: yaml_value(text) for name, text in given.items() if name != "time-zone"},
                time_zone=feed.options.time_zone.key,
                bootstrap_servers=options.bootstrap_servers or _SERVERS,
                topic=topic,
                schema_file=schema,
                gold=gold_keys(Mode.WATERMARKS if feed.has_watermarks else Mode.EVENTUAL),
            )


def paced(stream: Iterable[Interval], rate: int | None) -> Iterator[Interval]:
    """Yields the stream, waiting so that no more than ``rate`` row changes come per second."""
    began, rows = time.monotonic(), 0
    for interval in stream:
        rows += interval.rows
        if rate is not None:
            time.sleep(max(0.0, began + rows / rate - time.monotonic()))
        yield interval


def stored(stream: Iterable[Interval], options: SinkOptions) -> Iterator[Interval]:
    """Yields the stream; the claim-check objects of an interval are stored before its messages are yielded."""
    if options.large_message_handle_option is not LargeMessage.CLAIM_CHECK or options.claim_check_storage_uri is None:
        yield from stream
        return
    from ticdc_codec.claim_check_storage import ObjectStore

    store = ObjectStore(options.claim_check_storage_uri)
    for interval in stream:
        for each in _claim_check_objects(interval):
            store.write(each.name, each.content)
        yield interval


def _claim_check_objects(interval: Interval) -> Iterator[StoredObject]:
    """Yields the claim-check objects that the messages of an interval name."""
    for messages in interval.messages.values():
        for message in messages:
            if isinstance(message, ClaimCheck):
                yield from message.stored


@dataclass(slots=True)
class Written:
    """Counts what is written."""

    counts: Counter[str] = field(default_factory=Counter)
    started: float = field(default_factory=time.monotonic)

    def counted(self, stream: Iterable[Interval]) -> Iterator[Interval]:
        """Yields the stream, counted as it is read."""
        for interval in stream:
            self.counts["message"] += sum(map(len, interval.messages.values()))
            self.counts["row change"] += interval.rows
            self.counts["transaction"] += interval.transactions
            self.counts["watermark"] += 1
            yield interval

    def text(self) -> str:
        """Returns the counts, and the time it took."""
        counts = ", ".join(counted(count, what) for what, count in self.counts.items())
        return f"{counts} in {time.monotonic() - self.started:.1f} s"


def lines(stream: Iterable[Interval], topic: str) -> Iterator[str]:
    """Yields a JSON line for each message."""
    offsets: Counter[int] = Counter()
    for interval in stream:
        for partition, messages in interval.messages.items():
            for message in messages:
                yield _line(message, topic, partition, offsets[partition])
                offsets[partition] += 1


def _line(message: Message, topic: str, partition: int, offset: int) -> str:
    key, value = (None if part is None else base64.b64encode(part).decode() for part in (message.key, message.value))
    members = {"topic": topic, "partition": partition, "offset": offset, "key": key, "value": value}
    return json.dumps(members, separators=(",", ":")) + "\n"


def _to_kafka(servers: str, topic: str, partitions: int, stream: Iterable[Interval]) -> None:
    from ticdc_local.kafka import KafkaMessage, ensure_topic, produce

    ensure_topic(servers, topic, partitions)
    produce(
        servers,
        topic,
        (
            KafkaMessage(partition=partition, key=message.key, value=message.value)
            for interval in stream
            for partition, messages in interval.messages.items()
            for message in messages
        ),
    )


def _opened(name: str) -> AbstractContextManager[TextIO]:
    """Returns the file, or the terminal. Raises ConfigError if it cannot be written."""
    if name == "-":
        if not sys.stdout:  # Python has none where the shell closed it: >&-
            raise ConfigError("--file: -: cannot be written: standard output is closed")
        return nullcontext(sys.stdout)
    with writing("--file", Path(name)):
        return Path(name).open("w", encoding="utf-8")
