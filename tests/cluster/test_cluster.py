"""On executors of their own, as on a cluster: the demo's job, and a stream while executors are killed. `make
test-cluster`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from executors import cluster_session, executor_killed, executor_pids

from ticdc_local.cli import demo
from ticdc_local.verify_stream import load_stream, verify
from ticdc_testkit.recorded_streams import recorded_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

pytestmark = pytest.mark.cluster

PROJECT = Path(__file__).parents[2]
STREAM = PROJECT / "tests" / "data" / "streams" / "tiflow-bank"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """In place of the session of all other tests: a process has one."""
    with cluster_session(tmp_path_factory.mktemp("cluster")) as session:
        yield session


def test_a_stream_whose_executors_are_killed(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    assert set(executor_pids(spark)) == {"0", "1"}
    recorded = recorded_stream(STREAM, "craft.jsonl.gz", {"craft-float": "trust"})
    with executor_killed(spark, "silver killed"):
        run = load_stream(spark, broker, recorded, tmp_path, name="killed")
    each = verify(run, recorded, 30)
    with executor_killed(spark, "MERGE"):
        verdicts = list(islice(each, 2))
    with executor_killed(spark, "MERGE operation - Rewriting"):
        verdicts += each
    assert max(executor_pids(spark)) == "4"  # three were replaced
    assert len(verdicts) >= 3
    assert all(verdict.rows > 0 for verdict in verdicts[1:])
    assert [str(difference) for verdict in verdicts for difference in verdict.differences] == []


def test_demo_runs_on_executors(spark: SparkSession, tmp_path: Path) -> None:
    assert len(executor_pids(spark)) == 2
    assert demo.run(Namespace(project=PROJECT, lake=tmp_path / "lake", steps=demo.STEPS)) == 0
