"""The demo, recorded streams and a feed's layers through Spark Connect, which standard access mode and serverless
compute are built on: `make test-connect`. The session is a client: what needs a JVM beside it fails here."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("grpc", reason="make test-connect brings what a client of Spark Connect needs")
sys.path.insert(0, str(Path(__file__).parents[1] / "lake"))

from changefeed import Changefeed, Source, at  # type: ignore[import-not-found]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ticdc_lakehouse import as_of
from ticdc_lakehouse.commit_conflict import Conflict, conflict_of
from ticdc_lakehouse.job_parameters import ROOT_CONF
from ticdc_lakehouse.ops.selftest import Environment, Outcome, selftest
from ticdc_lakehouse.silver import decode_stream
from ticdc_lakehouse.silver.decode_stream import Decoded
from ticdc_lakehouse.silver.quarantine import Replayed
from ticdc_local.cli import demo
from ticdc_local.java import find_java
from ticdc_local.launch import spark_environment
from ticdc_local.session import forget_lake, session_settings
from ticdc_local.verify_stream import load_stream, verify
from ticdc_testkit.recorded_streams import recorded_stream

if TYPE_CHECKING:
    from ticdc_local.broker import Broker

PROJECT = Path(__file__).parents[2]
STREAMS = PROJECT / "tests" / "data" / "streams"
ORDERS = Source(table="orders")


def _cannot_clone(*_: object) -> None:
    """What Databricks' client (databricks-connect 18 and 19) does."""
    raise AttributeError("'SparkSession' object has no attribute 'thread_local'")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A client of a server of its own. The server is a JVM of this process, which can have no other."""
    builder = SparkSession.builder.remote("local[2]")
    for name, value in session_settings(tmp_path_factory.mktemp("connect")).items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch, spark_environment(find_java()):
        patch.setenv("SPARK_TESTING", "1")  # the server takes any free port
        session = builder.getOrCreate()
        patch.setattr(type(session), "cloneSession", _cannot_clone)
        yield session
        session.stop()


def test_all_layers_run_through_spark_connect(client: SparkSession, broker: Broker, tmp_path: Path) -> None:
    assert type(client).__module__.startswith("pyspark.sql.connect")
    feed = Changefeed(client, broker, tmp_path / "lake")
    feed.send(0, ORDERS.insert(at(1), 1, "a"), ORDERS.insert(at(1), 2, "b"))
    feed.resolve(at(2))
    assert feed.go().tso == at(2)
    feed.send(0, ORDERS.update(at(3), (1, "a"), (1, "c")), ORDERS.delete(at(3), 2, "b"))
    feed.resolve(at(4))
    assert feed.go().tso == at(4)
    assert feed.rows("orders") == {1: ("c",)}
    then = as_of(client, feed.name, at(2), lake=feed.lake)["shop.orders"].collect()
    assert sorted((row["id"], row["v"]) for row in then) == [(1, "a"), (2, "b")]
    feed.run.alarm()


def test_quarantined_message_is_replayed_through_spark_connect(
    client: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Changefeed(client, broker, tmp_path / "lake", described={"max_message_bytes": 2_000})
    feed.send(0, ORDERS.insert(at(1), 1, "a" * 3_000), b"no message")
    feed.resolve(at(2))
    feed.run.bronze()
    with monkeypatch.context() as patch:
        # It reads an older version of the events, which Databricks refuses a week after it was written.
        patch.setattr(decode_stream, "_counted_in_table", None)
        assert feed.run.silver() == Decoded(feed=feed.name, batches=1, events=3, quarantined=2)
    assert feed.run.quarantined().count() == 2
    feed.described = {}
    assert feed.run.replay(["all"]) == Replayed(decoded=1, still_open=1)
    assert feed.run.dismiss(["all"], "sent by a test") == 1
    assert feed.apply().tso == at(2)
    assert feed.rows("orders") == {1: ("a" * 3_000,)}


def test_selftest_passes_through_spark_connect(client: SparkSession, broker: Broker, tmp_path: Path) -> None:
    lake = Changefeed(client, broker, tmp_path / "lake").lake
    found = {each.check: each.detail for each in selftest(Environment(lake=lake)) if each.outcome is Outcome.FAILED}
    # Open-source Delta refuses REPLACE COLUMNS of a clustered table there; in a session of its own JVM it does not.
    assert found == {"live table": "This method should not be called in the analyzer."}


def test_a_conflict_of_two_commits_is_known_through_spark_connect(client: SparkSession, tmp_path: Path) -> None:
    """Delta's own exceptions come only to clients that have imported ``delta.connect``: the project does not."""
    folder, once = str(tmp_path / "table"), {"txnAppId": "test", "txnVersion": "1"}
    client.range(1).write.format("delta").save(folder)
    slow = client.range(1).selectExpr("id + int(java_method('java.lang.Thread', 'sleep', 4000L) IS NULL) AS id")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(slow.write.format("delta").mode("append").options(**once).save, folder)
        time.sleep(2)
        client.range(1).write.format("delta").mode("append").options(**once).save(folder)
        with pytest.raises(PySparkException) as raised:
            first.result()
    assert "delta.connect" not in sys.modules
    assert conflict_of(raised.value) is Conflict.TRANSACTION


@pytest.mark.parametrize(
    ("stream", "file", "options", "every"),
    [
        ("ticdc-types", "canal_json.jsonl.gz", {}, 60),
        ("tiflow-bank", "craft.jsonl.gz", {"craft-float": "trust"}, 60),
    ],
)
def test_gold_is_what_tidb_held(
    client: SparkSession, broker: Broker, stream: str, file: str, options: dict[str, str], every: int, tmp_path: Path
) -> None:
    recorded = recorded_stream(STREAMS / stream, file, options)
    run = load_stream(client, broker, recorded, tmp_path, name=f"c_{stream.replace('-', '_')}")
    verdicts = list(verify(run, recorded, every))
    assert len(verdicts) >= 2
    assert all(verdict.rows > 0 for verdict in verdicts[1:])
    assert [str(difference) for verdict in verdicts for difference in verdict.differences] == []


def test_demo_runs_through_spark_connect(client: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    forget_lake(client)
    client.conf.set(ROOT_CONF, str(lake))
    options = Namespace(project=PROJECT, lake=lake, steps=demo.STEPS)
    assert demo.run(options, lambda _: client) == 0
