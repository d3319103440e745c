"""The local session does what the lake needs of a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.job_parameters import ROOT_CONF
from ticdc_local.broker import Broker
from ticdc_local.kafka import KafkaMessage
from ticdc_local.runner.display import text_of
from ticdc_local.session import local_session

USE_SESSION = """
import sys
from pathlib import Path
from pyspark.sql import functions as F
from ticdc_local.session import local_session

lake = Path(sys.argv[1])
table = str(lake / "numbers")
session = local_session(lake)
session.range(4).where(F.col("id") > 0).write.format("delta").save(table)
print(session.read.format("delta").load(table).count())
assert not session.sparkContext._jvm.java.lang.System.getenv().containsKey("HADOOP_CONF_DIR")
"""
"""A process that uses a session's functions, its JVM and a table."""


def measured(frame: DataFrame) -> list[Row]:
    """What the Python workers see: the rows of each Arrow batch, and their own interpreter."""

    # A function inside a function reaches the workers by value: they cannot import this file.
    def measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"rows": [batch.num_rows], "python": [sys.executable]})

    return frame.mapInArrow(measure, "rows long, python string").collect()


def test_session_merges_into_delta_tables(spark: SparkSession, lake_root: Path) -> None:
    path = lake_root / "numbers"
    spark.range(10).selectExpr("id", "id AS value").write.format("delta").save(str(path))
    spark.range(5, 15).createOrReplaceTempView("newer")
    spark.sql(
        f"MERGE INTO delta.`{path}` t USING newer n ON t.id = n.id "
        "WHEN MATCHED THEN UPDATE SET value = 0 WHEN NOT MATCHED THEN INSERT (id, value) VALUES (n.id, 1)"
    )
    merged = spark.read.format("delta").load(str(path))
    assert merged.selectExpr("count(*)", "sum(value)").first() == (15, 0 + 1 + 2 + 3 + 4 + 5)


def test_a_thread_that_asks_for_a_session_of_another_thread_can_write_a_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As the demo does, which starts Spark while it fills Kafka."""
    spark.sql(f"CREATE TABLE IF NOT EXISTS of_another_thread (id BIGINT) USING delta LOCATION '{tmp_path / 'table'}'")

    def write() -> None:
        # Another thread's session is not this one's.
        spark.sparkContext._jvm.org.apache.spark.sql.classic.SparkSession.clearActiveSession()  # type: ignore[union-attr]
        session = local_session(Path(spark.conf.get(ROOT_CONF) or ""))
        source = session.readStream.table("of_another_thread")
        writer = (
            source.writeStream.format("delta")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
        )
        writer.toTable("of_another_thread").awaitTermination()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(write).result()
    spark.sql("DROP TABLE of_another_thread")


def test_another_lake_in_the_session_does_not_see_the_tables_of_the_first(spark: SparkSession, tmp_path: Path) -> None:
    before = Path(spark.conf.get(ROOT_CONF) or "")
    for lake, rows in ((tmp_path / "one", 1), (tmp_path / "two", 2)):
        session = local_session(lake)
        session.sql("CREATE SCHEMA IF NOT EXISTS ops")
        session.sql(f"CREATE TABLE IF NOT EXISTS ops.numbers (id BIGINT) USING delta LOCATION '{lake / 'numbers'}'")
        session.range(rows).write.insertInto("ops.numbers")
        assert session.table("ops.numbers").count() == rows
    spark.newSession().createDataFrame([(1,)], "id INT")  # a session of its own, which is the active one from then on
    local_session(before)
    spark.createDataFrame([(1,)], "id INT")  # active again, for other tests
    assert not spark.catalog.tableExists("ops.numbers")


@pytest.mark.long
def test_another_spark_in_the_shell_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name><value>hdfs://nowhere.invalid</value></property>"
        "</configuration>"
    )
    of_a_cluster = {name: str(tmp_path) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")}
    of_connect = {"SPARK_CONNECT_MODE": "1", "SPARK_CONNECT_MODE_ENABLED": "1", "SPARK_API_MODE": "connect"}
    environment = {**os.environ, **of_a_cluster, **of_connect, "SPARK_REMOTE": "sc://nowhere.invalid"}
    command = [sys.executable, "-c", USE_SESSION, str(tmp_path / "lake")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "3\n"), ended.stderr


def test_arrow_batches_are_bounded_by_rows_and_by_bytes(spark: SparkSession) -> None:
    small = measured(spark.range(25_000, numPartitions=1))
    assert [row.rows for row in small] == [10_000, 10_000, 5_000]
    large = measured(spark.range(20, numPartitions=1).selectExpr("repeat('x', 4 * 1024 * 1024) AS text"))
    assert [row.rows for row in large] == [2] * 10


@pytest.mark.parametrize("by_batches", ["true", "false"])
def test_a_large_row_group_is_read_within_the_heap(spark: SparkSession, tmp_path: Path, by_batches: str) -> None:
    """Memory outside the heap is bounded, too, and a thread of Hadoop's that finds none dies: its query hangs."""
    rows = (
        "SELECT CAST(concat_ws('', transform(sequence(1, 40), x -> uuid())) AS BINARY) AS v FROM range(0, 30000, 1, 1)"
    )
    spark.sql(rows).write.parquet(str(tmp_path / "rows"))
    (file,) = (tmp_path / "rows").glob("*.parquet")
    assert file.stat().st_size > 30 * _MB
    before = _direct_memory(spark)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", by_batches)
    try:
        assert spark.read.parquet(str(file)).selectExpr("sum(length(v))").first() == (30_000 * 40 * 36,)
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    assert _direct_memory(spark) - before < 10 * _MB


_MB = 1024 * 1024


def _direct_memory(spark: SparkSession) -> int:
    """Bytes of direct buffers."""
    java: Any = spark.sparkContext._jvm.java  # type: ignore[union-attr]
    kind = java.lang.Class.forName("java.lang.management.BufferPoolMXBean")
    pools = java.lang.management.ManagementFactory.getPlatformMXBeans(kind)
    return next(int(pool.getMemoryUsed()) for pool in pools if pool.getName() == "direct")


def test_workers_run_this_python(spark: SparkSession) -> None:
    assert [row.python for row in measured(spark.range(1))] == [sys.executable]


def test_times_are_utc_and_the_heap_is_a_gigabyte(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.getConf().get("spark.driver.memory") == "1g"


def test_the_heap_is_large_from_the_start_for_young_objects(spark: SparkSession) -> None:
    factory: Any = spark.sparkContext._jvm.java.lang.management.ManagementFactory
    assert factory.getMemoryMXBean().getHeapMemoryUsage().getInit() == 700 << 20
    pools = {pool.getName(): pool.getUsage().getInit() for pool in factory.getMemoryPoolMXBeans()}
    assert pools["Eden Space"] + 2 * pools["Survivor Space"] == 320 << 20


@pytest.mark.parametrize("name", ["executor.Executor", "scheduler.TaskSetManager"])
def test_the_stack_of_a_querys_error_is_not_printed(name: str, spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    logger = jvm.org.apache.logging.log4j.LogManager.getLogger(f"org.apache.spark.{name}")
    assert logger.getLevel().toString() == "OFF"


def test_a_frame_is_displayed_as_a_table(spark: SparkSession) -> None:
    frame = spark.sql("SELECT TIMESTAMP '2024-03-10 02:30:00 UTC' AS a, X'0aff' AS a, map('k', 1.50) AS m, NULL AS n")
    assert text_of(frame).splitlines() == [
        "a                    a     m            n",
        "-------------------  ----  -----------  ----",
        "2024-03-10 02:30:00  0AFF  {k -> 1.50}  NULL",
    ]
    assert text_of(spark.range(21)).endswith("\n19\n(first 20 rows)")


def test_a_stream_is_not_displayed(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="streaming DataFrame"):
        text_of(spark.readStream.format("rate").load())


def test_session_reads_kafka(spark: SparkSession, broker: Broker) -> None:
    broker.create_topic("session", 2)
    broker.produce("session", [KafkaMessage(partition=1, key=b"k", value=b"v")])
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "session"}
    rows = spark.read.format("kafka").options(**options).load().select("partition", "key", "value").collect()
    assert rows == [(1, bytearray(b"k"), bytearray(b"v"))]
