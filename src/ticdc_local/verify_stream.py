"""A recorded stream through the real pipeline, gold compared with what TiDB held at each of its watermarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from ticdc_codec.name_case import fold
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.gold.time_travel import AsOf, as_of
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName, by_text
from ticdc_local.broker import Broker, recorded_messages
from ticdc_local.delta_reader import DeltaReader
from ticdc_local.feed_file import gold_keys, write_feed_file
from ticdc_local.runner.dbutils import Secrets
from ticdc_local.runner.job import local_parameters
from ticdc_testkit.comparison import LOST, Cell, Difference, differences, gold_rows
from ticdc_testkit.recorded_streams import Answer, RecordedStream, answers

FEED = "recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Gold at one watermark."""

    watermark: int
    tables: int
    rows: int
    differences: tuple[Difference, ...]
    lost: int = 0
    """Cells that differ because the protocol's wire cannot carry their values; not among the differences."""


_Rows = dict[tuple[str, int], list[tuple[Cell, ...]]]
"""Rows of gold by stable id and Delta version."""


def write_feed(stream: RecordedStream, feeds: Path, name: str, bootstrap_servers: str, topic: str) -> Path:
    """Writes the feed file (and schema file) that a user would write for this stream; returns the feed file's path."""
    path = feeds / f"{name}.yml"
    write_feed_file(
        path,
        protocol=stream.protocol,
        options=stream.options,
        time_zone=stream.time_zone,
        bootstrap_servers=bootstrap_servers,
        topic=topic,
        schema_file=f"{name}.sql",
        gold=gold_keys(mode_of(stream), stream.ddl_time_zone),
    )
    path.with_suffix(".sql").write_text(stream.create_statements(), encoding="utf-8")
    return path


def mode_of(stream: RecordedStream) -> Mode:
    """Returns the gold mode that a feed of this stream needs."""
    return Mode.WATERMARKS if stream.watermarks else Mode.EVENTUAL


def load_stream(
    spark: SparkSession, broker: Broker, stream: RecordedStream, lake_root: Path, *, name: str = FEED
) -> Run:
    """Writes the stream into the broker as a changefeed of its own, lands it and decodes it; returns the feed's run."""
    topic = f"{name}-{stream.folder.name}"
    broker.create_topic(topic, stream.partitions)
    broker.produce(topic, recorded_messages(stream.messages))
    feeds = lake_root / "feeds"
    write_feed(stream, feeds, name, broker.bootstrap_servers, topic)
    parameters = {**local_parameters(lake_root, lake_root, feeds), "feed": name}
    run = Run.from_parameters(spark, parameters, Secrets().get)
    run.bronze()
    run.silver()
    return run


def verify(run: Run, stream: RecordedStream, every: int = 1) -> Iterator[Verdict]:
    """Applies the feed up to each recorded watermark (each ``every``-th and the last) and compares all tables with the
    answer; a stream without watermarks is applied whole, and compared with the last answer."""
    seen: _Rows = {}
    known = list(answers(stream.folder))
    if mode_of(stream) is Mode.EVENTUAL:
        run.gold()
        yield verdict(run, known[-1], stream.time_zone, seen)
        return
    for number, answer in enumerate(known):
        if number % every == 0 or number == len(known) - 1:
            replace(run, until_tso=answer.watermark).gold()
            yield verdict(run, answer, stream.time_zone, seen)


def verdict(run: Run, answer: Answer, time_zone: str, seen: _Rows) -> Verdict:
    """Compares gold with the answer at its watermark. ``seen`` keeps the rows of each table and version, for the next
    call."""
    assert isinstance(run.lake, FolderLake)
    current = published(DeltaReader(run.lake.root), run.feed.name)
    eventual = run.feed.gold.mode is Mode.EVENTUAL
    newest = eventual or current.tso == answer.watermark  # which is read faster than an earlier one
    tables = as_of(run.lake.spark, run.feed.name, None if newest else answer.watermark, lake=run.lake)
    all_differences = [*_of_tables(run.feed.protocol, answer, tables, current.tables, time_zone, seen)]
    if tables.tso != answer.watermark and not eventual:
        all_differences.insert(0, _whole("*", f"watermark {answer.watermark}", f"watermark {tables.tso}"))
    differing = tuple(each for each in all_differences if not each.lost)
    return Verdict(
        watermark=answer.watermark,
        tables=len(answer.tables),
        rows=sum(len(table["rows"]) for table in answer.tables.values()),
        differences=differing,
        lost=len(all_differences) - len(differing),
    )


def _of_tables(
    protocol: str, answer: Answer, tables: AsOf, states: Mapping[TableName, TableState], time_zone: str, seen: _Rows
) -> Iterator[Difference]:
    known = {fold(text): states[name] for text, name in by_text(states).items()}
    found, wanted = ({fold(name): name for name in names} for names in (tables.tables, answer.tables))
    for name in sorted(found.keys() - wanted.keys()):
        yield _whole(found[name], "no such table", "a table")
    for name, expected in answer.tables.items():
        if fold(name) not in found:
            yield _whole(name, "a table", "none")
            continue
        state = known[fold(name)]
        if state.stop is not None:
            yield _whole(name, f"as of {answer.watermark}", f"as of {state.applied_tso}: {state.stop}")
            continue
        version = (state.stable_id, state.version)
        if version not in seen:
            seen[version] = gold_rows(tables[name], expected["columns"], time_zone)
        yield from differences(name, expected["columns"], expected["rows"], seen[version], LOST.get(protocol))


def _whole(table: str, expected: str, found: str) -> Difference:
    return Difference(table=table, row="*", column=None, expected=expected, found=found)
