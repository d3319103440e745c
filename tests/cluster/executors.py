"""A session whose executors are processes of their own, as on a cluster, and the end of one that is at work."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession

from ticdc_local.java import find_java
from ticdc_local.launch import spark_environment
from ticdc_local.session import session_settings

MASTER = "local-cluster[2,1,1024]"
"""Two executors with a core and 1 GB each."""
_HEARD = 0.5
"""Seconds after which the driver has heard all that an executor said before it was stopped."""
_Task = tuple[int, str, str]
"""A running task: its stage, its executor, and what the stage is for."""


@contextmanager
def cluster_session(folder: Path) -> Iterator[SparkSession]:
    """The process's session, with its executors and their folders."""
    builder = SparkSession.builder.master(MASTER)
    for name, value in session_settings(folder).items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch, spark_environment(find_java()):
        # Else the executors' folders lie in pyspark's. Another value than 1, by which Spark's launcher looks for the
        # classes of a checkout.
        patch.setenv("SPARK_TESTING", "0")
        session = builder.getOrCreate()
    yield session
    session.stop()


@contextmanager
def executor_killed(spark: SparkSession, work: str) -> Iterator[None]:
    """Kill -9 of an executor that is at a task of ``work``, a part of what Spark's stages say they are for. The block
    runs such work. Raises AssertionError if there was none."""
    done = Event()
    with ThreadPoolExecutor(max_workers=1) as threads:
        killer = threads.submit(_kill_one, spark, work, done)
        try:
            yield
        finally:
            done.set()
        assert killer.result(), f"no executor was seen at {work}"


def _kill_one(spark: SparkSession, work: str, done: Event) -> bool:
    """Kill the first executor that is at the work; gives whether there was one before the work was done."""
    while not done.wait(0.01):
        for task in _running(spark, work):
            if _killed_at(spark, task, work):
                return True
    return False


def _killed_at(spark: SparkSession, task: _Task, work: str) -> bool:
    """Stop the executor, and kill it if its task was not done before."""
    pid = executor_pids(spark)[task[1]]
    os.kill(pid, signal.SIGSTOP)
    time.sleep(_HEARD)
    at_work = task in _running(spark, work)
    os.kill(pid, signal.SIGKILL if at_work else signal.SIGCONT)
    if at_work:
        print(f"killed executor {task[1]} (pid {pid}) in stage {task[0]}: {task[2]}")
    return at_work


def _running(spark: SparkSession, work: str) -> list[_Task]:
    store = spark.sparkContext._jsc.sc().statusStore()
    stages = store.activeStages()
    found = [stages.apply(i) for i in range(stages.size())]
    at_work = [(s, text) for s in found if work in (text := " ".join(s.description().toString().split()))]
    return [
        (stage.stageId(), task.executorId(), text)
        for stage, text in at_work
        for task in _tasks(store.taskList(stage.stageId(), stage.attemptId(), 100))
        if task.status() == "RUNNING"
    ]


def _tasks(tasks):  # type: ignore[no-untyped-def]  # of the JVM
    return [tasks.apply(i) for i in range(tasks.size())]


def executor_pids(spark: SparkSession) -> dict[str, int]:
    """The processes of the session's executors, by the executors' ids."""
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    found = re.findall(rf"^ *(\d+) +{jvm} .*--executor-id (\d+)", listed.stdout, re.MULTILINE)
    return {executor: int(pid) for pid, executor in found}
