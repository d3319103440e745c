"""What a run costs whatever its window holds: a few changes of three small tables, from Kafka to published, warm.

The session is the one that ``ticdc-lake run`` starts, and gold keeps its state from round to round, as the loop does.
The first rounds fill the tables and warm up; the median of the others counts. Beside the seconds stand the Spark jobs
and SQL executions of each layer: they do not depend on how busy the machine is.

In each round the bare parts of the same changes are timed, too: what no layer can be faster than. They are those of
`bench.pipeline`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from pyspark.sql import SparkSession

from bench.cpu_time import cpu_seconds
from bench.generated_messages import Made
from bench.gold import Case, merge_bare, prepare_bare
from bench.pipeline import copy, pass_through
from bench.report import Target, table
from bench.sustained import feed_run, kafka_messages
from bench.temporary_lake import as_users_run_it
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_lakehouse.planning.published_state import Published
from ticdc_local.broker import Broker

FEED = "fixed_cost"
TABLES = 3
ROWS = 30
CASE = Case(feed=FEED, changes=ROWS, tables=TABLES)
WARM_UP = 6
MEASURED = 7
TARGET = 2.5
"""Seconds from Kafka to published."""
LAYERS = ("bronze", "silver", "gold")
BARE = ("copy", "mapInArrow", "MERGEs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one layer's run took."""

    seconds: float
    cpu: float
    """Seconds of the JVM and its Python workers."""
    jobs: int
    executions: int
    """SQL executions."""


def measure(lake: FolderLake, *, rounds: int = MEASURED, warm_up: int = WARM_UP) -> list[Mapping[str, Cost]]:
    """The cost of each layer, round by round; every round changes all rows of three tables."""
    costs: list[Mapping[str, Cost]] = []
    with Broker(lake.root / FEED / "kafka") as broker, as_users_run_it(lake.spark):
        broker.create_topic(FEED, TABLES)
        run = feed_run(lake.spark, lake.root, broker.bootstrap_servers, FEED, TABLES)
        known: list[Published] = []
        layers = {"bronze": run.bronze, "silver": run.silver, "gold": lambda: known.append(run.gold(*known[-1:]).state)}
        before = 0
        for batch in range(warm_up + rounds):
            made = Made(feed=FEED, protocol="canal_json", rows=ROWS, batch=batch, tables=TABLES)
            broker.produce(FEED, kafka_messages(made, TABLES))
            cost = {layer: _cost(lake.spark, layers[layer]) for layer in LAYERS}
            prepare_bare(run.lake, CASE.config, before, made.tso, create=batch == 0)
            bare = _bare_parts(run.lake, made, broker.bootstrap_servers)
            costs.append(cost | {part: _cost(lake.spark, bare[part]) for part in BARE})
            before = made.tso
    return costs[warm_up:]


def _bare_parts(lake: FolderLake, made: Made, servers: str) -> Mapping[str, Callable[[], object]]:
    return {
        "copy": partial(copy, lake, made, servers, TABLES),
        "mapInArrow": partial(pass_through, lake, made),
        "MERGEs": partial(merge_bare, lake, CASE),
    }


def _cost(spark: SparkSession, layer: Callable[[], object]) -> Cost:
    before, cpu, start = _counts(spark), cpu_seconds(spark), time.perf_counter()
    layer()
    seconds, after = time.perf_counter() - start, _counts(spark)
    jobs, executions = (late - early for late, early in zip(after, before, strict=True))
    return Cost(seconds=seconds, cpu=cpu_seconds(spark) - cpu, jobs=jobs, executions=executions)


def _counts(spark: SparkSession) -> tuple[int, int]:
    """Spark jobs and SQL executions of the session so far."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    # The store forgets old executions, but their numbers go on.
    last = store.executionsList(max(0, store.executionsCount() - 1), 1)
    return int(context.dagScheduler().numTotalJobs()), int(last.head().executionId()) + 1 if last.nonEmpty() else 0


def report(costs: list[Mapping[str, Cost]]) -> str:
    """Medians by layer."""
    lines = []
    for parts, name in ((LAYERS, "all layers"), (BARE, "all bare parts")):
        lines += [_line(part, [round_[part] for round_ in costs]) for part in parts]
        lines.append(_line(name, [_sum(round_, parts) for round_ in costs]))
    title = f"fixed cost: {ROWS} changes of {TABLES} tables, from Kafka to published, median of {len(costs)}"
    return table(title, ("layer", "seconds", "CPU seconds", "Spark jobs", "SQL executions"), lines)


def _line(name: str, costs: list[Cost]) -> tuple[str, ...]:
    seconds, cpu = median(cost.seconds for cost in costs), median(cost.cpu for cost in costs)
    jobs, executions = median(cost.jobs for cost in costs), median(cost.executions for cost in costs)
    return name, f"{seconds:.2f}", f"{cpu:.2f}", f"{jobs:g}", f"{executions:g}"


def _sum(round_: Mapping[str, Cost], parts: Sequence[str]) -> Cost:
    costs = [round_[part] for part in parts]
    return Cost(
        seconds=sum(cost.seconds for cost in costs),
        cpu=sum(cost.cpu for cost in costs),
        jobs=sum(cost.jobs for cost in costs),
        executions=sum(cost.executions for cost in costs),
    )


def main(lake: FolderLake) -> list[Target]:
    """Measure and print."""
    costs = measure(lake)
    print(report(costs), flush=True)
    seconds = median(_sum(round_, LAYERS).seconds for round_ in costs)
    what = f"{TABLES} small tables, warm, Kafka to published"
    return [Target(what=what, measured=seconds, bound=TARGET, at_most=True, unit=" s")]
