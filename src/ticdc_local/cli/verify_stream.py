"""``ticdc-lake verify-stream``: recorded streams through the whole pipeline, compared with TiDB's answers."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from ticdc_codec.errors import ConfigError
from ticdc_codec.options import Zone, typed
from ticdc_local.cli.arguments import local_path, named_values, pairs_argument, positive, writing
from ticdc_local.cli.notice import note
from ticdc_local.temporary import temporary_folder
from ticdc_testkit.recorded_streams import RecordedStream, recorded_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker
    from ticdc_local.verify_stream import Verdict

_SHOWN = 20
_REMARK = 80
"""Characters of a remark in the summary; the line of progress has it whole."""
_HEADS = (
    "stream",
    "file",
    "protocol",
    "watermarks",
    "equal",
    "rows",
    "differing cells",
    "lost on the wire",
    "seconds",
    "remark",
)
EXAMPLES = """examples:
  ticdc-lake verify-stream tests/data/streams/tiflow-basic --every 8
  ticdc-lake verify-stream tests/data/streams --file craft.jsonl.gz --json"""


@dataclass(slots=True, kw_only=True)
class Result:
    """What came out of one file."""

    stream: RecordedStream
    watermarks: int = 0
    """The number of watermarks that were compared."""
    equal: int = 0
    rows: int = 0
    """Rows of TiDB's answers, over all watermarks."""
    differences: int = 0
    lost: int = 0
    """Cells whose values the protocol cannot carry."""
    seconds: float = 0.0
    remark: str = ""
    """Why the file was not compared, or not to its end."""
    failed: bool = False

    def add(self, verdict: Verdict) -> None:
        """Counts one watermark."""
        self.watermarks += 1
        self.equal += not verdict.differences
        self.rows += verdict.rows
        self.differences += len(verdict.differences)
        self.lost += verdict.lost

    @property
    def good(self) -> bool:
        """True if nothing differs and nothing failed; a file that cannot be compared is no fault."""
        return self.equal == self.watermarks and not self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What to verify, where, and how much of it."""

    streams: Sequence[RecordedStream]
    lake: Path
    every: int
    started: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Notes a line with the seconds since the start."""
        note(f"[{time.monotonic() - self.started:6.1f} s] {text}")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "folder",
        type=local_path,
        help="folder with stream.json, message files and answers.jsonl.gz, or a folder of such",
    )
    parser.add_argument(
        "--file", action="append", default=[], help="only message files of this name, such as craft.jsonl.gz"
    )
    parser.add_argument("--every", type=positive, default=1, metavar="N", help="compare each Nth answer, and the last")
    pairs_argument(parser, "--option", "a further option of the feeds that have it")
    parser.add_argument(
        "--ddl-time-zone",
        type=_time_zone,
        metavar="ZONE",
        help="time zone of the sessions that ran DDL (gold.ddl_time_zone); stream.json has the server's alone",
    )
    parser.add_argument("--markdown", type=local_path, metavar="FILE", help="write the summary into this file")
    parser.add_argument(
        "--json", action="store_true", help="print a JSON list with one object per file instead of the table"
    )
    parser.add_argument("--lake", type=local_path, help="folder to leave the lake in (default: a temporary one)")


def _time_zone(text: str) -> str:
    """Returns the name of a time zone. Raises argparse.ArgumentTypeError for an unknown one."""
    try:
        zone: ZoneInfo = typed(Zone, text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return zone.key


def run(options: argparse.Namespace) -> int:
    """Prints a summary, and notes each watermark of a single file, or one line each of several; 1 if any cell
    differs."""
    found = recorded_streams(options.folder, named_values(options.option, "--option"))
    streams = [replace(stream, ddl_time_zone=options.ddl_time_zone) for stream in chosen(found, options.file)]
    if options.markdown is not None:
        with writing("--markdown", options.markdown):  # now, and not when all streams have run
            options.markdown.open("a").close()
    results = _verify(_Task(streams=streams, lake=options.lake or temporary_folder(), every=options.every))
    text = summary(results)
    print(json.dumps([*map(_result_object, results)]) if options.json else text)
    if options.markdown is not None:
        options.markdown.write_text(f"{text}\n", encoding="utf-8")
    return 0 if all(result.good for result in results) else 1


def chosen(streams: Sequence[RecordedStream], files: Sequence[str]) -> list[RecordedStream]:
    """Returns the streams of these files, of all without names. Raises ConfigError for an unknown file."""
    names = sorted({stream.file for stream in streams})
    if unknown := [file for file in files if file not in names]:
        raise ConfigError(f"--file: expected one of {', '.join(names)}, found {unknown[0]!r}")
    return [stream for stream in streams if not files or stream.file in files]


def _verify(task: _Task) -> list[Result]:
    """Verifies all files, one after the other, each as a feed of its own in one lake."""
    from ticdc_local.broker import Broker
    from ticdc_local.cli.open_lake import quiet_session

    spark = quiet_session(task.lake)
    results: list[Result] = []
    with Broker(task.lake / "kafka") as broker:
        for number, stream in enumerate(task.streams, start=1):
            result = Result(stream=stream)
            began = time.monotonic()
            _verify_one(task, spark, broker, result)
            result.seconds = time.monotonic() - began
            task.say(f"{number} of {len(task.streams)}  {stream}: {state(result)}")
            results.append(result)
    spark.stop()
    return results


def _verify_one(task: _Task, spark: SparkSession, broker: Broker, result: Result) -> None:
    """Fills the result; an error in one file becomes its remark, and the others continue."""
    from pyspark.errors import PySparkException

    from ticdc_codec.errors import LakehouseError
    from ticdc_lakehouse.policy import Mode
    from ticdc_local.cli.job_text import cause_line
    from ticdc_local.verify_stream import FEED, load_stream, mode_of, verify

    stream = result.stream
    if mode_of(stream) is Mode.EVENTUAL:
        result.remark = "final state alone: no watermarks (gold mode eventual)"
    name = FEED if len(task.streams) == 1 else f"{FEED}_{1 + task.streams.index(stream)}"
    try:
        loaded = load_stream(spark, broker, stream, task.lake, name=name)
        for verdict in verify(loaded, stream, task.every):
            result.add(verdict)
            _show(task, verdict)
    except (LakehouseError, PySparkException) as error:
        result.failed, result.remark = True, cause_line(error)


def _show(task: _Task, verdict: Verdict) -> None:
    """Prints a watermark's differences, and for a single file also that it has none."""
    if len(task.streams) == 1 or verdict.differences:
        outcome = "equal" if not verdict.differences else f"{len(verdict.differences)} differences"
        task.say(f"watermark {verdict.watermark}: {verdict.tables} tables, {verdict.rows} rows: {outcome}")
    for difference in verdict.differences[:_SHOWN]:
        note(f"  {difference}")
    if len(verdict.differences) > _SHOWN:
        note(f"  and {len(verdict.differences) - _SHOWN} more")


def state(result: Result) -> str:
    """Returns one file's outcome on a line."""
    if not result.watermarks:
        return f"FAILED: {result.remark}" if result.failed else f"not compared: {result.remark}"
    compared = f"gold equals TiDB at {result.equal} of {result.watermarks} watermarks ({result.seconds:.1f} s)"
    return f"{compared}, then FAILED: {result.remark}" if result.failed else compared


def _result_object(result: Result) -> dict[str, object]:
    """Returns one file's outcome as a JSON object."""
    return {
        "stream": result.stream.folder.name,
        "file": result.stream.file,
        "protocol": result.stream.protocol,
        "good": result.good,
        "watermarks": result.watermarks,
        "equal": result.equal,
        "rows": result.rows,
        "differing_cells": result.differences,
        "lost_on_the_wire": result.lost,
        "seconds": round(result.seconds, 1),
        "remark": result.remark,
    }


def summary(results: Sequence[Result]) -> str:
    """Returns all files in a Markdown table."""
    lines = [_HEADS, *map(_cells, results)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(_HEADS))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(_line(cells, widths) for cells in lines)


def _cells(result: Result) -> tuple[str, ...]:
    stream = result.stream
    compared = (result.watermarks, result.equal, result.rows, result.differences, result.lost, f"{result.seconds:.1f}")
    remark = shorten(f"FAILED: {result.remark}" if result.failed else result.remark, _REMARK).replace("|", "\\|")
    numbers = map(str, compared) if result.watermarks else ("",) * len(compared)
    return stream.folder.name, stream.file.removesuffix(".jsonl.gz"), stream.protocol, *numbers, remark


def _line(cells: Iterable[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"
