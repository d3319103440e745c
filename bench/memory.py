"""Memory of the silver job: Python workers (peak resident set, VmHWM) and the JVM's heap, over streams that try both.

stream     ten micro-batches of the same size, one after the other: nothing may grow
batch      one micro-batch of very many messages
large      messages up to the largest that may come (16 MB), and one above: quarantined as message_too_large
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.cpu_time import java_pid, processes_below
from bench.generated_messages import Made, append, write
from bench.recorded import recorded
from bench.report import Target, table
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.silver import decode_stream, events_table

WORKER_LIMIT_MB = 400
HEAP_LIMIT_MB = 1024
ROUNDS = 10
ROWS_A_ROUND = 30_000
LARGEST = 16 * 1024 * 1024
LARGE_SIZES_MB = (1, 2, 4, 8, 12, 16)
_MB = 1024 * 1024
_EVERY_SECONDS = 0.1
_WORKER = "pyspark.daemon"


@dataclass(slots=True)
class Peaks:
    """What the sampler saw, in MB."""

    worker_mb: float = 0
    """Largest VmHWM of any Python worker: it includes the libraries that workers share."""
    heap_committed_mb: float = 0
    heap_live_mb: float = 0
    """Heap in use after a full collection at the end."""
    java_mb: float = 0
    """Largest resident set of the JVM, heap and everything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResult:
    """One scenario."""

    name: str
    events: int
    quarantined: int
    peaks: Peaks


@dataclass(slots=True)
class _Sampler:
    spark: SparkSession
    peaks: Peaks = field(default_factory=Peaks)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        java = java_pid(self.spark)
        while not self.stopped.wait(_EVERY_SECONDS):
            for process in processes_below(java):
                if process.pid == java:
                    self.peaks.java_mb = max(self.peaks.java_mb, _status_mb(process.pid, "VmRSS"))
                elif _WORKER in process.command:
                    self.peaks.worker_mb = max(self.peaks.worker_mb, _status_mb(process.pid, "VmHWM"))
            self.peaks.heap_committed_mb = max(self.peaks.heap_committed_mb, _heap(self.spark).getCommitted() / _MB)


def supported() -> bool:
    """Whether processes can be looked at: only where there is ``/proc``."""
    return Path("/proc/self/status").exists()


@contextmanager
def _sampled(spark: SparkSession) -> Iterator[Peaks]:
    sampler = _Sampler(spark)
    thread = threading.Thread(target=sampler.run, daemon=True)
    thread.start()
    try:
        yield sampler.peaks
    finally:
        sampler.stopped.set()
        thread.join()
        spark.sparkContext._jvm.java.lang.System.gc()  # type: ignore[union-attr]
        sampler.peaks.heap_live_mb = _heap(spark).getUsed() / _MB


def _heap(spark: SparkSession):  # type: ignore[no-untyped-def]  # a java.lang.management.MemoryUsage
    return spark.sparkContext._jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()  # type: ignore[union-attr]


def _status_mb(pid: int, name: str) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0  # it ended meanwhile
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(name)), 0)


def _decode(lake: Lake, feed: str, protocol: str = "canal_json", largest: int = LARGEST) -> decode_stream.Decoded:
    options = recorded(protocol).options
    decoding = decode_stream.Decoding(feed=feed, protocol=protocol, options=options, max_message_bytes=largest)
    return decode_stream.decode(lake, decoding)


def stream(lake: Lake, protocol: str, rounds: int = ROUNDS, rows: int = ROWS_A_ROUND) -> list[MemoryResult]:
    """Equal micro-batches one after the other, each looked at by itself."""
    found = []
    for batch in range(rounds):
        made = Made(feed=f"stream_{protocol}", protocol=protocol, rows=rows, batch=batch)
        write(lake, made)
        found.append(
            _scenario(lake, f"{protocol} micro-batch {batch + 1}", partial(_decode, lake, made.feed, protocol))
        )
    return found


def one_batch(lake: Lake, protocol: str, rows: int) -> MemoryResult:
    """One micro-batch of many messages."""
    made = Made(feed=f"batch_{protocol}", protocol=protocol, rows=rows)
    write(lake, made)
    return _scenario(lake, f"{protocol} batch of {rows:,} rows", partial(_decode, lake, made.feed, protocol))


def large(lake: Lake, copies: int = 4) -> MemoryResult:
    """``copies`` messages of each large size, and one above the largest: quarantined by name."""
    feed = "large"
    landing.create_tables(lake, feed)
    head, tail = row_around()
    sizes = [*(size * _MB for size in LARGE_SIZES_MB for _ in range(copies)), LARGEST + 1]
    lines = lake.spark.createDataFrame(list(enumerate(sizes)), "offset BIGINT, size INT").coalesce(1)
    filling = F.expr(f"size - {len(head) + len(tail)}")
    value = F.concat(F.lit(head.decode()), F.repeat(F.lit("x"), filling.cast("int")), F.lit(tail.decode())).cast(
        "binary"
    )
    append(lake, feed, 0, lines.select("offset", F.lit(None).cast("binary").alias("key"), value.alias("value")))
    found = _scenario(lake, f"{len(sizes)} messages up to 16 MB", partial(_decode, lake, feed))
    reasons = events_table.events(lake, feed).where("kind = 'error'").select("offset", "reason")
    named = [(line["offset"], line["reason"]) for line in reasons.collect()]
    if named != [(len(sizes) - 1, decode_stream.TOO_LARGE)]:
        raise RuntimeError(
            f"expected message {len(sizes) - 1} alone in quarantine as {decode_stream.TOO_LARGE}, found {named}"
        )
    return found


def row_around() -> tuple[bytes, bytes]:
    """A recorded insert, cut where a text of any length may stand: in the image, which comes after the types."""
    head, found, tail = recorded("canal_json").values[0].rpartition(b'"pad":"')
    return head + found, tail


def _scenario(lake: Lake, name: str, run: Callable[[], decode_stream.Decoded]) -> MemoryResult:
    with _sampled(lake.spark) as peaks:
        done = run()
    return MemoryResult(name=name, events=done.events, quarantined=done.quarantined, peaks=peaks)


def targets(results: list[MemoryResult], rounds: list[MemoryResult]) -> list[Target]:
    """Limits, and growth between the third and the last micro-batch."""
    worker = max(results, key=lambda result: result.peaks.worker_mb)
    heap = max(results, key=lambda result: result.peaks.heap_committed_mb)
    early, last = rounds[2].peaks, rounds[-1].peaks
    return [
        Target(what=f"Python worker, {worker.name}", measured=worker.peaks.worker_mb, bound=WORKER_LIMIT_MB,
               at_most=True, unit=" MB"),
        Target(what=f"driver heap, {heap.name}", measured=heap.peaks.heap_committed_mb, bound=HEAP_LIMIT_MB,
               at_most=True, unit=" MB"),
        Target(what="worker, last micro-batch to third", measured=last.worker_mb / early.worker_mb, bound=1.1,
               at_most=True),
        Target(what="live heap, last micro-batch to third", measured=last.heap_live_mb / early.heap_live_mb, bound=1.1,
               at_most=True),
    ]  # fmt: skip


def report(results: list[MemoryResult]) -> str:
    """Peaks of each scenario."""
    lines = [
        (
            result.name,
            f"{result.events:,}",
            f"{result.quarantined}",
            f"{result.peaks.worker_mb:.0f}",
            f"{result.peaks.heap_committed_mb:.0f}",
            f"{result.peaks.heap_live_mb:.0f}",
            f"{result.peaks.java_mb:.0f}",
        )
        for result in results
    ]
    heads = ("", "events", "quarantined", "Python worker", "heap committed", "heap live", "JVM resident")
    return table("memory: peaks in MB", heads, lines)


def main(lake: Lake, rows: int) -> list[Target]:
    """Measure and print."""
    if not supported():
        print("memory: skipped, this system has no /proc")
        return []
    rounds = stream(lake, "canal_json")
    results = [*rounds, *stream(lake, "craft", rounds=3)]
    results += [one_batch(lake, protocol, rows) for protocol in ("canal_json", "craft")]
    results.append(large(lake))
    print(report(results), flush=True)
    return targets(results, rounds)
