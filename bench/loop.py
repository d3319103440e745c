"""The loop: a changefeed that does not end, carried round by round. Does it keep up, does its heap stay as it is?

How far readers are behind is a sawtooth: least right after a publication, most just before the next one, when they
still read the watermark before. Both are measured; the bound is on the most.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from bench.generated_messages import Made
from bench.report import Target, table
from bench.sustained import PARTITIONS, TABLES, feed_run, kafka_messages
from bench.temporary_lake import as_users_run_it
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_lakehouse.loop import FailedRound, Round, rounds
from ticdc_local.broker import Broker

FEED = "loop"
RATE = 10_000
"""Row changes a second."""
EVERY_SECONDS = 5.0
SECONDS_BEHIND = 10.0
"""Just before a publication, after a first third of the time, which warms up."""
GROWTH = 1.5
"""The lag right after publications in the last third of the time is at most so many times that in the second third."""
FIRST, LAST = 10, 50
"""Rounds after which the live heap is compared."""
HEAP_GROWTH = 1.1
_MB = 1024 * 1024


@dataclass(slots=True)
class Changefeed:
    """Changes at a steady rate, a watermark each second, until it has run for so long."""

    broker: Broker
    rate: int
    seconds: int
    written: dict[int, float] = field(default_factory=dict)
    """When the watermark of a TSO was written, by time.monotonic; of 0, before the first one, when it began."""

    def write(self) -> None:
        """Write second by second."""
        self.written[0] = started = time.monotonic()
        for second in range(self.seconds):
            made = Made(feed=FEED, protocol="canal_json", rows=self.rate, batch=second, tables=TABLES)
            self.broker.produce(FEED, kafka_messages(made, PARTITIONS))
            self.written[made.tso] = time.monotonic()
            time.sleep(max(0.0, started + second + 1 - time.monotonic()))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResult:
    """What the loop did."""

    changes: int
    seconds: float
    before: list[float]
    """Seconds that readers were behind just before each round published, in order: of the watermark before its own."""
    after: list[float]
    """The same right after each."""

    @property
    def most(self) -> float:
        """The most seconds behind after the first third."""
        return max(self.before[len(self.before) // 3 :])

    @property
    def growth(self) -> float:
        """The lag at the end against that of the middle."""
        third = len(self.after) // 3
        return median(self.after[-third:]) / median(self.after[third : 2 * third]) if third else 1.0


def measure(lake: FolderLake, rate: int, seconds: int) -> LoopResult:
    """Carry a changefeed of this rate for so long, and until all of it is published."""
    with Broker(lake.root / FEED / "kafka") as broker:
        broker.create_topic(FEED, PARTITIONS)
        run = feed_run(lake.spark, lake.root, broker.bootstrap_servers, FEED, TABLES)
        changefeed = Changefeed(broker=broker, rate=rate, seconds=seconds)
        writer = threading.Thread(target=changefeed.write, daemon=True)
        writer.start()
        return carried(_until_published(run, changefeed, writer), changefeed.written)


def carried(done: Iterable[Round], written: Mapping[int, float]) -> LoopResult:
    """Run the rounds, and take after each that published how long ago its watermark and the one before were written."""
    started, shown, changes = time.monotonic(), 0, 0
    before, after = [], []
    for round_ in done:
        changes += round_.row_changes
        if round_.tso > shown:
            now = time.monotonic()
            before.append(now - written[shown])
            after.append(now - written[round_.tso])
            shown = round_.tso
    return LoopResult(changes=changes, seconds=time.monotonic() - started, before=before, after=after)


def _until_published(run: Run, changefeed: Changefeed, writer: threading.Thread) -> Iterator[Round]:
    """The rounds until all that was written is published."""
    for done in rounds([run], EVERY_SECONDS):
        if isinstance(done, FailedRound):
            raise done.error
        yield done
        if not writer.is_alive() and done.tso == max(changefeed.written):
            return


def heap_by_round(lake: FolderLake, measured: tuple[int, int] = (FIRST, LAST)) -> dict[int, float]:
    """Live heap after these rounds of small windows, of one loop, which keeps its state from round to round."""
    with Broker(lake.root / "heap" / "kafka") as broker:
        broker.create_topic("heap", PARTITIONS)
        run = feed_run(lake.spark, lake.root, broker.bootstrap_servers, "heap", TABLES)
        found: dict[int, float] = {}
        loop = rounds([run], 0)
        for number in range(1, max(measured) + 1):
            made = Made(feed="heap", protocol="canal_json", rows=100, batch=number, tables=TABLES)
            broker.produce("heap", kafka_messages(made, PARTITIONS))
            done = next(loop)
            if isinstance(done, FailedRound):
                raise done.error
            if number in measured:
                found[number] = live_heap(lake)
        return found


def live_heap(lake: FolderLake) -> float:
    """MB of the JVM's heap that are in use after a collection."""
    jvm = lake.spark.sparkContext._jvm
    assert jvm is not None
    for _ in range(2):  # what a first collection finds unreachable, a second one frees
        jvm.java.lang.System.gc()
        time.sleep(0.5)
    return float(jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()) / _MB


def report(result: LoopResult) -> str:
    """How far behind the loop was."""
    rate = result.changes / result.seconds
    line = (f"{result.changes:,}", f"{result.seconds:.0f}", f"{rate:,.0f}", f"{len(result.after)}")
    lags = (f"{median(lags):.1f} ({max(lags):.1f})" for lags in (result.before, result.after))
    behind = (f"s behind {when} publication, median (most)" for when in ("just before a", "right after a"))
    heads = ("changes", "seconds", "changes/s", "rounds", *behind, "most after a third", "growth")
    values = (*line, *lags, f"{result.most:.1f}", f"{result.growth:.2f}")
    return table(f"loop: a round every {EVERY_SECONDS:g} s, {TABLES} tables", heads, [values])


def main(lake: FolderLake, seconds: int) -> list[Target]:
    """Measure and print."""
    with as_users_run_it(lake.spark):
        result = measure(lake, RATE, seconds)
        print(report(result), flush=True)
        heap = heap_by_round(lake)
    print(f"live heap: {', '.join(f'{mb:.0f} MB after round {number}' for number, mb in heap.items())}\n", flush=True)
    return targets(result, heap)


def targets(result: LoopResult, heap: Mapping[int, float]) -> list[Target]:
    """The bounds of the lag and of the live heap."""
    grown = heap[LAST] / heap[FIRST]
    return [
        Target(what="loop, seconds behind at most", measured=result.most, bound=SECONDS_BEHIND, at_most=True),
        Target(what="loop, growth of the lag", measured=result.growth, bound=GROWTH, at_most=True),
        Target(what="loop, growth of the live heap", measured=grown, bound=HEAP_GROWTH, at_most=True),
    ]
