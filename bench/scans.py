"""How many files the scans of a Delta table read, as Spark's own status counts them."""

from __future__ import annotations

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession


def last_execution(spark: SparkSession) -> int:
    """The number of the newest SQL execution; -1 before the first."""
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    numbers = [executions.apply(at).executionId() for at in range(executions.size())]
    return max(numbers, default=-1)


def files_read(spark: SparkSession, name: str, after: int) -> tuple[int, ...]:
    """The files that each scan of a table read, in the SQL executions after this one."""
    store, found = spark._jsparkSession.sharedState().statusStore(), []
    scanned = f"FileScan parquet {name.replace('`', '')}["
    executions = store.executionsList()
    for at in range(executions.size()):
        number = executions.apply(at).executionId()
        if number > after:
            values, nodes = store.executionMetrics(number), store.planGraph(number).allNodes()
            scans = (node for node in map(nodes.apply, range(nodes.size())) if node.desc().startswith(scanned))
            metrics = (values.get(_files_read(scan)) for scan in scans)
            found += [int(str(files.get()).replace(",", "")) for files in metrics if files.isDefined()]
    return tuple(found)


def _files_read(scan: JavaObject) -> int:
    """The number under which an execution's metrics have the files that a scan read; a scan that did not run has none.
    They have those of every plan that adaptive execution made on the way, so it is taken of the last plan's node."""
    metrics = scan.metrics()
    (files,) = (m for m in map(metrics.apply, range(metrics.size())) if m.name() == "number of files read")
    return int(files.accumulatorId())
