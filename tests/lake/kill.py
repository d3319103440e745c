"""Kill -9 of the bundle's job at random moments: ``python tests/lake/kill.py [--runs 10] [--seed N]``.

A recorded stream goes into a topic part by part. After each part the job (bronze, silver, gold, by ``ticdc-lake run``)
starts as a process group of its own, in small batches, and is killed at a random moment of one of its tasks, the next
one once the moment was in it. In the end it may finish, and gold must be TiDB's answer, silver must hold every event
once, bronze every message once.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from changefeed import lake_in

from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.config.feed import load_feed
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.silver import events_table
from ticdc_local.broker import Broker, KafkaMessage, recorded_messages
from ticdc_local.runner.dbutils import Secrets
from ticdc_local.session import local_session
from ticdc_local.verify_stream import verdict, write_feed
from ticdc_testkit.recorded_streams import Answer, RecordedStream, answers, recorded_stream

PROJECT = Path(__file__).parents[2]
STREAM = PROJECT / "tests" / "data" / "streams" / "tiflow-bank"
FEED = "killed"
BATCH = 150
"""Kafka offsets a bronze batch: small, so that a run has several."""
TASKS = ("gold", "silver", "bronze")
_FINISHED = re.compile(r"^(\w+).*: finished in ([0-9.]+) s$", re.MULTILINE)
_STARTED = re.compile(r"^(\w+).*: started$", re.MULTILINE)


@dataclass(slots=True)
class Result:
    """What happened, and what was wrong in the end."""

    killed_in: list[str] = field(default_factory=list)
    """The task that each killed run was in."""
    finished: int = 0
    """Runs that were done before their time was up."""
    mistakes: tuple[str, ...] = ()


def run(folder: Path, broker: Broker, *, kills: int, seed: int) -> Result:
    """Kill the job so many times, let it finish, and look. ``folder`` is for the lake."""
    chance = random.Random(seed)
    stream = recorded_stream(STREAM, "craft.jsonl.gz", {"craft-float": "trust"})
    messages = list(recorded_messages(stream.messages))
    topic = f"{FEED}-{seed}-{os.getpid()}"
    broker.create_topic(topic, stream.partitions)
    write_feed(stream, folder / "feeds", FEED, broker.bootstrap_servers, topic)
    parts = _parts(messages, kills + 2)
    broker.produce(topic, next(parts))
    result = Result()
    until = _last(stream).watermark
    _job(folder, until)
    seconds = _seconds(folder)
    turns = deque(TASKS)
    while len(result.killed_in) < kills:
        broker.produce(topic, next(parts, []))
        task = _job(folder, until, (turns[0], chance.uniform(0, seconds[turns[0]])))
        seconds |= _seconds(folder)
        if task == turns[0]:
            turns.rotate(-1)
        if task is None:
            result.finished += 1
        else:
            result.killed_in.append(task)
            print(f"killed in {task}", flush=True)
    broker.produce(topic, itertools.chain.from_iterable(parts))
    _job(folder, until)
    result.mistakes = tuple(_mistakes(folder, stream, messages))
    return result


def _seconds(folder: Path) -> dict[str, float]:
    """What each task took that finished in the last run."""
    return {task: float(seconds) for task, seconds in _FINISHED.findall(_log(folder))}


def _parts(messages: list[KafkaMessage], count: int) -> Iterator[list[KafkaMessage]]:
    size = -(-len(messages) // count)
    return (messages[i : i + size] for i in range(0, len(messages), size))


def start(folder: Path, feed: str, until_tso: int, *arguments: str) -> subprocess.Popen[bytes]:
    """``ticdc-lake run`` on the lake in ``folder``, as a process group of its own that writes into ``run.log``."""
    command = [
        sys.executable,
        "-c",
        "import sys; from ticdc_local.cli import main; sys.exit(main())",
        *("run", "--feed", feed, "--lake", str(folder), "--param", f"feeds_root={folder / 'feeds'}"),
        *("--param", f"until_tso={until_tso}", *arguments),
    ]
    with (folder / "run.log").open("wb") as output:
        return subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )


def _job(folder: Path, until_tso: int, kill: tuple[str, float] | None = None) -> str | None:
    """Run the job; kill its process group so many seconds after a task has begun, and give the task it was in then."""
    job = start(folder, FEED, until_tso, "--param", f"max_offsets_per_trigger={BATCH}")
    if kill is not None:
        task, seconds = kill
        while job.poll() is None and task not in _STARTED.findall(_log(folder)):
            time.sleep(0.05)
        try:
            job.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            return _STARTED.findall(_log(folder))[-1]
    if job.wait():
        raise AssertionError(f"the job failed:\n{_log(folder)}")
    return None


def _log(folder: Path) -> str:
    return (folder / "run.log").read_text(encoding="utf-8", errors="replace")


def _mistakes(folder: Path, stream: RecordedStream, messages: list[KafkaMessage]) -> Iterator[str]:
    """What the lake has that is not right."""
    spark = local_session(folder)
    lake = lake_in(spark, folder, FEED)
    lake.register()
    events_table.create_tables(lake, FEED)  # the views, which a session's catalog forgets
    opened = Run(lake=lake, feed=load_feed(folder / "feeds" / f"{FEED}.yml"), secret=Secrets().get)
    yield from map(str, verdict(opened, _last(stream), stream.time_zone, {}).differences)

    sent = Counter(message.partition for message in messages)
    expected = sorted((partition, offset) for partition, count in sent.items() for offset in range(count))
    raw = spark.table(lake.table(Layer.BRONZE, f"{FEED}_messages")).select("partition", "offset").collect()
    if sorted(map(tuple, raw)) != expected:
        yield f"bronze: expected {len(expected)} messages, each once, found {len(raw)}, {len(set(raw))} different"
    ranges = spark.table(lake.table(Layer.BRONZE, f"{FEED}_offsets")).select("partition", "start_offset", "end_offset")
    reached = dict.fromkeys(sent, 0)
    for partition, start, end in sorted(map(tuple, ranges.collect())):
        if start != reached[partition]:
            yield f"bronze: expected a batch from offset {reached[partition]} of partition {partition}, found {start}"
        reached[partition] = end
    events = spark.table(lake.table(Layer.SILVER, f"{FEED}_events")).select("partition", "offset", "index").collect()
    wanted = _events(stream, messages)
    if len(events) != wanted or len(set(events)) != wanted:
        yield f"silver: expected {wanted} events, each once, found {len(events)}, {len(set(events))} different"
    accounting = spark.table(lake.table(Layer.SILVER, f"{FEED}_accounting")).where("messages <> decoded")
    yield from (f"accounting: {line}" for line in accounting.collect())


def _last(stream: RecordedStream) -> Answer:
    return deque(answers(stream.folder), maxlen=1).pop()


def _events(stream: RecordedStream, messages: list[KafkaMessage]) -> int:
    """How many events the messages are, decoded here without Spark."""
    decoder = Decoder(stream.protocol, sink_options(stream.protocol, stream.options))
    return int(decoder.decode([m.key for m in messages], [m.value for m in messages]).num_rows)


def main() -> int:
    """Run, print, and give 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description="Kill -9 of the job at random moments, then look whether all is right")
    parser.add_argument("--runs", type=int, default=10, help="kills (default: 10)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the random moments")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ticdc-kill-") as folder:
        lake = Path(folder) / "lake"
        lake.mkdir()
        with Broker(Path(folder) / "kafka") as broker:
            result = run(lake, broker, kills=options.runs, seed=options.seed)
    for mistake in result.mistakes:
        print(mistake)
    tasks = ", ".join(f"{count} in {task}" for task, count in Counter(result.killed_in).items())
    seconds = time.monotonic() - started
    print(f"{len(result.killed_in)} kills ({tasks}), {result.finished} runs done before theirs, {seconds:.0f} s")
    print("gold equals TiDB, nothing lost, nothing doubled" if not result.mistakes else "NOT RIGHT")
    return 1 if result.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
