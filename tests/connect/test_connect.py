"""A feed's layers through Spark Connect, which standard access mode and serverless compute are built on: `make
test-connect`. The session is a client: what needs a JVM beside it fails here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("grpc", reason="make test-connect brings what a client of Spark Connect needs")
sys.path.insert(0, str(Path(__file__).parents[1] / "lake"))

from changefeed import Changefeed, Source, at  # type: ignore[import-not-found]
from pyspark.sql import SparkSession

from ticdc_lakehouse import as_of
from ticdc_local.java import find_java
from ticdc_local.launch import spark_environment
from ticdc_local.session import session_settings

if TYPE_CHECKING:
    from ticdc_local.broker import Broker

ORDERS = Source(table="orders")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A client of a server of its own. The server is a JVM of this process, which can have no other."""
    builder = SparkSession.builder.remote("local[2]")
    for name, value in session_settings(tmp_path_factory.mktemp("connect")).items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch, spark_environment(find_java()):
        patch.setenv("SPARK_TESTING", "1")  # the server takes any free port
        session = builder.getOrCreate()
        yield session
        session.stop()


def test_all_layers_of_a_feed(client: SparkSession, broker: Broker, tmp_path: Path) -> None:
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
